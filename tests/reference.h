/* SPDX-License-Identifier: MIT
 * Float64 references of the operators, each with a bound for the error of the library's result.
 *
 * Bounds come from the inputs and the canonical order of doc/design.md alone; nothing is tuned. The
 * derivations stand beside the code.
 */
#ifndef HEED_TESTS_REFERENCE_H
#define HEED_TESTS_REFERENCE_H

#include "check.h"

/* The exact results of an operator, and how far the library's may be from them. Operators take such
 * values too, so that errors carry through a chain of them. */
struct inexact {
    double *value, *error;
};

/* n zeros without error; freed by reference_release, as are all results. */
struct inexact inexact_new(size_t n);
struct inexact inexact_rows(size_t rows, size_t cols, const float *x, size_t ld);
void reference_release(void);

/* What check_inexact allows on top of every bound: subnormal_slack() of the table. */
void reference_allow(double slack);

/* !(err <= bound) fails. Counts one check; *worst keeps the largest err / bound. */
void check_inexact(size_t rows, size_t cols, const float *got, size_t ld, struct inexact want, const char *what,
                   double *worst);

#define UNIT 0x1p-24

/* n u / (1 - n u) */
double gamma_of(double n);

/* Additions that an element meets in a reduction of n: chunks of 32 lanes, five folds, blocks of 4096. */
double reduction_depth(size_t n);

/* Distance between floats of the magnitude of x. */
double ulp_of(double x);

struct matmul_problem {
    heed_transpose transpose_a, transpose_b;
    size_t m, n, k;
    float alpha;
    const float *a;
    size_t lda;
    const float *b;
    size_t ldb;
    float beta;
    const float *c; /* before the product */
    size_t ldc;
};

struct inexact reference_matmul(const struct matmul_problem *p);

/* w is [in][out]; bias and residual->value may be NULL. */
/* Means, then inverse deviations. */
struct inexact reference_moments(size_t rows, size_t cols, struct inexact x, float eps);

/* inverse receives the inverse roots, one for each row. */
struct inexact reference_rmsnorm(size_t rows, size_t cols, struct inexact x, const float *scale, float eps,
                                 struct inexact inverse);

/* A mask's value for element (i, j): 0 and -inf for booleans; masks NULL: none. */
struct score_mask {
    const float *additive;
    const unsigned char *boolean;
    size_t ld;
};
struct inexact reference_masked_softmax(size_t rows, size_t cols, const float *x, size_t ld, float scale,
                                        struct score_mask mask, int logarithm);

struct inexact reference_gated(heed_activation activation, size_t n, struct inexact gate, struct inexact up);

struct inexact reference_linear(size_t m, size_t in, size_t out, struct inexact x, const float *w, const float *bias,
                                heed_activation activation, struct inexact residual);
struct inexact reference_activate(heed_activation activation, size_t n, struct inexact x);
struct inexact reference_softmax(size_t rows, size_t cols, const float *x, size_t ld);
struct inexact reference_layernorm(size_t rows, size_t cols, struct inexact x, const float *scale, const float *shift,
                                   float eps);
struct inexact reference_l2(size_t rows, size_t cols, float eps, const float *x, size_t ld);

/* Mean of rows first .. first + rows - 1. */
struct inexact reference_mean(size_t rows, size_t cols, const float *x, size_t ld);
struct inexact reference_positions(size_t first, size_t n, size_t cols, double base);

/* Cosines (quarter 1) or sines (0) of position * frequency, magnitude included. */
struct inexact reference_rotary_table(size_t n, const int32_t *positions, size_t dims,
                                      const heed_rotary_options *options, int quarter);

/* Turns the head whose elements begin at `at`, as heed_rotary does by this row of the tables. */
void reference_rotate(const heed_rotary_tables *tables, size_t row, struct inexact x, size_t at);

/* Heads as a dense tensor [batch][heads][seq][dim]; offsets NULL: not ragged. Rows that a ragged
 * sequence lacks are zeros. */
struct inexact inexact_heads(size_t batch, size_t heads, size_t seq, size_t dim, struct inexact data,
                             const heed_heads *strides, const size_t *offsets);

/* Shapes, masks and scale from args; q, k, v dense. Results are dense, map and log-sum-exp only where asked. */
struct inexact reference_attention(const heed_attention_args *args, struct inexact q, struct inexact k,
                                   struct inexact v, struct inexact *map, struct inexact *log_sum);

/* From the float data of args. */
struct inexact reference_attention_of(const heed_attention_args *args, struct inexact *map, struct inexact *log_sum);

/* Weights of one layer, unpacked, [in][out]. */
struct layer_problem {
    size_t d_model, d_ff, n_heads, n_kv_heads, head_dim, value_dim;
    const float *query, *key, *value, *output, *up, *down;
    const float *query_bias, *key_bias, *value_bias, *output_bias, *up_bias, *down_bias;
    const float *norm1_scale, *norm1_shift, *norm2_scale, *norm2_shift;
    heed_activation activation;
    heed_norm_order order;
    float eps;
    heed_norm norm;
    const float *query_norm, *key_norm; /* with RMSNorm */
    float norm_eps;
    heed_rotary_tables rotary;
};

/* What a decoder's layer has beside that: the attention and the first norm of another problem. */
struct cross_problem {
    const struct layer_problem *weights;
    heed_mha_args args;
    struct inexact memory;
};

/* args gives batch, sizes, offsets and masks; memory->value NULL: self-attention. */
struct inexact reference_mha(const struct layer_problem *p, const heed_mha_args *args, struct inexact x,
                             struct inexact memory, struct inexact residual);
struct inexact reference_ffn(const struct layer_problem *p, size_t m, struct inexact x, struct inexact residual);

/* cross NULL: an encoder's layer. */
struct inexact reference_layer(const struct layer_problem *p, const heed_mha_args *args,
                               const struct cross_problem *cross, size_t tokens, struct inexact x);

/* Random weights of a layer, and of a rotary with dims the tables, in buffers that release_all frees. */
#define ROTARY_ROWS 64
void random_layer(struct layer_problem *p);

/* The same packed, in the structs that the library takes. They point into themselves: do not copy. */
struct packed_layer {
    heed_mha_weights attention;
    heed_ffn_weights ffn;
    heed_encoder_layer layer;
};
void pack_layer(struct packed_layer *packed_layer, const struct layer_problem *p);

#endif
