/* SPDX-License-Identifier: MIT
 * The limits' loops on AVX2 and FMA.
 */
#include "vec/avx2.h"

#define PEAK_TABLE avx2
#define PEAK_CHAINS 12

#include "peak.inc"
