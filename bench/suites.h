/* SPDX-License-Identifier: MIT
 * What is measured: suites of shapes, and for each shape heed, its peers and the limit in turns.
 */
#ifndef BENCH_SUITES_H
#define BENCH_SUITES_H

#include <stdbool.h>
#include <stddef.h>

#include "report.h"

struct shape {
    size_t m, n, k;
};

/* How a suite multiplies. */
enum suite_kind { SUITE_PEAK, SUITE_MATMUL, SUITE_LINEAR, SUITE_GEMV };

struct suite {
    const char *name, *description;
    enum suite_kind kind;
};

/* NULL past the last one. */
const struct suite *suites_at(size_t index);

/* Bit 0: heed; bit 1 + i: peer i. */
typedef unsigned impl_set;

/* The bit of an implementation's name, 0 if there is none of that name. */
impl_set suites_impl(const char *name);
#define IMPL_HEED 1u
#define IMPL_ALL (~0u)

struct plan {
    const struct suite *suite;
    const struct shape *shapes; /* NULL: the suite's own */
    size_t n_shapes;
    const size_t *threads;
    size_t n_threads;
    const char *const *isas;
    size_t n_isas;
    impl_set impls;
    bool peers_everywhere; /* or only with the default instruction set, since they choose their own */
    double seconds;        /* for a shape */
};

/* Runs the plan. false after a message. */
bool suites_run(const struct plan *plan, struct report *report);

#endif
