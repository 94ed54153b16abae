/* SPDX-License-Identifier: MIT
 * Which table of kernels runs: one pointer to a const choice, set by a constructor or on first use.
 *
 * Detection is idempotent, so that any number of threads may do it at once, and a call before the
 * constructor (static link, another library's initialiser) finds it done by itself.
 */
#include "internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu.h"

/* One entry for every level that a library can have, from the plainest upwards; the last one that is
 * usable is the default. bundle is the offset of the level's verdict in struct heed_cpu. */
struct level_entry {
    const char *name;
    const struct heed_kernels *kernels;
    size_t bundle;
    bool fused;
    bool emulated; /* built through SIMDe: run by the tests, never selected */
    bool oracle;   /* selectable by name, never the default */
};

#define NO_BUNDLE SIZE_MAX

#if HAVE_TABLE_SCALAR_FMA
#define TABLE_SCALAR_FMA &heed_kernels_scalar_fma
#else
#define TABLE_SCALAR_FMA NULL
#endif
#if HAVE_TABLE_SSE2
#define TABLE_SSE2 &heed_kernels_sse2
#else
#define TABLE_SSE2 NULL
#endif
#if HAVE_TABLE_AVX2
#define TABLE_AVX2 &heed_kernels_avx2
#else
#define TABLE_AVX2 NULL
#endif
#if HAVE_TABLE_AVX512
#define TABLE_AVX512 &heed_kernels_avx512
#else
#define TABLE_AVX512 NULL
#endif
#if HAVE_TABLE_NEON
#define TABLE_NEON &heed_kernels_neon
#else
#define TABLE_NEON NULL
#endif

#if defined(__aarch64__) || defined(__arm__)
#define NEON_EMULATED false
#define NEON_BUNDLE offsetof(struct heed_cpu, neon)
#else
#define NEON_EMULATED true
#define NEON_BUNDLE offsetof(struct heed_cpu, fma)
#endif

#define LEVELS(X)                                                                                                      \
    X("scalar", &heed_kernels_scalar, NO_BUNDLE, false, false, false)                                                  \
    X("scalar_fma", TABLE_SCALAR_FMA, offsetof(struct heed_cpu, fma), true, false, true)                               \
    X("sse2", TABLE_SSE2, offsetof(struct heed_cpu, sse2), false, false, false)                                        \
    X("neon", TABLE_NEON, NEON_BUNDLE, true, NEON_EMULATED, false)                                                     \
    X("avx2", TABLE_AVX2, offsetof(struct heed_cpu, avx2), true, false, false)                                         \
    X("avx512", TABLE_AVX512, offsetof(struct heed_cpu, avx512), true, false, false)

#define LEVEL_ENTRY(name, table, bundle, fused, emulated, oracle) {name, table, bundle, fused, emulated, oracle},

static const struct level_entry levels[] = {LEVELS(LEVEL_ENTRY)};

#define N_LEVELS (sizeof levels / sizeof *levels)

static const char *missing_bundle(const struct level_entry *entry, const struct heed_cpu *cpu)
{
    const char *missing = NULL;
    if (entry->bundle != NO_BUNDLE)
        memcpy(&missing, (const char *)cpu + entry->bundle, sizeof missing);
    return missing;
}

size_t heed_level_count(void)
{
    return N_LEVELS;
}

struct heed_level heed_level_on(size_t index, const struct heed_cpu *cpu)
{
    const struct level_entry *entry = &levels[index];
    const char *missing = missing_bundle(entry, cpu);
    struct heed_level level = {.name = entry->name, .kernels = entry->kernels, .fused = entry->fused};
    if (entry->kernels)
        level.fused = entry->kernels->fused;
    level.runnable = entry->kernels && !missing;
    if (!entry->kernels)
        level.reason = "not built into this library";
    else if (missing)
        level.reason = missing;
    else if (entry->emulated)
        level.reason = "emulated through SIMDe, for the tests only";
    return level;
}

struct heed_level heed_level_at(size_t index)
{
    struct heed_cpu cpu = heed_cpu_detect();
    return heed_level_on(index, &cpu);
}

/* What an operator without a pinned level gets. asked: the name in HEED_ISA if it cannot be had. */
struct choice {
    const struct heed_kernels *kernels;
    heed_status status;
    const char *asked;
};

static const struct choice unknown_level = {NULL, HEED_ERR_LEVEL_UNKNOWN, ""};

/* For each level its kernels, or the refusal. */
#define CHOICE(name, table, bundle, fused, emulated, oracle) {table, HEED_OK, name},
#define REFUSAL(name, table, bundle, fused, emulated, oracle) {NULL, HEED_ERR_LEVEL_UNSUPPORTED, name},

static const struct choice choices[] = {LEVELS(CHOICE)}, refusals[] = {LEVELS(REFUSAL)};

static const struct choice *choose_by_name(const char *name)
{
    for (size_t i = 0; i < N_LEVELS; i++)
        if (strcmp(name, levels[i].name) == 0)
            return heed_level_at(i).reason ? &refusals[i] : &choices[i];
    return &unknown_level;
}

static const struct choice *choose_best(void)
{
    struct heed_cpu cpu = heed_cpu_detect();
    size_t best = 0;
    for (size_t i = 1; i < N_LEVELS; i++)
        if (!levels[i].oracle && !heed_level_on(i, &cpu).reason)
            best = i;
    return &choices[best];
}

/* A set-user-id program must not take orders from its caller's environment. */
static const char *level_from_environment(void)
{
#if HAVE_SECURE_GETENV
    return secure_getenv("HEED_ISA");
#else
    return getuid() == geteuid() && getgid() == getegid() ? getenv("HEED_ISA") : NULL;
#endif
}

static _Atomic(const struct choice *) active;

static const struct choice *default_choice(void)
{
    const struct choice *choice = atomic_load_explicit(&active, memory_order_acquire);
    if (!choice) {
        const char *name = level_from_environment();
        choice = name && *name ? choose_by_name(name) : choose_best();
        atomic_store_explicit(&active, choice, memory_order_release);
    }
    return choice;
}

#define LEAST_L2 (UINT32_C(256) * 1024)
#define MOST_L2 (UINT32_C(2048) * 1024)

/* What `ask` answers, which is not 0, from the second call on without asking: cpuid can take a virtual machine
 * microseconds. */
static uint32_t ask_once(_Atomic uint32_t *known, uint32_t (*ask)(void))
{
    uint32_t answer = atomic_load_explicit(known, memory_order_relaxed);
    if (answer == 0) {
        answer = ask();
        atomic_store_explicit(known, answer, memory_order_relaxed);
    }
    return answer;
}

size_t heed_in_order_bytes(void)
{
    static _Atomic uint32_t known;
    return ask_once(&known, heed_cpu_in_order_bytes);
}

/* The bytes of L2 to plan for: a power of two, so that CPUs that differ by little plan alike. */
static uint32_t planned_l2(void)
{
    uint32_t bytes = heed_cpu_l2_bytes(), planned = LEAST_L2;
    while (planned < MOST_L2 && 2 * planned <= bytes)
        planned *= 2;
    return planned;
}

size_t heed_l2_bytes(void)
{
    static _Atomic uint32_t known;
    return ask_once(&known, planned_l2);
}

static uint32_t one_or_two(void)
{
    return heed_cpu_is_wide() ? 2 : 1;
}

bool heed_core_is_wide(void)
{
    static _Atomic uint32_t known;
    return ask_once(&known, one_or_two) == 2;
}

static void choose_at_load(void) __attribute__((constructor));
static void choose_at_load(void)
{
    (void)default_choice();
    (void)heed_l2_bytes();
    (void)heed_in_order_bytes();
    (void)heed_core_is_wide();
}

heed_status heed_level_select(const char *name, const struct heed_kernels **kernels)
{
    const struct choice *choice = name ? choose_by_name(name) : default_choice();
    *kernels = choice->kernels;
    return choice->status;
}

heed_status heed_level_query(size_t index, heed_level_info *info)
{
    if (!info)
        return HEED_ERR_NULL;
    if (index >= N_LEVELS)
        return HEED_ERR_VALUE;
    struct heed_level level = heed_level_at(index);
    *info = (heed_level_info){
        .name = level.name,
        .reason = level.reason,
        .built = level.kernels != NULL,
        .supported = level.reason == NULL,
        .fused = level.fused,
    };
    return HEED_OK;
}

heed_status heed_level_default(const char **name)
{
    if (!name)
        return HEED_ERR_NULL;
    *name = default_choice()->asked;
    return default_choice()->status;
}
