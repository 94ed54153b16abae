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
    double (*sample)(void *arg, size_t calls); /* makes so many calls; their seconds, negative: it failed */
    void *arg;
    const void *pool; /* of threads: what has another one waits until those of this one sleep */

    /* Results, of one call. */
    double seconds; /* median */
    double fastest;
    double ratio; /* median of: seconds of the limit beside it / its own */

    size_t calls;     /* of one sample */
    double *per_call; /* seconds in each round */
    double *beside;   /* the limit's, mean of before and after */
    double *slower;   /* the limit's, the slower of before and after */
};

struct timing {
    double budget;           /* seconds */
    bool pools;              /* there are pools of threads */
    double nominal;          /* in and out: what a call of the limit takes when the machine is well, 0: not known */
    size_t taken, discarded; /* results: samples, and those beside which the limit was slow */
    bool unsteady;           /* hardly any sample was good, so those with the best limit count */
};

/* The first one is the limit. It takes its turn before and after each other one's, and samples beside
 * which it does not reach 97 % of the nominal limit are discarded: the machine was slow. Nominal is what
 * its best tenth reached, now or earlier: the very best of many is an exception on most machines.
 * Rounds go on until all medians are steady or the budget is over, and for twice as long again where
 * few samples count. false after a message. */
bool timing_interleave(struct timing *timing, struct timed *timed, size_t count);

#endif
