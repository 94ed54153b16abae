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
    if (count == s->task.rows) { /* as in layernorm.c */
        s->kernels->softmax(&s->task);
        return;
    }
    struct heed_softmax_task task = s->task;
    task.rows = count;
    task.first = first;
    task.src += first * task.ld_src;
    task.dst += first * task.ld_dst;
    s->kernels->softmax(&task);
}

/* Few rows are shared in parts of so many columns at least, blocks of HEED_REDUCTION_BLOCK in all, whose maxima and
 * sums lie on the stack. */
#define LEAST_LONG ((size_t)8 * HEED_REDUCTION_BLOCK)
#define MOST_BLOCKS 1024

/* Parts for each worker, so that who has finished may help others. */
#define PARTS 4

/* Rows in even parts of whole blocks. */
struct long_rows {
    const struct softmax *softmax;
    size_t parts, part_blocks, blocks;        /* of a row */
    float max[MOST_BLOCKS], sum[MOST_BLOCKS]; /* of each part, of each block; then of each row */
};

struct part {
    size_t row, from, n, block;
};

static struct part part_at(const struct long_rows *l, size_t index)
{
    size_t first = index % l->parts * l->part_blocks, cols = l->softmax->task.cols;
    struct part p = {index / l->parts, first * HEED_REDUCTION_BLOCK, l->part_blocks * HEED_REDUCTION_BLOCK, 0};
    p.n = cols - p.from < p.n ? cols - p.from : p.n;
    p.block = p.row * l->blocks + first;
    return p;
}

static void find_max(void *arg, size_t index, size_t worker)
{
    struct long_rows *l = arg;
    struct part p = part_at(l, index);
    (void)worker;
    l->max[index] = l->softmax->kernels->softmax_max(&l->softmax->task, p.row, p.from, p.n);
}

static void find_exps(void *arg, size_t index, size_t worker)
{
    struct long_rows *l = arg;
    struct part p = part_at(l, index);
    (void)worker;
    l->softmax->kernels->softmax_exps(&l->softmax->task, p.row, p.from, p.n, l->max[p.row], l->sum + p.block);
}

static void find_result(void *arg, size_t index, size_t worker)
{
    struct long_rows *l = arg;
    struct part p = part_at(l, index);
    (void)worker;
    l->softmax->kernels->softmax_end(&l->softmax->task, p.row, p.from, p.n, l->max[p.row], l->sum[p.row]);
}

/* A row's place is none that is still to be read: it comes no later than what belongs to the row. */
static void fold_maxima(struct long_rows *l, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        const float *max = l->max + r * l->parts;
        float largest = max[0];
        for (size_t p = 1; p < l->parts; p++)
            largest = max[p] > largest ? max[p] : largest;
        l->max[r] = largest;
    }
}

static void fold_sums(struct long_rows *l, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        float total = 0.0f;
        for (size_t b = 0; b < l->blocks; b++)
            total += l->sum[r * l->blocks + b];
        l->sum[r] = total;
    }
}

/* Whether rows are so few, and so long, that workers had better share each. */
static bool are_long(const struct heed_context *context, size_t rows, size_t cols)
{
    size_t blocks = heed_ceil_div(cols, HEED_REDUCTION_BLOCK);
    bool few = rows <= heed_workers(context) / 2 && cols >= LEAST_LONG && heed_times(rows, blocks) <= MOST_BLOCKS;
    return few && heed_is_shared(context, (double)rows * (double)cols * HEED_EXP_WORK);
}

/* Not inlined, so that others do not set up its frame. */
__attribute__((noinline)) static void run_long_rows(const struct heed_context *context, const struct softmax *s)
{
    size_t rows = s->task.rows, wanted = heed_ceil_div(PARTS * heed_workers(context), rows);
    struct long_rows l; /* not cleared: 8 KB, of which a row may need some floats */
    l.softmax = s;
    l.blocks = heed_ceil_div(s->task.cols, HEED_REDUCTION_BLOCK);
    l.part_blocks = heed_ceil_div(l.blocks, wanted);
    l.parts = heed_ceil_div(l.blocks, l.part_blocks);
    size_t tasks = rows * l.parts;
    double work = (double)rows * (double)s->task.cols * HEED_EXP_WORK;
    heed_run(context, tasks, work, find_max, &l);
    fold_maxima(&l, rows);
    heed_run(context, tasks, work, find_exps, &l);
    fold_sums(&l, rows);
    heed_run(context, tasks, work, find_result, &l);
}

/* The mask's strides, and where its heads and sequences begin. */
static void read_mask(struct heed_operands *operands, struct heed_softmax_task *t, const heed_softmax_options *o,
                      size_t rows)
{
    heed_require(operands, heed_mask_type_is_valid(o->mask.type), HEED_ERR_ENUM);
    if (operands->status != HEED_OK || o->mask.type == HEED_MASK_NONE || rows == 0)
        return;
    t->mask_kind = o->mask.type == HEED_MASK_BOOLEAN ? HEED_KIND_BOOLEAN : HEED_KIND_ADDITIVE;
    t->mask = o->mask.data;
    t->mask_rows = o->mask_rows ? o->mask_rows : rows;
    t->mask_heads = o->mask_heads ? o->mask_heads : 1;
    t->mask_batch = o->mask.batch_stride;
    t->mask_head = o->mask.head_stride;
    t->mask_row = o->mask.row_stride;
    size_t each = heed_times(t->mask_rows, t->mask_heads);
    heed_require(operands, rows % each == 0, HEED_ERR_SHAPE);
    heed_read_mask(operands, &o->mask, rows / each, t->mask_heads, t->mask_rows, t->cols);
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
                         .wide_core = c->wide_core,
                         .scale = o.scale,
                         .mask_kind = HEED_KIND_UNMASKED,
                         .logarithm = logarithm}};
    if (ld_dst == cols && s.task.write_ahead != HEED_PAST_CACHES)
        s.task.far = heed_far_ahead(c, rows, cols, c->l2);
    struct heed_operands operands;
    heed_operands_begin(&operands, HEED_OK);
    heed_read(&operands, src, sizeof *src, rows, cols, ld_src, 1);
    heed_require(&operands, o.scale > 0.0f && heed_is_finite((double)o.scale), HEED_ERR_VALUE);
    read_mask(&operands, &s.task, &o, rows);
    heed_write(&operands, dst, sizeof *dst, rows, cols, ld_dst, 1);
    status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || rows == 0 || cols == 0)
        return status;
    if (are_long(c, rows, cols))
        run_long_rows(c, &s);
    else
        heed_run_rows(c, rows, cols, HEED_EXP_WORK, softmax_rows, &s);
    return HEED_OK;
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
