/* SPDX-License-Identifier: MIT
 * What the machine can do at most.
 */
#include "config.h"

#include "limits.h"

#include "caches.h"
#include "memory.h"
#include "timing.h"

#include <stdlib.h>
#include <string.h>

#if HAVE_OPENMP
#include <omp.h>
#endif

/* Iterations of the register loop in a call: some microseconds. */
#define FMA_ITERATIONS 200

#define QUICK_SECONDS 1e-4
#define QUICK_SAMPLES 5

/* ---- levels -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t usual; /* bytes of the cache where the system does not say */
} levels[N_LEVELS] = {
    [LEVEL_L1] = {"L1", (size_t)32 << 10},
    [LEVEL_L2] = {"L2", (size_t)1 << 20},
    [LEVEL_L3] = {"L3", (size_t)32 << 20},
    [LEVEL_DRAM] = {"DRAM", 0},
};

size_t limits_cache_bytes(enum limits_level level)
{
    size_t bytes = level < LEVEL_DRAM ? cache_bytes((unsigned)level + 1) : 0;
    return bytes ? bytes : levels[level].usual;
}

enum limits_level limits_level_of(size_t bytes, size_t threads)
{
    if (bytes / threads <= limits_cache_bytes(LEVEL_L1))
        return LEVEL_L1;
    if (bytes / threads <= limits_cache_bytes(LEVEL_L2))
        return LEVEL_L2;
    return bytes <= limits_cache_bytes(LEVEL_L3) ? LEVEL_L3 : LEVEL_DRAM;
}

/* Half of the cache, or more where many threads have as much in the ones before. */
static size_t last_level_working_set(size_t before, size_t bytes)
{
    return before < bytes / 2 || before >= bytes ? bytes / 2 : before + (bytes - before) / 2;
}

size_t limits_level_working_set(enum limits_level level, size_t threads)
{
    switch (level) {
    case LEVEL_L1:
    case LEVEL_L2:
        return limits_cache_bytes(level) / 2 * threads;
    case LEVEL_L3:
        return last_level_working_set(limits_cache_bytes(LEVEL_L2) * threads, limits_cache_bytes(level));
    default:
        return limits_cache_bytes(LEVEL_L3) * 8;
    }
}

/* ---- loops --------------------------------------------------------------------------------- */

const struct loops *limits_loops(const char *isa)
{
    static const struct loops *const all[] = {
        &loops_scalar,
#if HAVE_TABLE_SCALAR_FMA
        &loops_scalar_fma,
#endif
#if HAVE_TABLE_SSE2
        &loops_sse2,
#endif
#if HAVE_TABLE_NEON
        &loops_neon,
#endif
#if HAVE_TABLE_AVX2
        &loops_avx2,
#endif
#if HAVE_TABLE_AVX512
        &loops_avx512,
#endif
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->isa, isa) == 0)
            return all[i];
    return NULL;
}

static float run_once(const struct limit *limit, size_t worker)
{
    float *mine = limit->buffer ? limit->buffer + worker * limit->floats : NULL;
    switch (limit->kind) {
    case LIMIT_FMA:
        return limit->loops->fma(FMA_ITERATIONS, 0.5f, 1.0f);
    case LIMIT_READ:
        return limit->loops->read[limit->streams](mine, limit->floats);
    default:
        limit->loops->copy(mine + limit->floats / 2, mine, limit->floats / 2);
        return 0.0f;
    }
}

static double worker_seconds(const struct limit *limit, size_t worker, size_t calls)
{
    volatile float sink = 0.0f;
    double begin = timing_now();
    for (size_t i = 0; i < calls; i++)
        sink = run_once(limit, worker);
    (void)sink;
    return timing_now() - begin;
}

double limit_sample(void *arg, size_t calls)
{
    const struct limit *limit = arg;
    if (limit->threads == 1)
        return worker_seconds(limit, 0, calls);
    double speed = 0.0;
#if HAVE_OPENMP
#pragma omp parallel num_threads((int)limit->threads) reduction(+ : speed)
    {
        /* The threads share what they read from: they must run at the same time. */
#pragma omp barrier
        speed += 1.0 / worker_seconds(limit, (size_t)omp_get_thread_num(), calls);
    }
#else
    speed = 1.0 / worker_seconds(limit, 0, calls);
#endif
    return (double)limit->threads / speed;
}

double limit_work(const struct limit *limit)
{
    double mine = limit->kind == LIMIT_FMA ? limit->loops->flops * FMA_ITERATIONS : 4.0 * (double)limit->floats;
    return mine * (double)limit->threads;
}

/* ---- limits -------------------------------------------------------------------------------- */

static double quick_rate(struct limit *limit)
{
    size_t calls = 1;
    double fastest = limit_sample(limit, 1);
    while (fastest < QUICK_SECONDS && calls < ((size_t)1 << 24)) {
        calls *= 2;
        fastest = limit_sample(limit, calls);
    }
    for (int i = 1; i < QUICK_SAMPLES; i++) {
        double seconds = limit_sample(limit, calls);
        fastest = seconds < fastest ? seconds : fastest;
    }
    return limit_work(limit) * (double)calls / fastest;
}

void limit_init_fma(struct limit *limit, const struct loops *loops, size_t threads)
{
    *limit = (struct limit){.kind = LIMIT_FMA, .name = "fma", .unit = "GFLOP/s", .loops = loops, .threads = threads};
}

static void choose_streams(struct limit *limit)
{
    double best_rate = 0.0;
    int best = 0;
    for (int i = 0; i < LOOPS_STREAM_KINDS; i++) {
        limit->streams = i;
        double rate = quick_rate(limit);
        if (rate > best_rate) {
            best_rate = rate;
            best = i;
        }
    }
    limit->streams = best;
}

bool limit_init_memory(struct limit *limit, enum limit_kind kind, const struct loops *loops, size_t threads,
                       size_t bytes)
{
    size_t grains = bytes / threads / sizeof(float) / LOOPS_GRAIN;
    /* A copy has two halves of whole grains. */
    grains = grains < 2 ? 2 : grains / 2 * 2;
    *limit = (struct limit){.kind = kind, .unit = "GB/s", .loops = loops, .threads = threads};
    limit->name = levels[limits_level_of(bytes, threads)].name;
    limit->floats = grains * LOOPS_GRAIN;
    limit->buffer = memory_aligned_array(limit->floats * threads, sizeof(float));
    if (!limit->buffer)
        return false;
    for (size_t i = 0; i < limit->floats * threads; i++)
        limit->buffer[i] = 1.0f;
    if (kind == LIMIT_READ)
        choose_streams(limit);
    return true;
}

void limit_free(struct limit *limit)
{
    free(limit->buffer);
    limit->buffer = NULL;
}

bool limit_init_binding(struct limit *limit, enum limit_kind memory, const struct loops *loops, size_t threads,
                        double flops, size_t bytes)
{
    struct limit fma;
    limit_init_fma(&fma, loops, threads);
    if (!limit_init_memory(limit, memory, loops, threads, bytes))
        return false;
    if ((double)bytes / quick_rate(limit) >= flops / quick_rate(&fma))
        return true;
    limit_free(limit);
    *limit = fma;
    return true;
}
