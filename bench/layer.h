/* SPDX-License-Identifier: MIT
 * What a whole layer of a transformer consists of, and where its parts lie in the operands of a problem: tokens in the
 * first, matrices [in][out] one after another in the second, vectors in the third.
 */
#ifndef BENCH_LAYER_H
#define BENCH_LAYER_H

#include <stdbool.h>
#include <stddef.h>

#include "problem.h"

enum layer_matrix {
    LAYER_QUERY,
    LAYER_KEY,
    LAYER_VALUE,
    LAYER_OUTPUT,
    LAYER_UP,
    LAYER_DOWN,
    LAYER_GATE,
    N_LAYER_MATRICES
};

/* Rows and columns of a matrix, 0 where the layer has none. */
struct layer_size {
    size_t in, out;
};
struct layer_size layer_size(const struct shape *shape, enum layer_matrix matrix);
size_t layer_head_dim(const struct shape *shape);

/* Floats of all matrices, and of all vectors. */
size_t layer_matrix_floats(const struct shape *shape);
size_t layer_vector_floats(const struct shape *shape);

/* NULL where the layer has none. */
const float *layer_matrix(const struct problem *problem, enum layer_matrix matrix);
const float *layer_bias(const struct problem *problem, enum layer_matrix matrix);

/* Of the first norm or the second; Llama's have no shift (NULL). */
const float *layer_norm_scale(const struct problem *problem, int norm);
const float *layer_norm_shift(const struct problem *problem, int norm);
#define LAYER_EPS 1e-5f

/* The base of Llama's rotary positions, the halves of a head turning together. */
#define LAYER_ROTARY_BASE 10000.0

/* Gives each matrix the size that keeps the variance of what it multiplies; they are uniform in [-1, 1) before. */
void layer_scale_matrices(const struct problem *problem);

/* Multiply-adds times two, attention's of the keys that a query sees. */
double layer_flops(const struct shape *shape);

#endif
