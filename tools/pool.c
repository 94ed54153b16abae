/* SPDX-License-Identifier: MIT
 * A small pool of threads, for the library's HEED_EXECUTOR_HOST. */
#include "config.h"

#include "memory.h"
#include "pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

typedef void pool_task(void *arg, size_t index, size_t worker);

struct worker {
    struct pool *pool;
    size_t index;
    pthread_t thread;
};

/* The lock guards all that changes, but tasks are taken from next without it. */
struct pool {
    pthread_mutex_t lock;
    pthread_cond_t begun, finished;
    pool_task *task;
    void *arg;
    size_t n_tasks;
    atomic_size_t next; /* the first task that nobody has taken */
    size_t busy;        /* threads that are at work, the caller of pool_run not counted */
    bool ending;
    size_t workers;
    struct worker *threads; /* worker 0 is the caller and has none */
};

static void take_tasks(struct pool *pool, size_t worker)
{
    size_t index;
    while ((index = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed)) < pool->n_tasks)
        pool->task(pool->arg, index, worker);
}

static bool tasks_are_left(const struct pool *pool)
{
    return atomic_load_explicit(&pool->next, memory_order_relaxed) < pool->n_tasks;
}

/* Only threads that have taken up work are waited for: one that the system does not wake in time, as
 * on a busy machine, delays nobody. That nobody spins leaves the CPUs to those who have work. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    struct pool *pool = worker->pool;
    pthread_mutex_lock(&pool->lock);
    while (!pool->ending) {
        if (!tasks_are_left(pool)) {
            pthread_cond_wait(&pool->begun, &pool->lock);
            continue;
        }
        pool->busy++;
        pthread_mutex_unlock(&pool->lock);
        take_tasks(pool, worker->index);
        pthread_mutex_lock(&pool->lock);
        if (--pool->busy == 0)
            pthread_cond_signal(&pool->finished);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void start_threads(struct pool *pool, size_t workers)
{
    /* Signals are for the main thread, whose mask decides when its handler may run. SIGBUS alone is for
     * the thread that reads past the end of a file, and ends the process without a handler if blocked. */
    sigset_t others, before;
    sigfillset(&others);
    sigdelset(&others, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    for (; pool->workers < workers; pool->workers++) {
        struct worker *worker = &pool->threads[pool->workers - 1];
        *worker = (struct worker){.pool = pool, .index = pool->workers};
        if (pthread_create(&worker->thread, NULL, work, worker) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct pool *pool_create(size_t workers)
{
    struct pool *pool = memory_array(1, sizeof *pool);
    struct worker *threads = pool ? memory_array(workers, sizeof *threads) : NULL;
    if (!threads) {
        free(pool);
        return NULL;
    }
    *pool = (struct pool){
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .begun = PTHREAD_COND_INITIALIZER,
        .finished = PTHREAD_COND_INITIALIZER,
        .workers = 1,
        .threads = threads,
    };
    start_threads(pool, workers);
    return pool;
}

size_t pool_workers(const struct pool *pool)
{
    return pool->workers;
}

static void begin(struct pool *pool, size_t n_tasks, pool_task *task, void *arg)
{
    pthread_mutex_lock(&pool->lock);
    pool->task = task;
    pool->arg = arg;
    pool->n_tasks = n_tasks;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 1; i < n_tasks && i < pool->workers; i++)
        pthread_cond_signal(&pool->begun);
}

static void await_others(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    while (pool->busy)
        pthread_cond_wait(&pool->finished, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void pool_run(void *host, size_t n_tasks, pool_task *task, void *arg)
{
    struct pool *pool = host;
    begin(pool, n_tasks, task, arg);
    take_tasks(pool, 0);
    await_others(pool);
}

void pool_destroy(struct pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_broadcast(&pool->begun);
    for (size_t i = 1; i < pool->workers; i++)
        pthread_join(pool->threads[i - 1].thread, NULL);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->begun);
    pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}
