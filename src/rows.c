/* SPDX-License-Identifier: MIT
 * Row operators share blocks of rows over threads.
 */
#include "rows.h"

/* Elements of a block: some microseconds of work, and 64 KiB of input. */
#define BLOCK_ELEMENTS 16384

struct row_blocks {
    void (*block)(const void *arg, size_t first, size_t count);
    const void *arg;
    size_t rows, step;
};

static void run_rows(void *arg, size_t index, size_t worker)
{
    const struct row_blocks *b = arg;
    size_t first = index * b->step;
    (void)worker;
    b->block(b->arg, first, b->rows - first < b->step ? b->rows - first : b->step);
}

void heed_run_rows(const struct heed_context *context, size_t rows, size_t cols,
                   void (*block)(const void *arg, size_t first, size_t count), const void *arg)
{
    struct row_blocks blocks = {block, arg, rows, BLOCK_ELEMENTS / (cols ? cols : 1)};
    if (blocks.step == 0)
        blocks.step = 1;
    heed_run(context, heed_ceil_div(rows, blocks.step), (double)rows * (double)cols * HEED_ROW_WORK, run_rows, &blocks);
}
