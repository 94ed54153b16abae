/* SPDX-License-Identifier: MIT
 * heed_argmax.
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
    struct heed_operands operands = {.status = heed_context_resolve(context, &fallback, &c)};
    heed_require(&operands, rows == 0 || cols > 0, HEED_ERR_SHAPE);
    heed_read(&operands, src, sizeof *src, rows, cols, ld, 0);
    heed_write(&operands, index, sizeof *index, 1, rows, rows, 0);
    heed_status status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || rows == 0)
        return status;
    struct argmax a = {c->kernels, cols, ld, src, index};
    heed_run_rows(c, rows, cols, argmax_rows, &a);
    return HEED_OK;
}
