/* SPDX-License-Identifier: MIT
 * Tests of the threads of heed-embed. Prints TAP. */
#include "config.h"

#include "../tools/diag.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static size_t threads_left = SIZE_MAX;

static int limited_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    if (threads_left == 0)
        return EAGAIN;
    threads_left--;
    return pthread_create(thread, attributes, start, argument);
}

/* The pool itself, on a system that gives threads_left threads. */
#define pthread_create limited_create
#include "../tools/pool.c"
#undef pthread_create

#define WORKERS_MAX 16
#define LARGE 100000
#define ROUNDS 3000
#define PATIENCE 20 /* seconds */

static int count, failures;

static void check(bool passed, const char *name, size_t workers)
{
    count++;
    failures += !passed;
    printf("%sok %d - %zu workers: %s\n", passed ? "" : "not ", count, workers, name);
}

/* What the tasks of one run saw. */
struct record {
    size_t workers, n_tasks;
    pthread_t caller;
    atomic_int wrong;              /* tasks that were called as they must not be */
    atomic_bool busy[WORKERS_MAX]; /* workers inside a task */
    unsigned char times[LARGE];    /* how often each index came: plain, as results of kernels are */
    atomic_size_t others, meeting; /* tasks not on the caller, tasks that wait for each other */
};

static struct record record;

static void note(void *arg, size_t index, size_t worker)
{
    struct record *r = arg;
    if (index >= r->n_tasks || worker >= r->workers || atomic_exchange(&r->busy[worker], true)) {
        r->wrong++;
        return;
    }
    if ((worker == 0) != (pthread_equal(pthread_self(), r->caller) != 0))
        r->wrong++;
    if (index % 16 == 0)
        sched_yield();
    r->times[index]++;
    atomic_store(&r->busy[worker], false);
}

static void start_record(size_t workers, size_t n_tasks)
{
    record.workers = workers;
    record.n_tasks = n_tasks;
    record.caller = pthread_self();
    record.wrong = 0;
    record.others = record.meeting = 0;
    for (size_t i = 0; i < LARGE; i++)
        record.times[i] = 0;
}

/* Whether each index came once, and none beyond. */
static bool every_index_once(void)
{
    bool passed = record.wrong == 0;
    for (size_t i = 0; i < LARGE; i++)
        passed = passed && record.times[i] == (i < record.n_tasks ? 1 : 0);
    return passed;
}

static void test_size(struct pool *pool, size_t workers, size_t n_tasks, const char *name)
{
    start_record(workers, n_tasks);
    pool_run(pool, n_tasks, note, &record);
    check(every_index_once(), name, workers);
}

/* Runs of changing size one after the other: what a thread that wakes late finds is the next run. */
static void test_rounds(struct pool *pool, size_t workers)
{
    bool passed = true;
    start_record(workers, 0);
    for (size_t round = 0; round < ROUNDS; round++) {
        record.n_tasks = round % 23;
        pool_run(pool, record.n_tasks, note, &record);
        for (size_t i = 0; i < 23; i++) {
            passed = passed && record.times[i] == (i < record.n_tasks ? 1 : 0);
            record.times[i] = 0;
        }
    }
    check(passed && record.wrong == 0, "many runs", workers);
}

/* Waits for the other workers, which a kernel's task may not do. */
static void meet(void *arg, size_t index, size_t worker)
{
    struct record *r = arg;
    time_t end = time(NULL) + PATIENCE;
    (void)index;
    if (worker != 0)
        r->others++;
    r->meeting++;
    while (r->meeting < r->workers && time(NULL) < end)
        sched_yield();
}

static void test_together(struct pool *pool, size_t workers)
{
    start_record(workers, workers);
    pool_run(pool, workers, meet, &record);
    check(record.others == workers - 1, "all of them work", workers);
}

static void test_pool(size_t workers)
{
    struct pool *pool = pool_create(workers);
    check(pool && pool_workers(pool) == workers, "all threads start", workers);
    if (!pool)
        return;
    test_size(pool, workers, 0, "no task");
    test_size(pool, workers, 1, "1 task");
    test_size(pool, workers, 2, "2 tasks");
    test_size(pool, workers, 5, "5 tasks");
    test_size(pool, workers, 1000, "1000 tasks");
    test_size(pool, workers, LARGE, "a large number of tasks");
    test_rounds(pool, workers);
    test_together(pool, workers);
    pool_destroy(pool);
}

static void test_few_threads(size_t wanted, size_t given)
{
    threads_left = given;
    struct pool *pool = pool_create(wanted);
    threads_left = SIZE_MAX;
    check(pool && pool_workers(pool) == given + 1, "all that the system gives", given + 1);
    if (!pool)
        return;
    test_size(pool, given + 1, 1000, "1000 tasks");
    test_together(pool, given + 1);
    pool_destroy(pool);
}

static void test_short_life(void)
{
    bool passed = true;
    for (int i = 0; i < 200; i++) {
        struct pool *pool = pool_create(4);
        passed = passed && pool;
        pool_destroy(pool);
    }
    pool_destroy(NULL);
    check(passed, "pools that never run", 4);
}

/* Tasks not on the caller which a signal could interrupt are counted as wrong. */
static void meet_without_signals(void *arg, size_t index, size_t worker)
{
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    if (worker != 0 && !(sigismember(&mask, SIGHUP) && sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM)))
        record.wrong++;
    meet(arg, index, worker);
}

/* A signal finds the main thread, whose mask says when it may. */
static void test_signals(void)
{
    sigset_t mask;
    struct pool *pool = pool_create(4);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    check(!sigismember(&mask, SIGTERM), "the caller takes signals", 4);
    start_record(4, 4);
    if (pool)
        pool_run(pool, 4, meet_without_signals, &record);
    check(record.others == 3 && record.wrong == 0, "the others take none", 4);
    pool_destroy(pool);
}

int main(void)
{
    static const size_t workers[] = {1, 2, 3, 8, WORKERS_MAX};
    diag_set_program("test_pool");
    for (size_t i = 0; i < sizeof workers / sizeof *workers; i++)
        test_pool(workers[i]);
    test_few_threads(8, 0);
    test_few_threads(8, 1);
    test_few_threads(8, 4);
    test_short_life();
    test_signals();
    printf("1..%d\n", count);
    return failures ? 1 : 0;
}
