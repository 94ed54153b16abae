/* SPDX-License-Identifier: MIT
 * What AVX2 and AVX-512 share: vectors of eight floats, in two 128-bit lanes.
 */
#ifndef HEED_VEC_OCTET_H
#define HEED_VEC_OCTET_H

#include "vec/vec.h"

#include <immintrin.h>

/* Four floats of one row and of another. */
HEED_INLINE __m256 octet_quads(const float *low, const float *high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}

/* A 4 x 4 block in each lane of four vectors. */
HEED_INLINE void octet_transpose_lanes(const __m256 v[4], __m256 q[4])
{
    __m256 low01 = _mm256_unpacklo_ps(v[0], v[1]), high01 = _mm256_unpackhi_ps(v[0], v[1]);
    __m256 low23 = _mm256_unpacklo_ps(v[2], v[3]), high23 = _mm256_unpackhi_ps(v[2], v[3]);
    q[0] = _mm256_shuffle_ps(low01, low23, 0x44);
    q[1] = _mm256_shuffle_ps(low01, low23, 0xee);
    q[2] = _mm256_shuffle_ps(high01, high23, 0x44);
    q[3] = _mm256_shuffle_ps(high01, high23, 0xee);
}

#endif
