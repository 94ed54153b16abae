/* SPDX-License-Identifier: MIT
 * The limits' loops in plain C, and with -mfma -DHEED_SCALAR_FMA on scalar FMA.
 */
#include "vec/scalar.h"

#if defined(HEED_SCALAR_FMA)
#define PEAK_TABLE scalar_fma
#else
#define PEAK_TABLE scalar
#endif
#define PEAK_CHAINS 12

#include "peak.inc"
