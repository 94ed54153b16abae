/* SPDX-License-Identifier: MIT
 * The bits of a product do not depend on how its operands lie or on the way that the library takes, and the workspace
 * that the query asks for serves each of them, in any table.
 */
#include "check.h"

#include <string.h>

static void check_residual_in_place(const heed_context *context, size_t rows, size_t in, size_t out)
{
    float *x = buffer(rows * in, 1), *w = buffer(in * out, 2), *bias = buffer(out, 1);
    float *r = buffer(rows * out, 2), *y = buffer(rows * out, 3);
    fill_uniform(x, rows * in, -1.0f, 1.0f);
    fill_uniform(w, in * out, -1.0f, 1.0f);
    fill_uniform(bias, out, -1.0f, 1.0f);
    fill_uniform(r, rows * out, -1.0f, 1.0f);
    const heed_weights *kinds[] = {packed(in, out, w), packed_pair(in, out, w, w)};
    for (int kind = 0; kind < 4; kind++) {
        heed_linear_options o = HEED_LINEAR_OPTIONS_INIT;
        o.bias = kind & 1 ? bias : NULL;
        o.activation = kind & 1 ? HEED_ACTIVATION_GELU_ERF : HEED_ACTIVATION_NONE;
        o.residual = r;
        o.ld_residual = out;
        check_ok(heed_linear(context, rows, x, in, kinds[kind / 2], &o, y, out), "linear");
        float *in_place = buffer(rows * out, 2);
        memcpy(in_place, r, rows * out * sizeof *r);
        o.residual = in_place;
        check_ok(heed_linear(context, rows, x, in, kinds[kind / 2], &o, in_place, out), "linear over its residual");
        check_same(rows, out, in_place, out, y, out, "residual in place");
    }
}

/* k is long enough to be cut, or a single row so wide that c might hold its sums, and the residual lies where they
 * would. */
static void test_residual_in_place(const struct heed_kernels *table, const heed_context *context)
{
    begin("%s linear over its residual", table->name);
    check_residual_in_place(context, 40, 1700, 19);
    check_residual_in_place(context, 1, 50, 1000);
    release_all();
    end();
}

/* All that there is without inputs is the bias, in rows that are few, or as many as make a tile. */
static void test_no_inputs(const struct heed_kernels *table, const heed_context *context)
{
    enum { MOST = 30, WIDE = 2000 };
    float *bias = buffer(WIDE, 1), *y = buffer(MOST * WIDE, 2);
    heed_linear_options o = HEED_LINEAR_OPTIONS_INIT;
    begin("%s linear of no inputs", table->name);
    fill_uniform(bias, WIDE, -1.0f, 1.0f);
    const heed_weights *weights = packed(0, WIDE, NULL);
    o.bias = bias;
    for (size_t rows = 1; rows <= MOST; rows += rows < 3 ? 1 : 9) {
        memset(y, 0xff, rows * WIDE * sizeof *y);
        check_ok(heed_linear(context, rows, NULL, 0, weights, &o, y, WIDE), "linear of no inputs");
        check_same(rows, WIDE, y, WIDE, bias, 0, "the bias");
    }
    release_all();
    end();
}

static void test_last_worker(const struct heed_kernels *table)
{
    enum { N = 512, DEPTH = 600 };
    struct host last = {.threads = 9, .order = HOST_LAST_WORKER};
    begin("%s matmul on the last worker", table->name);
    heed_context *context = host_context(table, &last);
    float *a = buffer(16 * DEPTH, 1), *b = buffer(N * DEPTH, 2), *want = buffer(16 * N, 3), *c = buffer(16 * N, 3);
    fill_uniform(a, 16 * DEPTH, -1.0f, 1.0f);
    fill_uniform(b, N * DEPTH, -1.0f, 1.0f);
    size_t bytes = 0;
    CHECK(heed_matmul_workspace(context, HEED_TRANSPOSE, HEED_TRANSPOSE, 16, N, DEPTH, &bytes) == HEED_OK);
    heed_workspace workspace = {buffer(bytes / sizeof(float), 0), bytes};
    heed_status status = heed_matmul(context, HEED_TRANSPOSE, HEED_TRANSPOSE, 16, N, DEPTH, 1.0f, a, 16, b, DEPTH, 0.0f,
                                     c, N, &workspace);
    check_ok(status, "on the last worker");
    check_that(last.runs > 0, "%s: the host was not called", table->name);
    heed_context_destroy(context);
    context = context_on(table, 1);
    check_ok(
        heed_matmul(context, HEED_TRANSPOSE, HEED_TRANSPOSE, 16, N, DEPTH, 1.0f, a, 16, b, DEPTH, 0.0f, want, N, NULL),
        "serial");
    check_same(16, N, c, N, want, N, "matmul on the last worker");
    heed_context_destroy(context);
    release_all();
    end();
}

/* The workspace of a column by one step, which a is turned for or not by where c lies, is the same for many workers. */
static void test_workspace_of_columns(const struct heed_kernels *table)
{
    enum { LENGTH = 200000 };
    struct host last = {.threads = 8, .order = HOST_LAST_WORKER};
    begin("%s workspace of a column by one step", table->name);
    heed_context *context = host_context(table, &last);
    float *a = buffer(LENGTH, 1), *c = buffer(2 * LENGTH, 2), *want = buffer(LENGTH, 3), b = 3.0f;
    fill_uniform(a, LENGTH, -1.0f, 1.0f);
    for (size_t i = 0; i < LENGTH; i++)
        want[i] = b * a[i] + 0.0f;
    for (size_t ldc = 1; ldc <= 2; ldc++) {
        size_t bytes = 0;
        CHECK(heed_matmul_workspace(context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, LENGTH, 1, 1, &bytes) == HEED_OK);
        heed_workspace workspace = {buffer(bytes / sizeof(float), 0), bytes};
        check_ok(heed_matmul(context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, LENGTH, 1, 1, 1.0f, a, 1, &b, 1, 0.0f, c,
                             ldc, &workspace),
                 "a column by one step");
        check_same(LENGTH, 1, c, ldc, want, 1, "a column by one step");
    }
    heed_context_destroy(context);
    release_all();
    end();
}

/* A workspace as large as the query says serves a product that k is split for and one that it is not, whatever the
 * second cache holds. */
static void test_split_workspace(const struct heed_kernels *table)
{
    enum { M = 32, N = 330, DEPTH = 2100 };
    static const size_t depths[] = {1025, 2100};
    begin("%s workspace of a long product", table->name);
    heed_context_options o = HEED_CONTEXT_OPTIONS_INIT;
    heed_context *context;
    o.executor = HEED_EXECUTOR_SERIAL;
    CHECK(heed_context_create_on(&context, &o, table) == HEED_OK);
    float *a = buffer(M * DEPTH, 1), *b = buffer(N * DEPTH, 2), *want = buffer(M * N, 3), *c = buffer(M * N, 3);
    fill_uniform(a, M * DEPTH, -1.0f, 1.0f);
    fill_uniform(b, N * DEPTH, -1.0f, 1.0f);
    for (size_t d = 0; d < COUNT(depths); d++)
        for (context->l2 = 256 * 1024; context->l2 <= 2048 * 1024; context->l2 *= 2) {
            size_t k = depths[d], n = k < DEPTH ? 64 : N, bytes = 0;
            CHECK(heed_matmul_workspace(context, HEED_NO_TRANSPOSE, HEED_TRANSPOSE, M, n, k, &bytes) == HEED_OK);
            heed_workspace workspace = {buffer(bytes / sizeof(float), 0), bytes};
            check_ok(heed_matmul(context, HEED_NO_TRANSPOSE, HEED_TRANSPOSE, M, n, k, 1.0f, a, k, b, k, 0.0f, c, n,
                                 &workspace),
                     "in a workspace");
            check_ok(
                heed_matmul(context, HEED_NO_TRANSPOSE, HEED_TRANSPOSE, M, n, k, 1.0f, a, k, b, k, 0.0f, want, n, NULL),
                "without");
            check_same(M, n, c, n, want, n, "matmul in a workspace");
        }
    heed_context_destroy(context);
    release_all();
    end();
}

static size_t random_stride(size_t cols)
{
    static const size_t steps[] = {1, 1, 16, 256, 512, 1024};
    size_t step = steps[random_below(COUNT(steps))];
    return (cols + step - 1) / step * step;
}

/* On a CPU of any kind. What a call demands is known before its tasks, so that none need run; products so small that
 * one thread does them are not tried. */
static void check_any_strides(const struct heed_kernels *table, float *a, float *b, float *c, heed_workspace *room)
{
    struct host host = {.threads = 2 + random_below(8), .order = HOST_RUNS_NOTHING};
    heed_context *context = host_context(table, &host);
    size_t m = 1 + random_below(random_below(2) ? 280 : 640), n = 1 + random_below(1024);
    size_t k = 1 + random_below(random_below(2) ? 280 : 640);
    context->l2 = 8192 + n * k * sizeof(float) / (1 + random_below(6));
    context->in_order = random_below(2) ? context->l2 * (1 + random_below(12)) : HEED_CPU_ANY_ORDER - 1;
    context->wide_core = random_below(4) == 0;
    heed_transpose ta = random_below(4) ? HEED_NO_TRANSPOSE : HEED_TRANSPOSE;
    heed_transpose tb = random_below(4) ? HEED_NO_TRANSPOSE : HEED_TRANSPOSE;
    size_t lda = random_stride(ta ? m : k), ldb = random_stride(tb ? k : n), ldc = random_stride(n);
    float alpha = random_below(2) ? 1.0f : 2.0f, beta = (float)random_below(2);
    size_t bytes = 0;
    CHECK(heed_matmul_workspace(context, ta, tb, m, n, k, &bytes) == HEED_OK);
    heed_workspace workspace = {room->memory, bytes};
    if (heed_is_shared(context, (double)m * (double)n * (double)k) && CHECK(bytes <= room->bytes)) {
        heed_status status =
            heed_matmul(context, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c + random_below(2), ldc, &workspace);
        check_that(status == HEED_OK, "%zu x %zu x %zu, strides %zu, %zu and %zu: %s", m, n, k, lda, ldb, ldc,
                   heed_status_string(status));
    }
    heed_context_destroy(context);
}

static void test_workspace_of_strides(const struct heed_kernels *table)
{
    enum { MOST_FLOATS = 1024 * 1024 + 1, ROOM_FLOATS = 8 << 20 };
    float *a = buffer(MOST_FLOATS, 0), *b = buffer(MOST_FLOATS, 0), *c = buffer(MOST_FLOATS, 0);
    heed_workspace room = {buffer(ROOM_FLOATS, 0), ROOM_FLOATS * sizeof(float)};
    begin("%s workspace of products whatever their strides", table->name);
    seed(110);
    for (int call = 0; call < (quick() ? 20000 : 100000); call++)
        check_any_strides(table, a, b, c, &room);
    release_all();
    end();
}

/* A matrix as heed_matmul takes it, at the end of its page. */
static const float *stored(bool transposed, size_t rows, size_t cols, const float *x, size_t *ld, size_t gap)
{
    size_t stored_rows = transposed ? cols : rows, stored_cols = transposed ? rows : cols;
    *ld = stored_cols + gap;
    float *y = guarded((stored_rows - 1) * *ld + stored_cols, 1);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            y[transposed ? j * *ld + i : i * *ld + j] = x[i * cols + j];
    return y;
}

/* Every form of a product, and one workspace for all that alpha and beta may be, gives the bits of the plain one. */
static void check_forms(const heed_context *context, size_t m, size_t n, size_t k, size_t gap)
{
    float *a = buffer(m * k, 1), *b = buffer(k * n, 1), *want = buffer(m * n, 2), *scaled = buffer(m * n, 2);
    float *twice = buffer(m * n, 2);
    fill_uniform(a, m * k, -1.0f, 1.0f);
    fill_uniform(b, k * n, -1.0f, 1.0f);
    check_ok(heed_matmul(context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, m, n, k, 1.0f, a, k, b, n, 0.0f, want, n, NULL),
             "plain");
    for (size_t i = 0; i < m * n; i++) {
        twice[i] = -2.0f * want[i];
        scaled[i] = twice[i] + 0.0f; /* of a product of alpha 0 */
    }
    for (unsigned form = 0; form < 4; form++) {
        heed_transpose ta = form & 1 ? HEED_TRANSPOSE : HEED_NO_TRANSPOSE,
                       tb = form & 2 ? HEED_TRANSPOSE : HEED_NO_TRANSPOSE;
        size_t lda, ldb, ldc = n + gap, bytes = 1;
        const float *stored_a = stored(form & 1, m, k, a, &lda, gap), *stored_b = stored(form & 2, k, n, b, &ldb, gap);
        float *c = guarded((m - 1) * ldc + n, 1);
        CHECK(heed_matmul_workspace(context, ta, tb, m, n, k, &bytes) == HEED_OK);
        heed_workspace workspace = {guarded_bytes(bytes, 1), bytes};
        check_ok(heed_matmul(context, ta, tb, m, n, k, 1.0f, stored_a, lda, stored_b, ldb, 0.0f, c, ldc, &workspace),
                 "form");
        check_same(m, n, c, ldc, want, n, "form of a product");
        if (!is_left_out(form + m + n + k, 3)) {
            check_ok(
                heed_matmul(context, ta, tb, m, n, k, -1.0f, stored_a, lda, stored_b, ldb, 2.0f, c, ldc, &workspace),
                "old c");
            check_same(m, n, c, ldc, want, n, "twice less once");
        }
        check_ok(heed_matmul(context, ta, tb, m, n, k, 0.0f, stored_a, lda, stored_b, ldb, -2.0f, c, ldc, &workspace),
                 "scaled");
        check_same(m, n, c, ldc, scaled, n, "c scaled");
        if (quick() && form != m % 4)
            continue;
        check_ok(heed_matmul(context, ta, tb, m, n, k, -2.0f, stored_a, lda, stored_b, ldb, 0.0f, c, ldc, &workspace),
                 "twice");
        check_same(m, n, c, ldc, twice, n, "minus twice a product");
    }
}

/* Rows without a gap between them and with one of three floats; where tests are quick, one of the two in turn. */
static size_t first_gap(size_t turn)
{
    return quick() && turn % 2 ? 3 : 0;
}

static size_t next_gap(size_t gap)
{
    return gap + (quick() ? 4 : 3);
}

/* Few rows by a transposed b and few columns by a transposed a, from vectors on to more than few, read as a CPU may be
 * said to read them, by one thread and by several. */
static void test_turned(const struct heed_kernels *table)
{
    static const size_t sizes[][3] = {
        {1, 16, 16},    {16, 1, 16},     {1, 15, 20},    {1, 256, 512},  {2, 300, 1021}, {5, 1061, 257}, {8, 256, 512},
        {9, 300, 300},  {11, 1593, 129}, {12, 280, 260}, {23, 300, 257}, {32, 257, 256}, {33, 260, 256}, {64, 1, 16},
        {1061, 1, 300}, {300, 2, 67},    {2593, 5, 40},  {1061, 8, 300}, {300, 15, 67},  {257, 16, 129}, {1100, 31, 50},
        {300, 32, 40},  {7, 5, 3},       {33, 24, 40},   {60, 4, 40},    {64, 3, 513},   {300, 400, 5},  {1061, 1, 1},
        {1, 1061, 1},   {700, 1, 5},     {1, 700, 5},    {500, 1, 3},    {30, 70, 1},    {100, 1, 2500}, {1100, 33, 50},
        {141, 61, 300}, {300, 128, 129}, {3, 70, 1040},  {2, 90, 705},   {12, 80, 900},  {1, 600, 300},  {70, 2, 777},
        {70, 3, 1600},  {66, 8, 1650},   {85, 1, 2500},  {13, 16, 5},    {40, 24, 30},   {300, 12, 11},  {500, 32, 100},
        {90, 60, 200},  {2000, 16, 16},  {33, 15, 4},    {4096, 2, 4},   {600, 16, 20},  {1, 1500, 20},  {1, 748, 40},
        {4000, 3, 1},   {257, 4, 60},    {50, 300, 7},   {7, 120, 64},   {20, 1024, 6},  {13, 20, 40},   {50, 24, 40},
        {9, 37, 129}};
    begin("%s every form of products of few rows or columns", table->name);
    for (size_t threads = 1; threads <= 3; threads += 2) {
        heed_context *context = context_on(table, threads);
        const size_t in_order = context->in_order, l2 = context->l2;
        for (size_t i = 0; i < COUNT(sizes); i++) {
            context->in_order = i % 3 > 0 ? 0 : in_order;
            context->wide_core = i % 2 > 0;
            context->l2 = i % 3 > 1 ? 1024 : l2;
            for (size_t gap = first_gap(i + threads / 2); gap <= 3; gap = next_gap(gap))
                check_forms(context, sizes[i][0], sizes[i][1], sizes[i][2], gap);
            release_all();
        }
        heed_context_destroy(context);
    }
    end();
}

/* Few rows or columns, by a matrix in place that is read across: as from memory, asked for or not, and as from the
 * caches, by rows that crowd L1 and that do not; and as many as have it packed. */
static void test_across(const struct heed_kernels *table)
{
    static const size_t sizes[][3] = {{1, 1030, 600}, {2, 1100, 67},  {3, 1040, 300},  {4, 1536, 133},
                                      {5, 1024, 140}, {8, 2048, 13},  {9, 1024, 7},    {35, 1040, 9},
                                      {1100, 3, 300}, {1024, 2, 140}, {17, 1024, 300}, {97, 259, 40}};
    static const struct {
        size_t in_order, l2;
        bool wide;
    } caches[] = {{0, 1024, false},
                  {0, (size_t)1 << 20, false},
                  {HEED_CPU_ANY_ORDER - 1, 1024, false},
                  {0, 1024, true},
                  {HEED_CPU_ANY_ORDER - 1, 1024, true}};
    begin("%s few rows by a matrix that is read across", table->name);
    for (size_t threads = 1; threads <= 3; threads += 2)
        for (size_t kind = 0; kind < COUNT(caches); kind++) {
            heed_context *context = context_on(table, threads);
            context->in_order = caches[kind].in_order;
            context->l2 = caches[kind].l2;
            context->wide_core = caches[kind].wide;
            for (size_t i = 0; i < COUNT(sizes); i++)
                for (size_t gap = first_gap(i + kind + threads / 2); gap <= 3; gap = next_gap(gap)) {
                    if (is_left_out(i / 2 + kind, 2))
                        continue;
                    check_forms(context, sizes[i][0], sizes[i][1], sizes[i][2], gap);
                    release_all();
                }
            heed_context_destroy(context);
        }
    end();
}

/* Each row alone. */
static void multiply_rows(const heed_context *context, size_t m, size_t n, size_t k, const float *a, const float *b,
                          size_t ldb, float *c)
{
    for (size_t i = 0; i < m; i++)
        check_ok(heed_matmul(context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, 1, n, k, 1.0f, a + i * k, k, b, ldb, 0.0f,
                             c + i * n, n, NULL),
                 "a row");
}

static void check_linear(const heed_context *context, size_t m, size_t n, size_t k, size_t gap)
{
    float *x = buffer(m * k, 1), *w = buffer(k * n, 1), *want = buffer(m * n, 2),
          *y = guarded((m - 1) * (n + gap) + n, 1);
    fill_uniform(x, m * k, -1.0f, 1.0f);
    fill_uniform(w, k * n, -1.0f, 1.0f);
    multiply_rows(context, m, n, k, x, w, n, want);
    check_ok(heed_linear(context, m, x, k, packed(k, n, w), NULL, y, n + gap), "linear");
    check_same(m, n, y, n + gap, want, n, "linear, row by row");
}

enum { LONG_ROWS = 3100, LONG_DEPTH = 1030, WIDE_ROW = 40 };

/* a by n columns of b, ldb apart, and their transpose, of which a is the transposed matrix. */
static void check_long_rows(const heed_context *context, size_t n, const float *a, const float *b, size_t ldb)
{
    float *want = buffer(LONG_ROWS * n, 2), *c = guarded(LONG_ROWS * n, 1);
    float *columns = buffer(n * LONG_DEPTH, 1), *turned = guarded(n * LONG_ROWS, 1);
    multiply_rows(context, LONG_ROWS, n, LONG_DEPTH, a, b, ldb, want);
    check_ok(heed_matmul(context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, LONG_ROWS, n, LONG_DEPTH, 1.0f, a, LONG_DEPTH,
                         b, ldb, 0.0f, c, n, NULL),
             "long rows");
    check_same(LONG_ROWS, n, c, n, want, n, "long rows");
    for (size_t j = 0; j < n; j++)
        for (size_t p = 0; p < LONG_DEPTH; p++)
            columns[j * LONG_DEPTH + p] = b[p * ldb + j];
    check_ok(heed_matmul(context, HEED_NO_TRANSPOSE, HEED_TRANSPOSE, n, LONG_ROWS, LONG_DEPTH, 1.0f, columns,
                         LONG_DEPTH, a, LONG_DEPTH, 0.0f, turned, LONG_ROWS, NULL),
             "long rows of a transposed matrix");
    for (size_t i = 0; i < LONG_ROWS; i++)
        for (size_t j = 0; j < n; j++)
            c[i * n + j] = turned[j * LONG_ROWS + i];
    check_same(LONG_ROWS, n, c, n, want, n, "long rows of a transposed matrix");
}

/* A few columns by rows so long and so many that each is a stream of memory, or of the last cache, in one part of k. */
static void test_long_rows(const struct heed_kernels *table)
{
    begin("%s a few columns by many long rows", table->name);
    heed_context *context = context_on(table, 1);
    context->wide_core = false;
    float *a = buffer(LONG_ROWS * LONG_DEPTH, 1), *b = buffer(LONG_DEPTH * WIDE_ROW, 1);
    fill_uniform(a, LONG_ROWS * LONG_DEPTH, -1.0f, 1.0f);
    fill_uniform(b, LONG_DEPTH * WIDE_ROW, -1.0f, 1.0f);
    for (size_t n = 1; n <= (quick() ? 2 : 8); n += n)
        for (size_t far = quick() ? n / 2 : 0; far < (quick() ? n : 2); far++) {
            context->in_order = far ? 0 : HEED_CPU_ANY_ORDER - 1;
            check_long_rows(context, n, a, b, far ? WIDE_ROW : n);
        }
    release_all();
    heed_context_destroy(context);
    end();
}

/* Rows of b four pages apart, which are copied in another way, in the workspace that the query asks for. */
static void check_crowded(const struct heed_context *context, size_t m, size_t n, size_t k)
{
    enum { CROWDED = 4096 };
    float *a = buffer(m * k, 1), *b = guarded((k - 1) * CROWDED + n, 1), *c = guarded((m - 1) * (n + 3) + n, 1);
    float *want = buffer(m * n, 2);
    size_t bytes = 0;
    fill_uniform(a, m * k, -1.0f, 1.0f);
    fill_uniform(b, (k - 1) * CROWDED + n, -1.0f, 1.0f);
    multiply_rows(context, m, n, k, a, b, CROWDED, want);
    CHECK(heed_matmul_workspace(context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, m, n, k, &bytes) == HEED_OK);
    heed_workspace workspace = {guarded_bytes(bytes, 1), bytes};
    check_ok(heed_matmul(context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, m, n, k, 1.0f, a, k, b, CROWDED, 0.0f, c, n + 3,
                         &workspace),
             "rows four pages apart");
    check_same(m, n, c, n + 3, want, n, "rows of b four pages apart");
}

/* Results far larger than the second cache, of so many KiB, a few rows at a time where these share lines, one of them
 * larger than HEED_UNCACHED_FLOATS. In the last one workers that share rows need more scratch than those that share
 * columns. */
static void test_far(const struct heed_kernels *table)
{
    static const size_t sizes[][4] = {{200, 300, 16, 32},   {193, 400, 9, 32},   {500, 257, 5, 32},
                                      {260, 1100, 7, 32},   {600, 530, 3, 32},   {2100, 999, 8, 512},
                                      {400, 288, 100, 128}, {238, 913, 160, 256}};
    begin("%s results larger than the second cache", table->name);
    for (size_t kind = 0; kind < 4; kind++) {
        heed_context *context = context_on(table, kind & 1 ? 3 : 1);
        context->wide_core = kind > 1;
        for (size_t i = 0; i < COUNT(sizes); i++) {
            context->l2 = sizes[i][3] * 1024;
            if (is_left_out(i + kind + 1, 4))
                continue;
            for (size_t gap = first_gap(i + kind / 2); gap <= 3; gap = next_gap(gap)) {
                check_forms(context, sizes[i][0], sizes[i][1], sizes[i][2], gap);
                check_linear(context, sizes[i][0], sizes[i][1], sizes[i][2], gap);
                check_crowded(context, sizes[i][0], sizes[i][1], sizes[i][2]);
                release_all();
            }
        }
        heed_context_destroy(context);
    }
    end();
}

/* A single tile of rows by packed weights that L2 does not hold, on a CPU of which no order of memory is known. */
static void test_few_rows_beyond_l2(const struct heed_kernels *table)
{
    begin("%s a few rows by weights beyond the second cache", table->name);
    for (size_t threads = 1; threads <= 3; threads += 2) {
        heed_context *context = context_on(table, threads);
        context->wide_core = false;
        context->in_order = HEED_CPU_ANY_ORDER;
        context->l2 = 16 * 1024;
        for (size_t m = 1; m <= HEED_HW_PREFETCHED_TALLEST + 1; m++) {
            check_linear(context, m, 300, 131, m % 2 * 3);
            release_all();
        }
        heed_context_destroy(context);
    }
    end();
}

static void test_table(const struct heed_kernels *table)
{
    heed_context *context = context_on(table, 1);
    test_residual_in_place(table, context);
    test_no_inputs(table, context);
    test_last_worker(table);
    test_workspace_of_columns(table);
    test_split_workspace(table);
    test_workspace_of_strides(table);
    test_turned(table);
    test_across(table);
    test_long_rows(table);
    test_far(table);
    test_few_rows_beyond_l2(table);
    heed_context_destroy(context);
}

int main(void)
{
    for_each_planned_table(test_table);
    return finish();
}
