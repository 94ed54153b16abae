/* SPDX-License-Identifier: MIT
 * heed_activate and heed_activate_gated.
 */
#include "rows.h"

_Static_assert((int)HEED_ACTIVATION_NONE == (int)HEED_KIND_NONE && (int)HEED_ACTIVATION_RELU == (int)HEED_KIND_RELU &&
                   (int)HEED_ACTIVATION_GELU_ERF == (int)HEED_KIND_GELU_ERF &&
                   (int)HEED_ACTIVATION_GELU_TANH == (int)HEED_KIND_GELU_TANH &&
                   (int)HEED_ACTIVATION_SILU == (int)HEED_KIND_SILU,
               "kernels.h repeats heed_activation");

struct activate {
    const struct heed_kernels *kernels;
    enum heed_activation_kind activation;
    size_t cols, ld_src, ld_dst, write_ahead;
    bool wide;
    const float *src;
    float *dst;
};

heed_status heed_activation_check(heed_activation activation)
{
    switch (activation) {
    case HEED_ACTIVATION_NONE:
    case HEED_ACTIVATION_RELU:
    case HEED_ACTIVATION_GELU_ERF:
    case HEED_ACTIVATION_GELU_TANH:
    case HEED_ACTIVATION_SILU:
        return HEED_OK;
    }
    return HEED_ERR_ENUM;
}

static double work_of(heed_activation activation)
{
    return activation > HEED_ACTIVATION_RELU ? HEED_EXP_WORK : HEED_MOVE_WORK;
}

static void activate_rows(const void *arg, size_t first, size_t count)
{
    const struct activate *a = arg;
    a->kernels->activate(a->activation, count, a->cols, a->src + first * a->ld_src, a->ld_src,
                         a->dst + first * a->ld_dst, a->ld_dst, a->write_ahead, a->wide);
}

heed_status heed_activate(const heed_context *context, heed_activation activation, size_t rows, size_t cols,
                          const float *src, size_t ld_src, float *dst, size_t ld_dst)
{
    struct heed_context fallback;
    const struct heed_context *c;
    struct heed_operands operands;
    heed_operands_begin(&operands, heed_context_resolve(context, &fallback, &c));
    heed_require(&operands, heed_activation_check(activation) == HEED_OK, HEED_ERR_ENUM);
    heed_read(&operands, src, sizeof *src, rows, cols, ld_src, 1);
    heed_write(&operands, dst, sizeof *dst, rows, cols, ld_dst, 1);
    heed_status status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || rows == 0 || cols == 0)
        return status;
    /* GELU and SiLU take as long as memory does, and wait for stores that go past the caches. */
    bool in_place = src == dst, waits = activation > HEED_ACTIVATION_RELU;
    struct activate a = {.kernels = c->kernels,
                         .activation = (enum heed_activation_kind)activation,
                         .cols = cols,
                         .ld_src = ld_src,
                         .ld_dst = ld_dst,
                         .write_ahead = waits ? heed_write_ahead(c) : heed_write_far(c, rows, cols, in_place),
                         .wide = c->wide_core,
                         .src = src,
                         .dst = dst};
    heed_run_rows(c, rows, cols, work_of(activation), activate_rows, &a);
    return HEED_OK;
}

struct gated {
    const struct heed_kernels *kernels;
    enum heed_activation_kind activation;
    size_t cols, ld_gate, ld_up, ld_dst, write_ahead;
    bool wide;
    const float *gate, *up;
    float *dst;
};

static void gated_rows(const void *arg, size_t first, size_t count)
{
    const struct gated *g = arg;
    g->kernels->activate_gated(g->activation, count, g->cols, g->gate + first * g->ld_gate, g->ld_gate,
                               g->up + first * g->ld_up, g->ld_up, g->dst + first * g->ld_dst, g->ld_dst,
                               g->write_ahead, g->wide);
}

heed_status heed_activate_gated(const heed_context *context, heed_activation activation, size_t rows, size_t cols,
                                const float *gate, size_t ld_gate, const float *up, size_t ld_up, float *dst,
                                size_t ld_dst)
{
    struct heed_context fallback;
    const struct heed_context *c;
    struct heed_operands operands;
    heed_operands_begin(&operands, heed_context_resolve(context, &fallback, &c));
    heed_require(&operands, heed_activation_check(activation) == HEED_OK, HEED_ERR_ENUM);
    heed_read(&operands, gate, sizeof *gate, rows, cols, ld_gate, 1);
    heed_read(&operands, up, sizeof *up, rows, cols, ld_up, 1);
    heed_write(&operands, dst, sizeof *dst, rows, cols, ld_dst, 1);
    heed_status status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || rows == 0 || cols == 0)
        return status;
    struct gated g = {.kernels = c->kernels,
                      .activation = (enum heed_activation_kind)activation,
                      .cols = cols,
                      .ld_gate = ld_gate,
                      .ld_up = ld_up,
                      .ld_dst = ld_dst,
                      .write_ahead = heed_write_far(c, rows, cols, gate == dst || up == dst),
                      .wide = c->wide_core,
                      .gate = gate,
                      .up = up,
                      .dst = dst};
    heed_run_rows(c, rows, cols, work_of(activation), gated_rows, &g);
    return HEED_OK;
}
