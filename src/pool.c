/* SPDX-License-Identifier: MIT
 * heed_pool: one row for each sequence.
 */
#include "rows.h"

struct pool {
    const struct heed_kernels *kernels;
    heed_pooling pooling;
    const size_t *offsets;
    size_t cols, ld_src, ld_dst;
    const float *src;
    float *dst;
};

static void pool_sequences(const void *arg, size_t first, size_t count)
{
    const struct pool *p = arg;
    for (size_t s = first; s < first + count; s++) {
        size_t rows = p->offsets[s + 1] - p->offsets[s];
        const float *src = rows ? p->src + p->offsets[s] * p->ld_src : NULL;
        float *dst = p->dst + s * p->ld_dst;
        if (p->pooling == HEED_POOLING_LAST && rows > 0)
            src += (rows - 1) * p->ld_src;
        if ((p->pooling == HEED_POOLING_FIRST || p->pooling == HEED_POOLING_LAST) && rows > 0)
            p->kernels->sum_rows(1, &src, p->cols, dst);
        else if (p->pooling == HEED_POOLING_MAX && rows > 0)
            p->kernels->max_rows(rows, p->cols, src, p->ld_src, dst);
        else
            p->kernels->mean_rows(rows, p->cols, src, p->ld_src, rows ? 1.0f / (float)rows : 0.0f, dst);
    }
}

heed_status heed_pool(const heed_context *context, heed_pooling pooling, size_t sequences, const size_t *offsets,
                      size_t cols, const float *src, size_t ld_src, float *dst, size_t ld_dst)
{
    struct heed_context fallback;
    const struct heed_context *c;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    if (status != HEED_OK)
        return status;
    if (pooling != HEED_POOLING_FIRST && pooling != HEED_POOLING_MEAN && pooling != HEED_POOLING_MAX &&
        pooling != HEED_POOLING_LAST)
        return HEED_ERR_ENUM;
    if (sequences > 0 && !offsets)
        return HEED_ERR_NULL;
    const struct heed_sequences ragged = {sequences, 0, offsets};
    size_t rows = 0;
    status = sequences > 0 ? heed_sequences_check(&ragged, false, &rows) : HEED_OK;
    struct heed_operands operands;
    heed_operands_begin(&operands, status);
    if (sequences > 0)
        heed_read_offsets(&operands, &ragged);
    if (rows > 0 && cols > 0)
        heed_read(&operands, heed_row_at(&operands, src, offsets[0], ld_src), sizeof *src, rows, cols, ld_src, 0);
    heed_write(&operands, dst, sizeof *dst, sequences, cols, ld_dst, 0);
    status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || sequences == 0 || cols == 0)
        return status;
    struct pool p = {c->kernels, pooling, offsets, cols, ld_src, ld_dst, src, dst};
    heed_run_rows(c, sequences, cols * (rows / sequences + 1), HEED_MOVE_WORK, pool_sequences, &p);
    return HEED_OK;
}
