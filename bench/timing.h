/* SPDX-License-Identifier: MIT
 * Times of things that take turns, so that a drift of the machine's frequency meets all of them alike.
 */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include <stdbool.h>
#include <stddef.h>

/* Seconds of a clock that only goes forward. */
double timing_now(void);

struct timed {
    double (*sample)(void *arg, size_t calls); /* makes so many calls; their seconds */
    void *arg;

    /* Results, of one call. */
    double seconds; /* median */
    double fastest;
    double ratio; /* median over the rounds of: seconds of the first one / of this one */

    size_t calls;     /* of one sample */
    double *per_call; /* seconds in each round */
};

/* Fills in the results. In every round each takes its turn; rounds go on until all medians are steady
 * or `budget` seconds are over. false after a message if there is no memory. */
bool timing_interleave(struct timed *timed, size_t count, double budget);

#endif
