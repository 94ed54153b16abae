/* SPDX-License-Identifier: MIT
 * Writing embeddings, one per line of input: JSON lines, .npy or plain text. */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include "target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum output_format { FORMAT_JSONL, FORMAT_NPY, FORMAT_TEXT, FORMAT_TOKENS };

/* What one line of input became. */
struct row {
    size_t number;    /* of the line, from 1, over all of the input */
    const char *text; /* well-formed UTF-8 */
    size_t length;
    const int32_t *ids;
    size_t n_ids;
    const float *values; /* [cols], NULL for FORMAT_TOKENS */
    size_t cols;
};

struct output {
    struct target *target;
    enum output_format format;
    size_t rows, cols;
    FILE *spool; /* rows of an .npy file that cannot be rewound to write its header */
};

/* false after a message */
bool output_open(struct output *output, struct target *target, enum output_format format, size_t cols);
bool output_row(struct output *output, const struct row *row);

/* Completes the file, but leaves the target open. */
bool output_finish(struct output *output);
void output_close(struct output *output);

#endif
