/* SPDX-License-Identifier: MIT
 * The limits' loops on SSE2: its multiply-add is a multiplication and an addition.
 */
#include "vec/sse2.h"

#define PEAK_TABLE sse2
#define PEAK_CHAINS 12

#include "peak.inc"
