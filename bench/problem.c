/* SPDX-License-Identifier: MIT
 * One shape of a suite to compute.
 */
#include "config.h"

#include "problem.h"

#include "diag.h"
#include "memory.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Uniform in [-1, 1), the same in every run; peers in other languages make the same. */
static void fill(float *values, size_t count, uint32_t seed)
{
    uint32_t state = seed;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(int32_t)state * 0x1p-31f;
    }
}

static bool fits(const struct problem *p)
{
    const struct shape *s = &p->shape;
    double most = (double)PTRDIFF_MAX / 8.0, m = (double)s->m, n = (double)s->n + 16.0, k = (double)s->k;
    if (m * k < most && k * n < most && m * n < most)
        return true;
    diag_print("%s: too large for this machine", p->text);
    return false;
}

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

static bool allocate(struct problem *p)
{
    p->bytes = p->out_count * sizeof(float);
    for (int i = 0; i < N_OPERANDS; i++) {
        p->bytes += p->operand_count[i] * sizeof(float);
        p->operand[i] = memory_aligned_array(p->operand_count[i], sizeof(float));
        if (!p->operand[i])
            return false;
        fill(p->operand[i], p->operand_count[i], (uint32_t)i + 1);
    }
    p->out = memory_aligned_array(p->out_count, sizeof(float));
    p->expected = memory_aligned_array(p->out_count, sizeof(float));
    return p->out && p->expected;
}

bool problem_open(struct problem *p, const struct suite *suite, const struct shape *shape)
{
    p->suite = suite;
    p->shape = *shape;
    shape_print(suite->kind, shape, p->text);
    if (!fits(p))
        return false;
    measure_product(p);
    return allocate(p);
}

void problem_close(struct problem *p)
{
    for (int i = 0; i < N_OPERANDS; i++)
        free(p->operand[i]);
    free(p->out);
    free(p->expected);
}

void problem_spoil(const struct problem *p)
{
    for (size_t i = 0; i < p->out_count; i++)
        p->out[i] = NAN;
}

/* Two roundings of the same sums differ by at most twice the usual bound, with |a| |b| <= k, and an
 * activation makes little of it. */
static double tolerance(const struct problem *p)
{
    double k = (double)p->shape.k;
    return (k + 4.0) * (k + 1.0) * (double)FLT_EPSILON * (p->shape.epilogue ? 1.2 : 1.0);
}

bool problem_agrees(const struct problem *p)
{
    double bound = tolerance(p);
    for (size_t i = 0; i < p->out_count; i++)
        if (!(fabs((double)p->out[i] - (double)p->expected[i]) <= bound))
            return false;
    return true;
}
