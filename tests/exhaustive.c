/* SPDX-License-Identifier: MIT
 * exp, log, tanh, 2^x, both GELUs and SiLU over every float, on every table: the largest error with its input, held to
 * the bounds that heed.h states, and the bits to those of the class's scalar table.
 *
 * References are libm's in double, whose error is 2^-29 times smaller than a float's ulp.
 */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 4096 };

/* Every step-th float: 1 for all of them. */
static uint64_t step;

static double ulp_of(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1.0, exponent - 24 < -149 ? -149 : exponent - 24);
}

static double exact_exp(double x)
{
    return exp(x);
}

static double exact_exp2(double x)
{
    return x < -100.0 ? 0.0 : exp2(x);
}

static double exact_gelu_erf(double x)
{
    return x < -700.0 ? -0.0 : x * 0.5 * erfc(-x / sqrt(2.0));
}

static double exact_gelu_tanh(double x)
{
    double u = sqrt(8.0 / acos(-1.0)) * (x + 0.044715 * x * x * x);
    return u < -700.0 ? -0.0 : x / (1.0 + exp(-u));
}

static double exact_log(double x)
{
    return x == 0.0 ? -INFINITY : log(x);
}

static double exact_silu(double x)
{
    return x < -700.0 ? -0.0 : x / (1.0 + exp(-x));
}

/* One ulp. */
static double bound_exp(double x, double y)
{
    (void)x;
    return ulp_of(y);
}

static double bound_exp2(double x, double y)
{
    (void)x;
    return y * 0x1p-22;
}

static double bound_tanh(double x, double y)
{
    (void)x;
    return 3.0 * ulp_of(y);
}

static double bound_gelu(double x, double y)
{
    return fmax(4.0 * ulp_of(y), fabs(x) * 0x1p-24);
}

static void run_exp(const struct heed_kernels *kernels, const float *x, float *y)
{
    kernels->vexp(CHUNK, x, y);
}

static void run_log(const struct heed_kernels *kernels, const float *x, float *y)
{
    kernels->vlog(CHUNK, x, y);
}

static void run_tanh(const struct heed_kernels *kernels, const float *x, float *y)
{
    kernels->vtanh(CHUNK, x, y);
}

static void run_exp2(const struct heed_kernels *kernels, const float *x, float *y)
{
    kernels->vexp2(CHUNK, x, y);
}

static void run_gelu_erf(const struct heed_kernels *kernels, const float *x, float *y)
{
    kernels->activate(HEED_KIND_GELU_ERF, 1, CHUNK, x, CHUNK, y, CHUNK);
}

static void run_gelu_tanh(const struct heed_kernels *kernels, const float *x, float *y)
{
    kernels->activate(HEED_KIND_GELU_TANH, 1, CHUNK, x, CHUNK, y, CHUNK);
}

static void run_silu(const struct heed_kernels *kernels, const float *x, float *y)
{
    kernels->activate(HEED_KIND_SILU, 1, CHUNK, x, CHUNK, y, CHUNK);
}

static const struct function {
    const char *name;
    double (*exact)(double x);
    double (*bound)(double x, double y);
    void (*run)(const struct heed_kernels *kernels, const float *x, float *y);
    float least, most; /* inputs beyond are not promised anything */
} functions[] = {
    {"exp", exact_exp, bound_exp, run_exp, -INFINITY, INFINITY},
    {"log", exact_log, bound_exp, run_log, 0.0f, INFINITY},
    {"tanh", tanh, bound_tanh, run_tanh, -INFINITY, INFINITY},
    {"exp2", exact_exp2, bound_exp2, run_exp2, -INFINITY, 1.0f},
    {"gelu erf", exact_gelu_erf, bound_gelu, run_gelu_erf, -INFINITY, INFINITY},
    {"gelu tanh", exact_gelu_tanh, bound_gelu, run_gelu_tanh, -INFINITY, INFINITY},
    {"silu", exact_silu, bound_gelu, run_silu, -INFINITY, INFINITY},
};

static void keep_in_range(const struct function *f, float x[CHUNK])
{
    for (int i = 0; i < CHUNK; i++)
        if (x[i] > f->most || x[i] < f->least)
            x[i] = -x[i];
}

static void fill_chunk(uint64_t first, float x[CHUNK])
{
    for (uint64_t i = 0; i < CHUNK; i++) {
        uint32_t bits = (uint32_t)(first + i * step);
        memcpy(&x[i], &bits, sizeof bits);
    }
}

/* What a step may miss. */
static void fill_specials(float x[CHUNK])
{
    static const float specials[] = {INFINITY,        -INFINITY,  NAN,       0.0f,       -0.0f,
                                     0x1p-149f,       -0x1p-149f, 0x1p-126f, -0x1p-126f, 0x1.fffffep127f,
                                     -0x1.fffffep127f};
    for (size_t i = 0; i < CHUNK; i++)
        x[i] = specials[i % (sizeof specials / sizeof *specials)];
}

struct verdict {
    double share, input, ulps; /* of the worst result */
    size_t different;          /* from the oracle */
};

/* The share of the bound that the error takes; 0 for equal infinities and NaN for NaN. */
static double share_of_bound(const struct function *f, float x, float y, double slack, double *ulps)
{
    double exact = f->exact((double)x);
    *ulps = 0.0;
    if (isnan(x))
        return isnan(y) ? 0.0 : INFINITY;
    if (exact > (double)0x1.fffffep127f)
        return isinf(y) ? 0.0 : INFINITY;
    if ((double)y == exact)
        return 0.0;
    double error = fabs((double)y - exact);
    *ulps = error / ulp_of(exact);
    double share = error == 0.0 ? 0.0 : error / (f->bound((double)x, exact) + slack);
    return isnan(share) ? INFINITY : share;
}

static void judge_chunk(const struct heed_kernels *table, const struct function *f, float x[CHUNK],
                        struct verdict *verdict)
{
    static float y[CHUNK], oracle_y[CHUNK];
    const struct heed_kernels *oracle = oracle_of(table);
    keep_in_range(f, x);
    f->run(table, x, y);
    if (oracle && oracle != table) {
        f->run(oracle, x, oracle_y);
        for (int i = 0; i < CHUNK; i++)
            verdict->different += !same_bits(y[i], oracle_y[i]);
        if (verdict->different == 0)
            return; /* the oracle itself is held to the bound */
    }
    for (int i = 0; i < CHUNK; i++) {
        double ulps, share = share_of_bound(f, x[i], y[i], subnormal_slack(table), &ulps);
        if (!(share <= verdict->share))
            *verdict = (struct verdict){share, (double)x[i], ulps, verdict->different};
    }
}

static void scan(const struct heed_kernels *table, const struct function *f)
{
    static float x[CHUNK];
    const struct heed_kernels *oracle = oracle_of(table);
    struct verdict verdict = {0.0, 0.0, 0.0, 0};
    fill_specials(x);
    judge_chunk(table, f, x, &verdict);
    for (uint64_t first = 0; first < (uint64_t)1 << 32; first += CHUNK * step) {
        fill_chunk(first, x);
        judge_chunk(table, f, x, &verdict);
    }
    begin("%s: %s over %s floats", table->name, f->name, step == 1 ? "all" : "some");
    check_that(verdict.different == 0, "%zu results differ from %s", verdict.different, oracle ? oracle->name : "");
    check_that(verdict.share <= 1.0, "the error is %.4f of the bound at %a", verdict.share, verdict.input);
    end();
    if (!oracle || oracle == table)
        note("%s: %s: worst %.4f of the bound, %.4f ulp, at x = %a", table->name, f->name, verdict.share, verdict.ulps,
             verdict.input);
}

static void test_table(const struct heed_kernels *table)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        scan(table, &functions[i]);
}

/* usage: exhaustive [STEP]; without STEP a sample that make check has time for */
int main(int argc, char **argv)
{
    step = quick() ? 65537 : 1021;
    if (argc > 1)
        step = strtoull(argv[1], NULL, 10);
    if (step == 0) {
        printf("Bail out! STEP is a positive number\n");
        return 99;
    }
    for_each_table(test_table);
    return finish();
}
