/* SPDX-License-Identifier: MIT
 * The limits' loops on AVX-512.
 */
#include "vec/avx512.h"

#define PEAK_TABLE avx512
#define PEAK_CHAINS 24

#include "peak.inc"
