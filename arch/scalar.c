/* SPDX-License-Identifier: MIT
 * The plain C table of the baseline, and with -mfma -DHEED_SCALAR_FMA the oracle of the fused class.
 */

#if defined(HEED_SCALAR_FMA)
#if !defined(__FMA__)
#error "build with -mfma"
#endif
#define HEED_TABLE scalar_fma
#else
#define HEED_TABLE scalar
#endif

#include "unchecked.h"

#include "vec/scalar.h"

#include "kernels/table.inc"
