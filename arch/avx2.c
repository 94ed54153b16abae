/* SPDX-License-Identifier: MIT
 * The AVX2 and FMA table.
 */
#if !defined(__AVX2__) || !defined(__FMA__)
#error "build with -mavx2 -mfma"
#endif
#define HEED_TABLE avx2

#include "unchecked.h"

#include "vec/avx2.h"

#include "kernels/table.inc"
