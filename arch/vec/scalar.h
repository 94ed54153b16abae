/* SPDX-License-Identifier: MIT
 * The vector vocabulary on plain C, one lane: the oracle of its class of bits.
 */
#include "vec/vec.h"

#include <string.h>

typedef float vf;

#define VF_LEN 1
#define VF_EACH 1
#define VF_HALVES 1
#define VF_MAX_BESIDE 0
#define VF_ROUNDS 0
#define VF_REDUCES 0
#define VF_STEPS 1
#define GEMM_MR 4
#define GEMM_NARROW_MR 4
#define GEMM_TALLEST 4
#define GEMM_WIDEST 4
#define GEMM_NARROWEST 4
#define GEMM_APART 0
#define GEMM_PREFETCH 0
#define GEMM_COPIED_ROWS 32
#define GEMM_FEW_ROWS 1
#define GEMM_MAIN_STEPS 1
#define GEMM_LAST_STEPS 0
#define GEMM_LAST_ROWS 1
#define GEMM_LAST_TILE 0
#define GEMM_BY_LANE 0
#define GEMM_TILES(X) X(1, 4) X(2, 4) X(3, 4) X(4, 4)

/* FMA in the baseline (aarch64, riscv64, s390x, ppc64le) or by -mfma makes this table fused. */
#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define VF_FUSED 1
#else
#define VF_FUSED 0
#endif

HEED_INLINE vf vf_set1(float x)
{
    return x;
}

HEED_INLINE vf vf_load(const float *p)
{
    return *p;
}

HEED_INLINE void vf_store(float *p, vf v)
{
    *p = v;
}

HEED_INLINE void vf_stream(float *p, vf v)
{
    vf_store(p, v);
}

HEED_INLINE void vf_stream_end(void)
{
}

HEED_INLINE vf vf_load_n(const float *p, size_t n, vf fill)
{
    return n ? *p : fill;
}

HEED_INLINE vf vf_load_bytes(const unsigned char *p)
{
    return (float)*p;
}

HEED_INLINE void vf_store_n(float *p, vf v, size_t n)
{
    if (n)
        *p = v;
}

HEED_INLINE vf vf_keep_n(vf v, size_t n)
{
    return n ? v : 0.0f;
}

HEED_INLINE vf vf_add(vf a, vf b)
{
    return a + b;
}

HEED_INLINE vf vf_sub(vf a, vf b)
{
    return a - b;
}

HEED_INLINE vf vf_mul(vf a, vf b)
{
    return a * b;
}

HEED_INLINE vf vf_div(vf a, vf b)
{
    return a / b;
}

HEED_INLINE vf vf_fma(vf a, vf b, vf c)
{
#if VF_FUSED
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

HEED_INLINE vf vf_sub_fused(vf a, vf b)
{
    return vf_sub(a, b);
}

HEED_INLINE vf vf_max(vf a, vf b)
{
    return a > b ? a : b;
}

HEED_INLINE vf vf_min(vf a, vf b)
{
    return a < b ? a : b;
}

HEED_INLINE vf vf_minus_abs(vf x)
{
    return -__builtin_fabsf(x);
}

HEED_INLINE vf vf_select_less(vf a, vf b, vf x, vf y)
{
    return a < b ? x : y;
}

HEED_INLINE vf vf_select_signed(vf x, vf negative, vf other)
{
    return __builtin_signbit(x) ? negative : other;
}

/* n is out of int's range only where the result does not matter or p is NaN. */
HEED_INLINE int32_t vf_to_int(vf n)
{
    return n > -512.0f && n < 512.0f ? (int32_t)n : 0;
}

HEED_INLINE vf vf_pow2(int32_t n)
{
    uint32_t bits = (uint32_t)(n + 127) << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

HEED_INLINE vf vf_scale2(vf p, vf n)
{
    int32_t i = vf_to_int(n), half = i >> 1;
    return p * vf_pow2(half) * vf_pow2(i - half);
}

HEED_INLINE vf vf_or_zero_below(vf x, vf low, vf y)
{
    return x < low ? 0.0f : y;
}

HEED_INLINE vf vf_keep_above(vf kept, vf x, vf limit)
{
    return x <= limit ? kept : x;
}

HEED_INLINE bool vf_any_above(vf kept, vf limit)
{
    return !(kept <= limit);
}

HEED_INLINE bool vf_any_below(vf x, vf low)
{
    return !(x >= low);
}

HEED_INLINE vf vf_scale2_shifted(vf p, vf t)
{
    return p * vf_pow2(-vf_to_int(t - 0x1.8p23f));
}

HEED_INLINE vf vf_scale2_above(vf p, vf n, vf x, vf low)
{
    return vf_or_zero_below(x, low, vf_scale2(p, n));
}

HEED_INLINE vf vf_scale2_normal_above(vf p, vf n, vf x, vf low)
{
    return vf_or_zero_below(x, low, p * vf_pow2(vf_to_int(n)));
}

HEED_INLINE float vf_fold_add(vf v)
{
    return v;
}

HEED_INLINE float vf_fold_max(vf v)
{
    return v;
}

HEED_INLINE float vf_first(vf v)
{
    return v;
}

HEED_INLINE void vf_unzip(vf a, vf b, vf *even, vf *odd)
{
    *even = a;
    *odd = b;
}

HEED_INLINE void vf_zip(vf even, vf odd, vf *a, vf *b)
{
    *a = even;
    *b = odd;
}

HEED_INLINE void vf_transpose(vf v[VF_LEN])
{
    (void)v;
}

HEED_INLINE void vf_load_across(const float *p, size_t ld, vf v[VF_STEPS])
{
    (void)ld;
    v[0] = *p;
}

HEED_INLINE void vf_store_across(vf v[4], int n, float *p, size_t ld)
{
    (void)ld;
    for (int j = 0; j < n; j++)
        p[j] = v[j];
}
