/* SPDX-License-Identifier: MIT
 * heed_attention: packs the keys of each head once, then shares runs of query rows over the workers.
 */
#include "internal.h"

/* Query rows of a task: a multiple of every table's tile height (3, 4, 6 and 8). */
#define TASK_ROWS 48

_Static_assert((int)HEED_MASK_NONE == (int)HEED_KIND_UNMASKED && (int)HEED_MASK_ADDITIVE == (int)HEED_KIND_ADDITIVE &&
                   (int)HEED_MASK_BOOLEAN == (int)HEED_KIND_BOOLEAN,
               "kernels.h repeats heed_mask_type");

/* Everything about a call but its memory. */
struct attention {
    const struct heed_context *context;
    heed_attention_args args;
    struct heed_sequences queries, keys;
    size_t query_rows, key_rows; /* of all sequences */
    bool pack_values;            /* rows of v that are no whole panels are packed too */
    float scale_log2e;
};

/* The same with its scratch. */
struct attention_run {
    struct attention a;
    size_t *first_key;  /* [batch + 1]: packed keys before each sequence */
    size_t *first_tile; /* [batch + 1]: query tasks of one head before each sequence */
    float *packed_k, *packed_v;
    float *worker_scratch;
    size_t worker_floats;
};

/* 1 / sqrt(head_dim) and log2(e) rounded once, in double; the division and root are exact to an ulp
 * everywhere. */
static float scale_times_log2e(const heed_attention_args *args)
{
    const double log2e = 0x1.71547652b82fep0;
    if (args->scale == HEED_SCALE_VALUE)
        return (float)((double)args->scale_value * log2e);
    return (float)(log2e / heed_root((double)(args->head_dim ? args->head_dim : 1)));
}

/* The keys of sequence b that any of its queries may see. */
static size_t keys_in_reach(const struct attention *a, size_t b)
{
    size_t keys = heed_sequence_length(&a->keys, b), queries = heed_sequence_length(&a->queries, b);
    if (a->args.kv_lengths)
        keys = a->args.kv_lengths[b];
    if (a->args.causal == HEED_CAUSAL_TOP_LEFT && queries < keys)
        keys = queries;
    return keys;
}

static heed_status check_shape(const struct attention *a)
{
    const heed_attention_args *args = &a->args;
    if (args->causal != HEED_CAUSAL_NONE && args->causal != HEED_CAUSAL_TOP_LEFT &&
        args->causal != HEED_CAUSAL_BOTTOM_RIGHT)
        return HEED_ERR_ENUM;
    if (args->mask.type != HEED_MASK_NONE && args->mask.type != HEED_MASK_ADDITIVE &&
        args->mask.type != HEED_MASK_BOOLEAN)
        return HEED_ERR_ENUM;
    if (args->scale != HEED_SCALE_RSQRT_HEAD_DIM && args->scale != HEED_SCALE_VALUE)
        return HEED_ERR_ENUM;
    if (args->n_heads > 0 && (args->n_kv_heads == 0 || args->n_heads % args->n_kv_heads != 0))
        return HEED_ERR_SHAPE;
    if (args->seq_q > PTRDIFF_MAX || args->seq_kv > PTRDIFF_MAX)
        return HEED_ERR_OVERFLOW;
    return HEED_OK;
}

static heed_status check_lengths(const struct attention *a)
{
    if (!a->args.kv_lengths)
        return HEED_OK;
    if ((uintptr_t)a->args.kv_lengths % sizeof(size_t) != 0)
        return HEED_ERR_ALIGNMENT;
    for (size_t b = 0; b < a->args.batch; b++)
        if (a->args.kv_lengths[b] > heed_sequence_length(&a->keys, b))
            return HEED_ERR_SHAPE;
    return HEED_OK;
}

static heed_status describe(struct attention *a, const heed_context *context, struct heed_context *fallback,
                            const heed_attention_args *args)
{
    const heed_attention_args defaults = HEED_ATTENTION_ARGS_INIT;
    *a = (struct attention){.args = defaults};
    heed_status status = heed_context_resolve(context, fallback, &a->context);
    if (status == HEED_OK && !args)
        status = HEED_ERR_NULL;
    if (status == HEED_OK)
        status = heed_struct_read(&a->args, sizeof a->args, sizeof a->args, args);
    if (status == HEED_OK)
        status = check_shape(a);
    if (status != HEED_OK)
        return status;
    a->queries = (struct heed_sequences){a->args.batch, a->args.seq_q, a->args.q_offsets};
    a->keys = (struct heed_sequences){a->args.batch, a->args.seq_kv, a->args.kv_offsets};
    status = heed_sequences_check(&a->queries, true, &a->query_rows);
    if (status == HEED_OK)
        status = heed_sequences_check(&a->keys, true, &a->key_rows);
    if (status == HEED_OK)
        status = check_lengths(a);
    a->pack_values = a->args.value_dim % HEED_PANEL != 0;
    a->scale_log2e = scale_times_log2e(&a->args);
    if (status == HEED_OK && !(a->scale_log2e >= -0x1.fffffep127f && a->scale_log2e <= 0x1.fffffep127f))
        status = HEED_ERR_VALUE;
    return status;
}

static bool is_empty(const struct attention *a)
{
    return a->args.batch == 0 || a->args.n_heads == 0 || a->query_rows == 0 ||
           (a->args.value_dim == 0 && (!a->args.map.data || a->args.seq_kv == 0));
}

/* Sequences that all reach the same keys need not be walked: a batch may be any number. */
static bool reach_is_uniform(const struct attention *a)
{
    return !a->args.kv_offsets && !a->args.kv_lengths && !a->args.q_offsets;
}

/* Packed keys of all sequences, each rounded up to a panel. */
static size_t padded_keys(const struct attention *a)
{
    if (reach_is_uniform(a))
        return heed_times(a->args.batch, heed_pad(keys_in_reach(a, 0)));
    size_t total = 0;
    for (size_t b = 0; b < a->args.batch; b++)
        total = heed_plus(total, heed_pad(keys_in_reach(a, b)));
    return total;
}

static size_t longest_keys(const struct attention *a)
{
    if (reach_is_uniform(a))
        return a->args.batch ? keys_in_reach(a, 0) : 0;
    size_t longest = 0;
    for (size_t b = 0; b < a->args.batch; b++)
        longest = keys_in_reach(a, b) > longest ? keys_in_reach(a, b) : longest;
    return longest;
}

static size_t packed_floats(const struct attention *a, size_t dim)
{
    return heed_times(heed_times(padded_keys(a), a->args.n_kv_heads), dim);
}

static size_t packed_value_floats(const struct attention *a)
{
    return a->pack_values ? packed_floats(a, heed_pad(a->args.value_dim)) : 0;
}

static size_t worker_floats(const struct attention *a)
{
    size_t keys = longest_keys(a);
    if (a->args.value_dim > SIZE_MAX / 256 || keys > SIZE_MAX / 256) /* the sum of a few would wrap */
        return SIZE_MAX;
    return heed_pad(heed_attention_scratch(a->args.value_dim, keys, a->args.map.data != NULL));
}

static size_t scratch_parts(const struct attention *a)
{
    if (is_empty(a))
        return 0;
    size_t prefix = heed_scratch_part(heed_plus(a->args.batch, 1), sizeof(size_t));
    size_t parts = heed_plus(prefix, prefix);
    parts = heed_plus(parts, heed_scratch_part(packed_floats(a, a->args.head_dim), sizeof(float)));
    parts = heed_plus(parts, heed_scratch_part(packed_value_floats(a), sizeof(float)));
    return heed_plus(parts, heed_scratch_part(heed_times(worker_floats(a), heed_workers(a->context)), sizeof(float)));
}

heed_status heed_attention_workspace(const heed_context *context, const heed_attention_args *args, size_t *bytes)
{
    struct heed_context fallback;
    struct attention a;
    heed_status status = describe(&a, context, &fallback, args);
    return status == HEED_OK ? heed_workspace_answer(scratch_parts(&a), bytes) : status;
}

/* Where the rows of head h of sequence b begin. */
static size_t head_start(const heed_heads *heads, const struct heed_sequences *s, size_t b, size_t h)
{
    size_t batch = s->offsets ? s->offsets[b] * heads->row_stride : b * heads->batch_stride;
    return batch + h * heads->head_stride;
}

/* A ragged tensor is one sequence of all rows. */
static struct heed_dims dims_of(const struct attention *a, const struct heed_sequences *s, size_t rows, size_t heads,
                                size_t batch_stride, size_t head_stride, size_t row_stride, size_t cols)
{
    if (s->offsets)
        return (struct heed_dims){{1, heads, rows}, {0, head_stride, row_stride}, cols};
    return (struct heed_dims){{a->args.batch, heads, s->length}, {batch_stride, head_stride, row_stride}, cols};
}

static void read_heads(struct heed_operands *operands, const struct attention *a, const heed_heads *heads,
                       const struct heed_sequences *s, size_t rows, size_t n_heads, size_t dim)
{
    struct heed_dims dims =
        dims_of(a, s, rows, n_heads, heads->batch_stride, heads->head_stride, heads->row_stride, dim);
    heed_read_tensor(operands, heads->data, sizeof(float), &dims);
}

static void check_operands(struct heed_operands *operands, const struct attention *a)
{
    const heed_attention_args *args = &a->args;
    heed_read_offsets(operands, &a->queries);
    heed_read_offsets(operands, &a->keys);
    heed_read_optional(operands, args->kv_lengths, sizeof(size_t), 1, args->batch, args->batch, 0);
    read_heads(operands, a, &args->q, &a->queries, a->query_rows, args->n_heads, args->head_dim);
    if (longest_keys(a) > 0) {
        read_heads(operands, a, &args->k, &a->keys, a->key_rows, args->n_kv_heads, args->head_dim);
        read_heads(operands, a, &args->v, &a->keys, a->key_rows, args->n_kv_heads, args->value_dim);
        struct heed_dims mask = {{args->batch, args->n_heads, args->seq_q},
                                 {args->mask.batch_stride, args->mask.head_stride, args->mask.row_stride},
                                 args->seq_kv};
        if (args->mask.type != HEED_MASK_NONE)
            heed_read_tensor(operands, args->mask.data, args->mask.type == HEED_MASK_ADDITIVE ? sizeof(float) : 1,
                             &mask);
    }
    struct heed_dims out = dims_of(a, &a->queries, a->query_rows, args->n_heads, args->out.batch_stride,
                                   args->out.head_stride, args->out.row_stride, args->value_dim);
    heed_write_tensor(operands, args->out.data, sizeof(float), &out);
    struct heed_dims map = {{args->batch, args->n_heads, args->seq_q},
                            {args->map.batch_stride, args->map.head_stride, args->map.row_stride},
                            args->seq_kv};
    if (args->map.data)
        heed_write_tensor(operands, args->map.data, sizeof(float), &map);
}

static void lay_out(struct attention_run *run)
{
    run->first_key[0] = run->first_tile[0] = 0;
    for (size_t b = 0; b < run->a.args.batch; b++) {
        run->first_key[b + 1] = run->first_key[b] + heed_pad(keys_in_reach(&run->a, b));
        run->first_tile[b + 1] =
            run->first_tile[b] + heed_ceil_div(heed_sequence_length(&run->a.queries, b), TASK_ROWS);
    }
}

/* The packed panels of one head: all heads of a sequence lie together. */
static size_t packed_start(const struct attention_run *run, size_t b, size_t h, size_t dim)
{
    size_t padded = run->first_key[b + 1] - run->first_key[b];
    return (run->first_key[b] * run->a.args.n_kv_heads + h * padded) * dim;
}

/* Task (b, h) packs the keys, and where needed the values, of one head. */
static void pack_head(void *arg, size_t index, size_t worker)
{
    const struct attention_run *run = arg;
    const struct attention *a = &run->a;
    const struct heed_kernels *kernels = a->context->kernels;
    size_t b = index / a->args.n_kv_heads, h = index % a->args.n_kv_heads, n = keys_in_reach(a, b);
    size_t dim = a->args.head_dim, value_dim = a->args.value_dim;
    (void)worker;
    if (n > 0 && dim > 0)
        kernels->pack(true, n, dim, a->args.k.data + head_start(&a->args.k, &a->keys, b, h), a->args.k.row_stride,
                      run->packed_k + packed_start(run, b, h, dim));
    if (n > 0 && a->pack_values && value_dim > 0)
        kernels->pack(false, value_dim, n, a->args.v.data + head_start(&a->args.v, &a->keys, b, h),
                      a->args.v.row_stride, run->packed_v + packed_start(run, b, h, heed_pad(value_dim)));
}

static size_t sequence_of_tile(const struct attention_run *run, size_t tile)
{
    size_t low = 0, high = run->a.args.batch;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (run->first_tile[middle] <= tile)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void set_mask(struct heed_attention_task *task, const heed_mask *mask, size_t b, size_t h, size_t row)
{
    if (task->keys == 0)
        return;
    size_t at = b * mask->batch_stride + h * mask->head_stride + row * mask->row_stride;
    task->mask_kind = (enum heed_mask_kind)mask->type;
    task->mask_row = mask->row_stride;
    if (mask->type == HEED_MASK_ADDITIVE)
        task->mask = (const float *)mask->data + at;
    else if (mask->type == HEED_MASK_BOOLEAN)
        task->mask = (const unsigned char *)mask->data + at;
}

static void set_diagonal(struct heed_attention_task *task, const struct attention *a, size_t b, size_t row)
{
    size_t queries = heed_sequence_length(&a->queries, b);
    size_t keys = a->args.kv_lengths ? a->args.kv_lengths[b] : heed_sequence_length(&a->keys, b);
    task->causal = a->args.causal != HEED_CAUSAL_NONE;
    task->diagonal = (ptrdiff_t)row;
    if (a->args.causal == HEED_CAUSAL_BOTTOM_RIGHT)
        task->diagonal += (ptrdiff_t)keys - (ptrdiff_t)queries;
}

static void set_panels(struct heed_attention_task *task, const struct attention_run *run, size_t b, size_t kv_head)
{
    const struct attention *a = &run->a;
    size_t dim = a->args.head_dim, padded = heed_pad(a->args.value_dim);
    task->k = task->v = heed_panels_in_place(heed_nothing, 0);
    if (dim > 0)
        task->k = heed_panels_packed(run->packed_k + packed_start(run, b, kv_head, dim), dim);
    if (a->args.value_dim == 0)
        return;
    if (a->pack_values)
        task->v = heed_panels_packed(run->packed_v + packed_start(run, b, kv_head, padded), task->keys);
    else if (task->keys > 0)
        task->v =
            heed_panels_in_place(a->args.v.data + head_start(&a->args.v, &a->keys, b, kv_head), a->args.v.row_stride);
}

/* Task (h, tile) computes up to TASK_ROWS query rows of one head of one sequence. */
static void attend_rows(void *arg, size_t index, size_t worker)
{
    const struct attention_run *run = arg;
    const struct attention *a = &run->a;
    const heed_attention_args *args = &a->args;
    size_t tiles = run->first_tile[args->batch], h = index / tiles, tile = index % tiles;
    size_t b = sequence_of_tile(run, tile), row = (tile - run->first_tile[b]) * TASK_ROWS;
    size_t left = heed_sequence_length(&a->queries, b) - row;
    const heed_heads out = {NULL, args->out.batch_stride, args->out.head_stride, args->out.row_stride};
    struct heed_attention_task task = {
        .rows = left < TASK_ROWS ? left : TASK_ROWS,
        .head_dim = args->head_dim,
        .value_dim = args->value_dim,
        .q_row = args->q.row_stride,
        .keys = keys_in_reach(a, b),
        .scale_log2e = a->scale_log2e,
        .out_row = args->out.row_stride,
        .map_row = args->map.row_stride,
        .map_cols = args->seq_kv,
        .scratch = run->worker_scratch + worker * run->worker_floats,
    };
    task.q = heed_nothing;
    task.out = task.scratch;
    if (args->head_dim > 0)
        task.q = args->q.data + head_start(&args->q, &a->queries, b, h) + row * args->q.row_stride;
    else
        task.q_row = 0;
    if (args->value_dim > 0)
        task.out = args->out.data + head_start(&out, &a->queries, b, h) + row * out.row_stride;
    else
        task.out_row = 0;
    if (args->map.data)
        task.map = args->map.data + b * args->map.batch_stride + h * args->map.head_stride + row * task.map_row;
    set_panels(&task, run, b, h / (args->n_heads / args->n_kv_heads));
    set_diagonal(&task, a, b, row);
    set_mask(&task, &args->mask, b, h, row);
    a->context->kernels->attention(&task);
}

static void run_attention(struct attention_run *run)
{
    const heed_attention_args *args = &run->a.args;
    lay_out(run);
    double keys = (double)run->first_key[args->batch], dims = (double)(args->head_dim + args->value_dim);
    heed_run(run->a.context, args->batch * args->n_kv_heads, keys * (double)args->n_kv_heads * dims, pack_head, run);
    double mean_keys = keys / (double)args->batch;
    heed_run(run->a.context, args->n_heads * run->first_tile[args->batch],
             (double)args->n_heads * (double)run->a.query_rows * (mean_keys + 1.0) * (dims + HEED_ROW_WORK),
             attend_rows, run);
}

heed_status heed_attention(const heed_context *context, const heed_attention_args *args,
                           const heed_workspace *workspace)
{
    struct heed_context fallback;
    struct attention_run run = {.first_key = NULL};
    struct heed_operands operands = {.status = describe(&run.a, context, &fallback, args)};
    if (operands.status != HEED_OK)
        return operands.status;
    check_operands(&operands, &run.a);
    size_t bytes = heed_scratch_total(scratch_parts(&run.a));
    heed_require(&operands, bytes <= PTRDIFF_MAX, HEED_ERR_OVERFLOW);
    heed_status status = heed_operands_check(&operands, workspace, bytes);
    struct heed_scratch scratch;
    if (status == HEED_OK && !is_empty(&run.a))
        status = heed_scratch_open(&scratch, run.a.context, workspace, bytes);
    if (status != HEED_OK || is_empty(&run.a))
        return status;

    run.first_key = heed_scratch_take(&scratch, run.a.args.batch + 1, sizeof(size_t));
    run.first_tile = heed_scratch_take(&scratch, run.a.args.batch + 1, sizeof(size_t));
    run.packed_k = heed_scratch_take(&scratch, packed_floats(&run.a, run.a.args.head_dim), sizeof(float));
    run.packed_v = heed_scratch_take(&scratch, packed_value_floats(&run.a), sizeof(float));
    run.worker_floats = worker_floats(&run.a);
    run.worker_scratch = (float *)scratch.next;
    run_attention(&run);
    heed_scratch_close(&scratch);
    return HEED_OK;
}
