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

/* The distance of the floats around x, at least that of subnormal ones. */
static double ulp_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52 & 2047) - 1023 - 23;
    bits = (uint64_t)((exponent < -149 ? -149 : exponent) + 1023) << 52;
    memcpy(&x, &bits, sizeof x);
    return x;
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
    kernels->activate(HEED_KIND_GELU_ERF, 1, CHUNK, x, CHUNK, y, CHUNK, 0, false);
}

static void run_gelu_tanh(const struct heed_kernels *kernels, const float *x, float *y)
{
    kernels->activate(HEED_KIND_GELU_TANH, 1, CHUNK, x, CHUNK, y, CHUNK, 0, false);
}

static void run_silu(const struct heed_kernels *kernels, const float *x, float *y)
{
    kernels->activate(HEED_KIND_SILU, 1, CHUNK, x, CHUNK, y, CHUNK, 0, false);
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

/* The tables that run here, and for each of them the one whose bits it has to have: the oracle of its class. One that
 * is its own model is held to the bound instead. */
enum { MOST_TABLES = 8 };
static const struct heed_kernels *tables[MOST_TABLES];
static int models[MOST_TABLES], table_count;

static void add_table(const struct heed_kernels *table)
{
    if (table_count == MOST_TABLES) {
        printf("Bail out! more tables than %d\n", MOST_TABLES);
        exit(99);
    }
    tables[table_count++] = table;
}

static int model_of(int t)
{
    const struct heed_kernels *oracle = oracle_of(tables[t]);
    for (int m = 0; m < table_count; m++)
        if (tables[m] == oracle && subnormal_slack(tables[t]) == 0.0)
            return m;
    return t;
}

struct verdict {
    double share, input, ulps; /* of the worst result */
    size_t different;          /* from the model */
};

/* The share of the bound that the error takes; 0 for equal infinities and NaN for NaN. */
static double share_of_bound(const struct function *f, float x, float y, double exact, double slack)
{
    if (isnan(x))
        return isnan(y) ? 0.0 : INFINITY;
    if (exact > (double)0x1.fffffep127f)
        return isinf(y) ? 0.0 : INFINITY;
    if ((double)y == exact)
        return 0.0;
    double share = fabs((double)y - exact) / (f->bound((double)x, exact) + slack);
    return isnan(share) ? INFINITY : share;
}

static void judge_errors(const struct function *f, const float *x, const float *y, const double *exact, double slack,
                         struct verdict *verdict)
{
    for (int i = 0; i < CHUNK; i++) {
        double share = share_of_bound(f, x[i], y[i], exact[i], slack);
        if (share > verdict->share) {
            verdict->share = share;
            verdict->input = (double)x[i];
            verdict->ulps = fabs((double)y[i] - exact[i]) / ulp_of(exact[i]);
        }
    }
}

static size_t count_different(const float *a, const float *b)
{
    size_t different = 0;
    for (int i = 0; i < CHUNK; i++)
        different += !same_bits(a[i], b[i]);
    return different;
}

/* One chunk on every table, each with a verdict of its own. */
static void judge_chunk(const struct function *f, float x[CHUNK], struct verdict *verdicts)
{
    float y[MOST_TABLES][CHUNK];
    double exact[CHUNK];
    keep_in_range(f, x);
    for (int i = 0; i < CHUNK; i++)
        exact[i] = f->exact((double)x[i]);
    for (int t = 0; t < table_count; t++)
        f->run(tables[t], x, y[t]);
    for (int t = 0; t < table_count; t++)
        if (models[t] == t)
            judge_errors(f, x, y[t], exact, subnormal_slack(tables[t]), &verdicts[t]);
        else
            verdicts[t].different += count_different(y[t], y[models[t]]);
}

static void merge(const struct verdict *part, struct verdict *whole)
{
    for (int t = 0; t < table_count; t++) {
        size_t different = whole[t].different + part[t].different;
        if (part[t].share > whole[t].share)
            whole[t] = part[t];
        whole[t].different = different;
    }
}

static void report(const struct function *f, int t, const struct verdict *verdict)
{
    begin("%s: %s over %s floats", tables[t]->name, f->name, step == 1 ? "all" : "some");
    if (models[t] == t)
        check_that(verdict->share <= 1.0, "the error is %.4f of the bound at %a", verdict->share, verdict->input);
    else
        check_that(verdict->different == 0, "%zu results differ from %s", verdict->different, tables[models[t]]->name);
    end();
    if (models[t] == t)
        note("%s: %s: worst %.4f of the bound, %.4f ulp, at x = %a", tables[t]->name, f->name, verdict->share,
             verdict->ulps, verdict->input);
}

static void scan(const struct function *f)
{
    struct verdict verdicts[MOST_TABLES] = {{0}};
    float specials[CHUNK];
    int64_t chunks = (int64_t)((((uint64_t)1 << 32) - 1) / (CHUNK * step) + 1);
    fill_specials(specials);
    judge_chunk(f, specials, verdicts);
#ifdef _OPENMP
#pragma omp parallel
#endif
    {
        struct verdict part[MOST_TABLES] = {{0}};
        float x[CHUNK];
#ifdef _OPENMP
#pragma omp for schedule(dynamic, 16)
#endif
        for (int64_t c = 0; c < chunks; c++) {
            fill_chunk((uint64_t)c * CHUNK * step, x);
            judge_chunk(f, x, part);
        }
#ifdef _OPENMP
#pragma omp critical
#endif
        merge(part, verdicts);
    }
    for (int t = 0; t < table_count; t++)
        report(f, t, &verdicts[t]);
}

static bool read_step(const char *text)
{
    char *end;
    step = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && step > 0 && step <= UINT32_MAX;
}

/* usage: exhaustive [STEP]; without STEP a sample that make check has time for */
int main(int argc, char **argv)
{
    step = quick() ? 65537 : 1021;
    if (argc > 1 && !read_step(argv[1])) {
        printf("Bail out! STEP is a positive number\n");
        return 99;
    }
    for_each_table(add_table);
    for (int t = 0; t < table_count; t++)
        models[t] = model_of(t);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        scan(&functions[i]);
    return finish();
}
