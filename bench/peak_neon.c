/* SPDX-License-Identifier: MIT
 * The limits' loops on NEON.
 */
#include "vec/neon.h"

#define PEAK_TABLE neon
#define PEAK_CHAINS 24

#include "peak.inc"
