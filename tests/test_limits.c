/* SPDX-License-Identifier: MIT
 * What heed-bench takes for the machine's limits: that of two which binds, on a machine whose loops say themselves how
 * long they take, and what the loops compute. */
#include "check.h"

#include "../bench/limits.h"
#include "../bench/timing.h"
#include "../tools/caches.h"

#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define BYTES (256 * KIB) /* more than an L1 for each of two threads */
#define FLOPS_PER_ITERATION 100.0

/* ---- a machine ----------------------------------------------------------------------------- */

static struct {
    double flops, read[LOOPS_STREAM_KINDS], copied; /* per second; bytes that are read and written count as copied */
    const float *fast;                              /* what is elsewhere takes three times as long to read, or NULL */
    bool says_caches;
} machine;

/* Of each thread, as the loops are all that takes time. */
static _Thread_local double clock_seconds;

double timing_now(void)
{
    return clock_seconds;
}

size_t cache_bytes(unsigned level)
{
    static const size_t sizes[] = {48 * KIB, 2 * MIB, 64 * MIB};
    return machine.says_caches ? sizes[level - 1] : 0;
}

static float multiply_add(size_t iterations, float x, float y)
{
    (void)x;
    (void)y;
    clock_seconds += (double)iterations * FLOPS_PER_ITERATION / machine.flops;
    return 0.0f;
}

static float read_floats(int streams, const float *src, size_t count)
{
    double times = machine.fast && src != machine.fast ? 3.0 : 1.0;
    clock_seconds += times * 4.0 * (double)count / machine.read[streams];
    return 0.0f;
}

static float read_1(const float *src, size_t count)
{
    return read_floats(0, src, count);
}

static float read_2(const float *src, size_t count)
{
    return read_floats(1, src, count);
}

static float read_4(const float *src, size_t count)
{
    return read_floats(2, src, count);
}

static float read_8(const float *src, size_t count)
{
    return read_floats(3, src, count);
}

static void copy(float *dst, const float *src, size_t count)
{
    memcpy(dst, src, count * sizeof *dst);
    clock_seconds += 8.0 * (double)count / machine.copied;
}

static const struct loops loops = {
    "machine", FLOPS_PER_ITERATION, multiply_add, {read_1, read_2, read_4, read_8}, copy};

/* Ten operations take as long as a byte. */
static void set_speed(double bytes)
{
    memset(&machine, 0, sizeof machine);
    machine.flops = 10.0 * bytes;
    machine.copied = bytes;
    for (int i = 0; i < LOOPS_STREAM_KINDS; i++)
        machine.read[i] = bytes;
}

/* One on which a single call is long enough to be timed. */
static void set_machine(void)
{
    set_speed(1e7);
}

static size_t most_threads(void)
{
    return heed_has_openmp() ? 2 : 1;
}

/* ---- which limit binds --------------------------------------------------------------------- */

static void check_binding(enum limit_kind memory, size_t threads, double flops, enum limit_kind binding)
{
    struct limit limit;
    if (!CHECK(limit_init_binding(&limit, memory, &loops, threads, flops, BYTES)))
        return;
    CHECK(limit.kind == binding && limit.threads == threads && limit.loops == &loops);
    CHECK(strcmp(limit.unit, binding == LIMIT_FMA ? "GFLOP/s" : "GB/s") == 0);
    CHECK(strcmp(limit.name, binding == LIMIT_FMA ? "fma" : "L2") == 0);
    limit_free(&limit);
}

static void test_binding(enum limit_kind memory, size_t threads, double bytes_per_second)
{
    const double even = 10.0 * (double)BYTES;
    begin("the slower of multiply-adds and %s binds, %zu threads", memory == LIMIT_READ ? "reading" : "copying",
          threads);
    set_speed(bytes_per_second);
    check_binding(memory, threads, 0.99 * even, memory);
    check_binding(memory, threads, 1.01 * even, LIMIT_FMA);
    end();
}

static void check_rate(struct limit *limit, double per_second)
{
    double seconds = limit_sample(limit, 3), want = (double)limit->threads * per_second;
    check_bound(3.0 * limit_work(limit) / seconds, want, 1e-9 * want, "rate", limit->threads);
}

/* Distinct rates, so that none passes for another. */
static void test_rates(size_t threads)
{
    struct limit limit;
    begin("a limit's work by its seconds is the machine's rate, %zu threads", threads);
    set_machine();
    machine.copied = 3e7;
    limit_init_fma(&limit, &loops, threads);
    check_rate(&limit, 1e8);
    for (int kind = LIMIT_READ; kind <= LIMIT_COPY; kind++)
        if (CHECK(limit_init_memory(&limit, (enum limit_kind)kind, &loops, threads, BYTES))) {
            CHECK(limit.floats * threads * sizeof(float) == BYTES);
            check_rate(&limit, kind == LIMIT_READ ? 1e7 : 3e7);
            limit_free(&limit);
        }
    end();
}

/* Two that read 1 and 1/3 as fast as one could reach 4/3 together, as fast as two of 2/3. */
static void test_unequal_threads(void)
{
    struct limit limit;
    begin("rates of unequal threads add up");
    set_machine();
    if (CHECK(limit_init_memory(&limit, LIMIT_READ, &loops, 2, BYTES))) {
        machine.fast = limit.buffer;
        check_rate(&limit, 1e7 * 2.0 / 3.0);
        limit_free(&limit);
    }
    end();
}

static void test_streams(void)
{
    begin("memory is read with the streams that are fastest");
    for (int fastest = 0; fastest < LOOPS_STREAM_KINDS; fastest++) {
        struct limit limit;
        set_machine();
        machine.read[fastest] = 2e7;
        if (!CHECK(limit_init_memory(&limit, LIMIT_READ, &loops, 1, BYTES)))
            break;
        CHECK(limit.streams == fastest);
        check_rate(&limit, 2e7);
        limit_free(&limit);
    }
    end();
}

static void test_smallest(void)
{
    begin("of a few bytes there is a grain for each half of a copy");
    set_machine();
    for (size_t bytes = 0; bytes <= 8 * KIB; bytes += 4 * KIB - 4) {
        struct limit limit;
        if (!CHECK(limit_init_memory(&limit, LIMIT_COPY, &loops, 1, bytes)))
            break;
        CHECK(limit.floats == (size_t)2 * LOOPS_GRAIN);
        limit_free(&limit);
    }
    end();
}

/* ---- levels of memory ---------------------------------------------------------------------- */

static void check_last_of(enum limits_level level, size_t threads, size_t bytes)
{
    CHECK(limits_level_of(bytes, threads) == level);
    CHECK(limits_level_of(bytes + threads, threads) == level + 1);
}

static void check_working_set(enum limits_level level, size_t threads)
{
    CHECK(limits_level_of(limits_level_working_set(level, threads), threads) == level);
}

/* Memory is named by what each thread has of it. */
static void check_name(size_t bytes, size_t threads, const char *name)
{
    struct limit limit;
    if (!CHECK(limit_init_memory(&limit, LIMIT_COPY, &loops, threads, bytes)))
        return;
    CHECK(strcmp(limit.name, name) == 0);
    limit_free(&limit);
}

static void test_levels(bool says_caches)
{
    begin("levels of memory, where the system %s", says_caches ? "says the caches" : "does not say them");
    set_machine();
    machine.says_caches = says_caches;
    size_t l1 = limits_cache_bytes(LEVEL_L1), l2 = limits_cache_bytes(LEVEL_L2), l3 = limits_cache_bytes(LEVEL_L3);
    CHECK(0 < l1 && l1 < l2 && l2 < l3);
    CHECK(!says_caches || (l1 == cache_bytes(1) && l2 == cache_bytes(2) && l3 == cache_bytes(3)));
    for (size_t threads = 1; threads <= 4; threads++) {
        /* All share the last one. */
        check_last_of(LEVEL_L1, threads, threads * l1);
        check_last_of(LEVEL_L2, threads, threads * l2);
        check_last_of(LEVEL_L3, threads, l3);
    }
    for (size_t threads = 1; threads * l2 < l3; threads++)
        for (int level = LEVEL_L1; level < N_LEVELS; level++)
            check_working_set((enum limits_level)level, threads);
    for (size_t threads = 1; threads <= 128; threads++)
        CHECK(limits_level_working_set(LEVEL_L3, threads) <= l3);
    for (size_t threads = 1; threads <= most_threads(); threads++) {
        check_name(threads * l1, threads, "L1");
        check_name(threads * l1 * 2, threads, "L2");
    }
    end();
}

/* ---- the loops ----------------------------------------------------------------------------- */

static size_t lanes_of(const char *isa)
{
    static const struct {
        const char *isa;
        size_t lanes;
    } known[] = {{"scalar", 1}, {"scalar_fma", 1}, {"sse2", 4}, {"neon", 4}, {"avx2", 8}, {"avx512", 16}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].isa, isa) == 0)
            return known[i].lanes;
    return 0;
}

/* By ones every multiply-add adds one to a chain: how many an iteration has in a lane shows in the sum of chains. */
static void check_flops(const struct loops *real)
{
    double more = (double)(real->fma(3, 1.0f, 1.0f) - real->fma(2, 1.0f, 1.0f));
    CHECK(more > 0.0 && real->flops == 2.0 * more * (double)lanes_of(real->isa));
}

static void check_memory(const struct loops *real)
{
    const size_t count = 3 * (size_t)LOOPS_GRAIN;
    float *src = guarded(count, 1), *dst = guarded(count, 1);
    double sum = 0.0;
    fill_integers(src, count, 100);
    for (size_t i = 0; i < count; i++)
        sum += (double)src[i];
    for (int streams = 0; streams < LOOPS_STREAM_KINDS; streams++)
        check_bound((double)real->read[streams](src, count), sum, 0.0, "sum of what is read", (size_t)streams);
    real->copy(dst, src, count);
    check_same(1, count, dst, count, src, count, "copy");
    release_all();
}

static void test_loops(const struct heed_kernels *table)
{
    begin("%s: loops count their operations, read all and copy all", table->name);
    const struct loops *real = limits_loops(table->name);
    if (CHECK(real && strcmp(real->isa, table->name) == 0)) {
        check_flops(real);
        check_memory(real);
    }
    end();
}

int main(void)
{
    test_binding(LIMIT_READ, 1, 1e10);
    test_binding(LIMIT_COPY, most_threads(), 1e7);
    for (size_t threads = 1; threads <= most_threads(); threads++)
        test_rates(threads);
    if (most_threads() > 1)
        test_unequal_threads();
    test_streams();
    test_smallest();
    test_levels(true);
    test_levels(false);
    for_each_table(test_loops);
    return finish();
}
