/* SPDX-License-Identifier: MIT
 * What the machine can do at most: multiply-adds on registers, and bytes read or copied at each level
 * of the memory hierarchy.
 */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

#include "loops.h"

enum limits_level { LEVEL_L1, LEVEL_L2, LEVEL_L3, LEVEL_DRAM, N_LEVELS };

/* Bytes of a cache, or a plausible size where the system does not say. */
size_t limits_cache_bytes(enum limits_level level);

/* The level that holds so many bytes which the threads share evenly. */
enum limits_level limits_level_of(size_t bytes, size_t threads);

/* Bytes for all threads together that lie in the level and in no lower one. */
size_t limits_level_working_set(enum limits_level level, size_t threads);

/* The loops of an instruction set, NULL if there are none. */
const struct loops *limits_loops(const char *isa);

enum limit_kind { LIMIT_FMA, LIMIT_READ, LIMIT_COPY };

struct limit {
    enum limit_kind kind;
    const char *name; /* "fma", or the level's */
    const char *unit;
    const struct loops *loops;
    size_t threads;
    float *buffer; /* LIMIT_READ, LIMIT_COPY */
    size_t floats; /* of each thread, LIMIT_COPY: half source, half destination */
    int streams;   /* index of loops.read */
};

void limit_init_fma(struct limit *limit, const struct loops *loops, size_t threads);

/* A buffer of about so many bytes, read with as many streams as suit it best. false after a message. */
bool limit_init_memory(struct limit *limit, enum limit_kind kind, const struct loops *loops, size_t threads,
                       size_t bytes);
void limit_free(struct limit *limit);

/* The one of both limits, multiply-adds and memory (LIMIT_READ or LIMIT_COPY), that binds a computation of so many
 * operations on so many bytes. */
bool limit_init_binding(struct limit *limit, enum limit_kind memory, const struct loops *loops, size_t threads,
                        double flops, size_t bytes);

/* Operations or bytes of one call, over all threads. */
double limit_work(const struct limit *limit);

/* For struct timed: arg is a struct limit. The start and end of threads do not count. */
double limit_sample(void *arg, size_t calls);

#endif
