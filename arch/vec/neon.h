/* SPDX-License-Identifier: MIT
 * The vector vocabulary on NEON; on other CPUs through SIMDe, to be tested, not to be selected.
 *
 * vfmaq_f32 is the one fused multiply-add that SIMDe fuses (on x86 with -mfma). SIMDe of Debian 12
 * has no vdivq, vsqrtq and vcvtnq, and its max drops NaN, as AArch32 has no division either.
 */
#include "vec/vec.h"

#if defined(__ARM_NEON)
#include <arm_neon.h>
#else
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/arm/neon.h>
#endif

typedef float32x4_t vf;

#define VF_LEN 4
#define VF_EACH 4
#define VF_HALVES 4
#define VF_MAX_BESIDE 0
#define VF_FUSED 1
#define VF_ROUNDS 0
#define VF_REDUCES 0
#define VF_STEPS 4
#define GEMM_WIDEST 8
#define GEMM_NARROWEST 2
#define GEMM_APART 0
#define GEMM_PREFETCH 0
#define GEMM_COPIED_ROWS 32
#define GEMM_FEW_ROWS 1
#define GEMM_MAIN_STEPS 1
#define GEMM_LAST_STEPS 0
#define GEMM_LAST_ROWS 1
#define GEMM_LAST_TILE 0
#if defined(__arm__)
/* 6 x 8: 12 accumulators, 2 vectors of b and a factor in 16 registers; its multiply-add takes no lane. */
#define GEMM_MR 6
#define GEMM_NARROW_MR 6
#define GEMM_TALLEST 6
#define GEMM_BY_LANE 0
#define GEMM_TILES(X) X(1, 8) X(2, 4) X(3, 4) X(4, 2) X(5, 2) X(6, 2)
#else
/* 5 x 16: 20 accumulators, 5 vectors of a and 4 of b in 32 registers. Four units with a latency of 4 cycles
 * (Neoverse V1) want 16 chains, also with a row less, since rows are split evenly: 4 x 16 has them. 9 x 8 and
 * 8 x 8 would load less, but with 8 rows gcc moves registers to and fro. */
#define GEMM_MR 5
#define GEMM_NARROW_MR 5
#define GEMM_TALLEST 5
#define GEMM_BY_LANE 1
#define GEMM_TILES(X) X(1, 8) X(2, 8) X(3, 4) X(4, 4) X(5, 4)
#endif

HEED_INLINE vf vf_set1(float x)
{
    return vdupq_n_f32(x);
}

HEED_INLINE vf vf_load(const float *p)
{
    return vld1q_f32(p);
}

HEED_INLINE void vf_store(float *p, vf v)
{
    vst1q_f32(p, v);
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
    if (n >= 4)
        return vld1q_f32(p);
    vf v = n & 2 ? vcombine_f32(vld1_f32(p), vget_high_f32(fill)) : fill;
    if (n & 1)
        v = n & 2 ? vld1q_lane_f32(p + 2, v, 2) : vld1q_lane_f32(p, v, 0);
    return v;
}

HEED_INLINE vf vf_load_bytes(const unsigned char *p)
{
    uint32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four)))));
}

HEED_INLINE void vf_store_n(float *p, vf v, size_t n)
{
    if (n >= 4) {
        vst1q_f32(p, v);
        return;
    }
    if (n & 2) {
        vst1_f32(p, vget_low_f32(v));
        v = vextq_f32(v, v, 2);
        p += 2;
    }
    if (n & 1)
        vst1q_lane_f32(p, v, 0);
}

HEED_INLINE vf vf_keep_n(vf v, size_t n)
{
    static const uint32_t mask[8] = {~0u, ~0u, ~0u, ~0u, 0, 0, 0, 0};
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), vld1q_u32(mask + 4 - n)));
}

HEED_INLINE vf vf_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}

HEED_INLINE vf vf_sub(vf a, vf b)
{
    return vsubq_f32(a, b);
}

HEED_INLINE vf vf_mul(vf a, vf b)
{
    return vmulq_f32(a, b);
}

#if defined(__aarch64__)
HEED_INLINE vf vf_div(vf a, vf b)
{
    return vdivq_f32(a, b);
}
#else
HEED_INLINE vf vf_div(vf a, vf b)
{
    float x[4], y[4];
    vst1q_f32(x, a);
    vst1q_f32(y, b);
    for (int i = 0; i < 4; i++)
        x[i] /= y[i];
    return vld1q_f32(x);
}
#endif

HEED_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}

#if GEMM_BY_LANE
/* Not vfmaq_laneq_f32, which SIMDe does not fuse; gcc and clang make the by-lane instruction of this. */
HEED_INLINE vf vf_fma_lane(vf a, int lane, vf b, vf c)
{
    switch (lane) {
    case 0:
        return vfmaq_f32(c, b, vdupq_laneq_f32(a, 0));
    case 1:
        return vfmaq_f32(c, b, vdupq_laneq_f32(a, 1));
    case 2:
        return vfmaq_f32(c, b, vdupq_laneq_f32(a, 2));
    default:
        return vfmaq_f32(c, b, vdupq_laneq_f32(a, 3));
    }
}
#endif

HEED_INLINE vf vf_minus_abs(vf x)
{
    return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0x80000000u)));
}

HEED_INLINE uint32x4_t lanes_less(vf a, vf b)
{
#if defined(__arm__) && !defined(__clang__)
    /* gcc takes the intrinsic apart, four scalars compared through the flags, lest subnormals be taken for 0, as they
     * are by all else here. */
    uint32x4_t less;
    __asm__("vcgt.f32 %q0, %q1, %q2" : "=w"(less) : "w"(b), "w"(a));
    return less;
#else
    return vcltq_f32(a, b);
#endif
}

HEED_INLINE vf vf_select_less(vf a, vf b, vf x, vf y)
{
    return vbslq_f32(lanes_less(a, b), x, y);
}

HEED_INLINE vf vf_select_signed(vf x, vf negative, vf other)
{
    return vbslq_f32(vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_f32(x), 31)), negative, other);
}

HEED_INLINE vf vf_sub_fused(vf a, vf b)
{
    return vf_sub(a, b);
}

HEED_INLINE vf vf_max(vf a, vf b)
{
    return vf_select_less(b, a, a, b);
}

HEED_INLINE vf vf_min(vf a, vf b)
{
    return vf_select_less(a, b, a, b);
}

/* n plus the biases of one exponent or two, in the low bits; shifted up, an exponent loses the rest. */
HEED_INLINE int32x4_t biased_exponent(vf n, float bias)
{
    return vreinterpretq_s32_f32(vaddq_f32(n, vdupq_n_f32(0x1.8p23f + bias)));
}

HEED_INLINE vf vf_of_exponent(int32x4_t biased)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(biased, 23));
}

HEED_INLINE vf vf_scale2(vf p, vf n)
{
    int32x4_t i = biased_exponent(n, 2 * 127), half = vshrq_n_s32(i, 1);
    return vmulq_f32(vmulq_f32(p, vf_of_exponent(half)), vf_of_exponent(vsubq_s32(i, half)));
}

HEED_INLINE vf vf_or_zero_below(vf x, vf low, vf y)
{
    return vf_select_less(x, low, vf_set1(0.0f), y);
}

/* Unsigned, bits of NaN are above those of all numbers that are not negative, and below those that are. */
HEED_INLINE vf vf_keep_above(vf kept, vf x, vf limit)
{
    (void)limit;
    return vreinterpretq_f32_u32(vmaxq_u32(vreinterpretq_u32_f32(kept), vreinterpretq_u32_f32(x)));
}

HEED_INLINE bool is_any_clear(uint32x4_t mask)
{
    uint64x2_t halves = vreinterpretq_u64_u32(mask);
    return (vgetq_lane_u64(halves, 0) & vgetq_lane_u64(halves, 1)) != UINT64_MAX;
}

HEED_INLINE bool vf_any_above(vf kept, vf limit)
{
    return is_any_clear(vcleq_u32(vreinterpretq_u32_f32(kept), vreinterpretq_u32_f32(limit)));
}

HEED_INLINE bool vf_any_below(vf x, vf low)
{
    return is_any_clear(vcgeq_f32(x, low));
}

HEED_INLINE vf vf_scale2_shifted(vf p, vf t)
{
    int32x4_t k = vshlq_n_s32(vreinterpretq_s32_f32(t), 23);
    return vreinterpretq_f32_s32(vsubq_s32(vreinterpretq_s32_f32(p), k));
}

HEED_INLINE vf vf_scale2_above(vf p, vf n, vf x, vf low)
{
    return vf_or_zero_below(x, low, vf_scale2(p, n));
}

HEED_INLINE vf vf_scale2_normal_above(vf p, vf n, vf x, vf low)
{
    return vf_or_zero_below(x, low, vmulq_f32(p, vf_of_exponent(biased_exponent(n, 127))));
}

HEED_INLINE float vf_fold_add(vf v)
{
    float32x2_t x = vadd_f32(vget_low_f32(v), vget_high_f32(v));
    return vget_lane_f32(x, 0) + vget_lane_f32(x, 1);
}

HEED_INLINE float vf_fold_max(vf v)
{
    float x[4];
    vst1q_f32(x, v);
    float low = x[0] > x[2] ? x[0] : x[2], high = x[1] > x[3] ? x[1] : x[3];
    return low > high ? low : high;
}

HEED_INLINE float vf_first(vf v)
{
    return vgetq_lane_f32(v, 0);
}

HEED_INLINE void vf_unzip(vf a, vf b, vf *even, vf *odd)
{
    float32x4x2_t u = vuzpq_f32(a, b);
    *even = u.val[0];
    *odd = u.val[1];
}

HEED_INLINE void vf_zip(vf even, vf odd, vf *a, vf *b)
{
    float32x4x2_t z = vzipq_f32(even, odd);
    *a = z.val[0];
    *b = z.val[1];
}

HEED_INLINE void vf_transpose(vf v[VF_LEN])
{
    vf low02, high02, low13, high13;
    vf_zip(v[0], v[2], &low02, &high02);
    vf_zip(v[1], v[3], &low13, &high13);
    vf_zip(low02, low13, &v[0], &v[1]);
    vf_zip(high02, high13, &v[2], &v[3]);
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
