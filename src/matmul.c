/* SPDX-License-Identifier: MIT
 * heed_matmul: blocks of b's columns are packed and multiplied in turn.
 */
#include "internal.h"

/* Floats of b that are packed at once: 1 MiB, unless 64 columns are more. */
#define PACKED_FLOATS 262144
#define LEAST_COLS 64

/* Products whose scratch fits here need no allocation. */
#define SMALL_FLOATS 4096

struct matmul {
    bool transpose_a, transpose_b;
    size_t m, n, k;
    const float *a, *b;
    size_t lda, ldb;
    float *packed, *a_rows;
    size_t first; /* column of b that the packed block begins with */
    size_t cols;
    const struct heed_kernels *kernels;
};

static size_t columns_at_once(size_t n, size_t k)
{
    size_t cols = PACKED_FLOATS / (k ? k : 1) / LEAST_COLS * LEAST_COLS;
    cols = cols < LEAST_COLS ? LEAST_COLS : cols;
    return cols < n ? cols : heed_pad(n);
}

static size_t packed_floats(size_t n, size_t k)
{
    return heed_times(columns_at_once(n, k), k);
}

static size_t transposed_floats(heed_transpose transpose_a, size_t m, size_t k)
{
    return transpose_a == HEED_TRANSPOSE ? heed_times(m, k) : 0;
}

static size_t scratch_parts(heed_transpose transpose_a, size_t m, size_t n, size_t k)
{
    if (m == 0 || n == 0 || k == 0)
        return 0;
    return heed_plus(heed_scratch_part(packed_floats(n, k), sizeof(float)),
                     heed_scratch_part(transposed_floats(transpose_a, m, k), sizeof(float)));
}

static heed_status check_transpose(heed_transpose transpose)
{
    return transpose == HEED_NO_TRANSPOSE || transpose == HEED_TRANSPOSE ? HEED_OK : HEED_ERR_ENUM;
}

heed_status heed_matmul_workspace(const heed_context *context, heed_transpose transpose_a, heed_transpose transpose_b,
                                  size_t m, size_t n, size_t k, size_t *bytes)
{
    struct heed_context fallback;
    const struct heed_context *resolved;
    heed_status status = heed_context_resolve(context, &fallback, &resolved);
    if (status != HEED_OK)
        return status;
    if (check_transpose(transpose_a) != HEED_OK || check_transpose(transpose_b) != HEED_OK)
        return HEED_ERR_ENUM;
    return heed_workspace_answer(scratch_parts(transpose_a, m, n, k), bytes);
}

static void pack_panel(void *arg, size_t index, size_t worker)
{
    const struct matmul *mm = arg;
    size_t j = index * HEED_PANEL, cols = mm->cols - j < HEED_PANEL ? mm->cols - j : HEED_PANEL;
    const float *b = mm->b + (mm->first + j) * (mm->transpose_b ? mm->ldb : 1);
    (void)worker;
    mm->kernels->pack(mm->transpose_b, cols, mm->k, b, mm->ldb, mm->packed + index * HEED_PANEL * mm->k);
}

/* Task r makes 64 rows of the transposed a. */
static void transpose_rows(void *arg, size_t index, size_t worker)
{
    const struct matmul *mm = arg;
    size_t i = index * 64, rows = mm->m - i < 64 ? mm->m - i : 64;
    (void)worker;
    mm->kernels->transpose(mm->k, rows, mm->a + i, mm->lda, mm->a_rows + i * mm->k, mm->k);
}

static void multiply(const struct heed_context *context, struct matmul *mm, float *c, size_t ldc,
                     const struct heed_epilogue *epilogue)
{
    struct heed_product product = {mm->m, 0,   mm->k,    mm->a, mm->lda, {mm->packed, HEED_PANEL, HEED_PANEL * mm->k},
                                   NULL,  ldc, *epilogue};
    if (mm->transpose_a && mm->k > 0) {
        heed_run(context, heed_ceil_div(mm->m, 64), (double)mm->m * (double)mm->k, transpose_rows, mm);
        product.a = mm->a_rows;
        product.lda = mm->k;
    }
    size_t step = columns_at_once(mm->n, mm->k);
    for (mm->first = 0; mm->first < mm->n; mm->first += step) {
        mm->cols = mm->n - mm->first < step ? mm->n - mm->first : step;
        if (mm->k > 0)
            heed_run(context, heed_ceil_div(mm->cols, HEED_PANEL), (double)mm->cols * (double)mm->k, pack_panel, mm);
        product.n = mm->cols;
        product.c = c + mm->first;
        heed_product_run(context, &product);
    }
}

heed_status heed_matmul(const heed_context *context, heed_transpose transpose_a, heed_transpose transpose_b, size_t m,
                        size_t n, size_t k, float alpha, const float *a, size_t lda, const float *b, size_t ldb,
                        float beta, float *c, size_t ldc, const heed_workspace *workspace)
{
    struct heed_context fallback;
    const struct heed_context *resolved;
    struct heed_operands operands = {.status = heed_context_resolve(context, &fallback, &resolved)};
    heed_require(&operands, check_transpose(transpose_a) == HEED_OK, HEED_ERR_ENUM);
    heed_require(&operands, check_transpose(transpose_b) == HEED_OK, HEED_ERR_ENUM);
    bool ta = transpose_a == HEED_TRANSPOSE, tb = transpose_b == HEED_TRANSPOSE, empty = m == 0 || n == 0;
    size_t depth = empty ? 0 : k;
    heed_read(&operands, a, sizeof *a, ta ? depth : m, ta ? m : depth, lda, 0);
    heed_read(&operands, b, sizeof *b, tb ? n : depth, tb ? depth : n, ldb, 0);
    heed_write(&operands, c, sizeof *c, m, n, ldc, 0);
    depth = alpha == 0.0f ? 0 : depth;
    size_t bytes = heed_scratch_total(scratch_parts(transpose_a, m, n, depth));
    heed_require(&operands, bytes <= PTRDIFF_MAX, HEED_ERR_OVERFLOW);
    heed_status status = heed_operands_check(&operands, workspace, bytes);
    if (status != HEED_OK || empty)
        return status;

    float small[SMALL_FLOATS];
    const heed_workspace on_stack = {small, sizeof small};
    struct heed_scratch scratch;
    status = heed_scratch_open(&scratch, resolved, bytes <= sizeof small ? &on_stack : workspace, bytes);
    if (status != HEED_OK)
        return status;
    struct matmul mm = {ta, tb, m, n, depth, a, b, lda, ldb, NULL, NULL, 0, 0, resolved->kernels};
    if (depth > 0) {
        mm.packed = heed_scratch_take(&scratch, packed_floats(n, depth), sizeof(float));
        mm.a_rows = heed_scratch_take(&scratch, transposed_floats(transpose_a, m, depth), sizeof(float));
    }
    struct heed_epilogue epilogue = {.kind = HEED_EPILOGUE_SCALE, .alpha = alpha, .beta = beta};
    if (alpha == 1.0f && beta == 0.0f)
        epilogue.kind = HEED_EPILOGUE_STORE;
    multiply(resolved, &mm, c, ldc, &epilogue);
    heed_scratch_close(&scratch);
    return HEED_OK;
}
