/* SPDX-License-Identifier: MIT
 * How tasks are shared: each runs once, no two at a time as the same worker, always on the same threads, and rounds as
 * the caller does.
 */
#include "check.h"

#include <errno.h>
#include <fenv.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#if HAVE_SCHED_GETAFFINITY
#include <sched.h>
#include <sys/syscall.h>
#endif

enum { MOST_TASKS = 150, TEAM = 4, ROUNDS = 20 };

#define ENOUGH_WORK 1e9

static heed_context *context_with(heed_executor executor, size_t threads, heed_host host)
{
    heed_context *context = NULL;
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    options.threads = threads;
    options.executor = executor;
    options.host = host;
    CHECK(heed_context_create(&context, &options) == HEED_OK);
    return context;
}

static heed_context *context_of(size_t threads)
{
    return context_with(HEED_EXECUTOR_OPENMP, threads, (heed_host){.run = NULL});
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

/* ---- the caller's rounding, where there is another one ---- */

#if defined(FE_UPWARD) && defined(FE_DOWNWARD)

/* By arithmetic: fegetround may look at other registers than these use. */
static float one_third(void)
{
    volatile float one = 1.0f, three = 3.0f;
    return one / three;
}

static void divide(void *arg, size_t index, size_t worker)
{
    float *third = arg;
    (void)worker;
    third[index] = one_third();
    usleep(200);
}

/* Whether the threads round as the caller, who rounds as asked. */
static void test_rounding(const heed_context *context, int direction)
{
    float third[4 * TEAM], alone;
    size_t same = 0;
    int usual = fegetround();
    CHECK(fesetround(direction) == 0);
    alone = one_third();
    heed_run(context, 4 * TEAM, ENOUGH_WORK, divide, third);
    CHECK(fegetround() == direction && fesetround(usual) == 0);
    for (size_t i = 0; i < 4 * TEAM; i++)
        same += same_bits(third[i], alone) != 0;
    check_that(same == 4 * TEAM, "%zu of %d tasks round as the caller in direction %d", same, 4 * TEAM, direction);
}

/* OpenMP's threads are the program's as well, whose own mode they keep. */
static void test_left_as_found(const heed_context *context)
{
    int usual = fegetround(), changed = 0;
    float third[4 * TEAM], usual_third = one_third();
    CHECK(fesetround(FE_DOWNWARD) == 0);
    heed_run(context, 4 * TEAM, ENOUGH_WORK, divide, third);
    CHECK(fesetround(usual) == 0);
#ifdef _OPENMP
#pragma omp parallel num_threads(TEAM) reduction(+ : changed)
#endif
    changed += !same_bits(one_third(), usual_third);
    CHECK(changed == 0);
}

/* A host with a thread of its own that rounds down, and must not notice that tasks round otherwise. */
struct host_call {
    size_t n_tasks;
    heed_task *task;
    void *arg;
    int ok;
};

static void *host_thread(void *arg)
{
    struct host_call *call = arg;
    call->ok = fesetround(FE_DOWNWARD) == 0;
    float third = one_third();
    for (size_t i = 0; i < call->n_tasks; i++)
        call->task(call->arg, i, 0);
    call->ok &= same_bits(one_third(), third);
    return NULL;
}

static void run_on_thread(void *host, size_t n_tasks, heed_task *task, void *arg)
{
    struct host_call call = {n_tasks, task, arg, 0};
    pthread_t thread;
    (void)host;
    CHECK(pthread_create(&thread, NULL, host_thread, &call) == 0);
    CHECK(pthread_join(thread, NULL) == 0 && call.ok);
}

static void test_modes(heed_context *context)
{
    static const int directions[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TONEAREST};
    for (size_t d = 0; d < sizeof directions / sizeof *directions; d++)
        test_rounding(context, directions[d]);
    test_left_as_found(context);
    heed_context_destroy(context);
}

static void test_all_modes(void)
{
    begin("OpenMP's threads round as the caller");
    test_modes(context_of(TEAM));
    end();
    begin("the host's threads round as the caller");
    test_modes(context_with(HEED_EXECUTOR_HOST, 2, (heed_host){.run = run_on_thread}));
    end();
}
#else
static void test_all_modes(void)
{
    skip("numbers are rounded one way only", "threads round as the caller");
}
#endif

/* ---- how many CPUs there are ---- */

#if HAVE_SCHED_GETAFFINITY && defined(CPU_ALLOC) && defined(SYS_sched_getaffinity)
static size_t kernel_cpus; /* of a kernel that is played, 0: the one that there is */

/* In place of libc's: on the kernel that is played the process may use the last CPU only. */
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    memset(set, 0, bytes);
    if (kernel_cpus == 0)
        return syscall(SYS_sched_getaffinity, pid, bytes, set) < 0 ? -1 : 0;
    if (bytes * CHAR_BIT < kernel_cpus) {
        errno = EINVAL;
        return -1;
    }
    CPU_SET_S(kernel_cpus - 1, bytes, set);
    return 0;
}

static void test_cpus(void)
{
    begin("the affinity counts on kernels for any number of CPUs");
    for (kernel_cpus = 64; kernel_cpus <= 65536; kernel_cpus *= 2)
        check_that(heed_default_threads() == 1, "%zu threads on one CPU of %zu", heed_default_threads(), kernel_cpus);
    kernel_cpus = 0;
    CHECK(heed_default_threads() >= 1);
    end();
}
#else
static void test_cpus(void)
{
    skip("there is none, or of one size only", "the affinity counts on kernels for any number of CPUs");
}
#endif

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
    test_all_modes();
    test_cpus();
    return finish();
}
