/* SPDX-License-Identifier: MIT
 * A line that says how far the work is, where someone can see it. */
#include "config.h"

#include "diag.h"
#include "progress.h"

#include <time.h>
#include <unistd.h>

#define FIRST_AFTER 1.0 /* seconds */
#define INTERVAL 0.2

double progress_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_start(struct progress *progress, bool quiet)
{
    double now = progress_clock();
    *progress = (struct progress){!quiet && isatty(STDERR_FILENO), now, now};
}

void progress_update(struct progress *progress, size_t lines)
{
    double now = progress_clock(), elapsed = now - progress->started;
    if (!progress->enabled || elapsed < FIRST_AFTER || now - progress->updated < INTERVAL)
        return;
    progress->updated = now;
    diag_show("%zu lines, %.0f lines/s", lines, (double)lines / elapsed);
}
