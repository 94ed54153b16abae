/* SPDX-License-Identifier: MIT
 * A product cut into blocks of rows and columns, which are its tasks, and those into blocks of k. The
 * cut never shows in the bits: every element is one chain.
 */
#include "reading.h"

/* Columns of a task at least, where a tile has more. The chains of one row wait for one another, but with two panels
 * they are as fast as the second cache. */
#define LEAST_COLS_OF_ONE ((size_t)2 * HEED_PANEL)

/* Multiply-adds of a task that make its start and end negligible: some microseconds. */
#define TASK_WORK 262144.0

/* Steps of k after which the accumulators pay a visit to c: 1/85 of the time of a tile. */
#define MOST_K 1024

/* Rows from which on the only tile there is had rather read parts of k, so that it can prefetch what comes next. */
#define LEAST_ALONE 4

/* Where lines are prefetched into L1, the most steps of k: of more, L2 keeps no sliver for a second tile, and beside b
 * a few rows of a take much of it. */
#define L1_DEPTH 2048

/* The most rows that read a b from memory in its order, panel by panel: more of them wait for elements of a. One does
 * not gain. */
#define IN_ORDER_ROWS 7

/* Times L2 from which on c is far, and the most steps beside which that tells; columns that are worth a pass of a few
 * rows, and these, in whole tiles, more of them on a CPU of so small an L2 where the last cache holds c (Zen 3 1.02 to
 * 1.1); and passes of each worker that are worth it, where b comes from memory but once. */
#define C_PER_L2 3
#define MOST_FAR_K 256
#define LEAST_FAR_COLS 256
#define FAR_ROWS 12
#define CACHED_FAR_ROWS 48
#define CACHED_FAR_L2 ((size_t)1 << 19)
#define LEAST_FAR_BLOCKS 4

struct plan {
    const struct heed_kernels *kernels;
    const struct heed_product *product;
    struct heed_cut cut;
};

/* Even parts of k, in whole panels. */
static size_t even_depth(size_t k, size_t most)
{
    size_t parts = heed_ceil_div(k, most);
    return parts > 1 ? heed_pad(heed_ceil_div(k, parts)) : k;
}

size_t heed_split_depth(size_t k)
{
    return even_depth(k, MOST_K);
}

size_t heed_sliver(const struct heed_kernels *kernels, size_t m, bool narrow)
{
    size_t tiles = heed_row_tiles(m, narrow ? kernels->narrow_mr : kernels->mr, kernels->tallest, kernels->tile_cols);
    return heed_pad(kernels->tile_cols[heed_ceil_div(m, tiles) - 1]);
}

size_t heed_task_cols(const struct heed_context *context, size_t n, size_t usual, size_t least)
{
    size_t each = n / heed_workers(context) / HEED_PANEL * HEED_PANEL;
    each = each > least ? each : least;
    return each < usual ? each : usual;
}

/* Blocks of rows. More than give every worker something to do, so that who has finished may help others, only of four
 * times the least rows: each block reads all of its columns of b, or packs them, once more. */
static size_t row_blocks(size_t m, size_t least_rows, size_t wanted, size_t needed)
{
    size_t most = m / (4 * least_rows);
    if (wanted > most)
        wanted = most > needed ? most : needed;
    if (wanted > needed)
        wanted = wanted / needed * needed;
    return wanted * least_rows > m ? heed_ceil_div(m, least_rows) : wanted;
}

/* Panels for each worker from which on one more for some of them does not tell. */
#define MANY_PANELS 8

/* Floats of a b that every worker may as well read whole: it is neither copied nor leaves L1. */
#define SHARED_FLOATS 8192

/* Blocks of columns, of a tile's width at least, and as many for each worker. One, if rows can be shared instead and
 * columns not evenly, or not to advantage: workers that write to the same lines of c wait for each other. */
static size_t column_blocks(size_t m, size_t n, size_t k, size_t least_rows, size_t sliver, size_t target,
                            size_t workers)
{
    size_t panels = heed_ceil_div(n, HEED_PANEL), parts = n > sliver ? n / sliver : 1;
    bool even = panels % workers == 0 || panels / workers >= MANY_PANELS;
    parts = parts < target ? parts : target;
    if ((parts < workers || !even || heed_times(n, k) <= SHARED_FLOATS) && m / least_rows >= workers)
        return 1;
    return parts > workers ? parts / workers * workers : parts;
}

static void count_tasks(size_t m, size_t n, struct heed_cut *cut)
{
    cut->row_blocks = heed_ceil_div(m, cut->rows);
    cut->tasks = heed_times(cut->row_blocks, heed_ceil_div(n, cut->cols));
}

/* Rows of so many even blocks, whole tiles of them. */
static size_t even_rows(size_t m, size_t blocks, size_t mr)
{
    return heed_ceil_div(heed_ceil_div(m, blocks), mr) * mr;
}

/* Columns first, so that each worker reads its own part of b, and that part only; then rows. */
void heed_cut(const struct heed_context *context, size_t m, size_t n, size_t k, size_t least_rows, struct heed_cut *cut)
{
    size_t workers = heed_workers(context), mr = context->kernels->mr, cols = n;
    if (workers > 1) {
        double work = (double)m * (double)n * (double)k / TASK_WORK;
        size_t target = work < (double)(4 * workers) ? (size_t)work : 4 * workers;
        target = target < workers ? workers : target;
        if (!cut->by_rows || m / least_rows < workers)
            cols = heed_pad(heed_ceil_div(n, column_blocks(m, n, k, least_rows, cut->sliver, target, workers)));
        size_t blocks = heed_ceil_div(n, cols);
        blocks = row_blocks(m, least_rows, heed_ceil_div(target, blocks), heed_ceil_div(workers, blocks));
        size_t rows = even_rows(m, blocks, mr);
        cut->rows = rows < cut->rows ? rows : cut->rows;
    }
    if (cols > heed_pad(cut->cols))
        cols = heed_pad(heed_even_part(cols, cut->cols));
    cut->cols = cols;
    count_tasks(m, n, cut);
}

/* An element of a takes so many times as long to transpose as one of b to pack. */
#define TRANSPOSING_PER_PACKING 2.0

/* Blocks of rows, and as many of columns as give each worker one: those for which the least is transposed and packed. 0
 * if none of them are worth a task. */
static size_t balanced_rows(size_t m, size_t n, size_t least_rows, size_t sliver, size_t workers)
{
    size_t best = 0;
    double least = 0.0;
    for (size_t rows = 1; rows <= workers && rows <= m / least_rows; rows++) {
        size_t cols = workers / rows;
        double effort = (double)rows * (double)n + TRANSPOSING_PER_PACKING * (double)cols * (double)m;
        if (workers % rows != 0 || heed_times(cols, sliver) > n || (best > 0 && effort >= least))
            continue;
        best = rows;
        least = effort;
    }
    return best;
}

void heed_cut_balanced(const struct heed_context *context, size_t m, size_t n, size_t k, size_t least_rows,
                       struct heed_cut *cut)
{
    size_t workers = heed_workers(context), blocks = balanced_rows(m, n, least_rows, cut->sliver, workers);
    if (blocks == 0) {
        heed_cut(context, m, n, k, least_rows, cut);
        return;
    }
    cut->cols = heed_pad(heed_ceil_div(n, workers / blocks));
    size_t passes = heed_ceil_div(heed_ceil_div(m, blocks), cut->rows);
    size_t rows = even_rows(m, blocks * passes, context->kernels->mr);
    cut->rows = rows < cut->rows ? rows : cut->rows;
    count_tasks(m, n, cut);
}

void heed_cut_block(const struct heed_cut *cut, size_t index, size_t m, size_t n, size_t *i, size_t *j, size_t *rows,
                    size_t *cols)
{
    *i = index % cut->row_blocks * cut->rows;
    *j = index / cut->row_blocks * cut->cols;
    *rows = m - *i < cut->rows ? m - *i : cut->rows;
    *cols = n - *j < cut->cols ? n - *j : cut->cols;
}

static size_t panels_per_column(const struct heed_product *product)
{
    return product->epilogue.kind == HEED_EPILOGUE_GATED ? 2 : 1;
}

static double bytes_of_b(const struct heed_product *product)
{
    return (double)panels_per_column(product) * heed_bytes_of(product->n, product->k);
}

/* For the rows from i and the columns from j on. */
static struct heed_epilogue epilogue_from(const struct heed_epilogue *whole, size_t i, size_t j)
{
    struct heed_epilogue epilogue = *whole;
    if (epilogue.bias)
        epilogue.bias += j;
    if (epilogue.up_bias)
        epilogue.up_bias += j;
    if (epilogue.residual)
        epilogue.residual += i * epilogue.ld_residual + j;
    return epilogue;
}

/* Part of a block's k from p on. All parts but the last leave sums in c, from which the next goes on. */
static void run_part(const struct plan *plan, size_t i, size_t j, size_t p, size_t rows, size_t cols)
{
    const struct heed_product *product = plan->product;
    size_t depth = product->k - p < plan->cut.depth ? product->k - p : plan->cut.depth;
    struct heed_panels b = product->b;
    struct heed_epilogue epilogue;
    size_t panels = panels_per_column(product);
    b.data += j / HEED_PANEL * panels * b.panel + p * b.row;
    if (p + depth < product->k) {
        b.next = b.data + depth * b.row;
        epilogue = (struct heed_epilogue){.kind = HEED_EPILOGUE_STORE};
    } else {
        if (j + cols < product->n)
            b.next = product->b.data + (j + cols) / HEED_PANEL * panels * b.panel;
        epilogue = epilogue_from(&product->epilogue, i, j);
    }
    epilogue.accumulate = p > 0;
    plan->kernels->gemm(rows, cols, depth, product->a + i * product->lda + p, product->lda, &b,
                        product->c + i * product->ldc + j, product->ldc, &epilogue);
}

static void run_block(void *arg, size_t index, size_t worker)
{
    const struct plan *plan = arg;
    const struct heed_product *product = plan->product;
    size_t i, j, rows, cols, p = 0;
    (void)worker;
    heed_cut_block(&plan->cut, index, product->m, product->n, &i, &j, &rows, &cols);
    do {
        run_part(plan, i, j, p, rows, cols);
        p += plan->cut.depth;
    } while (p < product->k);
}

/* Steps of k of which L2 takes two slivers of the only tile that some rows are: what it does not take is not
 * prefetched. Fewer rows read long runs without. */
static size_t tile_depth(const struct heed_context *context, const struct heed_product *product)
{
    const struct heed_kernels *kernels = context->kernels;
    bool far = heed_from_memory(context, bytes_of_b(product)), cached = heed_hw_prefetches(context) && !far;
    if (heed_prefetches_into_l1(context)) {
        bool whole = product->m < LEAST_ALONE || (far && product->m <= kernels->tallest);
        return whole ? product->k : even_depth(product->k, L1_DEPTH);
    }
    if (!cached || product->m < LEAST_ALONE || product->m > kernels->tallest)
        return product->k;
    return even_depth(product->k, HEED_ONE_TILE_PREFETCH_FLOATS / kernels->tile_cols[product->m - 1]);
}

/* Whether few columns go across all steps of the rows: parts of k would be rows with gaps. Of rows from memory as many
 * as columns are copied side by side, since whole lines of these leave L1 no room. */
static bool goes_across(const struct heed_context *context, const struct heed_product *product)
{
    return heed_goes_across(context, product->n, product->k) &&
           (heed_times(product->n, product->k) <= HEED_COLUMNS_FLOATS ||
            !heed_rows_from_memory(context, product->m, product->k));
}

/* The whole k, unless there are rows enough to pass again and again over a sliver of b that would
 * leave L2, and c may hold sums: no old c and no residual in it. */
static size_t block_depth(const struct heed_context *context, const struct heed_product *product)
{
    bool c_is_read = product->epilogue.beta != 0.0f || product->epilogue.residual == product->c ||
                     product->epilogue.kind == HEED_EPILOGUE_GATED;
    if (c_is_read || product->k == 0)
        return product->k ? product->k : 1;
    if (product->m <= 2 * context->kernels->tallest)
        return tile_depth(context, product);
    bool whole = product->k <= MOST_K + MOST_K / 2 || goes_across(context, product);
    return whole ? product->k : heed_split_depth(product->k);
}

size_t heed_far_rows(const struct heed_context *context, size_t m, size_t n, size_t k, const float *c, size_t ldc)
{
    size_t mr = context->kernels->mr, passes = LEAST_FAR_BLOCKS * heed_workers(context);
    bool cached = context->l2 <= CACHED_FAR_L2 && !heed_is_far_c(m, n);
    size_t rows = heed_ceil_div(cached && m / CACHED_FAR_ROWS >= passes ? CACHED_FAR_ROWS : FAR_ROWS, mr) * mr;
    bool far = k <= MOST_FAR_K && n >= LEAST_FAR_COLS && heed_times(m, n) / C_PER_L2 > context->l2 / sizeof(float);
    bool shared = ldc % HEED_PANEL != 0 || (uintptr_t)c % (HEED_PANEL * sizeof *c) != 0;
    return far && shared && m / rows >= passes ? heed_even_part(m, rows) : m;
}

/* Rows of a block whose part of a stays in a quarter of L2 while all slivers of b pass by, in whole tiles. */
static size_t near_rows(const struct heed_context *context, size_t m, size_t depth)
{
    size_t most = context->l2 / 4 / sizeof(float) / depth;
    most = most < 4 * HEED_LEAST_ROWS ? 4 * HEED_LEAST_ROWS : most;
    return m <= most + most / 4 ? m : even_rows(m, heed_ceil_div(m, most), context->kernels->mr);
}

/* The most of a block: of a few rows, columns of which L2 keeps b. */
static void limit_block(const struct heed_context *context, const struct heed_product *product, struct heed_cut *cut)
{
    size_t rows = heed_far_rows(context, product->m, product->n, product->k, product->c, product->ldc);
    size_t column = panels_per_column(product) * cut->depth * sizeof(float);
    size_t cols = context->l2 / 2 / column / HEED_PANEL * HEED_PANEL;
    cut->by_rows = rows < product->m && cols >= LEAST_FAR_COLS;
    if (cut->by_rows) {
        cut->rows = rows;
        cut->cols = cols;
    } else {
        cut->rows = near_rows(context, product->m, cut->depth);
    }
}

/* Whether a Zen 5 brings b, which lies in the last cache, early enough for more than one tile below the other: as
 * others use that too, of a good quarter of it beside half of a and c, or of three eighths for two tiles. */
static bool comes_by_itself(const struct heed_context *context, const struct heed_product *product, double bytes)
{
    double others = (double)product->m * ((double)product->k + (double)product->n) * sizeof(float);
    if (product->m <= HEED_HW_PREFETCHED_TALLEST)
        return false;
    return 16.0 * bytes + 8.0 * others <= 9.0 * (double)context->in_order ||
           (product->m <= HEED_L1_PREFETCHED_ROWS && 4.0 * bytes <= 3.0 * (double)context->in_order);
}

/* How a Zen 5 reads b: what does not come by itself is prefetched into L1, by one tile or two as they read it, and a
 * sliver ahead by more, where requests take a fiftieth of the time. L1 does not keep a sliver, but a request that ends
 * in L2 waits longer for memory: 20 to 128 rows by 64 MB 1.03 to 1.07. Rows of a may come from there to few columns. */
static void plan_l1_prefetch(const struct heed_context *context, struct heed_product *product, double bytes)
{
    struct heed_panels *b = &product->b;
    b->in_l2 |= comes_by_itself(context, product, bytes);
    b->reading = HEED_READ_LINES;
    b->distance = heed_are_wide_rows_from_memory(context, product->m, product->k) ? HEED_PREFETCH_FROM_MEMORY : 0;
    b->prefetch_l1 = !b->in_l2;
    b->hw_prefetched_rows =
        b->prefetch_l1 && product->m <= HEED_L1_PREFETCHED_ROWS ? HEED_L1_PREFETCHED_ROWS : HEED_HW_PREFETCHED_TALLEST;
    b->from_memory =
        b->prefetch_l1 && product->m > 1 && product->m <= IN_ORDER_ROWS && heed_from_memory(context, bytes);
}

/* Up to so many times L2, weights are taken to lie in a last cache of which in_order does not tell the size. */
#define LAST_CACHE_L2S 16

/* Whether another CPU than AMD's, of the widest vectors, brings packed weights to a single tile of rows in time. Its
 * prefetchers have four dozen requests of L2 under way (Intel since Golden Cove), where each of a program's holds one
 * of sixteen buffers of L1 for the 100 ns of the last cache: 1.05 to 1.3. From memory 4 to 9 rows take 1.0 to 1.06
 * times as long, with AVX2 1.2 to 1.35 times, so that its narrower tiles prefetch. */
static bool comes_to_one_tile(const struct heed_context *context, const struct heed_product *product, double bytes)
{
    bool packed = product->b.row == HEED_PANEL, wide = heed_has_wide_tiles(context);
    return !heed_hw_prefetches(context) && wide && packed && product->m <= HEED_HW_PREFETCHED_TALLEST &&
           bytes <= LAST_CACHE_L2S * (double)context->l2;
}

/* Weights of more than a third of what is taken for cached come from it in part where others use it too; then three
 * rows had better prefetch the next sliver. Of memory some more, too, prefetch what they read. */
static void plan_prefetch(const struct heed_context *context, struct heed_product *product)
{
    double bytes = bytes_of_b(product);
    if (heed_prefetches_into_l1(context)) {
        plan_l1_prefetch(context, product, bytes);
        return;
    }
    heed_leave_to_hw(context, bytes, &product->b);
    product->b.in_l2 |= comes_to_one_tile(context, product, bytes);
    if (product->b.hw_prefetched_rows == HEED_HW_PREFETCHED_CACHED_ROWS && 3.0 * bytes > (double)context->in_order)
        product->b.hw_prefetched_rows = HEED_HW_PREFETCHED_MIXED_ROWS;
    if (product->b.from_memory)
        product->b.hw_prefetched_rows = HEED_HW_PREFETCHED_TALLEST;
}

const float heed_nothing[HEED_PANEL];

/* The strides of a single row may be any numbers, steps by which would leave all memory. */
static void forget_strides_of_one(struct heed_product *product)
{
    product->lda = product->k;
    product->ldc = product->epilogue.ld_residual = product->n;
}

static void plan_cut(const struct heed_context *context, const struct heed_product *product, struct heed_cut *cut)
{
    cut->depth = block_depth(context, product);
    cut->sliver = heed_sliver(context->kernels, product->m, product->epilogue.kind == HEED_EPILOGUE_GATED);
    cut->rows = product->m;
    cut->cols = product->n;
    if (product->n > cut->sliver)
        limit_block(context, product, cut);
    if (product->m <= HEED_LEAST_ROWS)
        cut->sliver =
            heed_task_cols(context, product->n, cut->sliver, product->m == 1 ? LEAST_COLS_OF_ONE : HEED_PANEL);
    heed_cut(context, product->m, product->n, product->k, HEED_LEAST_ROWS, cut);
}

/* Whether a worker's columns of b and a block of a stay in L2. */
static bool fits_l2(const struct heed_context *context, const struct heed_product *product, const struct heed_cut *cut)
{
    double cols = (double)product->n / (double)heed_workers(context);
    cols = cols < (double)cut->cols ? cols : (double)cut->cols;
    double share = (cols * (double)panels_per_column(product) + (double)cut->rows) * (double)product->k;
    return share * sizeof(float) <= HEED_L2_SHARE * (double)context->l2;
}

void heed_product_run(const struct heed_context *context, struct heed_product *product)
{
    if (product->m == 0 || product->n == 0)
        return;
    if (product->m == 1)
        forget_strides_of_one(product);
    product->b.reading = heed_reading_of(context, product->m, product->k);
    product->b.distance = heed_across_distance(context, product->m, product->k);
    if (product->k == 0) {
        product->a = heed_nothing;
        product->lda = 0;
        product->b = heed_panels_in_place(heed_nothing, 0);
        product->b.panel = 0;
    }
    if (heed_is_small_product(product->m, product->n, product->k)) {
        product->b.in_l2 = true;
        context->kernels->gemm(product->m, product->n, product->k, product->a, product->lda, &product->b, product->c,
                               product->ldc, &product->epilogue);
        return;
    }
    struct plan plan = {.kernels = context->kernels, .product = product};
    plan_cut(context, product, &plan.cut);
    product->b.in_l2 = fits_l2(context, product, &plan.cut);
    product->b.far_c = heed_is_far_c(product->m, product->n);
    plan_prefetch(context, product);
    double work = (double)product->m * (double)product->n * ((double)product->k + 1.0);
    heed_run(context, plan.cut.tasks, work, run_block, &plan);
}
