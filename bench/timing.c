/* SPDX-License-Identifier: MIT
 * Times of things that take turns.
 */
#include "config.h"

#include "timing.h"

#include "memory.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* A sample takes at least this long: the clock costs some 50 ns. */
#define SAMPLE_SECONDS 1e-4

/* The first one, the limit, is sampled for a tenth of the longest call, but not for ever. */
#define LONGEST_FIRST_SAMPLE 5e-3

/* What takes longer than this fills the caches by itself within the sample. */
#define WARMED_SECONDS 2e-3

#define LEAST_ROUNDS 3
#define STEADY_ROUNDS 15
#define MOST_ROUNDS 2000

/* Standard error of a median, as a share of it, that counts as steady. */
#define STEADY_ERROR 0.001

double timing_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of_sorted(const double *sorted, size_t count)
{
    return 0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]);
}

/* Of the first one's time to this one's in the same round, sorted. */
static void sort_ratios(const struct timed *first, const struct timed *timed, size_t rounds, double *sorted)
{
    for (size_t r = 0; r < rounds; r++)
        sorted[r] = first->per_call[r] / timed->per_call[r];
    qsort(sorted, rounds, sizeof *sorted, compare);
}

static void sort_seconds(const struct timed *timed, size_t rounds, double *sorted)
{
    for (size_t r = 0; r < rounds; r++)
        sorted[r] = timed->per_call[r];
    qsort(sorted, rounds, sizeof *sorted, compare);
}

/* The standard error of a normal sample's median is 1.25 s / sqrt(n), and s is the quartiles'
 * distance / 1.35. */
static bool is_steady(const double *sorted, size_t count)
{
    double distance = sorted[count * 3 / 4] - sorted[count / 4];
    return 0.93 * distance / sqrt((double)count) < STEADY_ERROR * median_of_sorted(sorted, count);
}

static bool all_steady(const struct timed *timed, size_t count, size_t rounds, double *sorted)
{
    if (count == 1) {
        sort_seconds(timed, rounds, sorted);
        return is_steady(sorted, rounds);
    }
    for (size_t i = 1; i < count; i++) {
        sort_ratios(timed, &timed[i], rounds, sorted);
        if (!is_steady(sorted, rounds))
            return false;
    }
    return true;
}

/* Seconds of one call, with `calls` set so that a sample takes about `target` seconds. */
static double calibrate(struct timed *timed, double target)
{
    double seconds = timed->sample(timed->arg, timed->calls);
    while (seconds < 0.5 * target) {
        double wanted = seconds > 0.0 ? 1.2 * target / seconds : 10.0;
        timed->calls = (size_t)((double)timed->calls * (wanted > 10.0 ? 10.0 : wanted)) + 1;
        seconds = timed->sample(timed->arg, timed->calls);
    }
    return seconds / (double)timed->calls;
}

static void calibrate_all(struct timed *timed, size_t count)
{
    double longest = 0.0;
    for (size_t i = 0; i < count; i++) {
        timed[i].calls = 1;
        /* The first call makes pages, threads and tables that later ones find. */
        timed[i].sample(timed[i].arg, 1);
        double seconds = calibrate(&timed[i], SAMPLE_SECONDS);
        if (i > 0 && seconds > longest)
            longest = seconds;
    }
    double target = 0.1 * longest > LONGEST_FIRST_SAMPLE ? LONGEST_FIRST_SAMPLE : 0.1 * longest;
    if (target > SAMPLE_SECONDS)
        calibrate(&timed[0], target);
}

/* The others have evicted this one's operands: a call that is not counted brings them back. */
static void take_turn(struct timed *timed, size_t round)
{
    if (round == 0 || timed->per_call[round - 1] < WARMED_SECONDS)
        timed->sample(timed->arg, 1);
    timed->per_call[round] = timed->sample(timed->arg, timed->calls) / (double)timed->calls;
}

static size_t run_rounds(struct timed *timed, size_t count, double budget, double *sorted)
{
    double begin = timing_now();
    size_t rounds = 0, next_check = STEADY_ROUNDS;
    while (rounds < MOST_ROUNDS) {
        for (size_t i = 0; i < count; i++)
            take_turn(&timed[i], rounds);
        rounds++;
        if (rounds >= LEAST_ROUNDS && timing_now() - begin > budget)
            break;
        if (rounds == next_check) {
            if (all_steady(timed, count, rounds, sorted))
                break;
            next_check += next_check / 2;
        }
    }
    return rounds;
}

static void summarize(struct timed *timed, size_t count, size_t rounds, double *sorted)
{
    for (size_t i = 0; i < count; i++) {
        sort_ratios(timed, &timed[i], rounds, sorted);
        timed[i].ratio = median_of_sorted(sorted, rounds);
        sort_seconds(&timed[i], rounds, sorted);
        timed[i].seconds = median_of_sorted(sorted, rounds);
        timed[i].fastest = sorted[0];
    }
}

bool timing_interleave(struct timed *timed, size_t count, double budget)
{
    double *samples = memory_array((count + 1) * MOST_ROUNDS, sizeof *samples);
    if (!samples)
        return false;
    for (size_t i = 0; i < count; i++)
        timed[i].per_call = samples + i * MOST_ROUNDS;
    double *sorted = samples + count * MOST_ROUNDS;
    calibrate_all(timed, count);
    size_t rounds = run_rounds(timed, count, budget, sorted);
    summarize(timed, count, rounds, sorted);
    for (size_t i = 0; i < count; i++)
        timed[i].per_call = NULL;
    free(samples);
    return true;
}
