/* SPDX-License-Identifier: MIT
 * Products by a transposed matrix that are computed as their transpose, c' = op(b)' op(a)': what was transposed is then
 * read as it lies, and neither turned nor packed first. Worth it where c, which is turned instead, is much smaller:
 * where a has few rows, as columns that rows of b are multiplied by across (kernels/skinny.inc), or b few columns, as
 * rows by an a in place.
 */
#include "matmul.h"

/* Few columns: rows that leave no copy of a matrix in place. */
#define MOST_COLUMNS (HEED_COPIED_ROWS - 1)

/* The least of the longer side, and of k, or of the elements of a vector, that are worth it, and of the longer side
 * what is worth a task. */
#define LEAST_LONG 64
#define LEAST_DEPTH 16
#define TASK 256

/* Steps from which on transposing rows of b several times is less than packing them once. */
#define GROUPS_DEPTH 256

/* Of the longer side at once: so many that a last group which is not whole does not matter. A quarter of L2 has rows of
 * b that several groups of columns pass by, and results of an a that is read across. */
#define BLOCK 1024
#define PER_L2 4

static void turn(struct matmul *mm)
{
    struct matmul turned = *mm;
    turned.m = mm->n;
    turned.n = mm->m;
    turned.a = mm->b;
    turned.lda = mm->ldb;
    turned.b = mm->a;
    turned.ldb = mm->lda;
    turned.transpose_a = !mm->transpose_b;
    turned.transpose_b = !mm->transpose_a;
    *mm = turned;
}

/* A row that lies as a column is a row, and the other way round: one of a matrix that is transposed, or of one step. */
static void straighten(struct matmul *mm)
{
    if (mm->transpose_a && (mm->k == 1 || (mm->m == 1 && mm->lda == 1))) {
        mm->transpose_a = false;
        mm->lda = mm->k;
    }
    if (mm->transpose_b && (mm->n == 1 || (mm->k == 1 && mm->ldb == 1))) {
        mm->transpose_b = false;
        mm->ldb = mm->n;
    }
}

/* Whether c is a column without gaps, and so long that it had better be a row, as which a transposed a gives it as it
 * lies, however few steps there are. */
static bool is_long_column(const struct matmul *mm)
{
    return mm->n == 1 && mm->m >= LEAST_DEPTH && mm->k > 0 && mm->ldb == 1 && mm->ldc == 1;
}

void heed_turn_vectors(struct matmul *mm)
{
    straighten(mm);
    bool can = mm->kernels->few_cols > 0, column = can && is_long_column(mm);
    if (column && mm->k == 1 && !mm->transpose_a && mm->lda == 1) {
        mm->transpose_a = true; /* of which such a column is a row */
        mm->lda = mm->m;
    }
    if (can && mm->k >= LEAST_DEPTH && mm->m == 1 && mm->n >= LEAST_DEPTH && !mm->transpose_a && mm->transpose_b) {
        turn(mm); /* b as it lies by a column */
        mm->transpose_b = false;
        mm->ldb = mm->ldc = 1;
    } else if (column && mm->transpose_a) {
        turn(mm); /* a row by a as it lies */
        mm->transpose_a = false;
        mm->lda = mm->k;
        mm->ldc = mm->n;
    }
}

/* Columns that are multiplied at once, groups of which are even. */
static size_t group_columns(const struct matmul *mm)
{
    size_t groups = heed_ceil_div(mm->m, mm->kernels->few_cols);
    return heed_ceil_div(mm->m, groups);
}

/* From how many steps on few rows are better turned. */
static size_t least_depth(const struct matmul *mm)
{
    const struct heed_kernels *kernels = mm->kernels;
    return mm->m <= kernels->few_cols      ? kernels->few_cols_depth
           : mm->m <= kernels->turned_rows ? GROUPS_DEPTH
                                           : SIZE_MAX;
}

enum heed_turning heed_turned_kind(const struct matmul *mm)
{
    if (mm->epilogue.kind != HEED_EPILOGUE_STORE || mm->kernels->few_cols == 0 || mm->k < LEAST_DEPTH)
        return HEED_AS_IT_IS;
    if (mm->transpose_b && mm->m > 1 && mm->n >= TASK && mm->k >= least_depth(mm))
        return HEED_FEW_ROWS;
    if (mm->transpose_a && mm->n <= MOST_COLUMNS && mm->m >= LEAST_LONG && !heed_fits_small(mm))
        return HEED_FEW_COLUMNS;
    return HEED_AS_IT_IS;
}

void heed_turned_plan(const struct heed_context *context, struct matmul *mm)
{
    bool few_rows = mm->turned == HEED_FEW_ROWS;
    size_t few = few_rows ? mm->m : mm->n, longer = few_rows ? mm->n : mm->m;
    bool lies = few_rows ? mm->transpose_a : mm->transpose_b;
    const struct heed_reading *reading = few_rows ? NULL : heed_find_reading(context, few, longer, mm->k, mm->lda);
    mm->cut.rows = few;
    mm->cut.sliver =
        reading ? heed_across_cols(context, longer) : heed_task_cols(context, longer, TASK, HEED_LEAST_TASK);
    heed_cut(context, few, longer, mm->k, few, &mm->cut);
    size_t l2_floats = context->l2 / sizeof(float) / PER_L2, panels = l2_floats / mm->k / HEED_PANEL;
    mm->across = reading ? reading->ahead : 0;
    mm->cut.depth = reading && reading->depth < mm->k ? reading->depth : mm->k;
    mm->block = BLOCK;
    if (reading && l2_floats / few > BLOCK)
        mm->block = l2_floats / few;
    if (few_rows && mm->m > mm->kernels->few_cols && panels < BLOCK / HEED_PANEL)
        mm->block = panels > 0 ? panels * HEED_PANEL : HEED_PANEL;
    mm->block = mm->block < mm->cut.cols ? mm->block : mm->cut.cols;
    mm->packed_floats = heed_whole_lines(heed_times(HEED_PANEL, mm->k));
    size_t operand = lies ? 0 : heed_whole_lines(heed_times(few, mm->k));
    mm->worker_floats = heed_plus(heed_plus(mm->packed_floats, operand), heed_whole_lines(few * mm->block));
}

/* Scratch of a worker: room for an edge of b, the few rows or columns turned, and a block of the result. */
struct room {
    float *edge, *operand, *result;
};

/* The few rows as columns, each group beside itself. */
static void turn_rows(const struct matmul *mm, float *columns)
{
    size_t group = group_columns(mm);
    for (size_t i = 0, count; i < mm->m; i += count, columns += count * mm->k) {
        count = mm->m - i < group ? mm->m - i : group;
        mm->kernels->transpose(count, mm->k, mm->a + i * mm->lda, mm->lda, columns, count);
    }
}

/* Columns j to j + cols of c: as many rows of b by each group of columns. */
static void multiply_few_rows(const struct matmul *mm, size_t j, size_t cols, const struct room *room)
{
    static const struct heed_epilogue store = {.kind = HEED_EPILOGUE_STORE};
    size_t group = group_columns(mm);
    for (size_t i = 0, count; i < mm->m; i += count) {
        count = mm->m - i < group ? mm->m - i : group;
        struct heed_panels columns = heed_panels_in_place(room->operand + i * mm->k, count);
        if (mm->transpose_a)
            columns = heed_panels_in_place(mm->a + i, mm->lda);
        columns.copy = room->edge;
        mm->kernels->gemm(cols, count, mm->k, mm->b + j * mm->ldb, mm->ldb, &columns, room->result + i, mm->m, &store);
    }
    mm->kernels->transpose(cols, mm->m, room->result, mm->m, mm->c + j, mm->ldc);
}

/* Rows i to i + rows of c: the few columns of b, as rows, by as many columns of a. */
static void multiply_few_columns(const struct matmul *mm, size_t i, size_t rows, const struct room *room)
{
    const float *b = mm->transpose_b ? mm->b : room->operand;
    size_t ldb = mm->transpose_b ? mm->ldb : mm->k;
    struct heed_epilogue store = {.kind = HEED_EPILOGUE_STORE};
    for (size_t p = 0, depth; p < mm->k; p += depth) {
        depth = mm->k - p < mm->cut.depth ? mm->k - p : mm->cut.depth;
        struct heed_panels columns = heed_panels_in_place(mm->a + p * mm->lda + i, mm->lda);
        columns.copy = room->edge;
        if (mm->across > 0)
            heed_read_across(mm->across, &columns);
        store.accumulate = p > 0;
        mm->kernels->gemm(mm->n, rows, depth, b + p, ldb, &columns, room->result, rows, &store);
    }
    mm->kernels->transpose(mm->n, rows, room->result, rows, mm->c + i * mm->ldc, mm->ldc);
}

void heed_turned_task(void *arg, size_t index, size_t worker)
{
    const struct matmul *mm = arg;
    bool few_rows = mm->turned == HEED_FEW_ROWS;
    size_t few = few_rows ? mm->m : mm->n, longer = few_rows ? mm->n : mm->m, none, first, rows, count;
    heed_cut_block(&mm->cut, index, few, longer, &none, &first, &rows, &count);
    float *scratch = mm->scratch + worker * mm->worker_floats;
    struct room room = {scratch, scratch + mm->packed_floats,
                        scratch + mm->worker_floats - heed_whole_lines(few * mm->block)};
    if (few_rows && !mm->transpose_a)
        turn_rows(mm, room.operand);
    else if (!few_rows && !mm->transpose_b)
        mm->kernels->transpose(mm->k, mm->n, mm->b, mm->ldb, room.operand, mm->k);
    size_t step = heed_ceil_div(count, heed_ceil_div(count, mm->block));
    for (size_t done = 0, now; done < count; done += now) {
        now = count - done < step ? count - done : step;
        if (few_rows)
            multiply_few_rows(mm, first + done, now, &room);
        else
            multiply_few_columns(mm, first + done, now, &room);
    }
}
