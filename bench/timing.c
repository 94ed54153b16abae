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

/* The first one, the limit, is sampled for a tenth of the longest call, but not for longer than a core goes on at the
 * clock that the call has left: after some two milliseconds of multiply-adds alone it raises it by up to a sixth. */
#define LONGEST_FIRST_SAMPLE 1e-3

/* What takes longer than this fills the caches by itself within the sample. */
#define WARMED_SECONDS 2e-2

/* Samples at the most before one that counts, and shares of time that say whether one is as fast as the best one that
 * counted, or faster than the one before. */
#define MOST_WARMING 12
#define AS_FAST 1.02
#define FASTER 0.98

#define LEAST_ROUNDS 3
#define STEADY_ROUNDS 15
#define MOST_ROUNDS 2000

/* Share of its best that the limit must reach beside a sample, samples that must have that, and times
 * the budget that they are waited for. */
#define GOOD_SHARE 0.97
#define LEAST_GOOD 5
#define PATIENCE 3.0

/* Standard error of a median, as a share of it, that counts as steady. */
#define STEADY_ERROR 0.001

/* Threads that wait for work without sleeping do so for up to some 200 ms. What they run on other CPUs is added to the
 * clock of their process at each CPU's tick, every 10 ms at the least: a shorter pause may see none of it. */
#define SETTLE_TRIES 40
#define SETTLE_SECONDS 12e-3
#define SETTLED_SHARE 0.25

static double clock_seconds(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double timing_now(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

/* ---- medians -------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of_sorted(const double *sorted, size_t count)
{
    return 0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]);
}

/* The standard error of a normal sample's median is 1.25 s / sqrt(n), and s is the quartiles'
 * distance / 1.35. */
static bool is_steady(const double *sorted, size_t count)
{
    double distance = sorted[count * 3 / 4] - sorted[count / 4];
    return 0.93 * distance / sqrt((double)count) < STEADY_ERROR * median_of_sorted(sorted, count);
}

enum what { SECONDS, RATIOS, BESIDE, SLOWER };

/* Sorted, of the rounds beside which the limit's call took at most so long; their number. */
static size_t collect(const struct timed *timed, size_t rounds, double at_most, enum what what, double *sorted)
{
    size_t count = 0;
    for (size_t r = 0; r < rounds; r++) {
        if (timed->slower[r] > at_most)
            continue;
        sorted[count++] = what == SECONDS  ? timed->per_call[r]
                          : what == RATIOS ? timed->beside[r] / timed->per_call[r]
                          : what == BESIDE ? timed->beside[r]
                                           : timed->slower[r];
    }
    qsort(sorted, count, sizeof *sorted, compare);
    return count;
}

/* The limit's call in the best tenth of the rounds, or what it was before if that was less. */
static double nominal(const struct timing *timing, const struct timed *timed, size_t rounds, double *sorted)
{
    collect(&timed[1], rounds, INFINITY, BESIDE, sorted);
    double now = sorted[rounds / 10];
    return timing->nominal > 0.0 && timing->nominal < now ? timing->nominal : now;
}

/* Whether enough samples count; and, where asked for, whether their medians are steady. */
static bool all_good(const struct timing *timing, const struct timed *timed, size_t count, size_t rounds, bool steady,
                     double *sorted)
{
    if (count == 1)
        return collect(timed, rounds, INFINITY, SECONDS, sorted) && (!steady || is_steady(sorted, rounds));
    double bar = nominal(timing, timed, rounds, sorted) / GOOD_SHARE;
    for (size_t i = 1; i < count; i++) {
        size_t good = collect(&timed[i], rounds, bar, RATIOS, sorted);
        if (good < LEAST_GOOD || (steady && !is_steady(sorted, good)))
            return false;
    }
    return true;
}

/* ---- samples -------------------------------------------------------------------------------- */

/* Seconds of one call, with `calls` set so that a sample takes about `target` seconds. */
static double calibrate(struct timed *timed, double target)
{
    double seconds = timed->sample(timed->arg, timed->calls);
    while (seconds >= 0.0 && seconds < 0.5 * target) {
        double wanted = seconds > 0.0 ? 1.2 * target / seconds : 10.0;
        timed->calls = (size_t)((double)timed->calls * (wanted > 10.0 ? 10.0 : wanted)) + 1;
        seconds = timed->sample(timed->arg, timed->calls);
    }
    return seconds / (double)timed->calls;
}

static bool calibrate_all(struct timed *timed, size_t count)
{
    double longest = 0.0;
    for (size_t i = 0; i < count; i++) {
        timed[i].calls = 1;
        /* The first call makes pages, threads and tables that later ones find. */
        if (timed[i].sample(timed[i].arg, 1) < 0.0)
            return false;
        double seconds = calibrate(&timed[i], SAMPLE_SECONDS);
        if (seconds < 0.0)
            return false;
        if (i > 0 && seconds > longest)
            longest = seconds;
    }
    double target = 0.1 * longest > LONGEST_FIRST_SAMPLE ? LONGEST_FIRST_SAMPLE : 0.1 * longest;
    return target <= SAMPLE_SECONDS || calibrate(&timed[0], target) >= 0.0;
}

/* Waits until threads that spin have gone to sleep, or they would take the next one's CPUs. */
static void settle(void)
{
    const struct timespec pause = {0, (long)(SETTLE_SECONDS * 1e9)};
    for (int i = 0; i < SETTLE_TRIES; i++) {
        double wall = timing_now(), cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
        nanosleep(&pause, NULL);
        if (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu < SETTLED_SHARE * (timing_now() - wall))
            return;
    }
}

static double best_so_far(const struct timed *timed, size_t rounds)
{
    double best = INFINITY;
    for (size_t r = 0; r < rounds; r++)
        best = timed->per_call[r] < best ? timed->per_call[r] : best;
    return best;
}

/* The others have evicted this one's operands: samples that do not count bring them back. A single one does not: the
 * last cache keeps what it has seen used again and again, and of 9 MB beside four copies takes back a part each time.
 * So they go on until they are as fast as the best one was, or get no faster; in the first round, which has nothing to
 * compare with, always. */
static bool warm_up(struct timed *timed, size_t round)
{
    double calls = (double)timed->calls, last = round > 0 ? timed->per_call[round - 1] * calls : 0.0;
    double enough = round > 0 ? AS_FAST * best_so_far(timed, round) * calls : 0.0;
    for (int i = 0; i < MOST_WARMING && last < WARMED_SECONDS; i++) {
        double now = timed->sample(timed->arg, timed->calls);
        if (now < 0.0)
            return false;
        if (now <= enough || (round > 0 && i > 0 && now > FASTER * last))
            break;
        last = now;
    }
    return true;
}

static bool take_turn(struct timed *timed, size_t round)
{
    if (!warm_up(timed, round))
        return false;
    timed->per_call[round] = timed->sample(timed->arg, timed->calls) / (double)timed->calls;
    return timed->per_call[round] >= 0.0;
}

static bool take_turn_of_pool(const struct timing *timing, const struct timed *last, struct timed *timed, size_t round)
{
    if (timing->pools && last->pool != timed->pool)
        settle();
    return take_turn(timed, round);
}

/* The limit's turn at the end of a round is the first one of the next round. */
static bool run_round(const struct timing *timing, struct timed *timed, size_t count, size_t round)
{
    struct timed *limit = &timed[0];
    for (size_t i = 1; i < count; i++) {
        double before = limit->per_call[round];
        if (!take_turn_of_pool(timing, limit, &timed[i], round) ||
            !take_turn_of_pool(timing, &timed[i], limit, round + (i + 1 == count)))
            return false;
        double after = limit->per_call[round + (i + 1 == count)];
        timed[i].beside[round] = 0.5 * (before + after);
        timed[i].slower[round] = before > after ? before : after;
    }
    return count > 1 || take_turn(limit, round + 1);
}

static bool is_over(const struct timing *timing, const struct timed *timed, size_t count, size_t rounds, double begin,
                    double *sorted)
{
    double elapsed = timing_now() - begin;
    if (rounds < LEAST_ROUNDS || elapsed <= timing->budget)
        return false;
    return elapsed > PATIENCE * timing->budget || all_good(timing, timed, count, rounds, false, sorted);
}

/* Returns the number of rounds, 0 after a failure. */
static size_t run_rounds(const struct timing *timing, struct timed *timed, size_t count, double *sorted)
{
    double begin = timing_now();
    size_t rounds = 0, next_check = STEADY_ROUNDS;
    if (!take_turn(&timed[0], 0))
        return 0;
    while (rounds < MOST_ROUNDS) {
        if (!run_round(timing, timed, count, rounds))
            return 0;
        rounds++;
        if (is_over(timing, timed, count, rounds, begin, sorted))
            break;
        if (rounds == next_check) {
            if (all_good(timing, timed, count, rounds, true, sorted))
                break;
            next_check += next_check / 2;
        }
    }
    return rounds;
}

/* ---- results -------------------------------------------------------------------------------- */

/* Index, in order, of the worst of the best quarter but at least LEAST_GOOD. */
static size_t worst_of_best(size_t rounds)
{
    size_t best = rounds / 4 < LEAST_GOOD ? LEAST_GOOD : rounds / 4;
    return (best < rounds ? best : rounds) - 1;
}

static void summarize(struct timing *timing, struct timed *timed, size_t rounds, double *sorted)
{
    double at_most = timing->nominal / GOOD_SHARE;
    size_t good = collect(timed, rounds, at_most, SLOWER, sorted);
    timing->taken += rounds;
    timing->discarded += rounds - good;
    if (good < LEAST_GOOD) {
        timing->unsteady = true;
        collect(timed, rounds, INFINITY, SLOWER, sorted);
        at_most = sorted[worst_of_best(rounds)];
    }
    good = collect(timed, rounds, at_most, RATIOS, sorted);
    timed->ratio = median_of_sorted(sorted, good);
    good = collect(timed, rounds, at_most, SECONDS, sorted);
    timed->seconds = median_of_sorted(sorted, good);
    timed->fastest = sorted[0];
}

static void summarize_limit(struct timed *limit, size_t rounds, double *sorted)
{
    size_t count = collect(limit, rounds, INFINITY, SECONDS, sorted);
    limit->seconds = median_of_sorted(sorted, count);
    limit->fastest = sorted[0];
    limit->ratio = 1.0;
}

bool timing_interleave(struct timing *timing, struct timed *timed, size_t count)
{
    const size_t length = MOST_ROUNDS + 1;
    double *samples = memory_array((3 * count + 1) * length, sizeof *samples);
    if (!samples)
        return false;
    for (size_t i = 0; i < count; i++) {
        timed[i].per_call = samples + 3 * i * length;
        timed[i].beside = timed[i].per_call + length;
        timed[i].slower = timed[i].beside + length;
    }
    for (size_t r = 0; r < length; r++)
        timed[0].slower[r] = 0.0;
    double *sorted = samples + 3 * count * length;
    size_t rounds = calibrate_all(timed, count) ? run_rounds(timing, timed, count, sorted) : 0;
    if (rounds > 0) {
        summarize_limit(&timed[0], rounds, sorted);
        if (count > 1)
            timing->nominal = nominal(timing, timed, rounds, sorted);
        for (size_t i = 1; i < count; i++)
            summarize(timing, &timed[i], rounds, sorted);
    }
    free(samples);
    return rounds > 0;
}
