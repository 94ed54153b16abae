/* SPDX-License-Identifier: MIT
 * heed_linear: a product with packed weights and its epilogue.
 */
#include "reading.h"

static inline bool is_plain(const heed_linear_options *o)
{
    return !o->bias && !o->residual && o->activation == HEED_ACTIVATION_NONE;
}

static struct heed_epilogue epilogue_of(const heed_linear_options *o, bool gated)
{
    return (struct heed_epilogue){.kind = gated         ? HEED_EPILOGUE_GATED
                                          : is_plain(o) ? HEED_EPILOGUE_STORE
                                                        : HEED_EPILOGUE_LINEAR,
                                  .bias = o->bias,
                                  .up_bias = o->up_bias,
                                  .activation = (enum heed_activation_kind)o->activation,
                                  .residual = o->residual,
                                  .ld_residual = o->ld_residual};
}

/* Not inlined, so that small products do not set up its frame. */
__attribute__((noinline)) static heed_status run_checked(const heed_context *context, size_t m, const float *x,
                                                         size_t ldx, const heed_weights *weights,
                                                         const heed_linear_options *o, float *y, size_t ldy)
{
    struct heed_context fallback;
    const struct heed_context *c;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    size_t n = heed_header_out(weights), k = heed_header_in(weights);
    bool gated = weights->gated != 0;
    struct heed_product product = {m, n, k, x, ldx, heed_header_panels(weights), y, ldy, epilogue_of(o, gated)};
    struct heed_operands operands;
    heed_operands_begin(&operands, status);
    heed_read(&operands, x, sizeof(float), m, k, ldx, 0);
    heed_read_weights(&operands, weights);
    heed_read_optional(&operands, o->bias, sizeof(float), m == 0 ? 0 : 1, n, n, 0);
    heed_require(&operands, heed_activation_check(o->activation) == HEED_OK, HEED_ERR_ENUM);
    heed_read_optional(&operands, o->up_bias, sizeof(float), m == 0 ? 0 : 1, n, n, 0);
    heed_require(&operands, gated || !o->up_bias, HEED_ERR_VALUE);
    heed_read_optional(&operands, o->residual, sizeof(float), m, n, o->ld_residual, 1);
    heed_write(&operands, y, sizeof(float), m, n, ldy, 1);
    status = heed_operands_check(&operands, NULL, 0);
    if (status == HEED_OK)
        heed_product_run(c, &product);
    return status;
}

_Static_assert(HEED_SMALL_SIDE <= HEED_SMALL_ELEMENTS, "operands are small");

/* Whether the product is small, has no operands but x, weights and y, and all of them are right. */
static inline bool is_small(size_t m, size_t n, size_t k, const float *x, size_t ldx, const heed_weights *weights,
                            float *y, size_t ldy)
{
    if (m == 0 || n == 0 || k == 0 || !heed_is_small_product(m, n, k) || weights->gated)
        return false;
    if (ldx < k || ldy < n || (ldx | ldy) >= HEED_SMALL_STRIDE)
        return false;
    const float *header = (const float *)(const void *)weights;
    if (!heed_is_small_operand(x) || !heed_is_small_operand(header) || !heed_is_small_operand(y))
        return false;
    size_t y_floats = (m - 1) * ldy + n, held = sizeof *weights / sizeof(float) + heed_pad(n) * k;
    return heed_are_apart(y, y_floats, header, held) && heed_are_apart(y, y_floats, x, (m - 1) * ldx + k);
}

/* Whether such a product has no other operands but a bias, which is right. */
static inline bool is_small_with(const heed_linear_options *o, size_t m, size_t n, const float *y, size_t ldy)
{
    bool apart = !o->bias || (heed_is_small_operand(o->bias) && heed_are_apart(y, (m - 1) * ldy + n, o->bias, n));
    return apart && !o->residual && !o->up_bias && (is_plain(o) || heed_activation_check(o->activation) == HEED_OK);
}

/* Options of this version are copied without a call. */
static inline heed_status read_options(heed_linear_options *o, const heed_linear_options *given)
{
    if (given->struct_size != sizeof *o)
        return heed_struct_read(o, sizeof *o, sizeof *o, given);
    *o = *given;
    return HEED_OK;
}

heed_status heed_linear(const heed_context *context, size_t m, const float *x, size_t ldx, const heed_weights *weights,
                        const heed_linear_options *options, float *y, size_t ldy)
{
    static const struct heed_epilogue store = {.kind = HEED_EPILOGUE_STORE};
    const struct heed_kernels *kernels;
    heed_linear_options o = HEED_LINEAR_OPTIONS_INIT;
    heed_status status = heed_kernels_of(context, &kernels);
    if (status == HEED_OK)
        status = heed_weights_check(weights);
    if (status == HEED_OK && options)
        status = read_options(&o, options);
    if (status != HEED_OK)
        return status;
    size_t n = heed_header_out(weights), k = heed_header_in(weights);
    if (!is_small(m, n, k, x, ldx, weights, y, ldy) || !is_small_with(&o, m, n, y, ldy))
        return run_checked(context, m, x, ldx, weights, &o, y, ldy);
    struct heed_panels panels = heed_header_panels(weights);
    panels.in_l2 = true;
    panels.reading = heed_reading_of_small(context, &panels.distance);
    if (is_plain(&o)) {
        kernels->gemm(m, n, k, x, ldx, &panels, y, ldy, &store);
        return HEED_OK;
    }
    const struct heed_epilogue epilogue = epilogue_of(&o, false);
    kernels->gemm(m, n, k, x, ldx, &panels, y, ldy, &epilogue);
    return HEED_OK;
}
