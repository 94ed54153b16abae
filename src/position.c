/* SPDX-License-Identifier: MIT
 * heed_sinusoidal_positions.
 */
#include "rows.h"

#define MOST_POSITION ((uint64_t)1 << 31)

struct positions {
    size_t first, cols, ld;
    double log_base;
    float *dst;
};

static void position_rows(const void *arg, size_t first, size_t count)
{
    const struct positions *p = arg;
    for (size_t j = 0; j < p->cols; j += 2) {
        double frequency = heed_exp(-((double)j / (double)p->cols) * p->log_base), sine, cosine;
        for (size_t i = first; i < first + count; i++) {
            heed_sincos((double)(p->first + i) * frequency, &sine, &cosine);
            p->dst[i * p->ld + j] = (float)sine;
            if (j + 1 < p->cols)
                p->dst[i * p->ld + j + 1] = (float)cosine;
        }
    }
}

heed_status heed_sinusoidal_positions(const heed_context *context, size_t first, size_t n, size_t cols, double base,
                                      float *dst, size_t ld_dst)
{
    struct heed_context fallback;
    const struct heed_context *c;
    struct heed_operands operands;
    heed_operands_begin(&operands, heed_context_resolve(context, &fallback, &c));
    heed_require(&operands, heed_plus(first, n) <= MOST_POSITION, HEED_ERR_VALUE);
    heed_require(&operands, base >= 1.0 && base <= 0x1p1000, HEED_ERR_VALUE);
    heed_write(&operands, dst, sizeof *dst, n, cols, ld_dst, 0);
    heed_status status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || n == 0 || cols == 0)
        return status;
    struct positions p = {first, cols, ld_dst, heed_log(base), dst};
    heed_run_rows(c, n, cols, HEED_EXP_WORK, position_rows, &p);
    return HEED_OK;
}
