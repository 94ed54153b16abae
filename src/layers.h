/* SPDX-License-Identifier: MIT
 * What heed_encoder and heed_decoder share: stacks of layers, with cross-attention or without.
 */
#ifndef HEED_LAYERS_H
#define HEED_LAYERS_H

#include "internal.h"

/* As the caller gave them: heed_decoder_layer and heed_decoder_args of a decoder, else those of an encoder. */
struct heed_layers {
    bool decoder;
    size_t count;
    const void *layers, *args;
};

heed_status heed_layers_run(const heed_context *context, const struct heed_layers *layers,
                            const heed_workspace *workspace);
heed_status heed_layers_workspace(const heed_context *context, const struct heed_layers *layers, size_t *bytes);

#endif
