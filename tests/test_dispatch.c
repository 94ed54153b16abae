/* SPDX-License-Identifier: MIT
 * Which level is chosen: detection over all combinations of faked register words, and HEED_ISA, for which
 * the program runs itself again with the variable set (it is read once, when the library is loaded).
 */
#include "check.h"
#include "cpu.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- detection ---- */

/* The bits that may decide, in the order of one number; written from the processor manuals. */
enum { FMA, OSXSAVE, AVX, SSE2, AVX2, AVX512F, AVX512DQ, AVX512BW, AVX512VL, BITS };

static const struct {
    int word; /* 0: leaf 1 ecx, 1: leaf 1 edx, 2: leaf 7 ebx */
    int bit;
} positions[BITS] = {{0, 12}, {0, 27}, {0, 28}, {1, 26}, {2, 5}, {2, 16}, {2, 17}, {2, 30}, {2, 31}};

static const uint32_t leaves[] = {0, 1, 2, 6, 7, 0x20};
static const uint64_t states[] = {0, 1, 2, 3, 4, 6, 7, 0x60, 0x66, 0xa6, 0xc6, 0xe0, 0xe1, 0xe4, 0xe6, 0xe7, 0x2e7};

static struct heed_x86_words words_of(unsigned bits, uint32_t leaf, uint64_t state, uint32_t noise)
{
    uint32_t words[3] = {noise, noise, noise};
    for (int i = 0; i < BITS; i++) {
        uint32_t bit = 1u << positions[i].bit;
        words[positions[i].word] = bits >> i & 1u ? words[positions[i].word] | bit : words[positions[i].word] & ~bit;
    }
    return (struct heed_x86_words){leaf, words[0], words[1], words[2], state};
}

static int has(unsigned bits, int bit)
{
    return (int)(bits >> bit & 1u);
}

static void check_words(unsigned bits, uint32_t leaf, uint64_t state, uint32_t noise)
{
    const struct heed_x86_words words = words_of(bits, leaf, state, noise);
    struct heed_cpu cpu = heed_cpu_from_x86(&words);
    int ymm = has(bits, OSXSAVE) && has(bits, AVX) && (state >> 1 & 1) && (state >> 2 & 1);
    int zmm = ymm && (state >> 5 & 1) && (state >> 6 & 1) && (state >> 7 & 1);
    int sse2 = leaf >= 1 && has(bits, SSE2), fma = leaf >= 1 && has(bits, FMA) && ymm;
    int avx2 = leaf >= 7 && fma && has(bits, AVX2);
    int avx512 = avx2 && zmm && has(bits, AVX512F) && has(bits, AVX512DQ) && has(bits, AVX512BW) && has(bits, AVX512VL);
    check_that((cpu.sse2 == NULL) == sse2 && (cpu.fma == NULL) == fma && (cpu.avx2 == NULL) == avx2 &&
                   (cpu.avx512 == NULL) == avx512 && cpu.neon != NULL,
               "bits 0x%x, leaf %u, XCR0 0x%x: sse2 %s, fma %s, avx2 %s, avx512 %s", bits, (unsigned)leaf,
               (unsigned)state, cpu.sse2 ? cpu.sse2 : "yes", cpu.fma ? cpu.fma : "yes", cpu.avx2 ? cpu.avx2 : "yes",
               cpu.avx512 ? cpu.avx512 : "yes");
}

static void test_detection(void)
{
    begin("detection over faked cpuid and XCR0");
    for (unsigned bits = 0; bits < 1u << BITS; bits++)
        for (size_t leaf = 0; leaf < COUNT(leaves); leaf++)
            for (size_t state = 0; state < COUNT(states); state++) {
                check_words(bits, leaves[leaf], states[state], 0);
                check_words(bits, leaves[leaf], states[state], UINT32_MAX);
            }
    end();
}

#if defined(__x86_64__) || defined(__i386__)
/* What the compiler's own library says of this CPU. */
static void test_this_cpu(void)
{
    struct heed_cpu cpu = heed_cpu_detect();
    begin("this CPU has what the compiler finds");
    __builtin_cpu_init();
    int fma = __builtin_cpu_supports("fma") != 0, avx2 = fma && __builtin_cpu_supports("avx2");
    CHECK((cpu.sse2 == NULL) == (__builtin_cpu_supports("sse2") != 0));
    CHECK((cpu.fma == NULL) == fma && (cpu.avx2 == NULL) == avx2);
    CHECK((cpu.avx512 == NULL) == (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")));
    end();
}
#else
static void test_this_cpu(void)
{
    skip("not an x86 CPU", "this CPU has what the compiler finds");
}
#endif

static void test_memory_order(void)
{
    static const struct {
        char vendor[13];
        uint64_t l3;
        uint32_t expected;
    } cases[] = {
        {"AuthenticAMD", 32u << 20, 16u << 20},          {"HygonGenuine", 8u << 20, 4u << 20},
        {"AuthenticAMD", 0, HEED_CPU_ANY_ORDER},         {"AuthenticAMD", UINT64_MAX, HEED_CPU_ANY_ORDER},
        {"GenuineIntel", 32u << 20, HEED_CPU_ANY_ORDER}, {"AuthenticAMX", 32u << 20, HEED_CPU_ANY_ORDER},
    };
    begin("from where on rows are walked in memory's order");
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t vendor[3];
        memcpy(vendor, cases[i].vendor, sizeof vendor);
        uint32_t bytes = heed_cpu_in_order_from_x86(vendor, cases[i].l3);
        check_that(bytes == cases[i].expected, "%s: %lu bytes", cases[i].vendor, (unsigned long)bytes);
    }
    CHECK(heed_cpu_in_order_bytes() > 0 && heed_in_order_bytes() == heed_cpu_in_order_bytes());
    note("this CPU: %lu bytes", (unsigned long)heed_cpu_in_order_bytes());
    end();
}

/* EAX of leaf 1 of Zen 2 and 4, of Zen 5 in servers and notebooks, of what may follow, and of others' CPUs: Intel's
 * family is 6 whatever the other field says. */
static void test_wide_core(void)
{
    static const struct {
        char vendor[13];
        uint32_t leaf1_eax;
        bool wide_core;
    } cases[] = {{"AuthenticAMD", 0x00830f10, false}, {"AuthenticAMD", 0x00a10f11, false},
                 {"AuthenticAMD", 0x00b00f21, true},  {"AuthenticAMD", 0x00b40f40, true},
                 {"AuthenticAMD", 0x0fc00f00, true},  {"AuthenticAMD", 0x0fff06f8, false},
                 {"AuthenticAMD", 0, false},          {"GenuineIntel", 0x000806f8, false},
                 {"GenuineIntel", 0x00b00f21, false}, {"HygonGenuine", 0x00b00f21, false}};
    begin("which CPUs have wide cores");
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t vendor[3];
        memcpy(vendor, cases[i].vendor, sizeof vendor);
        check_that(heed_cpu_is_wide_from_x86(vendor, cases[i].leaf1_eax) == cases[i].wide_core, "%s, leaf 1, eax %08lx",
                   cases[i].vendor, (unsigned long)cases[i].leaf1_eax);
    }
    CHECK(heed_core_is_wide() == heed_cpu_is_wide());
    note("this CPU: %s", heed_cpu_is_wide() ? "yes" : "no");
    end();
}

static void test_version(void)
{
    char version[64];
    begin("the header's version is the library's");
    snprintf(version, sizeof version, "%d.%d.%d", HEED_VERSION_MAJOR, HEED_VERSION_MINOR, HEED_VERSION_PATCH);
    CHECK(strcmp(heed_version(), version) == 0);
    end();
}

/* ---- levels ---- */

static void test_levels(void)
{
    const char *name = NULL;
    heed_level_info info;
    size_t best = SIZE_MAX, n = 0;
    begin("levels");
    for (; heed_level_query(n, &info) == HEED_OK; n++) {
        CHECK(info.name && info.name[0] && (info.reason == NULL) == (info.supported != 0));
        CHECK(!info.supported || info.built);
        CHECK(info.supported == 0 || info.supported == 1);
        if (info.supported && strcmp(info.name, "scalar_fma") != 0)
            best = n;
        note("level %s: %s%s", info.name, info.fused ? "fused, " : "unfused, ", info.reason ? info.reason : "usable");
    }
    CHECK(n == heed_level_count() && heed_level_query(n, &info) == HEED_ERR_VALUE);
    CHECK(heed_level_query(0, &info) == HEED_OK && strcmp(info.name, "scalar") == 0 && info.supported);
    CHECK(heed_level_query(best, &info) == HEED_OK && heed_level_default(&name) == HEED_OK);
    check_that(strcmp(name, info.name) == 0, "the default is %s, not %s", name, info.name);
    CHECK(strcmp(heed_context_level(NULL), name) == 0);
    end();
}

/* The bundle that a level needs, as an offset; SIZE_MAX: none. */
static size_t bundle_of(const char *level)
{
#if defined(__aarch64__) || defined(__arm__)
    const size_t neon = offsetof(struct heed_cpu, neon);
#else
    const size_t neon = offsetof(struct heed_cpu, fma);
#endif
    const struct {
        const char *level;
        size_t bundle;
    } needs[] = {{"scalar_fma", offsetof(struct heed_cpu, fma)},
                 {"sse2", offsetof(struct heed_cpu, sse2)},
                 {"neon", neon},
                 {"avx2", offsetof(struct heed_cpu, avx2)},
                 {"avx512", offsetof(struct heed_cpu, avx512)}};
    for (size_t i = 0; i < COUNT(needs); i++)
        if (strcmp(level, needs[i].level) == 0)
            return needs[i].bundle;
    return SIZE_MAX;
}

static int is_emulated(const char *level)
{
#if defined(__aarch64__) || defined(__arm__)
    (void)level;
    return 0;
#else
    return strcmp(level, "neon") == 0;
#endif
}

/* Which CPU lacks what a level needs does not depend on the one that runs the tests. */
static void test_levels_on(void)
{
    static const char missing[] = "missing";
    begin("levels on CPUs that lack one bundle");
    for (size_t bundle = 0; bundle < sizeof(struct heed_cpu); bundle += sizeof(const char *)) {
        const char *const lacks = missing;
        struct heed_cpu cpu = {.fma = NULL};
        memcpy((char *)&cpu + bundle, &lacks, sizeof lacks);
        for (size_t i = 0; i < heed_level_count(); i++) {
            struct heed_level level = heed_level_on(i, &cpu);
            int needed = bundle_of(level.name) == bundle, built = level.kernels != NULL;
            check_that(level.runnable == (built && !needed), "level %s without bundle %zu", level.name, bundle);
            check_that((level.reason == missing) == (built && needed) &&
                           (level.reason == NULL) == (level.runnable && !is_emulated(level.name)),
                       "level %s without bundle %zu: %s", level.name, bundle, level.reason ? level.reason : "usable");
        }
    }
    end();
}

/* (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 where the product is not rounded, and 0 where it is. */
static int product_is_fused(const heed_context *context)
{
    const float a[] = {-1.0f, 1.0f + 0x1p-12f}, b[] = {1.0f + 0x1p-11f, 1.0f + 0x1p-12f};
    float c = 9.0f;
    if (heed_matmul(context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, 1, 1, 2, 1.0f, a, 2, b, 1, 0.0f, &c, 1, NULL) !=
        HEED_OK)
        return -1;
    return c == 0x1p-24f ? 1 : c == 0.0f ? 0 : -1;
}

static void test_pinned_levels(void)
{
    heed_level_info info;
    begin("contexts with a pinned level run it");
    for (size_t i = 0; heed_level_query(i, &info) == HEED_OK; i++) {
        heed_context *context = NULL;
        heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
        options.level = info.name;
        heed_status status = heed_context_create(&context, &options);
        CHECK(status == (info.supported ? HEED_OK : HEED_ERR_LEVEL_UNSUPPORTED));
        if (status == HEED_OK) {
            CHECK(strcmp(heed_context_level(context), info.name) == 0);
            CHECK(context->kernels == heed_level_at(i).kernels && strcmp(context->kernels->name, info.name) == 0);
            CHECK(product_is_fused(context) == info.fused);
        }
        heed_context_destroy(context);
    }
    end();
}

/* Every table that was built and that this CPU can run is among those that the tests run. */
static size_t tables_run;

static void count_table(const struct heed_kernels *table)
{
    heed_context *context = context_on(table, 1);
    tables_run++;
    CHECK(product_is_fused(context) == (int)table->fused);
    heed_context_destroy(context);
}

static void test_tables(void)
{
    size_t expected = 0;
    begin("every runnable table is tested");
    for (size_t i = 0; i < heed_level_count(); i++)
        expected += heed_level_at(i).runnable;
    for_each_table(count_table);
    CHECK(tables_run == expected && expected > 0);
    end();
}

/* ---- HEED_ISA ---- */

/* Exit status of a child that could not be executed. */
#define NOT_RUN 126

/* The child's answer: 0 if name was chosen, or if every operator returns the expected error. */
static int run_as_child(const char *expected_name, heed_status expected)
{
    const float x[] = {1.0f, 2.0f};
    float y[2] = {7.0f, 7.0f};
    const char *name = "?";
    heed_context *context = NULL, *pinned = NULL;
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    heed_attention_args attention = HEED_ATTENTION_ARGS_INIT;
    size_t index = 7, bytes = 0;
    if (heed_level_default(&name) != expected || strcmp(name, expected_name) != 0)
        return 1;
    const heed_status statuses[] = {
        heed_softmax(NULL, 1, 2, x, 2, y, 2),
        heed_layernorm(NULL, 1, 2, x, 2, NULL, y, 2),
        heed_activate(NULL, HEED_ACTIVATION_RELU, 1, 2, x, 2, y, 2),
        heed_argmax(NULL, 1, 2, x, 2, &index),
        heed_l2_normalize(NULL, 1, 2, 0.0f, x, 2, y, 2),
        heed_sinusoidal_positions(NULL, 0, 1, 2, 10000.0, y, 2),
        heed_matmul(NULL, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, 1, 2, 1, 1.0f, x, 1, x, 2, 0.0f, y, 2, NULL),
        heed_attention(NULL, &attention, NULL),
        heed_attention_workspace(NULL, &attention, &bytes),
        heed_context_create(&context, NULL),
    };
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (statuses[i] != expected)
            return 10 + (int)i;
    if (expected != HEED_OK && (y[0] != 7.0f || y[1] != 7.0f || index != 7 || context))
        return 2;
    if (strcmp(heed_context_level(context), expected_name) != 0 && expected == HEED_OK)
        return 3;
    if (expected != HEED_OK && strcmp(heed_context_level(NULL), "") != 0)
        return 4;
    heed_context_destroy(context);
    options.level = "scalar";
    if (heed_context_create(&pinned, &options) != HEED_OK || heed_softmax(pinned, 1, 2, x, 2, y, 2) != HEED_OK)
        return 5;
    heed_context_destroy(pinned);
    /* A level that cannot be had says nothing of the cache. */
    return heed_l2_bytes() < (size_t)2048 * 1024 && 2 * heed_l2_bytes() <= heed_cpu_l2_bytes() ? 6 : 0;
}

/* Runs this program with HEED_ISA set (NULL: not set) and gives the child's answer. */
static int ask_child(const char *program, const char *isa, const char *expected_name, heed_status expected)
{
    char status_text[16];
    int status = -1;
    snprintf(status_text, sizeof status_text, "%d", (int)expected);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (isa)
            setenv("HEED_ISA", isa, 1);
        else
            unsetenv("HEED_ISA");
        execl(program, program, "--child", expected_name, status_text, (char *)NULL);
        _exit(NOT_RUN);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_environment(const char *program, const char *isa, const char *expected_name, heed_status expected)
{
    int answer = ask_child(program, isa, expected_name, expected);
    check_that(answer == 0, "HEED_ISA=%s should give %s, %s; the child answered %d", isa ? isa : "(unset)",
               expected_name, heed_status_string(expected), answer);
}

static void test_environment(const char *program)
{
    static const char *const unknown[] = {"avx1024", "AVX2", "avx2 ", "scalar,avx2", "0", "\xff"};
    heed_level_info info;
    const char *best = "";
    begin("HEED_ISA");
    CHECK(heed_level_default(&best) == HEED_OK);
    if (ask_child(program, NULL, best, HEED_OK) == NOT_RUN) {
        skip("an emulated program cannot run itself here", "HEED_ISA");
        return;
    }
    check_environment(program, NULL, best, HEED_OK);
    check_environment(program, "", best, HEED_OK);
    for (size_t i = 0; i < COUNT(unknown); i++)
        check_environment(program, unknown[i], "", HEED_ERR_LEVEL_UNKNOWN);
    for (size_t i = 0; heed_level_query(i, &info) == HEED_OK; i++)
        check_environment(program, info.name, info.name, info.supported ? HEED_OK : HEED_ERR_LEVEL_UNSUPPORTED);
    end();
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--child") == 0)
        return run_as_child(argv[2], (heed_status)atoi(argv[3]));
    if (getenv("HEED_ISA") && *getenv("HEED_ISA")) { /* the best level is what these tests start from */
        unsetenv("HEED_ISA");
        execv(argv[0], argv);
    }
    test_version();
    test_detection();
    test_this_cpu();
    test_memory_order();
    test_wide_core();
    test_levels();
    test_levels_on();
    test_pinned_levels();
    test_tables();
    test_environment(argv[0]);
    return finish();
}
