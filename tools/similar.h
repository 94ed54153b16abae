/* SPDX-License-Identifier: MIT
 * Tables of cosines: the lines most similar to one text, and every line with every other. */
#ifndef TOOLS_SIMILAR_H
#define TOOLS_SIMILAR_H

#include "output.h"

#include <heed.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* More lines than that do not make a table that anyone can read. */
#define SIMILARITY_LINES_MAX 100

struct ranked_line {
    float score;
    size_t number;
    char *text;
};

/* The best lines so far. Set context, top, query and cols; the rest starts as 0. */
struct ranking {
    const heed_context *context;
    size_t top;
    float *query; /* [cols]; ranking_start gives it length 1 */
    size_t cols;
    float *unit; /* [cols], the row at hand with length 1 */
    struct ranked_line *lines;
    size_t count, capacity;
};

/* false after a message */
bool ranking_start(struct ranking *ranking);
bool ranking_add(struct ranking *ranking, const struct row *row);

void ranking_print(struct ranking *ranking, FILE *stream);
void ranking_free(struct ranking *ranking);

/* The rows of the table. Set context and cols; the rest starts as 0. */
struct similarity {
    const heed_context *context;
    size_t cols, count, capacity;
    float *rows; /* [count][cols], each of length 1 */
    char *texts[SIMILARITY_LINES_MAX];
};

bool similarity_add(struct similarity *similarity, const struct row *row);
bool similarity_print(struct similarity *similarity, FILE *stream);
void similarity_free(struct similarity *similarity);

#endif
