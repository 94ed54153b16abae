/* SPDX-License-Identifier: MIT
 * heed_linear: a product with packed weights and its epilogue.
 */
#include "internal.h"

_Static_assert((int)HEED_ACTIVATION_NONE == (int)HEED_KIND_NONE && (int)HEED_ACTIVATION_RELU == (int)HEED_KIND_RELU &&
                   (int)HEED_ACTIVATION_GELU_ERF == (int)HEED_KIND_GELU_ERF &&
                   (int)HEED_ACTIVATION_GELU_TANH == (int)HEED_KIND_GELU_TANH &&
                   (int)HEED_ACTIVATION_SILU == (int)HEED_KIND_SILU,
               "kernels.h repeats heed_activation");

static struct heed_epilogue epilogue_of(const heed_linear_options *o, bool gated)
{
    bool plain = !o->bias && !o->residual && o->activation == HEED_ACTIVATION_NONE;
    return (struct heed_epilogue){.kind = gated   ? HEED_EPILOGUE_GATED
                                          : plain ? HEED_EPILOGUE_STORE
                                                  : HEED_EPILOGUE_LINEAR,
                                  .bias = o->bias,
                                  .up_bias = o->up_bias,
                                  .activation = (enum heed_activation_kind)o->activation,
                                  .residual = o->residual,
                                  .ld_residual = o->ld_residual};
}

heed_status heed_linear(const heed_context *context, size_t m, const float *x, size_t ldx, const heed_weights *weights,
                        const heed_linear_options *options, float *y, size_t ldy)
{
    struct heed_context fallback;
    const struct heed_context *c;
    const heed_linear_options defaults = HEED_LINEAR_OPTIONS_INIT;
    heed_linear_options o = defaults;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    if (status == HEED_OK)
        status = heed_weights_check(weights);
    if (status == HEED_OK && options)
        status = heed_struct_read(&o, sizeof o, sizeof o, options);
    if (status != HEED_OK)
        return status;

    size_t in = heed_weights_in(weights), out = heed_weights_out(weights);
    bool gated = heed_weights_gated(weights);
    struct heed_operands operands;
    heed_operands_begin(&operands, HEED_OK);
    heed_read(&operands, x, sizeof *x, m, in, ldx, 0);
    heed_read_weights(&operands, weights);
    heed_read_optional(&operands, o.bias, sizeof(float), m == 0 ? 0 : 1, out, out, 0);
    heed_require(&operands, heed_activation_check(o.activation) == HEED_OK, HEED_ERR_ENUM);
    heed_read_optional(&operands, o.up_bias, sizeof(float), m == 0 ? 0 : 1, out, out, 0);
    heed_require(&operands, gated || !o.up_bias, HEED_ERR_VALUE);
    heed_read_optional(&operands, o.residual, sizeof(float), m, out, o.ld_residual, 1);
    heed_write(&operands, y, sizeof *y, m, out, ldy, 1);
    status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK)
        return status;

    struct heed_product product = {m, out, in, x, ldx, heed_weights_panels(weights), y, ldy, epilogue_of(&o, gated)};
    heed_product_run(c, &product);
    return HEED_OK;
}
