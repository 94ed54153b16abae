/* SPDX-License-Identifier: MIT
 * What is measured: for each shape of a suite heed, its peers and the limit in turns.
 */
#ifndef BENCH_SUITES_H
#define BENCH_SUITES_H

#include <heed.h>
#include <stdbool.h>
#include <stddef.h>

#include "report.h"
#include "shape.h"

/* Bit i: library i. */
typedef unsigned impl_set;
#define IMPL_HEED 1u
#define IMPL_OWN 3u /* and its unfused form */
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
    bool named;               /* impls was asked for by name */
    const char *const *paths; /* of each library, or NULL */
    double seconds;           /* for a shape */
    heed_attention_loop loop;
    bool in_turn; /* the tasks of all threads run on one */
};

/* Runs the plan. false after a message. */
bool suites_run(const struct plan *plan, struct report *report);

#endif
