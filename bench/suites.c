/* SPDX-License-Identifier: MIT
 * What is measured.
 */
#include "config.h"

#include "suites.h"

#include "diag.h"
#include "impl.h"
#include "limits.h"
#include "memory.h"
#include "reference.h"
#include "timing.h"
#include "turns.h"

#include <heed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What stays the same from shape to shape. */
struct setting {
    const struct plan *plan;
    const char *isa;
    size_t threads;
    impl_set impls;
    heed_context *context;
    const struct loops *loops;
    size_t done;    /* shapes, also of earlier settings */
    double nominal; /* seconds of the multiply-add loop's call so far, 0: not known */
};

/* Threads that run at once. */
static size_t running(const struct setting *setting)
{
    return setting->plan->in_turn ? 1 : setting->threads;
}

/* ---- one shape ------------------------------------------------------------------------------- */

struct contest {
    const struct setting *setting;
    struct problem problem;
    struct impl impls[N_LIBRARIES_MOST];
    size_t count;
};

static double sample_calls(void *arg, size_t calls)
{
    const struct impl *impl = arg;
    turns_saved();
    double begin = timing_now();
    for (size_t i = 0; i < calls; i++)
        if (!impl->call(impl->state))
            return -1.0;
    return timing_now() - begin - turns_saved();
}

/* What computes something else is not worth timing. */
static bool check_result(struct contest *c, struct impl *impl)
{
    const struct problem *p = &c->problem;
    problem_spoil(p);
    if (!impl->call(impl->state) || (impl->fetch && !impl->fetch(impl)))
        return false;
    if (impl == c->impls)
        memcpy(p->expected, p->out, p->out_count * sizeof(float));
    if (problem_agrees(p) && reference_agrees(p))
        return true;
    diag_print("%s: wrong result for %s", impl->library->name, p->text);
    return false;
}

static bool enter(struct contest *c, const struct library *library)
{
    struct impl *impl = &c->impls[c->count];
    *impl = (struct impl){.library = library, .problem = &c->problem, .sample = sample_calls};
    enum outcome outcome = library->open(library, impl);
    if (outcome != OUTCOME_UNABLE)
        c->count++;
    else if (impl->state && impl->close)
        impl->close(impl->state);
    return outcome == OUTCOME_UNABLE || (outcome == OUTCOME_READY && check_result(c, impl));
}

static bool enter_all(struct contest *c)
{
    for (size_t i = 0; library_at(i); i++)
        if (library_at(i)->found && c->setting->impls & (IMPL_HEED << i) && !enter(c, library_at(i)))
            return false;
    return true;
}

static bool report_impls(const struct contest *c, const struct limit *limit, const struct timed *timed,
                         struct report *report)
{
    const struct problem *p = &c->problem;
    double work = limit->kind == LIMIT_FMA ? p->flops : (double)p->bytes;
    for (size_t i = 0; i < c->count; i++) {
        const struct timed *t = &timed[i + 1];
        struct row row = {.suite = p->suite->name,
                          .isa = c->setting->isa,
                          .threads = c->setting->threads,
                          .impl = c->impls[i].library->name,
                          .seconds = t->seconds,
                          .rate = 1e-9 * work / t->seconds,
                          .unit = limit->unit,
                          .limit = limit->name,
                          .percent = 100.0 * t->ratio * work / limit_work(limit)};
        memcpy(row.shape, p->text, sizeof row.shape);
        if (!report_add(report, &row))
            return false;
    }
    return true;
}

static bool time_impls(struct contest *c, struct setting *setting, struct report *report)
{
    struct limit limit;
    struct timed timed[1 + N_LIBRARIES_MOST];
    const struct problem *p = &c->problem;
    if (!limit_init_binding(&limit, p->memory, setting->loops, running(setting), p->flops, p->bytes))
        return false;
    if (p->suite->kind == SUITE_ROWS && limit.kind == LIMIT_FMA) {
        limit.name = "instructions";
        limit.unit = "Gop/s";
    }
    timed[0] = (struct timed){.sample = limit_sample, .arg = &limit};
    for (size_t i = 0; i < c->count; i++)
        timed[i + 1] =
            (struct timed){.sample = c->impls[i].sample, .arg = &c->impls[i], .pool = c->impls[i].library->pool};
    struct timing timing = {.budget = setting->plan->seconds,
                            .pools = running(setting) > 1,
                            .nominal = limit.kind == LIMIT_FMA ? setting->nominal : 0.0};
    bool done = timing_interleave(&timing, timed, c->count + 1) && report_impls(c, &limit, timed, report);
    if (done && limit.kind == LIMIT_FMA)
        setting->nominal = timing.nominal;
    report_samples(report, timing.taken, timing.discarded);
    if (timing.unsteady)
        report_comment("%s: the machine was slow throughout; its better moments count", p->text);
    limit_free(&limit);
    return done;
}

static bool run_shape(struct setting *setting, const struct shape *shape, struct report *report)
{
    struct contest contest = {
        .setting = setting, .problem = {.threads = setting->threads, .isa = setting->isa, .loop = setting->plan->loop}};
    contest.problem.context = setting->context;
    bool done = problem_open(&contest.problem, setting->plan->suite, shape) && enter_all(&contest) &&
                (contest.count == 0 || time_impls(&contest, setting, report));
    for (size_t i = 0; i < contest.count; i++)
        if (contest.impls[i].close)
            contest.impls[i].close(contest.impls[i].state);
    problem_close(&contest.problem);
    return done;
}

static bool run_shapes(struct setting *setting, struct report *report)
{
    const struct plan *plan = setting->plan;
    enum suite_kind kind = plan->suite->kind;
    size_t count = plan->shapes ? plan->n_shapes : shape_default_count(kind);
    for (size_t i = 0; i < count; i++) {
        struct shape shape = plan->shapes ? plan->shapes[i] : shape_default(kind, i);
        char text[SHAPE_TEXT];
        shape_print(kind, &shape, text);
        report_progress(++setting->done, count * plan->n_isas * plan->n_threads, text, setting->threads);
        memory_set_subject(text);
        bool done = run_shape(setting, &shape, report);
        memory_set_subject(NULL);
        if (!done)
            return false;
    }
    return true;
}

/* ---- peak ------------------------------------------------------------------------------------ */

/* A limit's share of itself is its median as a share of its best: how steady the machine is. */
static bool run_limit(const struct setting *setting, struct limit *limit, const char *what, struct report *report)
{
    struct timed timed = {.sample = limit_sample, .arg = limit};
    struct timing timing = {.budget = setting->plan->seconds};
    if (!timing_interleave(&timing, &timed, 1))
        return false;
    struct row row = {.suite = "peak",
                      .isa = setting->isa,
                      .threads = setting->threads,
                      .impl = "limit",
                      .seconds = timed.seconds,
                      .rate = 1e-9 * limit_work(limit) / timed.seconds,
                      .unit = limit->unit,
                      .limit = limit->name,
                      .percent = 100.0 * timed.fastest / timed.seconds};
    snprintf(row.shape, sizeof row.shape, "%s%s%s", what, limit->kind == LIMIT_FMA ? "" : "-",
             limit->kind == LIMIT_FMA ? "" : limit->name);
    return report_add(report, &row);
}

static bool run_memory(const struct setting *setting, enum limit_kind kind, enum limits_level level,
                       struct report *report)
{
    struct limit limit;
    bool done = limit_init_memory(&limit, kind, setting->loops, setting->threads,
                                  limits_level_working_set(level, setting->threads)) &&
                run_limit(setting, &limit, kind == LIMIT_READ ? "read" : "copy", report);
    limit_free(&limit);
    return done;
}

static bool run_peak(const struct setting *setting, struct report *report)
{
    struct limit fma;
    limit_init_fma(&fma, setting->loops, setting->threads);
    if (!run_limit(setting, &fma, "fma", report))
        return false;
    for (int level = LEVEL_L1; level < N_LEVELS; level++)
        if (!run_memory(setting, LIMIT_READ, (enum limits_level)level, report) ||
            !run_memory(setting, LIMIT_COPY, (enum limits_level)level, report))
            return false;
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool make_context(struct setting *setting)
{
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    options.level = setting->isa;
    options.threads = setting->threads;
    if (setting->plan->in_turn) {
        options.executor = HEED_EXECUTOR_HOST;
        if (!turns_open(setting->threads, &options.host))
            return false;
    }
    heed_status status = heed_context_create(&setting->context, &options);
    if (status != HEED_OK)
        diag_print("heed: %s", heed_status_string(status));
    return status == HEED_OK;
}

static bool run_setting(struct setting *setting, struct report *report)
{
    const char *best = "";
    heed_level_default(&best);
    /* The others choose their instructions themselves. */
    if (!setting->plan->named && strcmp(setting->isa, best) != 0)
        setting->impls &= IMPL_OWN;
    setting->loops = limits_loops(setting->isa);
    if (!setting->loops) {
        diag_print("%s: there is no loop for its limits", setting->isa);
        return false;
    }
    if (setting->plan->suite->kind == SUITE_PEAK)
        return run_peak(setting, report);
    for (size_t i = 0; library_at(i); i++)
        if (library_at(i)->found)
            library_at(i)->set_threads(library_at(i), setting->threads);
    bool done = make_context(setting) && run_shapes(setting, report);
    heed_context_destroy(setting->context);
    turns_close();
    return done;
}

static bool is_product(enum suite_kind kind)
{
    return kind == SUITE_MATMUL || kind == SUITE_LINEAR || kind == SUITE_GEMV;
}

/* An absent library is left out, but not one whose path was given. */
static bool find_library(const struct plan *plan, struct library *library, const char *path)
{
    char about[LIBRARY_ABOUT] = "";
    library->found = library->find(library, path, about);
    if (!library->found && path && !library->python) {
        diag_print("--library %s: %s", library->name, about);
        return false;
    }
    if (*about)
        report_comment("%s: %s", library->name, about);
    if (library->only_named && !plan->named)
        library->found = false;
    return true;
}

/* Those that the plan has a use for. One interpreter is given for all Python libraries, and need not have each. */
static bool find_libraries(const struct plan *plan)
{
    const char *python = NULL;
    size_t found = 0;
    for (size_t i = 0; library_at(i); i++) {
        struct library *library = library_at(i);
        if (!(plan->impls & (IMPL_HEED << i)) || (library->products && !is_product(plan->suite->kind)))
            continue;
        if (!find_library(plan, library, plan->paths[i]))
            return false;
        python = library->python ? plan->paths[i] : python;
        found += library->python && library->found;
    }
    if (python && found == 0)
        diag_print("--python %s: none of its libraries can be used", python);
    return !python || found > 0;
}

static void end_libraries(void)
{
    for (size_t i = 0; library_at(i); i++)
        if (library_at(i)->found && library_at(i)->end)
            library_at(i)->end(library_at(i));
}

static bool run_settings(const struct plan *plan, struct report *report)
{
    size_t done = 0;
    for (size_t i = 0; i < plan->n_isas; i++)
        for (size_t t = 0; t < plan->n_threads; t++) {
            struct setting setting = {
                .plan = plan, .isa = plan->isas[i], .threads = plan->threads[t], .impls = plan->impls, .done = done};
            if (!run_setting(&setting, report))
                return false;
            done = setting.done;
        }
    return true;
}

bool suites_run(const struct plan *plan, struct report *report)
{
    bool done = (plan->suite->kind == SUITE_PEAK || find_libraries(plan)) && run_settings(plan, report);
    end_libraries();
    if (done && report_is_empty(report))
        diag_print("nothing was measured: none of --impl is here and computes such shapes");
    return done && !report_is_empty(report);
}
