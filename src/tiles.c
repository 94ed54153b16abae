/* SPDX-License-Identifier: MIT
 * A product cut into blocks of rows and columns, which are its tasks. The cut never shows in the
 * bits: every element is one chain.
 */
#include "internal.h"

/* Rows of a block: a multiple of every table's tile height (3, 4, 6 and 8). */
#define LEAST_ROWS 24
#define BLOCK_ROWS 96

/* Columns of a block: a multiple of the widest tile, and few enough that their k x columns floats of
 * b stay in half of a small L2 (256 KiB) while the row blocks pass over them. */
#define LEAST_COLS 64
#define BLOCK_FLOATS 65536

struct plan {
    const struct heed_kernels *kernels;
    const struct heed_product *product;
    size_t rows, cols, row_blocks;
};

static void run_block(void *arg, size_t index, size_t worker)
{
    const struct plan *plan = arg;
    const struct heed_product *p = plan->product;
    size_t i = index % plan->row_blocks * plan->rows, j = index / plan->row_blocks * plan->cols;
    size_t rows = p->m - i < plan->rows ? p->m - i : plan->rows, cols = p->n - j < plan->cols ? p->n - j : plan->cols;
    struct heed_panels b = p->b;
    struct heed_epilogue epilogue = p->epilogue;
    (void)worker;
    b.data += j / HEED_PANEL * b.panel;
    if (epilogue.bias)
        epilogue.bias += j;
    if (epilogue.residual)
        epilogue.residual += i * epilogue.ld_residual + j;
    plan->kernels->gemm(rows, cols, p->k, p->a + i * p->lda, p->lda, &b, p->c + i * p->ldc + j, p->ldc, &epilogue);
}

static size_t block_cols(const struct heed_product *p)
{
    size_t cols = BLOCK_FLOATS / (p->k ? p->k : 1) / LEAST_COLS * LEAST_COLS;
    return cols < LEAST_COLS ? LEAST_COLS : cols;
}

static size_t tasks_of(const struct plan *plan)
{
    return plan->row_blocks * heed_ceil_div(plan->product->n, plan->cols);
}

/* Smaller blocks until every worker finds several, so that uneven speed evens out. */
static void cut_for_workers(struct plan *plan, size_t workers)
{
    while (tasks_of(plan) < 4 * workers && (plan->rows > LEAST_ROWS || plan->cols > LEAST_COLS)) {
        if (plan->rows > LEAST_ROWS && plan->product->m > LEAST_ROWS)
            plan->rows /= 2;
        else if (plan->cols > LEAST_COLS)
            plan->cols = plan->cols / 2 / LEAST_COLS * LEAST_COLS + (plan->cols / 2 < LEAST_COLS ? LEAST_COLS : 0);
        else
            return;
        plan->row_blocks = heed_ceil_div(plan->product->m, plan->rows);
    }
}

const float heed_nothing[HEED_PANEL];

void heed_product_run(const struct heed_context *context, const struct heed_product *given)
{
    if (given->m == 0 || given->n == 0)
        return;
    struct heed_product copy = *given, *product = &copy;
    if (product->k == 0) {
        product->a = heed_nothing;
        product->lda = 0;
        product->b = (struct heed_panels){heed_nothing, 0, 0};
    }
    struct plan plan = {context->kernels, product, BLOCK_ROWS, block_cols(product), 0};
    plan.row_blocks = heed_ceil_div(product->m, plan.rows);
    if (heed_workers(context) > 1)
        cut_for_workers(&plan, heed_workers(context));
    double work = (double)product->m * (double)product->n * ((double)product->k + 1.0);
    heed_run(context, tasks_of(&plan), work, run_block, &plan);
}
