/* SPDX-License-Identifier: MIT
 * heed_attention: packs the keys of each head once, and shares heads, runs of query rows or key blocks over the
 * workers. How tiles ask for keys and values is in attention_hints.c.
 */
#include "attention.h"

/* Query rows of a task: whole tiles of most tables (of 12, 16 or 24 rows; three of 16 where one has up to 20). Where a
 * map of each head is needed for their mean, it is one tile. */
#define TASK_ROWS 48
#define MEAN_TASK_ROWS 16
_Static_assert(TASK_ROWS >= HEED_ATTENTION_ROWS, "rows of heads beside each other, a single tile, are one task");

/* Keys of a task that packs. */
#define PACK_KEYS 1024

/* Queries up to which heads of a group go together: so that most tasks hold two heads. By few keys so many queries fill
 * vectors of their own, as rows of several heads do not. */
#define FEW_QUERIES 24
#define ALONE_KEYS 16
#define ALONE_QUERIES 12

/* Queries from which on it pays to pack values whose rows lie apart, on a page each: some where a tile reads parts of
 * rows, or the rows share their sets of L1, since they are multiples of so many bytes apart; else many. */
#define SOME_QUERIES 64
#define MANY_QUERIES 513
#define SAME_SETS 4096

/* Keys left in place have so many dimensions, and are so many: for each row, where these take several groups. */
#define IN_PLACE_DIM 16
#define IN_PLACE_KEYS 24
#define IN_PLACE_KEYS_PER_ROW 4

/* Heads beside each other are taken together if they are all there are, or so many floats: of a smaller part of a row
 * of all heads memory gives no more than of one head. */
#define BESIDE_FLOATS 1024

/* Keys and values of so many times the second cache are taken to come from memory. */
#define FAR_BYTES_PER_L2 8.0

/* Heads for each worker from which on it does not matter that some get one more. */
#define FULL_SHARES 8

/* Where key blocks go to different workers, about so many parts for every worker. */
#define SPLITS 4

_Static_assert((int)HEED_MASK_NONE == (int)HEED_KIND_UNMASKED && (int)HEED_MASK_ADDITIVE == (int)HEED_KIND_ADDITIVE &&
                   (int)HEED_MASK_BOOLEAN == (int)HEED_KIND_BOOLEAN,
               "kernels.h repeats heed_mask_type");

/* The same with its scratch. */
struct attention_run {
    struct attention a;
    size_t *first_key;  /* [batch + 1]: packed keys before each sequence */
    size_t *first_tile; /* [batch + 1]: query tasks of one head before each sequence */
    size_t packed_keys; /* of the longest sequence */
    float *packed_k, *packed_v;
    size_t split_keys, splits; /* keys of a part of a task, and parts, in HEED_ATTENTION_LOOP_KEYS */
    size_t partial_floats;
    float *partial;
    float *worker_scratch;
    size_t worker_floats;
};

#define LOG2_E 0x1.71547652b82fep0

/* The scale in double; division and root are exact to an ulp everywhere. */
static double scale_of(const heed_attention_args *args)
{
    if (args->scale == HEED_SCALE_VALUE)
        return (double)args->scale_value;
    return 1.0 / heed_root((double)(args->head_dim ? args->head_dim : 1));
}

/* 1 / sqrt(head_dim) and log2(e) rounded once. */
static float scale_times_log2e(const heed_attention_args *args)
{
    if (args->scale == HEED_SCALE_VALUE)
        return (float)((double)args->scale_value * LOG2_E);
    return (float)(LOG2_E / heed_root((double)(args->head_dim ? args->head_dim : 1)));
}

static heed_status set_scale(struct attention *a)
{
    a->scale_log2e = scale_times_log2e(&a->args);
    a->cap = a->cap_slope = 0.0f;
    if (!heed_is_finite((double)a->scale_log2e) || !(a->args.softcap >= 0.0f))
        return HEED_ERR_VALUE;
    if (a->args.softcap > 0.0f) {
        a->cap = (float)((double)a->args.softcap * LOG2_E);
        a->cap_slope = (float)(scale_of(&a->args) / (double)a->args.softcap);
    }
    return heed_is_finite((double)a->cap) && heed_is_finite((double)a->cap_slope) ? HEED_OK : HEED_ERR_VALUE;
}

/* The cache's sequence for sequence b. */
static size_t cached_sequence(const struct attention *a, size_t b)
{
    return a->args.cache_sequences ? a->args.cache_sequences[b] : b;
}

/* Keys of sequence b, of which its kv_length may cut some off. */
static size_t whole_keys(const struct attention *a, size_t b)
{
    if (!a->args.cache)
        return heed_sequence_length(&a->keys, b);
    size_t cached = a->args.cache->length[cached_sequence(a, b)];
    return a->coming ? cached + heed_sequence_length(a->coming, b) : cached;
}

static size_t key_count(const struct attention *a, size_t b)
{
    return a->args.kv_lengths ? a->args.kv_lengths[b] : whole_keys(a, b);
}

/* Sequence b's keys up to the last one that any of its queries may see. */
static size_t keys_in_reach(const struct attention *a, size_t b)
{
    size_t keys = key_count(a, b), queries = heed_sequence_length(&a->queries, b);
    return queries == 0 || (a->args.causal == HEED_CAUSAL_TOP_LEFT && queries < keys) ? queries : keys;
}

/* The first one. */
static size_t first_in_reach(const struct attention *a, size_t b)
{
    size_t keys = key_count(a, b), queries = heed_sequence_length(&a->queries, b);
    if (a->args.causal == HEED_CAUSAL_TOP_LEFT || queries >= keys || a->args.window_left >= keys - queries)
        return 0;
    return keys - queries - a->args.window_left;
}

static heed_status check_shape(const struct attention *a)
{
    const heed_attention_args *args = &a->args;
    if (args->causal != HEED_CAUSAL_NONE && args->causal != HEED_CAUSAL_TOP_LEFT &&
        args->causal != HEED_CAUSAL_BOTTOM_RIGHT)
        return HEED_ERR_ENUM;
    if (!heed_mask_type_is_valid(args->mask.type))
        return HEED_ERR_ENUM;
    if (args->scale != HEED_SCALE_RSQRT_HEAD_DIM && args->scale != HEED_SCALE_VALUE)
        return HEED_ERR_ENUM;
    if (args->loop != HEED_ATTENTION_LOOP_AUTO && args->loop != HEED_ATTENTION_LOOP_HEADS &&
        args->loop != HEED_ATTENTION_LOOP_ROWS && args->loop != HEED_ATTENTION_LOOP_KEYS)
        return HEED_ERR_ENUM;
    if (args->n_heads > 0 && (args->n_kv_heads == 0 || args->n_heads % args->n_kv_heads != 0))
        return HEED_ERR_SHAPE;
    if (args->seq_q > PTRDIFF_MAX || args->seq_kv > PTRDIFF_MAX)
        return HEED_ERR_OVERFLOW;
    return HEED_OK;
}

/* Whether what the cache holds at the moment is of no account. */
static bool is_for_any_keys(const struct attention *a)
{
    return a->args.cache && a->lasting;
}

static heed_status check_lengths(const struct attention *a)
{
    if (!a->args.kv_lengths)
        return HEED_OK;
    heed_status status = heed_array_check(a->args.kv_lengths, sizeof *a->args.kv_lengths, a->args.batch);
    if (status != HEED_OK)
        return status;
    for (size_t b = 0; b < a->args.batch; b++)
        if (a->args.kv_lengths[b] > (is_for_any_keys(a) ? a->args.cache->capacity : whole_keys(a, b)))
            return HEED_ERR_SHAPE;
    return HEED_OK;
}

static heed_status check_cache(const struct attention *a)
{
    const heed_attention_args *args = &a->args;
    const heed_kv_cache *cache = args->cache;
    if (cache->n_kv_heads != args->n_kv_heads || cache->head_dim != args->head_dim ||
        cache->value_dim != args->value_dim)
        return HEED_ERR_SHAPE;
    heed_status status = heed_array_check(args->cache_sequences, sizeof *args->cache_sequences, args->batch);
    if (status != HEED_OK)
        return status;
    if (!args->cache_sequences && args->batch > cache->batch)
        return HEED_ERR_INDEX;
    for (size_t b = 0; b < args->batch; b++) {
        if (cached_sequence(a, b) >= cache->batch)
            return HEED_ERR_INDEX;
        if (!is_for_any_keys(a) && whole_keys(a, b) > args->seq_kv)
            return HEED_ERR_SHAPE;
    }
    return HEED_OK;
}

/* Keys that no query asks for need not be countable. */
static heed_status check_keys(struct attention *a)
{
    if (a->query_rows == 0 && !a->keys.offsets)
        return HEED_OK;
    return heed_sequences_check(&a->keys, true, &a->key_rows);
}

static heed_status check_pages(const struct attention *a)
{
    heed_status status = HEED_OK;
    if (!a->args.cache || is_for_any_keys(a))
        return HEED_OK;
    for (size_t b = 0; status == HEED_OK && b < a->args.batch; b++)
        status =
            heed_kv_cache_check_pages(a->args.cache, cached_sequence(a, b), first_in_reach(a, b), keys_in_reach(a, b));
    return status;
}

/* Rows that a sequence of so many queries gives to tasks. */
static size_t rows_of(const struct attention *a, size_t queries)
{
    return a->heads_as_rows ? heed_times(queries, a->args.n_heads / a->args.n_kv_heads * a->beside) : queries;
}

/* Rows of a task: whole heads. */
static size_t task_rows_of(const struct attention *a, size_t queries)
{
    return a->heads_as_rows && queries > 0 ? a->task_rows / queries * queries : a->task_rows;
}

static size_t tiles_of(const struct attention *a, size_t b)
{
    size_t queries = heed_sequence_length(&a->queries, b);
    return heed_ceil_div(rows_of(a, queries), task_rows_of(a, queries));
}

/* Sequences of equal size are not walked: a batch may be any number. */
static size_t count_tasks(const struct attention *a)
{
    if (!a->queries.offsets)
        return heed_times(heed_times(a->args.batch, tiles_of(a, 0)), a->task_heads);
    size_t tiles = 0;
    for (size_t b = 0; b < a->args.batch; b++)
        tiles = heed_plus(tiles, tiles_of(a, b));
    return heed_times(tiles, a->task_heads);
}

/* Queries that meet each head of k and v, at most. */
static size_t queries_of_head(const struct attention *a)
{
    return a->args.n_kv_heads ? heed_times(a->args.seq_q, a->args.n_heads / a->args.n_kv_heads) : 0;
}

static bool pays_to_pack_values(const struct attention *a)
{
    const struct heed_kernels *kernels = a->context->kernels;
    size_t stride = a->args.v.row_stride, tile = kernels->tile_cols[kernels->narrow_mr - 1];
    bool reads_well = tile >= a->args.value_dim && stride % (SAME_SETS / sizeof(float)) != 0;
    return stride > a->args.value_dim && queries_of_head(a) >= (reads_well ? MANY_QUERIES : SOME_QUERIES);
}

/* Sequences that all reach the same keys need not be walked: a batch may be any number. */
static bool reach_is_uniform(const struct attention *a)
{
    return !a->args.cache && !a->args.kv_offsets && !a->args.kv_lengths && !a->args.q_offsets;
}

/* As many as any sequence of the cache may come to have in reach. */
static size_t most_keys(const struct attention *a)
{
    size_t seq_q = a->args.seq_q, capacity = a->args.cache->capacity;
    size_t keys = a->args.seq_kv < capacity ? a->args.seq_kv : capacity;
    return a->args.causal == HEED_CAUSAL_TOP_LEFT && seq_q < keys ? seq_q : keys;
}

static size_t find_longest_keys(const struct attention *a)
{
    if (is_for_any_keys(a))
        return most_keys(a);
    if (reach_is_uniform(a))
        return a->args.batch ? keys_in_reach(a, 0) : 0;
    size_t longest = 0;
    for (size_t b = 0; b < a->args.batch; b++)
        longest = keys_in_reach(a, b) > longest ? keys_in_reach(a, b) : longest;
    return longest;
}

/* The fewest keys that are left in place for so many rows: transposed on their way to registers, which takes less than
 * packing them. */
static size_t keys_to_leave(const struct attention *a, size_t rows)
{
    const struct heed_kernels *kernels = a->context->kernels;
    if (a->args.cache || a->args.head_dim < IN_PLACE_DIM || rows > HEED_IN_PLACE_ROWS || rows > kernels->turned_rows)
        return SIZE_MAX;
    size_t keys = rows <= kernels->few_cols ? 0 : IN_PLACE_KEYS_PER_ROW * rows;
    return keys > IN_PLACE_KEYS ? keys : IN_PLACE_KEYS;
}

static bool packs(const struct attention *a)
{
    return !a->args.cache && (!a->keys_in_place || a->pack_values);
}

/* Whether the rows of all heads are parts of longer rows of memory. */
static bool lie_beside(const heed_heads *tensor, size_t heads, size_t dim)
{
    return tensor->row_stride >= dim + HEED_PANEL && tensor->head_stride <= tensor->row_stride / heads;
}

/* Whether keys and values in place are taken to come from memory. What a Zen 5's last cache holds half of comes faster
 * head by head. */
static bool come_from_afar(const struct attention *a)
{
    double bytes = heed_bytes_of_keys(a, a->longest_keys), l2 = (double)a->context->l2;
    return bytes > (heed_asks_nearby(a->context) ? (double)a->context->in_order : FAR_BYTES_PER_L2 * l2);
}

/* Heads of keys left in place that a task takes together, lest it read a part of each row of memory: as many as divide
 * all and have room in a tile. Calls that want the loop over heads get it. */
static size_t heads_beside(const struct attention *a)
{
    const heed_attention_args *args = &a->args;
    size_t rows = queries_of_head(a), all = args->n_kv_heads;
    if (!a->keys_in_place || a->pack_values || !come_from_afar(a) || args->loop == HEED_ATTENTION_LOOP_HEADS ||
        rows == 0 || !lie_beside(&args->k, all, args->head_dim) || !lie_beside(&args->v, all, args->value_dim))
        return 1;
    size_t most = HEED_ATTENTION_ROWS / rows, heads = all < most ? all : most > 0 ? most : 1;
    while (all % heads != 0)
        heads--;
    return heads == all || heads * args->head_dim >= BESIDE_FLOATS ? heads : 1;
}

/* A few queries of grouped heads share the pass over their keys. */
static bool shares_keys(const struct attention *a)
{
    size_t queries = a->args.seq_q;
    bool alone = queries >= ALONE_QUERIES && a->longest_keys <= ALONE_KEYS;
    return a->args.n_heads > a->args.n_kv_heads && queries >= 1 && queries <= FEW_QUERIES && !alone;
}

/* The mean over heads wants all of them in order. */
static void choose_tasks(struct attention *a)
{
    const heed_attention_args *args = &a->args;
    bool mean = args->mean_map.data != NULL;
    a->keys_in_place = a->longest_keys >= keys_to_leave(a, queries_of_head(a));
    a->pack_values = !args->cache && (args->value_dim % HEED_PANEL != 0 || pays_to_pack_values(a));
    a->beside = mean ? 1 : heads_beside(a);
    a->heads_as_rows = (!mean && shares_keys(a)) || a->beside > 1;
    a->task_heads = mean ? 1 : a->heads_as_rows ? args->n_kv_heads / a->beside : args->n_heads;
    a->task_rows = mean ? MEAN_TASK_ROWS : TASK_ROWS;
    a->tasks = count_tasks(a);
}

static bool wants_map(const struct attention *a)
{
    return a->args.map.data || a->args.mean_map.data;
}

static bool is_possible(const struct attention *a, heed_attention_loop loop)
{
    switch (loop) {
    case HEED_ATTENTION_LOOP_HEADS:
        return !a->args.cache && !a->args.mean_map.data && a->beside == 1;
    case HEED_ATTENTION_LOOP_KEYS:
        return heed_workers(a->context) > 1 && a->longest_keys > HEED_KEY_BLOCK && !wants_map(a);
    default:
        return loop == HEED_ATTENTION_LOOP_ROWS;
    }
}

/* Where heads divide evenly over the workers, each packs its own one after the other: what it has packed is still in
 * its second cache when it is used, and needs memory for one head only. With fewer tasks than workers these share the
 * keys of each. */
static heed_attention_loop choose_loop(const struct attention *a)
{
    size_t workers = heed_workers(a->context), heads = heed_times(a->args.batch, a->args.n_kv_heads);
    bool even = heads % workers == 0 || heads / workers >= FULL_SHARES;
    heed_attention_loop best = a->tasks < workers ? HEED_ATTENTION_LOOP_KEYS
                               : even             ? HEED_ATTENTION_LOOP_HEADS
                                                  : HEED_ATTENTION_LOOP_ROWS;
    if (is_possible(a, a->args.loop))
        return a->args.loop;
    return is_possible(a, best) ? best : HEED_ATTENTION_LOOP_ROWS;
}

static heed_status describe(struct attention *a, const heed_context *context, struct heed_context *fallback,
                            const heed_attention_args *args, const struct heed_sequences *coming, bool lasting)
{
    const heed_attention_args defaults = HEED_ATTENTION_ARGS_INIT;
    a->args = defaults;
    a->coming = coming;
    a->lasting = lasting;
    a->key_rows = 0;
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
    a->keys = (struct heed_sequences){a->args.batch, a->args.seq_kv, a->args.cache ? NULL : a->args.kv_offsets};
    status = heed_sequences_check(&a->queries, true, &a->query_rows);
    if (status == HEED_OK)
        status = a->args.cache ? check_cache(a) : check_keys(a);
    if (status == HEED_OK)
        status = check_lengths(a);
    if (status == HEED_OK)
        status = check_pages(a);
    if (status != HEED_OK)
        return status;
    a->longest_keys = find_longest_keys(a);
    choose_tasks(a);
    a->loop = choose_loop(a);
    return set_scale(a);
}

static bool is_empty(const struct attention *a)
{
    return a->args.batch == 0 || a->args.n_heads == 0 || a->query_rows == 0 ||
           (a->args.value_dim == 0 && !a->args.log_sum_exp.data &&
            ((!a->args.map.data && !a->args.mean_map.data) || a->args.seq_kv == 0));
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

static size_t packed_floats(const struct attention *a, size_t dim)
{
    if (a->args.cache)
        return 0;
    if (a->loop == HEED_ATTENTION_LOOP_HEADS)
        return heed_times(heed_times(heed_pad(a->longest_keys), heed_workers(a->context)), dim);
    return heed_times(heed_times(padded_keys(a), a->args.n_kv_heads), dim);
}

/* Keys left in place leave as much room as if they were so few that they are packed: what suffices for the most keys
 * does for fewer. */
static size_t packed_key_floats(const struct attention *a)
{
    if (!a->keys_in_place)
        return packed_floats(a, a->args.head_dim);
    size_t heads = heed_times(a->args.batch, a->args.n_kv_heads), workers = heed_workers(a->context);
    size_t keys = heed_pad(keys_to_leave(a, queries_of_head(a)) - 1);
    return heed_times(heed_times(a->loop == HEED_ATTENTION_LOOP_HEADS ? workers : heads, keys), a->args.head_dim);
}

static size_t packed_value_floats(const struct attention *a)
{
    return a->pack_values ? packed_floats(a, heed_pad(a->args.value_dim)) : 0;
}

/* Floats of a worker's map of one task, where only the mean over heads is wanted. */
static size_t worker_map_floats(const struct attention *a)
{
    return a->args.mean_map.data && !a->args.map.data ? heed_times(MEAN_TASK_ROWS, heed_pad(a->args.seq_kv)) : 0;
}

static size_t worker_floats(const struct attention *a)
{
    size_t keys = a->longest_keys;
    if (a->args.value_dim > SIZE_MAX / 1024 || a->args.head_dim > SIZE_MAX / 1024 ||
        keys > SIZE_MAX / 1024) /* the sum of a few would wrap */
        return SIZE_MAX;
    return heed_plus(heed_pad(heed_attention_scratch(a->args.head_dim, a->args.value_dim, keys, wants_map(a))),
                     worker_map_floats(a));
}

static size_t key_blocks(const struct attention *a)
{
    return heed_ceil_div(a->longest_keys, HEED_KEY_BLOCK);
}

/* Floats of the results of all blocks of a task. */
static size_t partial_floats(const struct attention *a)
{
    size_t rows = rows_of(a, a->args.seq_q);
    if (a->loop != HEED_ATTENTION_LOOP_KEYS)
        return 0;
    return heed_times(heed_times(rows < a->task_rows ? rows : a->task_rows, key_blocks(a)),
                      heed_attention_partial(1, a->args.value_dim, 1));
}

static size_t scratch_parts(const struct attention *a)
{
    if (is_empty(a))
        return 0;
    size_t prefix = heed_scratch_part(heed_plus(a->args.batch, 1), sizeof(size_t));
    size_t parts = heed_plus(prefix, prefix);
    parts = heed_plus(parts, heed_scratch_part(packed_key_floats(a), sizeof(float)));
    parts = heed_plus(parts, heed_scratch_part(packed_value_floats(a), sizeof(float)));
    parts = heed_plus(parts, heed_scratch_part(heed_times(partial_floats(a), a->tasks), sizeof(float)));
    return heed_plus(parts, heed_scratch_part(heed_times(worker_floats(a), heed_workers(a->context)), sizeof(float)));
}

heed_status heed_attention_workspace_after(const heed_context *context, const heed_attention_args *args,
                                           const struct heed_sequences *coming, bool lasting, size_t *bytes)
{
    struct heed_context fallback;
    struct attention a;
    heed_status status = describe(&a, context, &fallback, args, coming, lasting);
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
    const heed_heads out = {NULL, args->out.batch_stride, args->out.head_stride, args->out.row_stride};
    struct heed_dims dims = heed_dims_of(&out, &a->queries, a->query_rows, args->n_heads, args->value_dim);
    heed_write_tensor(operands, args->out.data, sizeof(float), &dims);
    heed_write_maps(operands, args);
}

static void lay_out(struct attention_run *run)
{
    run->packed_keys = heed_pad(run->a.longest_keys);
    run->first_key[0] = run->first_tile[0] = 0;
    for (size_t b = 0; b < run->a.args.batch; b++) {
        run->first_key[b + 1] = run->first_key[b] + heed_pad(keys_in_reach(&run->a, b));
        run->first_tile[b + 1] = run->first_tile[b] + tiles_of(&run->a, b);
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
    size_t dim = a->args.value_dim, keys = keys_in_reach(a, at.b), row = a->args.v.row_stride;
    const float *src = a->args.v.data + heed_head_start(&a->args.v, &a->keys, at.b, at.h) + first * row;
    float *dst = run->packed_v + packed_start(run, at, heed_pad(dim)) + first * HEED_PANEL;
    size_t step = n == keys ? dim : HEED_PANEL; /* all panels at once, unless they are longer than what is packed */
    for (size_t d = 0; d < dim; d += step)
        a->context->kernels->pack(false, HEED_PACK_ASKS_BELOW, dim - d < step ? dim - d : step, n, src + d, row,
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
    size_t reach = first_in_reach(a, at.b), keys = keys_in_reach(a, at.b), row = a->args.k.row_stride;
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
        task->position += (ptrdiff_t)key_count(a, b) - (ptrdiff_t)heed_sequence_length(&a->queries, b);
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
    double bytes = (double)task->keys * (double)(dim + padded) * sizeof(float);
    bool own = a->loop == HEED_ATTENTION_LOOP_HEADS;
    task->k.near = task->v.near = own && bytes <= HEED_L2_SHARE * (double)a->context->l2;
}

static void set_pages(struct heed_attention_task *task, const struct attention *a, size_t b, size_t kv_head)
{
    const heed_kv_cache *cache = a->args.cache;
    const float *head = cache->data + kv_head * cache->head_floats;
    task->pages = cache->table + cached_sequence(a, b) * cache->table_cols;
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

/* Maps and log-sum-exp go by batch_stride whatever offsets queries have. */
static const struct heed_sequences not_ragged = {0, 0, NULL};

static void set_outputs(struct heed_attention_task *task, const struct attention *a, size_t b, size_t h, size_t row)
{
    const heed_attention_args *args = &a->args;
    const heed_heads out = {NULL, args->out.batch_stride, args->out.head_stride, args->out.row_stride};
    const heed_heads map = {NULL, args->map.batch_stride, args->map.head_stride, args->map.row_stride};
    const heed_heads sum = {NULL, args->log_sum_exp.batch_stride, args->log_sum_exp.head_stride,
                            args->log_sum_exp.row_stride};
    task->out = task->scratch;
    if (args->value_dim > 0)
        task->out = args->out.data + row_start(&out, &a->queries, b, h, row, &task->out_row, &task->out_head);
    task->map_cols = args->seq_kv;
    if (args->map.data)
        task->map = args->map.data + row_start(&map, &not_ragged, b, h, row, &task->map_row, &task->map_head);
    if (args->log_sum_exp.data)
        task->log_sum =
            args->log_sum_exp.data + row_start(&sum, &not_ragged, b, h, row, &task->log_sum_row, &task->log_sum_head);
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
    task->keys = keys_in_reach(a, at.b);
    task->heads = a->beside;
    task->k_head = args->k.head_stride;
    task->v_head = args->v.head_stride;
    task->queries = a->heads_as_rows ? heed_sequence_length(&a->queries, at.b) : 0;
    task->slopes = args->slopes ? args->slopes + at.h : NULL;
    task->sinks = args->sinks ? args->sinks + at.h : NULL;
    task->scale_log2e = a->scale_log2e;
    task->cap = a->cap;
    task->cap_slope = a->cap_slope;
    task->scratch = run->worker_scratch + worker * run->worker_floats;
    if (args->head_dim > 0)
        task->q = args->q.data + row_start(&args->q, &a->queries, at.b, at.h, at.row, &task->q_row, &task->q_head);
    set_outputs(task, a, at.b, at.h, at.row);
    struct kv_head kv = {at.b, at.h / (args->n_heads / args->n_kv_heads), worker};
    if (args->cache)
        set_pages(task, a, at.b, kv.h);
    else
        set_panels(task, run, kv);
    heed_foresee_keys(a, task);
    set_position(task, a, at.b, at.row);
    set_mask(task, &args->mask, at.b, at.h, at.row);
}

/* Tile `tile`, of sequence b, of a unit of heads. */
static struct place place_in(const struct attention_run *run, size_t b, size_t unit, size_t tile)
{
    const struct attention *a = &run->a;
    size_t group = a->args.n_heads / a->args.n_kv_heads, queries = heed_sequence_length(&a->queries, b);
    size_t most = task_rows_of(a, queries), row = (tile - run->first_tile[b]) * most;
    size_t left = rows_of(a, queries) - row;
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

/* Whether the next head is to be asked for, of so many keys and of so many bytes for all heads. Where queries are few,
 * requests find nothing to hide behind, and the third cache may have all heads. A wide core brings from there by itself
 * what few queries wait for: 12 batches of 12 heads beside each other, one query of 128 keys each, 1.21 without. */
static bool wants_next_head(const struct attention *a, size_t keys, double all)
{
    bool few = queries_of_head(a) < keys / 2;
    if (a->context->wide_core)
        return !few && heed_from_memory(a->context, all);
    return all > (few ? FAR_BYTES_PER_L2 : 1.0) * (double)a->context->l2;
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
    size_t first = first_in_reach(a, at.b), end = keys_in_reach(a, at.b), keys = end > first ? end - first : 0;
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
    task.partial = run->partial + index / run->splits * run->partial_floats;
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
    task.partial = run->partial + index * run->partial_floats;
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
            task.map = task.scratch + run->worker_floats - worker_map_floats(&run->a);
        }
        run->a.context->kernels->attention(&task);
        add_to_mean(&run->a, &task, at.h, mean->data + at.b * mean->batch_stride + at.row * mean->row_stride);
    }
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
    size_t blocks = key_blocks(&run->a), wanted = heed_ceil_div(SPLITS * heed_workers(run->a.context), run->a.tasks);
    wanted = wanted < 2 ? 2 : wanted < blocks ? wanted : blocks;
    run->split_keys = heed_ceil_div(blocks, wanted) * HEED_KEY_BLOCK;
    run->splits = heed_ceil_div(blocks * HEED_KEY_BLOCK, run->split_keys);
}

static void take_scratch(struct attention_run *run, struct heed_scratch *scratch)
{
    run->first_key = heed_scratch_take(scratch, run->a.args.batch + 1, sizeof(size_t));
    run->first_tile = heed_scratch_take(scratch, run->a.args.batch + 1, sizeof(size_t));
    run->packed_k = heed_scratch_take(scratch, packed_key_floats(&run->a), sizeof(float));
    run->packed_v = heed_scratch_take(scratch, packed_value_floats(&run->a), sizeof(float));
    run->partial_floats = partial_floats(&run->a);
    run->partial = heed_scratch_take(scratch, run->a.tasks * run->partial_floats, sizeof(float));
    if (run->a.loop == HEED_ATTENTION_LOOP_KEYS)
        split_keys(run);
    run->worker_floats = worker_floats(&run->a);
    run->worker_scratch = (float *)scratch->next;
}

heed_status heed_attention(const heed_context *context, const heed_attention_args *args,
                           const heed_workspace *workspace)
{
    struct heed_context fallback;
    struct attention_run run;
    struct heed_operands operands;
    heed_operands_begin(&operands, describe(&run.a, context, &fallback, args, NULL, false));
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

    take_scratch(&run, &scratch);
    run_attention(&run);
    heed_scratch_close(&scratch);
    return HEED_OK;
}
