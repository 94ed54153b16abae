/* SPDX-License-Identifier: MIT
 * NaN and infinity at every position of rows of every length on every table; what is masked must change
 * no bit, whatever lies there; constant rows.
 */
#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LONGEST 67

static heed_context *context;
static const float specials[] = {NAN, INFINITY, -INFINITY};
static const char *const special_names[] = {"NaN", "+inf", "-inf"};

static size_t longest(void)
{
    return quick() ? 35 : LONGEST;
}

enum row_verdict { ROW_NAN, ROW_FINITE };

/* Whether a row is all NaN, or all finite. */
static int row_is(enum row_verdict verdict, size_t n, const float *x)
{
    size_t i = 0;
    while (i < n && (verdict == ROW_NAN ? isnan(x[i]) : isfinite(x[i])))
        i++;
    return i == n;
}

static void check_row(enum row_verdict verdict, size_t n, const float *x, const char *what, const char *special,
                      size_t position)
{
    check_that(row_is(verdict, n, x), "%s of %zu with %s at %zu is not all %s", what, n, special, position,
               verdict == ROW_NAN ? "NaN" : "finite");
}

/* ---- rows ---- */

static void check_softmax(size_t n, size_t position, size_t special, float *x, float *y)
{
    fill_uniform(x, n, -3.0f, 3.0f);
    x[position] = specials[special];
    CHECK(heed_softmax(context, 1, n, x, n, y, n) == HEED_OK);
    if (special != 2 || n == 1) {
        check_row(ROW_NAN, n, y, "softmax", special_names[special], position);
        return;
    }
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++)
        sum += y[i];
    check_that(y[position] == 0.0f && !signbit(y[position]) && fabsf(sum - 1.0f) < 1e-5f,
               "softmax of %zu with -inf at %zu", n, position);
}

static void test_softmax(const struct heed_kernels *table)
{
    float *x = buffer(4200, 1), *y = buffer(4200, 2);
    seed(1);
    begin("%s softmax of NaN and infinity", table->name);
    for (size_t n = 1; n <= longest(); n++) {
        for (size_t position = 0; position < n; position++)
            for (size_t special = 0; special < COUNT(specials); special++)
                check_softmax(n, position, special, x, y);
        for (size_t i = 0; i < n; i++)
            x[i] = -INFINITY;
        CHECK(heed_softmax(context, 1, n, x, n, y, n) == HEED_OK);
        check_row(ROW_NAN, n, y, "softmax", "-inf everywhere, first", 0);
    }
    static const size_t far[] = {0, 31, 32, 4095, 4096, 4127, 4199};
    for (size_t i = 0; i < COUNT(far); i++)
        for (size_t special = 0; special < COUNT(specials); special++)
            check_softmax(4200, far[i], special, x, y);
    end();
}

/* What is masked cannot leak: position holds a special value, which its mask hides or does not. */
static void check_masked_softmax(size_t n, size_t position, size_t special, int logarithm)
{
    float x[LONGEST], y[LONGEST], want[LONGEST], additive[LONGEST];
    unsigned char boolean[LONGEST];
    heed_softmax_options options = HEED_SOFTMAX_OPTIONS_INIT;
    heed_status (*const run)(const heed_context *, size_t, size_t, const float *, size_t, const heed_softmax_options *,
                             float *, size_t) = logarithm ? heed_log_softmax : heed_masked_softmax;
    options.scale = 0.5f;
    fill_uniform(x, n, -3.0f, 3.0f);
    for (size_t i = 0; i < n; i++) {
        boolean[i] = i != position;
        additive[i] = boolean[i] ? 0.0f : -INFINITY;
    }
    for (int kind = HEED_MASK_ADDITIVE; kind <= HEED_MASK_BOOLEAN; kind++) {
        options.mask =
            (heed_mask){kind == HEED_MASK_BOOLEAN ? (const void *)boolean : additive, (heed_mask_type)kind, 0, 0, n};
        x[position] = 1.0f;
        CHECK(run(context, 1, n, x, n, &options, want, n) == HEED_OK);
        x[position] = specials[special];
        CHECK(run(context, 1, n, x, n, &options, y, n) == HEED_OK);
        check_same(1, n, y, n, want, n, "a masked special value");
        CHECK(y[position] == (logarithm ? -INFINITY : 0.0f) && !isnan(y[0]) &&
              (n == 1 || y[n - 1 - position / (n - 1)] > -9.0f));
        options.mask.type = HEED_MASK_NONE;
        CHECK(run(context, 1, n, x, n, &options, y, n) == HEED_OK);
        if (special == 2 && n > 1)
            CHECK(y[position] == (logarithm ? -INFINITY : 0.0f));
        else
            check_row(ROW_NAN, n, y, "softmax", special_names[special], position);
    }
}

static void test_masked_softmax(const struct heed_kernels *table)
{
    float x[LONGEST], y[LONGEST], zeros[LONGEST] = {0.0f}, minus[LONGEST], none[LONGEST], least[LONGEST];
    const unsigned char boolean[LONGEST] = {0};
    seed(16);
    begin("%s masked and log softmax of NaN and infinity", table->name);
    for (size_t i = 0; i < LONGEST; i++)
        minus[i] = none[i] = -INFINITY;
    for (size_t n = 1; n <= longest(); n++) {
        heed_softmax_options options = HEED_SOFTMAX_OPTIONS_INIT;
        for (size_t position = 0; position < n; position++)
            for (size_t special = 0; special < COUNT(specials); special++)
                for (int logarithm = 0; logarithm < 2; logarithm++)
                    check_masked_softmax(n, position, special, logarithm);
        for (int kind = HEED_MASK_ADDITIVE; kind <= HEED_MASK_BOOLEAN; kind++) {
            options.mask =
                (heed_mask){kind == HEED_MASK_BOOLEAN ? (const void *)boolean : none, (heed_mask_type)kind, 0, 0, n};
            for (size_t i = 0; i < n; i++)
                x[i] = specials[i % 3];
            CHECK(heed_masked_softmax(context, 1, n, x, n, &options, y, n) == HEED_OK);
            check_same(1, n, y, n, zeros, n, "all masked");
            CHECK(heed_log_softmax(context, 1, n, x, n, &options, y, n) == HEED_OK);
            check_same(1, n, y, n, minus, n, "log, all masked");
            options.mask.data = kind == HEED_MASK_BOOLEAN ? (const void *)"0123456789012345678901234567890123456789"
                                                                          "012345678901234567890123456789"
                                                          : zeros;
            CHECK(heed_masked_softmax(context, 1, n, minus, n, &options, y, n) == HEED_OK);
            check_row(ROW_NAN, n, y, "softmax", "unmasked -inf everywhere, first", 0);
            CHECK(heed_log_softmax(context, 1, n, minus, n, &options, y, n) == HEED_OK);
            check_row(ROW_NAN, n, y, "log softmax", "unmasked -inf everywhere, first", 0);
        }
        for (size_t i = 0; i < n; i++)
            least[i] = -0x1.fffffep127f;
        options.mask = (heed_mask){least, HEED_MASK_ADDITIVE, 0, 0, n};
        CHECK(heed_masked_softmax(context, 1, n, least, n, &options, y, n) == HEED_OK);
        check_row(ROW_NAN, n, y, "softmax", "-inf by a sum of numbers, first", 0);
    }
    end();
}

/* The same by several threads, of which some have nothing but masked columns. */
static void check_long_row_of_nan(const struct heed_kernels *table)
{
    enum { LONG = 40000 };
    heed_context *threads = context_on(table, 4);
    float *x = buffer(LONG, 1), *y = buffer(LONG, 2);
    unsigned char *boolean = (unsigned char *)buffer(LONG, 0);
    heed_softmax_options options = HEED_SOFTMAX_OPTIONS_INIT;
    for (size_t i = 0; i < LONG; i++) {
        boolean[i] = i >= LONG / 2;
        x[i] = boolean[i] ? -INFINITY : 1.0f;
    }
    options.mask = (heed_mask){boolean, HEED_MASK_BOOLEAN, 0, 0, LONG};
    CHECK(heed_masked_softmax(threads, 1, LONG, x, LONG, &options, y, LONG) == HEED_OK);
    check_row(ROW_NAN, LONG, y, "masked softmax", "-inf, masked before", LONG / 2);
    CHECK(heed_log_softmax(threads, 1, LONG, x, LONG, &options, y, LONG) == HEED_OK);
    check_row(ROW_NAN, LONG, y, "masked log softmax", "-inf, masked before", LONG / 2);
    heed_context_destroy(threads);
    release_all();
}

/* What an element that is not masked makes NaN is the whole row, the masked half too. */
static void test_masked_rows_of_nan(const struct heed_kernels *table)
{
    float x[LONGEST], y[LONGEST], additive[LONGEST];
    unsigned char boolean[LONGEST];
    seed(17);
    begin("%s masked and log softmax of a row of NaN", table->name);
    for (size_t n = 2; n <= longest(); n++)
        for (size_t position = 0; position < n; position++)
            for (size_t special = 0; special < 2; special++) {
                const heed_mask masks[] = {{additive, HEED_MASK_ADDITIVE, 0, 0, n},
                                           {boolean, HEED_MASK_BOOLEAN, 0, 0, n}};
                fill_uniform(x, n, -3.0f, 3.0f);
                x[position] = specials[special];
                for (size_t i = 0; i < n; i++) {
                    boolean[i] = i % 2 == position % 2;
                    additive[i] = boolean[i] ? 0.0f : -INFINITY;
                }
                for (size_t kind = 0; kind < 2; kind++) {
                    heed_softmax_options options = HEED_SOFTMAX_OPTIONS_INIT;
                    options.mask = masks[kind];
                    CHECK(heed_masked_softmax(context, 1, n, x, n, &options, y, n) == HEED_OK);
                    check_row(ROW_NAN, n, y, "masked softmax", special_names[special], position);
                    CHECK(heed_log_softmax(context, 1, n, x, n, &options, y, n) == HEED_OK);
                    check_row(ROW_NAN, n, y, "masked log softmax", special_names[special], position);
                }
            }
    check_long_row_of_nan(table);
    end();
}

/* A row full of NaN changes no bit of its neighbours, which are computed with it. */
static void test_neighbours(const struct heed_kernels *table)
{
    enum { ROWS = 9 };
    float *x = buffer(ROWS * LONGEST, 0), *y = buffer(ROWS * LONGEST, 1), *want = buffer(ROWS * LONGEST, 2);
    seed(17);
    begin("%s rows beside a row of NaN", table->name);
    for (size_t n = 1; n <= longest(); n++)
        for (size_t bad = 0; bad < ROWS; bad++)
            for (int op = 0; op < 4; op++) {
                fill_uniform(x, ROWS * n, -3.0f, 3.0f);
                for (int spoilt = 0; spoilt < 2; spoilt++) {
                    float *dst = spoilt ? y : want;
                    for (size_t i = 0; spoilt && i < n; i++)
                        x[bad * n + i] = specials[i % 3];
                    CHECK((op == 0   ? heed_softmax(context, ROWS, n, x, n, dst, n)
                           : op == 1 ? heed_log_softmax(context, ROWS, n, x, n, NULL, dst, n)
                           : op == 2 ? heed_layernorm(context, ROWS, n, x, n, NULL, dst, n)
                                     : heed_rmsnorm(context, ROWS, n, x, n, NULL, dst, n)) == HEED_OK);
                }
                check_same(bad, n, y, n, want, n, "rows before");
                check_same(ROWS - 1 - bad, n, y + (bad + 1) * n, n, want + (bad + 1) * n, n, "rows after");
            }
    end();
}

static void check_layernorm(size_t n, size_t position, size_t special, float *x, float *y)
{
    fill_uniform(x, n, -3.0f, 3.0f);
    x[position] = specials[special];
    CHECK(heed_layernorm(context, 1, n, x, n, NULL, y, n) == HEED_OK);
    check_row(ROW_NAN, n, y, "layernorm", special_names[special], position);
}

/* A constant row has no deviation: shift, exactly, for any value, length and eps. */
static void check_constant_row(size_t n, float value, float *x, float *y, float *shift)
{
    heed_layernorm_options options = HEED_LAYERNORM_OPTIONS_INIT;
    for (size_t i = 0; i < n; i++)
        x[i] = value;
    fill_uniform(shift, n, -2.0f, 2.0f);
    options.shift = shift;
    for (int zero_eps = 0; zero_eps < 2; zero_eps++) {
        options.eps = zero_eps ? 0.0f : 1e-5f;
        CHECK(heed_layernorm(context, 1, n, x, n, &options, y, n) == HEED_OK);
        check_same(1, n, y, n, shift, n, "layernorm of a constant row");
    }
}

static void test_layernorm(const struct heed_kernels *table)
{
    static const float values[] = {0.0f, -0.0f, 1.0f / 3.0f, -1e6f, 1.1e30f, 0x1.fffffep127f, 0x1p-149f, -3e-40f};
    static const size_t lengths[] = {100, 127, 129, 999, 4095, 4096, 4097};
    float *x = buffer(4200, 1), *y = buffer(4200, 2), *shift = buffer(4200, 3);
    seed(2);
    begin("%s layernorm of NaN, infinity and constant rows", table->name);
    for (size_t n = 1; n <= longest(); n++) {
        for (size_t position = 0; position < n; position++)
            for (size_t special = 0; special < COUNT(specials); special++)
                check_layernorm(n, position, special, x, y);
        for (size_t v = 0; v < COUNT(values); v++)
            check_constant_row(n, values[v], x, y, shift);
    }
    for (size_t l = 0; l < COUNT(lengths); l++) {
        check_layernorm(lengths[l], lengths[l] - 1, l % COUNT(specials), x, y);
        for (size_t v = 0; v < COUNT(values); v++)
            check_constant_row(lengths[l], values[v], x, y, shift);
    }
    end();
}

/* Finite rows whose squared deviations sum to a finite value never give NaN, eps or not. */
static void test_layernorm_finite(const struct heed_kernels *table)
{
    static const float scales[] = {1e-45f, 1e-38f, 1e-30f, 1e-20f, 1e-10f, 1.0f, 1e10f, 1e17f};
    heed_layernorm_options options = HEED_LAYERNORM_OPTIONS_INIT;
    float x[LONGEST], y[LONGEST];
    options.eps = 0.0f;
    seed(3);
    begin("%s layernorm of finite rows is finite", table->name);
    for (size_t n = 1; n <= longest(); n++)
        for (size_t s = 0; s < COUNT(scales); s++) {
            fill_uniform(x, n, -scales[s], scales[s]);
            CHECK(heed_layernorm(context, 1, n, x, n, &options, y, n) == HEED_OK);
            check_row(ROW_FINITE, n, y, "layernorm", "scale number", s);
        }
    end();
}

/* NaN makes the row NaN; an infinity becomes NaN and the others zeros, and so where squares overflow, but
 * without NaN. Zero rows stay zero. */
static void check_squares(const char *name, heed_status (*norm)(size_t n, float eps, const float *x, float *y),
                          size_t n, size_t position, float special, float *x, float *y)
{
    fill_uniform(x, n, -3.0f, 3.0f);
    x[position] = special;
    CHECK(norm(n, position % 2 ? 1e-5f : 0.0f, x, y) == HEED_OK);
    if (isnan(special)) {
        check_row(ROW_NAN, n, y, name, "NaN", position);
        return;
    }
    size_t zeros = 0;
    for (size_t i = 0; i < n; i++)
        zeros += i == position || y[i] == 0.0f;
    check_that(zeros == n && (isinf(special) ? isnan(y[position]) : y[position] == 0.0f), "%s of %zu with %g at %zu",
               name, n, (double)special, position);
}

static heed_status rmsnorm_row(size_t n, float eps, const float *x, float *y)
{
    heed_rmsnorm_options options = HEED_RMSNORM_OPTIONS_INIT;
    options.eps = eps;
    return heed_rmsnorm(context, 1, n, x, n, &options, y, n);
}

static heed_status l2_row(size_t n, float eps, const float *x, float *y)
{
    return heed_l2_normalize(context, 1, n, eps, x, n, y, n);
}

static void test_squares(const struct heed_kernels *table, const char *name,
                         heed_status (*norm)(size_t n, float eps, const float *x, float *y))
{
    static const float values[] = {NAN, INFINITY, -INFINITY, 1e20f, -0x1.fffffep127f};
    static const size_t lengths[] = {100, 127, 129, 999, 4095, 4096, 4097};
    float *x = buffer(4200, 1), *y = buffer(4200, 2);
    seed(15);
    begin("%s %s of NaN, infinity and zero rows", table->name, name);
    for (size_t n = 1; n <= longest(); n++) {
        for (size_t position = 0; position < n; position++)
            for (size_t v = 0; v < COUNT(values); v++)
                check_squares(name, norm, n, position, values[v], x, y);
        memset(x, 0, n * sizeof *x);
        CHECK(norm(n, 0.0f, x, y) == HEED_OK);
        check_same(1, n, y, n, x, n, "a zero row");
    }
    for (size_t l = 0; l < COUNT(lengths); l++)
        for (size_t v = 0; v < COUNT(values); v++)
            check_squares(name, norm, lengths[l], lengths[l] - 1, values[v], x, y);
    end();
}

static void test_rmsnorm(const struct heed_kernels *table)
{
    test_squares(table, "rmsnorm", rmsnorm_row);
}

static void test_l2_norm(const struct heed_kernels *table)
{
    test_squares(table, "l2_normalize", l2_row);
}

/* ---- elements ---- */

static float activated_special(heed_activation activation, size_t special)
{
    const float relu[] = {NAN, INFINITY, 0.0f}, gelu[] = {NAN, INFINITY, -0.0f};
    if (activation == HEED_ACTIVATION_NONE)
        return specials[special];
    return activation == HEED_ACTIVATION_RELU ? relu[special] : gelu[special];
}

static void test_activations(const struct heed_kernels *table)
{
    float x[LONGEST], y[LONGEST], want[LONGEST];
    seed(4);
    begin("%s activations of NaN and infinity", table->name);
    for (int a = HEED_ACTIVATION_NONE; a <= HEED_ACTIVATION_SILU; a++)
        for (size_t n = 1; n <= longest(); n++)
            for (size_t position = 0; position < n; position++)
                for (size_t special = 0; special < COUNT(specials); special++) {
                    fill_uniform(x, n, -3.0f, 3.0f);
                    CHECK(heed_activate(context, (heed_activation)a, 1, n, x, n, want, n) == HEED_OK);
                    want[position] = activated_special((heed_activation)a, special);
                    x[position] = specials[special];
                    CHECK(heed_activate(context, (heed_activation)a, 1, n, x, n, y, n) == HEED_OK);
                    check_same(1, n, y, n, want, n, special_names[special]);
                }
    float zero = -0.0f;
    CHECK(heed_activate(context, HEED_ACTIVATION_RELU, 1, 1, &zero, 1, y, 1) == HEED_OK && y[0] == 0.0f &&
          signbit(y[0]));
    const float deep = -88.8f;
    CHECK(heed_activate(context, HEED_ACTIVATION_SILU, 1, 1, &deep, 1, y, 1) == HEED_OK);
    check_bound((double)y[0], -2.4e-37, 1e-38 + subnormal_slack(table) * 100.0, "silu does not underflow early", 0);
    end();
}

/* NaN and infinity in either factor reach their own element only, as IEEE 754 multiplies. */
static void test_gated(const struct heed_kernels *table)
{
    float gate[LONGEST], up[LONGEST], y[LONGEST], want[LONGEST];
    seed(14);
    begin("%s gated products of NaN and infinity", table->name);
    for (int a = HEED_ACTIVATION_NONE; a <= HEED_ACTIVATION_SILU; a++)
        for (size_t n = 1; n <= longest(); n++)
            for (size_t i = 0; i < 6 * n; i++) {
                size_t special = i % 3, position = i / 6, in_gate = i / 3 % 2;
                fill_uniform(gate, n, -3.0f, 3.0f);
                fill_uniform(up, n, -3.0f, 3.0f);
                CHECK(heed_activate(context, (heed_activation)a, 1, n, gate, n, want, n) == HEED_OK);
                if (in_gate)
                    want[position] = activated_special((heed_activation)a, special);
                *(in_gate ? &gate[position] : &up[position]) = specials[special];
                for (size_t j = 0; j < n; j++)
                    want[j] *= up[j];
                CHECK(heed_activate_gated(context, (heed_activation)a, 1, n, gate, n, up, n, y, n) == HEED_OK);
                check_same(1, n, y, n, want, n, special_names[special]);
            }
    end();
}

static void check_argmax(size_t n, const float *x, size_t want, const char *what)
{
    size_t got = SIZE_MAX;
    CHECK(heed_argmax(context, 1, n, x, n, &got) == HEED_OK);
    check_that(got == want, "argmax of %zu, %s: %zu, not %zu", n, what, got, want);
}

static void test_argmax(const struct heed_kernels *table)
{
    float x[LONGEST];
    seed(5);
    begin("%s argmax", table->name);
    for (size_t n = 1; n <= longest(); n++)
        for (size_t position = 0; position < n; position++) {
            fill_uniform(x, n, -3.0f, 3.0f);
            x[position] = 4.0f;
            check_argmax(n, x, position, "the largest");
            x[n - 1] = 4.0f;
            check_argmax(n, x, position, "the first of two");
            x[position] = NAN;
            x[0] = position > 0 ? INFINITY : x[0];
            check_argmax(n, x, position, "NaN after +inf");
            x[n - 1] = NAN;
            check_argmax(n, x, position, "the first of two NaN");
            for (size_t i = 0; i < n; i++)
                x[i] = -INFINITY;
            check_argmax(n, x, 0, "all -inf");
            x[position] = -0x1.fffffep127f;
            check_argmax(n, x, position, "one finite");
        }
    const float zeros[] = {-0.0f, 0.0f};
    check_argmax(2, zeros, 0, "zeros are equal");
    end();
}

/* What a sort gives: NaN first, then by value, then by index. */
static size_t rank_of(size_t n, const float *x, size_t i)
{
    size_t rank = 0;
    for (size_t j = 0; j < n; j++) {
        int equal = x[i] == x[j] || (isnan(x[i]) && isnan(x[j]));
        rank += equal ? j < i : isnan(x[j]) || x[j] > x[i];
    }
    return rank;
}

static void check_top_k(size_t n, size_t k, const float *x)
{
    size_t index[LONGEST], wrong = 0;
    float values[LONGEST];
    CHECK(heed_top_k(context, 1, n, k, x, n, values, k, index, k) == HEED_OK);
    for (size_t i = 0; i < k; i++)
        wrong += index[i] >= n || rank_of(n, x, index[i]) != i || !same_bits(values[i], x[index[i]]);
    check_that(wrong == 0, "top %zu of %zu: %zu are wrong", k, n, wrong);
}

/* Few different values, so that there are ties, and every special one at every position. */
static void test_top_k(const struct heed_kernels *table)
{
    float x[LONGEST], big[1000];
    size_t index[1000];
    seed(19);
    begin("%s top k", table->name);
    for (size_t n = 1; n <= longest(); n++)
        for (size_t position = 0; position < n; position++)
            for (size_t special = 0; special < COUNT(specials); special++) {
                for (size_t i = 0; i < n; i++)
                    x[i] = (float)random_below(7) - 3.0f;
                x[random_below(n)] = NAN;
                x[random_below(n)] = -0.0f;
                x[position] = specials[special];
                check_top_k(n, 1 + random_below(n), x);
                check_top_k(n, n, x);
            }
    for (size_t k = 1; k <= COUNT(big); k += 111) {
        for (size_t i = 0; i < COUNT(big); i++)
            big[i] = (float)random_below(300);
        big[random_below(COUNT(big))] = NAN;
        big[COUNT(big) - 1] = INFINITY;
        CHECK(heed_top_k(context, 1, COUNT(big), k, big, COUNT(big), NULL, 0, index, k) == HEED_OK);
        size_t wrong = 0;
        for (size_t i = 0; i < k; i++)
            wrong += rank_of(COUNT(big), big, index[i]) != i;
        check_that(wrong == 0, "top %zu of 1000: %zu are wrong", k, wrong);
    }
    end();
}

/* One special token among others, in every column and place. */
static void test_max_pooling(const struct heed_kernels *table)
{
    enum { MOST = 4 };
    float x[MOST * LONGEST], y[LONGEST], want[LONGEST];
    seed(20);
    begin("%s maximum pooling", table->name);
    for (size_t n = 1; n <= longest(); n++)
        for (size_t rows = 1; rows <= MOST; rows++)
            for (size_t at = 0; at < rows * n; at++) {
                const size_t offsets[] = {0, rows};
                fill_uniform(x, rows * n, -3.0f, 3.0f);
                x[at] = specials[at % 3];
                for (size_t j = 0; j < n; j++) {
                    want[j] = x[j];
                    for (size_t r = 1; r < rows; r++)
                        want[j] = isnan(want[j]) || want[j] > x[r * n + j] ? want[j] : x[r * n + j];
                }
                CHECK(heed_pool(context, HEED_POOLING_MAX, 1, offsets, n, x, n, y, n) == HEED_OK);
                check_same(1, n, y, n, want, n, "maximum");
            }
    const size_t none[] = {3, 3};
    CHECK(heed_pool(context, HEED_POOLING_MAX, 1, none, 5, x, 5, y, 5) == HEED_OK);
    memset(want, 0, sizeof want);
    check_same(1, 5, y, 5, want, 5, "no tokens");
    end();
}

/* ---- matmul ---- */

enum { M = 9, N = 67, K = 19 };

struct product {
    float a[M * K], b[K * N], c[M * N], want[M * N];
};

static void run_product_of(struct product *p, heed_transpose ta, heed_transpose tb, float alpha, float beta, float *c)
{
    CHECK(heed_matmul(context, ta, tb, M, N, K, alpha, p->a, ta == HEED_TRANSPOSE ? M : K, p->b,
                      tb == HEED_TRANSPOSE ? K : N, beta, c, N, NULL) == HEED_OK);
}

static void run_product(struct product *p, float alpha, float beta, float *c)
{
    run_product_of(p, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, alpha, beta, c);
}

/* One special element makes its row or column NaN or infinite, also against zeros, and nothing else. */
static void check_special_operand(struct product *p, int in_a, size_t index, size_t special)
{
    float *operand = in_a ? p->a : p->b, kept = operand[index];
    size_t k = in_a ? index % K : index / N;
    operand[index] = specials[special];
    run_product(p, 1.0f, 0.0f, p->c);
    operand[index] = kept;
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
            int hit = in_a ? i == index / K : j == index % N;
            float other = in_a ? p->b[k * N + j] : p->a[i * K + k], want = p->want[i * N + j];
            want = hit ? specials[special] * other : want;
            if (!same_bits(p->c[i * N + j], want)) {
                check_that(0, "%s[%zu] = %s: (%zu, %zu) is %g, not %g", in_a ? "a" : "b", index, special_names[special],
                           i, j, (double)p->c[i * N + j], (double)want);
                return;
            }
        }
    check_that(1, "operand");
}

static void test_matmul(const struct heed_kernels *table)
{
    static struct product p;
    seed(6);
    begin("%s matmul of NaN and infinity", table->name);
    fill_uniform(p.a, M * K, -1.0f, 1.0f);
    fill_uniform(p.b, K * N, -1.0f, 1.0f);
    for (size_t i = 0; i < M * K; i += 3)
        p.a[i] = 0.0f;
    for (size_t i = 0; i < K * N; i += 5)
        p.b[i] = 0.0f;
    run_product(&p, 1.0f, 0.0f, p.want);
    for (size_t special = 0; special < COUNT(specials); special++) {
        for (size_t i = 0; i < M * K; i++)
            check_special_operand(&p, 1, i, special);
        for (size_t i = special; i < K * N; i += quick() ? 13 : 1)
            check_special_operand(&p, 0, i, special);
    }
    end();
}

/* beta = 0 does not read c, alpha = 0 neither a nor b. */
static void test_matmul_scalars(const struct heed_kernels *table)
{
    static struct product p;
    seed(7);
    begin("%s matmul does not read what a zero scalar excludes", table->name);
    fill_uniform(p.a, M * K, -1.0f, 1.0f);
    fill_uniform(p.b, K * N, -1.0f, 1.0f);
    static const float alphas[] = {1.0f, -0.5f};
    for (size_t i = 0; i < COUNT(alphas); i++) {
        memset(p.want, 0, sizeof p.want);
        run_product(&p, alphas[i], 0.0f, p.want);
        for (size_t j = 0; j < M * N; j++)
            p.c[j] = specials[j % 3];
        run_product(&p, alphas[i], 0.0f, p.c);
        check_same(M, N, p.c, N, p.want, N, "beta = 0");
    }
    for (size_t i = 0; i < M * K; i++)
        p.a[i] = specials[i % 3];
    p.b[5] = NAN;
    fill_uniform(p.c, M * N, -1.0f, 1.0f);
    memcpy(p.want, p.c, sizeof p.c);
    for (int form = 0; form < 4; form++) {
        heed_transpose ta = (heed_transpose)(form / 2), tb = (heed_transpose)(form % 2);
        run_product_of(&p, ta, tb, 0.0f, 1.0f, p.c);
        check_same(M, N, p.c, N, p.want, N, "alpha = 0");
        run_product_of(&p, ta, tb, 0.0f, 0.0f, p.c);
        for (size_t i = 0; i < M * N; i++)
            CHECK(p.c[i] == 0.0f);
        memcpy(p.c, p.want, sizeof p.c);
    }
    end();
}

/* ---- attention ---- */

/* More queries than a tile has rows, and values of three panels. */
enum { MOST_KEYS = 1030, MOST_QUERIES = 9, SEVERAL_TILES = 30, MOST_DIM = 17, VALUES = 40 };

struct attention {
    float q[SEVERAL_TILES * MOST_DIM], k[MOST_KEYS * MOST_DIM], v[MOST_KEYS * VALUES], out[SEVERAL_TILES * VALUES];
    float want[SEVERAL_TILES * VALUES], map[SEVERAL_TILES * MOST_KEYS], want_map[SEVERAL_TILES * MOST_KEYS];
    float additive[SEVERAL_TILES * MOST_KEYS];
    unsigned char boolean[SEVERAL_TILES * MOST_KEYS];
    size_t dim, length;
    heed_attention_args args;
};

static struct attention at;

static void prepare(size_t queries, size_t keys)
{
    const heed_attention_args defaults = HEED_ATTENTION_ARGS_INIT;
    fill_uniform(at.q, queries * at.dim, -2.0f, 2.0f);
    fill_uniform(at.k, keys * at.dim, -2.0f, 2.0f);
    fill_uniform(at.v, keys * VALUES, -1.0f, 1.0f);
    at.args = defaults;
    at.args.batch = at.args.n_heads = at.args.n_kv_heads = 1;
    at.args.seq_q = queries;
    at.args.seq_kv = keys;
    at.args.head_dim = at.dim;
    at.args.value_dim = VALUES;
    at.args.q = (heed_heads){at.q, 0, 0, at.dim};
    at.args.k = (heed_heads){at.k, 0, 0, at.dim};
    at.args.v = (heed_heads){at.v, 0, 0, VALUES};
    at.args.out = (heed_heads_out){at.out, 0, 0, VALUES};
    at.args.map = (heed_heads_out){at.map, 0, 0, keys};
}

static void attend(void)
{
    CHECK(heed_attention(context, &at.args, NULL) == HEED_OK);
}

static void attend_and_keep(void)
{
    attend();
    memcpy(at.want, at.out, sizeof at.out);
    memcpy(at.want_map, at.map, sizeof at.map);
}

static void check_kept(const char *what)
{
    attend();
    check_same(at.args.seq_q, VALUES, at.out, VALUES, at.want, VALUES, what);
    check_same(at.args.seq_q, at.args.seq_kv, at.map, at.args.seq_kv, at.want_map, at.args.seq_kv, what);
}

static void spoil_key(size_t j, size_t special)
{
    for (size_t d = 0; d < at.dim; d++)
        at.k[j * at.dim + d] = specials[(special + d) % 3];
    for (size_t d = 0; d < VALUES; d++)
        at.v[j * VALUES + d] = specials[(special + d) % 3];
}

static const size_t key_counts[] = {1, 2, 7, 16, 31, 67, 255, 256, 257, 511, 512, 513, 1025};

static size_t key_count_step(void)
{
    return quick() ? 3 : 1;
}

/* Keys that no query may see are all spoilt after the first run. */
static void test_hidden_keys(const struct heed_kernels *table)
{
    seed(8);
    begin("%s attention does not read keys past the length or the diagonal, %zu dimensions", table->name, at.dim);
    for (size_t c = 0; c < COUNT(key_counts); c += key_count_step())
        for (size_t hidden = 1; hidden <= key_counts[c]; hidden += 1 + key_counts[c] / 3) {
            size_t keys = key_counts[c];
            at.length = keys - hidden;
            prepare(MOST_QUERIES, keys);
            at.args.kv_lengths = &at.length;
            attend_and_keep();
            for (size_t j = at.length; j < keys; j++)
                spoil_key(j, j % 3);
            check_kept("kv_lengths");
            size_t queries = keys - hidden < MOST_QUERIES ? keys - hidden : MOST_QUERIES;
            if (queries == 0)
                continue;
            prepare(queries, keys);
            at.args.causal = HEED_CAUSAL_TOP_LEFT;
            attend_and_keep();
            for (size_t j = queries; j < keys; j++)
                spoil_key(j, j % 3);
            check_kept("causal");
        }
    end();
}

/* Spoils all of key j, or only its value d. */
static void spoil_key_at(size_t j, size_t d)
{
    if (d < VALUES)
        at.v[j * VALUES + d] = NAN;
    else
        spoil_key(j, 0);
}

/* A row that sees key j is NaN, or only its value d. */
static void check_spoilt_row(size_t i, size_t j, size_t d)
{
    check_row(ROW_NAN, d < VALUES ? 1 : VALUES, at.out + i * VALUES + d % VALUES, "row that sees", "NaN key", j);
}

/* Row by row: key j is spoilt, rows before it must keep their bits and rows that see it become NaN. */
static void check_diagonal(size_t queries, size_t keys, size_t j, size_t d)
{
    prepare(queries, keys);
    at.args.causal = HEED_CAUSAL_BOTTOM_RIGHT;
    attend_and_keep();
    spoil_key_at(j, d);
    attend();
    for (size_t i = 0; i < queries; i++) {
        if (j + queries <= i + keys)
            check_spoilt_row(i, j, d);
        else
            check_same(1, VALUES, at.out + i * VALUES, VALUES, at.want + i * VALUES, VALUES, "row before a NaN key");
    }
}

static void test_diagonal(const struct heed_kernels *table)
{
    seed(9);
    begin("%s attention's diagonal row by row, %zu dimensions", table->name, at.dim);
    for (size_t c = 0; c < COUNT(key_counts); c += key_count_step()) {
        for (size_t back = 1; back <= MOST_QUERIES && back <= key_counts[c]; back++)
            check_diagonal(MOST_QUERIES, key_counts[c], key_counts[c] - back, VALUES);
        for (size_t d = 0; d < VALUES; d += (VALUES - 1) / 3)
            check_diagonal(MOST_QUERIES, key_counts[c], key_counts[c] - 1, d);
    }
    end();
}

/* The window row by row, as the diagonal above. */
static void check_window(size_t keys, size_t left, size_t right, size_t j)
{
    size_t queries = keys < MOST_QUERIES ? keys : MOST_QUERIES;
    prepare(queries, keys);
    at.args.window_left = left;
    at.args.window_right = right;
    attend_and_keep();
    spoil_key(j, 0);
    attend();
    for (size_t i = 0; i < queries; i++) {
        size_t position = i + keys - queries;
        if (j + left >= position && j <= position + right)
            check_row(ROW_NAN, VALUES, at.out + i * VALUES, "row that sees it", "NaN key", j);
        else
            check_same(1, VALUES, at.out + i * VALUES, VALUES, at.want + i * VALUES, VALUES, "row beside a NaN key");
    }
}

static void test_window(const struct heed_kernels *table)
{
    static const size_t lefts[] = {0, 1, 5, 40, 256, 300};
    seed(91);
    begin("%s attention's window row by row, %zu dimensions", table->name, at.dim);
    for (size_t c = 0; c < COUNT(key_counts); c += key_count_step())
        for (size_t l = 0; l < COUNT(lefts); l++)
            for (size_t back = 1; back <= key_counts[c] && back <= lefts[l] + MOST_QUERIES + 1;
                 back += 1 + lefts[l] / 16)
                check_window(key_counts[c], lefts[l], back % 4, key_counts[c] - back);
    end();
}

/* What was kept, from no more keys than `seen` from `first` on: the others' pages cannot be read. */
static void check_unmapped_keys(size_t first, size_t seen)
{
    size_t width = at.args.value_dim;
    for (int at_end = 0; at_end < 2; at_end++) {
        float *k = guarded(seen * at.dim, at_end), *v = guarded(seen * width, at_end);
        memcpy(k, at.k + first * at.dim, seen * at.dim * sizeof *k);
        memcpy(v, at.v + first * width, seen * width * sizeof *v);
        at.args.k.data = (const float *)((uintptr_t)k - first * at.dim * sizeof *k);
        at.args.v.data = (const float *)((uintptr_t)v - first * width * sizeof *v);
        check_kept("unmapped keys");
    }
    release_all();
}

/* Keys, values and masks outside the window and the length lie on pages that cannot be read. */
static void test_unmapped_keys(const struct heed_kernels *table)
{
    seed(92);
    begin("%s attention does not touch unmapped keys that an argument masks, %zu dimensions", table->name, at.dim);
    for (size_t keys = 60; keys <= 620; keys += quick() ? 280 : 70)
        for (size_t left = 0; left <= 30; left += 5) {
            size_t hidden = keys % 7, length = keys - hidden, queries = left % 2 ? 16 : left % 3 + 1;
            size_t first = length - queries - left, seen = length - first, width = left % 4 < 2 ? 32 : VALUES;
            at.length = length;
            prepare(queries, keys);
            at.args.value_dim = at.args.v.row_stride = at.args.out.row_stride = width;
            if (width < VALUES) /* few keys have a loop of their own, without a map */
                at.args.map.data = NULL;
            at.args.kv_lengths = &at.length;
            at.args.window_left = left;
            at.args.causal = left % 2 ? HEED_CAUSAL_BOTTOM_RIGHT : HEED_CAUSAL_NONE;
            attend_and_keep();
            check_unmapped_keys(first, seen);
        }
    prepare(SEVERAL_TILES, 2 * SEVERAL_TILES);
    at.args.causal = HEED_CAUSAL_TOP_LEFT;
    attend_and_keep();
    check_unmapped_keys(0, SEVERAL_TILES);
    end();
}

static int is_masked(size_t pattern, size_t i, size_t j)
{
    return pattern == 0 ? (i + j) % 3 == 0 : pattern == 1 ? j % 5 != 4 : j / 256 == i % 2;
}

/* A masked key may hold anything; the same mask as booleans and as -inf. */
static void check_masked(size_t queries, size_t keys, size_t pattern, int boolean)
{
    prepare(queries, keys);
    for (size_t i = 0; i < queries * keys; i++) {
        int masked = is_masked(pattern, i / keys, i % keys);
        at.boolean[i] = !masked;
        at.additive[i] = masked ? -INFINITY : uniform(-1.0f, 1.0f);
    }
    at.args.mask = (heed_mask){at.additive, HEED_MASK_ADDITIVE, 0, 0, keys};
    if (boolean)
        at.args.mask = (heed_mask){at.boolean, HEED_MASK_BOOLEAN, 0, 0, keys};
    attend_and_keep();
    /* Only keys that all rows mask may be spoilt. */
    for (size_t j = 0; j < keys; j++) {
        size_t masking = 0;
        for (size_t i = 0; i < queries; i++)
            masking += !at.boolean[i * keys + j];
        if (masking == queries)
            spoil_key(j, j % 3);
    }
    check_kept(boolean ? "boolean mask" : "-inf mask");
    for (size_t i = 0; i < queries * VALUES; i++)
        if (!isfinite(at.out[i])) {
            check_that(0, "masked attention over %zu keys is not finite", keys);
            return;
        }
}

/* Heads of one query in place of queries. */
static void make_rows_heads(void)
{
    at.args.n_heads = at.args.seq_q;
    at.args.seq_q = 1;
    at.args.q = (heed_heads){at.q, 0, at.dim, at.dim};
    at.args.out = (heed_heads_out){at.out, 0, VALUES, VALUES};
    at.args.map = (heed_heads_out){at.map, 0, at.args.seq_kv, at.args.seq_kv};
}

/* One row masks key j, all of which is NaN, or only value d; the other rows see it. */
static void check_mask_of_one_row(size_t rows, int heads, size_t row, size_t keys, size_t j, size_t d)
{
    prepare(rows, keys);
    if (heads)
        make_rows_heads();
    memset(at.boolean, 1, rows * keys);
    at.boolean[row * keys + j] = 0;
    at.args.mask = (heed_mask){at.boolean, HEED_MASK_BOOLEAN, 0, keys, keys};
    attend_and_keep();
    spoil_key_at(j, d);
    attend();
    check_same(1, VALUES, at.out + row * VALUES, VALUES, at.want + row * VALUES, VALUES, "row that masks the NaN key");
    for (size_t i = 0; i < rows; i++)
        if (i != row)
            check_spoilt_row(i, j, d);
}

static void test_masks(const struct heed_kernels *table)
{
    seed(10);
    begin("%s attention is not reached by what a mask hides, %zu dimensions", table->name, at.dim);
    for (size_t c = 0; c < COUNT(key_counts); c += key_count_step()) {
        for (size_t pattern = 0; pattern < 3; pattern++)
            for (int boolean = 0; boolean < 2; boolean++) {
                check_masked(1, key_counts[c], pattern, boolean);
                check_masked(7, key_counts[c], pattern, boolean);
            }
        check_mask_of_one_row(3, 0, 0, key_counts[c], 0, VALUES);
        check_mask_of_one_row(3, 0, 0, key_counts[c], key_counts[c] - 1, VALUES);
        check_mask_of_one_row(3, 0, 0, key_counts[c], key_counts[c] / 2, VALUES);
        check_mask_of_one_row(3, 0, 0, key_counts[c], key_counts[c] / 2, VALUES / 2);
        check_mask_of_one_row(3, 1, 2, key_counts[c], key_counts[c] / 2, VALUES);
        check_mask_of_one_row(SEVERAL_TILES, 0, SEVERAL_TILES - 1, key_counts[c], key_counts[c] / 2, VALUES);
    }
    end();
}

/* The first of the keys that length, window and causality let row i look at, and the one past the last. */
static void reach_of_row(size_t i, size_t *first, size_t *end)
{
    size_t position = i + at.length - at.args.seq_q;
    *first = position > at.args.window_left ? position - at.args.window_left : 0;
    *end = position + 1;
}

static int row_sees_any(size_t i, size_t keys)
{
    size_t first, end;
    reach_of_row(i, &first, &end);
    while (first < end && !at.boolean[i * keys + first])
        first++;
    return first < end;
}

/* Odd rows are NaN, by their queries or by all that a mask adds to them: in their maps keys that the tensor masks are
 * NaN too, those cut off are 0. */
enum nan_from { NAN_QUERY, NAN_QUERY_BOOLEAN_MASK, NAN_MASK, NAN_SOURCES };

static void check_map_of_nan(size_t queries, size_t keys, enum nan_from from, heed_attention_loop loop)
{
    prepare(queries, keys);
    at.length = keys - keys / 4;
    at.args.kv_lengths = &at.length;
    at.args.causal = HEED_CAUSAL_BOTTOM_RIGHT;
    at.args.window_left = keys / 2;
    at.args.loop = loop;
    for (size_t i = 1; from != NAN_MASK && i < queries; i += 2)
        at.q[i * at.dim + 2] = NAN;
    for (size_t i = 0; i < queries * keys; i++) {
        float added = from == NAN_MASK && i / keys % 2 == 1 ? NAN : 0.5f;
        at.boolean[i] = !is_masked(i / keys % 2, i / keys, i % keys);
        at.additive[i] = at.boolean[i] ? added : -INFINITY;
    }
    at.args.mask = (heed_mask){at.additive, HEED_MASK_ADDITIVE, 0, 0, keys};
    if (from == NAN_QUERY_BOOLEAN_MASK)
        at.args.mask = (heed_mask){at.boolean, HEED_MASK_BOOLEAN, 0, 0, keys};
    attend();
    for (size_t i = 0; i < queries; i++) {
        int is_nan = i % 2 == 1 && row_sees_any(i, keys);
        const float *map = at.map + i * keys;
        size_t first, end, wrong = 0;
        reach_of_row(i, &first, &end);
        for (size_t j = 0; j < keys; j++)
            wrong += j < first || j >= end ? map[j] != 0.0f : is_nan ? !isnan(map[j]) : !isfinite(map[j]);
        check_that(wrong == 0, "map of row %zu of %zu, %zu keys: %zu are wrong", i, queries, keys, wrong);
        check_row(is_nan ? ROW_NAN : ROW_FINITE, VALUES, at.out + i * VALUES, "attention", "NaN", i);
    }
}

static void test_maps_of_nan(const struct heed_kernels *table)
{
    seed(94);
    begin("%s attention's map of rows of NaN, %zu dimensions", table->name, at.dim);
    for (size_t c = 1; c < COUNT(key_counts); c++)
        for (int from = 0; from < NAN_SOURCES; from++)
            for (int loop = HEED_ATTENTION_LOOP_AUTO; loop <= HEED_ATTENTION_LOOP_ROWS; loop++) {
                check_map_of_nan(2, key_counts[c], (enum nan_from)from, (heed_attention_loop)loop);
                if (key_counts[c] > 2 * MOST_QUERIES)
                    check_map_of_nan(MOST_QUERIES, key_counts[c], (enum nan_from)from, (heed_attention_loop)loop);
            }
    end();
}

/* Rows without a key are zeros, +0 and in the map too. */
static void check_zero_rows(size_t rows, const char *what)
{
    memset(at.out, 0xff, sizeof at.out);
    memset(at.map, 0xff, sizeof at.map);
    attend();
    memset(at.want, 0, sizeof at.want);
    memset(at.want_map, 0, sizeof at.want_map);
    check_same(rows, VALUES, at.out, VALUES, at.want, VALUES, what);
    check_same(rows, at.args.seq_kv, at.map, at.args.seq_kv, at.want_map, at.args.seq_kv, what);
}

/* Every row sees keys, but only those that the tensor masks. */
static void check_masked_reach(size_t keys, int boolean)
{
    prepare(SEVERAL_TILES, keys);
    at.args.causal = HEED_CAUSAL_TOP_LEFT;
    for (size_t i = 0; i < SEVERAL_TILES * keys; i++) {
        at.boolean[i] = i % keys > i / keys;
        at.additive[i] = at.boolean[i] ? 0.5f : -INFINITY;
    }
    at.args.mask = (heed_mask){at.additive, HEED_MASK_ADDITIVE, 0, 0, keys};
    if (boolean)
        at.args.mask = (heed_mask){at.boolean, HEED_MASK_BOOLEAN, 0, 0, keys};
    check_zero_rows(SEVERAL_TILES, "all that is seen is masked");
    at.args.map.data = NULL; /* few keys have a loop of their own, without a map */
    memset(at.map, 0, sizeof at.map);
    memset(at.out, 0xff, sizeof at.out);
    attend();
    check_same(SEVERAL_TILES, VALUES, at.out, VALUES, at.want, VALUES, "all that is seen is masked, without a map");
}

static void test_empty_rows(const struct heed_kernels *table)
{
    seed(11);
    begin("%s attention without a key to see is zero, %zu dimensions", table->name, at.dim);
    for (size_t c = 0; c < COUNT(key_counts); c += key_count_step()) {
        size_t keys = key_counts[c], none = 0;
        for (int spoilt = 0; spoilt < 2; spoilt++) {
            prepare(4, keys);
            for (size_t j = 0; spoilt && j < keys; j++)
                spoil_key(j, j);
            memset(at.boolean, 0, keys);
            for (size_t j = 0; j < keys; j++)
                at.additive[j] = -INFINITY;
            at.args.mask = (heed_mask){at.boolean, HEED_MASK_BOOLEAN, 0, 0, 0};
            check_zero_rows(4, "boolean mask");
            at.args.mask = (heed_mask){at.additive, HEED_MASK_ADDITIVE, 0, 0, 0};
            check_zero_rows(4, "-inf mask");
            at.args.mask.type = HEED_MASK_NONE;
            at.args.kv_lengths = &none;
            check_zero_rows(4, "kv_lengths 0");
        }
        for (int boolean = 0; boolean < 2; boolean++)
            check_masked_reach(keys, boolean);
        prepare(MOST_QUERIES, keys < MOST_QUERIES ? keys : MOST_QUERIES - 1);
        at.args.causal = HEED_CAUSAL_BOTTOM_RIGHT;
        check_zero_rows(at.args.seq_q - at.args.seq_kv, "causal, more queries than keys");
    }
    end();
}

/* Scores: the query is (1, 0 ...), so that the first component of a key is its score. */
static void set_scores(size_t keys, float score)
{
    prepare(1, keys);
    memset(at.q, 0, sizeof at.q);
    at.q[0] = 1.0f;
    for (size_t j = 0; j < keys; j++) {
        memset(at.k + j * at.dim, 0, at.dim * sizeof(float));
        at.k[j * at.dim] = score;
    }
}

static void check_scores(size_t keys, size_t j)
{
    for (size_t special = 0; special < COUNT(specials); special++) {
        set_scores(keys, 0.5f);
        at.k[j * at.dim] = specials[special];
        attend();
        if (special < 2 || keys == 1) {
            check_row(ROW_NAN, VALUES, at.out, "attention", special_names[special], j);
        } else {
            check_row(ROW_FINITE, VALUES, at.out, "attention", special_names[special], j);
            CHECK(at.map[j] == 0.0f);
        }
    }
}

/* The first of several blocks has nothing but scores of -inf: it adds nothing to the others, in whichever order they
 * come from memory, and where those are masked it has shown the row a key. */
static void check_block_of_minus_inf(void)
{
    const size_t in_order = context->in_order, orders[] = {HEED_CPU_ANY_ORDER, 0};
    for (size_t i = 0; i < COUNT(orders); i++) {
        context->in_order = orders[i];
        set_scores(1025, 0.5f);
        for (size_t j = 0; j < 256; j++)
            at.k[j * at.dim] = -INFINITY;
        at.args.map.data = NULL;
        attend();
        check_row(ROW_FINITE, VALUES, at.out, "attention", "first block -inf, in order from bytes", orders[i]);
        for (size_t j = 0; j < 1025; j++)
            at.boolean[j] = j < 256;
        at.args.mask = (heed_mask){at.boolean, HEED_MASK_BOOLEAN, 0, 0, 0};
        attend();
        check_row(ROW_NAN, VALUES, at.out, "attention", "first block -inf, others masked", orders[i]);
    }
    context->in_order = in_order;
}

static void test_scores(const struct heed_kernels *table)
{
    seed(12);
    begin("%s attention to NaN and infinite scores, %zu dimensions", table->name, at.dim);
    for (size_t keys = 1; keys <= longest(); keys++)
        for (size_t j = 0; j < keys; j++)
            check_scores(keys, j);
    for (size_t c = 6; c < COUNT(key_counts); c += key_count_step()) {
        size_t keys = key_counts[c];
        check_scores(keys, 0);
        check_scores(keys, keys - 1);
        check_scores(keys, 254);
        if (keys > 256)
            check_scores(keys, 256);
    }
    for (size_t c = 0; c < COUNT(key_counts); c++) {
        set_scores(key_counts[c], -INFINITY);
        attend();
        check_row(ROW_NAN, VALUES, at.out, "attention", "all scores -inf", 0);
        check_row(ROW_NAN, at.args.seq_kv, at.map, "map", "all scores -inf", 0);
        set_scores(key_counts[c], -1e30f);
        attend();
        check_row(ROW_FINITE, VALUES, at.out, "attention", "all scores -1e30", 0);
    }
    check_block_of_minus_inf();
    end();
}

/* Sinks of all kinds, with and without a key to see. */
static void test_sinks(const struct heed_kernels *table)
{
    float sink = 1.5f, sum[4];
    size_t none = 0;
    seed(93);
    begin("%s attention with sinks, and log-sum-exp, at the edges, %zu dimensions", table->name, at.dim);
    prepare(4, 300);
    attend_and_keep();
    at.args.sinks = &sink;
    sink = -INFINITY;
    check_kept("no sink");
    sink = -3e38f;
    check_kept("a sink of no weight");
    at.args.log_sum_exp = (heed_heads_out){sum, 0, 0, 1};
    sink = NAN;
    attend();
    check_row(ROW_NAN, 4 * VALUES, at.out, "attention", "NaN sink", 0);
    check_row(ROW_NAN, 4, sum, "log-sum-exp", "NaN sink", 0);
    sink = INFINITY;
    attend();
    check_row(ROW_NAN, 4 * VALUES, at.out, "attention", "infinite sink", 0);
    sink = 1.5f;
    at.args.kv_lengths = &none;
    check_zero_rows(4, "a sink alone");
    for (size_t i = 0; i < 4; i++)
        check_bound((double)sum[i], 1.5, 1e-6, "log-sum-exp of a sink", i);
    for (size_t i = 0; i < 300; i++)
        at.additive[i] = -INFINITY;
    at.args.kv_lengths = NULL;
    at.args.mask = (heed_mask){at.additive, HEED_MASK_ADDITIVE, 0, 0, 0};
    sink = NAN;
    check_zero_rows(4, "a NaN sink beside masked keys");
    sink = 1.5f;
    at.args.kv_lengths = &none;
    at.args.mask = (heed_mask){NULL, HEED_MASK_NONE, 0, 0, 0};
    sink = -0x1.fffffep127f;
    check_zero_rows(4, "the least sink");
    check_row(ROW_FINITE, 4, sum, "log-sum-exp", "the least sink", 0);
    sink = 1.5f;
    at.args.sinks = NULL;
    check_zero_rows(4, "nothing at all");
    for (size_t i = 0; i < 4; i++)
        CHECK(sum[i] == -INFINITY);
    set_scores(7, -INFINITY);
    at.args.log_sum_exp = (heed_heads_out){sum, 0, 0, 1};
    attend();
    check_row(ROW_NAN, VALUES, at.out, "attention", "all scores -inf", 0);
    CHECK(sum[0] == -INFINITY);
    at.args.sinks = &sink;
    check_zero_rows(1, "scores of -inf beside a sink");
    set_scores(7, 0.5f);
    at.args.softcap = 2.0f;
    at.k[3 * at.dim] = INFINITY;
    at.k[4 * at.dim] = -INFINITY;
    attend();
    check_row(ROW_FINITE, VALUES, at.out, "attention", "a softcap of infinite scores", 0);
    at.k[5 * at.dim] = NAN;
    attend();
    check_row(ROW_NAN, VALUES, at.out, "attention", "a softcap of NaN", 0);
    end();
}

/* -FLT_MAX, the usual mask of other frameworks, is a number: keys that all have it weigh the same. */
static void test_finite_masks(const struct heed_kernels *table)
{
    begin("%s: an additive mask of -FLT_MAX, %zu dimensions", table->name, at.dim);
    prepare(1, 7);
    fill_uniform(at.q, at.dim, 0.0f, 0.0f);
    at.args.mask = (heed_mask){at.additive, HEED_MASK_ADDITIVE, 0, 0, 7};
    for (size_t j = 0; j < 7; j++)
        at.additive[j] = -0x1.fffffep127f;
    attend();
    for (size_t j = 0; j < 7; j++)
        check_bound((double)at.map[j], 1.0 / 7.0, 0x1p-22, "weight", j);
    at.additive[3] = 0.0f;
    attend();
    for (size_t j = 0; j < 7; j++)
        CHECK(at.map[j] == (j == 3 ? 1.0f : 0.0f));
    end();
}

static void leave_out_values(void)
{
    at.args.value_dim = 0;
    at.args.v.data = NULL;
    at.args.out.data = NULL;
}

static void check_mean_without_values(size_t keys)
{
    prepare(MOST_QUERIES, keys);
    make_rows_heads();
    at.args.map.data = NULL;
    at.args.mean_map = (heed_heads_out){at.want_map, 0, 0, keys};
    attend();
    memset(at.map, 0xff, keys * sizeof *at.map);
    at.args.mean_map.data = at.map;
    leave_out_values();
    attend();
    check_same(1, keys, at.map, keys, at.want_map, keys, "mean of maps without values");
}

/* The denominators are there without values as well, and the mean of maps. */
static void test_no_values(const struct heed_kernels *table)
{
    float with_values[MOST_QUERIES], without[MOST_QUERIES];
    seed(95);
    begin("%s attention's log-sum-exp and mean map without values, %zu dimensions", table->name, at.dim);
    for (size_t c = 1; c < COUNT(key_counts); c++) {
        prepare(MOST_QUERIES, key_counts[c]);
        at.args.map.data = NULL;
        at.args.log_sum_exp = (heed_heads_out){with_values, 0, 0, 1};
        attend();
        memset(without, 0xff, sizeof without);
        at.args.log_sum_exp.data = without;
        leave_out_values();
        attend();
        check_same(1, MOST_QUERIES, without, MOST_QUERIES, with_values, MOST_QUERIES, "log-sum-exp without values");
        check_mean_without_values(key_counts[c]);
    }
    end();
}

/* Few queries pack keys of few dimensions, and leave others in place. */
static void test_attention(const struct heed_kernels *table)
{
    static const size_t dims[] = {5, MOST_DIM};
    static void (*const tests[])(const struct heed_kernels *) = {
        test_maps_of_nan,  test_hidden_keys, test_diagonal,      test_masks, test_empty_rows, test_scores,
        test_finite_masks, test_window,      test_unmapped_keys, test_sinks, test_no_values};
    for (size_t d = 0; d < COUNT(dims); d++) {
        at.dim = dims[d];
        for (size_t i = 0; i < COUNT(tests); i++)
            tests[i](table);
    }
}

static void test_table(const struct heed_kernels *table)
{
    static void (*const tests[])(const struct heed_kernels *) = {
        test_softmax,     test_masked_softmax, test_masked_rows_of_nan,
        test_neighbours,  test_layernorm,      test_layernorm_finite,
        test_rmsnorm,     test_l2_norm,        test_activations,
        test_gated,       test_argmax,         test_top_k,
        test_max_pooling, test_matmul,         test_matmul_scalars,
        test_attention};
    context = context_on(table, 1);
    for (size_t i = 0; i < COUNT(tests); i++)
        tests[i](table);
    heed_context_destroy(context);
}

int main(void)
{
    for_each_table(test_table);
    return finish();
}
