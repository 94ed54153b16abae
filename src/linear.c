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

static heed_status run_checked(const heed_context *context, struct heed_product *product, const heed_weights *weights,
                               const heed_linear_options *o)
{
    struct heed_context fallback;
    const struct heed_context *c;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    size_t m = product->m, n = product->n;
    bool gated = product->epilogue.kind == HEED_EPILOGUE_GATED;
    struct heed_operands operands;
    heed_operands_begin(&operands, status);
    heed_read(&operands, product->a, sizeof(float), m, product->k, product->lda, 0);
    heed_read_weights(&operands, weights);
    heed_read_optional(&operands, o->bias, sizeof(float), m == 0 ? 0 : 1, n, n, 0);
    heed_require(&operands, heed_activation_check(o->activation) == HEED_OK, HEED_ERR_ENUM);
    heed_read_optional(&operands, o->up_bias, sizeof(float), m == 0 ? 0 : 1, n, n, 0);
    heed_require(&operands, gated || !o->up_bias, HEED_ERR_VALUE);
    heed_read_optional(&operands, o->residual, sizeof(float), m, n, o->ld_residual, 1);
    heed_write(&operands, product->c, sizeof(float), m, n, product->ldc, 1);
    status = heed_operands_check(&operands, NULL, 0);
    if (status == HEED_OK)
        heed_product_run(c, product);
    return status;
}

_Static_assert(HEED_SMALL_SIDE <= HEED_SMALL_ELEMENTS, "operands are small");

/* Whether the product is small, has no operands but these, and all of them are right. */
static bool is_small(const struct heed_product *p, const heed_weights *weights, const heed_linear_options *o)
{
    size_t m = p->m, n = p->n, k = p->k;
    if (m == 0 || n == 0 || k == 0 || !heed_is_small_product(m, n, k) || p->epilogue.kind == HEED_EPILOGUE_GATED)
        return false;
    if (p->lda < k || p->ldc < n || (p->lda | p->ldc) >= HEED_SMALL_STRIDE || o->residual || o->up_bias)
        return false;
    const float *header = (const float *)(const void *)weights;
    if (!heed_is_small_operand(p->a) || !heed_is_small_operand(header) || !heed_is_small_operand(p->c))
        return false;
    size_t c_floats = (m - 1) * p->ldc + n, held = (size_t)(p->b.data - header) + heed_pad(n) * k;
    if (o->bias && !(heed_is_small_operand(o->bias) && heed_are_apart(p->c, c_floats, o->bias, n)))
        return false;
    return heed_activation_check(o->activation) == HEED_OK && heed_are_apart(p->c, c_floats, header, held) &&
           heed_are_apart(p->c, c_floats, p->a, (m - 1) * p->lda + k);
}

heed_status heed_linear(const heed_context *context, size_t m, const float *x, size_t ldx, const heed_weights *weights,
                        const heed_linear_options *options, float *y, size_t ldy)
{
    const struct heed_kernels *kernels;
    heed_linear_options o = HEED_LINEAR_OPTIONS_INIT;
    heed_status status = heed_kernels_of(context, &kernels);
    if (status == HEED_OK)
        status = heed_weights_check(weights);
    if (status == HEED_OK && options)
        status = heed_struct_read(&o, sizeof o, sizeof o, options);
    if (status != HEED_OK)
        return status;
    size_t n = heed_weights_out(weights), k = heed_weights_in(weights);
    struct heed_epilogue epilogue = epilogue_of(&o, heed_weights_gated(weights));
    struct heed_product product = {m, n, k, x, ldx, heed_weights_panels(weights), y, ldy, epilogue};
    if (!is_small(&product, weights, &o))
        return run_checked(context, &product, weights, &o);
    product.b.near = true;
    kernels->gemm(m, n, k, x, ldx, &product.b, y, ldy, &product.epilogue);
    return HEED_OK;
}
