/* SPDX-License-Identifier: MIT
 * A line that says how far the work is, where someone can see it. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
    bool enabled;
    double started, updated; /* seconds */
};

/* Seconds of a clock that never goes back. */
double progress_clock(void);

/* Nothing is shown if quiet, if standard error is no terminal, or in the first second. The line is one
 * of diag_show. */
void progress_start(struct progress *progress, bool quiet);
void progress_update(struct progress *progress, size_t lines);

#endif
