/* SPDX-License-Identifier: MIT
 * Some elements of a result, computed in double.
 */
#include "config.h"

#include "reference.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

#define SAMPLES 32

/* What is right, and how far a sound result may be from it. */
struct exact {
    double value, error;
};

/* ---- element by element ----------------------------------------------------------------------- */

double reference_silu(double x)
{
    return x / (1.0 + exp(-x));
}

double reference_gelu_erf(double x)
{
    return 0.5 * x * (1.0 + erf(x * sqrt(0.5)));
}

double reference_gelu_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static double relu(double x)
{
    return x < 0.0 ? 0.0 : x;
}

/* ---- products ------------------------------------------------------------------------------- */

/* Each addition errs by half a unit in the last place of a partial sum, now up and now down: in all by some u times
 * the root of the sum of their squares, which those of another order are like, or by some u times the sum of
 * magnitudes. Operands of 11 or 8 bits, as TF32 and bfloat16 have, err by much more up to a depth of 500000. */
static struct exact sum_of_products(const struct problem *p, size_t row, size_t col)
{
    const struct shape *s = &p->shape;
    double sum = 0.0, magnitudes = 0.0, squares = 0.0;
    for (size_t i = 0; i < s->k; i++) {
        double a = (double)p->operand[0][s->transposed_a ? i * s->m + row : row * s->k + i];
        double b = (double)p->operand[1][s->transposed_b ? col * s->k + i : i * s->n + col];
        sum += a * b;
        magnitudes += fabs(a * b);
        squares += sum * sum;
    }
    double bias = s->epilogue == EPILOGUE_NONE ? 0.0 : (double)p->operand[2][col];
    double error = 4.0 * (double)FLT_EPSILON * (magnitudes + sqrt(squares) + fabs(bias));
    return (struct exact){sum + bias, error};
}

/* No activation is steeper than 1.2. */
static struct exact product(const struct problem *p, size_t index)
{
    static double (*const activations[N_EPILOGUES])(double) = {
        [EPILOGUE_RELU] = relu,
        [EPILOGUE_GELU_ERF] = reference_gelu_erf,
        [EPILOGUE_GELU_TANH] = reference_gelu_tanh,
        [EPILOGUE_SILU] = reference_silu,
    };
    struct exact exact = sum_of_products(p, index / p->shape.n, index % p->shape.n);
    double (*activation)(double) = activations[p->shape.epilogue];
    if (!activation)
        return exact;
    double value = activation(exact.value);
    return (struct exact){value, 1.2 * exact.error + problem_activation_tolerance(p, value)};
}

/* ---- rows ----------------------------------------------------------------------------------- */

struct moments {
    double max, mean, mean_square;
};

static double row_element(const struct problem *p, size_t index)
{
    double residual = shape_adds_residual(p->shape.function) ? (double)p->operand[3][index] : 0.0;
    return (double)p->operand[0][index] + residual;
}

static struct moments moments(const struct problem *p, size_t first)
{
    struct moments m = {-INFINITY, 0.0, 0.0};
    for (size_t i = 0; i < p->shape.n; i++) {
        double x = row_element(p, first + i);
        m.max = fmax(m.max, x);
        m.mean += x;
        m.mean_square += x * x;
    }
    m.mean /= (double)p->shape.n;
    m.mean_square /= (double)p->shape.n;
    return m;
}

static double log_softmax(const struct problem *p, size_t first, double x)
{
    double max = moments(p, first).max, sum = 0.0;
    for (size_t i = 0; i < p->shape.n; i++)
        sum += exp(row_element(p, first + i) - max);
    return x - max - log(sum);
}

static double layernorm(const struct problem *p, size_t first, size_t col, double x)
{
    struct moments m = moments(p, first);
    double variance = m.mean_square - m.mean * m.mean;
    return (x - m.mean) / sqrt(variance + 1e-5) * (double)p->operand[1][col] + (double)p->operand[2][col];
}

static double row_value(const struct problem *p, size_t index)
{
    size_t col = index % p->shape.n, first = index - col;
    double x = row_element(p, index);
    switch (p->shape.function) {
    case ROW_SOFTMAX:
        return exp(log_softmax(p, first, x));
    case ROW_LOG_SOFTMAX:
        return log_softmax(p, first, x);
    case ROW_LAYERNORM:
    case ROW_ADD_LAYERNORM:
        return layernorm(p, first, col, x);
    case ROW_RMSNORM:
    case ROW_ADD_RMSNORM:
        return x / sqrt(moments(p, first).mean_square + 1e-5) * (double)p->operand[1][col];
    case ROW_RELU:
        return relu(x);
    case ROW_GELU_ERF:
        return reference_gelu_erf(x);
    case ROW_GELU_TANH:
        return reference_gelu_tanh(x);
    case ROW_SILU:
        return reference_silu(x);
    default:
        return reference_silu(x) * (double)p->operand[1][index];
    }
}

/* ---- attention ------------------------------------------------------------------------------ */

/* As heed_alibi_slopes has them, with a bias of 8 at the most. */
static double alibi_slope(size_t head, size_t heads)
{
    size_t power = 1;
    while (power * 2 <= heads)
        power *= 2;
    double step = 8.0 / (double)power;
    return head < power ? exp2(-step * (double)(head + 1)) : exp2(-step * ((double)(head - power) + 0.5));
}

/* -inf where the key is masked. */
static double score(const struct problem *p, const float *q, const float *k, size_t row, size_t key, double slope)
{
    if (!problem_is_visible(p, row, key))
        return -INFINITY;
    double sum = 0.0;
    for (size_t i = 0; i < p->shape.k; i++)
        sum += (double)q[i] * (double)k[i];
    sum /= sqrt((double)p->shape.k);
    sum += slope * (double)((ptrdiff_t)key - problem_position(&p->shape, row));
    return sum + (p->shape.tensor == TENSOR_ADDITIVE ? (double)p->operand[3][row * p->shape.n + key] : 0.0);
}

/* The running maximum keeps exponentials from overflowing; a query that sees no key gets 0. */
static double attended(const struct problem *p, size_t index)
{
    const struct shape *s = &p->shape;
    size_t i = index % s->k, head = index / s->k % s->heads, row = index / s->k / s->heads % s->m;
    size_t batch = index / s->k / s->heads / s->m, kv_head = head / (s->heads / s->kv_heads);
    heed_heads q = problem_queries(p), k = problem_keys(p, 1), v = problem_keys(p, 2);
    const float *query = q.data + batch * q.batch_stride + head * q.head_stride + row * q.row_stride;
    const float *keys = k.data + batch * k.batch_stride + kv_head * k.head_stride;
    const float *values = v.data + batch * v.batch_stride + kv_head * v.head_stride + i;
    double slope = s->alibi ? alibi_slope(head, s->heads) : 0.0, max = -INFINITY, weights = 0.0, sum = 0.0;
    for (size_t key = 0; key < s->n; key++) {
        double now = score(p, query, keys + key * k.row_stride, row, key, slope);
        if (now == -INFINITY)
            continue;
        double higher = fmax(max, now), keep = exp(max - higher), weight = exp(now - higher);
        weights = weights * keep + weight;
        sum = sum * keep + weight * (double)values[key * v.row_stride];
        max = higher;
    }
    return weights > 0.0 ? sum / weights : 0.0;
}

/* ---- samples -------------------------------------------------------------------------------- */

static struct exact element(const struct problem *p, size_t index)
{
    double value;
    switch (p->suite->kind) {
    case SUITE_ROWS:
        value = row_value(p, index);
        break;
    case SUITE_ATTENTION:
    case SUITE_DECODE:
        value = attended(p, index);
        break;
    default:
        return product(p, index);
    }
    return (struct exact){value, problem_tolerance(p, value)};
}

bool reference_agrees(const struct problem *p)
{
    if (p->suite->kind == SUITE_LAYER)
        return reference_layer_agrees(p);
    uint64_t place = 0;
    for (int i = 0; i < SAMPLES; i++) {
        size_t index = (size_t)(place % p->out_count);
        struct exact exact = element(p, index);
        if (!(fabs((double)p->out[index] - exact.value) <= exact.error))
            return false;
        place += 0x9E3779B97F4A7C15u; /* spreads over rows and columns, whatever their number */
    }
    return true;
}
