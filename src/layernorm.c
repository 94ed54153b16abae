/* SPDX-License-Identifier: MIT
 * heed_layernorm and heed_l2_normalize.
 */
#include "rows.h"

#define GROUP_Y 1u
#define GROUP_SUM 2u

struct layernorm {
    const struct heed_kernels *kernels;
    struct heed_layernorm_task task;
};

static void layernorm_rows(const void *arg, size_t first, size_t count)
{
    const struct layernorm *l = arg;
    struct heed_layernorm_task task = l->task;
    task.rows = count;
    task.x += first * task.ldx;
    task.y += first * task.ldy;
    if (task.residual)
        task.residual += first * task.ld_residual;
    if (task.sum)
        task.sum += first * task.ld_sum;
    l->kernels->layernorm(&task);
}

heed_status heed_layernorm(const heed_context *context, size_t rows, size_t cols, const float *x, size_t ldx,
                           const heed_layernorm_options *options, float *y, size_t ldy)
{
    struct heed_context fallback;
    const struct heed_context *c;
    const heed_layernorm_options defaults = HEED_LAYERNORM_OPTIONS_INIT;
    heed_layernorm_options o = defaults;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    if (status == HEED_OK && options)
        status = heed_struct_read(&o, sizeof o, sizeof o, options);
    if (status != HEED_OK)
        return status;

    struct heed_operands operands = {.status = HEED_OK};
    heed_read(&operands, x, sizeof *x, rows, cols, ldx, GROUP_Y | GROUP_SUM);
    heed_read_optional(&operands, o.scale, sizeof(float), rows ? 1 : 0, cols, cols, 0);
    heed_read_optional(&operands, o.shift, sizeof(float), rows ? 1 : 0, cols, cols, 0);
    heed_require(&operands, o.eps >= 0.0f && o.eps <= 0x1.fffffep127f, HEED_ERR_VALUE);
    heed_read_optional(&operands, o.residual, sizeof(float), rows, cols, o.ld_residual, GROUP_Y | GROUP_SUM);
    if (o.sum) {
        heed_require(&operands, o.residual != NULL, HEED_ERR_NULL);
        heed_write(&operands, o.sum, sizeof(float), rows, cols, o.ld_sum, GROUP_SUM);
    }
    heed_write(&operands, y, sizeof *y, rows, cols, ldy, GROUP_Y);
    status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || rows == 0 || cols == 0)
        return status;

    struct layernorm l = {
        c->kernels, {rows, cols, x, ldx, o.residual, o.ld_residual, o.sum, o.ld_sum, o.scale, o.shift, o.eps, y, ldy}};
    heed_run_rows(c, rows, cols, layernorm_rows, &l);
    return HEED_OK;
}

struct l2_normalize {
    const struct heed_kernels *kernels;
    size_t cols, ld_src, ld_dst;
    float eps;
    const float *src;
    float *dst;
};

static void l2_rows(const void *arg, size_t first, size_t count)
{
    const struct l2_normalize *l = arg;
    l->kernels->l2_normalize(count, l->cols, l->eps, l->src + first * l->ld_src, l->ld_src, l->dst + first * l->ld_dst,
                             l->ld_dst);
}

heed_status heed_l2_normalize(const heed_context *context, size_t rows, size_t cols, float eps, const float *src,
                              size_t ld_src, float *dst, size_t ld_dst)
{
    struct heed_context fallback;
    const struct heed_context *c;
    struct heed_operands operands = {.status = heed_context_resolve(context, &fallback, &c)};
    heed_require(&operands, eps >= 0.0f && eps <= 0x1.fffffep127f, HEED_ERR_VALUE);
    heed_read(&operands, src, sizeof *src, rows, cols, ld_src, 1);
    heed_write(&operands, dst, sizeof *dst, rows, cols, ld_dst, 1);
    heed_status status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || rows == 0 || cols == 0)
        return status;
    struct l2_normalize l = {c->kernels, cols, ld_src, ld_dst, eps, src, dst};
    heed_run_rows(c, rows, cols, l2_rows, &l);
    return HEED_OK;
}
