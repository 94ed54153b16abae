/* SPDX-License-Identifier: MIT
 * heed_softmax.
 */
#include "rows.h"

struct softmax {
    const struct heed_kernels *kernels;
    size_t cols, ld_src, ld_dst;
    const float *src;
    float *dst;
};

static void softmax_rows(const void *arg, size_t first, size_t count)
{
    const struct softmax *s = arg;
    s->kernels->softmax(count, s->cols, s->src + first * s->ld_src, s->ld_src, s->dst + first * s->ld_dst, s->ld_dst);
}

heed_status heed_softmax(const heed_context *context, size_t rows, size_t cols, const float *src, size_t ld_src,
                         float *dst, size_t ld_dst)
{
    struct heed_context fallback;
    const struct heed_context *c;
    struct heed_operands operands = {.status = heed_context_resolve(context, &fallback, &c)};
    heed_read(&operands, src, sizeof *src, rows, cols, ld_src, 1);
    heed_write(&operands, dst, sizeof *dst, rows, cols, ld_dst, 1);
    heed_status status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || rows == 0 || cols == 0)
        return status;
    struct softmax s = {c->kernels, cols, ld_src, ld_dst, src, dst};
    heed_run_rows(c, rows, cols, softmax_rows, &s);
    return HEED_OK;
}
