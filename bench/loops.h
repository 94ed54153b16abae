/* SPDX-License-Identifier: MIT
 * The contract of the loops that measure the machine's limits, one set for each instruction set.
 */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

#include <stddef.h>

/* The read loops exist for 1, 2, 4 and 8 streams: how many suit the prefetchers differs. */
#define LOOPS_STREAM_KINDS 4

/* Floats that the lengths given to read and copy are multiples of: 8 vectors of 16 in 8 streams. */
#define LOOPS_GRAIN 1024

struct loops {
    const char *isa;
    double flops; /* of one iteration of fma */

    /* Independent chains of multiply-adds on registers. x and y keep the compiler from folding them. */
    float (*fma)(size_t iterations, float x, float y);

    /* The sum of all floats, read in 1 << index streams side by side. */
    float (*read[LOOPS_STREAM_KINDS])(const float *src, size_t count);

    void (*copy)(float *dst, const float *src, size_t count);
};

extern const struct loops loops_scalar;
extern const struct loops loops_scalar_fma;
extern const struct loops loops_sse2;
extern const struct loops loops_neon;
extern const struct loops loops_avx2;
extern const struct loops loops_avx512;

#endif
