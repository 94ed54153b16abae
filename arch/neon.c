/* SPDX-License-Identifier: MIT
 * The NEON table; on x86 the same source through SIMDe, for the tests.
 */
#if !defined(__ARM_NEON) && !defined(__FMA__)
#error "SIMDe fuses vfmaq_f32 on x86 only with -mfma"
#endif
#define HEED_TABLE neon

#include "unchecked.h"

#include "vec/neon.h"

#include "kernels/table.inc"
