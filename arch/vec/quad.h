/* SPDX-License-Identifier: MIT
 * What x86's vocabularies do with four floats, a vector of SSE2's and a part of the others'.
 */
#ifndef HEED_QUAD_H
#define HEED_QUAD_H

#include "vec/vec.h"

#include <emmintrin.h>

/* The first n of four floats, without a mask: AMD's CPUs take some 18 cycles to store under one. */
HEED_INLINE void store_quad(float *p, __m128 v, size_t n)
{
    if (n >= 4) {
        _mm_storeu_ps(p, v);
        return;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)p, v);
        v = _mm_movehl_ps(v, v);
        p += 2;
    }
    if (n & 1)
        _mm_store_ss(p, v);
}

#endif
