/* SPDX-License-Identifier: MIT
 * Suites, and the shapes they are made of: as text, by default and at random.
 */
#ifndef BENCH_SHAPE_H
#define BENCH_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum suite_kind {
    SUITE_PEAK,
    SUITE_MATMUL,
    SUITE_LINEAR,
    SUITE_GEMV,
    SUITE_ROWS,
    SUITE_ATTENTION,
    SUITE_DECODE,
    SUITE_LAYER
};

struct suite {
    const char *name, *description;
    const char *form; /* of its shapes' text */
    enum suite_kind kind;
};

/* NULL past the last one. */
const struct suite *suites_at(size_t index);
const struct suite *suites_named(const char *name);

/* What a linear layer does to its sums. */
enum epilogue {
    EPILOGUE_NONE,
    EPILOGUE_BIAS,
    EPILOGUE_RELU,
    EPILOGUE_GELU_ERF,
    EPILOGUE_GELU_TANH,
    EPILOGUE_SILU,
    N_EPILOGUES
};

enum row_function {
    ROW_SOFTMAX,
    ROW_LOG_SOFTMAX,
    ROW_LAYERNORM,
    ROW_RMSNORM,
    ROW_RELU,
    ROW_GELU_ERF,
    ROW_GELU_TANH,
    ROW_SILU,
    ROW_SWIGLU,
    ROW_ADD_LAYERNORM, /* of x + residual, which is kept, as between the blocks of a transformer */
    ROW_ADD_RMSNORM,
    N_ROW_FUNCTIONS
};

bool shape_adds_residual(enum row_function function);

/* Whole layers: BERT's (norms after, GELU erf), GPT-2's (norms before, GELU tanh, causal) and Llama's (RMSNorm before,
 * rotary, SwiGLU, causal, no biases). */
enum layer_kind { LAYER_BERT, LAYER_GPT2, LAYER_LLAMA, N_LAYER_KINDS };

/* A tensor that masks, [queries][keys] for all heads alike. */
enum mask_tensor { TENSOR_NONE, TENSOR_ADDITIVE, TENSOR_BOOLEAN };

struct shape {
    size_t m, n, k;                  /* rows, columns, depth; queries, keys, head size; tokens, d_ff, d_model */
    size_t batch, heads, kv_heads;   /* of attention and layers */
    bool transposed_a, transposed_b; /* of matmul: k x m, n x k */
    enum epilogue epilogue;          /* of a linear layer */
    enum row_function function;      /* of rows */
    enum layer_kind layer;
    bool causal;   /* the queries are the last tokens */
    size_t window; /* keys that a query sees on either side of its own; 0: all */
    bool alibi;
    enum mask_tensor tensor;
};

#define SHAPE_TEXT 112

void shape_print(enum suite_kind kind, const struct shape *shape, char text[SHAPE_TEXT]);

/* Whether they are the same shape of a suite. */
bool shape_same(const struct shape *a, const struct shape *b);

/* false if the text is no shape of the suite, or one that it does not take. */
bool shape_parse(enum suite_kind kind, const char *text, struct shape *shape);

/* The suite's own shapes. */
size_t shape_default_count(enum suite_kind kind);
struct shape shape_default(enum suite_kind kind, size_t index);

/* Sizes of every magnitude alike. */
struct shape shape_random(enum suite_kind kind, uint64_t *state);

#endif
