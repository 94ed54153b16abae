/* SPDX-License-Identifier: MIT
 * Workers whose tasks run in turn.
 */
#include "config.h"

#include "turns.h"

#include "memory.h"
#include "timing.h"

#include <stdlib.h>

/* As heed shares tasks: a run of neighbours for each worker, who then takes from the next ones. */
struct worker {
    size_t next, end;
    double busy;
};

static struct {
    struct worker *workers;
    size_t count;
    double saved;
} turns;

static struct worker *least_busy(size_t count)
{
    struct worker *least = turns.workers;
    for (size_t w = 1; w < count; w++)
        if (turns.workers[w].busy < least->busy)
            least = &turns.workers[w];
    return least;
}

/* The share that a worker takes its next task from, NULL if all are empty. */
static struct worker *share_of(const struct worker *worker, size_t count)
{
    size_t own = (size_t)(worker - turns.workers);
    for (size_t s = 0; s < count; s++) {
        struct worker *share = &turns.workers[(own + s) % count];
        if (share->next < share->end)
            return share;
    }
    return NULL;
}

static double busiest(size_t count)
{
    double most = 0.0;
    for (size_t w = 0; w < count; w++)
        most = turns.workers[w].busy > most ? turns.workers[w].busy : most;
    return most;
}

/* Each task on the worker that would be free for it first. */
static void run_in_turn(void *host, size_t n_tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg)
{
    size_t count = turns.count < n_tasks ? turns.count : n_tasks;
    (void)host;
    for (size_t w = 0, begin = 0; w < count; w++) {
        turns.workers[w] = (struct worker){.next = begin};
        begin += (n_tasks - begin) / (count - w);
        turns.workers[w].end = begin;
    }
    double begin = timing_now(), before = begin;
    struct worker *worker = turns.workers, *share;
    while ((share = share_of(worker, count)) != NULL) {
        task(arg, share->next++, (size_t)(worker - turns.workers));
        double now = timing_now();
        worker->busy += now - before;
        worker = least_busy(count);
        before = timing_now();
    }
    turns.saved += before - begin - busiest(count);
}

bool turns_open(size_t workers, heed_host *host)
{
    turns.workers = memory_aligned_array(workers, sizeof *turns.workers);
    turns.count = workers;
    *host = (heed_host){.run = run_in_turn};
    return turns.workers != NULL;
}

void turns_close(void)
{
    free(turns.workers);
    turns.workers = NULL;
}

double turns_saved(void)
{
    double saved = turns.saved;
    turns.saved = 0.0;
    return saved;
}
