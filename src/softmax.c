/* SPDX-License-Identifier: MIT
 * heed_softmax, heed_masked_softmax and heed_log_softmax.
 */
#include "rows.h"

struct softmax {
    const struct heed_kernels *kernels;
    struct heed_softmax_task task;
};

static void softmax_rows(const void *arg, size_t first, size_t count)
{
    const struct softmax *s = arg;
    struct heed_softmax_task task = s->task;
    task.rows = count;
    task.first = first;
    task.src += first * task.ld_src;
    task.dst += first * task.ld_dst;
    s->kernels->softmax(&task);
}

/* The mask's strides, and where its heads and sequences begin. */
static void read_mask(struct heed_operands *operands, struct heed_softmax_task *t, const heed_softmax_options *o,
                      size_t rows)
{
    bool boolean = o->mask.type == HEED_MASK_BOOLEAN;
    heed_require(operands, boolean || o->mask.type == HEED_MASK_NONE || o->mask.type == HEED_MASK_ADDITIVE,
                 HEED_ERR_ENUM);
    if (operands->status != HEED_OK || o->mask.type == HEED_MASK_NONE || rows == 0)
        return;
    t->mask_kind = boolean ? HEED_KIND_BOOLEAN : HEED_KIND_ADDITIVE;
    t->mask = o->mask.data;
    t->mask_rows = o->mask_rows ? o->mask_rows : rows;
    t->mask_heads = o->mask_heads ? o->mask_heads : 1;
    t->mask_batch = o->mask.batch_stride;
    t->mask_head = o->mask.head_stride;
    t->mask_row = o->mask.row_stride;
    size_t each = heed_times(t->mask_rows, t->mask_heads);
    heed_require(operands, rows % each == 0, HEED_ERR_SHAPE);
    const struct heed_dims dims = {
        {rows / each, t->mask_heads, t->mask_rows}, {t->mask_batch, t->mask_head, t->mask_row}, t->cols};
    heed_read_tensor(operands, t->mask, boolean ? 1 : sizeof(float), &dims);
}

static heed_status run_softmax(const heed_context *context, bool logarithm, size_t rows, size_t cols, const float *src,
                               size_t ld_src, const heed_softmax_options *options, float *dst, size_t ld_dst)
{
    struct heed_context fallback;
    const struct heed_context *c;
    const heed_softmax_options defaults = HEED_SOFTMAX_OPTIONS_INIT;
    heed_softmax_options o = defaults;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    if (status == HEED_OK && options)
        status = heed_struct_read(&o, sizeof o, sizeof o, options);
    if (status != HEED_OK)
        return status;
    struct softmax s = {c->kernels,
                        {.rows = rows,
                         .cols = cols,
                         .src = src,
                         .ld_src = ld_src,
                         .dst = dst,
                         .ld_dst = ld_dst,
                         .write_ahead = heed_write_far(c, rows, cols, src == dst),
                         .in_order = heed_rows_in_order(c, rows, cols),
                         .scale = o.scale,
                         .mask_kind = HEED_KIND_UNMASKED,
                         .logarithm = logarithm}};
    if (ld_dst == cols && s.task.write_ahead != HEED_PAST_CACHES)
        s.task.far = heed_far_ahead(c, rows, cols, c->l2);
    struct heed_operands operands;
    heed_operands_begin(&operands, HEED_OK);
    heed_read(&operands, src, sizeof *src, rows, cols, ld_src, 1);
    heed_require(&operands, o.scale > 0.0f && o.scale <= 0x1.fffffep127f, HEED_ERR_VALUE);
    read_mask(&operands, &s.task, &o, rows);
    heed_write(&operands, dst, sizeof *dst, rows, cols, ld_dst, 1);
    status = heed_operands_check(&operands, NULL, 0);
    if (status == HEED_OK && rows > 0 && cols > 0)
        heed_run_rows(c, rows, cols, HEED_EXP_WORK, softmax_rows, &s);
    return status;
}

heed_status heed_softmax(const heed_context *context, size_t rows, size_t cols, const float *src, size_t ld_src,
                         float *dst, size_t ld_dst)
{
    return run_softmax(context, false, rows, cols, src, ld_src, NULL, dst, ld_dst);
}

heed_status heed_masked_softmax(const heed_context *context, size_t rows, size_t cols, const float *src, size_t ld_src,
                                const heed_softmax_options *options, float *dst, size_t ld_dst)
{
    return run_softmax(context, false, rows, cols, src, ld_src, options, dst, ld_dst);
}

heed_status heed_log_softmax(const heed_context *context, size_t rows, size_t cols, const float *src, size_t ld_src,
                             const heed_softmax_options *options, float *dst, size_t ld_dst)
{
    return run_softmax(context, true, rows, cols, src, ld_src, options, dst, ld_dst);
}
