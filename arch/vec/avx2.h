/* SPDX-License-Identifier: MIT
 * The vector vocabulary on AVX2 and FMA.
 */
#include "vec/octet.h"
#include "vec/quad.h"
#include "vec/vec.h"

#include <immintrin.h>

typedef __m256 vf;

/* 6 x 16: 12 accumulators, 2 vectors of b and a broadcast in 16 registers. */
#define VF_LEN 8
#define VF_EACH 2
#define VF_HALVES 6
#define VF_MAX_BESIDE 0
#define VF_FUSED 1
#define VF_ROUNDS 1
#define VF_REDUCES 0
#define VF_STEPS 4
#define GEMM_MR 6
#define GEMM_NARROW_MR 6
#define GEMM_TALLEST 6
#define GEMM_WIDEST 8
#define GEMM_NARROWEST 2
#define GEMM_APART 3
#define GEMM_PREFETCH 16
#define GEMM_COPIED_ROWS 32
#if defined(__clang__)
#define GEMM_FEW_ROWS 3
#else
#define GEMM_FEW_ROWS 2
#endif
#define GEMM_MAIN_STEPS 4
#define GEMM_LAST_STEPS 0
#define GEMM_LAST_ROWS 1
#define GEMM_LAST_TILE 0
#define GEMM_BY_LANE 0
#define GEMM_TILES(X) X(1, 8) X(2, 6) X(3, 4) X(4, 2) X(5, 2) X(6, 2)

static const int32_t vf_mask_bits[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

HEED_INLINE __m256i vf_mask_n(size_t n)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)(vf_mask_bits + 8 - n));
}

HEED_INLINE vf vf_set1(float x)
{
    return _mm256_set1_ps(x);
}

HEED_INLINE vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

HEED_INLINE void vf_stream(float *p, vf v)
{
    _mm256_stream_ps(p, v);
}

HEED_INLINE void vf_stream_end(void)
{
    _mm_sfence();
}

HEED_INLINE void vf_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}

HEED_INLINE vf vf_load_n(const float *p, size_t n, vf fill)
{
    __m256i mask = vf_mask_n(n);
    return _mm256_blendv_ps(fill, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
}

HEED_INLINE vf vf_load_bytes(const unsigned char *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

HEED_INLINE void vf_store_n(float *p, vf v, size_t n)
{
    store_quad(p, _mm256_castps256_ps128(v), n);
    if (n > 4)
        store_quad(p + 4, _mm256_extractf128_ps(v, 1), n - 4);
}

HEED_INLINE vf vf_keep_n(vf v, size_t n)
{
    return _mm256_and_ps(_mm256_castsi256_ps(vf_mask_n(n)), v);
}

HEED_INLINE vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

HEED_INLINE vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}

HEED_INLINE vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

HEED_INLINE vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

HEED_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

HEED_INLINE vf vf_sub_fused(vf a, vf b)
{
    vf one = vf_set1(1.0f);
    HEED_IN_REGISTER(one);
    return _mm256_fnmadd_ps(b, one, a);
}

HEED_INLINE vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

HEED_INLINE vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}

HEED_INLINE vf vf_minus_abs(vf x)
{
    return _mm256_or_ps(x, _mm256_set1_ps(-0.0f));
}

HEED_INLINE vf vf_select_less(vf a, vf b, vf x, vf y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

HEED_INLINE vf vf_select_signed(vf x, vf negative, vf other)
{
    return _mm256_blendv_ps(other, negative, x);
}

HEED_INLINE vf vf_round(vf x)
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* n plus the biases of one exponent or two, in the low bits; shifted up, an exponent loses the rest. */
HEED_INLINE __m256i biased_exponent(vf n, float bias)
{
    return _mm256_castps_si256(_mm256_add_ps(n, _mm256_set1_ps(0x1.8p23f + bias)));
}

HEED_INLINE vf vf_of_exponent(__m256i biased)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}

HEED_INLINE vf vf_scale2(vf p, vf n)
{
    __m256i i = biased_exponent(n, 2 * 127), half = _mm256_srai_epi32(i, 1);
    return _mm256_mul_ps(_mm256_mul_ps(p, vf_of_exponent(half)), vf_of_exponent(_mm256_sub_epi32(i, half)));
}

HEED_INLINE vf vf_or_zero_below(vf x, vf low, vf y)
{
    return _mm256_and_ps(y, _mm256_cmp_ps(x, low, _CMP_NLT_UQ));
}

/* Unsigned, bits of NaN are above those of all numbers that are not negative, and below those that are. */
HEED_INLINE vf vf_keep_above(vf kept, vf x, vf limit)
{
    (void)limit;
    return _mm256_castsi256_ps(_mm256_max_epu32(_mm256_castps_si256(kept), _mm256_castps_si256(x)));
}

HEED_INLINE bool vf_any_above(vf kept, vf limit)
{
    return _mm256_movemask_ps(_mm256_or_ps(kept, _mm256_cmp_ps(kept, limit, _CMP_NLE_UQ))) != 0;
}

HEED_INLINE bool vf_any_below(vf x, vf low)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(x, low, _CMP_NGE_UQ)) != 0;
}

HEED_INLINE vf vf_scale2_shifted(vf p, vf t)
{
    __m256i k = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    return _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_castps_si256(p), k));
}

HEED_INLINE vf vf_scale2_above(vf p, vf n, vf x, vf low)
{
    return vf_or_zero_below(x, low, vf_scale2(p, n));
}

HEED_INLINE vf vf_scale2_normal_above(vf p, vf n, vf x, vf low)
{
    return vf_or_zero_below(x, low, _mm256_mul_ps(p, vf_of_exponent(biased_exponent(n, 127))));
}

HEED_INLINE float vf_fold_add(vf v)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}

HEED_INLINE void store_rows(vf lanes, float of_rows[2])
{
    __m128 first = _mm_unpacklo_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    _mm_storel_pi((__m64 *)(void *)of_rows, first);
}

HEED_INLINE void vf_fold_add_rows(const vf v[2], float sum[2])
{
    vf x = _mm256_add_ps(_mm256_permute2f128_ps(v[0], v[1], 0x20), _mm256_permute2f128_ps(v[0], v[1], 0x31));
    x = _mm256_add_ps(x, _mm256_shuffle_ps(x, x, 0x4e));
    x = _mm256_add_ps(x, _mm256_shuffle_ps(x, x, 0xb1));
    store_rows(x, sum);
}

HEED_INLINE float vf_fold_max(vf v)
{
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
}

HEED_INLINE void vf_fold_max_rows(const vf v[2], float max[2])
{
    vf x = _mm256_max_ps(_mm256_permute2f128_ps(v[0], v[1], 0x20), _mm256_permute2f128_ps(v[0], v[1], 0x31));
    x = _mm256_max_ps(x, _mm256_shuffle_ps(x, x, 0x4e));
    x = _mm256_max_ps(x, _mm256_shuffle_ps(x, x, 0xb1));
    store_rows(x, max);
}

HEED_INLINE float vf_first(vf v)
{
    return _mm256_cvtss_f32(v);
}

HEED_INLINE void vf_unzip(vf a, vf b, vf *even, vf *odd)
{
    __m256d e = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88)), o = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
    *even = _mm256_castpd_ps(_mm256_permute4x64_pd(e, 0xd8));
    *odd = _mm256_castpd_ps(_mm256_permute4x64_pd(o, 0xd8));
}

HEED_INLINE void vf_zip(vf even, vf odd, vf *a, vf *b)
{
    __m256 low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
    *a = _mm256_permute2f128_ps(low, high, 0x20);
    *b = _mm256_permute2f128_ps(low, high, 0x31);
}

HEED_INLINE void vf_transpose(vf v[VF_LEN])
{
    vf q[8];
    octet_transpose_lanes(v, q);
    octet_transpose_lanes(v + 4, q + 4);
    HEED_UNROLL
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(q[i], q[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(q[i], q[i + 4], 0x31);
    }
}

/* Rows four apart share a vector. */
HEED_INLINE void vf_load_across(const float *p, size_t ld, vf v[VF_STEPS])
{
    vf t[4];
    HEED_UNROLL
    for (size_t i = 0; i < 4; i++)
        t[i] = octet_quads(p + i * ld, p + (i + 4) * ld);
    octet_transpose_lanes(t, v);
}

HEED_INLINE void vf_store_across(vf v[4], int n, float *p, size_t ld)
{
    vf rows[4];
    octet_transpose_lanes(v, rows);
    HEED_UNROLL
    for (size_t i = 0; i < 4; i++) {
        store_quad(p + i * ld, _mm256_castps256_ps128(rows[i]), (size_t)n);
        store_quad(p + (i + 4) * ld, _mm256_extractf128_ps(rows[i], 1), (size_t)n);
    }
}
