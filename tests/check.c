/* SPDX-License-Identifier: MIT
 * What the tests share; see check.h.
 */
#include "check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- TAP ---- */

#define MESSAGES 5

static struct {
    char name[256];
    size_t lines, failed_lines, checks, line_checks, line_failures;
} tap;

static void print_comment(const char *format, va_list args)
{
    printf("# ");
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
}

void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_comment(format, args);
    va_end(args);
}

void begin(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(tap.name, sizeof tap.name, format, args);
    va_end(args);
    tap.line_checks = tap.line_failures = 0;
}

int line_is_ok(void)
{
    return tap.line_checks > 0 && tap.line_failures == 0;
}

void end(void)
{
    int ok = line_is_ok();
    tap.lines++;
    tap.failed_lines += !ok;
    printf("%sok %zu - %s (%zu checks)\n", ok ? "" : "not ", tap.lines, tap.name, tap.line_checks);
    if (tap.line_failures > MESSAGES)
        printf("# %zu failures in all\n", tap.line_failures);
    if (tap.line_checks == 0)
        printf("# it made no check\n");
    fflush(stdout);
}

void skip(const char *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("ok %zu - ", ++tap.lines);
    vprintf(format, args);
    printf(" # SKIP %s\n", reason);
    va_end(args);
    fflush(stdout);
}

int finish(void)
{
    printf("1..%zu\n", tap.lines);
    note("%zu checks in all", tap.checks);
    release_all();
    return tap.lines == 0 || tap.failed_lines > 0;
}

int check_that(int condition, const char *format, ...)
{
    tap.checks++;
    tap.line_checks++;
    if (!condition && ++tap.line_failures <= MESSAGES) {
        va_list args;
        va_start(args, format);
        print_comment(format, args);
        va_end(args);
    }
    return condition;
}

void check_ok(heed_status status, const char *what)
{
    check_that(status == HEED_OK, "%s: %s", what, heed_status_string(status));
}

size_t checks_made(void)
{
    return tap.checks;
}

/* ---- comparisons ---- */

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

int same_bits(float a, float b)
{
    return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

int check_same(size_t rows, size_t cols, const float *got, size_t ld_got, const float *want, size_t ld_want,
               const char *what)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            float g = got[i * ld_got + j], w = want[i * ld_want + j];
            if (!same_bits(g, w))
                return check_that(0, "%s: element (%zu, %zu) is %a, not %a", what, i, j, (double)g, (double)w);
        }
    return check_that(1, "%s", what);
}

int check_bound(double got, double want, double bound, const char *what, size_t index)
{
    return check_that(fabs(got - want) <= bound, "%s: element %zu is %.9g, not %.9g +- %.3g", what, index, got, want,
                      bound);
}

uint64_t hash_floats(uint64_t hash, size_t n, const float *x)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = isnan(x[i]) ? 0x7fc00000u : bits_of(x[i]);
        for (int byte = 0; byte < 4; byte++) {
            hash ^= bits >> (8 * byte) & 0xff;
            hash *= 0x100000001b3u;
        }
    }
    return hash;
}

/* ---- memory ---- */

static struct block {
    struct block *next;
    unsigned char *memory, *data;
    size_t bytes, mapped, usable;
} * blocks;

static void *remember(unsigned char *memory, unsigned char *data, size_t bytes, size_t mapped)
{
    struct block *b = malloc(sizeof *b);
    if (!memory || !b) {
        printf("Bail out! out of memory\n");
        exit(99);
    }
    *b = (struct block){blocks, memory, data, bytes, mapped, 0};
    blocks = b;
    return data;
}

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void *guarded_bytes(size_t n, int at_end)
{
    size_t page = page_size(), usable = (n + page - 1) / page * page;
    size_t mapped = usable + 2 * page;
    unsigned char *memory = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || (usable > 0 && mprotect(memory + page, usable, PROT_READ | PROT_WRITE) != 0)) {
        printf("Bail out! cannot map guarded memory\n");
        exit(99);
    }
    unsigned char *data = memory + page + (at_end ? usable - n : 0);
    remember(memory, data, n, mapped);
    blocks->usable = usable;
    return data;
}

float *guarded(size_t n, int at_end)
{
    float *x = guarded_bytes(n * sizeof(float), at_end);
    for (size_t i = 0; i < n; i++)
        x[i] = NAN;
    return x;
}

void protect(const void *memory, int read_only)
{
    for (struct block *b = blocks; b; b = b->next)
        if (b->data == memory && b->usable > 0)
            mprotect(b->memory + page_size(), b->usable, read_only ? PROT_READ : PROT_READ | PROT_WRITE);
}

float *buffer(size_t n, size_t offset)
{
    size_t bytes = (n + offset + 32) * sizeof(float);
    unsigned char *memory = malloc(bytes);
    if (!memory)
        return remember(NULL, NULL, 0, 0);
    unsigned char *data = memory + (64 - (uintptr_t)memory % 64) % 64 + offset * sizeof(float);
    for (size_t i = 0; i < n; i++)
        ((float *)(void *)data)[i] = NAN;
    return remember(memory, data, n * sizeof(float), 0);
}

void release_all(void)
{
    while (blocks) {
        struct block *b = blocks;
        blocks = b->next;
        if (b->mapped)
            munmap(b->memory, b->mapped);
        else
            free(b->memory);
        free(b);
    }
}

/* ---- random numbers ---- */

static uint64_t state = 0x9e3779b97f4a7c15u;

void seed(uint64_t value)
{
    state = value * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    for (int i = 0; i < 4; i++)
        random_bits();
}

uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

size_t random_below(size_t n)
{
    return (size_t)((random_bits() >> 16) % n);
}

/* 24 random bits, exactly: the same numbers on every machine. */
float uniform(float low, float high)
{
    float unit = (float)(random_bits() >> 40) * 0x1p-24f;
    return low + (high - low) * unit;
}

/* The sum of twelve uniforms has mean 6 and variance 1. */
float gaussian(void)
{
    float sum = -6.0f;
    for (int i = 0; i < 12; i++)
        sum += uniform(0.0f, 1.0f);
    return sum;
}

void fill_uniform(float *x, size_t n, float low, float high)
{
    for (size_t i = 0; i < n; i++)
        x[i] = uniform(low, high);
}

void fill_integers(float *x, size_t n, int most)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((int)random_below((size_t)(2 * most + 1)) - most);
}

/* ---- tables ---- */

/* Whether the other scalar table, which fuses, is planned for in the same way and runs as well. */
static bool has_twin(const struct heed_level *level)
{
    if (strcmp(level->name, "scalar") != 0)
        return false;
    for (size_t i = 0; i < heed_level_count(); i++) {
        struct heed_level other = heed_level_at(i);
        if (other.runnable && strcmp(other.name, "scalar_fma") == 0)
            return true;
    }
    return false;
}

static void test_tables(bool twins, void (*test)(const struct heed_kernels *table))
{
    for (size_t i = 0; i < heed_level_count(); i++) {
        struct heed_level level = heed_level_at(i);
        if (level.runnable && !twins && has_twin(&level))
            note("table %s: planned for as scalar_fma is", level.name);
        else if (level.runnable)
            test(level.kernels);
        else
            note("table %s does not run here: %s", level.name, level.reason);
        release_all();
    }
}

void for_each_table(void (*test)(const struct heed_kernels *table))
{
    test_tables(true, test);
}

void for_each_planned_table(void (*test)(const struct heed_kernels *table))
{
    test_tables(!quick(), test);
}

const struct heed_kernels *oracle_of(const struct heed_kernels *table)
{
    for (size_t i = 0; i < heed_level_count(); i++) {
        struct heed_level level = heed_level_at(i);
        if (level.runnable && strncmp(level.name, "scalar", 6) == 0 && level.kernels->fused == table->fused)
            return level.kernels;
    }
    return NULL;
}

double subnormal_slack(const struct heed_kernels *table)
{
#if defined(__arm__)
    return strcmp(table->name, "neon") == 0 ? 0x1p-126 : 0.0;
#else
    (void)table;
    return 0.0;
#endif
}

static void run_in_turn(void *host, size_t n_tasks, heed_task *task, void *arg)
{
    (void)host;
    for (size_t i = 0; i < n_tasks; i++)
        task(arg, i, 0);
}

/* Without OpenMP a host, lest one thread be all that plans are tested for. */
heed_context *context_on(const struct heed_kernels *table, size_t threads)
{
    heed_context *context = NULL;
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    options.threads = threads;
    options.host.run = run_in_turn;
    options.executor = threads <= 1        ? HEED_EXECUTOR_SERIAL
                       : heed_has_openmp() ? HEED_EXECUTOR_OPENMP
                                           : HEED_EXECUTOR_HOST;
    if (heed_context_create_on(&context, &options, table) != HEED_OK) {
        printf("Bail out! no context\n");
        exit(99);
    }
    return context;
}

static void run_on_host(void *arg, size_t n, heed_task *task, void *task_arg)
{
    static size_t order[1 << 16];
    struct host *host = arg;
    CHECK(n <= COUNT(order));
    host->runs++;
    host->tasks = n;
    if (host->order == HOST_RUNS_NOTHING)
        return;
    for (size_t i = 0; i < n; i++)
        order[i] = n - 1 - i;
    for (size_t i = n; host->order == HOST_RANDOM && i > 1; i--) {
        size_t j = random_below(i), kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
    for (size_t i = 0; i < n; i++)
        task(task_arg, order[i], host->order == HOST_LAST_WORKER ? host->threads - 1 : random_below(host->threads));
}

heed_context *host_context(const struct heed_kernels *table, struct host *host)
{
    heed_context *context = NULL;
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    options.executor = HEED_EXECUTOR_HOST;
    options.threads = host->threads;
    options.host = (heed_host){run_on_host, host};
    CHECK(heed_context_create_on(&context, &options, table) == HEED_OK);
    return context;
}

int quick(void)
{
    const char *value = getenv("HEED_TEST_QUICK");
    return value && *value && strcmp(value, "0") != 0;
}

int is_left_out(size_t turn, size_t many)
{
    return quick() && turn % many != 0;
}

const heed_weights *packed(size_t in, size_t out, const float *w)
{
    size_t bytes = 0;
    const heed_weights *weights = NULL;
    heed_status status = heed_weights_bytes(HEED_TYPE_F32, in, out, &bytes);
    float *memory = buffer(bytes / sizeof(float), 0);
    if (status == HEED_OK)
        status = heed_weights_pack(NULL, HEED_TYPE_F32, HEED_LAYOUT_IN_OUT, in, out, w, out, memory, bytes, &weights);
    check_that(status == HEED_OK, "packing: %s", heed_status_string(status));
    return weights;
}

const heed_weights *packed_pair(size_t in, size_t out, const float *gate, const float *up)
{
    size_t bytes = 0;
    const heed_weights *weights = NULL;
    heed_status status = heed_weights_gated_bytes(HEED_TYPE_F32, in, out, &bytes);
    float *memory = buffer(bytes / sizeof(float), 0);
    if (status == HEED_OK)
        status = heed_weights_pack_gated(NULL, HEED_TYPE_F32, HEED_LAYOUT_IN_OUT, in, out, gate, out, up, out, memory,
                                         bytes, &weights);
    check_that(status == HEED_OK, "packing a pair: %s", heed_status_string(status));
    return weights;
}
