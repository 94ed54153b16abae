/* SPDX-License-Identifier: MIT
 * More workers than there are CPUs: their tasks run in turn, and the clock says when the last worker would be done.
 */
#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H

#include <heed.h>
#include <stdbool.h>
#include <stddef.h>

/* For so many workers. false after a message. */
bool turns_open(size_t workers, heed_host *host);
void turns_close(void);

/* Seconds since the last call that the workers would have saved. */
double turns_saved(void);

#endif
