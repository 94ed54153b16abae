/* SPDX-License-Identifier: MIT
 * How operands of products and attention are read: what the CPU prefetches, what comes from memory, and what is
 * prefetched for that reason. See doc/performance.md, "What is asked for ahead".
 */
#ifndef HEED_READING_H
#define HEED_READING_H

#include "internal.h"

/* Whether the CPU brings by itself what is read in the order of memory, and prefetches would get in its way. */
static inline bool heed_hw_prefetches(const struct heed_context *context)
{
    return context->in_order != HEED_CPU_ANY_ORDER;
}

/* Whether so many bytes come from memory: the last cache, of which in_order is half, is all that they could lie in. */
static inline bool heed_from_memory(const struct heed_context *context, double bytes)
{
    return heed_hw_prefetches(context) && bytes >= 2.0 * (double)context->in_order;
}

/* Whether a c of such sides is more than the last cache keeps of it. */
static inline bool heed_is_far_c(size_t m, size_t n)
{
    return heed_times(m, n) > HEED_UNCACHED_FLOATS;
}

/* Whether so many rows of k floats are taken to come from memory. */
static inline bool heed_rows_from_memory(const struct heed_context *context, size_t rows, size_t k)
{
    return heed_hw_prefetches(context) && heed_bytes_of(rows, k) >= (double)context->in_order;
}

/* The same of rows of which several are read at once, for a wide core, for which they are then prefetched in an order
 * of its own. */
static inline bool heed_are_wide_rows_from_memory(const struct heed_context *context, size_t rows, size_t k)
{
    return context->wide_core && heed_rows_from_memory(context, rows, k);
}

/* How so many rows of a product are read where whole lines of them do not pay. */
static inline enum heed_reading heed_reading_of(const struct heed_context *context, size_t rows, size_t k)
{
    if (context->wide_core)
        return HEED_READ_PLAINLY;
    return heed_rows_from_memory(context, rows, k) ? HEED_READ_FROM_MEMORY : HEED_READ_EIGHTS;
}

/* The same of a small product, by a context or none, and what is prefetched of its rows. */
static inline enum heed_reading heed_reading_of_small(const struct heed_context *context, size_t *ahead)
{
    bool wide_core = context ? context->wide_core : heed_core_is_wide();
    *ahead = wide_core ? 0 : HEED_NO_PREFETCH;
    return wide_core ? HEED_READ_PLAINLY : HEED_READ_EIGHTS;
}

/* Whether so few columns go across rows by all steps of k at once, of which parts would be rows with gaps. */
#define HEED_ACROSS_DEPTH 16384

static inline bool heed_goes_across(const struct heed_context *context, size_t n, size_t k)
{
    return n <= context->kernels->across_cols && k <= HEED_ACROSS_DEPTH && !context->wide_core;
}

/* Of the second cache, what keys and values, or rows of a product, may take. */
#define HEED_L2_SHARE 0.75

/* What packing so many rows prefetches. From the last cache a request that ends in L2 holds up a wide core more than it
 * helps: columns by 12 to 64 rows 0.98 to 1.24 without. */
static inline enum heed_pack_prefetch heed_pack_prefetch(const struct heed_context *context, size_t rows, size_t k)
{
    if (!context->wide_core || !heed_hw_prefetches(context))
        return HEED_PACK_PREFETCH_BELOW;
    return heed_are_wide_rows_from_memory(context, rows, k) ? HEED_PACK_PREFETCH_RUNS : HEED_PACK_PREFETCH_NOTHING;
}

/* Says of a b of so many bytes up to how many rows its lines are better not prefetched. Of memory a request for each
 * reaches no more than half of what it gives; in the last cache, of which in_order is half, requests hide its latency
 * from more rows, and best where it holds b in part. */
static inline void heed_leave_to_hw(const struct heed_context *context, double bytes, struct heed_panels *b)
{
    b->from_memory = heed_from_memory(context, bytes);
    b->hw_prefetched_rows = !heed_hw_prefetches(context)         ? 0
                            : b->from_memory                     ? HEED_HW_PREFETCHED_ROWS
                            : bytes >= (double)context->in_order ? HEED_HW_PREFETCHED_MIXED_ROWS
                                                                 : HEED_HW_PREFETCHED_CACHED_ROWS;
}

/* The least columns of a tile of HEED_HW_PREFETCHED_CACHED_ROWS rows that gain if a b in the last cache is not
 * prefetched: keys of several blocks at once; and whole values. Narrower ones gain only where memory is waited for. */
#define HEED_CACHED_COLS 64

/* Whether tiles are so wide that few rows gain wherever b lies. */
static inline bool heed_has_wide_tiles(const struct heed_context *context)
{
    return context->kernels->tile_cols[HEED_HW_PREFETCHED_CACHED_ROWS - 1] >= HEED_CACHED_COLS;
}

/* The distance of rows that few columns go across: nothing is prefetched where they lie in L2. With vectors of eight
 * prefetches still gain from half of it on (1.1 to 1.2), with wider ones they take 1.1 times as long up to
 * HEED_L2_SHARE. */
static inline size_t heed_across_distance(const struct heed_context *context, size_t rows, size_t k)
{
    double bytes = heed_bytes_of(rows, k);
    double share = heed_has_wide_tiles(context) ? HEED_L2_SHARE : 0.5;
    return !context->wide_core && bytes <= share * (double)context->l2 ? HEED_NO_PREFETCH : 0;
}

/* Whether lines that few rows read are best prefetched into L1, shortly before: Zen 5 brings little more than half of
 * what the last cache can give by requests of L2. Narrower tiles, of AVX2, took 1.05 to 1.25 times as long. */
static inline bool heed_prefetches_into_l1(const struct heed_context *context)
{
    return context->wide_core && heed_has_wide_tiles(context);
}

#endif
