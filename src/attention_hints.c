/* SPDX-License-Identifier: MIT
 * Where the keys and values of an attention task lie, and so how its tiles had better prefetch them.
 */
#include "attention.h"

/* Few rows from which on keys are prefetched far ahead, in the order of memory: of three times the second cache, which
 * others may have driven from the last one; of half the last cache; and of memory, which gives fewer rows all it has
 * by itself. Values are by no fewer than PREFETCHING_ROWS, if a tile covers them. The least keys of a
 * sequence or a page, as what follows these need not be what is read next, and the most floats of the keys that a tile
 * reads. */
#define PREFETCHING_ROWS 4
#define PREFETCHING_MIXED_ROWS 3
#define PREFETCHING_FAR_ROWS 6
#define PREFETCHING_PER_L2 3
#define PREFETCHING_KEYS 1024
#define PREFETCHING_FLOATS 12288

/* Rows from which on keys and values are prefetched into L1 if they lie in the last cache, and up to which values are
 * if they come from memory. */
#define L1_CACHED_ROWS 3
#define L1_FAR_ROWS 32

/* The fewest rows that prefetch so many bytes of keys and values. */
static size_t prefetching_rows(const struct attention *a, double bytes)
{
    bool far = heed_from_memory(a->context, bytes);
    if (!heed_has_wide_tiles(a->context))
        return far ? PREFETCHING_ROWS : SIZE_MAX;
    if (!heed_hw_prefetches(a->context) || bytes < PREFETCHING_PER_L2 * (double)a->context->l2)
        return SIZE_MAX;
    return far                                     ? PREFETCHING_FAR_ROWS
           : bytes >= (double)a->context->in_order ? PREFETCHING_MIXED_ROWS
                                                   : PREFETCHING_ROWS;
}

/* Keys that lie one after the other. */
static size_t keys_of_run(const struct heed_attention_task *task)
{
    return task->page_keys > 0 ? task->page_keys : task->keys;
}

/* Whether some rows of a task prefetch keys: a tile reads them as fast as memory gives. Of memory not where values that
 * no tile covers, or no wide one of so many rows, come a few keys at a time, which requests would disturb. */
static bool prefetches_keys(const struct attention *a, const struct heed_attention_task *task, size_t rows,
                            double bytes)
{
    const struct heed_kernels *kernels = a->context->kernels;
    if (rows < prefetching_rows(a, bytes) || rows > kernels->tallest)
        return false;
    size_t cols = kernels->tile_cols[rows - 1];
    size_t covered = heed_has_wide_tiles(a->context) ? cols : kernels->tile_cols[0];
    bool far = heed_from_memory(a->context, bytes) && rows <= HEED_HW_PREFETCHED_ROWS;
    return keys_of_run(task) >= PREFETCHING_KEYS && a->args.head_dim * cols <= PREFETCHING_FLOATS &&
           (!far || a->args.value_dim <= covered);
}

static bool prefetches_values(const struct attention *a, size_t rows)
{
    return heed_has_wide_tiles(a->context) && rows >= PREFETCHING_ROWS && rows <= HEED_HW_PREFETCHED_ROWS &&
           a->args.value_dim <= a->context->kernels->tile_cols[rows - 1];
}

static void prefetch_values_into_l1(struct heed_panels *v, bool far)
{
    v->prefetch_l1 = true;
    v->from_memory = far;
    v->hw_prefetched_rows = L1_FAR_ROWS;
}

/* What a Zen 5 prefetches into L1 of keys in place, and of values beside them of which the last cache holds a part at
 * the most. Other keys than these and a cache's are copied just before they are used. */
static void prefetch_in_place_into_l1(const struct attention *a, struct heed_attention_task *task, double bytes)
{
    task->k.prefetch_l1 = true;
    if (bytes >= (double)a->context->in_order)
        prefetch_values_into_l1(&task->v, heed_from_memory(a->context, bytes));
}

/* What it prefetches of a cache: keys and values for few rows, one or two of them where not all lies in the last cache;
 * and values in memory for more. In the order of memory where what follows is read next, and at least a quarter of it
 * comes from there. */
static void prefetch_cache_into_l1(const struct attention *a, struct heed_attention_task *task, size_t rows,
                                   double bytes)
{
    bool cached = bytes < (double)a->context->in_order, far = heed_from_memory(a->context, bytes);
    bool in_order = 2.0 * bytes >= 3.0 * (double)a->context->in_order && keys_of_run(task) >= PREFETCHING_KEYS;
    if (cached && rows < L1_CACHED_ROWS)
        return;
    if (rows <= HEED_HW_PREFETCHED_TALLEST) {
        task->k.prefetch_l1 = true;
        task->k.from_memory = in_order;
        task->k.hw_prefetched_rows = HEED_HW_PREFETCHED_TALLEST;
    }
    if (rows <= HEED_HW_PREFETCHED_TALLEST || (far && rows <= L1_FAR_ROWS))
        prefetch_values_into_l1(&task->v, in_order);
}

static void prefetch_into_l1(const struct attention *a, struct heed_attention_task *task, size_t rows, double bytes)
{
    if (bytes <= HEED_L2_SHARE * (double)a->context->l2)
        return;
    if (a->keys_in_place)
        prefetch_in_place_into_l1(a, task, bytes);
    else if (a->args.cache)
        prefetch_cache_into_l1(a, task, rows, bytes);
}

/* What tiles of vectors of eight and four read in the order of memory of a cache that lies there: keys of four rows and
 * more of one tile, and values that the widest tile covers, with requests as near as those of wider tiles into L1
 * (1.05 to 1.2). Three rows, or a cache that the last one holds in part, would lose by it (0.86 to 1.1), and so would
 * wider values, which are read a few keys at a time (0.81 to 1.09). */
static void prefetch_far_cache(const struct attention *a, struct heed_attention_task *task, size_t rows, double bytes)
{
    const struct heed_kernels *kernels = a->context->kernels;
    if (!a->args.cache || !heed_hw_prefetches(a->context) || !heed_from_memory(a->context, bytes) ||
        rows < PREFETCHING_ROWS || rows > kernels->tallest || keys_of_run(task) < PREFETCHING_KEYS)
        return;
    task->k.prefetch_l1 = task->k.from_memory = true;
    task->k.hw_prefetched_rows = HEED_HW_PREFETCHED_TALLEST;
    if (a->args.value_dim <= kernels->tile_cols[0])
        prefetch_values_into_l1(&task->v, true);
}

/* Whether a head's keys and values exceed L2, or a CPU of vectors as wide as Zen 5's computes as fast as that gives
 * them: 512 to 2048 keys of 64 to 256 dimensions 1.01 to 1.03 on it. */
static bool wants_tall_tiles(const struct attention *a, size_t keys)
{
    double bytes = heed_bytes_of(keys, a->args.head_dim + a->args.value_dim);
    return a->context->wide_core || bytes >= (double)a->context->l2;
}

/* Whether tiles of vectors of eight and four leave keys and values to a CPU that follows them, as if L2 held them: they
 * take so long for a panel that requests for the next one are in their way. Packed keys, and values beside them,
 * wherever they lie (512 queries of 770 keys and more 1.07 to 1.1, 200000 keys 1.03); a cache, or few queries' keys in
 * place, from the last cache (1.1 to 1.2), as in memory they lie in many places (0.9 to 1.03). */
static bool come_by_themselves(const struct attention *a, double bytes)
{
    bool packed = !a->args.cache && !a->keys_in_place;
    return heed_hw_prefetches(a->context) && !heed_has_wide_tiles(a->context) &&
           (packed || bytes < (double)a->context->in_order);
}

/* The most columns of a tile of packed keys; 0 leaves it to the tiles, by which seven rows take three panels lest they
 * want for registers. Those do not divide a block, and no other tile than the widest of its height prefetches what
 * comes next: of keys that the last cache does not hold 13 and 14 rows take 1.06 to 1.16 times as long. Four panels are
 * what five and six rows take anyway. */
static size_t most_key_cols(const struct attention *a, size_t rows, double bytes)
{
    bool cached = !heed_hw_prefetches(a->context) || bytes < (double)a->context->in_order;
    return cached || a->context->wide_core || rows <= HEED_HW_PREFETCHED_TALLEST ? 0 : HEED_KEY_BLOCK / 4;
}

/* Keys and values come from the same place, but keys of some blocks go together. */
void heed_plan_key_prefetch(const struct attention *a, struct heed_attention_task *task)
{
    double bytes = heed_bytes_of_keys(a, task->keys);
    size_t width = a->context->kernels->tile_cols[HEED_HW_PREFETCHED_CACHED_ROWS - 1], rows = task->rows / task->heads;
    struct heed_panels *k = &task->k, *v = &task->v;
    bool prefetches = prefetches_keys(a, task, rows, bytes);
    heed_leave_to_hw(a->context, bytes, v);
    if (v->hw_prefetched_rows == HEED_HW_PREFETCHED_CACHED_ROWS &&
        (!heed_has_wide_tiles(a->context) || width < a->args.value_dim))
        v->hw_prefetched_rows = HEED_HW_PREFETCHED_MIXED_ROWS;
    k->hw_prefetched_rows = prefetches || (v->from_memory && rows > HEED_HW_PREFETCHED_ROWS)
                                ? HEED_HW_PREFETCHED_TALLEST
                                : v->hw_prefetched_rows;
    k->from_memory = prefetches || (v->from_memory && rows == 1);
    k->most_tile_cols = most_key_cols(a, rows, bytes);
    if (a->keys_in_place)
        k->hw_prefetched_rows = 0;
    else
        v->from_memory = k->from_memory;
    if (prefetches && prefetches_values(a, rows))
        v->hw_prefetched_rows = HEED_HW_PREFETCHED_ROWS;
    if (heed_prefetches_into_l1(a->context))
        prefetch_into_l1(a, task, rows, bytes);
    else if (!heed_has_wide_tiles(a->context))
        prefetch_far_cache(a, task, rows, bytes);
    if (come_by_themselves(a, bytes))
        k->in_l2 = v->in_l2 = true;
    k->reading = a->context->wide_core ? HEED_READ_PLAINLY : HEED_READ_EIGHTS;
    task->tall = wants_tall_tiles(a, task->keys);
}
