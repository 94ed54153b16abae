/* SPDX-License-Identifier: MIT
 * What AVX2 and AVX-512 do with a quarter of a vector of theirs.
 */
#ifndef HEED_QUAD_H
#define HEED_QUAD_H

#include "vec/vec.h"

#include <immintrin.h>

/* The first n of four floats, n a constant: masks and what stores by them take longer. */
HEED_INLINE void store_quad(float *p, __m128 v, int n)
{
    if (n == 4)
        _mm_storeu_ps(p, v);
    else if (n == 1)
        _mm_store_ss(p, v);
    else
        _mm_storel_pi((__m64 *)(void *)p, v);
    if (n == 3)
        _mm_store_ss(p + 2, _mm_movehl_ps(v, v));
}

#endif
