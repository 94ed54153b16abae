/* SPDX-License-Identifier: MIT
 * heed_decoder: a stack of layers with cross-attention.
 */
#include "layers.h"

heed_status heed_decoder_workspace(const heed_context *context, size_t n_layers, const heed_decoder_layer *layers,
                                   const heed_decoder_args *args, size_t *bytes)
{
    const struct heed_layers stack = {true, n_layers, layers, args};
    return heed_layers_workspace(context, &stack, bytes);
}

heed_status heed_decoder(const heed_context *context, size_t n_layers, const heed_decoder_layer *layers,
                         const heed_decoder_args *args, const heed_workspace *workspace)
{
    const struct heed_layers stack = {true, n_layers, layers, args};
    return heed_layers_run(context, &stack, workspace);
}
