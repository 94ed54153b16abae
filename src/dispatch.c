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

static const struct level_entry levels[] = {
    {"scalar", &heed_kernels_scalar, NO_BUNDLE, false, false, false},
    {"scalar_fma", TABLE_SCALAR_FMA, offsetof(struct heed_cpu, fma), true, false, true},
    {"sse2", TABLE_SSE2, offsetof(struct heed_cpu, sse2), false, false, false},
    {"neon", TABLE_NEON, NEON_BUNDLE, true, NEON_EMULATED, false},
    {"avx2", TABLE_AVX2, offsetof(struct heed_cpu, avx2), true, false, false},
    {"avx512", TABLE_AVX512, offsetof(struct heed_cpu, avx512), true, false, false},
};

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

/* What an operator without a pinned level gets. asked: the name in HEED_ISA if it cannot be had. l2:
 * bytes of a core's second-level cache to plan for. */
struct choice {
    const struct heed_kernels *kernels;
    heed_status status;
    const char *asked;
    size_t l2;
};

#define KIB(n) ((size_t)(n)*1024)

static const struct choice unknown_level = {NULL, HEED_ERR_LEVEL_UNKNOWN, "", KIB(256)};

/* For each level: its kernels with every size of L2 that makes a difference, or the refusal. Indexed
 * like levels. */
static const size_t l2_sizes[] = {KIB(256), KIB(512), KIB(1024), KIB(2048)};

#define N_L2_SIZES (sizeof l2_sizes / sizeof *l2_sizes)

#define CHOICE(name, table)                                                                                            \
    {                                                                                                                  \
        {table, HEED_OK, name, KIB(256)}, {table, HEED_OK, name, KIB(512)}, {table, HEED_OK, name, KIB(1024)},         \
        {                                                                                                              \
            table, HEED_OK, name, KIB(2048)                                                                            \
        }                                                                                                              \
    }
#define REFUSAL(name)                                                                                                  \
    {                                                                                                                  \
        NULL, HEED_ERR_LEVEL_UNSUPPORTED, name, KIB(256)                                                               \
    }
static const struct choice choices[N_LEVELS][N_L2_SIZES] = {
    CHOICE("scalar", &heed_kernels_scalar),
    CHOICE("scalar_fma", TABLE_SCALAR_FMA),
    CHOICE("sse2", TABLE_SSE2),
    CHOICE("neon", TABLE_NEON),
    CHOICE("avx2", TABLE_AVX2),
    CHOICE("avx512", TABLE_AVX512),
};
static const struct choice refusals[N_LEVELS] = {
    REFUSAL("scalar"), REFUSAL("scalar_fma"), REFUSAL("sse2"), REFUSAL("neon"), REFUSAL("avx2"), REFUSAL("avx512"),
};

/* The choice of a level for the cache of this CPU: the largest size that it has. */
static const struct choice *choice_of(size_t level)
{
    size_t bytes = heed_cpu_l2_bytes(), size = N_L2_SIZES - 1;
    while (size > 0 && l2_sizes[size] > bytes)
        size--;
    return &choices[level][size];
}

static const struct choice *choose_by_name(const char *name)
{
    for (size_t i = 0; i < N_LEVELS; i++)
        if (strcmp(name, levels[i].name) == 0)
            return heed_level_at(i).reason ? &refusals[i] : choice_of(i);
    return &unknown_level;
}

static const struct choice *choose_best(void)
{
    size_t best = 0;
    for (size_t i = 1; i < N_LEVELS; i++)
        if (!levels[i].oracle && !heed_level_at(i).reason)
            best = i;
    return choice_of(best);
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

static uint32_t one_or_two(void)
{
    return heed_cpu_is_zen_5() ? 2 : 1;
}

bool heed_is_zen_5(void)
{
    static _Atomic uint32_t known;
    return ask_once(&known, one_or_two) == 2;
}

static void choose_at_load(void) __attribute__((constructor));
static void choose_at_load(void)
{
    (void)default_choice();
    (void)heed_in_order_bytes();
    (void)heed_is_zen_5();
}

size_t heed_l2_bytes(void)
{
    return default_choice()->l2;
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
