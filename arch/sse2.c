/* SPDX-License-Identifier: MIT
 * The SSE2 table.
 */
#if !defined(__SSE2__)
#error "build with -msse2"
#endif
#define HEED_TABLE sse2

#include "unchecked.h"

#include "vec/sse2.h"

#include "kernels/table.inc"
