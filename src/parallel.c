/* SPDX-License-Identifier: MIT
 * Runs a list of independent tasks: serially, on OpenMP's threads or on the host's. Wherever they run, numbers are
 * rounded as on the thread that calls.
 */
#include "internal.h"
#include "mode.h"

#include <stdatomic.h>

#if HAVE_OPENMP
#include <omp.h>
#endif

int heed_has_openmp(void)
{
    return HAVE_OPENMP;
}

size_t heed_workers(const struct heed_context *context)
{
    return context->threads;
}

size_t heed_workers_of(const struct heed_context *context, size_t n_tasks)
{
    bool any = context->executor == HEED_EXECUTOR_HOST || context->threads < n_tasks;
    return n_tasks > 1 && any ? context->threads : n_tasks;
}

static void run_serial(size_t n_tasks, heed_task *task, void *arg)
{
    for (size_t i = 0; i < n_tasks; i++)
        task(arg, i, 0);
}

#if HAVE_OPENMP
/* Tasks start as one run of neighbours for each thread, the same in every call, so that a thread finds
 * its weights in its own cache again; who has finished takes from the others. */
struct share {
    _Alignas(64) atomic_size_t next;
    size_t end;
};

#define MOST_SHARES 64

static void run_share(struct share *share, heed_task *task, void *arg, size_t worker)
{
    for (;;) {
        size_t index = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);
        if (index >= share->end)
            return;
        task(arg, index, worker);
    }
}

/* The team is the context's whatever the tasks: libgomp ends the threads that a smaller team leaves out, and the next
 * larger one has to start others, which takes a hundred microseconds. */
static void run_openmp(const struct heed_context *context, size_t n_tasks, heed_task *task, void *arg)
{
    struct share shares[MOST_SHARES];
    size_t workers = heed_workers_of(context, n_tasks);
    size_t n_shares = workers < MOST_SHARES ? workers : MOST_SHARES;
    for (size_t s = 0, begin = 0; s < n_shares; s++) {
        atomic_init(&shares[s].next, begin);
        begin += (n_tasks - begin) / (n_shares - s);
        shares[s].end = begin;
    }
    const uint32_t mode = heed_mode();
#pragma omp parallel num_threads((int)context->threads)
    {
        size_t worker = (size_t)omp_get_thread_num();
        uint32_t before = heed_mode_take(mode);
        for (size_t s = 0; worker < workers && s < n_shares; s++)
            run_share(&shares[(worker + s) % n_shares], task, arg, worker);
        heed_mode_take(before);
    }
}
#endif

struct host_job {
    heed_task *task;
    void *arg;
    uint32_t mode;
};

static void run_on_host(void *arg, size_t index, size_t worker)
{
    const struct host_job *job = arg;
    uint32_t before = heed_mode_take(job->mode);
    job->task(job->arg, index, worker);
    heed_mode_take(before);
}

void heed_run(const struct heed_context *context, size_t n_tasks, double work, heed_task *task, void *arg)
{
    if (n_tasks > 1 && heed_is_shared(context, work)) {
        if (context->executor == HEED_EXECUTOR_HOST) {
            struct host_job job = {task, arg, heed_mode()};
            context->host.run(context->host.host, n_tasks, run_on_host, &job);
            return;
        }
#if HAVE_OPENMP
        if (context->executor == HEED_EXECUTOR_OPENMP && !omp_in_parallel() && heed_is_first_process()) {
            run_openmp(context, n_tasks, task, arg);
            return;
        }
#endif
    }
    run_serial(n_tasks, task, arg);
}
