/* SPDX-License-Identifier: MIT
 * Row operators share blocks of rows over threads.
 */
#include "rows.h"

/* Elements of a block: some microseconds of work, and 64 KiB of input. */
#define BLOCK_ELEMENTS 16384

/* Rows up to here are close enough together to be read in turn: four are a kilobyte. */
#define CLOSE_COLS 64

struct row_blocks {
    void (*block)(const void *arg, size_t first, size_t count);
    const void *arg;
    size_t rows, step;
    size_t at_once; /* rows of a call of block */
};

static void run_rows(void *arg, size_t index, size_t worker)
{
    const struct row_blocks *b = arg;
    size_t first = index * b->step, end = b->rows - first < b->step ? b->rows : first + b->step;
    (void)worker;
    for (size_t count; first < end; first += count) {
        count = end - first < b->at_once ? end - first : b->at_once;
        b->block(b->arg, first, count);
    }
}

static void run_blocks(const struct heed_context *context, size_t cols, struct row_blocks *blocks)
{
    double work = (double)blocks->rows * (double)cols * HEED_ROW_WORK;
    blocks->step = cols < BLOCK_ELEMENTS ? BLOCK_ELEMENTS / (cols ? cols : 1) : 1;
    heed_run(context, heed_ceil_div(blocks->rows, blocks->step), work, run_rows, blocks);
}

void heed_run_rows(const struct heed_context *context, size_t rows, size_t cols,
                   void (*block)(const void *arg, size_t first, size_t count), const void *arg)
{
    struct row_blocks blocks = {.block = block, .arg = arg, .rows = rows, .at_once = rows};
    run_blocks(context, cols, &blocks);
}

bool heed_rows_in_order(const struct heed_context *context, size_t rows, size_t cols)
{
    return heed_foresees(context) && cols > CLOSE_COLS &&
           heed_times(heed_times(rows, cols), 2 * sizeof(float)) >= context->in_order;
}

void heed_run_row_groups(const struct heed_context *context, size_t rows, size_t cols,
                         void (*block)(const void *arg, size_t first, size_t count), const void *arg)
{
    struct row_blocks blocks = {.block = block, .arg = arg, .rows = rows};
    blocks.at_once = heed_rows_in_order(context, rows, cols) ? 1 : rows;
    run_blocks(context, cols, &blocks);
}

/* Far enough for memory to answer, near enough to stay in the first cache. */
#define WRITE_AHEAD 256

size_t heed_write_ahead(const struct heed_context *context)
{
    return heed_foresees(context) ? 0 : WRITE_AHEAD;
}
