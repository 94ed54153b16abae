/* SPDX-License-Identifier: MIT
 * What the tests share: TAP output, counted comparisons, guarded buffers, random numbers, tables.
 *
 * A test program registers its checks with CHECK and friends inside begin()/end() pairs; one pair is
 * one TAP line. A pair without a single check fails: a test that tested nothing has not passed.
 */
#ifndef HEED_TESTS_CHECK_H
#define HEED_TESTS_CHECK_H

#include "internal.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- TAP ---- */

/* Begins one TAP line; the name is printf-formatted. */
void begin(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends it: ok if every check since begin held and there was at least one. */
void end(void);

/* Whether the line begun would be ok if it ended now. */
int line_is_ok(void);

/* A line that is reported as skipped, with the reason. */
void skip(const char *reason, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the plan and gives the exit status. No line at all is a failure. */
int finish(void);

/* A diagnostic line, "# ...". */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Counts a check; the first failures of a pair print their text. Returns condition. */
int check_that(int condition, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define CHECK(condition) check_that(condition, "%s:%d: %s", __FILE__, __LINE__, #condition)

/* The same of a call of the library; what names it. */
void check_ok(heed_status status, const char *what);

/* Checks so far in the whole program. */
size_t checks_made(void);

/* ---- comparisons ---- */

/* Bitwise, but any NaN equals any NaN. */
int same_bits(float a, float b);

/* Row by row; what names the operand in the message. Counts one check per call. */
int check_same(size_t rows, size_t cols, const float *got, size_t ld_got, const float *want, size_t ld_want,
               const char *what);

/* |got - want| <= bound, written so that NaN fails. Counts one check. */
int check_bound(double got, double want, double bound, const char *what, size_t index);

/* FNV-1a over the bits of the values in little-endian order, NaN as one value. */
uint64_t hash_floats(uint64_t hash, size_t n, const float *x);
#define HASH_START 0xcbf29ce484222325u

/* ---- memory ---- */

/* n floats that end (at_end) or begin flush against a page that cannot be touched, offset floats
 * away from being aligned to 64 bytes where not at_end. Filled with NaN. Freed by release_all. */
float *guarded(size_t n, int at_end);
void *guarded_bytes(size_t n, int at_end);

/* Makes what guarded() returned read-only, or writable again. */
void protect(const void *memory, int read_only);

/* n floats, the first one `offset` floats past a 64-byte boundary. Freed by release_all. */
float *buffer(size_t n, size_t offset);
void release_all(void);

/* ---- random numbers (xorshift, seeded per call site) ---- */

void seed(uint64_t value);
uint64_t random_bits(void);
size_t random_below(size_t n);
float uniform(float low, float high);
float gaussian(void);
void fill_uniform(float *x, size_t n, float low, float high);

/* Integers of magnitude <= most: sums of products stay exact below 2^24. */
void fill_integers(float *x, size_t n, int most);

/* ---- tables ---- */

/* Calls test(table) for every table that this CPU can run; prints a note for each that it cannot. */
void for_each_table(void (*test)(const struct heed_kernels *table));

/* The same for what depends on plans and not on arithmetic: where tests are quick, one of the two scalar tables. */
void for_each_planned_table(void (*test)(const struct heed_kernels *table));

/* The oracle of the table's class: the scalar table of the same class, or NULL if it cannot run. */
const struct heed_kernels *oracle_of(const struct heed_kernels *table);

/* How far flushed subnormals may move a result: 2^-126 on AArch32 NEON, which always flushes them and
 * is a class of bits of its own; 0 elsewhere. */
double subnormal_slack(const struct heed_kernels *table);

/* A context on any runnable table. NULL options: one thread. */
heed_context *context_on(const struct heed_kernels *table, size_t threads);

/* A host that runs tasks in such an order, each with any worker number or the last one, or none of them, and what it
 * was given. */
enum host_order { HOST_REVERSED, HOST_RANDOM, HOST_LAST_WORKER, HOST_RUNS_NOTHING };
struct host {
    size_t threads;
    enum host_order order;
    size_t runs, tasks; /* tasks of the last run */
};
heed_context *host_context(const struct heed_kernels *table, struct host *host);

/* 1 where the tests run under an emulator or are asked to be quick (HEED_TEST_QUICK in the environment). */
int quick(void);

/* 1 where tests are quick and this is not one in so many of the cases. */
int is_left_out(size_t turn, size_t many);

/* Packs weights [in][out] into a buffer that release_all frees. */
const heed_weights *packed(size_t in, size_t out, const float *w);

/* A pair of gate and up, packed. */
const heed_weights *packed_pair(size_t in, size_t out, const float *gate, const float *up);

#endif
