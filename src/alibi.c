/* SPDX-License-Identifier: MIT
 * The slopes of ALiBi.
 */
#include "internal.h"

/* 2^(-max_bias (i + 1) / n): the geometric sequence of n heads. */
static float slope_of(double max_bias, size_t i, size_t n)
{
    const double ln2 = 0x1.62e42fefa39efp-1;
    return (float)heed_exp(-max_bias * ln2 * (double)(i + 1) / (double)n);
}

heed_status heed_alibi_slopes(size_t n_heads, double max_bias, float *slopes)
{
    size_t power = 1;
    if (n_heads > 0 && !slopes)
        return HEED_ERR_NULL;
    heed_status status = heed_array_check(slopes, sizeof *slopes, n_heads);
    if (status != HEED_OK)
        return status;
    if (!(max_bias > 0.0 && max_bias <= 100.0))
        return HEED_ERR_VALUE;
    while (power <= n_heads / 2)
        power *= 2;
    for (size_t i = 0; i < n_heads; i++)
        slopes[i] = i < power ? slope_of(max_bias, i, power) : slope_of(max_bias, 2 * (i - power), 2 * power);
    return HEED_OK;
}
