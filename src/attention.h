/* SPDX-License-Identifier: MIT
 * What heed_attention (attention.c), its plan (attention_plan.c) and its hints to the kernels (attention_hints.c)
 * share.
 */
#ifndef HEED_ATTENTION_H
#define HEED_ATTENTION_H

#include "reading.h"

/* Everything about a call but its memory. */
struct attention {
    const struct heed_context *context;
    heed_attention_args args;
    struct heed_sequences queries, keys;
    const struct heed_sequences *coming; /* keys that the cache will have got when this runs, or NULL */
    bool lasting;                        /* planned for all keys that the cache may come to have */
    size_t query_rows, key_rows;         /* of all sequences */
    size_t longest_keys;                 /* in reach of any */
    bool pack_values;                    /* rows of v that are no whole panels, or lie apart, are packed too */
    bool keys_in_place;                  /* few queries: keys are not packed */
    bool heads_as_rows;                  /* few queries: those of all heads of a group are the rows of a task */
    size_t beside;                       /* heads of keys in place, beside each other, that such a task takes at once */
    heed_attention_loop loop;            /* the one that runs: see choose_loop */
    size_t task_rows, task_heads;
    size_t tasks; /* runs of query rows */
    float scale_log2e, cap, cap_slope;
    bool empty; /* nothing to compute, nor any scratch to do it in */
    /* Floats of scratch, if not: */
    size_t packed_k_floats, packed_v_floats; /* of all heads, or of one for each worker */
    size_t worker_floats, map_floats;        /* of each worker, and for its map of a task at the end of them */
    size_t partial_floats;                   /* of a task's results of all key blocks */
};

/* Keys and values of so many times the second cache are taken to come from memory. */
#define HEED_FAR_BYTES_PER_L2 8.0

/* Bytes of so many keys and values of every head. */
static inline double heed_bytes_of_keys(const struct attention *a, size_t keys)
{
    double heads = (double)a->args.batch * (double)a->args.n_kv_heads;
    return heads * (double)keys * (double)(a->args.head_dim + a->args.value_dim) * sizeof(float);
}

/* Queries that meet each head of k and v, at most. */
static inline size_t heed_queries_of_head(const struct attention *a)
{
    return a->args.n_kv_heads ? heed_times(a->args.seq_q, a->args.n_heads / a->args.n_kv_heads) : 0;
}

/* The cache's sequence for sequence b. */
static inline size_t heed_cached_sequence(const struct attention *a, size_t b)
{
    return a->args.cache_sequences ? a->args.cache_sequences[b] : b;
}

/* Keys of sequence b, of which its kv_length may cut some off. */
static inline size_t heed_whole_keys(const struct attention *a, size_t b)
{
    if (!a->args.cache)
        return heed_sequence_length(&a->keys, b);
    size_t cached = a->args.cache->length[heed_cached_sequence(a, b)];
    return a->coming ? cached + heed_sequence_length(a->coming, b) : cached;
}

static inline size_t heed_key_count(const struct attention *a, size_t b)
{
    return a->args.kv_lengths ? a->args.kv_lengths[b] : heed_whole_keys(a, b);
}

/* Sequence b's keys up to the last one that any of its queries may see. */
static inline size_t heed_keys_in_reach(const struct attention *a, size_t b)
{
    size_t keys = heed_key_count(a, b), queries = heed_sequence_length(&a->queries, b);
    return queries == 0 || (a->args.causal == HEED_CAUSAL_TOP_LEFT && queries < keys) ? queries : keys;
}

/* The first of them. */
static inline size_t heed_first_in_reach(const struct attention *a, size_t b)
{
    size_t keys = heed_key_count(a, b), queries = heed_sequence_length(&a->queries, b);
    if (a->args.causal == HEED_CAUSAL_TOP_LEFT || queries >= keys || a->args.window_left >= keys - queries)
        return 0;
    return keys - queries - a->args.window_left;
}

/* Rows that a sequence of so many queries gives to tasks. */
static inline size_t heed_rows_of(const struct attention *a, size_t queries)
{
    return a->heads_as_rows ? heed_times(queries, a->args.n_heads / a->args.n_kv_heads * a->beside) : queries;
}

/* Rows of a task: whole heads. */
static inline size_t heed_task_rows_of(const struct attention *a, size_t queries)
{
    return a->heads_as_rows && queries > 0 ? a->task_rows / queries * queries : a->task_rows;
}

/* Tasks of one head, or group, of sequence b. */
static inline size_t heed_tiles_of(const struct attention *a, size_t b)
{
    size_t queries = heed_sequence_length(&a->queries, b);
    return heed_ceil_div(heed_rows_of(a, queries), heed_task_rows_of(a, queries));
}

static inline size_t heed_key_blocks(const struct attention *a)
{
    return heed_ceil_div(a->longest_keys, HEED_KEY_BLOCK);
}

/* Checks all arguments but the operands' memory, and plans the call. */
heed_status heed_attention_describe(struct attention *a, const heed_context *context, struct heed_context *fallback,
                                    const heed_attention_args *args, const struct heed_sequences *coming, bool lasting);

/* Says how the keys and values of a task, which is all there but for what its rows see of them, are best read. */
void heed_plan_key_prefetch(const struct attention *a, struct heed_attention_task *task);

#endif
