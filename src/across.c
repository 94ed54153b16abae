/* SPDX-License-Identifier: MIT
 * A b in place by few rows, read across: some rows of it at a time, from their one end to the other, while c holds the
 * sums. A tile that goes down a few columns of b takes a piece of each row, where memory gives whole rows best.
 */
#include "matmul.h"

/* Up to so many rows read b across, if its rows are as long as ACROSS_COLS: of shorter ones a tile has a good part
 * anyway. It may lie in the last cache, out of which others may have driven it, from three times the second one on. */
#define ACROSS_ROWS 64
#define ACROSS_COLS 1024
#define LEAST_ACROSS_COLS 256
#define ACROSS_PER_L2 3

/* Rows that gain by few rows of b at once, or not at all, unless b lies far off. */
#define FEW_ACROSS 4

/* Where b comes from, at least: the last cache, what is half of it or more, or memory. */
enum origin { FROM_CACHES, FROM_HALF, FROM_MEMORY };

/* Up to how many rows; from where they gain, the first that fits: 5 to 31 from the caches, others, and those that would
 * be worth a copy, from half of the last one on; whether only by wide tiles, and only where rows of b share a set of
 * L1; how many rows of b at once, and prefetched how many floats ahead; and the most columns of a tile, or 0. Up to
 * four rows from memory want few rows of b, which is what a CPU can follow, and two or three narrow tiles, lest
 * requests come in bursts; four in the last cache or by rows that crowd L1, and more, whose sums would come and go too
 * often, want many. */
static const struct reading {
    size_t rows;
    enum origin from;
    bool wide, share_set;
    size_t depth, ahead, cols;
} readings[] = {
    {1, FROM_HALF, false, false, HEED_ROW_DEPTH, 256, 0},
    {FEW_ACROSS - 1, FROM_MEMORY, false, false, 8, 512, 32},
    {FEW_ACROSS - 1, FROM_HALF, false, false, 8, 512, 64},
    {FEW_ACROSS, FROM_HALF, true, true, 128, 256, 0},
    {FEW_ACROSS, FROM_MEMORY, false, false, 8, 512, 0},
    {FEW_ACROSS, FROM_HALF, true, false, 64, 256, 0},
    {FEW_ACROSS, FROM_HALF, false, false, 8, 512, 0},
    {HEED_COPIED_ROWS - 1, FROM_CACHES, false, false, 128, 256, 0},
    {ACROSS_ROWS, FROM_HALF, false, false, 256, 256, 0},
};

/* A core of AMD's with so small an L2, as before Zen 4, brings rows of b faster by itself, by one row of a, or by a few
 * where those of b crowd: {1, 2, 3} x 4096 x 4096 1.6, 1.2, 1.3. */
#define UNPREFETCHED_L2 (512 * 1024)

/* Of 2 to 4 rows, tiles of so few columns read too little of each row of b on their way down, and any of rows that
 * crowd L1 find lines driven out by others: they gain in the caches as well. */
#define NARROW_TILE 48

const struct heed_across heed_not_across = {0, 0, 0, false};

static bool gains_in_caches(const struct heed_context *context, size_t rows, size_t ld)
{
    if (rows == 1 || rows > FEW_ACROSS)
        return rows > 1;
    return heed_sliver(context->kernels, rows, true) <= NARROW_TILE || ld % HEED_CROWDED_ROW == 0;
}

static bool comes_from(const struct heed_context *context, enum origin from, size_t rows, double bytes, size_t ld)
{
    if (from == FROM_CACHES)
        return bytes >= ACROSS_PER_L2 * (double)context->l2 && gains_in_caches(context, rows, ld);
    return from == FROM_MEMORY ? heed_from_memory(context, bytes) : bytes >= (double)context->in_order;
}

static const struct reading *find_reading(const struct heed_context *context, size_t rows, size_t cols, double bytes,
                                          size_t ld)
{
    if (!heed_hw_prefetches(context) || cols < ACROSS_COLS)
        return NULL;
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        const struct reading *r = &readings[i];
        bool suits = (!r->wide || heed_has_wide_tiles(context)) && (!r->share_set || ld % HEED_SAME_SET == 0);
        if (rows <= r->rows && suits && comes_from(context, r->from, rows, bytes, ld))
            return r;
    }
    return NULL;
}

/* A CPU for which lines are prefetched into L1 brings what more than a few rows read of the last cache by itself, from
 * which a request that ends in L2 takes longer: 5 to 31 rows by 4 to 12 MB 1.0 to 1.2. But one of the highest tiles is
 * too slow for it where rows share sets (0.85 to 1.05). */
static bool brings_many_rows(const struct heed_context *context, size_t rows, double bytes, size_t ld)
{
    bool high = rows >= context->kernels->mr && rows <= context->kernels->tallest;
    return heed_prefetches_into_l1(context) && bytes < (double)context->in_order &&
           (!high || ld % HEED_SHARED_SETS != 0);
}

/* Whether so many rows prefetch what they read, or leave it to the CPU's prefetchers. */
static bool prefetches(const struct heed_context *context, size_t rows, double bytes, size_t ld)
{
    if (rows > FEW_ACROSS)
        return !brings_many_rows(context, rows, bytes, ld);
    return context->l2 > UNPREFETCHED_L2 || (rows > 1 && ld % HEED_SAME_SET != 0);
}

struct heed_across heed_find_across(const struct heed_context *context, size_t rows, size_t cols, size_t depth,
                                    size_t ld)
{
    double bytes = heed_bytes_of(cols, depth);
    const struct reading *reading = find_reading(context, rows, cols, bytes, ld);
    if (!reading)
        return heed_not_across;
    return (struct heed_across){reading->depth, reading->ahead, reading->cols, prefetches(context, rows, bytes, ld)};
}

/* A Zen 5 takes those of a b from memory, by more than a few rows where those of b share a set of L1. */
bool heed_goes_by_strips(const struct heed_context *context, size_t rows, size_t cols, size_t depth, size_t ld)
{
    size_t most = ld % HEED_SAME_SET == 0 ? HEED_STRIP_ROWS : FEW_ACROSS;
    return heed_prefetches_into_l1(context) && heed_are_wide_rows_from_memory(context, cols, depth) && rows > 1 &&
           rows <= most;
}

void heed_read_across(const struct heed_across *across, struct heed_panels *b)
{
    b->row_distance = across->ahead;
    b->most_tile_cols = across->cols;
    b->from_memory = across->prefetches;
    b->hw_prefetched_rows = ACROSS_ROWS;
}

size_t heed_across_cols(const struct heed_context *context, size_t cols)
{
    return heed_task_cols(context, cols, ACROSS_COLS, LEAST_ACROSS_COLS);
}
