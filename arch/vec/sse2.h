/* SPDX-License-Identifier: MIT
 * The vector vocabulary on SSE2. No FMA: a table of the unfused class.
 */
#include "vec/quad.h"
#include "vec/vec.h"

#include <emmintrin.h>

typedef __m128 vf;

/* 3 x 16: 12 accumulators leave 4 of the 16 registers for a and b. */
#define VF_LEN 4
#define VF_EACH 2
#define VF_HALVES 4
#define VF_MAX_BESIDE 0
#define VF_FUSED 0
#define VF_ROUNDS 0
#define VF_REDUCES 0
#define VF_STEPS 4
#define GEMM_MR 3
#define GEMM_NARROW_MR 3
#define GEMM_TALLEST 3
#define GEMM_WIDEST 8
#define GEMM_NARROWEST 4
#define GEMM_APART 0
#define GEMM_PREFETCH 16
#define GEMM_COPIED_ROWS 32
#define GEMM_FEW_ROWS 1
#define GEMM_MAIN_STEPS 1
#define GEMM_LAST_STEPS 0
#define GEMM_LAST_ROWS 1
#define GEMM_LAST_TILE 0
#define GEMM_BY_LANE 0
#define GEMM_TILES(X) X(1, 8) X(2, 4) X(3, 4)

static const int32_t vf_mask_bits[8] = {-1, -1, -1, -1, 0, 0, 0, 0};

HEED_INLINE __m128 vf_mask_n(size_t n)
{
    return _mm_loadu_ps((const float *)(const void *)(vf_mask_bits + 4 - n));
}

HEED_INLINE vf vf_choose(__m128 mask, vf x, vf y)
{
    return _mm_or_ps(_mm_and_ps(mask, x), _mm_andnot_ps(mask, y));
}

HEED_INLINE vf vf_set1(float x)
{
    return _mm_set1_ps(x);
}

HEED_INLINE vf vf_load(const float *p)
{
    return _mm_loadu_ps(p);
}

HEED_INLINE void vf_stream(float *p, vf v)
{
    _mm_stream_ps(p, v);
}

HEED_INLINE void vf_stream_end(void)
{
    _mm_sfence();
}

HEED_INLINE void vf_store(float *p, vf v)
{
    _mm_storeu_ps(p, v);
}

HEED_INLINE vf vf_load_n(const float *p, size_t n, vf fill)
{
    if (n >= 4)
        return _mm_loadu_ps(p);
    __m128 low = n & 2 ? _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)p)) : _mm_setzero_ps();
    __m128 one = n & 1 ? _mm_load_ss(p + (n & 2)) : _mm_setzero_ps();
    __m128 v = n & 2 ? _mm_movelh_ps(low, one) : one;
    return vf_choose(vf_mask_n(n), v, fill);
}

HEED_INLINE vf vf_load_bytes(const unsigned char *p)
{
    int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    __m128i zero = _mm_setzero_si128(), halves = _mm_unpacklo_epi8(_mm_cvtsi32_si128(four), zero);
    return _mm_cvtepi32_ps(_mm_unpacklo_epi16(halves, zero));
}

HEED_INLINE void vf_store_n(float *p, vf v, size_t n)
{
    store_quad(p, v, n);
}

HEED_INLINE vf vf_keep_n(vf v, size_t n)
{
    return _mm_and_ps(vf_mask_n(n), v);
}

HEED_INLINE vf vf_add(vf a, vf b)
{
    return _mm_add_ps(a, b);
}

HEED_INLINE vf vf_sub(vf a, vf b)
{
    return _mm_sub_ps(a, b);
}

HEED_INLINE vf vf_mul(vf a, vf b)
{
    return _mm_mul_ps(a, b);
}

HEED_INLINE vf vf_div(vf a, vf b)
{
    return _mm_div_ps(a, b);
}

HEED_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm_add_ps(_mm_mul_ps(a, b), c);
}

HEED_INLINE vf vf_sub_fused(vf a, vf b)
{
    return vf_sub(a, b);
}

HEED_INLINE vf vf_max(vf a, vf b)
{
    return _mm_max_ps(a, b);
}

HEED_INLINE vf vf_min(vf a, vf b)
{
    return _mm_min_ps(a, b);
}

HEED_INLINE vf vf_minus_abs(vf x)
{
    return _mm_or_ps(x, _mm_set1_ps(-0.0f));
}

HEED_INLINE vf vf_select_less(vf a, vf b, vf x, vf y)
{
    return vf_choose(_mm_cmplt_ps(a, b), x, y);
}

HEED_INLINE vf vf_select_signed(vf x, vf negative, vf other)
{
    return vf_choose(_mm_castsi128_ps(_mm_srai_epi32(_mm_castps_si128(x), 31)), negative, other);
}

/* n plus the biases of one exponent or two, in the low bits; shifted up, an exponent loses the rest. */
HEED_INLINE __m128i biased_exponent(vf n, float bias)
{
    return _mm_castps_si128(_mm_add_ps(n, _mm_set1_ps(0x1.8p23f + bias)));
}

HEED_INLINE vf vf_of_exponent(__m128i biased)
{
    return _mm_castsi128_ps(_mm_slli_epi32(biased, 23));
}

HEED_INLINE vf vf_scale2(vf p, vf n)
{
    __m128i i = biased_exponent(n, 2 * 127), half = _mm_srai_epi32(i, 1);
    return _mm_mul_ps(_mm_mul_ps(p, vf_of_exponent(half)), vf_of_exponent(_mm_sub_epi32(i, half)));
}

HEED_INLINE vf vf_or_zero_below(vf x, vf low, vf y)
{
    return _mm_and_ps(y, _mm_cmpnlt_ps(x, low));
}

/* All bits, which are NaN. */
HEED_INLINE vf vf_keep_above(vf kept, vf x, vf limit)
{
    return _mm_or_ps(kept, _mm_cmpnle_ps(x, limit));
}

HEED_INLINE bool vf_any_above(vf kept, vf limit)
{
    return _mm_movemask_ps(_mm_cmpnle_ps(kept, limit)) != 0;
}

HEED_INLINE bool vf_any_below(vf x, vf low)
{
    return _mm_movemask_ps(_mm_cmpnge_ps(x, low)) != 0;
}

HEED_INLINE vf vf_scale2_shifted(vf p, vf t)
{
    return _mm_castsi128_ps(_mm_sub_epi32(_mm_castps_si128(p), _mm_slli_epi32(_mm_castps_si128(t), 23)));
}

HEED_INLINE vf vf_scale2_above(vf p, vf n, vf x, vf low)
{
    return vf_or_zero_below(x, low, vf_scale2(p, n));
}

HEED_INLINE vf vf_scale2_normal_above(vf p, vf n, vf x, vf low)
{
    return vf_or_zero_below(x, low, _mm_mul_ps(p, vf_of_exponent(biased_exponent(n, 127))));
}

HEED_INLINE float vf_fold_add(vf v)
{
    v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(v, _mm_shuffle_ps(v, v, 1)));
}

HEED_INLINE float vf_fold_max(vf v)
{
    v = _mm_max_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_max_ss(v, _mm_shuffle_ps(v, v, 1)));
}

HEED_INLINE float vf_first(vf v)
{
    return _mm_cvtss_f32(v);
}

HEED_INLINE void vf_unzip(vf a, vf b, vf *even, vf *odd)
{
    *even = _mm_shuffle_ps(a, b, 0x88);
    *odd = _mm_shuffle_ps(a, b, 0xdd);
}

HEED_INLINE void vf_zip(vf even, vf odd, vf *a, vf *b)
{
    *a = _mm_unpacklo_ps(even, odd);
    *b = _mm_unpackhi_ps(even, odd);
}

HEED_INLINE void vf_transpose(vf v[VF_LEN])
{
    _MM_TRANSPOSE4_PS(v[0], v[1], v[2], v[3]);
}

HEED_INLINE void vf_load_across(const float *p, size_t ld, vf v[VF_STEPS])
{
    HEED_UNROLL
    for (size_t i = 0; i < 4; i++)
        v[i] = vf_load(p + i * ld);
    vf_transpose(v);
}

HEED_INLINE void vf_store_across(vf v[4], int n, float *p, size_t ld)
{
    vf_transpose(v);
    HEED_UNROLL
    for (size_t i = 0; i < 4; i++)
        vf_store_n(p + i * ld, v[i], (size_t)n);
}
