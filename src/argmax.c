/* SPDX-License-Identifier: MIT
 * heed_argmax and heed_top_k.
 */
#include "rows.h"

struct argmax {
    const struct heed_kernels *kernels;
    size_t cols, ld;
    const float *src;
    size_t *index;
};

static void argmax_rows(const void *arg, size_t first, size_t count)
{
    const struct argmax *a = arg;
    for (size_t r = first; r < first + count; r++)
        a->index[r] = a->kernels->argmax(a->cols, a->src + r * a->ld);
}

heed_status heed_argmax(const heed_context *context, size_t rows, size_t cols, const float *src, size_t ld,
                        size_t *index)
{
    struct heed_context fallback;
    const struct heed_context *c;
    struct heed_operands operands;
    heed_operands_begin(&operands, heed_context_resolve(context, &fallback, &c));
    heed_require(&operands, rows == 0 || cols > 0, HEED_ERR_SHAPE);
    heed_read(&operands, src, sizeof *src, rows, cols, ld, 0);
    heed_write(&operands, index, sizeof *index, 1, rows, rows, 0);
    heed_status status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || rows == 0)
        return status;
    struct argmax a = {c->kernels, cols, ld, src, index};
    heed_run_rows(c, rows, cols, HEED_MOVE_WORK, argmax_rows, &a);
    return HEED_OK;
}

struct top_k {
    const struct heed_kernels *kernels;
    size_t cols, k, ld, ld_values, ld_index;
    const float *src;
    float *values;
    size_t *index;
};

static void top_k_rows(const void *arg, size_t first, size_t count)
{
    const struct top_k *t = arg;
    for (size_t r = first; r < first + count; r++) {
        const float *src = t->src + r * t->ld;
        size_t *index = t->index + r * t->ld_index;
        t->kernels->top_k(t->cols, t->k, src, index);
        for (size_t i = 0; t->values && i < t->k; i++)
            t->values[r * t->ld_values + i] = src[index[i]];
    }
}

heed_status heed_top_k(const heed_context *context, size_t rows, size_t cols, size_t k, const float *src, size_t ld,
                       float *values, size_t ld_values, size_t *index, size_t ld_index)
{
    struct heed_context fallback;
    const struct heed_context *c;
    struct heed_operands operands;
    heed_operands_begin(&operands, heed_context_resolve(context, &fallback, &c));
    heed_require(&operands, rows == 0 || k <= cols, HEED_ERR_SHAPE);
    heed_read(&operands, src, sizeof *src, k ? rows : 0, cols, ld, 0);
    heed_write_optional(&operands, values, sizeof *values, rows, k, ld_values, 0);
    heed_write(&operands, index, sizeof *index, rows, k, ld_index, 0);
    heed_status status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || rows == 0 || k == 0)
        return status;
    const struct top_k t = {c->kernels, cols, k, ld, ld_values, ld_index, src, values, index};
    heed_run_rows(c, rows, cols, HEED_NORM_WORK, top_k_rows, &t);
    return HEED_OK;
}
