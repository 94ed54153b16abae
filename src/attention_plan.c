/* SPDX-License-Identifier: MIT
 * What a call of heed_attention is about: whether its arguments go together, which loop it takes, what it packs, and
 * how much scratch that needs.
 */
#include "attention.h"

/* Query rows of a task: whole tiles of most tables (of 12, 16 or 24 rows; three of 16 where one has up to 20). Where a
 * map of each head is needed for their mean, it is one tile. */
#define TASK_ROWS 48
#define MEAN_TASK_ROWS 16
_Static_assert(TASK_ROWS >= HEED_ATTENTION_ROWS, "rows of heads beside each other, a single tile, are one task");

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

/* Heads for each worker from which on it does not matter that some get one more. */
#define FULL_SHARES 8

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
    if (a->args.scale != HEED_SCALE_VALUE && a->args.scale_value != 0.0f) /* forgotten, as a rule */
        return HEED_ERR_VALUE;
    if (!heed_is_finite((double)a->scale_log2e) || !(a->args.softcap >= 0.0f))
        return HEED_ERR_VALUE;
    if (a->args.softcap > 0.0f) {
        a->cap = (float)((double)a->args.softcap * LOG2_E);
        a->cap_slope = (float)(scale_of(&a->args) / (double)a->args.softcap);
    }
    return heed_is_finite((double)a->cap) && heed_is_finite((double)a->cap_slope) ? HEED_OK : HEED_ERR_VALUE;
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
        if (a->args.kv_lengths[b] > (is_for_any_keys(a) ? a->args.cache->capacity : heed_whole_keys(a, b)))
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
        if (heed_cached_sequence(a, b) >= cache->batch)
            return HEED_ERR_INDEX;
        if (!is_for_any_keys(a) && heed_whole_keys(a, b) > args->seq_kv)
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
        status = heed_kv_cache_check_pages(a->args.cache, heed_cached_sequence(a, b), heed_first_in_reach(a, b),
                                           heed_keys_in_reach(a, b));
    return status;
}

/* Sequences of equal size are not walked: a batch may be any number. */
static size_t count_tasks(const struct attention *a)
{
    if (!a->queries.offsets)
        return heed_times(heed_times(a->args.batch, heed_tiles_of(a, 0)), a->task_heads);
    size_t tiles = 0;
    for (size_t b = 0; b < a->args.batch; b++)
        tiles = heed_plus(tiles, heed_tiles_of(a, b));
    return heed_times(tiles, a->task_heads);
}

static bool pays_to_pack_values(const struct attention *a)
{
    const struct heed_kernels *kernels = a->context->kernels;
    size_t stride = a->args.v.row_stride, tile = kernels->tile_cols[kernels->narrow_mr - 1];
    bool reads_well = tile >= a->args.value_dim && stride % (SAME_SETS / sizeof(float)) != 0;
    return stride > a->args.value_dim && heed_queries_of_head(a) >= (reads_well ? MANY_QUERIES : SOME_QUERIES);
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
        return a->args.batch ? heed_keys_in_reach(a, 0) : 0;
    size_t longest = 0;
    for (size_t b = 0; b < a->args.batch; b++)
        longest = heed_keys_in_reach(a, b) > longest ? heed_keys_in_reach(a, b) : longest;
    return longest;
}

/* The fewest keys that are left in place for so many rows: transposed on their way to registers, which takes less than
 * packing them. */
static size_t keys_to_leave(const struct attention *a, size_t rows)
{
    const struct heed_kernels *kernels = a->context->kernels;
    if (a->args.cache || a->args.head_dim < IN_PLACE_DIM || rows > HEED_IN_PLACE_ROWS ||
        rows > kernels->transposed_rows)
        return SIZE_MAX;
    size_t keys = rows <= kernels->few_cols ? 0 : IN_PLACE_KEYS_PER_ROW * rows;
    return keys > IN_PLACE_KEYS ? keys : IN_PLACE_KEYS;
}

/* Whether the rows of all heads are parts of longer rows of memory. */
static bool lie_beside(const heed_heads *tensor, size_t heads, size_t dim)
{
    return tensor->row_stride >= dim + HEED_PANEL && tensor->head_stride <= tensor->row_stride / heads;
}

/* Whether keys and values in place are taken to come from memory. What a Zen 5's last cache holds half of comes faster
 * head by head. */
static bool come_from_memory(const struct attention *a)
{
    double bytes = heed_bytes_of_keys(a, a->longest_keys), l2 = (double)a->context->l2;
    return bytes > (heed_prefetches_into_l1(a->context) ? (double)a->context->in_order : HEED_FAR_BYTES_PER_L2 * l2);
}

/* Heads of keys left in place that a task takes together, lest it read a part of each row of memory: as many as divide
 * all and have room in a tile. Calls that want the loop over heads get it. */
static size_t heads_beside(const struct attention *a)
{
    const heed_attention_args *args = &a->args;
    size_t rows = heed_queries_of_head(a), all = args->n_kv_heads;
    if (!a->keys_in_place || a->pack_values || !come_from_memory(a) || args->loop == HEED_ATTENTION_LOOP_HEADS ||
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

/* What a task is: some rows of one head or, few of them, of several; of all heads in turn where their mean is wanted,
 * which adds them in order. */
static void choose_tasks(struct attention *a)
{
    const heed_attention_args *args = &a->args;
    bool mean = args->mean_map.data != NULL;
    a->keys_in_place = a->longest_keys >= keys_to_leave(a, heed_queries_of_head(a));
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

/* Packed keys of all sequences, each rounded up to a panel. */
static size_t padded_keys(const struct attention *a)
{
    if (reach_is_uniform(a))
        return heed_times(a->args.batch, heed_pad(heed_keys_in_reach(a, 0)));
    size_t total = 0;
    for (size_t b = 0; b < a->args.batch; b++)
        total = heed_plus(total, heed_pad(heed_keys_in_reach(a, b)));
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
    size_t keys = heed_pad(keys_to_leave(a, heed_queries_of_head(a)) - 1);
    return heed_times(heed_times(a->loop == HEED_ATTENTION_LOOP_HEADS ? workers : heads, keys), a->args.head_dim);
}

static size_t packed_value_floats(const struct attention *a)
{
    return a->pack_values ? packed_floats(a, heed_pad(a->args.value_dim)) : 0;
}

/* Of one task, where only the mean over heads is wanted. */
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
                     a->map_floats);
}

static size_t partial_floats(const struct attention *a)
{
    size_t rows = heed_rows_of(a, a->args.seq_q);
    if (a->loop != HEED_ATTENTION_LOOP_KEYS)
        return 0;
    return heed_times(heed_times(rows < a->task_rows ? rows : a->task_rows, heed_key_blocks(a)),
                      heed_attention_partial(1, a->args.value_dim, 1));
}

static bool is_empty(const struct attention *a)
{
    return a->args.batch == 0 || a->args.n_heads == 0 || a->query_rows == 0 ||
           (a->args.value_dim == 0 && !a->args.log_sum_exp.data &&
            ((!a->args.map.data && !a->args.mean_map.data) || a->args.seq_kv == 0));
}

static void find_sizes(struct attention *a)
{
    a->packed_k_floats = packed_key_floats(a);
    a->packed_v_floats = packed_value_floats(a);
    a->map_floats = worker_map_floats(a);
    a->worker_floats = worker_floats(a);
    a->partial_floats = partial_floats(a);
}

heed_status heed_attention_describe(struct attention *a, const heed_context *context, struct heed_context *fallback,
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
    a->empty = is_empty(a);
    if (!a->empty)
        find_sizes(a);
    return set_scale(a);
}
