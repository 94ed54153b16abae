/* SPDX-License-Identifier: MIT
 * How tasks are shared: each runs once, no two at a time as the same worker, and always on the same threads.
 */
#include "check.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TASKS = 150, TEAM = 4, ROUNDS = 20 };

#define ENOUGH_WORK 1e9

static heed_context *context_of(size_t threads)
{
    heed_context *context = NULL;
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    options.threads = threads;
    options.executor = HEED_EXECUTOR_OPENMP;
    CHECK(heed_context_create(&context, &options) == HEED_OK);
    return context;
}

/* ---- every task once ---- */

struct tally {
    atomic_int runs[MOST_TASKS], busy[MOST_TASKS], clashes;
};

static void count_task(void *arg, size_t index, size_t worker)
{
    struct tally *tally = arg;
    if (worker >= MOST_TASKS || atomic_fetch_add(&tally->busy[worker], 1) > 0) {
        atomic_fetch_add(&tally->clashes, 1);
        return;
    }
    atomic_fetch_add(&tally->runs[index], 1);
    atomic_fetch_sub(&tally->busy[worker], 1);
}

static void test_tasks(size_t threads, size_t n_tasks)
{
    static struct tally tally;
    heed_context *context = context_of(threads);
    size_t workers = heed_workers_of(context, n_tasks), once = 0;
    memset(&tally, 0, sizeof tally);
    for (size_t w = workers; w < MOST_TASKS; w++)
        atomic_store(&tally.busy[w], 1);
    heed_run(context, n_tasks, ENOUGH_WORK, count_task, &tally);
    for (size_t i = 0; i < MOST_TASKS; i++)
        once += atomic_load(&tally.runs[i]) == (i < n_tasks);
    check_that(once == MOST_TASKS && atomic_load(&tally.clashes) == 0,
               "%zu tasks on %zu threads: %zu ran as often as they should, %d as a worker that was not free", n_tasks,
               threads, once, atomic_load(&tally.clashes));
    heed_context_destroy(context);
}

/* ---- the same threads ---- */

static atomic_int threads_seen;

static void mark_thread(void *arg, size_t index, size_t worker)
{
    static _Thread_local int known;
    (void)arg;
    (void)index;
    (void)worker;
    if (!known)
        atomic_fetch_add(&threads_seen, 1);
    known = 1;
    usleep(200); /* so that no thread runs all tasks */
}

static void test_team(void)
{
    heed_context *context = context_of(TEAM);
    for (int round = 0; round < ROUNDS; round++) {
        heed_run(context, 4 * TEAM, ENOUGH_WORK, mark_thread, NULL);
        heed_run(context, 2, ENOUGH_WORK, mark_thread, NULL);
    }
    int seen = atomic_load(&threads_seen);
    check_that(seen >= 1 && seen <= TEAM, "%d threads have run the tasks of a team of %d", seen, TEAM);
    heed_context_destroy(context);
}

int main(void)
{
    static const size_t threads[] = {1, 2, 3, 7, 66};
    begin("calls of few and of many tasks share a team");
    test_team();
    end();
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        begin("tasks on %zu threads", threads[t]);
        for (size_t n = 0; n <= MOST_TASKS; n += n < 10 ? 1 : 35)
            test_tasks(threads[t], n);
        end();
    }
    return finish();
}
