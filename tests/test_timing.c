/* SPDX-License-Identifier: MIT
 * How heed-bench takes times, by calls that say themselves how long they took. */
#include "check.h"

#include "../bench/timing.h"

#include <math.h>

#define THINGS 3
#define WARM_AFTER 4

/* Something with operands in a cache that one use after another brings back, and the others' use takes away. */
struct thing {
    double seconds; /* of a call whose operands are all there */
    int uses;       /* since somebody else's */
    size_t samples;
    size_t fails_at; /* this sample; 0: none */
    size_t slow_from;
};

static struct thing things[THINGS];

static double sample(void *arg, size_t calls)
{
    struct thing *thing = arg;
    for (int t = 0; t < THINGS; t++)
        if (&things[t] != thing)
            things[t].uses = 0;
    thing->samples++;
    if (thing->samples == thing->fails_at)
        return -1.0;
    double missing = thing->uses < WARM_AFTER ? (double)(WARM_AFTER - thing->uses) / WARM_AFTER : 0.0;
    double slow = thing->slow_from && thing->samples >= thing->slow_from ? 1.5 : 1.0;
    thing->uses++;
    return thing->seconds * (1.0 + missing) * slow * (double)calls;
}

/* The first is the limit. */
static bool measure(struct timing *timing, struct timed *timed)
{
    for (int t = 0; t < THINGS; t++)
        timed[t] = (struct timed){.sample = sample, .arg = &things[t]};
    *timing = (struct timing){.budget = INFINITY};
    return timing_interleave(timing, timed, THINGS);
}

static void set_things(double limit, double first, double second)
{
    const double seconds[THINGS] = {limit, first, second};
    for (int t = 0; t < THINGS; t++)
        things[t] = (struct thing){.seconds = seconds[t]};
}

static void check_seconds(const struct timed *timed)
{
    for (int t = 0; t < THINGS; t++)
        check_bound(timed[t].seconds, things[t].seconds, 1e-9 * things[t].seconds, "seconds", (size_t)t);
}

static void test_warm(double limit, double first, double second)
{
    struct timing timing;
    struct timed timed[THINGS];
    begin("operands are warm: %g, %g and %g seconds", limit, first, second);
    set_things(limit, first, second);
    CHECK(measure(&timing, timed));
    check_seconds(timed);
    check_bound(timed[1].ratio, limit / first, 1e-9 * limit / first, "ratio", 1);
    CHECK(timing.taken > 0 && timing.discarded == 0 && !timing.unsteady);
    end();
}

/* Rounds are half of what was taken, since two things are measured. */
static void test_slow_machine(void)
{
    struct timing timing;
    struct timed timed[THINGS];
    begin("what has become slow for good is not waited for");
    set_things(1e-3, 1e-3, 2e-3);
    things[2].slow_from = 60;
    CHECK(measure(&timing, timed));
    CHECK(things[2].samples > 60);
    CHECK(things[2].samples <= 60 + (WARM_AFTER + 2) * (timing.taken / 2));
    end();
}

static void test_long_calls(void)
{
    struct timing timing;
    struct timed timed[THINGS];
    begin("long calls are not made in vain");
    set_things(1e-3, 0.1, 0.2);
    CHECK(measure(&timing, timed));
    /* Besides those that count one for pages, one for the number of calls, and one before the first that counts. */
    CHECK(things[1].samples == timing.taken / 2 + 3);
    CHECK(things[2].samples == timing.taken / 2 + 3);
    end();
}

static void test_failure(size_t at)
{
    struct timing timing;
    struct timed timed[THINGS];
    begin("sample %zu fails", at);
    set_things(1e-3, 1e-3, 1e-3);
    things[1].fails_at = at;
    CHECK(!measure(&timing, timed));
    CHECK(things[1].samples == at);
    end();
}

/* ---- turns of a machine whose speed changes -------------------------------------------------- */

/* What a call takes depends on the limit's turn, or on that before a turn of the other one. */
struct machine {
    double (*limit)(size_t turn);
    double (*other)(size_t turn);
    size_t turn;
    bool limit_was_last;
};

static struct machine machine;

static double sample_limit(void *arg, size_t calls)
{
    (void)arg;
    machine.turn += !machine.limit_was_last;
    machine.limit_was_last = true;
    return machine.limit(machine.turn) * (double)calls;
}

static double sample_other(void *arg, size_t calls)
{
    (void)arg;
    machine.limit_was_last = false;
    return machine.other(machine.turn) * (double)calls;
}

static struct timing measure_machine(double (*limit)(size_t), double (*other)(size_t), double nominal,
                                     struct timed *timed)
{
    struct timing timing = {.budget = INFINITY, .nominal = nominal};
    machine = (struct machine){.limit = limit, .other = other};
    timed[0] = (struct timed){.sample = sample_limit};
    timed[1] = (struct timed){.sample = sample_other};
    CHECK(timing_interleave(&timing, timed, 2));
    return timing;
}

static double always(size_t turn)
{
    (void)turn;
    return 1e-3;
}

static void check_times(const struct timed *timed, double seconds, double fastest, double ratio)
{
    check_bound(timed->seconds, seconds, 1e-9 * seconds, "seconds", 0);
    check_bound(timed->fastest, fastest, 1e-9 * fastest, "fastest", 0);
    check_bound(timed->ratio, ratio, 1e-9 * ratio, "ratio", 0);
}

static double one_or_three(size_t turn)
{
    return turn % 2 ? 1e-3 : 3e-3;
}

static double one_two_or_nine(size_t turn)
{
    static const double seconds[] = {9e-3, 1e-3, 2e-3};
    return seconds[turn % 3];
}

static void test_medians(void)
{
    struct timed timed[2];
    begin("medians");
    measure_machine(always, one_two_or_nine, 0.0, timed);
    check_times(&timed[1], 2e-3, 1e-3, 0.5);
    struct timing timing = measure_machine(always, one_or_three, 0.0, timed);
    CHECK(timing.taken % 2 == 0);
    /* Of ratios 1 and 1/3. */
    check_times(&timed[1], 2e-3, 1e-3, 2.0 / 3.0);
    end();
}

static double faster_in_one_of_three(size_t turn)
{
    return turn % 3 ? 1.02e-3 : 1e-3;
}

static double slower_in_one_of_three(size_t turn)
{
    return turn % 3 ? 1e-3 : 1.02e-3;
}

/* Means of before and after: 1.01, 1.02 and 1.01, or 1.01, 1 and 1.01. */
static void test_neighbours(void)
{
    struct timed timed[2];
    begin("a ratio is that to the limit before and after");
    struct timing timing = measure_machine(faster_in_one_of_three, always, 0.0, timed);
    check_times(&timed[0], 1.02e-3, 1e-3, 1.0);
    check_times(&timed[1], 1e-3, 1e-3, 1.01);
    CHECK(timing.discarded == 0);
    measure_machine(slower_in_one_of_three, always, 0.0, timed);
    check_times(&timed[0], 1e-3, 1e-3, 1.0);
    check_times(&timed[1], 1e-3, 1e-3, 1.01);
    end();
}

/* Half a percent on either side of the median: quartiles are 0.01 apart, a standard deviation is that by 1.35, and the
 * standard error of the median, 1.25 deviations by the root of the samples, is a thousandth from 86 on. */
static double nearly(size_t turn)
{
    return turn % 2 ? 0.995e-3 : 1.005e-3;
}

static void test_steady(void)
{
    struct timed timed[2];
    begin("rounds go on until medians are steady");
    CHECK(measure_machine(always, always, 0.0, timed).taken <= 20);
    size_t taken = measure_machine(always, nearly, 0.0, timed).taken;
    CHECK(taken >= 86 && taken <= 86 * 3 / 2);
    end();
}

/* ---- samples that do not count --------------------------------------------------------------- */

static double slow_share; /* of the limit that a slow machine reaches */

static bool is_slow(size_t turn)
{
    return turn % 10 >= 5;
}

static double slow_in_half(size_t turn)
{
    return is_slow(turn) ? 1e-3 / slow_share : 1e-3;
}

/* Before a slow turn, too. */
static double twice_beside_slow(size_t turn)
{
    return is_slow(turn) || is_slow(turn + 1) ? 2e-3 : 1e-3;
}

static void check_discarded(double share, size_t discarded_of_ten, double seconds)
{
    struct timed timed[2];
    slow_share = share;
    struct timing timing = measure_machine(slow_in_half, twice_beside_slow, 0.0, timed);
    /* Those of the last ten turns need not be all. */
    CHECK(10 * timing.discarded + 100 >= discarded_of_ten * timing.taken &&
          10 * timing.discarded <= discarded_of_ten * timing.taken + 100);
    check_bound(timed[1].seconds, seconds, 1e-9 * seconds, "seconds", 0);
    CHECK(!timing.unsteady);
}

static void test_discarded(void)
{
    begin("samples beside less than 97 %% of the limit do not count");
    check_discarded(0.98, 0, 2e-3);
    check_discarded(0.96, 6, 1e-3);
    end();
}

static void check_nominal(double before, double after, bool counts)
{
    struct timed timed[2];
    struct timing timing = measure_machine(always, always, before, timed);
    check_bound(timing.nominal, after, 1e-12, "nominal", 0);
    CHECK(timing.discarded == (counts ? 0 : timing.taken) && timing.unsteady == !counts);
    check_times(&timed[1], 1e-3, 1e-3, 1.0);
}

/* One turn in twenty is an exception, three are not. */
static size_t fast_of_twenty;

static double fast_in_some(size_t turn)
{
    return turn % 20 < fast_of_twenty + 1 ? 0.9e-3 : 1e-3;
}

static void test_nominal(void)
{
    begin("the nominal limit is what its best tenth reached, now or earlier");
    check_nominal(0.0, 1e-3, true);
    check_nominal(1.1e-3, 1e-3, true);
    check_nominal(0.98e-3, 0.98e-3, true);
    check_nominal(0.96e-3, 0.96e-3, false);
    for (fast_of_twenty = 1; fast_of_twenty <= 3; fast_of_twenty += 2) {
        struct timed timed[2];
        struct timing timing = measure_machine(fast_in_some, one_or_three, 0.0, timed);
        check_bound(timing.nominal, fast_of_twenty == 1 ? 0.95e-3 : 0.9e-3, 1e-12, "nominal", fast_of_twenty);
    }
    end();
}

static size_t good_turns;

static double good_for_a_while(size_t turn)
{
    return turn >= 100 && turn < 100 + good_turns ? 1e-3 : 1.05e-3;
}

/* Between so many turns are one sample less. */
static void test_hardly_any(void)
{
    begin("of hardly any sample that would count, the best count");
    for (good_turns = 5; good_turns <= 6; good_turns++) {
        struct timed timed[2];
        struct timing timing = measure_machine(good_for_a_while, one_or_three, 1e-3, timed);
        CHECK(timing.unsteady == (good_turns == 5));
        CHECK(timing.taken - timing.discarded == good_turns - 1);
    }
    end();
}

/* Of twenty turns the first three and the next five, in each of which one is between the slower ones. */
static double best_in_some(size_t turn)
{
    return turn % 20 < 3 ? 1.05e-3 : turn % 20 < 8 ? 1.06e-3 : 1.08e-3;
}

static double as_the_slower(size_t turn)
{
    double before = best_in_some(turn), after = best_in_some(turn + 1), slower = before > after ? before : after;
    return slower < 1.055e-3 ? 3e-3 : slower < 1.07e-3 ? 1e-3 : 5e-3;
}

/* A tenth is beside 1.05 and a quarter beside 1.06. */
static void test_best_quarter(void)
{
    struct timed timed[2];
    begin("where no sample would count the best quarter does");
    struct timing timing = measure_machine(best_in_some, as_the_slower, 1e-3, timed);
    CHECK(timing.unsteady && timing.discarded == timing.taken);
    check_bound(timed[1].seconds, 1e-3, 1e-12, "seconds", 0);
    end();
}

/* ---- lengths of samples ---------------------------------------------------------------------- */

struct steady {
    double seconds; /* of a call */
    double sampled; /* the last time */
};

static double sample_steady(void *arg, size_t calls)
{
    struct steady *steady = arg;
    return steady->sampled = steady->seconds * (double)calls;
}

static void check_limit_sample(double first, double second, double wanted)
{
    struct timing timing = {.budget = INFINITY};
    struct steady steady[THINGS] = {{.seconds = 1e-6}, {.seconds = first}, {.seconds = second}};
    struct timed timed[THINGS];
    for (int t = 0; t < THINGS; t++)
        timed[t] = (struct timed){.sample = sample_steady, .arg = &steady[t]};
    CHECK(timing_interleave(&timing, timed, THINGS));
    CHECK(steady[0].sampled >= 0.5 * wanted && steady[0].sampled <= 1.3 * wanted);
}

static void test_limit_sample(void)
{
    begin("the limit takes a tenth of the longest call, and a millisecond at most");
    check_limit_sample(5e-3, 1e-3, 5e-4);
    check_limit_sample(1e-3, 5e-3, 5e-4);
    check_limit_sample(1e-3, 0.1, 1e-3);
    end();
}

static void test_no_time(void)
{
    struct timing timing = {.budget = 0.0};
    struct timed timed[2] = {{.sample = sample_limit}, {.sample = sample_other}};
    begin("three rounds where there is no time");
    machine = (struct machine){.limit = always, .other = always};
    CHECK(timing_interleave(&timing, timed, 2));
    CHECK(timing.taken == 3);
    end();
}

static void test_patience(void)
{
    struct timing timing = {.budget = 1e-4, .nominal = 0.5e-3};
    struct timed timed[2] = {{.sample = sample_limit}, {.sample = sample_other}};
    begin("samples that count are waited for, up to three times as long");
    machine = (struct machine){.limit = always, .other = always};
    double start = timing_now();
    CHECK(timing_interleave(&timing, timed, 2));
    CHECK(timing_now() - start >= 3.0 * timing.budget && timing.unsteady);
    end();
}

static void test_alone(void)
{
    struct timing timing = {.budget = INFINITY};
    struct timed timed = {.sample = sample_limit};
    begin("the limit alone");
    machine = (struct machine){.limit = always};
    CHECK(timing_interleave(&timing, &timed, 1));
    check_times(&timed, 1e-3, 1e-3, 1.0);
    end();
}

int main(void)
{
    test_warm(1e-3, 1e-3, 2e-3);
    test_warm(1e-3, 2e-6, 3e-4);
    test_warm(5e-4, 3e-3, 7e-3);
    test_slow_machine();
    test_long_calls();
    for (size_t at = 1; at <= 40; at += 3)
        test_failure(at);
    test_medians();
    test_neighbours();
    test_steady();
    test_discarded();
    test_nominal();
    test_hardly_any();
    test_best_quarter();
    test_limit_sample();
    test_no_time();
    test_patience();
    test_alone();
    return finish();
}
