/* SPDX-License-Identifier: MIT
 * cpuid and xgetbv on x86, hwcap on ARM, to bundles of instructions.
 *
 * A bundle counts only if the operating system saves its registers (XCR0): virtual machines report
 * AVX-512 in cpuid with the state off. AVX2 does not imply FMA: both have their own bit.
 */
#include "unchecked.h"

#include "cpu.h"

#include <stddef.h>
#include <string.h>

#define LEAF1_ECX_FMA (1u << 12)
#define LEAF1_ECX_OSXSAVE (1u << 27)
#define LEAF1_ECX_AVX (1u << 28)
#define LEAF1_EDX_SSE2 (1u << 26)
#define LEAF7_EBX_AVX2 (1u << 5)
#define LEAF7_EBX_AVX512F (1u << 16)
#define LEAF7_EBX_AVX512DQ (1u << 17)
#define LEAF7_EBX_AVX512BW (1u << 30)
#define LEAF7_EBX_AVX512VL (1u << 31)
#define LEAF_L2 0x80000006u                  /* AMD and Intel: ECX, bits 31 to 16, in KiB */
#define LEAF_TOPOLOGY_EXTENSIONS 0x80000001u /* AMD: ECX, bit 22: leaf 0x8000001d is there */
#define LEAF_CACHES 0x8000001du              /* AMD: a cache in every subleaf, until its type is 0 */
#define COMMON_L2 (512u << 10)
#define FAMILY_ZEN_5 0x1a
#define XCR0_YMM 0x06u
#define XCR0_ZMM 0xe6u

static const char *missing_fma(const struct heed_x86_words *w)
{
    if (w->max_leaf < 1 || !(w->leaf1_ecx & LEAF1_ECX_FMA) || !(w->leaf1_ecx & LEAF1_ECX_AVX))
        return "the CPU has no FMA";
    if (!(w->leaf1_ecx & LEAF1_ECX_OSXSAVE) || (w->xcr0 & XCR0_YMM) != XCR0_YMM)
        return "the operating system does not save AVX registers";
    return NULL;
}

static const char *missing_avx2(const struct heed_x86_words *w)
{
    const char *missing = missing_fma(w);
    if (missing)
        return missing;
    return w->max_leaf >= 7 && w->leaf7_ebx & LEAF7_EBX_AVX2 ? NULL : "the CPU has no AVX2";
}

static const char *missing_avx512(const struct heed_x86_words *w)
{
    const uint32_t bundle = LEAF7_EBX_AVX512F | LEAF7_EBX_AVX512DQ | LEAF7_EBX_AVX512BW | LEAF7_EBX_AVX512VL;
    const char *missing = missing_avx2(w);
    if (missing)
        return missing;
    if ((w->leaf7_ebx & bundle) != bundle)
        return "the CPU has not all of AVX-512 F, BW, DQ and VL";
    return (w->xcr0 & XCR0_ZMM) == XCR0_ZMM ? NULL : "the operating system does not save AVX-512 registers";
}

struct heed_cpu heed_cpu_from_x86(const struct heed_x86_words *w)
{
    return (struct heed_cpu){
        .fma = missing_fma(w),
        .sse2 = w->max_leaf >= 1 && w->leaf1_edx & LEAF1_EDX_SSE2 ? NULL : "the CPU has no SSE2",
        .avx2 = missing_avx2(w),
        .avx512 = missing_avx512(w),
        .neon = "not an ARM CPU",
    };
}

/* On AMD's Zen the prefetcher of the second cache follows one run of addresses: rows read or written in turn get half
 * of what memory gives to one row after the other. A request of the program's holds one of some 24 buffers of the first
 * cache until memory answers. Hygon's cores are AMD's. */
uint32_t heed_cpu_in_order_from_x86(const uint32_t vendor[3], uint64_t l3_bytes)
{
    bool amd = memcmp(vendor, "AuthenticAMD", 12) == 0 || memcmp(vendor, "HygonGenuine", 12) == 0;
    bool known = l3_bytes > 0 && l3_bytes / 2 < HEED_CPU_ANY_ORDER;
    return amd && known ? (uint32_t)(l3_bytes / 2) : HEED_CPU_ANY_ORDER;
}

/* Zen 5 is family 1Ah, which is counted in two fields. On it one row by weights of 67 to 520 MB reads 1.0 to 1.12 times
 * as fast in four runs as in one with requests far ahead, four and five rows 1.02 to 1.12 with requests of L1, and
 * LayerNorm of rows of 128 to 768 columns beyond L2 1.1 to 1.45 without requests. */
bool heed_cpu_is_wide_from_x86(const uint32_t vendor[3], uint32_t leaf1_eax)
{
    uint32_t family = leaf1_eax >> 8 & 15, extended = leaf1_eax >> 20 & 255;
    return memcmp(vendor, "AuthenticAMD", 12) == 0 && family == 15 && family + extended >= FAMILY_ZEN_5;
}

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

static uint64_t read_xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

struct heed_cpu heed_cpu_detect(void)
{
    struct heed_x86_words words = {.max_leaf = (uint32_t)__get_cpuid_max(0, NULL)};
    uint32_t eax, ebx, ecx, edx;
    if (words.max_leaf >= 1) {
        __cpuid(1, eax, ebx, ecx, edx);
        words.leaf1_ecx = ecx;
        words.leaf1_edx = edx;
    }
    if (words.max_leaf >= 7) {
        __cpuid_count(7, 0, eax, ebx, ecx, edx);
        words.leaf7_ebx = ebx;
    }
    if (words.leaf1_ecx & LEAF1_ECX_OSXSAVE)
        words.xcr0 = read_xcr0();
    return heed_cpu_from_x86(&words);
}

uint32_t heed_cpu_l2_bytes(void)
{
    uint32_t eax, ebx, ecx = 0, edx;
    if (!__get_cpuid(LEAF_L2, &eax, &ebx, &ecx, &edx) || ecx >> 16 == 0)
        return COMMON_L2;
    return (ecx >> 16) << 10;
}

/* Of the third-level cache that this core shares, 0 where the CPU does not tell. */
static uint64_t l3_bytes(void)
{
    uint32_t eax, ebx, ecx, edx;
    if (!__get_cpuid(LEAF_TOPOLOGY_EXTENSIONS, &eax, &ebx, &ecx, &edx) || !(ecx & 1u << 22))
        return 0;
    for (uint32_t cache = 0; cache < 8; cache++) {
        __cpuid_count(LEAF_CACHES, cache, eax, ebx, ecx, edx);
        if ((eax & 31) == 0)
            return 0;
        if ((eax >> 5 & 7) == 3)
            return (uint64_t)((ebx >> 22) + 1) * ((ebx >> 12 & 1023) + 1) * ((ebx & 4095) + 1) * ((uint64_t)ecx + 1);
    }
    return 0;
}

uint32_t heed_cpu_in_order_bytes(void)
{
    uint32_t eax, vendor[3];
    if (!__get_cpuid(0, &eax, &vendor[0], &vendor[2], &vendor[1]))
        return HEED_CPU_ANY_ORDER;
    return heed_cpu_in_order_from_x86(vendor, l3_bytes());
}

bool heed_cpu_is_wide(void)
{
    uint32_t eax, ebx, ecx, edx, vendor[3];
    if (!__get_cpuid(0, &eax, &vendor[0], &vendor[2], &vendor[1]) || !__get_cpuid(1, &eax, &ebx, &ecx, &edx))
        return false;
    return heed_cpu_is_wide_from_x86(vendor, eax);
}

#else

uint32_t heed_cpu_l2_bytes(void)
{
    return COMMON_L2;
}

uint32_t heed_cpu_in_order_bytes(void)
{
    return HEED_CPU_ANY_ORDER;
}

bool heed_cpu_is_wide(void)
{
    return false;
}

#if defined(__arm__) && defined(__linux__)
#include <sys/auxv.h>
#endif

/* NEON is part of AArch64's baseline. AArch32 needs it and the fused multiply-add of VFPv4. */
static const char *missing_neon(void)
{
#if defined(__aarch64__)
    return NULL;
#elif defined(__arm__) && defined(__linux__)
    const unsigned long neon = 1ul << 12, vfpv4 = 1ul << 16, needed = neon | vfpv4;
    return (getauxval(AT_HWCAP) & needed) == needed ? NULL : "the CPU has no NEON with VFPv4";
#elif defined(__arm__) && defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
    return NULL;
#else
    return "not an ARM CPU";
#endif
}

struct heed_cpu heed_cpu_detect(void)
{
    static const char not_x86[] = "not an x86 CPU";
    return (struct heed_cpu){not_x86, not_x86, not_x86, not_x86, missing_neon()};
}

#endif
