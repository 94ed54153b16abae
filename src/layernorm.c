/* SPDX-License-Identifier: MIT
 * heed_layernorm, heed_rmsnorm and heed_l2_normalize.
 */
#include "rows.h"

#define GROUP_Y 1u
#define GROUP_SUM 2u

/* Times the second cache from which on rows are prefetched: a tenth is lost where nobody else has used the caches since
 * the last call, up to half gained where somebody has, which fewer rows outlive. */
#define FAR_PER_L2 3

/* Columns of a page of 4096 bytes. */
#define PAGE_COLS 1024

struct norm {
    void (*kernel)(const struct heed_norm_task *task);
    struct heed_norm_task task;
};

struct heed_norm_task heed_norm_rows(const struct heed_norm_task *all, size_t first, size_t count)
{
    struct heed_norm_task task = *all;
    task.rows = count;
    task.x += first * task.ldx;
    task.y += first * task.ldy;
    if (task.residual)
        task.residual += first * task.ld_residual;
    if (task.sum)
        task.sum += first * task.ld_sum;
    if (task.mean)
        task.mean += first;
    if (task.inverse)
        task.inverse += first;
    return task;
}

static void run_block(const void *arg, size_t first, size_t count)
{
    const struct norm *n = arg;
    if (count == n->task.rows) { /* a copy waits for what has just been stored in it, some 20 ns */
        n->kernel(&n->task);
        return;
    }
    struct heed_norm_task task = heed_norm_rows(&n->task, first, count);
    n->kernel(&task);
}

/* What both norms demand of their operands. */
static heed_status check_norm(struct heed_operands *operands, const struct heed_norm_task *t)
{
    size_t rows = t->rows, cols = t->cols;
    heed_read(operands, t->x, sizeof(float), rows, cols, t->ldx, GROUP_Y | GROUP_SUM);
    heed_read_optional(operands, t->scale, sizeof(float), rows ? 1 : 0, cols, cols, 0);
    heed_read_optional(operands, t->shift, sizeof(float), rows ? 1 : 0, cols, cols, 0);
    heed_require(operands, heed_eps_is_valid(t->eps), HEED_ERR_VALUE);
    heed_read_optional(operands, t->residual, sizeof(float), rows, cols, t->ld_residual, GROUP_Y | GROUP_SUM);
    if (t->sum) {
        heed_require(operands, t->residual != NULL, HEED_ERR_NULL);
        heed_write(operands, t->sum, sizeof(float), rows, cols, t->ld_sum, GROUP_SUM);
    }
    heed_write_optional(operands, t->mean, sizeof(float), 1, cols ? rows : 0, cols ? rows : 0, 0);
    heed_write_optional(operands, t->inverse, sizeof(float), 1, cols ? rows : 0, cols ? rows : 0, 0);
    heed_write(operands, t->y, sizeof(float), rows, cols, t->ldy, GROUP_Y);
    return heed_operands_check(operands, NULL, 0);
}

/* The CPU prefetches rows of whole pages as they are, and rows that go one by one. */
static bool prefetches_far(const struct heed_norm_task *t)
{
    return t->ldx == t->cols && t->ldy == t->cols && !t->residual && t->cols % PAGE_COLS != 0 && !t->in_order;
}

static void run_norm(const struct heed_context *context, struct norm *n)
{
    struct heed_norm_task *t = &n->task;
    size_t rows = t->rows, cols = t->cols;
    bool in_place = t->x == t->y || (t->residual && !t->sum);
    t->write_ahead = heed_write_far(context, rows, cols, in_place);
    t->in_order = heed_rows_in_order(context, rows, cols);
    t->wide_core = context->wide_core;
    if (prefetches_far(t) && !context->wide_core)
        t->far = heed_far_ahead(context, rows, cols, heed_times(FAR_PER_L2, context->l2));
    if (rows > 0 && cols > 0)
        heed_run_rows(context, rows, cols, HEED_NORM_WORK, run_block, n);
}

static heed_status check_and_run(const struct heed_context *context, struct norm *n)
{
    struct heed_operands operands;
    heed_operands_begin(&operands, HEED_OK);
    heed_status status = check_norm(&operands, &n->task);
    if (status == HEED_OK)
        run_norm(context, n);
    return status;
}

struct heed_norm_task heed_norm_task_of(size_t rows, size_t cols, const float *x, size_t ldx,
                                        const heed_layernorm_options *o, float *y, size_t ldy)
{
    return (struct heed_norm_task){.rows = rows,
                                   .cols = cols,
                                   .x = x,
                                   .ldx = ldx,
                                   .residual = o->residual,
                                   .ld_residual = o->ld_residual,
                                   .sum = o->sum,
                                   .ld_sum = o->ld_sum,
                                   .scale = o->scale,
                                   .shift = o->shift,
                                   .eps = o->eps,
                                   .y = y,
                                   .ldy = ldy,
                                   .mean = o->mean,
                                   .inverse = o->inverse_deviation};
}

heed_status heed_layernorm_options_read(heed_layernorm_options *o, const heed_layernorm_options *given)
{
    const heed_layernorm_options defaults = HEED_LAYERNORM_OPTIONS_INIT;
    *o = defaults;
    return given ? heed_struct_read(o, sizeof *o, sizeof *o, given) : HEED_OK;
}

heed_status heed_layernorm(const heed_context *context, size_t rows, size_t cols, const float *x, size_t ldx,
                           const heed_layernorm_options *options, float *y, size_t ldy)
{
    struct heed_context fallback;
    const struct heed_context *c;
    heed_layernorm_options o;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    if (status == HEED_OK)
        status = heed_layernorm_options_read(&o, options);
    if (status != HEED_OK)
        return status;
    struct norm n = {c->kernels->layernorm, heed_norm_task_of(rows, cols, x, ldx, &o, y, ldy)};
    return check_and_run(c, &n);
}

heed_status heed_rmsnorm(const heed_context *context, size_t rows, size_t cols, const float *x, size_t ldx,
                         const heed_rmsnorm_options *options, float *y, size_t ldy)
{
    struct heed_context fallback;
    const struct heed_context *c;
    const heed_rmsnorm_options defaults = HEED_RMSNORM_OPTIONS_INIT;
    heed_rmsnorm_options o = defaults;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    if (status == HEED_OK && options)
        status = heed_struct_read(&o, sizeof o, sizeof o, options);
    if (status != HEED_OK)
        return status;
    const heed_layernorm_options same = {.scale = o.scale,
                                         .eps = o.eps,
                                         .residual = o.residual,
                                         .ld_residual = o.ld_residual,
                                         .sum = o.sum,
                                         .ld_sum = o.ld_sum,
                                         .inverse_deviation = o.inverse_rms};
    struct norm n = {c->kernels->rmsnorm, heed_norm_task_of(rows, cols, x, ldx, &same, y, ldy)};
    return check_and_run(c, &n);
}

heed_status heed_l2_normalize(const heed_context *context, size_t rows, size_t cols, float eps, const float *src,
                              size_t ld_src, float *dst, size_t ld_dst)
{
    struct heed_context fallback;
    const struct heed_context *c;
    struct heed_operands operands;
    heed_operands_begin(&operands, heed_context_resolve(context, &fallback, &c));
    heed_require(&operands, heed_eps_is_valid(eps), HEED_ERR_VALUE);
    heed_read(&operands, src, sizeof *src, rows, cols, ld_src, 1);
    heed_write(&operands, dst, sizeof *dst, rows, cols, ld_dst, 1);
    heed_status status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK)
        return status;
    /* 1 / eps is to be finite; the root of a sum of squares is above 2^-75, or 0. */
    const float least = eps > 0.0f && eps < 0x1p-126f ? 0x1p-126f : eps;
    struct norm n = {c->kernels->l2_normalize,
                     {.rows = rows, .cols = cols, .x = src, .ldx = ld_src, .eps = least, .y = dst, .ldy = ld_dst}};
    run_norm(c, &n);
    return HEED_OK;
}
