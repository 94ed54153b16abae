/* SPDX-License-Identifier: MIT
 * The AVX-512 table.
 */
#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) || !defined(__AVX512VL__)
#error "build with -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma"
#endif
#define HEED_TABLE avx512

#include "unchecked.h"

#include "vec/avx512.h"

#include "kernels/table.inc"
