/* SPDX-License-Identifier: MIT
 * heed_embed: each token is the sum of the rows it selects, one from every table; heed_embed_layernorm
 * normalises it at once.
 */
#include "rows.h"

#define MOST_TABLES 8

/* Tokens that are summed before they are normalised: they stay in the first cache, or, where rows of a norm go in
 * turns, of which a few begin and end alone, in the second. */
#define TOKENS_AT_ONCE 4
#define TOKENS_IN_TURNS 32

struct embedding {
    const struct heed_kernels *kernels;
    size_t n_tables, cols, sequences, ld_dst;
    const heed_embedding_table *tables;
    const size_t *offsets;
    float *dst;                        /* of the sums */
    const struct heed_norm_task *norm; /* of all rows; or NULL */
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

static void sum_tokens(const struct embedding *e, size_t first, size_t count)
{
    const float *rows[MOST_TABLES];
    for (size_t t = first; t < first + count; t++) {
        for (size_t i = 0; i < e->n_tables; i++)
            rows[i] = e->tables[i].table + selected_row(e, &e->tables[i], t) * e->tables[i].ld;
        e->kernels->sum_rows(e->n_tables, rows, e->cols, e->dst + t * e->ld_dst);
    }
}

static void normalize_tokens(const struct embedding *e, size_t first, size_t count)
{
    struct heed_norm_task task = heed_norm_rows(e->norm, first, count);
    e->kernels->layernorm(&task);
}

static void embed_tokens(const void *arg, size_t first, size_t count)
{
    const struct embedding *e = arg;
    size_t step = !e->norm ? count : e->norm->wide_core ? TOKENS_IN_TURNS : TOKENS_AT_ONCE, end = first + count;
    for (size_t t = first; t < end; t += step) {
        size_t n = end - t < step ? end - t : step;
        sum_tokens(e, t, n);
        if (e->norm)
            normalize_tokens(e, t, n);
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
        if (heed_plus(table->first, heed_sequence_length(s, b)) > table->rows)
            return HEED_ERR_INDEX;
    return HEED_OK;
}

/* What the caller selects; the outputs are declared after it. */
static heed_status check_selection(struct heed_operands *operands, size_t n, size_t cols, size_t n_tables,
                                   const heed_embedding_table *tables, const struct heed_sequences *ragged)
{
    size_t rows = 0;
    heed_require(operands, n_tables > 0 && n_tables <= MOST_TABLES, HEED_ERR_VALUE);
    heed_require(operands, tables != NULL, HEED_ERR_NULL);
    if (operands->status == HEED_OK)
        heed_fail(operands, heed_sequences_check(ragged, false, &rows));
    if (operands->status == HEED_OK)
        heed_require(operands, rows == n && (!ragged->offsets || ragged->offsets[0] == 0), HEED_ERR_SHAPE);
    for (size_t i = 0; operands->status == HEED_OK && n > 0 && i < n_tables; i++) {
        heed_read(operands, tables[i].table, sizeof(float), tables[i].rows, cols, tables[i].ld, 0);
        heed_read_optional(operands, tables[i].ids, sizeof(int32_t), 1, n, n, 0);
        if (operands->status == HEED_OK)
            heed_fail(operands, tables[i].ids ? check_ids(&tables[i], n) : check_positions(&tables[i], ragged));
    }
    if (operands->status == HEED_OK)
        heed_read_offsets(operands, ragged);
    return operands->status;
}

heed_status heed_embed(const heed_context *context, size_t n, size_t cols, size_t n_tables,
                       const heed_embedding_table *tables, size_t sequences, const size_t *offsets, float *dst,
                       size_t ld_dst)
{
    struct heed_context fallback;
    const struct heed_context *c;
    const struct heed_sequences ragged = {offsets ? sequences : 1, n, offsets};
    struct heed_operands operands;
    heed_operands_begin(&operands, heed_context_resolve(context, &fallback, &c));
    check_selection(&operands, n, cols, n_tables, tables, &ragged);
    heed_write(&operands, dst, sizeof *dst, n, cols, ld_dst, 0);
    heed_status status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || n == 0 || cols == 0)
        return status;
    const struct embedding e = {c->kernels, n_tables, cols, sequences, ld_dst, tables, offsets, dst, NULL};
    heed_run_rows(c, n, cols, (double)n_tables * HEED_MOVE_WORK, embed_tokens, &e);
    return HEED_OK;
}

heed_status heed_embed_layernorm(const heed_context *context, size_t n, size_t cols, size_t n_tables,
                                 const heed_embedding_table *tables, size_t sequences, const size_t *offsets,
                                 const heed_layernorm_options *options, float *dst, size_t ld_dst)
{
    struct heed_context fallback;
    const struct heed_context *c;
    const struct heed_sequences ragged = {offsets ? sequences : 1, n, offsets};
    heed_layernorm_options o;
    struct heed_operands operands;
    heed_operands_begin(&operands, heed_context_resolve(context, &fallback, &c));
    if (operands.status == HEED_OK)
        heed_fail(&operands, heed_layernorm_options_read(&o, options));
    if (check_selection(&operands, n, cols, n_tables, tables, &ragged) != HEED_OK)
        return operands.status;
    heed_read_optional(&operands, o.scale, sizeof(float), n ? 1 : 0, cols, cols, 0);
    heed_read_optional(&operands, o.shift, sizeof(float), n ? 1 : 0, cols, cols, 0);
    heed_require(&operands, heed_eps_is_valid(o.eps) && !o.residual, HEED_ERR_VALUE);
    heed_write_optional(&operands, o.sum, sizeof(float), n, cols, o.ld_sum, 0);
    heed_write_optional(&operands, o.mean, sizeof(float), 1, cols ? n : 0, cols ? n : 0, 0);
    heed_write_optional(&operands, o.inverse_deviation, sizeof(float), 1, cols ? n : 0, cols ? n : 0, 0);
    heed_write(&operands, dst, sizeof *dst, n, cols, ld_dst, 0);
    heed_status status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || n == 0 || cols == 0)
        return status;
    float *sum = o.sum ? o.sum : dst;
    size_t ld_sum = o.sum ? o.ld_sum : ld_dst;
    o.sum = NULL; /* it is written beforehand */
    struct heed_norm_task norm = heed_norm_task_of(n, cols, sum, ld_sum, &o, dst, ld_dst);
    norm.write_ahead = heed_write_ahead(c);
    norm.wide_core = c->wide_core;
    const struct embedding e = {c->kernels, n_tables, cols, sequences, ld_sum, tables, offsets, sum, &norm};
    heed_run_rows(c, n, cols, (double)n_tables * HEED_MOVE_WORK + HEED_NORM_WORK, embed_tokens, &e);
    return HEED_OK;
}
