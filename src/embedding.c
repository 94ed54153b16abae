/* SPDX-License-Identifier: MIT
 * heed_embed: each token is the sum of the rows it selects, one from every table.
 */
#include "rows.h"

#define MOST_TABLES 8

struct embedding {
    const struct heed_kernels *kernels;
    size_t n_tables, cols, sequences, ld_dst;
    const heed_embedding_table *tables;
    const size_t *offsets;
    float *dst;
};

/* Where the sequence of token t begins: the last offset that is not larger. */
static size_t sequence_begin(const struct embedding *e, size_t t)
{
    size_t low = 0, high = e->sequences;
    if (!e->offsets)
        return 0;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (e->offsets[middle] <= t)
            low = middle;
        else
            high = middle;
    }
    return e->offsets[low];
}

static size_t selected_row(const struct embedding *e, const heed_embedding_table *table, size_t t)
{
    return table->ids ? (size_t)table->ids[t] : table->first + (t - sequence_begin(e, t));
}

static void embed_tokens(const void *arg, size_t first, size_t count)
{
    const struct embedding *e = arg;
    const float *rows[MOST_TABLES];
    for (size_t t = first; t < first + count; t++) {
        for (size_t i = 0; i < e->n_tables; i++)
            rows[i] = e->tables[i].table + selected_row(e, &e->tables[i], t) * e->tables[i].ld;
        e->kernels->sum_rows(e->n_tables, rows, e->cols, e->dst + t * e->ld_dst);
    }
}

static heed_status check_ids(const heed_embedding_table *table, size_t n)
{
    for (size_t t = 0; t < n; t++)
        if (table->ids[t] < 0 || (size_t)table->ids[t] >= table->rows)
            return HEED_ERR_INDEX;
    return HEED_OK;
}

/* The last position of the longest sequence lies in the table. */
static heed_status check_positions(const heed_embedding_table *table, const struct heed_sequences *s)
{
    for (size_t b = 0; b < s->batch; b++)
        if (heed_plus(table->first, heed_sequence_length(s, b)) > table->rows && heed_sequence_length(s, b) > 0)
            return HEED_ERR_INDEX;
    return HEED_OK;
}

heed_status heed_embed(const heed_context *context, size_t n, size_t cols, size_t n_tables,
                       const heed_embedding_table *tables, size_t sequences, const size_t *offsets, float *dst,
                       size_t ld_dst)
{
    struct heed_context fallback;
    const struct heed_context *c;
    const struct heed_sequences ragged = {offsets ? sequences : 1, n, offsets};
    size_t rows = 0;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    if (status == HEED_OK && (n_tables == 0 || n_tables > MOST_TABLES))
        status = HEED_ERR_VALUE;
    if (status == HEED_OK && !tables)
        status = HEED_ERR_NULL;
    if (status == HEED_OK)
        status = heed_sequences_check(&ragged, false, &rows);
    if (status == HEED_OK && (rows != n || (offsets && offsets[0] != 0)))
        status = HEED_ERR_SHAPE;
    struct heed_operands operands = {.status = status};
    for (size_t i = 0; operands.status == HEED_OK && n > 0 && i < n_tables; i++) {
        heed_read(&operands, tables[i].table, sizeof(float), tables[i].rows, cols, tables[i].ld, 0);
        heed_read_optional(&operands, tables[i].ids, sizeof(int32_t), 1, n, n, 0);
        if (operands.status == HEED_OK)
            heed_fail(&operands, tables[i].ids ? check_ids(&tables[i], n) : check_positions(&tables[i], &ragged));
    }
    heed_read_offsets(&operands, &ragged);
    heed_write(&operands, dst, sizeof *dst, n, cols, ld_dst, 0);
    status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || n == 0 || cols == 0)
        return status;
    struct embedding e = {c->kernels, n_tables, cols, sequences, ld_dst, tables, offsets, dst};
    heed_run_rows(c, n, cols, embed_tokens, &e);
    return HEED_OK;
}
