/* SPDX-License-Identifier: MIT
 * Row operators share blocks of rows over threads.
 */
#ifndef HEED_ROWS_H
#define HEED_ROWS_H

#include "reading.h"

/* Runs block(arg, first, count) over all rows, in blocks of so many rows that a call is worth it, for one worker all at
 * once. An element takes as long as work_each multiply-adds. */
void heed_run_rows(const struct heed_context *context, size_t rows, size_t cols, double work_each,
                   void (*block)(const void *arg, size_t first, size_t count), const void *arg);

/* Whether rows are to be read in the order of memory, one after the other. */
bool heed_rows_in_order(const struct heed_context *context, size_t rows, size_t cols);

/* How many floats ahead of its writing a row kernel is to prefetch a line, 0 where the CPU does so itself. */
size_t heed_write_ahead(const struct heed_context *context);

/* The same, or HEED_PAST_CACHES for more than the last cache holds beside what is read, unless it is the same. */
size_t heed_write_far(const struct heed_context *context, size_t rows, size_t cols, bool in_place);

/* How many floats ahead rows without gaps, or their results, are to be prefetched into the second cache where both are
 * at least so many bytes: a CPU that prefetches by itself follows one run of addresses, not two in turn. Else 0. */
size_t heed_far_ahead(const struct heed_context *context, size_t rows, size_t cols, size_t least);

/* What the norms of rows are told; an RMSNorm has no shift and no mean. */
struct heed_norm_task heed_norm_task_of(size_t rows, size_t cols, const float *x, size_t ldx,
                                        const heed_layernorm_options *o, float *y, size_t ldy);

/* `count` rows of those of a task, from `first` on. */
struct heed_norm_task heed_norm_rows(const struct heed_norm_task *all, size_t first, size_t count);

/* The options that a caller gave, or the defaults. */
heed_status heed_layernorm_options_read(heed_layernorm_options *o, const heed_layernorm_options *given);

#endif
