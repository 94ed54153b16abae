/* SPDX-License-Identifier: MIT
 * The rows that heed-bench reports where limits and times are given, and who takes part in them. */
#include "check.h"

#include "../bench/impl.h"
#include "../bench/reference.h"
#include "../bench/suites.h"
#include "../bench/timing.h"

#include <string.h>

#define ROWS_MAX 32
#define LIMIT_WORK 5000.0
#define LIMIT_SECONDS 0.25
#define LIMIT_FASTEST 0.2

/* Of the runs since the last start(): what binds in the first shape and in those after it, what the peer does, what
 * the last one was given, and its rows. */
static struct {
    enum limit_kind binds, binds_later;
    bool (*peer)(void *state);
    bool peer_is_no_fair_one;
    double clock;
    double nominal[ROWS_MAX]; /* as each shape's timing was given it */
    size_t shapes, limit_threads, context_threads, samples, discarded, count;
    bool pools;
    struct row rows[ROWS_MAX];
} run;

static bool call_right(void *state)
{
    const struct problem *p = state;
    for (size_t i = 0; i < p->out_count; i++)
        p->out[i] = 1.0f;
    run.clock += 2.0;
    return true;
}

static bool call_wrong(void *state)
{
    const struct problem *p = state;
    call_right(state);
    p->out[p->out_count - 1] = 2.0f;
    return true;
}

static bool call_idle(void *state)
{
    (void)state;
    return true;
}

static void start(enum limit_kind binds)
{
    memset(&run, 0, sizeof run);
    run.binds = run.binds_later = binds;
    run.peer = call_right;
}

/* ---- limits and times ---------------------------------------------------------------------- */

double limit_sample(void *arg, size_t calls)
{
    (void)arg;
    return LIMIT_SECONDS * (double)calls;
}

double limit_work(const struct limit *limit)
{
    (void)limit;
    return LIMIT_WORK;
}

void limit_init_fma(struct limit *limit, const struct loops *loops, size_t threads)
{
    *limit = (struct limit){.kind = LIMIT_FMA, .name = "fma", .unit = "GFLOP/s", .loops = loops, .threads = threads};
    run.limit_threads = threads;
}

size_t limits_level_working_set(enum limits_level level, size_t threads)
{
    (void)threads;
    return (size_t)level;
}

bool limit_init_memory(struct limit *limit, enum limit_kind kind, const struct loops *loops, size_t threads,
                       size_t bytes)
{
    static const char *const names[N_LEVELS] = {"L1", "L2", "L3", "DRAM"};
    *limit = (struct limit){.kind = kind, .unit = "GB/s", .loops = loops, .threads = threads};
    limit->name = bytes < N_LEVELS ? names[bytes] : "L2";
    run.limit_threads = threads;
    return true;
}

bool limit_init_binding(struct limit *limit, enum limit_kind memory, const struct loops *loops, size_t threads,
                        double flops, size_t bytes)
{
    CHECK(flops > 0.0 && bytes >= N_LEVELS);
    if ((run.shapes ? run.binds_later : run.binds) != LIMIT_FMA)
        return limit_init_memory(limit, memory, loops, threads, bytes);
    limit_init_fma(limit, loops, threads);
    return true;
}

void limit_free(struct limit *limit)
{
    (void)limit;
}

const struct loops *limits_loops(const char *isa)
{
    static const struct loops loops = {.isa = "any"};
    (void)isa;
    return &loops;
}

double timing_now(void)
{
    return run.clock;
}

/* Whoever comes i-th takes 2 i seconds in the end. */
bool timing_interleave(struct timing *timing, struct timed *timed, size_t count)
{
    CHECK(timed->sample == limit_sample);
    timed->seconds = LIMIT_SECONDS;
    timed->fastest = LIMIT_FASTEST;
    for (size_t i = 1; i < count; i++) {
        check_bound(timed[i].sample(timed[i].arg, 3), 3.0 * 2.0, 0.0, "seconds of a sample", i);
        timed[i].seconds = 2.0 * (double)i;
        timed[i].ratio = LIMIT_SECONDS / timed[i].seconds;
    }
    run.pools = timing->pools;
    run.nominal[run.shapes++] = timing->nominal;
    timing->nominal = (double)run.shapes;
    timing->taken = 7;
    timing->discarded = 2;
    return true;
}

/* ---- participants -------------------------------------------------------------------------- */

static bool find(struct library *library, const char *path, char about[LIBRARY_ABOUT])
{
    (void)path;
    (void)about;
    library->only_named = run.peer_is_no_fair_one && strcmp(library->name, "peer") == 0;
    return true;
}

static void set_threads(const struct library *library, size_t threads)
{
    (void)library;
    (void)threads;
}

static enum outcome open_any(const struct library *library, struct impl *impl)
{
    impl->call = strcmp(library->name, "peer") == 0 ? run.peer : call_right;
    impl->state = (void *)(uintptr_t)impl->problem;
    run.context_threads = heed_context_threads(impl->problem->context);
    return OUTCOME_READY;
}

static enum outcome open_none(const struct library *library, struct impl *impl)
{
    (void)library;
    (void)impl;
    return OUTCOME_UNABLE;
}

struct library *library_at(size_t index)
{
    static struct library all[] = {
        {.name = "heed", .find = find, .set_threads = set_threads, .open = open_any},
        {.name = "unfused", .find = find, .set_threads = set_threads, .open = open_none},
        {.name = "peer", .find = find, .set_threads = set_threads, .open = open_any},
    };
    return index < sizeof all / sizeof *all ? &all[index] : NULL;
}

bool reference_agrees(const struct problem *problem)
{
    (void)problem;
    return true;
}

/* ---- the report ---------------------------------------------------------------------------- */

void report_comment(const char *format, ...)
{
    (void)format;
}

void report_progress(size_t which, size_t of, const char *shape, size_t threads)
{
    (void)shape;
    (void)threads;
    CHECK(which >= 1 && which <= of);
}

void report_samples(struct report *report, size_t samples, size_t discarded)
{
    (void)report;
    run.samples += samples;
    run.discarded += discarded;
}

bool report_add(struct report *report, const struct row *row)
{
    report->count++;
    return CHECK(run.count < ROWS_MAX) && (run.rows[run.count++] = *row, true);
}

bool report_is_empty(const struct report *report)
{
    return report->count == 0;
}

/* ---- plans --------------------------------------------------------------------------------- */

#define SHAPES_MAX 2

/* A plan of one number of threads; texts ends with NULL. */
static bool run_plan(const char *suite, const char *const *texts, const char *isa, size_t threads, struct plan plan)
{
    static const char *const paths[3];
    struct shape shapes[SHAPES_MAX];
    struct report report = {0};
    plan.suite = suites_named(suite);
    plan.shapes = shapes;
    for (; texts[plan.n_shapes]; plan.n_shapes++)
        if (!CHECK(shape_parse(plan.suite->kind, texts[plan.n_shapes], &shapes[plan.n_shapes])))
            return false;
    plan.threads = &threads;
    plan.isas = &isa;
    plan.n_threads = plan.n_isas = 1;
    plan.paths = paths;
    return suites_run(&plan, &report);
}

static const char *best_isa(void)
{
    const char *name = "";
    CHECK(heed_level_default(&name) == HEED_OK);
    return name;
}

static void check_row(const struct row *row, const char *shape, const char *impl, double seconds, double work)
{
    const double percent = 100.0 * (work / seconds) / (LIMIT_WORK / LIMIT_SECONDS);
    CHECK(strcmp(row->shape, shape) == 0 && strcmp(row->impl, impl) == 0 && row->threads == 1);
    check_bound(row->seconds, seconds, 0.0, "seconds", 0);
    check_bound(row->rate, 1e-9 * work / seconds, 1e-15 * work, "rate", 0);
    check_bound(row->percent, percent, 1e-12 * percent, "percent", 0);
}

static void test_shape(const char *suite, const char *shape, enum limit_kind binds, double work, const char *unit,
                       const char *limit)
{
    begin("%s %s: rate and percent of %s", suite, shape, limit);
    start(binds);
    CHECK(run_plan(suite, (const char *const[]){shape, NULL}, best_isa(), 1, (struct plan){.impls = IMPL_ALL}));
    if (CHECK(run.count == 2)) {
        check_row(&run.rows[0], shape, "heed", 2.0, work);
        check_row(&run.rows[1], shape, "peer", 4.0, work);
        for (size_t i = 0; i < run.count; i++)
            CHECK(strcmp(run.rows[i].suite, suite) == 0 && strcmp(run.rows[i].isa, best_isa()) == 0 &&
                  strcmp(run.rows[i].unit, unit) == 0 && strcmp(run.rows[i].limit, limit) == 0);
    }
    CHECK(run.samples == 7 && run.discarded == 2);
    end();
}

/* How steady the machine is: the median as a share of the best. */
static void test_peak(void)
{
    static const char *const shapes[] = {"fma",     "read-L1", "copy-L1",   "read-L2",  "copy-L2",
                                         "read-L3", "copy-L3", "read-DRAM", "copy-DRAM"};
    const size_t count = sizeof shapes / sizeof *shapes;
    begin("peak: each limit's rate, and how steady it is");
    start(LIMIT_FMA);
    CHECK(run_plan("peak", (const char *const[]){NULL}, best_isa(), 1, (struct plan){0}));
    CHECK(run.count == count);
    for (size_t i = 0; i < count && run.count == count; i++) {
        const struct row *row = &run.rows[i];
        CHECK(strcmp(row->shape, shapes[i]) == 0 && strcmp(row->impl, "limit") == 0 && row->threads == 1);
        check_bound(row->seconds, LIMIT_SECONDS, 0.0, "seconds", i);
        check_bound(row->rate, 1e-9 * LIMIT_WORK / LIMIT_SECONDS, 1e-15 * LIMIT_WORK, "rate", i);
        check_bound(row->percent, 100.0 * LIMIT_FASTEST / LIMIT_SECONDS, 1e-9, "percent", i);
    }
    end();
}

static void check_nominal(enum limit_kind binds, enum limit_kind binds_later, double later)
{
    static const char *const shapes[] = {"8x8x8", "8x8x9", NULL};
    start(binds);
    run.binds_later = binds_later;
    CHECK(run_plan("matmul", shapes, best_isa(), 1, (struct plan){.impls = IMPL_ALL}));
    CHECK(run.shapes == 2 && run.nominal[0] == 0.0 && run.nominal[1] == later);
}

static void test_nominal(void)
{
    begin("the nominal limit of multiply-adds, not of memory, goes from shape to shape");
    check_nominal(LIMIT_FMA, LIMIT_FMA, 1.0);
    check_nominal(LIMIT_FMA, LIMIT_READ, 0.0);
    check_nominal(LIMIT_READ, LIMIT_FMA, 0.0);
    check_nominal(LIMIT_READ, LIMIT_READ, 0.0);
    end();
}

static void check_taking_part(const char *isa, struct plan plan, const char *alone)
{
    CHECK(run_plan("matmul", (const char *const[]){"8x8x8", NULL}, isa, 1, plan));
    CHECK(run.count == (alone ? 1 : 2));
    CHECK(!alone || strcmp(run.rows[0].impl, alone) == 0);
    run.count = 0;
}

static void test_taking_part(void)
{
    begin("who takes part");
    start(LIMIT_FMA);
    check_taking_part(best_isa(), (struct plan){.impls = IMPL_ALL}, NULL);
    check_taking_part(best_isa(), (struct plan){.impls = IMPL_HEED << 2, .named = true}, "peer");
    check_taking_part(best_isa(), (struct plan){.impls = IMPL_OWN}, "heed");
    if (strcmp(best_isa(), "scalar") != 0) {
        check_taking_part("scalar", (struct plan){.impls = IMPL_ALL}, "heed");
        check_taking_part("scalar", (struct plan){.impls = IMPL_ALL, .named = true}, NULL);
    }
    run.peer_is_no_fair_one = true;
    check_taking_part(best_isa(), (struct plan){.impls = IMPL_ALL}, "heed");
    check_taking_part(best_isa(), (struct plan){.impls = IMPL_ALL, .named = true}, NULL);
    end();
}

static void check_threads(size_t threads, bool in_turn, size_t running)
{
    start(LIMIT_FMA);
    CHECK(run_plan("matmul", (const char *const[]){"8x8x8", NULL}, best_isa(), threads,
                   (struct plan){.impls = IMPL_OWN, .in_turn = in_turn}));
    CHECK(run.count == 1 && run.rows[0].threads == threads && run.context_threads == threads);
    CHECK(run.limit_threads == running && run.pools == (running > 1));
}

static void test_threads(void)
{
    begin("heed has its threads, and limits are those of the threads that run at once");
    check_threads(1, false, 1);
    if (heed_has_openmp())
        check_threads(2, false, 2);
    check_threads(4, true, 1);
    end();
}

/* Nor is one who leaves there what heed computed. */
static void test_wrong(void)
{
    bool (*const peers[])(void *) = {call_wrong, call_idle};
    begin("what another one computes otherwise is not timed");
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        start(LIMIT_FMA);
        run.peer = peers[i];
        CHECK(
            !run_plan("matmul", (const char *const[]){"8x8x8", NULL}, best_isa(), 1, (struct plan){.impls = IMPL_ALL}));
        CHECK(run.shapes == 0 && run.count == 0);
    }
    end();
}

int main(void)
{
    test_shape("matmul", "8x8x8", LIMIT_FMA, 2.0 * 8 * 8 * 8, "GFLOP/s", "fma");
    test_shape("matmul", "8x8x8", LIMIT_READ, 4.0 * 3 * 8 * 8, "GB/s", "L2");
    test_shape("rows", "relu:3x21", LIMIT_FMA, 2.0 * 3 * 21, "Gop/s", "instructions");
    test_shape("rows", "relu:3x21", LIMIT_COPY, 4.0 * 2 * 3 * 21, "GB/s", "L2");
    test_peak();
    test_nominal();
    test_taking_part();
    test_threads();
    test_wrong();
    return finish();
}
