/* SPDX-License-Identifier: MIT
 * A small pool of threads, for the library's HEED_EXECUTOR_HOST. */
#ifndef TOOLS_POOL_H
#define TOOLS_POOL_H

#include <stddef.h>

struct pool;

/* A pool of so many workers, one of which is the thread that calls pool_run. There are fewer where
 * the system gives no more threads. NULL after a message. */
struct pool *pool_create(size_t workers);

/* How many workers there are, at least 1. */
size_t pool_workers(const struct pool *pool);

/* heed_host.run for heed_host.host = pool. One thread at a time may call it, and no task. */
void pool_run(void *pool, size_t n_tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg);

/* Ends the threads. pool may be NULL. */
void pool_destroy(struct pool *pool);

#endif
