/* SPDX-License-Identifier: MIT
 * One shape of a suite to compute: its operands, its result, and what computing it takes.
 */
#ifndef BENCH_PROBLEM_H
#define BENCH_PROBLEM_H

#include <heed.h>
#include <stdbool.h>
#include <stddef.h>

#include "limits.h"
#include "shape.h"

/* Of a product: a, b and the bias. Of rows: those, and where the function has them scale, shift and residual, or
 * up. Of attention: q, k, v and an additive mask. Of a layer: tokens, all matrices and all vectors (layer.h). */
#define N_OPERANDS 4

struct problem {
    const struct suite *suite;
    struct shape shape;
    char text[SHAPE_TEXT]; /* the shape */
    size_t threads;
    const char *isa;
    const heed_context *context;
    heed_attention_loop loop;

    float *operand[N_OPERANDS];
    size_t operand_count[N_OPERANDS];
    unsigned char *boolean; /* a boolean mask, or NULL */
    float *out, *expected;  /* expected: by the first implementation */
    size_t out_count;

    double flops;
    size_t bytes; /* each operand moves at least once; of keys, values and masks what a query reaches */
    enum limit_kind memory;
};

/* Where a head's rows lie: operand 0 and the result are [batch][queries][heads][D]; keys and values in
 * attention [batch][keys][heads][D], in decode [batch][heads][keys][D]. */
heed_heads problem_queries(const struct problem *problem);
heed_heads problem_keys(const struct problem *problem, int operand);
heed_heads_out problem_result(const struct problem *problem);

/* Where query `row` is among the keys: the last one is at the last of them. */
ptrdiff_t problem_position(const struct shape *shape, size_t row);

/* Keys first to end - 1 are what causality and window let a query see. */
struct span {
    size_t first, end;
};
struct span problem_seen(const struct shape *shape, size_t row);

/* Whether a query sees a key, as far as no mask that is added hides it. */
bool problem_is_visible(const struct problem *problem, size_t row, size_t key);

/* Makes the operands. false after a message. */
bool problem_open(struct problem *problem, const struct suite *suite, const struct shape *shape);
void problem_close(struct problem *problem);

/* Writes over the result, so that an old one does not pass for a new one. */
void problem_spoil(const struct problem *problem);

/* How far two implementations may be from one another: enough to tell a wrong function from a less exact one. */
double problem_tolerance(const struct problem *problem, double expected);

/* How far an activation of a product may itself be off. */
double problem_activation_tolerance(const struct problem *problem, double value);

/* Whether out is what was expected, but for rounding. */
bool problem_agrees(const struct problem *problem);

#endif
