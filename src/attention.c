/* SPDX-License-Identifier: MIT
 * heed_attention: packs the keys of each head once, and shares heads, runs of query rows or key blocks over the
 * workers, as attention_plan.c has chosen. How tiles prefetch keys and values is in attention_hints.c.
 */
#include "attention.h"

/* Keys of a task that packs. */
#define PACK_KEYS 1024

/* Where key blocks go to different workers, about so many parts for every worker. */
#define SPLITS 4

_Static_assert((int)HEED_MASK_NONE == (int)HEED_KIND_UNMASKED && (int)HEED_MASK_ADDITIVE == (int)HEED_KIND_ADDITIVE &&
                   (int)HEED_MASK_BOOLEAN == (int)HEED_KIND_BOOLEAN,
               "kernels.h repeats heed_mask_type");

/* A call with its scratch. */
struct attention_run {
    struct attention a;
    size_t *first_key;  /* [batch + 1]: packed keys before each sequence */
    size_t *first_tile; /* [batch + 1]: query tasks of one head before each sequence */
    size_t packed_keys; /* of the longest sequence */
    float *packed_k, *packed_v;
    size_t split_keys, splits; /* keys of a part of a task, and parts, in HEED_ATTENTION_LOOP_KEYS */
    float *partial;
    float *worker_scratch;
};

static size_t scratch_parts(const struct attention *a)
{
    if (a->empty)
        return 0;
    size_t prefix = heed_scratch_part(heed_plus(a->args.batch, 1), sizeof(size_t));
    size_t parts = heed_plus(prefix, prefix);
    parts = heed_plus(parts, heed_scratch_part(a->packed_k_floats, sizeof(float)));
    parts = heed_plus(parts, heed_scratch_part(a->packed_v_floats, sizeof(float)));
    parts = heed_plus(parts, heed_scratch_part(heed_times(a->partial_floats, a->tasks), sizeof(float)));
    return heed_plus(parts, heed_scratch_part(heed_times(a->worker_floats, heed_workers(a->context)), sizeof(float)));
}

heed_status heed_attention_workspace_after(const heed_context *context, const heed_attention_args *args,
                                           const struct heed_sequences *coming, bool lasting, size_t *bytes)
{
    struct heed_context fallback;
    struct attention a;
    heed_status status = heed_attention_describe(&a, context, &fallback, args, coming, lasting);
    return status == HEED_OK ? heed_workspace_answer(scratch_parts(&a), bytes) : status;
}

heed_status heed_attention_workspace(const heed_context *context, const heed_attention_args *args, size_t *bytes)
{
    return heed_attention_workspace_after(context, args, NULL, true, bytes);
}

void heed_write_maps(struct heed_operands *operands, const heed_attention_args *args)
{
    const heed_heads_out *maps[] = {&args->map, &args->mean_map, &args->log_sum_exp};
    for (size_t i = 0; i < 3; i++) {
        struct heed_dims dims = {{args->batch, i == 1 ? 1 : args->n_heads, args->seq_q},
                                 {maps[i]->batch_stride, maps[i]->head_stride, maps[i]->row_stride},
                                 i == 2 ? 1 : args->seq_kv};
        if (maps[i]->data)
            heed_write_tensor(operands, maps[i]->data, sizeof(float), &dims);
    }
}

static void check_operands(struct heed_operands *operands, const struct attention *a)
{
    const heed_attention_args *args = &a->args;
    heed_read_offsets(operands, &a->queries);
    heed_read_offsets(operands, &a->keys);
    heed_read_optional(operands, args->kv_lengths, sizeof(size_t), 1, args->batch, args->batch, 0);
    heed_read_optional(operands, args->slopes, sizeof(float), 1, args->n_heads, args->n_heads, 0);
    heed_read_optional(operands, args->sinks, sizeof(float), 1, args->n_heads, args->n_heads, 0);
    if (args->cache) {
        heed_read_optional(operands, args->cache_sequences, sizeof(size_t), 1, args->batch, args->batch, 0);
        heed_read(operands, args->cache, 1, 1, args->cache->bytes, args->cache->bytes, 0);
    }
    heed_read_heads(operands, &args->q, &a->queries, a->query_rows, args->n_heads, args->head_dim);
    if (a->longest_keys > 0) {
        if (!args->cache) {
            heed_read_heads(operands, &args->k, &a->keys, a->key_rows, args->n_kv_heads, args->head_dim);
            heed_read_heads(operands, &args->v, &a->keys, a->key_rows, args->n_kv_heads, args->value_dim);
        }
        heed_read_mask(operands, &args->mask, args->batch, args->n_heads, args->seq_q, args->seq_kv);
    }
    heed_write_heads(operands, &args->out, &a->queries, a->query_rows, args->n_heads, args->value_dim);
    heed_write_maps(operands, args);
}

static void lay_out(struct attention_run *run)
{
    run->packed_keys = heed_pad(run->a.longest_keys);
    run->first_key[0] = run->first_tile[0] = 0;
    for (size_t b = 0; b < run->a.args.batch; b++) {
        run->first_key[b + 1] = run->first_key[b] + heed_pad(heed_keys_in_reach(&run->a, b));
        run->first_tile[b + 1] = run->first_tile[b] + heed_tiles_of(&run->a, b);
    }
}

/* One head of k and v, and who works on it. */
struct kv_head {
    size_t b, h, worker;
};

/* The packed panels of one head: a worker's own, or else all heads of a sequence together. */
static size_t packed_start(const struct attention_run *run, struct kv_head at, size_t dim)
{
    if (run->a.loop == HEED_ATTENTION_LOOP_HEADS)
        return at.worker * run->packed_keys * dim;
    size_t b = at.b, h = at.h;
    size_t padded = run->first_key[b + 1] - run->first_key[b];
    return (run->first_key[b] * run->a.args.n_kv_heads + h * padded) * dim;
}

/* Rows first to first + n - 1 of the packed values of one head. */
static void pack_values(const struct attention_run *run, struct kv_head at, size_t first, size_t n)
{
    const struct attention *a = &run->a;
    size_t dim = a->args.value_dim, keys = heed_keys_in_reach(a, at.b), row = a->args.v.row_stride;
    const float *src = a->args.v.data + heed_head_start(&a->args.v, &a->keys, at.b, at.h) + first * row;
    float *dst = run->packed_v + packed_start(run, at, heed_pad(dim)) + first * HEED_PANEL;
    size_t step = n == keys ? dim : HEED_PANEL; /* all panels at once, unless they are longer than what is packed */
    for (size_t d = 0; d < dim; d += step)
        a->context->kernels->pack(false, HEED_PACK_PREFETCH_BELOW, dim - d < step ? dim - d : step, n, src + d, row,
                                  dst + d * keys);
}

static size_t pack_parts(const struct attention *a)
{
    return heed_ceil_div(a->longest_keys, PACK_KEYS);
}

/* Packs keys first to end - 1, and where needed the values, of one head. */
static void pack_keys(const struct attention_run *run, struct kv_head at, size_t first, size_t end)
{
    const struct attention *a = &run->a;
    size_t reach = heed_first_in_reach(a, at.b), keys = heed_keys_in_reach(a, at.b), row = a->args.k.row_stride;
    first = first < reach ? reach : first;
    end = end < keys ? end : keys;
    if (first >= end)
        return;
    if (a->args.head_dim > 0 && !a->keys_in_place)
        heed_put_keys(a->context->kernels, a->args.head_dim, first, end - first,
                      a->args.k.data + heed_head_start(&a->args.k, &a->keys, at.b, at.h) + first * row, row,
                      run->packed_k + packed_start(run, at, a->args.head_dim));
    if (a->pack_values && a->args.value_dim > 0)
        pack_values(run, at, first, end - first);
}

/* Task (b, h, part) packs a part of one head. */
static void pack_part(void *arg, size_t index, size_t worker)
{
    const struct attention_run *run = arg;
    size_t parts = pack_parts(&run->a), first = index % parts * PACK_KEYS, heads = run->a.args.n_kv_heads;
    struct kv_head at = {index / parts / heads, index / parts % heads, worker};
    pack_keys(run, at, first, first + PACK_KEYS);
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
    task->mask_head = mask->head_stride;
    if (mask->type == HEED_MASK_ADDITIVE)
        task->mask = (const float *)mask->data + at;
    else if (mask->type == HEED_MASK_BOOLEAN)
        task->mask = (const unsigned char *)mask->data + at;
}

/* Where the task's first query is among the keys, and what it sees of them. */
static void set_position(struct heed_attention_task *task, const struct attention *a, size_t b, size_t row)
{
    const heed_attention_args *args = &a->args;
    const size_t far = PTRDIFF_MAX / 4; /* more than any two sequences have */
    size_t left = args->window_left < far ? args->window_left : far;
    size_t right = args->causal != HEED_CAUSAL_NONE ? 0 : args->window_right < far ? args->window_right : far;
    task->position = (ptrdiff_t)row;
    if (args->causal != HEED_CAUSAL_TOP_LEFT)
        task->position += (ptrdiff_t)heed_key_count(a, b) - (ptrdiff_t)heed_sequence_length(&a->queries, b);
    task->causal = right < far;
    task->diagonal = task->position + (ptrdiff_t)right;
    task->windowed = left < far;
    task->oldest = task->position - (ptrdiff_t)left;
    if (task->windowed && task->oldest > 0)
        task->first_block = (size_t)task->oldest / HEED_KEY_BLOCK * HEED_KEY_BLOCK;
}

static void set_panels(struct heed_attention_task *task, const struct attention_run *run, struct kv_head at)
{
    const struct attention *a = &run->a;
    size_t dim = a->args.head_dim, padded = heed_pad(a->args.value_dim);
    task->k = heed_panels_in_place(heed_nothing, 0);
    task->v = heed_panels_in_place(heed_nothing, 0);
    if (dim > 0 && a->keys_in_place) {
        task->k_rows = a->args.k.data + heed_head_start(&a->args.k, &a->keys, at.b, at.h);
        task->k_row = a->args.k.row_stride;
    } else if (dim > 0) {
        task->k = heed_panels_packed(run->packed_k + packed_start(run, at, dim), dim);
    }
    if (a->args.value_dim == 0)
        return;
    if (a->pack_values)
        task->v = heed_panels_packed(run->packed_v + packed_start(run, at, padded), task->keys);
    else if (task->keys > 0)
        task->v = heed_panels_in_place(a->args.v.data + heed_head_start(&a->args.v, &a->keys, at.b, at.h),
                                       a->args.v.row_stride);
    double bytes = heed_bytes_of(task->keys, dim + padded);
    bool own = a->loop == HEED_ATTENTION_LOOP_HEADS;
    task->k.in_l2 = task->v.in_l2 = own && bytes <= HEED_L2_SHARE * (double)a->context->l2;
}

static void set_pages(struct heed_attention_task *task, const struct attention *a, size_t b, size_t kv_head)
{
    const heed_kv_cache *cache = a->args.cache;
    const float *head = cache->data + kv_head * cache->head_floats;
    task->pages = cache->table + heed_cached_sequence(a, b) * cache->table_cols;
    task->page_keys = cache->page_keys;
    task->page_floats = cache->page_floats;
    task->k = heed_panels_packed(head, cache->head_dim);
    task->v = heed_panels_in_place(head + cache->page_keys * cache->head_dim, heed_pad(cache->value_dim));
}

/* One tensor of the caller's from the task's first row on, and how far its rows and heads are apart. */
static size_t row_start(const heed_heads *heads, const struct heed_sequences *s, size_t b, size_t h, size_t row,
                        size_t *row_step, size_t *head_step)
{
    *row_step = heads->row_stride;
    *head_step = heads->head_stride;
    return heed_head_start(heads, s, b, h) + row * heads->row_stride;
}

static size_t out_start(const heed_heads_out *heads, const struct heed_sequences *s, size_t b, size_t h, size_t row,
                        size_t *row_step, size_t *head_step)
{
    const heed_heads out = heed_heads_of_out(heads);
    return row_start(&out, s, b, h, row, row_step, head_step);
}

/* Maps and log-sum-exp go by batch_stride whatever offsets queries have. */
static const struct heed_sequences not_ragged = {0, 0, NULL};

static void set_outputs(struct heed_attention_task *task, const struct attention *a, size_t b, size_t h, size_t row)
{
    const heed_attention_args *args = &a->args;
    task->out = task->scratch;
    if (args->value_dim > 0)
        task->out = args->out.data + out_start(&args->out, &a->queries, b, h, row, &task->out_row, &task->out_head);
    task->map_cols = args->seq_kv;
    if (args->map.data)
        task->map = args->map.data + out_start(&args->map, &not_ragged, b, h, row, &task->map_row, &task->map_head);
    if (args->log_sum_exp.data)
        task->log_sum = args->log_sum_exp.data +
                        out_start(&args->log_sum_exp, &not_ragged, b, h, row, &task->log_sum_row, &task->log_sum_head);
}

/* What task (unit of heads, tile) of all tiles is about: rows from `row` on of one head of one sequence, or the heads
 * of its group, or those beside it, for few queries. */
struct place {
    size_t b, h, row, rows;
};

static void set_task(struct heed_attention_task *task, const struct attention_run *run, struct place at, size_t worker)
{
    const struct attention *a = &run->a;
    const heed_attention_args *args = &a->args;
    *task = (struct heed_attention_task){.rows = at.rows, .head_dim = args->head_dim, .value_dim = args->value_dim};
    task->q = heed_nothing;
    task->keys = heed_keys_in_reach(a, at.b);
    task->heads = a->beside;
    task->k_head = args->k.head_stride;
    task->v_head = args->v.head_stride;
    task->queries = a->heads_as_rows ? heed_sequence_length(&a->queries, at.b) : 0;
    task->slopes = args->slopes ? args->slopes + at.h : NULL;
    task->sinks = args->sinks ? args->sinks + at.h : NULL;
    task->scale_log2e = a->scale_log2e;
    task->cap = a->cap;
    task->cap_slope = a->cap_slope;
    task->scratch = run->worker_scratch + worker * run->a.worker_floats;
    if (args->head_dim > 0)
        task->q = args->q.data + row_start(&args->q, &a->queries, at.b, at.h, at.row, &task->q_row, &task->q_head);
    set_outputs(task, a, at.b, at.h, at.row);
    struct kv_head kv = {at.b, at.h / (args->n_heads / args->n_kv_heads), worker};
    if (args->cache)
        set_pages(task, a, at.b, kv.h);
    else
        set_panels(task, run, kv);
    heed_plan_key_prefetch(a, task);
    set_position(task, a, at.b, at.row);
    set_mask(task, &args->mask, at.b, at.h, at.row);
}

/* Tile `tile`, of sequence b, of a unit of heads. */
static struct place place_in(const struct attention_run *run, size_t b, size_t unit, size_t tile)
{
    const struct attention *a = &run->a;
    size_t group = a->args.n_heads / a->args.n_kv_heads, queries = heed_sequence_length(&a->queries, b);
    size_t most = heed_task_rows_of(a, queries), row = (tile - run->first_tile[b]) * most;
    size_t left = heed_rows_of(a, queries) - row;
    struct place at = {b, unit, row, left < most ? left : most};
    if (a->heads_as_rows) {
        at.h = unit * a->beside * group + row / queries;
        at.row = 0;
    }
    return at;
}

static struct place place_of(const struct attention_run *run, size_t index)
{
    size_t tiles = run->first_tile[run->a.args.batch], tile = index % tiles;
    return place_in(run, sequence_of_tile(run, tile), index / tiles, tile);
}

static void attend_rows(void *arg, size_t index, size_t worker)
{
    const struct attention_run *run = arg;
    struct heed_attention_task task;
    set_task(&task, run, place_of(run, index), worker);
    run->a.context->kernels->attention(&task);
}

/* Whether the next head is to be prefetched, of so many keys and of so many bytes for all heads. Where queries are few,
 * requests find nothing to hide behind, and the third cache may have all heads. A wide core brings from there by itself
 * what few queries wait for: 12 batches of 12 heads beside each other, one query of 128 keys each, 1.21 without. */
static bool wants_next_head(const struct attention *a, size_t keys, double all)
{
    bool few = heed_queries_of_head(a) < keys / 2;
    if (a->context->wide_core)
        return !few && heed_from_memory(a->context, all);
    return all > (few ? HEED_FAR_BYTES_PER_L2 : 1.0) * (double)a->context->l2;
}

/* The keys and values of one head as far as half of the second cache has room for them beside those of another; none if
 * they are not wanted, or keys are read as they lie, one after the other. */
static struct heed_coming_keys coming_keys(const struct attention_run *run, size_t index)
{
    const struct attention *a = &run->a;
    const heed_attention_args *args = &a->args;
    struct heed_coming_keys coming = {.keys = 0};
    size_t heads = args->batch * args->n_kv_heads;
    if (index >= heads || (a->keys_in_place && args->k.row_stride == args->head_dim))
        return coming;
    struct kv_head at = {index / args->n_kv_heads, index % args->n_kv_heads, 0};
    size_t first = heed_first_in_reach(a, at.b), end = heed_keys_in_reach(a, at.b),
           keys = end > first ? end - first : 0;
    double bytes = (double)(args->head_dim + args->value_dim) * sizeof(float);
    double room = 0.5 * (double)a->context->l2 / bytes - (double)keys;
    if (room <= 0.0 || !wants_next_head(a, keys, heed_bytes_of_keys(a, keys)))
        return coming;
    coming.keys = room < (double)keys ? (size_t)room : keys;
    coming.k_row = args->k.row_stride;
    coming.v_row = args->v.row_stride;
    if (args->head_dim > 0)
        coming.k = args->k.data + heed_head_start(&args->k, &a->keys, at.b, at.h) + first * coming.k_row;
    if (args->value_dim > 0)
        coming.v = args->v.data + heed_head_start(&args->v, &a->keys, at.b, at.h) + first * coming.v_row;
    return coming;
}

/* Part `index` of so many even ones. */
static struct heed_coming_keys part_of(const struct heed_coming_keys *coming, size_t index, size_t parts)
{
    size_t first = coming->keys * index / parts, end = coming->keys * (index + 1) / parts;
    struct heed_coming_keys part = *coming;
    part.k = coming->k ? coming->k + first * coming->k_row : NULL;
    part.v = coming->v ? coming->v + first * coming->v_row : NULL;
    part.keys = end - first;
    return part;
}

/* All queries of one head of k and v. */
static void attend_head(void *arg, size_t index, size_t worker)
{
    const struct attention_run *run = arg;
    const struct attention *a = &run->a;
    struct kv_head kv = {index / a->args.n_kv_heads, index % a->args.n_kv_heads, worker};
    size_t units = a->task_heads / a->args.n_kv_heads, first = run->first_tile[kv.b];
    size_t tiles = run->first_tile[kv.b + 1] - first, tasks = units * tiles;
    struct heed_coming_keys coming = coming_keys(run, index + 1);
    pack_keys(run, kv, 0, SIZE_MAX);
    for (size_t i = 0; i < tasks; i++) {
        struct heed_attention_task task;
        set_task(&task, run, place_in(run, kv.b, kv.h * units + i / tiles, first + i % tiles), worker);
        if (coming.keys > 0)
            task.coming = part_of(&coming, i, tasks);
        a->context->kernels->attention(&task);
    }
}

/* Part `index % splits` of the key blocks of a task. */
static void attend_part(void *arg, size_t index, size_t worker)
{
    const struct attention_run *run = arg;
    struct heed_attention_task task;
    set_task(&task, run, place_of(run, index / run->splits), worker);
    size_t begin = index % run->splits * run->split_keys, end = begin + run->split_keys;
    task.partial = run->partial + index / run->splits * run->a.partial_floats;
    begin = begin < task.first_block ? task.first_block : begin;
    end = end < task.keys ? end : task.keys;
    if (begin < end)
        run->a.context->kernels->attention_blocks(&task, begin, end);
}

static void fold_parts(void *arg, size_t index, size_t worker)
{
    const struct attention_run *run = arg;
    struct heed_attention_task task;
    set_task(&task, run, place_of(run, index), worker);
    task.partial = run->partial + index * run->a.partial_floats;
    run->a.context->kernels->attention_fold(&task);
}

/* mean += map, in head order, and in the end times 1 / heads. */
static void add_to_mean(const struct attention *a, const struct heed_attention_task *task, size_t h, float *mean)
{
    const struct heed_kernels *kernels = a->context->kernels;
    size_t cols = task->map_cols, last = a->args.n_heads - 1;
    for (size_t i = 0; i < task->rows; i++, mean += a->args.mean_map.row_stride) {
        const float *rows[] = {mean, task->map + i * task->map_row};
        if (h == 0)
            kernels->mean_rows(1, cols, rows[1], cols, 1.0f, mean);
        else
            kernels->sum_rows(2, rows, cols, mean);
        if (h == last)
            kernels->mean_rows(1, cols, mean, cols, 1.0f / (float)a->args.n_heads, mean);
    }
}

/* All heads of some rows, for their mean. */
static void attend_heads(void *arg, size_t index, size_t worker)
{
    const struct attention_run *run = arg;
    const heed_heads_out *mean = &run->a.args.mean_map;
    struct place at = place_of(run, index);
    for (at.h = 0; at.h < run->a.args.n_heads; at.h++) {
        struct heed_attention_task task;
        set_task(&task, run, at, worker);
        if (!task.map) {
            task.map_row = heed_pad(task.map_cols);
            task.map = task.scratch + run->a.worker_floats - run->a.map_floats;
        }
        run->a.context->kernels->attention(&task);
        add_to_mean(&run->a, &task, at.h, mean->data + at.b * mean->batch_stride + at.row * mean->row_stride);
    }
}

static bool packs(const struct attention *a)
{
    return !a->args.cache && (!a->keys_in_place || a->pack_values);
}

static void run_attention(struct attention_run *run)
{
    const struct attention *a = &run->a;
    const heed_attention_args *args = &a->args;
    lay_out(run);
    double keys = (double)run->first_key[args->batch], dims = (double)(args->head_dim + args->value_dim);
    double mean_keys = keys / (double)args->batch;
    double work = (double)args->n_heads * (double)a->query_rows * (mean_keys + 1.0) * (dims + HEED_EXP_WORK);
    size_t heads = args->batch * args->n_kv_heads;
    if (a->loop != HEED_ATTENTION_LOOP_HEADS && packs(a))
        heed_run(a->context, heads * pack_parts(a), keys * (double)args->n_kv_heads * dims, pack_part, run);
    switch (a->loop) {
    case HEED_ATTENTION_LOOP_HEADS:
        heed_run(a->context, heads, work, attend_head, run);
        break;
    case HEED_ATTENTION_LOOP_KEYS:
        heed_run(a->context, a->tasks * run->splits, work, attend_part, run);
        heed_run(a->context, a->tasks, 0.0, fold_parts, run); /* by one thread: there is too little to share */
        break;
    case HEED_ATTENTION_LOOP_ROWS:
    default:
        heed_run(a->context, a->tasks, work, args->mean_map.data ? attend_heads : attend_rows, run);
    }
}

/* Several parts for each task, though there may be tasks enough. */
static void split_keys(struct attention_run *run)
{
    size_t blocks = heed_key_blocks(&run->a),
           wanted = heed_ceil_div(SPLITS * heed_workers(run->a.context), run->a.tasks);
    wanted = wanted < 2 ? 2 : wanted < blocks ? wanted : blocks;
    run->split_keys = heed_ceil_div(blocks, wanted) * HEED_KEY_BLOCK;
    run->splits = heed_ceil_div(blocks * HEED_KEY_BLOCK, run->split_keys);
}

static void take_scratch(struct attention_run *run, struct heed_scratch *scratch)
{
    run->first_key = heed_scratch_take(scratch, run->a.args.batch + 1, sizeof(size_t));
    run->first_tile = heed_scratch_take(scratch, run->a.args.batch + 1, sizeof(size_t));
    run->packed_k = heed_scratch_take(scratch, run->a.packed_k_floats, sizeof(float));
    run->packed_v = heed_scratch_take(scratch, run->a.packed_v_floats, sizeof(float));
    run->partial = heed_scratch_take(scratch, run->a.tasks * run->a.partial_floats, sizeof(float));
    if (run->a.loop == HEED_ATTENTION_LOOP_KEYS)
        split_keys(run);
    run->worker_scratch = (float *)scratch->next;
}

heed_status heed_attention(const heed_context *context, const heed_attention_args *args,
                           const heed_workspace *workspace)
{
    struct heed_context fallback;
    struct attention_run run;
    struct heed_operands operands;
    heed_operands_begin(&operands, heed_attention_describe(&run.a, context, &fallback, args, NULL, false));
    if (operands.status != HEED_OK)
        return operands.status;
    check_operands(&operands, &run.a);
    size_t bytes = heed_scratch_total(scratch_parts(&run.a));
    heed_require(&operands, bytes <= PTRDIFF_MAX, HEED_ERR_OVERFLOW);
    heed_status status = heed_operands_check(&operands, workspace, bytes);
    struct heed_scratch scratch;
    if (status == HEED_OK && !run.a.empty)
        status = heed_scratch_open(&scratch, run.a.context, workspace, bytes);
    if (status != HEED_OK || run.a.empty)
        return status;

    take_scratch(&run, &scratch);
    run_attention(&run);
    heed_scratch_close(&scratch);
    return HEED_OK;
}
