/* SPDX-License-Identifier: MIT
 * Parts of a layer.
 */
#include "config.h"

#include "layer.h"

#include <math.h>

size_t layer_head_dim(const struct shape *s)
{
    return s->k / s->heads;
}

struct layer_size layer_size(const struct shape *s, enum layer_matrix matrix)
{
    size_t model = s->k, shared = s->kv_heads * layer_head_dim(s);
    switch (matrix) {
    case LAYER_QUERY:
    case LAYER_OUTPUT:
        return (struct layer_size){model, model};
    case LAYER_KEY:
    case LAYER_VALUE:
        return (struct layer_size){model, shared};
    case LAYER_UP:
        return (struct layer_size){model, s->n};
    case LAYER_DOWN:
        return (struct layer_size){s->n, model};
    default:
        return s->layer == LAYER_LLAMA ? (struct layer_size){model, s->n} : (struct layer_size){0, 0};
    }
}

/* Floats of the matrices before that one. */
static size_t matrix_offset(const struct shape *s, int matrix)
{
    size_t floats = 0;
    for (int i = 0; i < matrix; i++) {
        struct layer_size size = layer_size(s, (enum layer_matrix)i);
        floats += size.in * size.out;
    }
    return floats;
}

size_t layer_matrix_floats(const struct shape *s)
{
    return matrix_offset(s, N_LAYER_MATRICES);
}

/* Biases of the matrices before that one. */
static size_t bias_offset(const struct shape *s, int matrix)
{
    size_t floats = 0;
    for (int i = 0; i < matrix && s->layer != LAYER_LLAMA; i++)
        floats += layer_size(s, (enum layer_matrix)i).out;
    return floats;
}

size_t layer_vector_floats(const struct shape *s)
{
    return bias_offset(s, N_LAYER_MATRICES) + (s->layer == LAYER_LLAMA ? 2 : 4) * s->k;
}

const float *layer_matrix(const struct problem *p, enum layer_matrix matrix)
{
    return layer_size(&p->shape, matrix).out ? p->operand[1] + matrix_offset(&p->shape, (int)matrix) : NULL;
}

const float *layer_bias(const struct problem *p, enum layer_matrix matrix)
{
    return p->shape.layer == LAYER_LLAMA ? NULL : p->operand[2] + bias_offset(&p->shape, (int)matrix);
}

/* Both scales, and then both shifts. */
const float *layer_norm_scale(const struct problem *p, int norm)
{
    return p->operand[2] + bias_offset(&p->shape, N_LAYER_MATRICES) + (size_t)norm * p->shape.k;
}

const float *layer_norm_shift(const struct problem *p, int norm)
{
    return p->shape.layer == LAYER_LLAMA ? NULL : layer_norm_scale(p, norm + 2);
}

void layer_scale_matrices(const struct problem *p)
{
    float *at = p->operand[1];
    for (int i = 0; i < N_LAYER_MATRICES; i++) {
        struct layer_size size = layer_size(&p->shape, (enum layer_matrix)i);
        float scale = size.in ? (float)sqrt(3.0 / (double)size.in) : 0.0f;
        for (size_t j = 0; j < size.in * size.out; j++)
            *at++ *= scale;
    }
}

double layer_flops(const struct shape *s)
{
    double tokens = (double)s->batch * (double)s->m;
    double pairs = s->causal ? tokens * ((double)s->m + 1.0) / 2.0 : tokens * (double)s->m;
    return 2.0 * tokens * (double)layer_matrix_floats(s) + 4.0 * pairs * (double)s->k;
}
