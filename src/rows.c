/* SPDX-License-Identifier: MIT
 * Row operators share blocks of rows over threads.
 */
#include "rows.h"

/* Elements of a block, at most: some ten microseconds of work. Kernels take rows in turns, and the CPU prefetches what
 * is read next, but for the first rows of a block. */
#define BLOCK_ELEMENTS 131072

/* Rows up to here are close enough together to be read in turn: four are a kilobyte. */
#define CLOSE_COLS 64

/* Rows that kernels reduce at once, at most. */
#define GROUP 4

/* Blocks of whole units of rows, of which no two differ by more than one. */
struct row_blocks {
    void (*block)(const void *arg, size_t first, size_t count);
    const void *arg;
    size_t rows, blocks, unit;
};

/* Where a block begins. The last unit may have fewer rows. */
static size_t row_of_block(const struct row_blocks *b, size_t index)
{
    size_t units = heed_ceil_div(b->rows, b->unit), rest = units % b->blocks;
    size_t row = (units / b->blocks * index + (index < rest ? index : rest)) * b->unit;
    return row < b->rows ? row : b->rows;
}

static void run_block(void *arg, size_t index, size_t worker)
{
    const struct row_blocks *b = arg;
    size_t first = row_of_block(b, index);
    (void)worker;
    b->block(b->arg, first, row_of_block(b, index + 1) - first);
}

/* As many blocks for each worker; one where one does all. */
static size_t count_blocks(const struct heed_context *context, size_t rows, size_t cols, double work)
{
    if (!heed_is_shared(context, work))
        return 1;
    size_t workers = heed_workers(context), blocks = heed_ceil_div(heed_times(rows, cols), BLOCK_ELEMENTS);
    blocks = heed_times(heed_ceil_div(blocks, workers), workers);
    return blocks < rows ? blocks : rows;
}

void heed_run_rows(const struct heed_context *context, size_t rows, size_t cols, double work_each,
                   void (*block)(const void *arg, size_t first, size_t count), const void *arg)
{
    if (rows == 0 || cols == 0)
        return;
    double work = (double)rows * (double)cols * work_each;
    size_t blocks = count_blocks(context, rows, cols, work);
    if (blocks == 1) {
        block(arg, 0, rows);
        return;
    }
    struct row_blocks all = {block, arg, rows, blocks, rows / blocks < GROUP ? 1 : GROUP};
    heed_run(context, blocks, work, run_block, &all);
}

bool heed_rows_in_order(const struct heed_context *context, size_t rows, size_t cols)
{
    return heed_hw_prefetches(context) && cols > CLOSE_COLS &&
           heed_times(heed_times(rows, cols), 2 * sizeof(float)) >= context->in_order;
}

/* Far enough for memory to answer, near enough to stay in the first cache. */
#define WRITE_AHEAD 256

size_t heed_write_far(const struct heed_context *context, size_t rows, size_t cols, bool in_place)
{
    bool past = heed_hw_prefetches(context) && !in_place &&
                heed_times(heed_times(rows, cols), sizeof(float)) >= context->in_order;
    return past ? HEED_PAST_CACHES : heed_write_ahead(context);
}

/* Memory gives so much while a row of some thousand floats is computed several times. */
#define FAR_AHEAD 4096

size_t heed_far_ahead(const struct heed_context *context, size_t rows, size_t cols, size_t least)
{
    size_t bytes = heed_times(heed_times(rows, cols), 2 * sizeof(float));
    return heed_hw_prefetches(context) && bytes >= least ? FAR_AHEAD : 0;
}

size_t heed_write_ahead(const struct heed_context *context)
{
    return heed_hw_prefetches(context) ? 0 : WRITE_AHEAD;
}
