/* SPDX-License-Identifier: MIT
 * One token's result of a layer, computed in double.
 */
#include "config.h"

#include "reference.h"

#include "layer.h"
#include "memory.h"

#include <math.h>
#include <stdlib.h>

/* Causal layers need the keys up to the token only, so one that is not far behind is soon computed. */
#define FURTHEST_TOKEN 40

/* A token of the last sequence, the keys and values that it sees, and rows of d_model or d_ff for what is on its way.
 */
struct token {
    const struct problem *problem;
    size_t index, keys;
    double *key, *value, *x, *normal, *query, *heads, *up, *gate;
};

static void multiply(const struct problem *p, enum layer_matrix matrix, const double *x, double *y)
{
    struct layer_size size = layer_size(&p->shape, matrix);
    const float *w = layer_matrix(p, matrix), *bias = layer_bias(p, matrix);
    for (size_t j = 0; j < size.out; j++)
        y[j] = bias ? (double)bias[j] : 0.0;
    for (size_t i = 0; i < size.in; i++)
        for (size_t j = 0; j < size.out; j++)
            y[j] += x[i] * (double)w[i * size.out + j];
}

static void normalize(const struct problem *p, int norm, const double *x, double *y)
{
    const float *scale = layer_norm_scale(p, norm), *shift = layer_norm_shift(p, norm);
    size_t n = p->shape.k;
    double mean = 0.0, square = 0.0;
    for (size_t i = 0; i < n && shift; i++)
        mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        square += (x[i] - mean) * (x[i] - mean) / (double)n;
    double inverse = 1.0 / sqrt(square + (double)LAYER_EPS);
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) * inverse * (double)scale[i] + (shift ? (double)shift[i] : 0.0);
}

static void rotate(const struct problem *p, size_t position, size_t n_heads, double *heads)
{
    size_t dims = layer_head_dim(&p->shape), half = dims / 2;
    for (size_t h = 0; h < n_heads; h++)
        for (size_t j = 0; j < half; j++) {
            double angle = (double)position * pow(LAYER_ROTARY_BASE, -(double)j / (double)half);
            double *a = heads + h * dims + j, *b = a + half, u = *a, v = *b;
            *a = u * cos(angle) - v * sin(angle);
            *b = v * cos(angle) + u * sin(angle);
        }
}

/* What attention multiplies: the token itself or, with norms before, its norm. */
static void read_token(const struct problem *p, size_t row, double *x, double *normal)
{
    for (size_t i = 0; i < p->shape.k; i++)
        x[i] = normal[i] = (double)p->operand[0][row * p->shape.k + i];
    if (p->shape.layer != LAYER_BERT)
        normalize(p, 0, x, normal);
}

static size_t first_row(const struct problem *p)
{
    return (p->shape.batch - 1) * p->shape.m;
}

static void project(struct token *t)
{
    const struct problem *p = t->problem;
    size_t shared = layer_size(&p->shape, LAYER_KEY).out;
    for (size_t i = 0; i < t->keys; i++) {
        read_token(p, first_row(p) + i, t->x, t->normal);
        multiply(p, LAYER_KEY, t->normal, t->key + i * shared);
        multiply(p, LAYER_VALUE, t->normal, t->value + i * shared);
        if (p->shape.layer == LAYER_LLAMA)
            rotate(p, i, p->shape.kv_heads, t->key + i * shared);
    }
    read_token(p, first_row(p) + t->index, t->x, t->normal);
    multiply(p, LAYER_QUERY, t->normal, t->query);
    if (p->shape.layer == LAYER_LLAMA)
        rotate(p, t->index, p->shape.heads, t->query);
}

/* Scores stay small enough for exp as they are: queries and keys are about 1. */
static void attend(struct token *t)
{
    const struct shape *s = &t->problem->shape;
    size_t dims = layer_head_dim(s), shared = s->kv_heads * dims;
    for (size_t h = 0; h < s->heads; h++) {
        size_t kv_head = h / (s->heads / s->kv_heads);
        double sum = 0.0, *out = t->heads + h * dims;
        for (size_t d = 0; d < dims; d++)
            out[d] = 0.0;
        for (size_t i = 0; i < t->keys; i++) {
            const double *key = t->key + i * shared + kv_head * dims, *value = t->value + i * shared + kv_head * dims;
            double score = 0.0;
            for (size_t d = 0; d < dims; d++)
                score += t->query[h * dims + d] * key[d];
            double weight = exp(score / sqrt((double)dims));
            sum += weight;
            for (size_t d = 0; d < dims; d++)
                out[d] += weight * value[d];
        }
        for (size_t d = 0; d < dims; d++)
            out[d] /= sum;
    }
}

static void add(size_t n, double *x, const double *y)
{
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
}

static void feed_forward(struct token *t)
{
    const struct problem *p = t->problem;
    multiply(p, LAYER_UP, t->normal, t->up);
    if (p->shape.layer == LAYER_LLAMA)
        multiply(p, LAYER_GATE, t->normal, t->gate);
    for (size_t i = 0; i < p->shape.n; i++)
        t->up[i] = p->shape.layer == LAYER_BERT   ? reference_gelu_erf(t->up[i])
                   : p->shape.layer == LAYER_GPT2 ? reference_gelu_tanh(t->up[i])
                                                  : t->up[i] * reference_silu(t->gate[i]);
    multiply(p, LAYER_DOWN, t->up, t->query);
    add(p->shape.k, t->x, t->query);
}

/* The result is left in x. */
static void compute(struct token *t)
{
    const struct problem *p = t->problem;
    bool after = p->shape.layer == LAYER_BERT;
    project(t);
    attend(t);
    multiply(p, LAYER_OUTPUT, t->heads, t->query);
    add(p->shape.k, t->x, t->query);
    normalize(p, after ? 0 : 1, t->x, t->normal);
    for (size_t i = 0; i < p->shape.k && after; i++)
        t->x[i] = t->normal[i];
    feed_forward(t);
    if (after)
        normalize(p, 1, t->x, t->x);
}

bool reference_layer_agrees(const struct problem *p)
{
    const struct shape *s = &p->shape;
    size_t index = s->m - 1 < FURTHEST_TOKEN ? s->m - 1 : FURTHEST_TOKEN, keys = s->causal ? index + 1 : s->m;
    size_t shared = keys * layer_size(s, LAYER_KEY).out;
    double *memory = memory_array(2 * shared + 4 * s->k + 2 * s->n, sizeof *memory);
    if (!memory)
        return false;
    double *rows = memory + 2 * shared, *wide = rows + 4 * s->k;
    struct token t = {
        p,    index,      keys, memory, memory + shared, rows, rows + s->k, rows + 2 * s->k, rows + 3 * s->k,
        wide, wide + s->n};
    compute(&t);
    const float *got = p->out + (first_row(p) + index) * s->k;
    bool agrees = true;
    for (size_t i = 0; i < s->k; i++)
        agrees = agrees && fabs((double)got[i] - t.x[i]) <= problem_tolerance(p, t.x[i]);
    free(memory);
    return agrees;
}
