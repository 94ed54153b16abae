/* SPDX-License-Identifier: MIT
 * Products by a transposed matrix that are computed as their transpose, c' = op(b)' op(a)': what was transposed is then
 * read as it lies, and neither transposed nor packed first. Few rows of a are columns that rows of b are multiplied by
 * across, which gives c as it lies, too (gemm_few in kernels/skinny.inc). Few columns of b are rows by an a in place:
 * worth it where b and c, which are transposed instead, are smaller than a, or, by a transposed b, vectors fit columns
 * of c better than rows. Where a is nearby they may as well read it as it lies, and nothing is transposed
 * (kernels/tn.inc, kernels/tn_across.inc).
 */
#include "matmul.h"

/* Few columns: rows that leave no copy of a matrix in place; and up to MOST_COLUMNS by twice as many rows, which
 * transposed leave L2 to a, where tiles are wide, or copy a panel at a time of an a that does not come from far away, a
 * line of each row at a time. */
#define UNCOPIED_COLUMNS (HEED_COPIED_ROWS - 1)
#define MOST_COLUMNS 128
#define MOST_TRANSPOSED 262144
#define MOST_COPIED 1048576

/* Of few columns b and c are transposed where a else is: worth it if they are less by so many floats. */
#define TRANSPOSING_FLOATS 200

/* Or, where b is transposed as well, one of so many vectors is saved. */
#define VECTORS_FOR_ONE_SAVED 20

/* The least of k, and of the columns of few rows, that are worth it, and of the longer side what is worth a task. */
#define LEAST_DEPTH 8
#define LEAST_COLUMNS 16
#define TASK 256

/* Steps, and columns of c for each row, from which on transposing rows of b several times is less than packing them
 * once. */
#define GROUPS_DEPTH 256
#define COLUMNS_PER_ROW 4

/* Of the longer side at once: so many that a last group which is not whole does not matter. A quarter of L2 has rows of
 * b that several groups of columns pass by, and results of an a that is read across. */
#define BLOCK 1024
#define PER_L2 4

/* A transposed a that few columns read where it lies: a line of each step stays in L1, unless many lie in one set, and
 * its page is known where there are no more than so many. To transpose a float takes as long as so many multiply-adds,
 * and a mask as so many empty columns. */
#define TN_DEPTH 256
#define TN_CROWDED_DEPTH 8
#define TN_PAGES 64
#define PAGE_FLOATS 1024
#define TN_TRANSPOSING 6
#define TN_MASKED 2

/* Steps up to which b is better held in registers (kernels/outer.inc), if it is more than a vector or two whole ones;
 * and elements of an a beside which a last vector of few columns is worth its time: of more these go across rows. */
#define TN_HELD_DEPTH 4
#define TN_SPARSE 2048

static void transpose(struct matmul *mm)
{
    const float *a = mm->a;
    size_t m = mm->m, lda = mm->lda;
    bool transpose_a = mm->transpose_a;
    mm->m = mm->n;
    mm->a = mm->b;
    mm->lda = mm->ldb;
    mm->transpose_a = !mm->transpose_b;
    mm->n = m;
    mm->b = a;
    mm->ldb = lda;
    mm->transpose_b = !transpose_a;
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

void heed_transpose_vectors(struct matmul *mm)
{
    straighten(mm);
    if (mm->kernels->few_cols == 0 || mm->k == 0)
        return;
    bool column = mm->n == 1 && mm->ldb == 1 && mm->ldc == 1; /* of which a transposed a gives a row as it lies */
    if (column && mm->k == 1 && !mm->transpose_a && mm->lda == 1) {
        mm->transpose_a = true; /* of which such a column is a row */
        mm->lda = mm->m;
    }
    if (mm->m == 1 && !mm->transpose_a && mm->transpose_b) {
        transpose(mm); /* b as it lies by a column */
        mm->transpose_b = false;
        mm->ldb = mm->ldc = 1;
    } else if (column && mm->transpose_a) {
        transpose(mm); /* a row by a as it lies */
        mm->transpose_a = false;
        mm->lda = mm->k;
        mm->ldc = mm->n;
    }
}

/* Whether few rows of a by a transposed b had better be transposed: several groups of columns read b as often, which a
 * packed one that prefetches nothing is faster than (12 to 32 rows 0.98 to 1.24). */
static bool are_few_rows(const struct matmul *mm)
{
    const struct heed_kernels *kernels = mm->kernels;
    if (!mm->transpose_b || mm->m < 2 || mm->n < LEAST_COLUMNS)
        return false;
    bool several = mm->m <= kernels->transposed_rows && mm->k >= GROUPS_DEPTH && mm->n / COLUMNS_PER_ROW >= mm->m;
    return mm->m <= kernels->few_cols || (several && mm->packing != HEED_PACK_PREFETCH_NOTHING);
}

/* Whether a tile takes more than a panel of an a in place. */
static bool reads_several_panels(const struct matmul *mm)
{
    return mm->kernels->tile_cols[mm->kernels->narrow_mr - 1] > HEED_PANEL;
}

/* Whether vectors along columns of c, which both operands lie for if both are transposed, have fewer empty lanes than
 * those along its rows, and less is transposed by them: c in place of a and b. Shorter vectors leave few lanes empty.
 */
static bool lies_for_columns(const struct matmul *mm)
{
    if (!mm->transpose_b || mm->kernels->tn_lanes != HEED_PANEL || mm->k * (mm->m + mm->n) <= mm->m * mm->n)
        return false;
    size_t along_rows = mm->m * heed_pad(mm->n), along_columns = mm->n * heed_pad(mm->m);
    return along_columns < along_rows - along_rows / VECTORS_FOR_ONE_SAVED;
}

/* Whether few columns by a transposed a had better be transposed. */
static bool are_few_columns(const struct matmul *mm)
{
    bool some = mm->n <= MOST_COLUMNS && mm->m / 2 >= mm->n && mm->n <= MOST_TRANSPOSED / mm->k;
    bool near = reads_several_panels(mm) || mm->m <= MOST_COPIED / mm->k;
    bool less = mm->m * mm->k > mm->n * (mm->k + mm->m) + TRANSPOSING_FLOATS;
    return mm->transpose_a && (mm->n <= UNCOPIED_COLUMNS || (some && near)) && (less || lies_for_columns(mm));
}

enum heed_product_form heed_find_form(const struct matmul *mm)
{
    if (mm->epilogue.kind != HEED_EPILOGUE_STORE || mm->kernels->few_cols == 0 || mm->k < LEAST_DEPTH)
        return HEED_AS_IT_IS;
    if (are_few_rows(mm))
        return HEED_FEW_ROWS;
    return are_few_columns(mm) ? HEED_FEW_COLUMNS : HEED_AS_IT_IS;
}

/* Whether L1 and the CPU's list of pages keep a line of each of so many rows. */
static bool keeps_lines(size_t rows, size_t ld)
{
    size_t apart = ld < PAGE_FLOATS ? ld : PAGE_FLOATS;
    bool crowded = ld % HEED_SHARED_SETS == 0 && rows > TN_CROWDED_DEPTH;
    return rows <= TN_DEPTH && rows * apart <= (size_t)TN_PAGES * PAGE_FLOATS && !crowded;
}

/* Whether a transposed product had better go by outer.inc, or its last columns across rows. The masks of AVX2 leave
 * four vectors of a row no registers. */
static bool suits_others(const struct matmul *mm, size_t lanes, size_t last)
{
    bool held = mm->k <= TN_HELD_DEPTH && mm->n > lanes && mm->n != 2 * lanes;
    bool sparse = last > 0 && 3 * last <= lanes;
    bool across = sparse && (mm->n < lanes || heed_times(mm->m, mm->k) > TN_SPARSE);
    return held || across || (last > 0 && lanes == 8 && mm->n > 3 * lanes);
}

/* Columns by which vectors are too wide, as it were: masks are free where a vector is a panel, and each multiply-add of
 * a single shorter one wants a load of its own. */
static size_t wasted_columns(const struct matmul *mm, size_t lanes, size_t last)
{
    bool is_short = lanes < HEED_PANEL;
    size_t empty = last == 0 ? 0 : lanes - last + (is_short ? TN_MASKED : 0);
    return is_short && mm->n <= lanes ? empty + 1 : empty;
}

/* Whether these take less than to transpose b and c; or, of a transposed b, which lies as that would want it, to pack
 * it as well takes less than to transpose c. */
static bool wastes_less(const struct matmul *mm, size_t columns)
{
    size_t transposing = TN_TRANSPOSING * mm->n, wasted = columns * mm->k;
    if (mm->transpose_b)
        return wasted < transposing && mm->m >= transposing * mm->k / (transposing - wasted);
    return wasted <= transposing || mm->m <= transposing * mm->k / (wasted - transposing);
}

bool heed_goes_by_tn(const struct matmul *mm)
{
    const size_t lanes = mm->kernels->tn_lanes, last = mm->n & (lanes - 1);
    if (!mm->transpose_a || mm->n > mm->kernels->tn_cols || mm->epilogue.kind != HEED_EPILOGUE_STORE ||
        mm->form == HEED_FEW_ROWS || !keeps_lines(mm->k, mm->lda))
        return false;
    if (heed_goes_across_by_tn(mm->m, mm->n, lanes, mm->kernels->tn_across))
        return true;
    if (suits_others(mm, lanes, last))
        return false;
    return mm->form == HEED_AS_IT_IS || wastes_less(mm, wasted_columns(mm, lanes, last));
}

/* Of the longer side, and what scratch a worker needs for it. */
static void set_block(struct matmul *mm, size_t block)
{
    bool few_rows = mm->form == HEED_FEW_ROWS, lies = few_rows ? mm->transpose_a : mm->transpose_b;
    size_t few = few_rows ? mm->m : mm->n, operand = lies ? 0 : heed_whole_lines(heed_times(few, mm->k));
    size_t result = few_rows ? 0 : heed_whole_lines(few * block);
    mm->block = block;
    mm->packed_floats = few_rows ? 0 : heed_whole_lines(heed_times(HEED_PANEL, mm->k));
    mm->worker_floats = heed_plus(heed_plus(mm->packed_floats, operand), result);
}

void heed_transposed_plan(const struct heed_context *context, struct matmul *mm)
{
    bool few_rows = mm->form == HEED_FEW_ROWS;
    size_t few = few_rows ? mm->m : mm->n, longer = few_rows ? mm->n : mm->m;
    if (!few_rows)
        mm->across = heed_find_across(context, few, longer, mm->k, mm->lda);
    bool across = mm->across.ahead > 0;
    mm->cut.rows = few;
    mm->cut.cols = longer;
    mm->cut.by_rows = false;
    mm->cut.sliver = across ? heed_across_cols(context, longer) : heed_task_cols(context, longer, TASK, HEED_PANEL);
    heed_cut(context, few, longer, mm->k, few, &mm->cut);
    size_t l2_floats = context->l2 / sizeof(float) / PER_L2, panels = l2_floats / mm->k / HEED_PANEL;
    mm->cut.depth = across && mm->across.depth < mm->k ? mm->across.depth : mm->k;
    size_t block = BLOCK;
    if (across && l2_floats / few > BLOCK)
        block = l2_floats / few;
    if (few_rows && mm->m > mm->kernels->few_cols && panels < BLOCK / HEED_PANEL)
        block = panels > 0 ? panels * HEED_PANEL : HEED_PANEL;
    set_block(mm, block < mm->cut.cols ? block : mm->cut.cols);
}

/* Columns j to j + cols of c, a block at a time, by a as it lies or its rows as columns. */
static void multiply_few_rows(const struct matmul *mm, size_t j, size_t cols, float *scratch)
{
    const float *a = mm->transpose_a ? mm->a : scratch;
    size_t lda = mm->transpose_a ? mm->lda : mm->m, step = heed_even_part(cols, mm->block);
    if (!mm->transpose_a)
        mm->kernels->transpose(mm->m, mm->k, mm->a, mm->lda, scratch, mm->m);
    for (size_t end = j + cols, now; j < end; j += now) {
        now = end - j < step ? end - j : step;
        mm->kernels->gemm_few(mm->m, now, mm->k, a, lda, mm->b + j * mm->ldb, mm->ldb, mm->c + j, mm->ldc, mm->reading,
                              mm->distance);
    }
}

/* Of few columns: room for an edge of b, b transposed, and a block of the result. */
struct room {
    float *edge, *operand, *result;
};

/* Rows i to i + rows of c: the few columns of b, as rows, by as many columns of a. */
static void multiply_block(const struct matmul *mm, size_t i, size_t rows, const struct room *room)
{
    const float *b = mm->transpose_b ? mm->b : room->operand;
    size_t ldb = mm->transpose_b ? mm->ldb : mm->k;
    struct heed_epilogue store = {.kind = HEED_EPILOGUE_STORE};
    for (size_t p = 0, depth; p < mm->k; p += depth) {
        depth = mm->k - p < mm->cut.depth ? mm->k - p : mm->cut.depth;
        struct heed_panels columns = heed_panels_in_place(mm->a + p * mm->lda + i, mm->lda);
        columns.copy = room->edge;
        columns.uncopied = reads_several_panels(mm);
        columns.in_l2 = heed_is_near(depth, mm->lda);
        if (mm->across.ahead > 0)
            heed_read_across(&mm->across, &columns);
        store.accumulate = p > 0;
        mm->kernels->gemm(mm->n, rows, depth, b + p, ldb, &columns, room->result, rows, &store);
    }
    mm->kernels->transpose(mm->n, rows, room->result, rows, mm->c + i * mm->ldc, mm->ldc);
}

/* Rows i to i + rows of c, a block at a time. */
static void multiply_few_columns(const struct matmul *mm, size_t i, size_t rows, float *scratch)
{
    size_t result = heed_whole_lines(mm->n * mm->block), step = heed_even_part(rows, mm->block);
    struct room room = {scratch, scratch + mm->packed_floats, scratch + mm->worker_floats - result};
    if (!mm->transpose_b)
        mm->kernels->transpose(mm->k, mm->n, mm->b, mm->ldb, room.operand, mm->k);
    for (size_t end = i + rows, now; i < end; i += now) {
        now = end - i < step ? end - i : step;
        multiply_block(mm, i, now, &room);
    }
}

bool heed_transposed_in_room(struct matmul *mm, float *room)
{
    if (mm->form == HEED_AS_IT_IS)
        return false;
    bool few_rows = mm->form == HEED_FEW_ROWS;
    mm->cut.depth = mm->k;
    mm->across = heed_not_across;
    set_block(mm, few_rows ? mm->n : mm->m);
    if (mm->worker_floats > HEED_SMALL_FLOATS)
        return false;
    (few_rows ? multiply_few_rows : multiply_few_columns)(mm, 0, mm->block, room);
    return true;
}

void heed_transposed_task(void *arg, size_t index, size_t worker)
{
    const struct matmul *mm = arg;
    bool few_rows = mm->form == HEED_FEW_ROWS;
    size_t few = few_rows ? mm->m : mm->n, longer = few_rows ? mm->n : mm->m, none, first, rows, count;
    heed_cut_block(&mm->cut, index, few, longer, &none, &first, &rows, &count);
    float *scratch = mm->scratch ? mm->scratch + worker * mm->worker_floats : NULL; /* few rows may need none */
    (few_rows ? multiply_few_rows : multiply_few_columns)(mm, first, count, scratch);
}
