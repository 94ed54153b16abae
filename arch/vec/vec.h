/* SPDX-License-Identifier: MIT
 * What every vec/<isa>.h supplies, and the little that all of them share.
 *
 * Types and sizes   vf (a vector of floats), VF_LEN (1, 4, 8 or 16), HEED_TABLE (name of the table), VF_FUSED
 *                   (0 or 1), VF_EACH (how many vectors go in step through a long function), VF_HALVES (the same
 *                   where the second half of some goes beside the first of others), VF_WIDE_HALVES (the same of
 *                   wide cores, if others), VF_MAX_BESIDE (1 where registers hold a maximum's lanes beside
 *                   exponentials in step)
 * Micro-kernel      GEMM_TILES(X): X(rows, vectors) for every height from 1 to GEMM_TALLEST, with the most
 *                   vectors, up to GEMM_WIDEST, whose accumulators still lie in registers. GEMM_MR: the height
 *                   where there are many rows, GEMM_NARROW_MR: and b is in place, gated, or
 *                   of few columns (see HEED_NARROW_COLS). GEMM_NARROWEST: the least of the vectors. GEMM_APART:
 *                   how many of some rows go by a tile of theirs, wider than the highest, or 0. GEMM_PREFETCH:
 *                   steps of k that b is prefetched ahead, or 0. GEMM_COPIED_ROWS: see copied_rows in kernels.h;
 *                   more where a tile reads whole lines of b. GEMM_FEW_ROWS: tiles of 2 to so many rows load
 *                   each vector of b once, by force; 1: none. GEMM_MAIN_STEPS: steps of k that a loop of a tile of
 *                   more than half of GEMM_TALLEST rows takes at once. GEMM_LAST_STEPS: steps of k, or 0, that
 *                   tiles of at least GEMM_LAST_TILE accumulators take by GEMM_LAST_ROWS rows in the end.
 *                   GEMM_BY_LANE: 1 where vf_fma_lane(a, lane, b, c) = a[lane] b + c is one instruction
 * Memory            vf_load, vf_store: VF_LEN floats, any alignment. vf_load_n(p, n, fill) and
 *                   vf_store_n(p, v, n): the first n <= VF_LEN lanes; no other byte is touched. vf_stream(p, v): to
 *                   a vector's alignment, past the caches where the CPU can; others see it after vf_stream_end.
 *                   vf_load_bytes: VF_LEN unsigned bytes as floats
 * Arithmetic        vf_set1 vf_add vf_sub vf_mul vf_div, all correctly rounded.
 *                   vf_fma(a, b, c) = a b + c: fused, or rounded twice, throughout the table.
 *                   vf_sub_fused(a, b) = a - b, where possible by the multiply-add unit, which on Zen 4 is not the
 *                   one that adds
 * Halves            hf, HF_LEN and hf_set1 hf_load hf_load_n(p, n) hf_store hf_store_n hf_fma, where the
 *                   multiply-add units do two shorter vectors in the time of a whole one; else none, and hf is vf.
 *                   hf_of(v, 0 or 1): the lower or upper half; vf_of_halves(low, high) undoes it. Where HF_LEN is 8,
 *                   vec/octet.h has more of such vectors
 * Choice            vf_max(a, b) = a > b ? a : b; vf_min(a, b) = a < b ? a : b; both give b for NaN.
 *                   vf_select_less(a, b, x, y) = a < b ? x : y. vf_select_signed(x, a, b) = x's sign is set ? a : b.
 *                   vf_minus_abs(x) = -|x|. vf_keep_n(v, n): lanes from n on +0. vf_or_zero_below(x, low, y) = +0
 *                   where x < low, else y
 * Limits            vf_keep_above(kept, x, limit): of what is above the limit, which is positive, or NaN, something
 *                   is kept in each lane, of kept and of x; +0 keeps nothing. vf_any_above(kept, limit): whether there
 *                   is any. What is negative may be kept, in the place of others, and is then above.
 *                   vf_any_below(x, low): whether any x < low, or is NaN
 * Rounding          VF_ROUNDS: 1 where vf_round(x), the nearest integer, even of two, is one instruction.
 *                   VF_REDUCES: 1 where vf_fraction(x) = x - vf_round(x) is
 * Scaling           vf_scale2_above(p, n, x, low) = +0 where x < low, else p 2^(n >> 1) 2^(n - (n >> 1)), n
 *                   integral, |n| <= 252, or p NaN
 *                   vf_scale2_normal_above(p, n, x, low) = p 2^n for -126 <= n <= 127 wherever x >= low, else +0
 *                   vf_scale2_shifted(p, t) = p 2^-k where t = 1.5 2^23 + k and both p and that are normal
 *                   numbers, else anything
 *                   vf_scale2_down(p, n, t), a macro as well, or none: the same by t = n + f <= 1, p = 2^f, +0 below
 *                   2^-150
 * Across lanes      vf_fold_add, vf_fold_max: halves onto halves, down to one float. vf_first: lane 0.
 *                   vf_fold_add_rows(v, sum), vf_fold_max_rows(v, max): the same of VF_LEN / 4 vectors, where
 *                   VF_LEN is 8 or 16
 *                   vf_transpose(v): VF_LEN vectors as a square matrix. vf_load_across(p, ld, v): lane i of v[s]
 *                   is p[i ld + s], s < VF_STEPS, which divides VF_LEN; vf_load_few_across the same of VF_FEW_STEPS,
 *                   where these are fewer. vf_store_across(v, n, p, ld): p[i ld + j] is lane i of v[j], j < n <= 4;
 *                   v may change. vf_unzip(a, b, &even, &odd): the elements of a and b at even and odd places;
 *                   vf_zip undoes it
 */
#ifndef HEED_VEC_H
#define HEED_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEED_INLINE static inline __attribute__((always_inline))

/* What only some calls want, lest the others set up its frame or lack the registers that it takes. */
#define HEED_NOINLINE static __attribute__((noinline))

/* Constant-bound loops over vectors must be unrolled for the vectors to live in registers; gcc -O2
 * does not do so by itself (micro-kernels then run at 40 % of their speed). With UBSan's branches in
 * them loops stay loops: unrolled, they take clang's loop passes many minutes a table. */
#if !defined(__clang__)
#define HEED_UNROLL _Pragma("GCC unroll 32")
#elif __has_feature(undefined_behavior_sanitizer)
#define HEED_UNROLL
#else
#define HEED_UNROLL _Pragma("clang loop unroll(full)")
#endif

/* Keeps the compiler from moving loads of later steps up, where they cost registers that there are not. */
#define HEED_KEEP_ORDER() __asm__ volatile("")

/* clang needs to be told of every vector that is computed before. */
#if defined(__clang__) && (defined(__x86_64__) || defined(__i386__))
#define HEED_KEEP_BEFORE(v) __asm__ volatile("" : "+v"(v)::"memory")
#else
#define HEED_KEEP_BEFORE(v) ((void)(v))
#endif

/* Has a register hold a vector until here. gcc 12 would put a sum where a factor ends, lose its way among the sums of
 * several steps, and keep one of them in memory: 1.08 times the time. */
#if !defined(__clang__) && (defined(__x86_64__) || defined(__i386__))
#define HEED_KEEP_ALIVE(v) __asm__ volatile("" ::"x"(v))
#else
#define HEED_KEEP_ALIVE(v) ((void)(v))
#endif

/* Has a vector in a register, where compilers would rather load it again for each use. */
#if defined(__x86_64__) || defined(__i386__)
#define HEED_IN_REGISTER(v) __asm__("" : "+v"(v))
#else
#define HEED_IN_REGISTER(v)
#endif

/* The same of a constant, where registers are 16. */
#if (defined(__x86_64__) || defined(__i386__)) && !defined(__AVX512F__)
#define HEED_LOAD_ONCE(v) __asm__ volatile("" : "+v"(v))
#else
#define HEED_LOAD_ONCE(v) ((void)(v))
#endif

/* Makes the compiler forget what it knows of an integer or a pointer, which is to be in a register. */
#define HEED_FORGET(x) __asm__("" : "+r"(x))

/* Prefetches a cache line, which need not exist. */
#define HEED_PREFETCH_L1(p) __builtin_prefetch((p), 0, 3)
#define HEED_PREFETCH_L2(p) __builtin_prefetch((p), 0, 2)
#define HEED_PREFETCH_WRITE(p) __builtin_prefetch((p), 1, 3)

#endif
