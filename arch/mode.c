/* SPDX-License-Identifier: MIT
 * The control bits of MXCSR, FPCR or FPSCR; elsewhere the rounding direction that C knows. Not the bits in the same
 * registers that tell what has happened.
 */
#include "unchecked.h"

#include "mode.h"

#if defined(__SSE__)
#include <xmmintrin.h>

#define HAPPENED 0x3fu

static uint32_t get(void)
{
    return _mm_getcsr();
}

static void set(uint32_t word)
{
    _mm_setcsr(word);
}
#elif defined(__aarch64__)
#define HAPPENED 0u

static uint32_t get(void)
{
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return (uint32_t)word;
}

static void set(uint32_t word)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)word));
}
#elif defined(__arm__) && defined(__ARM_FP)
#define HAPPENED 0xf800009fu

static uint32_t get(void)
{
    uint32_t word;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(word));
    return word;
}

static void set(uint32_t word)
{
    __asm__ volatile("vmsr fpscr, %0" : : "r"(word));
}
#else
#include <fenv.h>

#define HAPPENED 0u

static uint32_t get(void)
{
    return (uint32_t)fegetround();
}

static void set(uint32_t word)
{
    fesetround((int)word);
}
#endif

uint32_t heed_mode(void)
{
    return get() & ~HAPPENED;
}

uint32_t heed_mode_take(uint32_t mode)
{
    uint32_t word = get(), before = word & ~HAPPENED;
    if (before != mode)
        set((word & HAPPENED) | mode);
    return before;
}
