/* SPDX-License-Identifier: MIT
 * Results: a table for people, and CSV.
 */
#include "config.h"

#include "report.h"

#include "diag.h"
#include "memory.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* There is one standard output, whatever reports there are. */
static bool csv_is_standard_output;

static FILE *table(void)
{
    return csv_is_standard_output ? stderr : stdout;
}

bool report_open(struct report *report, const char *csv)
{
    *report = (struct report){.has_csv = csv != NULL};
    if (!csv)
        return true;
    if (!target_open(&report->csv, strcmp(csv, "-") == 0 ? NULL : csv)) {
        report->has_csv = false;
        return false;
    }
    csv_is_standard_output = report->csv.stream == stdout;
    fputs("suite,shape,isa,threads,impl,seconds,rate,unit,limit,percent\n", report->csv.stream);
    return target_check(&report->csv);
}

void report_comment(const char *format, ...)
{
    va_list arguments;
    fputs("# ", table());
    va_start(arguments, format);
    vfprintf(table(), format, arguments);
    va_end(arguments);
    putc('\n', table());
}

static bool same_group(const struct row *a, const struct row *b)
{
    return strcmp(a->shape, b->shape) == 0 && strcmp(a->isa, b->isa) == 0 && a->threads == b->threads;
}

static bool same_series(const struct row *a, const struct row *b)
{
    return strcmp(a->impl, b->impl) == 0 && strcmp(a->isa, b->isa) == 0 && a->threads == b->threads;
}

void report_progress(size_t which, size_t of, const char *shape, size_t threads)
{
    if (isatty(STDERR_FILENO) == 1)
        diag_show("%zu of %zu: %s, threads: %zu", which, of, shape, threads);
}

static void print_row(const struct report *report, const struct row *row)
{
    if (report->count == 1)
        fprintf(table(), "%-26s %-10s %7s %-11s %12s %9s %-8s %8s  %s\n", "shape", "isa", "threads", "impl", "us",
                "rate", "unit", "% limit", "limit");
    fprintf(table(), "%-26s %-10s %7zu %-11s %12.3f %9.2f %-8s %8.1f  %s\n", row->shape, row->isa, row->threads,
            row->impl, 1e6 * row->seconds, row->rate, row->unit, row->percent, row->limit);
}

static void write_row(FILE *stream, const struct row *row)
{
    fprintf(stream, "%s,%s,%s,%zu,%s,%.6g,%.6g,%s,%s,%.6f\n", row->suite, row->shape, row->isa, row->threads, row->impl,
            row->seconds, row->rate, row->unit, row->limit, row->percent);
}

bool report_add(struct report *report, const struct row *row)
{
    struct row *rows = memory_grow(report->rows, &report->capacity, report->count + 1, sizeof *rows);
    if (!rows)
        return false;
    report->rows = rows;
    rows[report->count++] = *row;
    diag_clear();
    print_row(report, row);
    if (fflush(stdout) != 0) {
        diag_print("standard output: %s", strerror(errno));
        return false;
    }
    if (!report->has_csv)
        return true;
    write_row(report->csv.stream, row);
    return target_check(&report->csv);
}

bool report_is_empty(const struct report *report)
{
    return report->count == 0;
}

void report_samples(struct report *report, size_t samples, size_t discarded)
{
    report->samples += samples;
    report->discarded += discarded;
}

/* ---- summary ------------------------------------------------------------------------------- */

static bool is_first_of_series(const struct report *report, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (same_series(&report->rows[i], &report->rows[index]))
            return false;
    return true;
}

static const char *thread_word(const struct row *row)
{
    return row->threads == 1 ? "thread" : "threads";
}

static void summarize_series(const struct report *report, const struct row *first)
{
    const struct row *worst = first;
    double logs = 0.0;
    size_t count = 0;
    for (size_t i = 0; i < report->count; i++) {
        const struct row *row = &report->rows[i];
        if (!same_series(row, first))
            continue;
        logs += log(row->percent);
        count++;
        if (row->percent < worst->percent)
            worst = row;
    }
    report_comment("%s, %s, %zu %s: geometric mean %.1f %% of the limit over %zu shapes, worst %.1f %% at %s",
                   first->impl, first->isa, first->threads, thread_word(first), exp(logs / (double)count), count,
                   worst->percent, worst->shape);
}

static bool is_own(const char *impl)
{
    return strcmp(impl, "heed") == 0 || strcmp(impl, "unfused") == 0;
}

/* The best row of the group but heed's own; NULL if heed was alone. */
static const struct row *best_peer(const struct report *report, const struct row *heed)
{
    const struct row *best = NULL;
    for (size_t i = 0; i < report->count; i++) {
        const struct row *row = &report->rows[i];
        if (!is_own(row->impl) && same_group(row, heed) && (!best || row->percent > best->percent))
            best = row;
    }
    return best;
}

/* A row of heed. score: percent of the limit, or times the best peer. */
struct cell {
    const struct row *row, *peer;
    double score;
};

static int compare_cells(const void *a, const void *b)
{
    double x = ((const struct cell *)a)->score, y = ((const struct cell *)b)->score;
    return (x > y) - (x < y);
}

/* Those of a series, worst first; their number. Against peers only those that have one. */
static size_t collect_cells(const struct report *report, const struct row *first, bool peers, struct cell *cells)
{
    size_t count = 0;
    for (size_t i = 0; i < report->count; i++) {
        const struct row *row = &report->rows[i];
        const struct row *peer = peers && same_series(row, first) ? best_peer(report, row) : NULL;
        if (same_series(row, first) && (peer || !peers))
            cells[count++] = (struct cell){row, peer, peer ? row->percent / peer->percent : row->percent};
    }
    qsort(cells, count, sizeof *cells, compare_cells);
    return count;
}

static void compare_series(const struct cell *cells, size_t count)
{
    double logs = 0.0;
    for (size_t i = 0; i < count; i++)
        logs += log(cells[i].score);
    if (count)
        report_comment("heed, %s, %zu %s: %.3f times the best peer in the geometric mean, worst %.3f at %s (%s)",
                       cells->row->isa, cells->row->threads, thread_word(cells->row), exp(logs / (double)count),
                       cells->score, cells->row->shape, cells->peer->impl);
}

static void list_worst(const struct cell *cells, size_t count, size_t worst)
{
    for (size_t i = 0; i < count && i < worst; i++)
        if (cells[i].peer)
            report_comment("  %.3f times %s at %s", cells[i].score, cells[i].peer->impl, cells[i].row->shape);
        else
            report_comment("  %.1f %% of %s at %s", cells[i].score, cells[i].row->limit, cells[i].row->shape);
}

static void summarize_heed(const struct report *report, const struct row *first, size_t worst, struct cell *cells)
{
    size_t count = collect_cells(report, first, false, cells);
    list_worst(cells, count, worst);
    count = collect_cells(report, first, true, cells);
    compare_series(cells, count);
    list_worst(cells, count, worst);
}

bool report_summary(const struct report *report, size_t worst)
{
    struct cell *cells = memory_array(report->count, sizeof *cells);
    if (!cells)
        return false;
    if (report->samples)
        report_comment("%zu of %zu samples discarded: beside them the limit did not reach 97 %% of the nominal one",
                       report->discarded, report->samples);
    for (size_t i = 0; i < report->count; i++) {
        if (!is_first_of_series(report, i))
            continue;
        summarize_series(report, &report->rows[i]);
        if (strcmp(report->rows[i].impl, "heed") == 0)
            summarize_heed(report, &report->rows[i], worst, cells);
    }
    free(cells);
    return true;
}

bool report_commit(struct report *report)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        diag_print("standard output: %s", strerror(errno));
        return false;
    }
    bool committed = !report->has_csv || csv_is_standard_output || target_commit(&report->csv);
    report->has_csv = false;
    return committed;
}

void report_free(struct report *report)
{
    diag_clear();
    if (report->has_csv)
        target_abandon(&report->csv);
    free(report->rows);
    *report = (struct report){0};
}
