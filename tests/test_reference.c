/* SPDX-License-Identifier: MIT
 * Every operator on every table against float64 references with computed bounds, on random and adversarial
 * input; exactly on small integers; and products against 6 sqrt(k) u, which sees what g(k) cannot.
 */
#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static heed_context *context;
static const struct inexact nothing = {NULL, NULL};

static void finish_line(const char *operator_name, const char *table, double worst)
{
    note("%s on %s: worst error is %.3f of its bound", operator_name, table, worst);
    end();
    reference_release();
}

/* ---- rows ---- */

/* Lengths of rows: all short ones, then around every boundary of the canonical order. */
static const size_t long_rows[] = {127,  128,  129,  130,  255,  256,  257,  511,  512, 513,
                                   1000, 2047, 4095, 4096, 4097, 4100, 8191, 8192, 8193};
#define SHORT_ROWS 70
#define LONGEST_ROW 8193

static size_t row_lengths(void)
{
    return SHORT_ROWS + (quick() ? 4 : COUNT(long_rows));
}

static size_t row_length(size_t index)
{
    return index < SHORT_ROWS ? index + 1 : long_rows[index - SHORT_ROWS + (quick() ? 11 : 0)];
}

enum pattern {
    ROW_GAUSSIAN,
    ROW_WIDE,
    ROW_OFFSET,
    ROW_FAR_OFFSET,
    ROW_CONSTANT,
    ROW_SPIKE,
    ROW_RAMP,
    ROW_ALTERNATING,
    ROW_SUBNORMAL,
    ROW_SMALL,
    ROW_LARGE,
    ROW_PATTERNS
};

static void fill_row(enum pattern pattern, size_t n, float *x)
{
    float constant = uniform(-1e6f, 1e6f);
    size_t spike = random_below(n);
    for (size_t i = 0; i < n; i++) {
        float g = gaussian();
        const float values[ROW_PATTERNS] = {
            [ROW_GAUSSIAN] = g,
            [ROW_WIDE] = 100.0f * g,
            [ROW_OFFSET] = 1000.0f + g,
            [ROW_FAR_OFFSET] = -1e6f + g,
            [ROW_CONSTANT] = constant,
            [ROW_SPIKE] = i == spike ? 5000.0f : g,
            [ROW_RAMP] = -0.5f * (float)i,
            [ROW_ALTERNATING] = i % 2 ? 1.0f : -1.0f,
            [ROW_SUBNORMAL] = g * 0x1p-140f,
            [ROW_SMALL] = g * 1e-12f,
            [ROW_LARGE] = g * 1e15f,
        };
        x[i] = values[pattern];
    }
}

static void test_softmax(const struct heed_kernels *table)
{
    double worst = 0.0;
    float *x = buffer(LONGEST_ROW, 3), *y = buffer(LONGEST_ROW, 1);
    seed(1);
    begin("%s softmax within its bound", table->name);
    for (size_t l = 0; l < row_lengths(); l++)
        for (int p = 0; p < ROW_PATTERNS; p++) {
            size_t n = row_length(l);
            fill_row((enum pattern)p, n, x);
            CHECK(heed_softmax(context, 1, n, x, n, y, n) == HEED_OK);
            check_inexact(1, n, y, n, reference_softmax(1, n, x, n), "softmax", &worst);
            reference_release();
        }
    finish_line("softmax", table->name, worst);
}

/* Scales and masks in turn, whose rows are rows, heads or sequences; rows wholly masked come out as zeros or -inf. */
static void check_masked_softmax(size_t n, enum pattern pattern, unsigned variant, double *worst)
{
    enum { ROWS = 2 };
    static const float scales[] = {1.0f, 0.125f, 3.0f};
    float *x = buffer(ROWS * n, 1), *y = buffer(ROWS * n, 2), *additive = buffer(ROWS * n, 3);
    unsigned char *boolean = (unsigned char *)buffer(ROWS * n, 0);
    heed_softmax_options options = HEED_SOFTMAX_OPTIONS_INIT;
    struct score_mask mask = {NULL, NULL, n};
    for (size_t i = 0; i < ROWS * n; i++) {
        boolean[i] = random_below(4) != 0;
        additive[i] = boolean[i] ? uniform(-3.0f, 3.0f) : -INFINITY;
    }
    for (size_t i = 0; i < ROWS; i++)
        fill_row(pattern, n, x + i * n);
    options.scale = scales[variant % COUNT(scales)];
    size_t by_head = variant % COUNT(scales) == 1 ? n : 0, by_batch = variant % COUNT(scales) == 2 ? n : 0;
    options.mask_rows = by_head + by_batch ? 1 : 0;
    options.mask_heads = by_head ? ROWS : 0;
    if (variant % 4 == 1) {
        options.mask = (heed_mask){additive, HEED_MASK_ADDITIVE, by_batch, by_head, n};
        mask.additive = additive;
    } else if (variant % 4 == 2) {
        options.mask = (heed_mask){boolean, HEED_MASK_BOOLEAN, by_batch, by_head, n};
        mask.boolean = boolean;
    }
    CHECK(heed_masked_softmax(context, ROWS, n, x, n, &options, y, n) == HEED_OK);
    struct inexact want = reference_masked_softmax(ROWS, n, x, n, options.scale, mask, 0);
    check_inexact(ROWS, n, y, n, want, "masked softmax", worst);
    want = reference_masked_softmax(ROWS, n, x, n, options.scale, mask, 1);
    CHECK(heed_log_softmax(context, ROWS, n, x, n, &options, x, n) == HEED_OK);
    check_inexact(ROWS, n, x, n, want, "log softmax", worst);
    reference_release();
    release_all();
}

static void test_masked_softmax(const struct heed_kernels *table)
{
    double worst = 0.0;
    seed(17);
    begin("%s masked and log softmax within their bounds", table->name);
    for (size_t l = 0; l < row_lengths(); l++)
        for (int p = 0; p < ROW_PATTERNS; p++)
            check_masked_softmax(row_length(l), (enum pattern)p, (unsigned)(l + 5 * (size_t)p), &worst);
    finish_line("masked and log softmax", table->name, worst);
}

/* Rows as long as a vocabulary. */
static void test_long_rows(const struct heed_kernels *table)
{
    static const size_t lengths[] = {151936, 643251};
    double worst = 0.0;
    seed(18);
    begin("%s softmax of long rows", table->name);
    for (size_t l = 0; l < (quick() ? 1 : COUNT(lengths)); l++) {
        size_t n = lengths[l];
        float *x = buffer(n, 1), *y = buffer(n, 2);
        const struct score_mask none = {NULL, NULL, n};
        fill_row(ROW_GAUSSIAN, n, x);
        CHECK(heed_softmax(context, 1, n, x, n, y, n) == HEED_OK);
        check_inexact(1, n, y, n, reference_softmax(1, n, x, n), "softmax", &worst);
        CHECK(heed_log_softmax(context, 1, n, x, n, NULL, y, n) == HEED_OK);
        check_inexact(1, n, y, n, reference_masked_softmax(1, n, x, n, 1.0f, none, 1), "log softmax", &worst);
        reference_release();
        release_all();
    }
    finish_line("long rows", table->name, worst);
}

static void check_layernorm(size_t n, enum pattern pattern, float eps, int with_vectors, float *memory, double *worst)
{
    float *x = memory, *y = x + LONGEST_ROW, *scale = y + LONGEST_ROW, *shift = scale + LONGEST_ROW, moments[2];
    heed_layernorm_options options = HEED_LAYERNORM_OPTIONS_INIT;
    fill_row(pattern, n, x);
    fill_uniform(scale, n, -2.0f, 2.0f);
    fill_uniform(shift, n, -1.0f, 1.0f);
    options.eps = eps;
    options.scale = with_vectors ? scale : NULL;
    options.shift = with_vectors ? shift : NULL;
    options.mean = &moments[0];
    options.inverse_deviation = &moments[1];
    CHECK(heed_layernorm(context, 1, n, x, n, &options, y, n) == HEED_OK);
    struct inexact rows = inexact_rows(1, n, x, n);
    check_inexact(1, n, y, n, reference_layernorm(1, n, rows, options.scale, options.shift, eps), "layernorm", worst);
    check_inexact(1, 2, moments, 2, reference_moments(1, n, rows, eps), "mean and inverse deviation", worst);
    reference_release();
}

static void test_layernorm(const struct heed_kernels *table)
{
    static const float eps[] = {1e-5f, 0.0f, 1e-12f};
    double worst = 0.0;
    float *memory = buffer(4 * LONGEST_ROW, 5);
    seed(2);
    begin("%s layernorm within its bound", table->name);
    for (size_t l = 0; l < row_lengths(); l++)
        for (int p = 0; p < ROW_PATTERNS; p++) {
            /* Inputs that are flushed before they are divided by their deviation have no bound. */
            if (p == ROW_SUBNORMAL && subnormal_slack(table) > 0.0)
                continue;
            check_layernorm(row_length(l), (enum pattern)p, eps[(l + (size_t)p) % COUNT(eps)], (int)(l % 3 > 0), memory,
                            &worst);
        }
    finish_line("layernorm", table->name, worst);
}

/* What a residual is added to, and their sum, a plain float addition. */
static void fill_sum(size_t count, float *x, float *r, float *sum)
{
    fill_uniform(x, count, -3.0f, 3.0f);
    fill_uniform(r, count, -300.0f, 300.0f);
    for (size_t i = 0; i < count; i++)
        sum[i] = x[i] + r[i];
}

/* Everything after the sum is LayerNorm of it. */
static void test_residual(const struct heed_kernels *table)
{
    enum { ROWS = 3, MOST = 300 };
    double worst = 0.0;
    float *x = buffer(ROWS * MOST, 1), *r = buffer(ROWS * MOST, 2), *sum = buffer(ROWS * MOST, 3);
    float *want = buffer(ROWS * MOST, 0), *y = buffer(ROWS * MOST, 4);
    seed(3);
    begin("%s layernorm of a sum", table->name);
    for (size_t n = 1; n <= MOST; n += n < 40 ? 1 : 37) {
        heed_layernorm_options options = HEED_LAYERNORM_OPTIONS_INIT;
        fill_sum(ROWS * n, x, r, want);
        options.residual = r;
        options.ld_residual = n;
        options.sum = sum;
        options.ld_sum = n;
        CHECK(heed_layernorm(context, ROWS, n, x, n, &options, y, n) == HEED_OK);
        check_same(ROWS, n, sum, n, want, n, "sum");
        struct inexact normal = reference_layernorm(ROWS, n, inexact_rows(ROWS, n, want, n), NULL, NULL, options.eps);
        check_inexact(ROWS, n, y, n, normal, "layernorm", &worst);
        options.sum = NULL;
        CHECK(heed_layernorm(context, ROWS, n, x, n, &options, x, n) == HEED_OK);
        check_same(ROWS, n, x, n, y, n, "in place, without the sum");
        reference_release();
    }
    finish_line("layernorm of a sum", table->name, worst);
}

static void check_rmsnorm(size_t n, enum pattern pattern, float eps, int with_scale, float *memory, double *worst)
{
    float *x = memory, *y = x + LONGEST_ROW, *scale = y + LONGEST_ROW, inverse;
    heed_rmsnorm_options options = HEED_RMSNORM_OPTIONS_INIT;
    fill_row(pattern, n, x);
    fill_uniform(scale, n, -2.0f, 2.0f);
    options.eps = eps;
    options.scale = with_scale ? scale : NULL;
    options.inverse_rms = &inverse;
    CHECK(heed_rmsnorm(context, 1, n, x, n, &options, y, n) == HEED_OK);
    struct inexact want_inverse = inexact_new(1);
    struct inexact want = reference_rmsnorm(1, n, inexact_rows(1, n, x, n), options.scale, eps, want_inverse);
    check_inexact(1, n, y, n, want, "rmsnorm", worst);
    check_bound((double)inverse, want_inverse.value[0], want_inverse.error[0], "inverse rms", 0);
    reference_release();
}

static void test_rmsnorm(const struct heed_kernels *table)
{
    static const float eps[] = {1e-5f, 0.0f, 1e-12f};
    double worst = 0.0;
    float *memory = buffer(3 * LONGEST_ROW, 5);
    seed(15);
    begin("%s rmsnorm within its bound", table->name);
    for (size_t l = 0; l < row_lengths(); l++)
        for (int p = 0; p < ROW_PATTERNS; p++) {
            if (p == ROW_SUBNORMAL && subnormal_slack(table) > 0.0)
                continue;
            check_rmsnorm(row_length(l), (enum pattern)p, eps[(l + (size_t)p) % COUNT(eps)], (int)(l % 3 > 0), memory,
                          &worst);
        }
    finish_line("rmsnorm", table->name, worst);
}

/* The sum is that of LayerNorm; the rest has the bits of RMSNorm of that sum. */
static void test_rmsnorm_residual(const struct heed_kernels *table)
{
    enum { ROWS = 6, MOST = 300 };
    float *x = buffer(ROWS * MOST, 1), *r = buffer(ROWS * MOST, 2), *sum = buffer(ROWS * MOST, 3);
    float *want = buffer(ROWS * MOST, 0), *y = buffer(ROWS * MOST, 4);
    seed(16);
    begin("%s rmsnorm of a sum", table->name);
    for (size_t n = 1; n <= MOST; n += n < 40 ? 1 : 37) {
        heed_rmsnorm_options options = HEED_RMSNORM_OPTIONS_INIT;
        fill_sum(ROWS * n, x, r, want);
        options.residual = r;
        options.ld_residual = n;
        options.sum = sum;
        options.ld_sum = n;
        CHECK(heed_rmsnorm(context, ROWS, n, x, n, &options, y, n) == HEED_OK);
        check_same(ROWS, n, sum, n, want, n, "sum");
        CHECK(heed_rmsnorm(context, ROWS, n, want, n, NULL, want, n) == HEED_OK);
        check_same(ROWS, n, y, n, want, n, "rmsnorm of the sum");
        options.sum = NULL;
        CHECK(heed_rmsnorm(context, ROWS, n, x, n, &options, r, n) == HEED_OK);
        check_same(ROWS, n, r, n, y, n, "over the residual, without the sum");
    }
    end();
}

static void test_activations(const struct heed_kernels *table)
{
    static const char *const names[] = {"none", "relu", "gelu erf", "gelu tanh", "silu"};
    static const float special[] = {0.0f,    -0.0f,  0x1p-149f,       -0x1p-149f,      0x1p-126f, 1e-20f,
                                    -1e-20f, 5.5f,   -5.5f,           -13.0f,          13.0f,     -40.0f,
                                    1e10f,   -1e10f, 0x1.fffffep127f, -0x1.fffffep127f};
    size_t n = quick() ? 2000 : 40000;
    float *x = buffer(n, 1), *y = buffer(n, 2);
    seed(4);
    for (size_t i = 0; i < n; i++)
        x[i] = i < COUNT(special) ? special[i]
               : i % 3            ? uniform(-15.0f, 15.0f)
                                  : ldexpf(gaussian(), (int)(i % 120) - 100);
    for (int a = 0; a < (int)COUNT(names); a++) {
        double worst = 0.0;
        begin("%s activation %s within its bound", table->name, names[a]);
        CHECK(heed_activate(context, (heed_activation)a, 1, n, x, n, y, n) == HEED_OK);
        check_inexact(1, n, y, n, reference_activate((heed_activation)a, n, inexact_rows(1, n, x, n)), names[a],
                      &worst);
        finish_line(names[a], table->name, worst);
    }
}

static void test_gated(const struct heed_kernels *table)
{
    enum { ROWS = 3, MOST = 70 };
    double worst = 0.0;
    float *gate = buffer(ROWS * MOST, 1), *up = buffer(ROWS * MOST, 2), *y = buffer(ROWS * MOST, 3);
    seed(14);
    begin("%s gated products within their bound", table->name);
    for (int a = HEED_ACTIVATION_NONE; a <= HEED_ACTIVATION_SILU; a++)
        for (size_t n = 1; n <= MOST; n++) {
            for (size_t i = 0; i < ROWS * n; i++)
                gate[i] = i % 3 ? uniform(-15.0f, 15.0f) : ldexpf(gaussian(), (int)(i % 60) - 50);
            fill_uniform(up, ROWS * n, -30.0f, 30.0f);
            CHECK(heed_activate_gated(context, (heed_activation)a, ROWS, n, gate, n, up, n, y, n) == HEED_OK);
            struct inexact want = reference_gated((heed_activation)a, ROWS * n, inexact_rows(ROWS, n, gate, n),
                                                  inexact_rows(ROWS, n, up, n));
            check_inexact(ROWS, n, y, n, want, "gated", &worst);
            float *in_place = n % 2 ? gate : up;
            CHECK(heed_activate_gated(context, (heed_activation)a, ROWS, n, gate, n, up, n, in_place, n) == HEED_OK);
            check_same(ROWS, n, in_place, n, y, n, "in place");
            reference_release();
        }
    finish_line("gated products", table->name, worst);
}

static void test_l2_and_pool(const struct heed_kernels *table)
{
    double worst = 0.0;
    float *x = buffer(LONGEST_ROW, 1), *y = buffer(LONGEST_ROW, 2);
    seed(5);
    begin("%s l2 norm and pooling within their bounds", table->name);
    for (size_t l = 0; l < row_lengths(); l++)
        for (int p = ROW_GAUSSIAN; p <= ROW_ALTERNATING; p++) {
            size_t n = row_length(l);
            float eps = l % 4 == 3 ? 1000.0f : p % 2 ? 0.0f : 1e-12f;
            fill_row((enum pattern)p, n, x);
            CHECK(heed_l2_normalize(context, 1, n, eps, x, n, y, n) == HEED_OK);
            check_inexact(1, n, y, n, reference_l2(1, n, eps, x, n), "l2", &worst);
            size_t cols = l % 7 + 1, rows = n / cols;
            const size_t offsets[] = {0, rows};
            CHECK(heed_pool(context, HEED_POOLING_MEAN, 1, offsets, cols, x, cols, y, cols) == HEED_OK);
            if (rows > 0)
                check_inexact(1, cols, y, cols, reference_mean(rows, cols, x, cols), "mean", &worst);
            CHECK(heed_pool(context, HEED_POOLING_FIRST, 1, offsets, cols, x, cols, y, cols) == HEED_OK);
            if (rows > 0)
                check_same(1, cols, y, cols, x, cols, "first");
            CHECK(heed_pool(context, HEED_POOLING_LAST, 1, offsets, cols, x, cols, y, cols) == HEED_OK);
            if (rows > 0)
                check_same(1, cols, y, cols, x + (rows - 1) * cols, cols, "last");
            memset(x, 0, n * sizeof *x);
            CHECK(heed_l2_normalize(context, 1, n, p % 2 ? 0x1p-149f : 0.0f, x, n, y, n) == HEED_OK);
            check_same(1, n, y, n, x, n, "a zero row");
            reference_release();
        }
    finish_line("l2 norm and pooling", table->name, worst);
}

/* Rows are added as floats, in the order of the tables. */
static void test_embedding(const struct heed_kernels *table)
{
    enum { ROWS = 11, COLS = 67, TOKENS = 9, TABLES = 3 };
    float *rows[TABLES], *y = buffer(TOKENS * COLS, 3), *want = buffer(TOKENS * COLS, 0);
    int32_t ids[TOKENS];
    const size_t offsets[] = {0, 4, 4, TOKENS};
    heed_embedding_table tables[TABLES];
    double worst = 0.0;
    seed(6);
    begin("%s embedding exactly", table->name);
    for (size_t i = 0; i < TABLES; i++) {
        rows[i] = buffer(ROWS * COLS, i);
        fill_uniform(rows[i], ROWS * COLS, -1.0f, 1.0f);
        tables[i] = (heed_embedding_table){rows[i], ROWS, COLS, i == 1 ? NULL : ids, 2};
    }
    for (size_t i = 0; i < TOKENS; i++)
        ids[i] = (int32_t)random_below(ROWS);
    for (size_t cols = 1; cols <= COLS; cols++) {
        struct inexact exact = inexact_new(TOKENS * cols);
        for (size_t i = 0; i < TOKENS; i++)
            for (size_t j = 0; j < cols; j++) {
                size_t position = 2 + (i < 4 ? i : i - 4), id = (size_t)ids[i];
                const float a = rows[0][id * COLS + j], b = rows[1][position * COLS + j], c = rows[2][id * COLS + j];
                float sum = a + b;
                want[i * COLS + j] = sum + c;
                exact.value[i * cols + j] = (double)a + (double)b + (double)c;
                exact.error[i * cols + j] =
                    gamma_of(TABLES - 1) * (fabs((double)a) + fabs((double)b) + fabs((double)c));
            }
        CHECK(heed_embed(context, TOKENS, cols, TABLES, tables, 3, offsets, y, COLS) == HEED_OK);
        check_same(TOKENS, cols, y, COLS, want, COLS, "embedding");
        check_inexact(TOKENS, cols, y, COLS, exact, "embedding", &worst);
    }
    finish_line("embedding", table->name, worst);
}

/* The bits of the two operators, whatever else is asked for. */
static void test_embed_layernorm(const struct heed_kernels *table)
{
    enum { ROWS = 11, COLS = 67, TOKENS = 9, TABLES = 2 };
    float *rows[TABLES], *y = buffer(TOKENS * COLS, 3), *want = buffer(TOKENS * COLS, 0),
                         *sum = buffer(TOKENS * (COLS + 1), 1);
    float *scale = buffer(COLS, 2), *shift = buffer(COLS, 5), moments[2][2][TOKENS];
    int32_t ids[TOKENS];
    const size_t offsets[] = {0, 4, 4, TOKENS};
    heed_embedding_table tables[TABLES];
    seed(22);
    begin("%s embedding and layernorm at once", table->name);
    for (size_t i = 0; i < TABLES; i++) {
        rows[i] = buffer(ROWS * COLS, i);
        fill_uniform(rows[i], ROWS * COLS, -1.0f, 1.0f);
        tables[i] = (heed_embedding_table){rows[i], ROWS, COLS, i == 1 ? NULL : ids, 2};
    }
    for (size_t i = 0; i < TOKENS; i++)
        ids[i] = (int32_t)random_below(ROWS);
    fill_uniform(scale, COLS, -2.0f, 2.0f);
    fill_uniform(shift, COLS, -2.0f, 2.0f);
    for (size_t cols = 1; cols <= COLS; cols++) {
        heed_layernorm_options o = HEED_LAYERNORM_OPTIONS_INIT;
        o.scale = scale;
        o.shift = shift;
        o.mean = moments[0][0];
        o.inverse_deviation = moments[0][1];
        CHECK(heed_embed(context, TOKENS, cols, TABLES, tables, 3, offsets, want, cols) == HEED_OK);
        o.sum = sum;
        o.ld_sum = COLS + 1;
        CHECK(heed_embed_layernorm(context, TOKENS, cols, TABLES, tables, 3, offsets, &o, y, COLS) == HEED_OK);
        check_same(TOKENS, cols, sum, COLS + 1, want, cols, "sum");
        o.sum = NULL;
        o.mean = moments[1][0];
        o.inverse_deviation = moments[1][1];
        CHECK(heed_layernorm(context, TOKENS, cols, want, cols, &o, want, cols) == HEED_OK);
        check_same(TOKENS, cols, y, COLS, want, cols, "layernorm");
        check_same(2, TOKENS, moments[0][0], TOKENS, moments[1][0], TOKENS, "moments");
        CHECK(heed_embed_layernorm(context, TOKENS, cols, TABLES, tables, 3, offsets, &o, sum, COLS) == HEED_OK);
        check_same(TOKENS, cols, sum, COLS, want, cols, "without the sum");
    }
    end();
}

/* ---- products ---- */

static void fill_product(size_t n, int wide, float *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = wide ? ldexpf(gaussian(), (int)random_below(40) - 20) : gaussian();
}

/* A random problem of the given size with gaps between rows, in its own buffers. */
static struct matmul_problem random_problem(size_t m, size_t n, size_t k, unsigned variant)
{
    static const float alphas[] = {1.0f, -0.5f, 1.25f}, betas[] = {0.0f, 1.0f, -2.0f};
    struct matmul_problem p = {.transpose_a = (heed_transpose)(variant % 2),
                               .transpose_b = (heed_transpose)(variant / 2 % 2),
                               .m = m,
                               .n = n,
                               .k = k,
                               .alpha = alphas[variant % 3],
                               .beta = betas[variant / 3 % 3]};
    p.lda = (variant % 2 ? m : k) + variant % 3;
    p.ldb = (variant / 2 % 2 ? k : n) + variant % 5;
    p.ldc = n + variant % 4;
    size_t a_size = (variant % 2 ? k : m) * p.lda, b_size = (variant / 2 % 2 ? n : k) * p.ldb;
    float *a = buffer(a_size, 1), *b = buffer(b_size, 2), *c = buffer(m * p.ldc, 3);
    fill_product(a_size, variant % 7 == 6, a);
    fill_product(b_size, variant % 7 == 6, b);
    fill_product(m * p.ldc, 0, c);
    p.a = a;
    p.b = b;
    p.c = c;
    return p;
}

static void run_matmul(const struct matmul_problem *p, float *c)
{
    if (p->m * p->ldc > 0)
        memcpy(c, p->c, p->m * p->ldc * sizeof *c);
    CHECK(heed_matmul(context, p->transpose_a, p->transpose_b, p->m, p->n, p->k, p->alpha, p->a, p->lda, p->b, p->ldb,
                      p->beta, c, p->ldc, NULL) == HEED_OK);
}

static void test_matmul(const struct heed_kernels *table)
{
    static const size_t sizes[][3] = {{1, 1, 1},      {1, 1, 0},      {3, 5, 2},      {7, 17, 9},     {13, 33, 31},
                                      {16, 16, 16},   {25, 65, 64},   {6, 64, 300},   {1, 100, 1000}, {50, 3, 4097},
                                      {97, 63, 40},   {30, 130, 77},  {3, 20, 10000}, {9, 257, 33},   {290, 37, 33},
                                      {3, 300, 2000}, {261, 20, 2000}};
    double worst = 0.0;
    seed(7);
    begin("%s matmul within its bound", table->name);
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (unsigned variant = 0; variant < (quick() ? 4u : 36u); variant++) {
            if (variant >= 12 && sizes[s][0] * sizes[s][1] * sizes[s][2] > 100000)
                break;
            struct matmul_problem p = random_problem(sizes[s][0], sizes[s][1], sizes[s][2], variant);
            float *c = buffer(p.m * p.ldc, 5);
            run_matmul(&p, c);
            check_inexact(p.m, p.n, c, p.ldc, reference_matmul(&p), "matmul", &worst);
            reference_release();
            release_all();
        }
    finish_line("matmul", table->name, worst);
}

/* Rounding errors are independent enough that 6 sqrt(k) u holds on fixed seeds; a lost term does not. */
static void test_tripwire(const struct heed_kernels *table)
{
    static const size_t depths[] = {4, 16, 64, 256, 1024, 4096, 16384};
    double worst = 0.0;
    seed(8);
    begin("%s matmul within 6 sqrt(k) u", table->name);
    for (size_t d = 0; d < COUNT(depths) - (quick() ? 2 : 0); d++) {
        struct matmul_problem p = random_problem(9, 35, depths[d], 0);
        float *c = buffer(p.m * p.ldc, 0);
        p.alpha = 1.0f;
        run_matmul(&p, c);
        struct inexact want = reference_matmul(&p);
        double shrink = 6.0 * sqrt((double)p.k) * UNIT / gamma_of((double)p.k + 2);
        for (size_t i = 0; i < p.m * p.n; i++)
            want.error[i] *= shrink;
        check_inexact(p.m, p.n, c, p.ldc, want, "matmul", &worst);
        reference_release();
        release_all();
    }
    finish_line("matmul tripwire", table->name, worst);
}

/* Integers whose sums stay below 2^24 make every order exact: bound 0. */
static void check_exact_matmul(size_t m, size_t n, size_t k, unsigned variant)
{
    static const float alphas[] = {1.0f, -1.0f, 2.0f, 0.5f, 0.0f}, betas[] = {0.0f, 1.0f, -2.0f, 0.5f};
    struct matmul_problem p = random_problem(m, n, k, variant);
    size_t a_size = (p.transpose_a ? k : m) * p.lda, b_size = (p.transpose_b ? n : k) * p.ldb;
    float *a = buffer(a_size, 4), *b = buffer(b_size, 7), *c = buffer(m * p.ldc, 9);
    double worst = 0.0;
    p.alpha = alphas[variant % COUNT(alphas)];
    p.beta = betas[variant % COUNT(betas)];
    fill_integers(a, a_size, 31);
    fill_integers(b, b_size, 31);
    fill_integers((float *)(uintptr_t)p.c, m * p.ldc, 1000);
    p.a = a;
    p.b = b;
    run_matmul(&p, c);
    struct inexact want = reference_matmul(&p);
    memset(want.error, 0, m * n * sizeof *want.error);
    check_inexact(m, n, c, p.ldc, want, "integers", &worst);
    for (size_t i = 0; i < m; i++)
        check_same(1, p.ldc - n, c + i * p.ldc + n, 1, p.c + i * p.ldc + n, 1, "gap");
    reference_release();
    release_all();
}

static void test_exact_matmul(const struct heed_kernels *table)
{
    static const size_t ms[] = {1, 2, 5, 7, 13, 49}, ns[] = {1, 15, 16, 17, 33, 65, 129};
    static const size_t ks[] = {0, 1, 2, 3, 16, 31, 100, 257, 1000, 4099};
    unsigned variant = 0;
    seed(9);
    begin("%s matmul exactly on integers", table->name);
    for (size_t i = 0; i < COUNT(ms); i++)
        for (size_t j = 0; j < COUNT(ns); j++)
            for (size_t l = 0; l < COUNT(ks) - (quick() ? 3 : 0); l++)
                check_exact_matmul(ms[i], ns[j], ks[l], variant++);
    end();
}

static void check_linear(size_t m, size_t in, size_t out, unsigned variant, int integers, double *worst)
{
    float *x = buffer(m * in, 1), *w = buffer(in * out, 0), *bias = buffer(out, 3), *r = buffer(m * out, 2);
    float *y = buffer(m * out, 5);
    heed_linear_options options = HEED_LINEAR_OPTIONS_INIT;
    options.activation = integers ? (heed_activation)(variant % 2) : (heed_activation)(variant % 4);
    options.bias = variant % 3 ? bias : NULL;
    options.residual = variant % 5 ? r : NULL;
    options.ld_residual = out;
    float *const operands[] = {x, w, bias, r};
    const size_t counts[] = {m * in, in * out, out, m * out};
    for (int i = 0; i < 4; i++)
        integers ? fill_integers(operands[i], counts[i], 31) : fill_product(counts[i], variant % 7 == 6, operands[i]);
    CHECK(heed_linear(context, m, x, in, packed(in, out, w), &options, y, out) == HEED_OK);
    struct inexact residual = options.residual ? inexact_rows(m, out, r, out) : nothing;
    struct inexact want =
        reference_linear(m, in, out, inexact_rows(m, in, x, in), w, options.bias, options.activation, residual);
    if (integers)
        memset(want.error, 0, m * out * sizeof *want.error);
    check_inexact(m, out, y, out, want, integers ? "linear on integers" : "linear", worst);
    reference_release();
    release_all();
}

static void test_linear(const struct heed_kernels *table)
{
    static const size_t sizes[][3] = {{1, 1, 1},    {1, 0, 5},     {4, 3, 2},      {7, 9, 17},    {13, 31, 33},
                                      {16, 16, 16}, {25, 64, 65},  {6, 300, 64},   {1, 1000, 97}, {11, 2049, 3},
                                      {97, 40, 63}, {30, 77, 130}, {100, 33, 200}, {2, 129, 300}};
    double worst = 0.0;
    seed(10);
    begin("%s linear within its bound, and exactly on integers", table->name);
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (unsigned variant = 0; variant < (quick() ? 3u : 12u); variant++) {
            check_linear(sizes[s][0], sizes[s][1], sizes[s][2], variant, 0, &worst);
            check_linear(sizes[s][0], sizes[s][1], sizes[s][2], variant, 1, &worst);
        }
    finish_line("linear", table->name, worst);
}

/* ---- attention ---- */

struct attention_case {
    size_t batch, heads, kv_heads, seq_q, seq_kv, head_dim, value_dim;
    heed_causal causal;
    heed_mask_type mask;
    int lengths, map;
    float magnitude;    /* of q: scores reach its square or so times sqrt(head_dim) */
    size_t left, right; /* window, plus 1; 0: unbounded */
    float softcap;
    int slopes, sinks;
};

static const struct attention_case attention_cases[] = {
    {1, 1, 1, 1, 1, 1, 1, HEED_CAUSAL_NONE, HEED_MASK_NONE, 0, 1, 1.0f, 0, 0, 0.0f, 0, 0},
    {2, 3, 3, 5, 7, 4, 4, HEED_CAUSAL_NONE, HEED_MASK_NONE, 0, 1, 1.0f, 0, 0, 0.0f, 0, 0},
    {2, 4, 2, 9, 17, 16, 8, HEED_CAUSAL_TOP_LEFT, HEED_MASK_NONE, 1, 1, 3.0f, 0, 0, 0.0f, 0, 0},
    {1, 6, 1, 13, 31, 33, 17, HEED_CAUSAL_BOTTOM_RIGHT, HEED_MASK_NONE, 0, 1, 3.0f, 0, 0, 0.0f, 0, 0},
    {3, 2, 1, 20, 12, 8, 5, HEED_CAUSAL_BOTTOM_RIGHT, HEED_MASK_BOOLEAN, 1, 1, 2.0f, 0, 0, 0.0f, 0, 0},
    {2, 2, 2, 7, 50, 64, 64, HEED_CAUSAL_NONE, HEED_MASK_ADDITIVE, 1, 1, 1.0f, 0, 0, 0.0f, 0, 0},
    {1, 2, 2, 3, 255, 32, 16, HEED_CAUSAL_NONE, HEED_MASK_NONE, 0, 1, 2.0f, 0, 0, 0.0f, 0, 0},
    {1, 2, 2, 3, 256, 32, 16, HEED_CAUSAL_NONE, HEED_MASK_ADDITIVE, 0, 1, 2.0f, 0, 0, 0.0f, 0, 0},
    {1, 2, 1, 3, 257, 32, 24, HEED_CAUSAL_NONE, HEED_MASK_BOOLEAN, 0, 1, 2.0f, 0, 0, 0.0f, 0, 0},
    {1, 1, 1, 60, 600, 16, 16, HEED_CAUSAL_BOTTOM_RIGHT, HEED_MASK_NONE, 0, 1, 2.0f, 0, 0, 0.0f, 0, 0},
    {1, 1, 1, 300, 300, 24, 16, HEED_CAUSAL_TOP_LEFT, HEED_MASK_NONE, 0, 0, 1.0f, 0, 0, 0.0f, 0, 0},
    /* The last rows of a tile, of 24 or 12 rows, see the first keys of a block. */
    {1, 1, 1, 48, 282, 16, 16, HEED_CAUSAL_BOTTOM_RIGHT, HEED_MASK_NONE, 0, 1, 2.0f, 0, 0, 0.0f, 0, 0},
    {1, 1, 1, 48, 294, 16, 16, HEED_CAUSAL_BOTTOM_RIGHT, HEED_MASK_NONE, 0, 1, 2.0f, 31, 0, 0.0f, 0, 0},
    {1, 2, 1, 5, 1500, 64, 33, HEED_CAUSAL_NONE, HEED_MASK_NONE, 0, 1, 10.0f, 0, 0, 0.0f, 0, 0},
    {1, 1, 1, 4, 700, 64, 64, HEED_CAUSAL_NONE, HEED_MASK_NONE, 0, 1, 1000.0f, 0, 0, 0.0f, 0, 0},
    {1, 1, 1, 4, 700, 64, 64, HEED_CAUSAL_NONE, HEED_MASK_ADDITIVE, 0, 1, 1000.0f, 0, 0, 0.0f, 0, 0},
    {1, 1, 1, 4, 300, 16, 16, HEED_CAUSAL_NONE, HEED_MASK_NONE, 0, 1, 1e-20f, 0, 0, 0.0f, 0, 0},
    {1, 2, 2, 2, 9, 0, 3, HEED_CAUSAL_NONE, HEED_MASK_NONE, 0, 1, 1.0f, 0, 0, 0.0f, 0, 0},
    {1, 1, 1, 2, 5, 7, 130, HEED_CAUSAL_NONE, HEED_MASK_NONE, 0, 1, 1.0f, 0, 0, 0.0f, 0, 0},
    {1, 2, 1, 30, 30, 16, 16, HEED_CAUSAL_BOTTOM_RIGHT, HEED_MASK_NONE, 0, 1, 2.0f, 6, 0, 0.0f, 0, 0},
    {1, 2, 2, 30, 60, 8, 16, HEED_CAUSAL_TOP_LEFT, HEED_MASK_NONE, 0, 0, 2.0f, 6, 0, 0.0f, 0, 0},
    {2, 2, 2, 70, 700, 24, 20, HEED_CAUSAL_NONE, HEED_MASK_NONE, 1, 1, 2.0f, 301, 41, 0.0f, 0, 0},
    {1, 2, 2, 90, 40, 24, 20, HEED_CAUSAL_TOP_LEFT, HEED_MASK_NONE, 0, 1, 2.0f, 1, 0, 0.0f, 0, 0},
    {1, 1, 1, 7, 600, 8, 16, HEED_CAUSAL_NONE, HEED_MASK_ADDITIVE, 0, 1, 2.0f, 0, 1, 0.0f, 0, 0},
    {2, 3, 3, 9, 300, 32, 18, HEED_CAUSAL_NONE, HEED_MASK_NONE, 0, 1, 3.0f, 0, 0, 5.0f, 0, 0},
    {1, 2, 2, 9, 300, 64, 18, HEED_CAUSAL_NONE, HEED_MASK_NONE, 0, 1, 100.0f, 0, 0, 30.0f, 0, 0},
    {1, 2, 2, 9, 520, 16, 18, HEED_CAUSAL_TOP_LEFT, HEED_MASK_BOOLEAN, 0, 1, 2.0f, 0, 0, 0.01f, 0, 0},
    {2, 4, 2, 17, 530, 16, 16, HEED_CAUSAL_BOTTOM_RIGHT, HEED_MASK_NONE, 1, 1, 2.0f, 0, 0, 0.0f, 1, 0},
    {1, 4, 1, 1, 800, 16, 16, HEED_CAUSAL_NONE, HEED_MASK_ADDITIVE, 0, 1, 2.0f, 0, 0, 0.0f, 1, 0},
    {2, 3, 1, 7, 300, 16, 5, HEED_CAUSAL_NONE, HEED_MASK_NONE, 1, 1, 1.0f, 0, 0, 0.0f, 0, 1},
    {1, 4, 2, 1, 1100, 16, 16, HEED_CAUSAL_BOTTOM_RIGHT, HEED_MASK_NONE, 0, 0, 2.0f, 0, 0, 0.0f, 0, 1},
    {2, 4, 2, 21, 620, 32, 33, HEED_CAUSAL_BOTTOM_RIGHT, HEED_MASK_ADDITIVE, 1, 1, 3.0f, 300, 0, 20.0f, 1, 1},
    {1, 4, 2, 1, 620, 32, 33, HEED_CAUSAL_BOTTOM_RIGHT, HEED_MASK_BOOLEAN, 0, 1, 3.0f, 400, 0, 20.0f, 1, 1},
};

static const void *random_mask(const struct attention_case *a)
{
    size_t n = a->batch * a->heads * a->seq_q * a->seq_kv;
    float *x = buffer(n, 0);
    if (a->mask == HEED_MASK_BOOLEAN) {
        unsigned char *boolean = (unsigned char *)x;
        for (size_t i = 0; i < n; i++)
            boolean[i] = (unsigned char)(random_below(4) != 0 ? 1 + random_below(255) : 0);
        return boolean;
    }
    for (size_t i = 0; i < n; i++)
        x[i] = random_below(5) == 0 ? -INFINITY : uniform(-8.0f, 2.0f);
    return x;
}

/* Head-major tensors in buffers that release_all frees, but for log-sum-exps; each sequence has its mask. */
static heed_attention_args random_attention(const struct attention_case *a)
{
    heed_attention_args args = HEED_ATTENTION_ARGS_INIT;
    size_t q_size = a->seq_q * a->head_dim, k_size = a->seq_kv * a->head_dim, v_size = a->seq_kv * a->value_dim;
    size_t out_size = a->seq_q * a->value_dim, map_size = a->seq_q * a->seq_kv;
    float *q = buffer(a->batch * a->heads * q_size, 1), *k = buffer(a->batch * a->kv_heads * k_size, 2);
    float *v = buffer(a->batch * a->kv_heads * v_size, 3);
    fill_uniform(q, a->batch * a->heads * q_size, -a->magnitude, a->magnitude);
    fill_uniform(k, a->batch * a->kv_heads * k_size, -2.0f, 2.0f);
    fill_uniform(v, a->batch * a->kv_heads * v_size, -1.0f, 1.0f);
    args.batch = a->batch;
    args.n_heads = a->heads;
    args.n_kv_heads = a->kv_heads;
    args.seq_q = a->seq_q;
    args.seq_kv = a->seq_kv;
    args.head_dim = a->head_dim;
    args.value_dim = a->value_dim;
    args.q = (heed_heads){q, a->heads * q_size, q_size, a->head_dim};
    args.k = (heed_heads){k, a->kv_heads * k_size, k_size, a->head_dim};
    args.v = (heed_heads){v, a->kv_heads * v_size, v_size, a->value_dim};
    args.out = (heed_heads_out){buffer(a->batch * a->heads * out_size, 4), a->heads * out_size, out_size, a->value_dim};
    if (a->map)
        args.map =
            (heed_heads_out){buffer(a->batch * a->heads * map_size, 5), a->heads * map_size, map_size, a->seq_kv};
    args.causal = a->causal;
    if (a->mask != HEED_MASK_NONE)
        args.mask = (heed_mask){random_mask(a), a->mask, a->heads * map_size, map_size, a->seq_kv};
    args.window_left = a->left ? a->left - 1 : HEED_UNBOUNDED;
    args.window_right = a->right ? a->right - 1 : HEED_UNBOUNDED;
    args.softcap = a->softcap;
    float *slopes = buffer(a->heads, 1), *sinks = buffer(a->heads, 2);
    fill_uniform(slopes, a->heads, -0.5f, 0.5f);
    fill_uniform(sinks, a->heads, -3.0f, 6.0f);
    args.slopes = a->slopes ? slopes : NULL;
    args.sinks = a->sinks ? sinks : NULL;
    args.log_sum_exp = (heed_heads_out){buffer(a->batch * a->heads * a->seq_q, 6), a->heads * a->seq_q, 1, a->heads};
    return args;
}

/* The mean over heads: their errors, and an addition for each head and the factor. */
static struct inexact mean_of_heads(const struct attention_case *a, struct inexact map)
{
    size_t size = a->seq_q * a->seq_kv;
    struct inexact mean = inexact_new(a->batch * size);
    for (size_t i = 0; i < a->batch * size; i++) {
        for (size_t h = 0; h < a->heads; h++) {
            size_t at = (i / size * a->heads + h) * size + i % size;
            mean.value[i] += map.value[at] / (double)a->heads;
            mean.error[i] += map.error[at] / (double)a->heads;
        }
        mean.error[i] += gamma_of((double)a->heads + 2) * (mean.value[i] + mean.error[i]);
    }
    return mean;
}

/* A run of its own, in which the map of each head may or may not be wanted too. */
static void check_mean_map(const struct attention_case *a, heed_attention_args args, struct inexact map, double *worst)
{
    size_t size = a->seq_q * a->seq_kv, rows = a->batch * a->heads * a->seq_q;
    float *kept = buffer(rows * (a->value_dim + 1), 0), *mean = buffer(a->batch * size, 1);
    heed_heads_out out = args.out, log_sum = args.log_sum_exp;
    args.out.data = kept;
    args.log_sum_exp.data = kept + rows * a->value_dim;
    args.mean_map = (heed_heads_out){mean, size, 0, a->seq_kv};
    for (int both = 0; both < 1 + a->map; both++) {
        args.map.data = both ? args.map.data : NULL;
        CHECK(heed_attention(context, &args, NULL) == HEED_OK);
        check_inexact(a->batch * a->seq_q, a->seq_kv, mean, a->seq_kv, mean_of_heads(a, map), "mean map", worst);
        check_same(rows, a->value_dim, kept, a->value_dim, out.data, a->value_dim, "out beside the mean map");
        check_same(1, rows, args.log_sum_exp.data, rows, log_sum.data, rows, "log-sum-exp beside the mean map");
    }
}

static void check_log_sums(size_t rows, const float *got, struct inexact want, double *worst)
{
    for (size_t i = 0; i < rows; i++) {
        if (want.value[i] != -INFINITY)
            continue;
        check_that(got[i] == -INFINITY, "log-sum-exp of row %zu without a key is %g", i, (double)got[i]);
        want.value[i] = want.error[i] = 0.0;
        ((float *)(uintptr_t)got)[i] = 0.0f;
    }
    check_inexact(1, rows, got, rows, want, "log-sum-exp", worst);
}

/* Worst errors as shares of their bounds. */
struct attention_errors {
    double out, map, mean, log_sum;
};

static void check_attention(const struct attention_case *a, heed_scale scale, float value,
                            struct attention_errors *worst)
{
    heed_attention_args args = random_attention(a);
    size_t lengths[4], rows = a->batch * a->heads * a->seq_q;
    for (size_t b = 0; b < a->batch; b++)
        lengths[b] = random_below(a->seq_kv + 1);
    args.kv_lengths = a->lengths ? lengths : NULL;
    args.scale = scale;
    args.scale_value = value;
    struct inexact map, log_sum, out = reference_attention_of(&args, &map, &log_sum);
    CHECK(heed_attention(context, &args, NULL) == HEED_OK);
    check_inexact(rows, a->value_dim, args.out.data, a->value_dim, out, "attention", &worst->out);
    if (a->map)
        check_inexact(rows, a->seq_kv, args.map.data, a->seq_kv, map, "map", &worst->map);
    check_mean_map(a, args, map, &worst->mean);
    float *sums = buffer(rows, 0);
    for (size_t i = 0; i < rows; i++) {
        size_t head = i / a->seq_q, b = head / a->heads;
        sums[i] = args.log_sum_exp.data[(b * a->seq_q + i % a->seq_q) * a->heads + head % a->heads];
    }
    check_log_sums(rows, sums, log_sum, &worst->log_sum);
    reference_release();
    release_all();
}

static void test_attention(const struct heed_kernels *table)
{
    static const float scales[] = {-0.3f, 0.0f, 1e-39f, -1e-39f};
    struct attention_errors worst = {0.0, 0.0, 0.0, 0.0};
    seed(11);
    begin("%s attention within its bound", table->name);
    for (size_t c = 0; c < COUNT(attention_cases); c++) {
        check_attention(&attention_cases[c], HEED_SCALE_RSQRT_HEAD_DIM, 0.0f, &worst);
        for (size_t s = 0; s < COUNT(scales); s++)
            check_attention(&attention_cases[c], HEED_SCALE_VALUE, scales[s], &worst);
    }
    note("attention map on %s: worst error is %.3f of its bound, mean %.3f, log-sum-exp %.3f", table->name, worst.map,
         worst.mean, worst.log_sum);
    finish_line("attention", table->name, worst.out);
}

/* q = 0 makes all weights 1 and their sum n exactly; with integers only the product with 1 / n rounds. */
static void test_exact_attention(const struct heed_kernels *table)
{
    static const size_t keys[] = {1, 2, 3, 15, 16, 17, 64, 100, 255, 256, 257, 511, 512, 513, 1024};
    double worst = 0.0;
    seed(12);
    begin("%s attention exactly on equal scores", table->name);
    for (size_t c = 0; c < COUNT(keys); c++)
        for (unsigned causal = 0; causal < 2; causal++) {
            const struct attention_case a = {
                1, 2,    1, 7, keys[c], 5, 18, causal ? HEED_CAUSAL_BOTTOM_RIGHT : HEED_CAUSAL_NONE, HEED_MASK_NONE, 0,
                1, 0.0f, 0, 0, 0.0f,    0, 0};
            heed_attention_args args = random_attention(&a);
            float *v = (float *)(uintptr_t)args.v.data;
            fill_integers(v, a.seq_kv * a.value_dim, 100);
            struct inexact out = inexact_new(a.heads * a.seq_q * a.value_dim);
            for (size_t i = 0; i < a.heads * a.seq_q; i++) {
                size_t row = i % a.seq_q, seen = causal ? row + a.seq_kv + 1 : a.seq_kv + a.seq_q;
                seen = seen < a.seq_q ? 0 : seen - a.seq_q;
                float inverse = seen ? 1.0f / (float)seen : 0.0f;
                for (size_t d = 0; d < a.value_dim; d++) {
                    double sum = 0.0;
                    for (size_t j = 0; j < seen; j++)
                        sum += (double)v[j * a.value_dim + d];
                    float product = (float)sum * inverse;
                    out.value[i * a.value_dim + d] = (double)product;
                }
            }
            CHECK(heed_attention(context, &args, NULL) == HEED_OK);
            check_inexact(a.heads * a.seq_q, a.value_dim, args.out.data, a.value_dim, out, "attention", &worst);
            reference_release();
            release_all();
        }
    end();
}

/* ---- layers ---- */

static const struct layer_problem layer_problems[] = {
    {.d_model = 24,
     .d_ff = 40,
     .n_heads = 3,
     .n_kv_heads = 3,
     .head_dim = 8,
     .value_dim = 8,
     .activation = HEED_ACTIVATION_RELU,
     .order = HEED_NORM_POST,
     .eps = 1e-5f},
    {.d_model = 32,
     .d_ff = 65,
     .n_heads = 4,
     .n_kv_heads = 2,
     .head_dim = 8,
     .value_dim = 5,
     .activation = HEED_ACTIVATION_GELU_ERF,
     .order = HEED_NORM_PRE,
     .eps = 1e-12f},
    {.d_model = 17,
     .d_ff = 33,
     .n_heads = 2,
     .n_kv_heads = 1,
     .head_dim = 7,
     .value_dim = 16,
     .activation = HEED_ACTIVATION_GELU_TANH,
     .order = HEED_NORM_POST,
     .eps = 1e-5f},
    {.d_model = 32,
     .d_ff = 50,
     .n_heads = 4,
     .n_kv_heads = 2,
     .head_dim = 10,
     .value_dim = 8,
     .activation = HEED_ACTIVATION_SILU,
     .order = HEED_NORM_PRE,
     .eps = 1e-5f,
     .norm = HEED_NORM_RMSNORM,
     .norm_eps = 1e-6f,
     .rotary = {.dims = 10}},
    {.d_model = 20,
     .d_ff = 33,
     .n_heads = 2,
     .n_kv_heads = 1,
     .head_dim = 9,
     .value_dim = 16,
     .activation = HEED_ACTIVATION_GELU_ERF,
     .order = HEED_NORM_POST,
     .eps = 1e-3f,
     .norm = HEED_NORM_RMSNORM,
     .norm_eps = 0.01f,
     .rotary = {.pairs = HEED_ROTARY_INTERLEAVED, .dims = 6}},
};

/* The mean map has the bits of the maps' mean; without a sink or a mask the weights of a row are 1 together, but for
 * the additions of their sum, its inverse and a product. */
static void check_maps(size_t batch, size_t heads, size_t queries, size_t keys, const float *map, const float *mean,
                       int whole)
{
    size_t size = queries * keys;
    float *want = buffer(batch * size, 0);
    for (size_t i = 0; i < batch * size; i++) {
        const float *of_head = map + i / size * heads * size + i % size;
        want[i] = of_head[0];
        for (size_t h = 1; h < heads; h++)
            want[i] += of_head[h * size];
        want[i] *= 1.0f / (float)heads;
    }
    check_same(batch * queries, keys, mean, keys, want, keys, "mean map of mha");
    for (size_t i = 0; whole && i < batch * heads * queries; i++) {
        double sum = 0.0;
        for (size_t j = 0; j < keys; j++)
            sum += (double)map[i * keys + j];
        check_bound(sum, 1.0, gamma_of((double)keys + 2.0), "map of mha", i);
    }
}

static void check_ffn_and_mha(const struct layer_problem *p, const struct packed_layer *l, double *worst)
{
    enum { BATCH = 2, TOKENS = 5, KEYS = 9 };
    size_t d = p->d_model, n = BATCH * TOKENS;
    float *x = buffer(n * d, 1), *memory = buffer(BATCH * KEYS * d, 2), *y = buffer(n * d, 3);
    fill_uniform(x, n * d, -2.0f, 2.0f);
    fill_uniform(memory, BATCH * KEYS * d, -2.0f, 2.0f);
    struct inexact exact_x = inexact_rows(n, d, x, d);
    CHECK(heed_ffn(context, &l->ffn, n, x, d, x, d, y, d, NULL) == HEED_OK);
    check_inexact(n, d, y, d, reference_ffn(p, n, exact_x, exact_x), "ffn", worst);
    heed_mha_args args = HEED_MHA_ARGS_INIT;
    args.batch = BATCH;
    args.seq_q = TOKENS;
    args.seq_kv = KEYS;
    args.x = x;
    args.memory = memory;
    args.y = y;
    args.ldx = args.ld_memory = args.ldy = d;
    args.causal = HEED_CAUSAL_BOTTOM_RIGHT;
    float *slopes = buffer(p->n_heads, 1), *sinks = buffer(p->n_heads, 2);
    fill_uniform(slopes, p->n_heads, -0.5f, 0.5f);
    fill_uniform(sinks, p->n_heads, -3.0f, 3.0f);
    const size_t size = TOKENS * KEYS;
    const heed_mask unmasked = args.mask;
    float *map = buffer(BATCH * p->n_heads * size, 0), *mean = buffer(BATCH * size, 1);
    unsigned char *boolean = (unsigned char *)buffer(BATCH * p->n_heads * size, 2);
    for (size_t i = 0; i < BATCH * p->n_heads * size; i++)
        boolean[i] = random_below(4) != 0;
    args.map = (heed_heads_out){map, p->n_heads * size, size, KEYS};
    args.mean_map = (heed_heads_out){mean, size, 0, KEYS};
    for (int shaped = 0; shaped < 2; shaped++) {
        args.window_left = shaped ? 3 : HEED_UNBOUNDED;
        args.softcap = shaped ? 2.0f : 0.0f;
        args.slopes = shaped ? slopes : NULL;
        args.sinks = shaped ? sinks : NULL;
        args.mask = unmasked;
        if (shaped)
            args.mask = (heed_mask){boolean, HEED_MASK_BOOLEAN, p->n_heads * size, size, KEYS};
        CHECK(heed_mha(context, &l->attention, &args, NULL) == HEED_OK);
        check_inexact(n, d, y, d, reference_mha(p, &args, exact_x, inexact_rows(BATCH * KEYS, d, memory, d), nothing),
                      "cross-attention", worst);
        check_maps(BATCH, p->n_heads, TOKENS, KEYS, map, mean, !shaped);
    }
}

static const size_t layer_offsets[] = {0, 1, 8, 8, 20};
enum { LAYER_SEQUENCES = COUNT(layer_offsets) - 1, LAYER_LONGEST = 12, LAYER_TOKENS = 20 };

/* With ids given in reverse, or counted. */
static void check_layer(const struct layer_problem *p, const struct packed_layer *l, double *worst)
{
    size_t d = p->d_model, n = LAYER_TOKENS;
    float *x = buffer(n * d, 1), *y = buffer(n * d, 3);
    int32_t ids[LAYER_TOKENS];
    for (int i = 0; i < LAYER_TOKENS; i++)
        ids[i] = ROTARY_ROWS - 1 - i;
    fill_uniform(x, n * d, -2.0f, 2.0f);
    heed_encoder_args args = HEED_ENCODER_ARGS_INIT;
    heed_mha_args mha = HEED_MHA_ARGS_INIT;
    args.batch = mha.batch = LAYER_SEQUENCES;
    args.seq = mha.seq_q = LAYER_LONGEST;
    args.offsets = mha.offsets = layer_offsets;
    args.x = x;
    args.y = y;
    args.ldx = args.ldy = d;
    for (int given = 0; given < 2; given++) {
        args.position_ids = mha.position_ids = given ? ids : NULL;
        CHECK(heed_encoder(context, 1, &l->layer, &args, NULL) == HEED_OK);
        check_inexact(n, d, y, d, reference_layer(p, &mha, NULL, n, inexact_rows(n, d, x, d)), "encoder layer", worst);
    }
}

static void check_decoder_layer(const struct layer_problem *p, const struct packed_layer *l, double *worst)
{
    static const size_t memory_offsets[] = {0, 9, 9, 14, 25};
    enum { LONGEST_MEMORY = 11, MEMORY_ROWS = 25 };
    struct layer_problem cross_weights = *p;
    struct packed_layer cross_packed;
    random_layer(&cross_weights);
    pack_layer(&cross_packed, &cross_weights);
    size_t d = p->d_model, n = LAYER_TOKENS;
    float *x = buffer(n * d, 1), *memory = buffer(MEMORY_ROWS * d, 2), *y = buffer(n * d, 3);
    fill_uniform(x, n * d, -2.0f, 2.0f);
    fill_uniform(memory, MEMORY_ROWS * d, -2.0f, 2.0f);
    heed_mha_args mha = HEED_MHA_ARGS_INIT;
    struct cross_problem cross = {&cross_weights, mha, inexact_rows(MEMORY_ROWS, d, memory, d)};
    heed_encoder_args self = HEED_ENCODER_ARGS_INIT;
    heed_decoder_args args = HEED_DECODER_ARGS_INIT;
    heed_decoder_layer layer = HEED_DECODER_LAYER_INIT;
    layer.self = &l->layer;
    layer.cross = &cross_packed.attention;
    layer.norm_scale = cross_weights.norm1_scale;
    layer.norm_shift = cross_weights.norm1_shift;
    layer.scale = cross.args.scale = HEED_SCALE_VALUE;
    layer.scale_value = cross.args.scale_value = 0.4f;
    self.batch = mha.batch = cross.args.batch = LAYER_SEQUENCES;
    self.seq = mha.seq_q = cross.args.seq_q = LAYER_LONGEST;
    self.offsets = mha.offsets = cross.args.offsets = layer_offsets;
    self.causal = mha.causal = HEED_CAUSAL_BOTTOM_RIGHT;
    self.x = x;
    self.y = y;
    self.ldx = self.ldy = d;
    args.self = &self;
    args.memory = memory;
    args.ld_memory = d;
    args.memory_seq = cross.args.seq_kv = LONGEST_MEMORY;
    args.memory_offsets = cross.args.memory_offsets = memory_offsets;
    CHECK(heed_decoder(context, 1, &layer, &args, NULL) == HEED_OK);
    check_inexact(n, d, y, d, reference_layer(p, &mha, &cross, n, inexact_rows(n, d, x, d)), "decoder layer", worst);
}

static void test_layers(const struct heed_kernels *table)
{
    double worst = 0.0;
    seed(13);
    begin("%s feed-forward, multi-head attention and layers within their bounds", table->name);
    for (size_t i = 0; i < COUNT(layer_problems); i++) {
        struct layer_problem p = layer_problems[i];
        struct packed_layer l;
        random_layer(&p);
        pack_layer(&l, &p);
        check_ffn_and_mha(&p, &l, &worst);
        check_layer(&p, &l, &worst);
        check_decoder_layer(&p, &l, &worst);
        reference_release();
        release_all();
    }
    finish_line("layers", table->name, worst);
}

/* ---- positions: in double, the same on every table ---- */

static void test_positions(void)
{
    static const struct {
        size_t first, n, cols;
        double base;
    } cases[] = {{0, 50, 64, 10000.0},           {0, 5, 7, 10000.0}, {4095, 3, 512, 10000.0}, {1000000, 4, 33, 10000.0},
                 {0x7ffffff0u, 16, 10, 10000.0}, {7, 9, 1, 1.0},     {123, 5, 20, 1e300},     {31, 5, 20, 500000.0}};
    double worst = 0.0;
    begin("sinusoidal positions within their bound");
    for (size_t c = 0; c < COUNT(cases); c++) {
        size_t cols = cases[c].cols;
        float *y = buffer(cases[c].n * cols, 1);
        CHECK(heed_sinusoidal_positions(NULL, cases[c].first, cases[c].n, cols, cases[c].base, y, cols) == HEED_OK);
        check_inexact(cases[c].n, cols, y, cols, reference_positions(cases[c].first, cases[c].n, cols, cases[c].base),
                      "positions", &worst);
    }
    finish_line("positions", "all tables", worst);
}

static void test_rotary_tables(void)
{
    enum { N = 40, DIMS = 24 };
    static const double bases[] = {10000.0, 1e8, 1.0, 1e300};
    double worst = 0.0, factors[DIMS / 2];
    float *cosine = buffer(N * DIMS, 1), *sine = buffer(N * DIMS, 2);
    int32_t positions[N];
    seed(20);
    begin("rotary tables within their bound");
    for (size_t c = 0; c < 2 * COUNT(bases); c++) {
        heed_rotary_options options = HEED_ROTARY_OPTIONS_INIT;
        int consecutive = c % 3 == 0;
        options.base = bases[c % COUNT(bases)];
        for (size_t i = 0; i < N; i++)
            positions[i] = consecutive ? 1000 + (int32_t)i : (int32_t)random_below(1 << (8 + c)) - (1 << 7);
        if (c >= COUNT(bases)) {
            options.position_scale = 0.25;
            options.magnitude = 1.4245;
            options.factors = factors;
            CHECK(heed_rotary_yarn(DIMS, 10000.0, 40.0, 32.0, 1.0, 4096, factors, &options.magnitude) == HEED_OK);
        }
        CHECK(heed_rotary_table(NULL, N, consecutive ? NULL : positions, 1000, DIMS, &options, cosine, DIMS, sine,
                                DIMS) == HEED_OK);
        check_inexact(N, DIMS / 2, cosine, DIMS, reference_rotary_table(N, positions, DIMS, &options, 1), "cosine",
                      &worst);
        check_inexact(N, DIMS / 2, sine, DIMS, reference_rotary_table(N, positions, DIMS, &options, 0), "sine", &worst);
    }
    finish_line("rotary tables", "all tables", worst);
}

/* From 1 turn to 32 over the context; pairs that turn less or more often may be none or all of them. */
static void check_yarn(size_t dims, double base, size_t length)
{
    double pi = acos(-1.0), factors[64], magnitude, last = (double)(dims - 1);
    CHECK(heed_rotary_yarn(dims, base, 16.0, 32.0, 1.0, length, factors, &magnitude) == HEED_OK);
    check_bound(magnitude, 0.1 * log(16.0) + 1.0, 0x1p-50 * magnitude, "magnitude", 0);
    double low = floor((double)dims * log((double)length / (32.0 * 2.0 * pi)) / (2.0 * log(base)));
    double high = ceil((double)dims * log((double)length / (2.0 * pi)) / (2.0 * log(base)));
    low = fmin(last, fmax(0.0, low));
    high = fmin(last, fmax(0.0, high));
    high += low == high ? 0.001 : 0.0;
    for (size_t j = 0; j < dims / 2; j++) {
        double ramp = fmin(1.0, fmax(0.0, ((double)j - low) / (high - low)));
        check_bound(factors[j], ramp / 16.0 + 1.0 - ramp, 0x1p-50, "yarn", j);
    }
}

/* The formulas as their authors write them. */
static void test_rotary_scalings(void)
{
    enum { DIMS = 128 };
    double pi = acos(-1.0), factors[DIMS / 2], magnitude, bound = (1.0 + log(500000.0)) * 0x1p-49 * 4.0 / 3.0;
    begin("rotary scalings");
    CHECK(heed_rotary_llama3(DIMS, 500000.0, 8.0, 1.0, 4.0, 8192, factors) == HEED_OK);
    for (size_t j = 0; j < DIMS / 2; j++) {
        double wavelength = 2.0 * pi * pow(500000.0, (double)(2 * j) / (double)DIMS),
               smooth = (8192.0 / wavelength - 1.0) / 3.0;
        double want = wavelength < 8192.0 / 4.0 ? 1.0 : wavelength > 8192.0 ? 0.125 : (1.0 - smooth) / 8.0 + smooth;
        check_bound(factors[j], want, bound, "llama 3", j);
    }
    check_yarn(128, 10000.0, 4096);
    check_yarn(128, 10000.0, 100);
    check_yarn(8, 10000.0, 1);
    check_yarn(8, 10.0, (size_t)1 << 31);
    CHECK(heed_rotary_yarn(0, 10000.0, 16.0, 32.0, 1.0, 4096, NULL, &magnitude) == HEED_OK);
    CHECK(heed_rotary_yarn(8, 10000.0, 1.0, 0x1p100, 0x1p-100, 1, factors, &magnitude) == HEED_OK && magnitude == 1.0);
    end();
}

/* Each product and sum rounds; both pairings, partial dims, ids or a first row, both layouts, in place. */
static void test_rotary(const struct heed_kernels *table)
{
    enum { BATCH = 2, SEQ = 3, HEADS = 2, MOST = 71, POSITIONS = 9, TOKENS = BATCH * SEQ };
    static const int32_t ids[TOKENS] = {8, 0, 3, 3, 1, 7};
    float *x = buffer(TOKENS * HEADS * MOST, 1), *y = buffer(TOKENS * HEADS * MOST, 2);
    float *c = buffer(POSITIONS * MOST, 3), *s = buffer(POSITIONS * MOST, 0);
    double worst = 0.0;
    seed(21);
    begin("%s rotary within its bound", table->name);
    for (size_t dim = 1; dim <= MOST; dim++)
        for (unsigned variant = 0; variant < 8; variant++) {
            size_t dims = dim / 2 * 2 - (variant & 1 ? dim / 6 * 2 : 0), n = TOKENS * HEADS * dim;
            heed_rotary_args a = HEED_ROTARY_ARGS_INIT;
            fill_uniform(x, n, -3.0f, 3.0f);
            fill_uniform(c, POSITIONS * MOST, -1.0f, 1.0f);
            fill_uniform(s, POSITIONS * MOST, -1.0f, 1.0f);
            a.tables.pairs = variant & 2 ? HEED_ROTARY_INTERLEAVED : HEED_ROTARY_HALVES;
            a.batch = BATCH;
            a.seq = SEQ;
            a.n_heads = HEADS;
            a.head_dim = dim;
            a.tables.dims = dims;
            a.tables.cosine = c;
            a.tables.sine = s;
            a.tables.ld_cosine = a.tables.ld_sine = MOST;
            a.tables.positions = POSITIONS;
            a.ids = variant & 4 ? ids : NULL;
            a.first = 5;
            a.src = variant & 4 ? (heed_heads){x, SEQ * HEADS * dim, dim, HEADS * dim}
                                : (heed_heads){x, SEQ * HEADS * dim, SEQ * dim, dim};
            a.dst = (heed_heads_out){y, a.src.batch_stride, a.src.head_stride, a.src.row_stride};
            struct inexact want = inexact_rows(1, n, x, n);
            for (size_t i = 0; i < TOKENS * HEADS; i++) {
                size_t token = i / HEADS, row = variant & 4 ? (size_t)ids[token] : 5 + token % SEQ;
                reference_rotate(&a.tables, row, want,
                                 token / SEQ * a.src.batch_stride + token % SEQ * a.src.row_stride +
                                     i % HEADS * a.src.head_stride);
            }
            CHECK(heed_rotary(context, &a) == HEED_OK);
            check_inexact(1, n, y, n, want, "rotary", &worst);
            a.dst.data = x;
            CHECK(heed_rotary(context, &a) == HEED_OK);
            check_same(1, n, x, n, y, n, "in place");
            reference_release();
        }
    finish_line("rotary", table->name, worst);
}

static void test_table(const struct heed_kernels *table)
{
    static void (*const tests[])(const struct heed_kernels *) = {
        test_softmax,      test_masked_softmax,   test_long_rows,   test_layernorm,       test_residual,
        test_rmsnorm,      test_rmsnorm_residual, test_activations, test_gated,           test_l2_and_pool,
        test_embedding,    test_embed_layernorm,  test_rotary,      test_matmul,          test_tripwire,
        test_exact_matmul, test_linear,           test_attention,   test_exact_attention, test_layers};
    context = context_on(table, 1);
    reference_allow(subnormal_slack(table));
    for (size_t i = 0; i < COUNT(tests); i++) {
        tests[i](table);
        release_all();
    }
    heed_context_destroy(context);
}

int main(void)
{
    for_each_table(test_table);
    reference_allow(0.0);
    test_positions();
    test_rotary_tables();
    test_rotary_scalings();
    return finish();
}
