/* SPDX-License-Identifier: MIT
 * Row operators share blocks of rows over threads.
 */
#include "rows.h"

/* Elements of a block, at most: some microseconds of work, and 64 KiB of input. */
#define BLOCK_ELEMENTS 16384

/* Rows up to here are close enough together to be read in turn: four are a kilobyte. */
#define CLOSE_COLS 64

/* Rows that kernels reduce at once, at most. */
#define GROUP 4

struct row_blocks {
    void (*block)(const void *arg, size_t first, size_t count);
    const void *arg;
    size_t rows, step;
};

static void run_block(void *arg, size_t index, size_t worker)
{
    const struct row_blocks *b = arg;
    size_t first = index * b->step, left = b->rows - first;
    (void)worker;
    b->block(b->arg, first, left < b->step ? left : b->step);
}

/* Rows of a block, whole groups of them: one block where one worker does all, else as many for each. */
static size_t rows_of_block(const struct heed_context *context, size_t rows, size_t cols, double work)
{
    if (!heed_is_shared(context, work))
        return rows;
    size_t workers = heed_workers(context), blocks = heed_ceil_div(heed_times(rows, cols), BLOCK_ELEMENTS);
    size_t step = heed_ceil_div(rows, heed_times(heed_ceil_div(blocks, workers), workers));
    return step < GROUP ? step : heed_ceil_div(step, GROUP) * GROUP;
}

void heed_run_rows(const struct heed_context *context, size_t rows, size_t cols, double work_each,
                   void (*block)(const void *arg, size_t first, size_t count), const void *arg)
{
    if (rows == 0 || cols == 0)
        return;
    double work = (double)rows * (double)cols * work_each;
    struct row_blocks blocks = {block, arg, rows, rows_of_block(context, rows, cols, work)};
    heed_run(context, heed_ceil_div(rows, blocks.step), work, run_block, &blocks);
}

bool heed_rows_in_order(const struct heed_context *context, size_t rows, size_t cols)
{
    return heed_foresees(context) && cols > CLOSE_COLS &&
           heed_times(heed_times(rows, cols), 2 * sizeof(float)) >= context->in_order;
}

/* Far enough for memory to answer, near enough to stay in the first cache. */
#define WRITE_AHEAD 256

size_t heed_write_far(const struct heed_context *context, size_t rows, size_t cols, bool in_place)
{
    bool past =
        heed_foresees(context) && !in_place && heed_times(heed_times(rows, cols), sizeof(float)) >= context->in_order;
    return past ? HEED_PAST_CACHES : heed_write_ahead(context);
}

/* Memory gives so much while a row of some thousand floats is computed several times. */
#define FAR_AHEAD 4096

size_t heed_far_ahead(const struct heed_context *context, size_t rows, size_t cols, size_t least)
{
    size_t bytes = heed_times(heed_times(rows, cols), 2 * sizeof(float));
    return heed_foresees(context) && bytes >= least ? FAR_AHEAD : 0;
}

size_t heed_write_ahead(const struct heed_context *context)
{
    return heed_foresees(context) ? 0 : WRITE_AHEAD;
}
