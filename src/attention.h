/* SPDX-License-Identifier: MIT
 * What heed_attention (attention.c) and its hints to the kernels (attention_hints.c) share.
 */
#ifndef HEED_ATTENTION_H
#define HEED_ATTENTION_H

#include "internal.h"

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
};

/* Bytes of so many keys and values of every head. */
static inline double heed_bytes_of_keys(const struct attention *a, size_t keys)
{
    double heads = (double)a->args.batch * (double)a->args.n_kv_heads;
    return heads * (double)keys * (double)(a->args.head_dim + a->args.value_dim) * sizeof(float);
}

/* Says how the keys and values of a task, which is all there but for what its rows see of them, are best read. */
void heed_foresee_keys(const struct attention *a, struct heed_attention_task *task);

#endif
