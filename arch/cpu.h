/* SPDX-License-Identifier: MIT
 * Which bundles of instructions this CPU and operating system support.
 */
#ifndef HEED_CPU_H
#define HEED_CPU_H

#include <stdbool.h>
#include <stdint.h>

/* The register words that detection looks at: cpuid leaves 0, 1 and 7 (subleaf 0), and XCR0 (0 where
 * OSXSAVE is not set). */
struct heed_x86_words {
    uint32_t max_leaf, leaf1_ecx, leaf1_edx, leaf7_ebx;
    uint64_t xcr0;
};

/* Bundles, each the first thing that is missing for it, or NULL if it is there. */
struct heed_cpu {
    const char *fma, *sse2, *avx2, *avx512, *neon;
};

/* A pure function, so that it can be tested on any CPU. */
struct heed_cpu heed_cpu_from_x86(const struct heed_x86_words *words);

struct heed_cpu heed_cpu_detect(void);

/* Bytes of rows, read and written, from which memory is to be walked in the order of its addresses, and written without
 * prefetching lines ahead; half of the third-level cache that a core shares. HEED_CPU_ANY_ORDER: it need not be, and
 * lines are prefetched. */
#define HEED_CPU_ANY_ORDER UINT32_MAX
uint32_t heed_cpu_in_order_bytes(void);

/* The same of a vendor (EBX, EDX and ECX of leaf 0) and a cache; 0 bytes where the CPU does not tell. */
uint32_t heed_cpu_in_order_from_x86(const uint32_t vendor[3], uint64_t l3_bytes);

/* Whether cores are wide: two multiply-add units of 512 bits, a first cache of 48 KiB that keeps twelve lines of a set,
 * and prefetchers that few requests far ahead can help. AMD's from Zen 5 on; no other CPU was measured. */
bool heed_cpu_is_wide(void);

/* The same of a vendor, as above, and EAX of leaf 1, which holds the family. */
bool heed_cpu_is_wide_from_x86(const uint32_t vendor[3], uint32_t leaf1_eax);

/* Bytes of the second-level cache of one core, or a common size where the CPU does not tell. */
uint32_t heed_cpu_l2_bytes(void);

#endif
