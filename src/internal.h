/* SPDX-License-Identifier: MIT
 * What the operators share: contexts, levels, argument checks, scratch memory and tasks.
 */
#ifndef HEED_INTERNAL_H
#define HEED_INTERNAL_H

#include "config.h"
#include "unchecked.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu.h"
#include "heed.h"
#include "kernels.h"

/* ---- levels (dispatch.c) ---- */

struct heed_level {
    const char *name;
    const struct heed_kernels *kernels; /* NULL: not built */
    bool runnable;                      /* this CPU can execute the table, perhaps only for tests */
    const char *reason;                 /* why it may not be selected; NULL if it may */
    bool fused;
};

size_t heed_level_count(void);
struct heed_level heed_level_at(size_t index);

/* The same on another CPU, so that it can be tested on any. */
struct heed_level heed_level_on(size_t index, const struct heed_cpu *cpu);

/* The kernels of a level that may be selected; NULL names the default one. */
heed_status heed_level_select(const char *name, const struct heed_kernels **kernels);

/* Bytes of L2 that a core has, for plans; results never depend on it. */
size_t heed_l2_bytes(void);

/* heed_cpu_in_order_bytes, and heed_cpu_is_wide, asked once. */
size_t heed_in_order_bytes(void);
bool heed_core_is_wide(void);

/* ---- contexts (context.c) ---- */

struct heed_context {
    const struct heed_kernels *kernels;
    size_t l2;       /* bytes */
    size_t in_order; /* see heed_cpu_in_order_bytes */
    bool wide_core;  /* see heed_cpu_is_wide */
    heed_executor executor;
    size_t threads;
    heed_host host;
    heed_allocator allocator;
};

/* As heed_context_create, on any runnable table: the tests' way to tables that may not be selected. */
heed_status heed_context_create_on(heed_context **context, const heed_context_options *options,
                                   const struct heed_kernels *kernels);

/* The context to use for the caller's pointer: the same, or *fallback filled in for NULL. */
heed_status heed_context_resolve(const heed_context *context, struct heed_context *fallback,
                                 const struct heed_context **resolved);

/* The kernels of a context, without the copy that NULL stands for: it would take as long as a small product. */
static inline heed_status heed_kernels_of(const heed_context *context, const struct heed_kernels **kernels)
{
    if (!context)
        return heed_level_select(NULL, kernels);
    *kernels = context->kernels;
    return HEED_OK;
}

/* ---- tasks (parallel.c) ---- */

typedef void heed_task(void *arg, size_t index, size_t worker);

/* A parallel region of few threads costs about a microsecond, in which one thread does some 2^16 multiply-adds; less
 * than twice that is not worth sharing. Of many threads each adds a tenth of a microsecond, since all of them change
 * the counter of the same barrier, one after the other. */
#define HEED_LEAST_PARALLEL_WORK 131072
#define HEED_WORK_PER_THREAD 8192

/* Whether so much work, in multiply-adds, is shared; less stays on the calling thread. */
static inline bool heed_is_shared(const struct heed_context *context, double work)
{
    return context->threads > 1 && work >= HEED_LEAST_PARALLEL_WORK &&
           work >= (double)context->threads * HEED_WORK_PER_THREAD;
}

/* Runs every task. work is an estimate for all of them. */
void heed_run(const struct heed_context *context, size_t n_tasks, double work, heed_task *task, void *arg);

/* Whether this process is the one that was the first to ask (process.c): the only one with OpenMP's threads. */
bool heed_is_first_process(void);

/* How many tasks can run at once: scratch is needed for so many workers. */
size_t heed_workers(const struct heed_context *context);

/* The same for so many tasks. A host may run few tasks on any of its workers. */
size_t heed_workers_of(const struct heed_context *context, size_t n_tasks);

/* Multiply-adds that take as long as an element of a row kernel that moves or compares it, goes over its row several
 * times, or takes its exponential. */
#define HEED_MOVE_WORK 4.0
#define HEED_NORM_WORK 10.0
#define HEED_EXP_WORK 18.0

/* ---- sizes ---- */

/* Half the digits of a size: two numbers of so few multiply without overflow. */
#define HEED_HALF_SIZE (SIZE_MAX >> sizeof(size_t) * 4)

/* a * b and a + b, or SIZE_MAX where that overflows, from which only a product with 0 leads back. A division takes as
 * long as ten multiply-adds. */
static inline size_t heed_times(size_t a, size_t b)
{
    bool fits = (a | b) <= HEED_HALF_SIZE;
    return fits || a == 0 || b <= SIZE_MAX / a ? a * b : SIZE_MAX;
}

static inline size_t heed_plus(size_t a, size_t b)
{
    return b > SIZE_MAX - a ? SIZE_MAX : a + b;
}

static inline size_t heed_ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* Of so many floats; a double, which does not overflow. */
static inline double heed_bytes_of(size_t rows, size_t cols)
{
    return (double)rows * (double)cols * (double)sizeof(float);
}

/* Of the fewest even parts that have at most so many each. */
static inline size_t heed_even_part(size_t count, size_t most)
{
    return heed_ceil_div(count, heed_ceil_div(count, most));
}

/* Up to a whole number of panels; SIZE_MAX on overflow. */
static inline size_t heed_pad(size_t n)
{
    return n > SIZE_MAX - HEED_PANEL ? SIZE_MAX : heed_ceil_div(n, HEED_PANEL) * HEED_PANEL;
}

/* ---- argument checks (check.c) ---- */

/* More than a layer of a decoder has. */
#define HEED_OPERANDS_MOST 64

/* Operands are declared in the order of the parameters; the first wrong one decides the status. Two
 * operands of which one is written may meet only if they share a group and are the same matrix. */
struct heed_operands {
    heed_status status;
    size_t count;
    struct heed_operand {
        uintptr_t begin, end;
        size_t ld;
        unsigned groups;
        bool written;
    } operand[HEED_OPERANDS_MOST];
};

/* Leaves the table of operands as it is: thousands of bytes that would take longer than a small product. */
static inline void heed_operands_begin(struct heed_operands *operands, heed_status status)
{
    operands->status = status;
    operands->count = 0;
}

/* Whether an array is aligned and ends within the address space. */
heed_status heed_array_check(const void *data, size_t size, size_t elements);

void heed_fail(struct heed_operands *operands, heed_status status);
void heed_require(struct heed_operands *operands, bool condition, heed_status otherwise);

/* A matrix of elements of `size` bytes; groups as above. */
void heed_read(struct heed_operands *operands, const void *data, size_t size, size_t rows, size_t cols, size_t ld,
               unsigned groups);
void heed_write(struct heed_operands *operands, void *data, size_t size, size_t rows, size_t cols, size_t ld,
                unsigned groups);

/* As above where NULL means absent. */
void heed_read_optional(struct heed_operands *operands, const void *data, size_t size, size_t rows, size_t cols,
                        size_t ld, unsigned groups);
void heed_write_optional(struct heed_operands *operands, void *data, size_t size, size_t rows, size_t cols, size_t ld,
                         unsigned groups);

/* A tensor of four dimensions, the last one dense. Strides of what is written may not collide. */
struct heed_dims {
    size_t count[3], stride[3], cols;
};
void heed_read_tensor(struct heed_operands *operands, const void *data, size_t size, const struct heed_dims *dims);
void heed_write_tensor(struct heed_operands *operands, void *data, size_t size, const struct heed_dims *dims);

/* A mask of scores, if there is one; its strides may be anything. */
bool heed_mask_type_is_valid(heed_mask_type type);
void heed_read_mask(struct heed_operands *operands, const heed_mask *mask, size_t batch, size_t heads, size_t rows,
                    size_t cols);

static inline bool heed_is_finite(double x)
{
    return x - x == 0.0;
}

/* Whether a norm may add it to a variance. */
static inline bool heed_eps_is_valid(float eps)
{
    return eps >= 0.0f && heed_is_finite((double)eps);
}

/* Packed weights, which are no matrix of the caller's. */
void heed_read_weights(struct heed_operands *operands, const heed_weights *weights);

/* Elements of a small operand and its stride at the most, so that no sum of its sizes overflows. The calls of small
 * products, of which the table of operands would take a good part, are checked by these alone; whatever does not pass
 * is left to the table, which says what is wrong. */
#define HEED_SMALL_ELEMENTS 4096
#define HEED_SMALL_STRIDE 65536

/* Neither NULL, nor so high that a small operand would end beyond the last address, nor unaligned. */
static inline bool heed_is_small_operand(const float *data)
{
    const uintptr_t span = ((uintptr_t)HEED_SMALL_ELEMENTS * HEED_SMALL_STRIDE + HEED_SMALL_ELEMENTS) * sizeof(float);
    uintptr_t begin = (uintptr_t)data;
    return begin - 1 < UINTPTR_MAX - span && begin % sizeof(float) == 0;
}

/* Whether so many floats do not meet. */
static inline bool heed_are_apart(const float *a, size_t a_floats, const float *b, size_t b_floats)
{
    uintptr_t a_begin = (uintptr_t)a, b_begin = (uintptr_t)b;
    return a_begin >= b_begin + b_floats * sizeof(float) || b_begin >= a_begin + a_floats * sizeof(float);
}

/* Checks the overlaps, and the workspace against all operands where one is given. */
heed_status heed_operands_check(struct heed_operands *operands, const heed_workspace *workspace, size_t bytes);

/* Copies a caller's option struct over *known, which holds the defaults; least is the size of its
 * first version. Fields that this version does not know must be zero. */
heed_status heed_struct_read(void *known, size_t known_size, size_t least, const void *given);

/* The number of rows that sequence b of a batch has, and where they begin. */
struct heed_sequences {
    size_t batch, length;
    const size_t *offsets;
};

static inline size_t heed_sequence_begin(const struct heed_sequences *s, size_t b)
{
    return s->offsets ? s->offsets[b] : b * s->length;
}

static inline size_t heed_sequence_length(const struct heed_sequences *s, size_t b)
{
    return s->offsets ? s->offsets[b + 1] - s->offsets[b] : s->length;
}

/* Checks offsets (aligned, not decreasing, no sequence longer than length where limited) and gives
 * the number of rows of all sequences: those before the first offset are none of them. */
heed_status heed_sequences_check(const struct heed_sequences *s, bool limited, size_t *rows);

/* The offsets themselves, so that no output overwrites them. */
void heed_read_offsets(struct heed_operands *operands, const struct heed_sequences *s);

/* Where the rows of head h of sequence b begin. */
static inline size_t heed_head_start(const heed_heads *heads, const struct heed_sequences *s, size_t b, size_t h)
{
    size_t batch = s->offsets ? s->offsets[b] * heads->row_stride : b * heads->batch_stride;
    return batch + h * heads->head_stride;
}

/* An output's strides, as operands that are read have them. */
static inline heed_heads heed_heads_of_out(const heed_heads_out *out)
{
    return (heed_heads){out->data, out->batch_stride, out->head_stride, out->row_stride};
}

/* Where a row of a matrix begins, NULL of one that is NULL; a failure if no memory has the rows before it. */
const float *heed_row_at(struct heed_operands *operands, const float *data, size_t row, size_t stride);

/* The rows of all sequences, of so many heads and columns. */
void heed_read_heads(struct heed_operands *operands, const heed_heads *heads, const struct heed_sequences *s,
                     size_t rows, size_t n_heads, size_t cols);
void heed_write_heads(struct heed_operands *operands, const heed_heads_out *heads, const struct heed_sequences *s,
                      size_t rows, size_t n_heads, size_t cols);

/* ---- scratch (scratch.c) ---- */

struct heed_scratch {
    const struct heed_context *context;
    void *owned;
    unsigned char *next; /* aligned to a cache line */
};

/* Bytes of a part of the scratch, in whole cache lines. */
size_t heed_scratch_part(size_t count, size_t size);

/* What a caller must bring for so many bytes of parts, with room for alignment. */
size_t heed_scratch_total(size_t parts);

/* Takes the caller's workspace (checked before to be large enough) or allocates. */
heed_status heed_scratch_open(struct heed_scratch *scratch, const struct heed_context *context,
                              const heed_workspace *workspace, size_t bytes);
void *heed_scratch_take(struct heed_scratch *scratch, size_t count, size_t size);
void heed_scratch_close(struct heed_scratch *scratch);

/* The answer of a _workspace query: HEED_ERR_OVERFLOW if sizes overflowed on the way. */
heed_status heed_workspace_answer(size_t parts, size_t *bytes);

/* ---- products (tiles.c) ---- */

struct heed_product {
    size_t m, n, k;
    const float *a;
    size_t lda;
    struct heed_panels b;
    float *c;
    size_t ldc;
    struct heed_epilogue epilogue;
};

/* Something to point at where an operand has no element, since NULL takes no offset, not even 0. */
extern const float heed_nothing[HEED_PANEL];

/* How a product is cut into tasks of rows x cols, and those into parts of depth steps of k. */
struct heed_cut {
    size_t sliver, rows, cols, depth, row_blocks, tasks;
    bool by_rows; /* workers share rows, where there are enough */
};

/* Steps of k at once, in whole panels, where c may hold the sums meanwhile. */
size_t heed_split_depth(size_t k);

/* Columns of a tile where m rows are multiplied, in whole panels; m >= 1. Narrow: by a b in place, or a gated one. */
size_t heed_sliver(const struct heed_kernels *kernels, size_t m, bool narrow);

/* Columns that are worth a task: the usual number, or fewer where so many would leave workers without. */
size_t heed_task_cols(const struct heed_context *context, size_t n, size_t usual, size_t least);

/* Rows that pass by all columns before the next ones do: few of a c that comes from beyond L2, if strips of a tile's
 * width share its lines, so that the second strip still finds what the first one wrote; else all, as where k is so long
 * that it does not tell. Workers then share rows: what the CPU brings of a row ahead of its stores would be another's.
 */
size_t heed_far_rows(const struct heed_context *context, size_t m, size_t n, size_t k, const float *c, size_t ldc);

/* Rows of a product that a task has at least. */
#define HEED_LEAST_ROWS 24

/* Cuts for the context's workers. On entry cut->rows and cut->cols are the most that a task may have, and cut->sliver
 * columns are worth a task. */
void heed_cut(const struct heed_context *context, size_t m, size_t n, size_t k, size_t least_rows,
              struct heed_cut *cut);

/* The same where each task has to transpose its rows of a and to pack its columns of b: a task for each worker. */
void heed_cut_balanced(const struct heed_context *context, size_t m, size_t n, size_t k, size_t least_rows,
                       struct heed_cut *cut);

void heed_cut_block(const struct heed_cut *cut, size_t index, size_t m, size_t n, size_t *i, size_t *j, size_t *rows,
                    size_t *cols);

/* Multiply-adds that one thread does in some hundreds of nanoseconds, and sides whose product does not wrap: too few to
 * be cut or shared, so that a plan would take a good part of the time. */
#define HEED_SMALL_WORK 32768
#define HEED_SMALL_SIDE 1024

static inline bool heed_is_small_product(size_t m, size_t n, size_t k)
{
    return m <= HEED_SMALL_SIDE && n <= HEED_SMALL_SIDE && k <= HEED_SMALL_SIDE && m * n * k <= HEED_SMALL_WORK;
}

/* Sets the hints of product->b, the strides of a single row, and what stands for operands without elements; a copy
 * would take as long as a small product. */
void heed_product_run(const struct heed_context *context, struct heed_product *product);

/* ---- weights (pack.c) ---- */

/* Words of 32 bits only, so that the object may lie at any 4-byte address. The magic number reads differently in the
 * other byte order. */
struct heed_weights {
    uint32_t magic, version, type, panel;
    uint32_t in_low, in_high, out_low, out_high;
    uint32_t gated; /* 1: panels of two matrices by turns */
    uint32_t reserved[7];
};

_Static_assert(sizeof(struct heed_weights) == 64, "the header is part of the file format");

static inline size_t heed_header_in(const heed_weights *weights)
{
    return (size_t)((uint64_t)weights->in_high << 32 | weights->in_low);
}

static inline size_t heed_header_out(const heed_weights *weights)
{
    return (size_t)((uint64_t)weights->out_high << 32 | weights->out_low);
}

static inline struct heed_panels heed_header_panels(const heed_weights *weights)
{
    return heed_panels_packed((const float *)(const void *)(weights + 1), heed_header_in(weights));
}

/* HEED_ERR_NULL or HEED_ERR_FORMAT for what is no packed matrix. */
heed_status heed_weights_check(const heed_weights *weights);

/* ---- activations (activation.c) ---- */

/* HEED_OK for a value of heed_activation. */
heed_status heed_activation_check(heed_activation activation);

/* ---- feed-forward (ffn.c) ---- */

/* The weights and biases of heed_ffn, for so many rows. */
void heed_ffn_read(struct heed_operands *operands, const heed_ffn_weights *weights, size_t rows);

/* ---- rotary positions (rotary.c) ---- */

/* The tables of heads of so many elements; used: whether there is anything to turn. */
void heed_read_rotary_tables(struct heed_operands *operands, const heed_rotary_tables *tables, size_t head_dim,
                             bool used);

/* HEED_ERR_INDEX for a row that the tables do not have. */
heed_status heed_rotary_check_ids(const heed_rotary_tables *tables, size_t n, const int32_t *ids);

/* ---- keys and values (kv_cache.c) ---- */

/* A page holds, for every head, page_keys keys in panels and then as many rows of values, each of whole
 * panels. A cache without pages has one large page for each sequence. */
struct heed_kv_cache {
    size_t batch, n_kv_heads, head_dim, value_dim, capacity;
    bool paged;
    size_t page_keys, pages, table_cols;
    size_t head_floats, page_floats;
    float *data;
    size_t bytes;    /* of the whole object */
    int32_t *table;  /* [batch][table_cols], -1: no page */
    size_t length[]; /* [batch] */
};

/* HEED_ERR_INDEX if a page of keys begin to end - 1 is missing. */
heed_status heed_kv_cache_check_pages(const heed_kv_cache *cache, size_t sequence, size_t begin, size_t end);

/* Rows of keys and values that go to the ends of sequences of a cache. */
struct heed_kv_append {
    heed_kv_cache *cache;
    struct heed_sequences rows;
    const size_t *sequences; /* [rows.batch], none twice where there are rows; NULL: the same */
};

/* The cache's sequence for sequence b of the rows. */
static inline size_t heed_kv_append_target(const struct heed_kv_append *append, size_t b)
{
    return append->sequences ? append->sequences[b] : b;
}

/* Everything but the operands' memory; rows have passed heed_sequences_check. Lasting: whatever the cache holds and
 * which of its pages are there at the moment. */
heed_status heed_kv_append_check(const struct heed_kv_append *append, bool lasting);

/* Appends what has been checked; rows is their number. */
void heed_kv_append_run(const struct heed_context *context, const struct heed_kv_append *append, size_t rows,
                        const heed_heads *k, const heed_heads *v);

/* Puts n keys, ld apart, into panels [][dim][16] at columns first to first + n - 1. Columns after the last one
 * of a panel that begins among them become 0. */
void heed_put_keys(const struct heed_kernels *kernels, size_t dim, size_t first, size_t n, const float *src, size_t ld,
                   float *panels);

/* ---- attention (attention.c, mha.c) ---- */

/* heed_attention_workspace, and its checks, for when these keys will have been appended, if not NULL. The need grows
 * with the keys: what lasts is that of as many as the cache may come to have, whatever it holds at the moment. */
heed_status heed_attention_workspace_after(const heed_context *context, const heed_attention_args *args,
                                           const struct heed_sequences *coming, bool lasting, size_t *bytes);

/* The maps and log-sum-exp of heed_attention that are asked for. */
void heed_write_maps(struct heed_operands *operands, const heed_attention_args *args);

/* heed_mha_workspace, and the checks of heed_mha but for its operands' memory; lasting as above. */
heed_status heed_mha_plan(const heed_context *context, const heed_mha_weights *weights, const heed_mha_args *args,
                          bool lasting, size_t *bytes);

/* heed_mha whose operands have been checked: they are many, and a layer has to check them before it begins. */
heed_status heed_mha_run(const heed_context *context, const heed_mha_weights *weights, const heed_mha_args *args,
                         const heed_workspace *workspace);

/* All operands of heed_mha but the rows of tokens, memory, residual and y, the maps and the workspace. */
void heed_mha_read(struct heed_operands *operands, const heed_context *context, const heed_mha_weights *weights,
                   const heed_mha_args *args);

/* ---- elementary functions in double (elementary.c): the same bits everywhere, unlike libm's ---- */

double heed_log(double x);                                /* x > 0, normal */
double heed_exp(double x);                                /* |x| <= 700 */
double heed_root(double x);                               /* sqrt, x >= 0 */
void heed_sincos(double x, double *sine, double *cosine); /* |x| <= 2^31 */

#endif
