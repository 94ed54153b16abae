/* SPDX-License-Identifier: MIT
 * One shape of a suite to compute.
 */
#include "config.h"

#include "problem.h"

#include "diag.h"
#include "layer.h"
#include "memory.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Uniform in [-1, 1), the same in every run; peers in other languages make the same. */
static float next_value(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(int32_t)*state * 0x1p-31f;
}

static void fill(float *values, size_t count, uint32_t seed)
{
    uint32_t state = seed;
    for (size_t i = 0; i < count; i++)
        values[i] = next_value(&state);
}

/* ---- what is computed ------------------------------------------------------------------------ */

static void measure_product(struct problem *p)
{
    const struct shape *s = &p->shape;
    p->operand_count[0] = s->m * s->k;
    p->operand_count[1] = s->k * s->n;
    p->operand_count[2] = s->epilogue == EPILOGUE_NONE ? 0 : s->n;
    p->out_count = s->m * s->n;
    p->flops = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    p->memory = LIMIT_READ;
}

/* Arithmetic instructions on a vector, as doc/bench.md counts them: at best they issue as fast as
 * multiply-adds, which count twice. */
static const double row_instructions[N_ROW_FUNCTIONS] = {
    [ROW_SOFTMAX] = 19, [ROW_LOG_SOFTMAX] = 20,  [ROW_LAYERNORM] = 7,   [ROW_RMSNORM] = 3,
    [ROW_RELU] = 1,     [ROW_GELU_ERF] = 24,     [ROW_GELU_TANH] = 26,  [ROW_SILU] = 23,
    [ROW_SWIGLU] = 24,  [ROW_ADD_LAYERNORM] = 8, [ROW_ADD_RMSNORM] = 4,
};

static void measure_rows(struct problem *p)
{
    const struct shape *s = &p->shape;
    p->out_count = p->operand_count[0] = s->m * s->n;
    bool adds = shape_adds_residual(s->function);
    if (s->function == ROW_LAYERNORM || s->function == ROW_RMSNORM || adds)
        p->operand_count[1] = s->n;
    if (s->function == ROW_LAYERNORM || s->function == ROW_ADD_LAYERNORM)
        p->operand_count[2] = s->n;
    p->operand_count[3] = adds ? s->m * s->n : 0;
    if (s->function == ROW_SWIGLU)
        p->operand_count[1] = s->m * s->n;
    p->flops = 2.0 * row_instructions[s->function] * (double)p->out_count;
    p->memory = LIMIT_COPY;
}

ptrdiff_t problem_position(const struct shape *s, size_t row)
{
    return (ptrdiff_t)(row + s->n) - (ptrdiff_t)s->m;
}

/* The index, or the nearest that there is. */
static size_t clamp(ptrdiff_t index, size_t count)
{
    return index < 0 ? 0 : (size_t)index < count ? (size_t)index : count;
}

struct span problem_seen(const struct shape *s, size_t row)
{
    ptrdiff_t position = problem_position(s, row), window = (ptrdiff_t)(s->window ? s->window : s->n + s->m);
    ptrdiff_t last = s->causal ? position : position + window;
    return (struct span){clamp(position - window, s->n), clamp(last + 1, s->n)};
}

/* A quarter of the keys is masked, but no query's own. */
static void fill_boolean(struct problem *p)
{
    const struct shape *s = &p->shape;
    uint32_t state = N_OPERANDS;
    for (size_t row = 0; row < s->m; row++) {
        size_t own = clamp(problem_position(s, row), s->n);
        for (size_t key = 0; key < s->n; key++)
            p->boolean[row * s->n + key] = next_value(&state) >= -0.5f || key == own;
    }
}

static void measure_attention(struct problem *p)
{
    const struct shape *s = &p->shape;
    size_t pairs = 0, reached = problem_seen(s, s->m - 1).end - problem_seen(s, 0).first;
    for (size_t row = 0; row < s->m; row++) {
        struct span seen = problem_seen(s, row);
        pairs += seen.end - seen.first;
    }
    p->out_count = p->operand_count[0] = s->batch * s->heads * s->m * s->k;
    p->operand_count[1] = p->operand_count[2] = s->batch * s->kv_heads * s->n * s->k;
    p->operand_count[3] = s->tensor == TENSOR_ADDITIVE ? s->m * s->n : 0;
    p->bytes = (p->out_count + p->operand_count[0] + 2 * s->batch * s->kv_heads * reached * s->k) * sizeof(float);
    if (s->tensor != TENSOR_NONE)
        p->bytes += pairs * (s->tensor == TENSOR_BOOLEAN ? 1 : sizeof(float));
    p->flops = 4.0 * (double)(s->batch * s->heads * s->k) * (double)pairs;
    p->memory = LIMIT_READ;
}

static void measure_layer(struct problem *p)
{
    p->out_count = p->operand_count[0] = p->shape.batch * p->shape.m * p->shape.k;
    p->operand_count[1] = layer_matrix_floats(&p->shape);
    p->operand_count[2] = layer_vector_floats(&p->shape);
    p->flops = layer_flops(&p->shape);
    p->memory = LIMIT_READ;
}

heed_heads problem_queries(const struct problem *p)
{
    const struct shape *s = &p->shape;
    return (heed_heads){p->operand[0], s->m * s->heads * s->k, s->k, s->heads * s->k};
}

heed_heads problem_keys(const struct problem *p, int operand)
{
    const struct shape *s = &p->shape;
    size_t batch_stride = s->n * s->kv_heads * s->k;
    if (p->suite->kind == SUITE_DECODE)
        return (heed_heads){p->operand[operand], batch_stride, s->n * s->k, s->k};
    return (heed_heads){p->operand[operand], batch_stride, s->k, s->kv_heads * s->k};
}

heed_heads_out problem_result(const struct problem *p)
{
    heed_heads q = problem_queries(p);
    return (heed_heads_out){p->out, q.batch_stride, q.head_stride, q.row_stride};
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Floats of the largest operand or result, about. */
static double largest(const struct problem *p)
{
    const struct shape *s = &p->shape;
    double m = (double)s->m, n = (double)s->n + 16.0, k = (double)s->k + 1.0;
    if (p->suite->kind == SUITE_LAYER)
        return (m * (double)s->batch + k) * (k + n);
    double heads = (double)s->heads * (double)s->batch + 1.0;
    return fmax(heads * m * k, fmax(heads * k * n, (s->alibi ? heads : 1.0) * m * n));
}

static bool fits(const struct problem *p)
{
    if (largest(p) < (double)PTRDIFF_MAX / 8.0)
        return true;
    diag_print("%s: too large for this machine", p->text);
    return false;
}

static void measure(struct problem *p)
{
    if (p->suite->kind == SUITE_ATTENTION || p->suite->kind == SUITE_DECODE) {
        measure_attention(p);
        return;
    }
    if (p->suite->kind == SUITE_ROWS)
        measure_rows(p);
    else if (p->suite->kind == SUITE_LAYER)
        measure_layer(p);
    else
        measure_product(p);
    p->bytes = p->out_count * sizeof(float);
    if (p->suite->kind == SUITE_ROWS && shape_adds_residual(p->shape.function))
        p->bytes *= 2; /* the sum is a result as well */
    for (int i = 0; i < N_OPERANDS; i++)
        p->bytes += p->operand_count[i] * sizeof(float);
}

static bool allocate(struct problem *p)
{
    bool all = true;
    for (int i = 0; i < N_OPERANDS && all; i++)
        all = (p->operand[i] = memory_aligned_array(p->operand_count[i], sizeof(float))) != NULL;
    if (all && p->shape.tensor == TENSOR_BOOLEAN)
        all = (p->boolean = memory_aligned_array(p->shape.m * p->shape.n, 1)) != NULL;
    all = all && (p->out = memory_aligned_array(p->out_count, sizeof(float))) != NULL;
    return all && (p->expected = memory_aligned_array(p->out_count, sizeof(float))) != NULL;
}

static void fill_all(struct problem *p)
{
    for (int i = 0; i < N_OPERANDS; i++)
        fill(p->operand[i], p->operand_count[i], (uint32_t)i + 1);
    if (p->boolean)
        fill_boolean(p);
    if (p->suite->kind == SUITE_LAYER)
        layer_scale_matrices(p);
}

bool problem_open(struct problem *p, const struct suite *suite, const struct shape *shape)
{
    p->suite = suite;
    p->shape = *shape;
    shape_print(suite->kind, shape, p->text);
    if (!fits(p))
        return false;
    measure(p);
    if (!allocate(p))
        return false;
    fill_all(p);
    return true;
}

void problem_close(struct problem *p)
{
    for (int i = 0; i < N_OPERANDS; i++)
        free(p->operand[i]);
    free(p->boolean);
    free(p->out);
    free(p->expected);
}

void problem_spoil(const struct problem *p)
{
    for (size_t i = 0; i < p->out_count; i++)
        p->out[i] = NAN;
}

bool problem_is_visible(const struct problem *p, size_t row, size_t key)
{
    struct span seen = problem_seen(&p->shape, row);
    return key >= seen.first && key < seen.end && (!p->boolean || p->boolean[row * p->shape.n + key]);
}

double problem_activation_tolerance(const struct problem *p, double value)
{
    return p->shape.epilogue > EPILOGUE_RELU ? 1e-5 * (fabs(value) + 1.0) : 0.0;
}

/* Sums of k products of [-1, 1) whose roundings go up and down alike, twice, and an activation of them, none of which
 * is steeper than 1.2. What is less exact is for the reference to find. */
double problem_tolerance(const struct problem *p, double expected)
{
    if (p->suite->kind == SUITE_ROWS)
        return 1e-4 * fabs(expected) + (p->shape.function == ROW_SOFTMAX ? 1e-12 : 1e-5);
    if (p->suite->kind == SUITE_ATTENTION ||
        p->suite->kind == SUITE_DECODE) /* ALiBi alone makes scores as large as its distances, of keys or of queries */
        return p->shape.alibi && !p->shape.causal ? 1e-5 + 0x1p-22 * ((double)p->shape.m + (double)p->shape.n) : 1e-5;
    if (p->suite->kind == SUITE_LAYER) /* results are about 1, after some dozens of roundings of each */
        return 1e-4 * (1.0 + fabs(expected));
    double k = (double)p->shape.k, sum = (sqrt(k) + 4.0) * (k + 1.0) * (double)FLT_EPSILON;
    return 1.2 * sum + problem_activation_tolerance(p, expected);
}

bool problem_agrees(const struct problem *p)
{
    for (size_t i = 0; i < p->out_count; i++) {
        double expected = (double)p->expected[i];
        if (!(fabs((double)p->out[i] - expected) <= problem_tolerance(p, expected)))
            return false;
    }
    return true;
}
