/* SPDX-License-Identifier: MIT
 * Tables of cosines: the lines most similar to one text, and every line with every other. */
#include "config.h"

#include "diag.h"
#include "memory.h"
#include "similar.h"

#include <stdlib.h>
#include <string.h>

static bool succeeded(heed_status status)
{
    if (status)
        diag_print("cosines: %s", heed_status_string(status));
    return !status;
}

static bool to_unit(const heed_context *context, size_t cols, const float *values, float *unit)
{
    return succeeded(heed_l2_normalize(context, 1, cols, 0.0f, values, cols, unit, cols));
}

/* Cosines of rows of length 1: scores[i][j] = a[i] . b[j]. */
static bool cosines(const heed_context *context, size_t rows_a, size_t rows_b, size_t cols, const float *a,
                    const float *b, float *scores)
{
    return succeeded(heed_matmul(context, HEED_NO_TRANSPOSE, HEED_TRANSPOSE, rows_a, rows_b, cols, 1.0f, a, cols, b,
                                 cols, 0.0f, scores, rows_b, NULL));
}

/* A copy of a line for a table: control characters become spaces. */
static char *printable(const struct row *row)
{
    char *text = memory_string(row->text, row->length);
    if (text)
        diag_replace_controls(text, row->length, ' ');
    return text;
}

/* ---- ranking ------------------------------------------------------------------------------- */

bool ranking_start(struct ranking *ranking)
{
    ranking->unit = memory_aligned_array(ranking->cols, sizeof *ranking->unit);
    return ranking->unit && to_unit(ranking->context, ranking->cols, ranking->query, ranking->query);
}

/* Best first; of equal scores, and of those that are no number and go last, the earlier line. */
static int compare_lines(const void *left, const void *right)
{
    const struct ranked_line *a = left, *b = right;
    bool a_nan = a->score != a->score, b_nan = b->score != b->score;
    if (a_nan != b_nan)
        return a_nan ? 1 : -1;
    if (a->score < b->score || a->score > b->score)
        return a->score > b->score ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

static void keep_best(struct ranking *ranking)
{
    if (ranking->count)
        qsort(ranking->lines, ranking->count, sizeof *ranking->lines, compare_lines);
    while (ranking->count > ranking->top)
        free(ranking->lines[--ranking->count].text);
}

bool ranking_add(struct ranking *ranking, const struct row *row)
{
    /* Sorting once in a while costs less than keeping the lines sorted. */
    if (ranking->count / 2 > ranking->top)
        keep_best(ranking);
    struct ranked_line line = {.number = row->number};
    if (!to_unit(ranking->context, ranking->cols, row->values, ranking->unit) ||
        !cosines(ranking->context, 1, 1, ranking->cols, ranking->query, ranking->unit, &line.score))
        return false;
    struct ranked_line *grown = memory_grow(ranking->lines, &ranking->capacity, ranking->count + 1, sizeof *grown);
    if (!grown)
        return false;
    ranking->lines = grown;
    line.text = printable(row);
    if (!line.text)
        return false;
    grown[ranking->count++] = line;
    return true;
}

void ranking_print(struct ranking *ranking, FILE *stream)
{
    keep_best(ranking);
    fprintf(stream, "cosine    line  text\n");
    for (size_t i = 0; i < ranking->count; i++) {
        const struct ranked_line *line = &ranking->lines[i];
        fprintf(stream, "%6.4f  %6zu  %s\n", (double)line->score, line->number, line->text);
    }
}

void ranking_free(struct ranking *ranking)
{
    for (size_t i = 0; i < ranking->count; i++)
        free(ranking->lines[i].text);
    free(ranking->lines);
    free(ranking->unit);
    free(ranking->query);
}

/* ---- every line with every other ----------------------------------------------------------- */

bool similarity_add(struct similarity *similarity, const struct row *row)
{
    if (similarity->count == SIMILARITY_LINES_MAX) {
        diag_print("--similarity is for at most %d lines", SIMILARITY_LINES_MAX);
        return false;
    }
    float *grown =
        memory_grow(similarity->rows, &similarity->capacity, similarity->count + 1, similarity->cols * sizeof *grown);
    if (!grown)
        return false;
    similarity->rows = grown;
    if (!to_unit(similarity->context, similarity->cols, row->values, grown + similarity->count * similarity->cols))
        return false;
    similarity->texts[similarity->count] = printable(row);
    return similarity->texts[similarity->count++] != NULL;
}

static void print_cosines(const struct similarity *similarity, const float *scores, FILE *stream)
{
    size_t count = similarity->count;
    fprintf(stream, "%4s", "");
    for (size_t j = 0; j < count; j++)
        fprintf(stream, " %6zu", j + 1);
    putc('\n', stream);
    for (size_t i = 0; i < count; i++) {
        fprintf(stream, "%4zu", i + 1);
        for (size_t j = 0; j < count; j++)
            fprintf(stream, " %6.3f", (double)scores[i * count + j]);
        fprintf(stream, "  %s\n", similarity->texts[i]);
    }
}

bool similarity_print(struct similarity *similarity, FILE *stream)
{
    size_t count = similarity->count;
    float *scores = memory_array(count, count * sizeof *scores);
    bool done = scores && cosines(similarity->context, count, count, similarity->cols, similarity->rows,
                                  similarity->rows, scores);
    if (done && count)
        print_cosines(similarity, scores, stream);
    free(scores);
    return done;
}

void similarity_free(struct similarity *similarity)
{
    for (size_t i = 0; i < similarity->count; i++)
        free(similarity->texts[i]);
    free(similarity->rows);
}
