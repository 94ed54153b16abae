/* SPDX-License-Identifier: MIT
 * Runs a list of independent tasks: serially, on OpenMP's threads or on the host's.
 */
#include "internal.h"

#include <stdatomic.h>
#include <unistd.h>

#if HAVE_OPENMP
#include <omp.h>
#endif

/* A parallel region costs about a microsecond, in which one thread does some 2^16 multiply-adds; less
 * than twice that is not worth sharing. */
#define LEAST_PARALLEL_WORK 131072.0

int heed_has_openmp(void)
{
    return HAVE_OPENMP;
}

size_t heed_workers(const struct heed_context *context)
{
    return context->threads;
}

static void run_serial(size_t n_tasks, heed_task *task, void *arg)
{
    for (size_t i = 0; i < n_tasks; i++)
        task(arg, i, 0);
}

#if HAVE_OPENMP
/* The process whose OpenMP threads this library has used, 0 for none. They do not survive a fork:
 * a child of that process would wait for them for ever. */
static atomic_long openmp_process;

static bool openmp_is_usable(void)
{
    long nobody = 0, self = (long)getpid();
    if (omp_in_parallel())
        return false;
    return atomic_compare_exchange_strong(&openmp_process, &nobody, self) || nobody == self;
}

static void run_openmp(const struct heed_context *context, size_t n_tasks, heed_task *task, void *arg)
{
    size_t threads = context->threads < n_tasks ? context->threads : n_tasks;
#pragma omp parallel for schedule(dynamic, 1) num_threads((int)threads)
    for (size_t i = 0; i < n_tasks; i++)
        task(arg, i, (size_t)omp_get_thread_num());
}
#endif

void heed_run(const struct heed_context *context, size_t n_tasks, double work, heed_task *task, void *arg)
{
    if (context->threads > 1 && n_tasks > 1 && work >= LEAST_PARALLEL_WORK) {
        if (context->executor == HEED_EXECUTOR_HOST) {
            context->host.run(context->host.host, n_tasks, task, arg);
            return;
        }
#if HAVE_OPENMP
        if (context->executor == HEED_EXECUTOR_OPENMP && openmp_is_usable()) {
            run_openmp(context, n_tasks, task, arg);
            return;
        }
#endif
    }
    run_serial(n_tasks, task, arg);
}
