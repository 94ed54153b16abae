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

int main(void)
{
    test_warm(1e-3, 1e-3, 2e-3);
    test_warm(1e-3, 2e-6, 3e-4);
    test_warm(5e-4, 3e-3, 7e-3);
    test_slow_machine();
    test_long_calls();
    for (size_t at = 1; at <= 40; at += 3)
        test_failure(at);
    return finish();
}
