/* SPDX-License-Identifier: MIT
 * How tasks are shared: each runs once, no two at a time as the same worker, always on the same threads, and rounds as
 * the caller does.
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

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

/* A thread of its own beside the caller's, where OpenMP may start one. */
static int least_team(void)
{
#ifdef _OPENMP
    return omp_get_thread_limit() > 1 && !omp_get_dynamic() ? 2 : 1;
#else
    return 1;
#endif
}

static void test_team(void)
{
    heed_context *context = context_of(TEAM);
    for (int round = 0; round < ROUNDS; round++) {
        heed_run(context, 4 * TEAM, ENOUGH_WORK, mark_thread, NULL);
        heed_run(context, 2, ENOUGH_WORK, mark_thread, NULL);
    }
    int seen = atomic_load(&threads_seen);
    check_that(seen >= least_team() && seen <= TEAM, "%d threads have run the tasks of a team of %d", seen, TEAM);
    heed_context_destroy(context);
}

/* ---- OpenMP's own limits ---- */

#ifdef _OPENMP
/* It may give fewer threads than are asked for: as many as CPUs are idle. */
static void test_smaller_team(void)
{
    int before = omp_get_dynamic();
    begin("a team may be smaller than asked for");
    omp_set_dynamic(1);
    test_tasks(MOST_TASKS, MOST_TASKS);
    omp_set_dynamic(before);
    end();
}

struct region {
    pthread_t thread;
    atomic_int others;
};

static void note_thread(void *arg, size_t index, size_t worker)
{
    struct region *region = arg;
    (void)index;
    if (worker != 0 || !pthread_equal(pthread_self(), region->thread))
        atomic_fetch_add(&region->others, 1);
    usleep(200);
}

/* Also where regions within regions would have threads of their own. */
static void test_within_region(void)
{
    heed_context *context = context_of(TEAM);
    int others = 0, before = omp_get_max_active_levels();
    begin("tasks stay on the thread that calls from a parallel region");
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) reduction(+ : others)
    {
        struct region region = {.thread = pthread_self()};
        atomic_init(&region.others, 0);
        heed_run(context, 4 * TEAM, ENOUGH_WORK, note_thread, &region);
        others += atomic_load(&region.others);
    }
    omp_set_max_active_levels(before);
    CHECK(others == 0);
    heed_context_destroy(context);
    end();
}

static void test_limits(void)
{
    test_smaller_team();
    test_within_region();
}
#else
static void test_limits(void)
{
    skip("there is no OpenMP", "a team may be smaller than asked for");
    skip("there is no OpenMP", "tasks stay on the thread that calls from a parallel region");
}
#endif

/* ---- the caller's rounding, where there is another one ---- */

#if defined(FE_UPWARD) && defined(FE_DOWNWARD)

/* By arithmetic: fegetround may look at other registers than these use. */
static float one_third(void)
{
    volatile float one = 1.0f, three = 3.0f;
    return one / three;
}

/* By arithmetic as well: it is not the library's to forget what has happened on a host's thread. */
#ifdef FE_DIVBYZERO
static void divide_by_zero(void)
{
    volatile float one = 1.0f, zero = 0.0f;
    volatile float infinity = one / zero;
    (void)infinity;
}

static int has_divided_by_zero(void)
{
    return fetestexcept(FE_DIVBYZERO) != 0;
}
#else
static void divide_by_zero(void)
{
}

static int has_divided_by_zero(void)
{
    return 1;
}
#endif

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
    divide_by_zero();
    for (size_t i = 0; i < call->n_tasks; i++)
        call->task(call->arg, i, 0);
    call->ok &= same_bits(one_third(), third) && has_divided_by_zero();
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

#if defined(__SSE__)
#define FLUSHED_OPERANDS 0x40u

static void scale_subnormal(void *arg, size_t index, size_t worker)
{
    volatile float subnormal = 0x1p-140f, scale = 0x1p100f;
    float *scaled = arg;
    (void)worker;
    scaled[index] = subnormal * scale;
    usleep(200);
}

/* Whether the threads take subnormals for zeros, as the caller does. */
static void test_flushing(const heed_context *context)
{
    float scaled[4 * TEAM];
    size_t zeros = 0;
    unsigned usual = _mm_getcsr();
    _mm_setcsr(usual | FLUSHED_OPERANDS);
    heed_run(context, 4 * TEAM, ENOUGH_WORK, scale_subnormal, scaled);
    _mm_setcsr(usual);
    for (size_t i = 0; i < 4 * TEAM; i++)
        zeros += scaled[i] == 0.0f;
    check_that(zeros == 4 * TEAM, "%zu of %d tasks flush as the caller", zeros, 4 * TEAM);
}
#else
static void test_flushing(const heed_context *context)
{
    (void)context;
}
#endif

static void test_modes(heed_context *context)
{
    static const int directions[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TONEAREST};
    for (size_t d = 0; d < sizeof directions / sizeof *directions; d++)
        test_rounding(context, directions[d]);
    test_left_as_found(context);
    test_flushing(context);
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
static size_t usable_cpus = 1;

/* In place of libc's: on the kernel that is played the process may use the last CPUs only. */
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    memset(set, 0, bytes);
    if (kernel_cpus == 0)
        return syscall(SYS_sched_getaffinity, pid, bytes, set) < 0 ? -1 : 0;
    if (bytes * CHAR_BIT < kernel_cpus) {
        errno = EINVAL;
        return -1;
    }
    for (size_t i = 1; i <= usable_cpus; i++)
        CPU_SET_S(kernel_cpus - i, bytes, set);
    return 0;
}

/* Files of control groups that are played: name and contents by turns; NULL: those that there are. */
static const char *const *played;

static const char *played_contents(const char *path)
{
    for (const char *const *file = played; *file; file += 2)
        if (strcmp(file[0], path) == 0)
            return file[1];
    return NULL;
}

/* In place of libc's, for reading, which is all that this program does. */
FILE *fopen(const char *path, const char *mode)
{
    const char *contents = played ? played_contents(path) : NULL;
    if (contents)
        return fmemopen((void *)(uintptr_t)contents, strlen(contents), "r");
    int descriptor = played ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    return descriptor < 0 ? NULL : fdopen(descriptor, mode);
}

#define GROUP "/proc/self/cgroup"
#define V2 "/sys/fs/cgroup"
#define V1 "/sys/fs/cgroup/cpu"

static void test_quotas(void)
{
    static const struct {
        size_t expected; /* on eight CPUs */
        const char *files[9];
    } cases[] = {
        {8, {NULL}},
        {4, {GROUP, "0::/a/b\n", V2 "/a/b/cpu.max", "400000 100000\n"}},
        {2, {GROUP, "0::/a/b\n", V2 "/a/b/cpu.max", "150000 100000\n"}},
        {1, {GROUP, "0::/a/b\n", V2 "/a/b/cpu.max", "20000 100000\n"}},
        {8, {GROUP, "0::/a/b\n", V2 "/a/b/cpu.max", "1600000 100000\n"}},
        {8, {GROUP, "0::/a/b\n", V2 "/a/b/cpu.max", "max 100000\n"}},
        {8, {GROUP, "0::/a/b\n", V2 "/a/b/cpu.max", "100000 0\n"}},
        {3, {GROUP, "0::/a/b\n", V2 "/a/b/cpu.max", "400000 100000\n", V2 "/a/cpu.max", "300000 100000\n"}},
        {3, {GROUP, "0::/a/b\n", V2 "/a/b/cpu.max", "300000 100000\n", V2 "/a/cpu.max", "400000 100000\n"}},
        {3, {GROUP, "0::/a/b\n", V2 "/a/b/cpu.max", "max 100000\n", V2 "/cpu.max", "300000 100000\n"}},
        {5, {GROUP, "0::/\n", V2 "/cpu.max", "500000 100000\n"}},
        {3, {GROUP, "4:cpu:/g\n", V1 "/g/cpu.cfs_quota_us", "250000\n", V1 "/g/cpu.cfs_period_us", "100000\n"}},
        {3, {GROUP, "4:cpu,cpuacct:/g\n", V1 "/g/cpu.cfs_quota_us", "250000\n", V1 "/g/cpu.cfs_period_us", "100000\n"}},
        {3, {GROUP, "4:cpuacct,cpu:/g\n", V1 "/g/cpu.cfs_quota_us", "250000\n", V1 "/g/cpu.cfs_period_us", "100000\n"}},
        {8, {GROUP, "4:cpuset:/g\n", V1 "/g/cpu.cfs_quota_us", "250000\n", V1 "/g/cpu.cfs_period_us", "100000\n"}},
        {8, {GROUP, "4:cpu:/g\n", V1 "/g/cpu.cfs_quota_us", "-1\n", V1 "/g/cpu.cfs_period_us", "100000\n"}},
        {8, {GROUP, "4:cpu:/g\n", V1 "/g/cpu.cfs_quota_us", "250000\n"}},
        {2,
         {GROUP, "5\n4:cpu\n4:cpu:/g\n0::/a\n", V1 "/g/cpu.cfs_quota_us", "500000\n", V1 "/g/cpu.cfs_period_us",
          "100000\n", V2 "/a/cpu.max", "200000 100000\n"}},
    };
    begin("the quotas of control groups count, rounded up");
    kernel_cpus = 64;
    usable_cpus = 8;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        played = cases[i].files;
        size_t threads = heed_default_threads();
        check_that(threads == cases[i].expected, "%zu threads, not %zu, in case %zu", threads, cases[i].expected, i);
    }
    played = NULL;
    usable_cpus = 1;
    kernel_cpus = 0;
    end();
}

static void test_cpus(void)
{
    begin("the affinity counts on kernels for any number of CPUs");
    for (kernel_cpus = 64; kernel_cpus <= 65536; kernel_cpus *= 2)
        check_that(heed_default_threads() == 1, "%zu threads on one CPU of %zu", heed_default_threads(), kernel_cpus);
    static const char *const no_files[] = {NULL};
    played = no_files;
    kernel_cpus = (size_t)1 << 22; /* none of that size, so that all CPUs are taken to be allowed */
    CHECK(heed_default_threads() == (size_t)sysconf(_SC_NPROCESSORS_ONLN));
    played = NULL;
    kernel_cpus = 0;
    CHECK(heed_default_threads() >= 1);
    end();
    test_quotas();
}
#else
static void test_cpus(void)
{
    skip("there is none, or of one size only", "the affinity counts on kernels for any number of CPUs");
    skip("nothing plays other CPUs", "the quotas of control groups count, rounded up");
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
    test_limits();
    test_all_modes();
    test_cpus();
    return finish();
}
