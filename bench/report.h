/* SPDX-License-Identifier: MIT
 * Results: a table for people on standard output, and CSV.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "shape.h"
#include "target.h"

struct row {
    const char *suite;
    char shape[SHAPE_TEXT];
    const char *isa;
    size_t threads;
    const char *impl;
    double seconds, rate;
    const char *unit, *limit;
    double percent; /* of the limit */
};

/* Rows of one shape, instruction set and thread count follow one another. */
struct report {
    bool has_csv;
    struct target csv;
    struct row *rows;
    size_t count, capacity;
    size_t samples, discarded;
};

/* csv NULL: only the table; "-": CSV on standard output, and the table on standard error. false after a message, here
 * and below. */
bool report_open(struct report *report, const char *csv);

/* A line "# ..." in the table. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void report_comment(const char *format, ...);

bool report_add(struct report *report, const struct row *row);

bool report_is_empty(const struct report *report);

/* Says on standard error, if that is a terminal, what is measured now: the first one is 1. */
void report_progress(size_t which, size_t of, const char *shape, size_t threads);

/* Counts samples, and those that were discarded because the machine was slow. */
void report_samples(struct report *report, size_t samples, size_t discarded);

/* The geometric mean and the worst shape of each implementation; of heed so many of the worst shapes,
 * against the limit and against the best peer. false after a message. */
bool report_summary(const struct report *report, size_t worst);

/* Gives the CSV file its name. */
bool report_commit(struct report *report);

/* Leaves no file. Also after report_commit. */
void report_free(struct report *report);

#endif
