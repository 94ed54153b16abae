/* SPDX-License-Identifier: MIT
 * heed_matmul: each task packs the columns of b that it needs.
 *
 * With many rows, or a transposed b, as many columns as fill half of L2 are packed, and then all rows pass by them in
 * blocks. With fewer, unless tiles are narrow and b large, b is read where it lies, and the first tile of each sliver
 * leaves a packed copy behind for the others. With so few that memory is waited for it is read across (across.c).
 */
#include "matmul.h"

#include "rows.h"

/* Rows of a product that needs no plan, and of one of so few columns that a plan would not have them packed either, if
 * a is nearby. */
#define SMALL_ROWS 256
#define MOST_SMALL_ROWS HEED_SMALL_ELEMENTS

/* With room to begin at a line. */
#define ROOM_FLOATS (HEED_SMALL_FLOATS + HEED_PANEL)

/* Floats of b for so few rows that no more than its last columns are copied: about L1; and for one, which reads it
 * once. */
#define FEW_ROWS_FLOATS 8192
#define ONE_ROW_FLOATS (2 * HEED_NEAR_FLOATS)

/* Columns of a transposed b whose rows are made without a panel's padding (kernels/narrow.inc reads them), and of one
 * of fewer steps. */
#define UNPADDED_COLS 7
#define FEW_UNPADDED_COLS 4
#define UNPADDED_DEPTH 256

/* The least columns of a b in place for a task. */
#define LEAST_TASK 64

/* Steps of a panel by few rows, which is read about once, up to which c holds no sums. */
#define ONCE_DEPTH 16384

/* Rows up to which b is read in place. */
#define IN_PLACE_ROWS 256

/* A tile of a panel reads single lines of a b in place, a row apart, of which caches keep eight in a set; packing reads
 * runs. A b of several times L2 is packed from so many rows on, fewer where it comes from memory, and fewest where its
 * rows are so many floats apart that they share sets. By few rows it is in parts of k, whose runs are longer. On Zen 3
 * 1.05 to 2 times as fast. */
static const struct packing {
    size_t per_l2; /* times L2 that b takes */
    bool from_memory;
    size_t stride, rows;
} packings[] = {{2, false, HEED_SAME_SET, 7}, {4, false, 1, 96}, {4, true, HEED_SHARED_SETS, 5}, {4, true, 1, 32}};
#define LEAST_PACKED_COLS 256
#define FEW_PACKED_ROWS 64
#define FEW_PACKED_DEPTH 256

/* Rows of a transposed a that a task transposes at once. */
#define MOST_ROWS_TRANSPOSED 768

/* Times a transposed a that few columns read where it lies fits the second cache. */
#define TN_PER_L2 2

/* Of a, compared with the second cache, when blocks of b are as large as that, or as a megabyte where it is smaller. */
#define A_BYTES_PER_L2 3.0
#define LEAST_FAR_BLOCK ((size_t)1 << 20)

/* Rows of b so many floats apart share few sets of the second cache: read once, and copied for the other tiles. Zen 5,
 * which computes twice as fast, waits for what rows that share a set of L1 drive out: 1.1 to 1.5 times as fast by a
 * copy. */
#define CROWDED_STRIDE 4096

/* Rows that a task has at least where it packs b, or there are so many rows that workers have several blocks, and that
 * few at a time may pass by b. */
#define LEAST_PACKED_ROWS 48
#define MANY_ROWS (4 * LEAST_PACKED_ROWS)

/* Columns of b, or rows of a, of one depth that so many bytes hold. */
static size_t vectors_of(const struct matmul *mm, size_t bytes)
{
    return bytes / sizeof(float) / (mm->cut.depth ? mm->cut.depth : 1);
}

/* Columns of b for a packed block: half of L2. Where a is larger than that by far, so that all of it comes from beyond
 * with every block, fewer and larger blocks are better: b is prefetched into L1 early enough for the last cache as
 * well. */
static size_t most_packed(const struct heed_context *context, const struct matmul *mm)
{
    double a_bytes = heed_bytes_of(mm->cut.rows, mm->cut.depth);
    bool far = heed_hw_prefetches(context) && a_bytes > A_BYTES_PER_L2 * (double)context->l2;
    size_t far_bytes = context->l2 > LEAST_FAR_BLOCK ? context->l2 : LEAST_FAR_BLOCK;
    size_t vectors = vectors_of(mm, far ? far_bytes : context->l2 / 2), step = far ? mm->cut.sliver : HEED_PANEL;
    size_t most = vectors / step * step;
    return most < mm->cut.sliver ? mm->cut.sliver : most;
}

/* Where the stride is not known, no stride is better than the worst. */
static bool is_uncopied(const struct heed_context *context, const struct matmul *mm)
{
    size_t crowded = context->wide_core ? HEED_SAME_SET : CROWDED_STRIDE;
    return heed_hw_prefetches(context) && mm->cut.rows < mm->kernels->copied_rows && mm->ldb % crowded != 0;
}

/* Whether b is packed all the same for so few rows as read it in place. */
static bool gains_by_packing(const struct heed_context *context, const struct matmul *mm)
{
    bool by_panels = mm->kernels->tile_cols[mm->kernels->mr - 1] == HEED_PANEL && !context->wide_core;
    if (!by_panels || mm->n < LEAST_PACKED_COLS)
        return false;
    double bytes = heed_bytes_of(mm->n, mm->k);
    for (size_t i = 0; i < sizeof packings / sizeof *packings; i++) {
        const struct packing *p = &packings[i];
        bool fits = mm->m >= p->rows && mm->ldb % p->stride == 0;
        if (fits && bytes >= (double)p->per_l2 * (double)context->l2 &&
            (!p->from_memory || bytes >= (double)context->in_order))
            return true;
    }
    return false;
}

static size_t least_rows(const struct matmul *mm)
{
    return mm->packs || mm->m >= MANY_ROWS ? LEAST_PACKED_ROWS : HEED_LEAST_ROWS;
}

/* Whether the kernel passes by few rows of c at a time itself. */
static bool goes_by_parts(const struct matmul *mm)
{
    size_t held = mm->kernels->parted_steps;
    return held > 0 && mm->epilogue.kind == HEED_EPILOGUE_STORE &&
           heed_goes_by_parts(mm->m, mm->n, mm->k, mm->ldc, held, mm->far_c);
}

static size_t far_rows(const struct heed_context *context, const struct matmul *mm)
{
    return mm->packs && mm->m >= MANY_ROWS ? heed_far_rows(context, mm->m, mm->n, mm->k, mm->c, mm->ldc) : mm->m;
}

/* Whether b is a panel by so few rows that it is read about once. */
static bool passes_once(const struct matmul *mm)
{
    return mm->m < HEED_COPIED_ROWS && mm->n <= HEED_PANEL && mm->k <= ONCE_DEPTH;
}

/* Whether few columns go across all of k at once. Not of an a that each task transposes a part of, whose rows have no
 * gaps; nor where each step of b is a line, a page apart perhaps, that every few rows read again. */
static bool takes_all_steps(const struct heed_context *context, const struct matmul *mm)
{
    bool dense = mm->transpose_b || mm->ldb <= HEED_PANEL || heed_times(mm->n, mm->k) <= HEED_COLUMNS_FLOATS;
    return dense && !mm->transpose_a && heed_goes_across(context, mm->n, mm->k);
}

/* Whether b is packed, and how many steps of k are taken at once. */
static void plan_packing(const struct heed_context *context, bool splits, struct matmul *mm)
{
    bool whole = passes_once(mm) || takes_all_steps(context, mm);
    mm->cut.depth = splits && !whole ? heed_split_depth(mm->k) : mm->k;
    mm->packs = mm->transpose_b || (mm->cut.rows > IN_PLACE_ROWS && mm->n > HEED_PANEL);
    if (!mm->packs && gains_by_packing(context, mm)) {
        mm->packs = true;
        if (splits && mm->m < FEW_PACKED_ROWS && mm->cut.depth > FEW_PACKED_DEPTH)
            mm->cut.depth = FEW_PACKED_DEPTH;
    }
}

/* How a b in place is read: a single row always from row to row of b, at most some steps of k at once unless an old c
 * counts. */
static void plan_reading(const struct heed_context *context, bool splits, struct matmul *mm)
{
    if (splits)
        mm->across = heed_find_across(context, mm->m, mm->n, mm->k, mm->ldb);
    bool across = mm->across.ahead > 0;
    mm->strips = across && heed_goes_by_strips(context, mm->m, mm->n, mm->k, mm->ldb);
    size_t depth = across ? mm->across.depth : mm->m == 1 && splits ? HEED_ROW_DEPTH : mm->k;
    if (mm->strips)
        mm->cut.depth = mm->k;
    else if (depth < mm->cut.depth)
        mm->cut.depth = depth;
    if (across || mm->m == 1)
        mm->cut.sliver = heed_across_cols(context, mm->n);
    else
        mm->cut.sliver = heed_task_cols(context, mm->n, heed_sliver(mm->kernels, mm->cut.rows, true), LEAST_TASK);
}

/* Columns of b that are packed at once, and rows of a that pass by them, which have a quarter of L2, in whole tiles. */
static void plan_blocks(const struct heed_context *context, size_t most_rows, struct matmul *mm)
{
    size_t mr = context->kernels->mr, rows = vectors_of(mm, context->l2 / 4) / mr * mr;
    rows = rows < LEAST_PACKED_ROWS * 2 ? LEAST_PACKED_ROWS * 2 / mr * mr : rows;
    mm->block_rows = rows < most_rows ? rows : most_rows;
    mm->block = heed_pad(heed_even_part(mm->cut.cols, most_packed(context, mm)));
}

/* Columns of b that a worker has room for. */
static size_t packed_cols(const struct matmul *mm)
{
    size_t padded = heed_pad(mm->n), cols = HEED_PANEL;
    if (mm->packs)
        cols = mm->block;
    else if (mm->strips)
        return 0;
    else if (mm->cut.rows >= HEED_COPIED_ROWS && mm->across.ahead == 0 && !mm->uncopied)
        cols = heed_sliver(mm->kernels, mm->cut.rows, true);
    return cols < padded ? cols : padded;
}

/* How rows of a are read, or of a transposed b that columns of a go across. Of a transposed a each task makes its own.
 */
static enum heed_reading reading_of_rows(const struct heed_context *context, const struct matmul *mm)
{
    if (context->wide_core)
        return HEED_READ_LINES;
    if (mm->form == HEED_FEW_ROWS)
        return heed_reading_of(context, mm->n, mm->k);
    return mm->transpose_a ? HEED_READ_EIGHTS : heed_reading_of(context, mm->m, mm->k);
}

/* Whether a transposed a is read where it lies: of one that is more than half of L2 each step would be a run of memory
 * of its own. */
static bool reads_by_tn(const struct heed_context *context, const struct matmul *mm)
{
    return heed_goes_by_tn(mm) && heed_times(mm->m, mm->k) <= context->l2 / sizeof(float) / TN_PER_L2;
}

/* All columns of a task at once. */
static void plan_tn(const struct heed_context *context, struct matmul *mm)
{
    mm->form = HEED_AS_IT_IS;
    mm->uncopied = true;
    mm->packs = mm->transpose_b;
    mm->cut = (struct heed_cut){.rows = mm->m, .cols = mm->n, .depth = mm->k, .sliver = heed_pad(mm->n)};
    heed_cut(context, mm->m, mm->n, mm->k, HEED_LEAST_ROWS, &mm->cut);
    mm->block = heed_pad(mm->cut.cols);
    mm->block_rows = mm->cut.rows;
    mm->packed_floats = mm->worker_floats = mm->packs ? heed_whole_lines(mm->block * mm->k) : 0;
}

/* Depends on sizes, strides, the context, alpha, beta and where rows of c begin only. */
static void plan(const struct heed_context *context, struct matmul *mm)
{
    mm->packing = heed_pack_prefetch(context, mm->n, mm->k);
    mm->across = heed_not_across;
    mm->strips = false;
    mm->far_c = heed_is_far_c(mm->m, mm->n);
    mm->form = heed_find_form(mm);
    mm->by_tn = reads_by_tn(context, mm);
    bool b_from_memory = mm->packing == HEED_PACK_PREFETCH_RUNS;
    bool a_from_memory = mm->n <= mm->kernels->few_cols && heed_are_wide_rows_from_memory(context, mm->m, mm->k);
    mm->distance = (mm->form == HEED_FEW_ROWS ? b_from_memory : a_from_memory) ? HEED_PREFETCH_FROM_MEMORY : 0;
    mm->reading = reading_of_rows(context, mm);
    if (mm->distance == 0)
        mm->distance = heed_across_distance(context, mm->form == HEED_FEW_ROWS ? mm->n : mm->m, mm->k);
    if (mm->by_tn) {
        plan_tn(context, mm);
        return;
    }
    if (mm->form != HEED_AS_IT_IS) {
        heed_transposed_plan(context, mm);
        return;
    }
    mm->cut.cols = mm->n;
    mm->cut.rows = mm->transpose_a && mm->m > MOST_ROWS_TRANSPOSED ? MOST_ROWS_TRANSPOSED : mm->m;
    bool splits = mm->epilogue.beta == 0.0f; /* k; otherwise c holds what it may not lose */
    plan_packing(context, splits, mm);
    if (mm->packs)
        mm->cut.sliver = heed_sliver(mm->kernels, mm->cut.rows, false);
    else
        plan_reading(context, splits, mm);
    size_t few_rows = far_rows(context, mm);
    mm->cut.by_rows = few_rows < mm->m;
    (mm->transpose_a ? heed_cut_balanced : heed_cut)(context, mm->m, mm->n, mm->k, least_rows(mm), &mm->cut);
    mm->uncopied = is_uncopied(context, mm);
    plan_blocks(context, goes_by_parts(mm) ? mm->m : few_rows, mm);
    mm->packed_floats = heed_whole_lines(heed_times(packed_cols(mm), mm->cut.depth));
    mm->worker_floats =
        heed_whole_lines(heed_plus(mm->packed_floats, mm->transpose_a ? heed_times(mm->cut.rows, mm->cut.depth) : 0));
}

/* Multiply-adds. */
static double work_of(const struct matmul *mm)
{
    return (double)mm->m * (double)mm->n * (double)mm->k;
}

/* Bytes of scratch, as planned. */
static size_t scratch_parts(const struct heed_context *context, const struct matmul *mm)
{
    if (mm->m == 0 || mm->n == 0 || mm->k == 0)
        return 0;
    size_t workers = heed_is_shared(context, work_of(mm)) ? heed_workers_of(context, mm->cut.tasks) : 1;
    return heed_scratch_part(heed_times(workers, mm->worker_floats), sizeof(float));
}

/* A workspace serves every alpha and beta, of which some do not let k be split (fewer columns of a longer k), or c be
 * computed as its transpose. */
static size_t most_scratch_parts(const struct heed_context *context, const struct matmul *given)
{
    static const struct heed_epilogue epilogues[] = {{.kind = HEED_EPILOGUE_STORE},
                                                     {.kind = HEED_EPILOGUE_SCALE, .beta = 0.0f},
                                                     {.kind = HEED_EPILOGUE_SCALE, .beta = 1.0f}};
    size_t most = 0, count = given->m > 0 && given->n > 0 ? sizeof epilogues / sizeof *epilogues : 0;
    for (size_t e = 0; e < count; e++) {
        struct matmul mm = *given;
        mm.epilogue = epilogues[e];
        plan(context, &mm);
        size_t parts = scratch_parts(context, &mm);
        most = parts > most ? parts : most;
    }
    return most;
}

/* Whether the plan of a product is that of every alpha and beta: nothing is transposed, and all of k taken at once. */
static bool is_of_every_epilogue(const struct matmul *mm)
{
    bool whole = mm->cut.depth == mm->k && mm->across.ahead == 0;
    return !mm->transpose_a && !mm->transpose_b && mm->epilogue.beta == 0.0f && whole;
}

/* Of a product that is planned: what its workspace has to have. Three more plans take as long as 16^3 multiply-adds. */
static size_t workspace_parts(const struct heed_context *context, const struct matmul *mm)
{
    return is_of_every_epilogue(mm) ? scratch_parts(context, mm) : most_scratch_parts(context, mm);
}

/* As strides will say, each for itself, vectors may lie side by side or not, rows of a or b share sets of the caches
 * (as those of stride 0 do, by which a transposed a is copied into rows, and by 1 read where it lies), and rows of c
 * lines. */
static size_t scratch_of_forms(const struct heed_context *context, const struct matmul *given)
{
    size_t most = 0;
    for (size_t strides = 0; strides < 8; strides++) {
        struct matmul form = *given;
        form.lda = strides & 1;
        form.ldb = strides >> 1 & 1;
        form.ldc = strides >> 2;
        heed_transpose_vectors(&form);
        size_t parts = most_scratch_parts(context, &form);
        most = parts > most ? parts : most;
    }
    return most;
}

static bool fits_room(size_t parts)
{
    return heed_scratch_total(parts) <= ROOM_FLOATS * sizeof(float);
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
    struct matmul mm = {.kernels = resolved->kernels,
                        .transpose_a = transpose_a == HEED_TRANSPOSE,
                        .transpose_b = transpose_b == HEED_TRANSPOSE,
                        .m = m,
                        .n = n,
                        .k = k};
    size_t depth = m == 0 || n == 0 ? 0 : k; /* of an empty c neither a nor b is looked at */
    bool countable = heed_times(heed_times(m, n), sizeof(float)) <= PTRDIFF_MAX &&
                     heed_times(heed_times(m, depth), sizeof(float)) <= PTRDIFF_MAX &&
                     heed_times(heed_times(depth, n), sizeof(float)) <= PTRDIFF_MAX;
    size_t parts = countable ? scratch_of_forms(resolved, &mm) : SIZE_MAX;
    return heed_workspace_answer(fits_room(parts) ? 0 : parts, bytes);
}

/* Part of a task: rows from i, columns from j, steps of k from p on. */
struct part {
    const struct matmul *mm;
    size_t i, j, p, rows, cols, depth;
    const float *a;
    size_t lda;
    float *packed;
    const struct heed_epilogue *epilogue;
};

static void multiply_panels(const struct matmul *mm, size_t m, size_t n, size_t k, const float *a, size_t lda,
                            const struct heed_panels *b, float *c, const struct heed_epilogue *epilogue)
{
    if (mm->by_tn)
        mm->kernels->gemm_tn(m, n, k, a, lda, b, c, mm->ldc);
    else
        mm->kernels->gemm(m, n, k, a, lda, b, c, mm->ldc, epilogue);
}

/* Some of its rows and columns. */
static void multiply(const struct part *part, size_t i, size_t rows, size_t j, size_t cols, const struct heed_panels *b)
{
    const struct matmul *mm = part->mm;
    const float *a = part->a + i * (mm->by_tn ? 1 : part->lda);
    multiply_panels(mm, rows, cols, part->depth, a, part->lda, b, mm->c + (part->i + i) * mm->ldc + part->j + j,
                    part->epilogue);
}

/* Whether a transposed b is so narrow that its rows are made without a panel's padding: it goes by no copy, then.
 * Vectors that span several stores wait for these, which short ones would feel. */
static bool is_transposed_narrow(const struct matmul *mm)
{
    bool narrow = mm->n <= FEW_UNPADDED_COLS || (mm->n <= UNPADDED_COLS && mm->k >= UNPADDED_DEPTH);
    return narrow && mm->transpose_b && mm->kernels->few_cols > 0 && mm->epilogue.kind == HEED_EPILOGUE_STORE;
}

/* Such a b, or packed. */
static struct heed_panels pack_columns(const struct matmul *mm, size_t cols, size_t depth, const float *b, float *room)
{
    struct heed_panels panels = heed_panels_packed(room, depth);
    if (is_transposed_narrow(mm) && depth == mm->k) {
        mm->kernels->transpose(cols, depth, b, mm->ldb, room, cols);
        panels = heed_panels_in_place(room, cols);
    } else {
        mm->kernels->pack(mm->transpose_b, mm->packing, cols, depth, b, mm->ldb, room);
    }
    panels.in_l2 = true;
    panels.distance = mm->distance == HEED_NO_PREFETCH ? HEED_NO_PREFETCH : 0;
    panels.reading = mm->reading == HEED_READ_LINES ? HEED_READ_PLAINLY : mm->reading; /* as lines were not measured */
    return panels;
}

/* All rows by packed columns. Blocks of rows are even, lest the last one be a few rows only, large ones whole tiles. */
static void multiply_packed(const struct part *part, size_t j, size_t cols)
{
    const struct matmul *mm = part->mm;
    size_t first = part->j + j, mr = mm->kernels->mr, step = heed_even_part(part->rows, mm->block_rows);
    step = step < LEAST_PACKED_ROWS ? step : heed_ceil_div(step, mr) * mr;
    const float *b = mm->transpose_b ? mm->b + first * mm->ldb + part->p : mm->b + part->p * mm->ldb + first;
    struct heed_panels panels = pack_columns(mm, cols, part->depth, b, part->packed);
    panels.far_c = mm->far_c;
    for (size_t i = 0; i < part->rows; i += step)
        multiply(part, i, part->rows - i < step ? part->rows - i : step, j, cols, &panels);
}

static void multiply_in_place(const struct part *part)
{
    const struct matmul *mm = part->mm;
    struct heed_panels panels = heed_panels_in_place(mm->b + part->p * mm->ldb + part->j, mm->ldb);
    panels.copy = part->packed;
    panels.in_l2 = heed_is_near(part->depth, mm->ldb);
    panels.uncopied = mm->uncopied;
    panels.far_c = mm->far_c;
    panels.reading = mm->reading;
    panels.distance = mm->distance;
    if (mm->across.ahead > 0)
        heed_read_across(&mm->across, &panels);
    panels.prefetch_l1 = mm->strips;
    multiply(part, 0, part->rows, 0, part->cols, &panels);
}

static void run_part(struct part *part, float *scratch)
{
    const struct matmul *mm = part->mm;
    part->packed = scratch;
    struct heed_epilogue epilogue = {.kind = HEED_EPILOGUE_STORE};
    if (part->p + part->depth == mm->k)
        epilogue = mm->epilogue;
    epilogue.accumulate = part->p > 0;
    part->epilogue = &epilogue;
    if (mm->by_tn) {
        part->a = mm->a + part->i;
        part->lda = mm->lda;
    } else if (mm->transpose_a) {
        float *rows = scratch + mm->packed_floats;
        mm->kernels->transpose(part->depth, part->rows, mm->a + part->p * mm->lda + part->i, mm->lda, rows,
                               part->depth);
        part->a = rows;
        part->lda = part->depth;
    } else {
        part->a = mm->a + part->i * mm->lda + part->p;
        part->lda = mm->lda;
    }
    if (!mm->packs) {
        multiply_in_place(part);
        return;
    }
    for (size_t j = 0; j < part->cols; j += mm->block)
        multiply_packed(part, j, part->cols - j < mm->block ? part->cols - j : mm->block);
}

static void run_task(void *arg, size_t index, size_t worker)
{
    const struct matmul *mm = arg;
    struct part part = {.mm = mm};
    heed_cut_block(&mm->cut, index, mm->m, mm->n, &part.i, &part.j, &part.rows, &part.cols);
    for (; part.p < mm->k; part.p += part.depth) {
        part.depth = mm->k - part.p < mm->cut.depth ? mm->k - part.p : mm->cut.depth;
        run_part(&part, mm->scratch ? mm->scratch + worker * mm->worker_floats : NULL);
    }
}

/* alpha = 0 or k = 0: b and a are not read. */
static void scale_rows(const void *arg, size_t first, size_t count)
{
    const struct matmul *mm = arg;
    struct heed_panels nothing = heed_panels_in_place(heed_nothing, 0);
    nothing.panel = 0;
    mm->kernels->gemm(count, mm->n, 0, heed_nothing, 0, &nothing, mm->c + first * mm->ldc, mm->ldc, &mm->epilogue);
}

/* Whether a small product, whose sizes multiply without overflow, is left to one thread. It then needs no workspace:
 * what it takes fits the stack. */
static bool is_for_one(const struct heed_context *context, size_t m, size_t n, size_t k)
{
    return !context || !heed_is_shared(context, (double)(m * n * k));
}

_Static_assert(HEED_SMALL_FLOATS <= HEED_SMALL_ELEMENTS, "sides are small");

/* Whether a product of such sides is small. */
static inline bool has_small_sides(size_t m, size_t n, size_t k)
{
    if (m - 1 >= MOST_SMALL_ROWS || n - 1 >= HEED_SMALL_FLOATS || k - 1 >= HEED_SMALL_FLOATS)
        return false;
    size_t b_floats = heed_pad(n) * k;
    bool few_rows = m < HEED_COPIED_ROWS && k <= HEED_SMALL_FLOATS / HEED_PANEL;
    if (b_floats > (few_rows ? FEW_ROWS_FLOATS : HEED_SMALL_FLOATS))
        return few_rows && m == 1 && b_floats <= ONE_ROW_FLOATS;
    return m <= SMALL_ROWS || (n <= HEED_PANEL && m * k <= HEED_NEAR_FLOATS);
}

/* Whether the product is small and all its arguments are right. The others, right or wrong, take the way by the table
 * of operands, which takes as long as a product of 8 x 8 x 8. Inlined, as to hand on its arguments takes a tenth of one
 * of 4 x 4 x 4. */
__attribute__((always_inline)) static inline bool is_small(bool transposed_a, bool transposed_b, size_t m, size_t n,
                                                           size_t k, const float *a, size_t lda, const float *b,
                                                           size_t ldb, const float *c, size_t ldc)
{
    if (!has_small_sides(m, n, k))
        return false;
    size_t a_rows = transposed_a ? k : m, a_cols = transposed_a ? m : k;
    size_t b_rows = transposed_b ? n : k, b_cols = transposed_b ? k : n;
    if (lda < a_cols || ldb < b_cols || ldc < n || (lda | ldb | ldc) >= HEED_SMALL_STRIDE)
        return false;
    if (!heed_is_small_operand(a) || !heed_is_small_operand(b) || !heed_is_small_operand(c))
        return false;
    size_t c_floats = (m - 1) * ldc + n;
    return heed_are_apart(c, c_floats, a, (a_rows - 1) * lda + a_cols) &&
           heed_are_apart(c, c_floats, b, (b_rows - 1) * ldb + b_cols);
}

/* A small product, without a plan: rows of what is still transposed are made in room for ROOM_FLOATS. */
static void multiply_small(struct matmul *mm, float *room)
{
    if (!mm->by_tn && heed_transposed_in_room(mm, room))
        return;
    size_t m = mm->m, n = mm->n, k = mm->k;
    bool transposes = mm->transpose_a && !mm->by_tn;
    float *panels = room + heed_small_rows(mm);
    struct heed_panels b = heed_panels_in_place(mm->b, mm->ldb);
    b.copy = panels;
    if (transposes)
        mm->kernels->transpose(k, m, mm->a, mm->lda, room, k);
    b.in_l2 = true;
    b.reading = mm->reading;
    b.distance = mm->distance;
    if (mm->transpose_b)
        b = pack_columns(mm, n, k, mm->b, panels);
    multiply_panels(mm, m, n, k, transposes ? room : mm->a, transposes ? k : mm->lda, &b, mm->c, &mm->epilogue);
}

/* The stride of a matrix of one row may be any number, a step by which would leave all memory. */
static void forget_strides_of_one(struct matmul *mm, size_t depth)
{
    if ((mm->transpose_a ? depth : mm->m) == 1)
        mm->lda = mm->transpose_a ? mm->m : depth;
    if ((mm->transpose_b ? mm->n : depth) == 1)
        mm->ldb = mm->transpose_b ? depth : mm->n;
    if (mm->m == 1)
        mm->ldc = mm->n;
}

/* With room for ROOM_FLOATS. Not inlined, so that small products do not set up its frame. */
__attribute__((noinline)) static heed_status multiply_planned(const struct heed_context *given, struct matmul *mm,
                                                              const heed_workspace *workspace, float *room)
{
    struct heed_context fallback;
    const struct heed_context *context;
    heed_status status = heed_context_resolve(given, &fallback, &context);
    if (status != HEED_OK)
        return status;
    size_t m = mm->m, n = mm->n, k = mm->k;
    bool ta = mm->transpose_a, tb = mm->transpose_b, empty = m == 0 || n == 0;
    size_t depth = empty ? 0 : k;
    struct heed_operands operands;
    heed_operands_begin(&operands, HEED_OK);
    heed_read(&operands, mm->a, sizeof *mm->a, ta ? depth : m, ta ? m : depth, mm->lda, 0);
    heed_read(&operands, mm->b, sizeof *mm->b, tb ? n : depth, tb ? depth : n, mm->ldb, 0);
    heed_write(&operands, mm->c, sizeof *mm->c, m, n, mm->ldc, 0);
    if (operands.status != HEED_OK)
        return operands.status;
    forget_strides_of_one(mm, depth);
    mm->k = mm->epilogue.alpha == 0.0f ? 0 : depth;
    heed_transpose_vectors(mm);
    if (!empty)
        plan(context, mm);
    size_t parts = empty ? 0 : workspace ? workspace_parts(context, mm) : scratch_parts(context, mm);
    size_t bytes = heed_scratch_total(parts);
    heed_require(&operands, bytes <= PTRDIFF_MAX, HEED_ERR_OVERFLOW);
    status = heed_operands_check(&operands, workspace, fits_room(parts) ? 0 : bytes);
    if (status != HEED_OK || empty)
        return status;

    const heed_workspace on_stack = {room, ROOM_FLOATS * sizeof *room};
    struct heed_scratch scratch;
    status = heed_scratch_open(&scratch, context, fits_room(parts) ? &on_stack : workspace, bytes);
    if (status != HEED_OK)
        return status;
    mm->scratch = heed_scratch_take(&scratch, bytes / sizeof(float), sizeof(float));
    if (mm->k == 0)
        heed_run_rows(context, mm->m, mm->n, HEED_MOVE_WORK, scale_rows, mm);
    else
        heed_run(context, mm->cut.tasks, work_of(mm), mm->form == HEED_AS_IT_IS ? run_task : heed_transposed_task, mm);
    heed_scratch_close(&scratch);
    return HEED_OK;
}

heed_status heed_matmul(const heed_context *context, heed_transpose transpose_a, heed_transpose transpose_b, size_t m,
                        size_t n, size_t k, float alpha, const float *a, size_t lda, const float *b, size_t ldb,
                        float beta, float *c, size_t ldc, const heed_workspace *workspace)
{
    static const struct heed_epilogue store = {.kind = HEED_EPILOGUE_STORE, .alpha = 1.0f};
    const struct heed_kernels *kernels;
    heed_status status = heed_kernels_of(context, &kernels);
    if (status != HEED_OK)
        return status;
    float room[ROOM_FLOATS];
    struct heed_epilogue scale;
    const struct heed_epilogue *epilogue = &store;
    if (alpha != 1.0f || beta != 0.0f) {
        scale = (struct heed_epilogue){.kind = HEED_EPILOGUE_SCALE, .alpha = alpha, .beta = beta};
        epilogue = &scale;
    }
    if (transpose_a == HEED_NO_TRANSPOSE && transpose_b == HEED_NO_TRANSPOSE && alpha != 0.0f &&
        is_small(false, false, m, n, k, a, lda, b, ldb, c, ldc) && is_for_one(context, m, n, k)) {
        struct heed_panels panels = heed_panels_in_place(b, ldb);
        panels.copy = room;
        panels.in_l2 = true;
        panels.reading = heed_reading_of_small(context, &panels.distance);
        kernels->gemm(m, n, k, a, lda, &panels, c, ldc, epilogue);
        return HEED_OK;
    }
    if (check_transpose(transpose_a) != HEED_OK || check_transpose(transpose_b) != HEED_OK)
        return HEED_ERR_ENUM;
    bool ta = transpose_a == HEED_TRANSPOSE, tb = transpose_b == HEED_TRANSPOSE;
    struct matmul mm; /* not cleared, which takes as long as a small product */
    mm.kernels = kernels;
    mm.transpose_a = ta;
    mm.transpose_b = tb;
    mm.m = m;
    mm.n = n;
    mm.k = k;
    mm.a = a;
    mm.b = b;
    mm.lda = lda;
    mm.ldb = ldb;
    mm.c = c;
    mm.ldc = ldc;
    mm.epilogue = *epilogue;
    mm.reading = heed_reading_of_small(context, &mm.distance);
    mm.packing = HEED_PACK_PREFETCH_BELOW;
    if ((ta || tb) && alpha != 0.0f && is_small(ta, tb, m, n, k, a, lda, b, ldb, c, ldc) &&
        is_for_one(context, m, n, k)) {
        heed_transpose_vectors(&mm);
        mm.form = heed_find_form(&mm);
        mm.by_tn = heed_goes_by_tn(&mm);
        if (heed_fits_small(&mm)) {
            multiply_small(&mm, room);
            return HEED_OK;
        }
    }
    return multiply_planned(context, &mm, workspace, room);
}
