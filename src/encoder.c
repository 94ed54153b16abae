/* SPDX-License-Identifier: MIT
 * heed_encoder: a stack of layers without cross-attention.
 */
#include "layers.h"

heed_status heed_encoder_workspace(const heed_context *context, size_t n_layers, const heed_encoder_layer *layers,
                                   const heed_encoder_args *args, size_t *bytes)
{
    const struct heed_layers stack = {false, n_layers, layers, args};
    return heed_layers_workspace(context, &stack, bytes);
}

heed_status heed_encoder(const heed_context *context, size_t n_layers, const heed_encoder_layer *layers,
                         const heed_encoder_args *args, const heed_workspace *workspace)
{
    const struct heed_layers stack = {false, n_layers, layers, args};
    return heed_layers_run(context, &stack, workspace);
}
