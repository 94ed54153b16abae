/* SPDX-License-Identifier: MIT
 * The vector vocabulary on AVX-512 F, BW, DQ and VL.
 */
#include "vec/octet.h"
#include "vec/quad.h"
#include "vec/vec.h"

#include <immintrin.h>

typedef __m512 vf;

/* 8 x 48 and 6 x 64: 24 accumulators, 3 or 4 vectors of b and a broadcast in 32 registers; 8 x 48 reads less of b,
 * 6 x 64 divides what attention multiplies. Few rows are wider, for as many FMA chains. */
#define VF_LEN 16
#define VF_EACH 4
#define VF_HALVES 2
#define VF_WIDE_HALVES 4
#define VF_MAX_BESIDE 1
#define VF_FUSED 1
#define VF_ROUNDS 0
#define VF_REDUCES 1
#define VF_STEPS 8
#define GEMM_MR 8
#define GEMM_NARROW_MR 6
#define GEMM_TALLEST 9
#define GEMM_WIDEST 8
#define GEMM_NARROWEST 1
#define GEMM_APART 0
#define GEMM_PREFETCH 16
#define GEMM_COPIED_ROWS 128
#define GEMM_FEW_ROWS 3
#define GEMM_MAIN_STEPS 1
#define GEMM_LAST_STEPS 4
#define GEMM_LAST_ROWS 2
#define GEMM_LAST_TILE 20
#define GEMM_BY_LANE 0
#define GEMM_TILES(X) X(1, 8) X(2, 8) X(3, 8) X(4, 6) X(5, 4) X(6, 4) X(7, 4) X(8, 3) X(9, 3)

HEED_INLINE __mmask16 vf_mask_n(size_t n)
{
    return (__mmask16)((1u << n) - 1u);
}

HEED_INLINE vf vf_set1(float x)
{
    return _mm512_set1_ps(x);
}

HEED_INLINE vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

HEED_INLINE void vf_stream(float *p, vf v)
{
    _mm512_stream_ps(p, v);
}

HEED_INLINE void vf_stream_end(void)
{
    _mm_sfence();
}

HEED_INLINE void vf_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}

HEED_INLINE vf vf_load_n(const float *p, size_t n, vf fill)
{
    return _mm512_mask_loadu_ps(fill, vf_mask_n(n), p);
}

HEED_INLINE vf vf_load_bytes(const unsigned char *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}

HEED_INLINE void vf_store_n(float *p, vf v, size_t n)
{
    _mm512_mask_storeu_ps(p, vf_mask_n(n), v);
}

HEED_INLINE vf vf_keep_n(vf v, size_t n)
{
    return _mm512_maskz_mov_ps(vf_mask_n(n), v);
}

HEED_INLINE vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

HEED_INLINE vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}

HEED_INLINE vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

HEED_INLINE vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

HEED_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

HEED_INLINE vf vf_sub_fused(vf a, vf b)
{
    vf one = vf_set1(1.0f);
    HEED_IN_REGISTER(one);
    return _mm512_fnmadd_ps(b, one, a);
}

HEED_INLINE vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

HEED_INLINE vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

HEED_INLINE vf vf_minus_abs(vf x)
{
    return _mm512_or_ps(x, _mm512_set1_ps(-0.0f));
}

HEED_INLINE vf vf_select_less(vf a, vf b, vf x, vf y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}

HEED_INLINE vf vf_select_signed(vf x, vf negative, vf other)
{
    return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(x)), other, negative);
}

HEED_INLINE vf vf_fraction(vf x)
{
    return _mm512_reduce_ps(x, _MM_FROUND_TO_NEAREST_INT);
}

HEED_INLINE vf vf_or_zero_below(vf x, vf low, vf y)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, low, _CMP_NLT_UQ), y);
}

/* Unsigned, bits of NaN are above those of all numbers that are not negative, and below those that are. */
HEED_INLINE vf vf_keep_above(vf kept, vf x, vf limit)
{
    (void)limit;
    return _mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(kept), _mm512_castps_si512(x)));
}

HEED_INLINE bool vf_any_above(vf kept, vf limit)
{
    return _mm512_cmpgt_epu32_mask(_mm512_castps_si512(kept), _mm512_castps_si512(limit)) != 0;
}

HEED_INLINE bool vf_any_below(vf x, vf low)
{
    return _mm512_cmp_ps_mask(x, low, _CMP_NGE_UQ) != 0;
}

HEED_INLINE vf vf_scale2_shifted(vf p, vf t)
{
    __m512i k = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
    return _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_castps_si512(p), k));
}

/* scalef rounds once, as the second of the two multiplications does: the same bits. Lanes that are
 * masked out cost no assist for results that underflow. */
HEED_INLINE vf vf_scale2_above(vf p, vf n, vf x, vf low)
{
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, low, _CMP_NLT_UQ), p, n);
}

/* Rounds to +0 what is below 2^-150 by itself, as t is known to be. */
HEED_INLINE vf vf_scale2_down(vf p, vf n, vf t)
{
    (void)t;
    return _mm512_scalef_ps(p, n);
}
#define vf_scale2_down vf_scale2_down

HEED_INLINE vf vf_scale2_normal_above(vf p, vf n, vf x, vf low)
{
    return vf_scale2_above(p, n, x, low);
}

HEED_INLINE float vf_fold_add(vf v)
{
    __m256 y = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}

HEED_INLINE void store_rows(vf lanes, float of_rows[4])
{
    const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
    _mm_storeu_ps(of_rows, _mm512_castps512_ps128(_mm512_permutexvar_ps(first, lanes)));
}

HEED_INLINE void vf_fold_add_rows(const vf v[4], float sum[4])
{
    vf ab = vf_add(_mm512_shuffle_f32x4(v[0], v[1], 0x44), _mm512_shuffle_f32x4(v[0], v[1], 0xee));
    vf cd = vf_add(_mm512_shuffle_f32x4(v[2], v[3], 0x44), _mm512_shuffle_f32x4(v[2], v[3], 0xee));
    vf x = vf_add(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    x = vf_add(x, _mm512_shuffle_ps(x, x, 0x4e));
    x = vf_add(x, _mm512_shuffle_ps(x, x, 0xb1));
    store_rows(x, sum);
}

HEED_INLINE float vf_fold_max(vf v)
{
    __m256 y = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
}

HEED_INLINE void vf_fold_max_rows(const vf v[4], float max[4])
{
    vf ab = vf_max(_mm512_shuffle_f32x4(v[0], v[1], 0x44), _mm512_shuffle_f32x4(v[0], v[1], 0xee));
    vf cd = vf_max(_mm512_shuffle_f32x4(v[2], v[3], 0x44), _mm512_shuffle_f32x4(v[2], v[3], 0xee));
    vf x = vf_max(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    x = vf_max(x, _mm512_shuffle_ps(x, x, 0x4e));
    x = vf_max(x, _mm512_shuffle_ps(x, x, 0xb1));
    store_rows(x, max);
}

HEED_INLINE float vf_first(vf v)
{
    return _mm512_cvtss_f32(v);
}

HEED_INLINE void vf_unzip(vf a, vf b, vf *even, vf *odd)
{
    const __m512i e = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *even = _mm512_permutex2var_ps(a, e, b);
    *odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(e, _mm512_set1_epi32(1)), b);
}

HEED_INLINE void vf_zip(vf even, vf odd, vf *a, vf *b)
{
    const __m512i z = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    *a = _mm512_permutex2var_ps(even, z, odd);
    *b = _mm512_permutex2var_ps(even, _mm512_add_epi32(z, _mm512_set1_epi32(8)), odd);
}

/* A 4 x 4 block in each 128-bit lane of four vectors. */
HEED_INLINE void vf_transpose_lanes(const vf v[4], vf q[4])
{
    vf low01 = _mm512_unpacklo_ps(v[0], v[1]), high01 = _mm512_unpackhi_ps(v[0], v[1]);
    vf low23 = _mm512_unpacklo_ps(v[2], v[3]), high23 = _mm512_unpackhi_ps(v[2], v[3]);
    q[0] = _mm512_shuffle_ps(low01, low23, 0x44);
    q[1] = _mm512_shuffle_ps(low01, low23, 0xee);
    q[2] = _mm512_shuffle_ps(high01, high23, 0x44);
    q[3] = _mm512_shuffle_ps(high01, high23, 0xee);
}

/* 4 x 4 blocks within 128-bit lanes, then the 4 x 4 matrix of lanes. */
HEED_INLINE void vf_transpose(vf v[VF_LEN])
{
    vf q[16];
    HEED_UNROLL
    for (int i = 0; i < 16; i += 4)
        vf_transpose_lanes(v + i, q + i);
    HEED_UNROLL
    for (int i = 0; i < 4; i++) {
        vf even_low = _mm512_shuffle_f32x4(q[i], q[i + 4], 0x88);
        vf odd_low = _mm512_shuffle_f32x4(q[i], q[i + 4], 0xdd);
        vf even_high = _mm512_shuffle_f32x4(q[i + 8], q[i + 12], 0x88);
        vf odd_high = _mm512_shuffle_f32x4(q[i + 8], q[i + 12], 0xdd);
        v[i] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
        v[i + 4] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
        v[i + 8] = _mm512_shuffle_f32x4(even_low, even_high, 0xdd);
        v[i + 12] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd);
    }
}

/* Eight floats of one row and of another. */
HEED_INLINE vf vf_halves(const float *low, const float *high)
{
    return _mm512_mask_broadcast_f32x8(_mm512_castps256_ps512(_mm256_loadu_ps(low)), 0xff00, _mm256_loadu_ps(high));
}

/* Rows four apart share a vector, so that one instruction puts their 128-bit lanes into place. */
HEED_INLINE void vf_load_across(const float *p, size_t ld, vf v[VF_STEPS])
{
    vf q[8];
    HEED_UNROLL
    for (size_t i = 0; i < 4; i++) {
        p += i > 0 ? ld : 0;
        HEED_FORGET(p); /* or the compiler would keep sixteen addresses */
        v[i] = vf_halves(p, p + 4 * ld);
        v[i + 4] = vf_halves(p + 8 * ld, p + 12 * ld);
    }
    HEED_UNROLL
    for (int i = 0; i < 8; i += 4)
        vf_transpose_lanes(v + i, q + i);
    HEED_UNROLL
    for (int i = 0; i < 4; i++) {
        v[i] = _mm512_shuffle_f32x4(q[i], q[i + 4], 0x88);
        v[i + 4] = _mm512_shuffle_f32x4(q[i], q[i + 4], 0xdd);
    }
}

/* Four floats of rows four apart in the 128-bit lanes of a vector. */
#define VF_FEW_STEPS 4

HEED_INLINE void vf_load_few_across(const float *p, size_t ld, vf v[VF_FEW_STEPS])
{
    vf rows[4];
    HEED_UNROLL
    for (size_t i = 0; i < 4; i++, p += ld) {
        HEED_FORGET(p);
        rows[i] = _mm512_castps128_ps512(_mm_loadu_ps(p));
        rows[i] = _mm512_mask_broadcast_f32x4(rows[i], 0x00f0, _mm_loadu_ps(p + 4 * ld));
        rows[i] = _mm512_mask_broadcast_f32x4(rows[i], 0x0f00, _mm_loadu_ps(p + 8 * ld));
        rows[i] = _mm512_mask_broadcast_f32x4(rows[i], 0xf000, _mm_loadu_ps(p + 12 * ld));
    }
    vf_transpose_lanes(rows, v);
}

HEED_INLINE void vf_store_across(vf v[4], int n, float *p, size_t ld)
{
    vf rows[4];
    vf_transpose_lanes(v, rows);
    HEED_UNROLL
    for (size_t i = 0; i < 4; i++, p += ld) {
        HEED_FORGET(p); /* or the compiler would keep sixteen addresses */
        store_quad(p, _mm512_castps512_ps128(rows[i]), (size_t)n);
        store_quad(p + 4 * ld, _mm512_extractf32x4_ps(rows[i], 1), (size_t)n);
        store_quad(p + 8 * ld, _mm512_extractf32x4_ps(rows[i], 2), (size_t)n);
        store_quad(p + 12 * ld, _mm512_extractf32x4_ps(rows[i], 3), (size_t)n);
    }
}

/* Of 256 bits, of which Zen 4 does two multiply-adds in a cycle and one of 512. */
typedef __m256 hf;
#define HF_LEN 8

HEED_INLINE hf hf_set1(float x)
{
    return _mm256_set1_ps(x);
}

HEED_INLINE hf hf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

HEED_INLINE hf hf_load_n(const float *p, size_t n)
{
    return _mm256_maskz_loadu_ps((__mmask8)vf_mask_n(n), p);
}

HEED_INLINE void hf_store(float *p, hf v)
{
    _mm256_storeu_ps(p, v);
}

HEED_INLINE void hf_store_n(float *p, hf v, size_t n)
{
    _mm256_mask_storeu_ps(p, (__mmask8)vf_mask_n(n), v);
}

HEED_INLINE hf hf_fma(hf a, hf b, hf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

HEED_INLINE hf hf_of(vf v, int half)
{
    return half == 0 ? _mm512_castps512_ps256(v) : _mm512_extractf32x8_ps(v, 1);
}

HEED_INLINE vf vf_of_halves(hf low, hf high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
