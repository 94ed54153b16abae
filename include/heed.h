/* SPDX-License-Identifier: MIT
 * heed: transformer kernels for CPUs, with the same bits on every one of them.
 *
 * What holds for every operator, unless its own comment says otherwise:
 *
 * Shapes     Matrices are row-major. Counts and strides (ld*, *_stride) are in elements; ld is the
 *            distance between the starts of two rows and is at least the number of columns.
 *            Any pointer to float need only be aligned to 4 bytes. A row gap (ld > columns) is
 *            neither read nor written. A single row's ld is checked, too; that of no rows, or of rows
 *            without columns, is not, nor a *_stride along which there is one item. Answers in bytes
 *            are multiples of 64.
 * Empty      A zero size succeeds and writes only what that size leaves to write; a pointer that
 *            describes no element may be NULL.
 * Aliasing   Inputs may overlap each other. An output may be an input only where the comment says
 *            so, and then at the same address with the same strides (which may differ where there is
 *            one row); any other overlap is HEED_ERR_OVERLAP. (Overlap is judged on the span from
 *            first to last element.)
 * Errors     Every operator may return HEED_ERR_NULL, _STRIDE, _OVERFLOW, _OVERLAP, _ALIGNMENT, _ENUM
 *            for a value outside its enumeration, _STRUCT where it takes a struct with struct_size,
 *            _WORKSPACE and _MEMORY where it needs a workspace, and the status of an unusable HEED_ISA;
 *            comments name what else. Where several arguments are wrong the status is that of one of
 *            them, unspecified which. Nothing is written then (but by heed_level_default). An error
 *            never ends the process and never prints. (libgomp does, where the system refuses it a
 *            thread: see heed_context_create.)
 * Threads    A context is immutable after creation: any number of threads may use one at once.
 *            NULL for a context means: the default level, one thread, malloc. A context that is made
 *            with no options has all threads that heed_default_threads() allows.
 * Bits       Within a class (heed_level_info.fused) a result does not depend on the level, the
 *            number of threads, the batch, the alignment or the strides, given the default
 *            floating-point environment (round to nearest, subnormals kept). In another one the
 *            threads that share an operator round, and flush, as the one that calls it. Which NaN
 *            comes out is not promised, only that it is one. 32-bit ARM's NEON always flushes
 *            subnormals and is a class of its own.
 * Bounds     u = 2^-24, g(n) = n u / (1 - n u). Bounds are per element against exact arithmetic
 *            on the same inputs and hold while nothing overflows or underflows.
 */
#ifndef HEED_H
#define HEED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && __GNUC__ >= 4
#define HEED_API __attribute__((visibility("default")))
#else
#define HEED_API
#endif

#define HEED_VERSION_MAJOR 0
#define HEED_VERSION_MINOR 1
#define HEED_VERSION_PATCH 0

/* "MAJOR.MINOR.PATCH" of the library that runs, which may differ from the header's. */
HEED_API const char *heed_version(void);

/* ---- status ------------------------------------------------------------------------------- */

typedef enum heed_status {
    HEED_OK = 0,
    HEED_ERR_NULL = 1,              /* a pointer is NULL where elements are expected */
    HEED_ERR_STRIDE = 2,            /* a stride is too small, or lets outputs collide */
    HEED_ERR_OVERFLOW = 3,          /* sizes do not fit the address space */
    HEED_ERR_ENUM = 4,              /* a value outside its enumeration */
    HEED_ERR_VALUE = 5,             /* a number outside its range: eps, scale, threads, count */
    HEED_ERR_OVERLAP = 6,           /* an output overlaps something it may not */
    HEED_ERR_ALIGNMENT = 7,         /* a pointer is not aligned to its element */
    HEED_ERR_SHAPE = 8,             /* sizes that do not fit each other */
    HEED_ERR_INDEX = 9,             /* an id outside its table, or offsets that decrease */
    HEED_ERR_STRUCT = 10,           /* struct_size is wrong, or an unknown field is set */
    HEED_ERR_FORMAT = 11,           /* not packed weights, or of a newer version */
    HEED_ERR_WORKSPACE = 12,        /* too few bytes in the caller's memory: a workspace, packed weights, a cache */
    HEED_ERR_MEMORY = 13,           /* the allocator returned NULL */
    HEED_ERR_LEVEL_UNKNOWN = 14,    /* no level has that name */
    HEED_ERR_LEVEL_UNSUPPORTED = 15 /* the level is not built in, or this CPU cannot run it */
} heed_status;

/* One English sentence without a full stop; never NULL. */
HEED_API const char *heed_status_string(heed_status status);

/* ---- levels: which instruction set runs ---------------------------------------------------- */

/* What one level is and whether it can be used here. All strings are static. */
typedef struct heed_level_info {
    const char *name;   /* what the environment variable HEED_ISA and a context accept */
    const char *reason; /* why it is not usable; NULL if it is */
    int built;          /* compiled into this library */
    int supported;      /* 1 if reason is NULL: built, not emulated, and this CPU and operating system can run it */
    int fused;          /* 1: fused class of bits; 0: unfused class */
} heed_level_info;

/* Describes level `index`, from the plainest upwards. HEED_ERR_VALUE past the last one. */
HEED_API heed_status heed_level_query(size_t index, heed_level_info *info);

/* The level that a context without a pinned one uses: the best supported one, or what HEED_ISA
 * names, if it is not empty. HEED_ISA is read when the library is loaded. If HEED_ISA names no usable level every
 * operator returns that status, as does this, and *name is then the name that was asked for or "" for an unknown one.
 */
HEED_API heed_status heed_level_default(const char **name);

/* ---- context ------------------------------------------------------------------------------- */

typedef enum heed_executor {
    HEED_EXECUTOR_SERIAL = 0, /* the calling thread */
    HEED_EXECUTOR_OPENMP = 1, /* OpenMP; the calling thread alone in a parallel region of the caller's, and where the
                                 library was built without */
    HEED_EXECUTOR_HOST = 2    /* the host's own threads, through heed_host.run */
} heed_executor;

/* The host's way to run tasks: call task(arg, index, worker) once for every index < n_tasks, in
 * any order, on any threads, and return when all have finished. worker < heed_context_options
 * .threads; two tasks that run at the same time have different workers. Tasks never wait for one
 * another, so running them one after another is correct. A task takes up to 64 KiB of its thread's
 * stack, a call 80 KiB with the tasks that run within it. */
typedef struct heed_host {
    void (*run)(void *host, size_t n_tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg);
    void *host;
} heed_host;

/* Where workspace comes from when the caller passes none. allocate returns memory aligned for any
 * type, or NULL; release is called with what allocate returned. Either both or neither. */
typedef struct heed_allocator {
    void *(*allocate)(void *state, size_t bytes);
    void (*release)(void *state, void *memory);
    void *state;
} heed_allocator;

typedef struct heed_context_options {
    size_t struct_size;
    const char *level;      /* NULL: the default level */
    heed_executor executor; /* default HEED_EXECUTOR_OPENMP */
    size_t threads;         /* 0: heed_default_threads(), but a host states its own; at most 65536 */
    heed_host host;         /* for HEED_EXECUTOR_HOST */
    heed_allocator allocator;
} heed_context_options;

#define HEED_CONTEXT_OPTIONS_INIT                                                                                      \
    {                                                                                                                  \
        sizeof(heed_context_options), NULL, HEED_EXECUTOR_OPENMP, 0, {NULL, NULL},                                     \
        {                                                                                                              \
            NULL, NULL, NULL                                                                                           \
        }                                                                                                              \
    }

typedef struct heed_context heed_context;

/* Makes a context; options NULL means HEED_CONTEXT_OPTIONS_INIT. On an error *context stays. HEED_ERR_NULL for a host
 * without run, or half of an allocator; HEED_ERR_VALUE for a host's 0 threads, or more than 65536;
 * HEED_ERR_LEVEL_UNKNOWN or HEED_ERR_LEVEL_UNSUPPORTED for a level that cannot be had, and HEED_ERR_MEMORY. It starts
 * no thread: OpenMP starts its own at the first operator that is large enough to share. libgomp's threads do not
 * survive a fork: in a child of a process in which this library has used them it runs serially. Where only something
 * else has used OpenMP before the fork this library cannot know, and libgomp may wait for ever: such a child takes
 * HEED_EXECUTOR_SERIAL or HEED_EXECUTOR_HOST. Where the system refuses it a thread libgomp prints so and ends the
 * process; HEED_EXECUTOR_HOST has threads that the caller has seen to. */
HEED_API heed_status heed_context_create(heed_context **context, const heed_context_options *options);

/* Frees a context, which no call may be using; NULL is allowed. */
HEED_API void heed_context_destroy(heed_context *context);

/* Of a context, or of what NULL stands for; a forked child that runs serially has its parent's number of threads. */
HEED_API const char *heed_context_level(const heed_context *context); /* name of the level, "" if none */
HEED_API size_t heed_context_threads(const heed_context *context);    /* 1 where only the caller's works */

/* CPUs that this process may use: the least of affinity mask and cgroup quota (rounded up), and
 * at least 1. */
HEED_API size_t heed_default_threads(void);

/* 1 if HEED_EXECUTOR_OPENMP shares work over threads in this build. */
HEED_API int heed_has_openmp(void);

/* Scratch memory of the caller, aligned to 4 bytes or better (64 is fastest). The size an operator
 * needs comes from its _workspace query with the same context and arguments; the contents need not
 * be kept between calls, and nothing else of a call lies in it. A NULL heed_workspace means: the context's allocator.
 */
typedef struct heed_workspace {
    void *memory;
    size_t bytes;
} heed_workspace;

/* ---- matmul -------------------------------------------------------------------------------- */

typedef enum heed_transpose { HEED_NO_TRANSPOSE = 0, HEED_TRANSPOSE = 1 } heed_transpose;

/* c = alpha * op(a) op(b) + beta * c, with op(a) m x k, op(b) k x n, c m x n.
 * a is m x k, or k x m if transposed; b is k x n, or n x k if transposed; ld* belong to the
 * matrices as stored. Each element is one chain acc = fma(a, b, acc), k ascending from +0, then
 * fma(beta, c, alpha * acc). beta = 0 does not read c; alpha = 0 does not read a and b, which are checked
 * all the same, and counts as k = 0. NaN and infinity propagate as IEEE 754 says; zeros
 * are not skipped. k = 0 is an empty sum, +0. c overlaps neither a nor b. As gemm of the BLAS (Dongarra and others, ACM
 * Trans. Math. Softw. 16, 1990), row-major.
 * Bound: g(k + 2) (|alpha| |a||b| + |beta c|). */
HEED_API heed_status heed_matmul(const heed_context *context, heed_transpose transpose_a, heed_transpose transpose_b,
                                 size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda, const float *b,
                                 size_t ldb, float beta, float *c, size_t ldc, const heed_workspace *workspace);

/* Bytes of workspace for these sizes and this context, whatever the strides, alpha and beta; 0 for small products,
 * which use up to 16 KB of stack and ignore the workspace. What it holds is bounded in design.md, "Workspace": for each
 * worker some packed columns of b, up to L2 or a megabyte, and where a is transposed up to 768 of its rows. */
HEED_API heed_status heed_matmul_workspace(const heed_context *context, heed_transpose transpose_a,
                                           heed_transpose transpose_b, size_t m, size_t n, size_t k, size_t *bytes);

/* ---- packed weights and linear ------------------------------------------------------------- */

typedef enum heed_type { HEED_TYPE_F32 = 0 } heed_type;

/* How an unpacked weight matrix lies in memory. */
typedef enum heed_weight_layout {
    HEED_LAYOUT_IN_OUT = 0, /* [in][out]: y = x w */
    HEED_LAYOUT_OUT_IN = 1  /* [out][in], as PyTorch stores a linear layer: y = x w^T */
} heed_weight_layout;

/* A weight matrix in the library's layout: a header of 64 bytes, then panels of 16 output columns,
 * each [in][16], the last one zero-padded. The bytes are the same on every level, so they may be
 * written to a file and mapped by many processes; they are in the byte order of the machine, and
 * a file of the other order is refused. The object lies in the caller's memory and needs no
 * destroying. */
typedef struct heed_weights heed_weights;

/* Bytes that heed_weights_pack needs: 64 + 4 * in * (out rounded up to 16). HEED_ERR_OVERFLOW if they do not fit. */
HEED_API heed_status heed_weights_bytes(heed_type type, size_t in, size_t out, size_t *bytes);

/* Packs src (ld >= out for IN_OUT, ld >= in for OUT_IN) into memory, which is aligned to 4 bytes or
 * better (64 is fastest), does not overlap src and outlives *weights (which points into it). Too few bytes are
 * HEED_ERR_WORKSPACE. */
HEED_API heed_status heed_weights_pack(const heed_context *context, heed_type type, heed_weight_layout layout,
                                       size_t in, size_t out, const float *src, size_t ld, void *memory, size_t bytes,
                                       const heed_weights **weights);

/* The same for a pair of matrices of one shape, gate and up, of which heed_linear makes
 * activation(x gate) * (x up) in one pass over x: panels of both by turns, so that the bytes are 64 + 8 * in * (out
 * rounded up to 16). */
HEED_API heed_status heed_weights_gated_bytes(heed_type type, size_t in, size_t out, size_t *bytes);
HEED_API heed_status heed_weights_pack_gated(const heed_context *context, heed_type type, heed_weight_layout layout,
                                             size_t in, size_t out, const float *gate, size_t ld_gate, const float *up,
                                             size_t ld_up, void *memory, size_t bytes, const heed_weights **weights);

/* Takes memory that heed_weights_pack or heed_weights_pack_gated filled, perhaps in another process, after checking its
 * header against bytes. It is neither copied nor written, and outlives *weights, which points into it. HEED_ERR_FORMAT
 * if it is anything else, or bytes are too few; HEED_ERR_ALIGNMENT if it is not aligned to 4. */
HEED_API heed_status heed_weights_open(const void *memory, size_t bytes, const heed_weights **weights);

/* Rows and columns of what was packed; weights may not be NULL. */
HEED_API size_t heed_weights_in(const heed_weights *weights);
HEED_API size_t heed_weights_out(const heed_weights *weights);

/* 1 for a pair of gate and up, 0 for one matrix; weights may not be NULL. */
HEED_API int heed_weights_gated(const heed_weights *weights);

typedef enum heed_activation {
    HEED_ACTIVATION_NONE = 0,
    HEED_ACTIVATION_RELU = 1,      /* x < 0 ? 0 : x, so NaN stays NaN */
    HEED_ACTIVATION_GELU_ERF = 2,  /* x (1 + erf(x / sqrt 2)) / 2, the exact form */
    HEED_ACTIVATION_GELU_TANH = 3, /* x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 */
    HEED_ACTIVATION_SILU = 4       /* x / (1 + e^-x), also called swish */
} heed_activation;

typedef struct heed_linear_options {
    size_t struct_size;
    const float *bias; /* [out], or NULL */
    heed_activation activation;
    const float *residual; /* [m][out], added last, or NULL; may be y itself */
    size_t ld_residual;
    const float *up_bias; /* [out], or NULL; for gated weights only, where bias is that of the gate */
} heed_linear_options;

#define HEED_LINEAR_OPTIONS_INIT                                                                                       \
    {                                                                                                                  \
        sizeof(heed_linear_options), NULL, HEED_ACTIVATION_NONE, NULL, 0, NULL                                         \
    }

/* y = activation(x w + bias) + residual; x is [m][in], y is [m][out]. options NULL: just x w.
 * Gated weights: y = activation(x gate + bias) * (x up + up_bias) + residual (Shazeer, arXiv:2002.05202).
 * up_bias with others is HEED_ERR_VALUE.
 * Chains, and what NaN and infinity give up to the activation, as in heed_matmul; then as heed_activate and IEEE 754
 * have it. y overlaps no input but residual. It needs no workspace. in = 0 gives activation(bias).
 * Bound: b = g(in + 2) (|x||w| + |bias|) before the activation; after it 1.13 b, no activation being steeper, and the
 * activation's own. Of a pair, with A and B so bounded by a and b, |A| b + |B| a + a b and u (|A| + a) (|B| + b). A
 * residual adds u |y|. */
HEED_API heed_status heed_linear(const heed_context *context, size_t m, const float *x, size_t ldx,
                                 const heed_weights *weights, const heed_linear_options *options, float *y, size_t ldy);

/* ---- row operators ------------------------------------------------------------------------- */

typedef enum heed_mask_type {
    HEED_MASK_NONE = 0,
    HEED_MASK_ADDITIVE = 1, /* float, added to the scaled score; -inf masks the key */
    HEED_MASK_BOOLEAN = 2   /* uint8_t, 0 masks the key */
} heed_mask_type;

/* Element (b, h, i, j) is data[b * batch_stride + h * head_stride + i * row_stride + j]; any
 * stride may be 0 (broadcast). i and j count within the sequence. */
typedef struct heed_mask {
    const void *data;
    heed_mask_type type;
    size_t batch_stride, head_stride, row_stride;
} heed_mask;

/* dst = softmax of each row of src: exp(x - max) / sum, shifted by the row's maximum as in Blanchard,
 * Higham and Higham, IMA J. Numer. Anal. 41 (2021). dst may be src.
 * A row with NaN or +inf becomes NaN, as does one of -inf only; otherwise -inf gives +0. No
 * columns: nothing happens.
 * Bound: 1.01 y ((|x - max| + ln n + n + 3) u + 2 e) + 2^-148, where e = 2 u bounds exp's relative error. */
HEED_API heed_status heed_softmax(const heed_context *context, size_t rows, size_t cols, const float *src,
                                  size_t ld_src, float *dst, size_t ld_dst);

typedef struct heed_softmax_options {
    size_t struct_size;
    float scale;                  /* > 0 and finite, default 1. A temperature T is the scale 1 / T */
    heed_mask mask;               /* default: none */
    size_t mask_rows, mask_heads; /* rows and heads of the mask: see heed_masked_softmax */
} heed_softmax_options;

#define HEED_SOFTMAX_OPTIONS_INIT                                                                                      \
    {                                                                                                                  \
        sizeof(heed_softmax_options), 1.0f, {NULL, HEED_MASK_NONE, 0, 0, 0}, 0, 0                                      \
    }

/* dst = softmax of scale * src + mask; dst may be src, but does not overlap the mask. options NULL is
 * heed_softmax; a scale that is not positive and finite is HEED_ERR_VALUE. Row r is row i = r mod mask_rows of head h =
 * r / mask_rows mod mask_heads of batch b = r / mask_rows / mask_heads of the mask; mask_rows 0 means all rows,
 * mask_heads 0 one head, and rows that are no multiple of mask_rows * mask_heads are HEED_ERR_SHAPE, where there is a
 * mask. A masked element (false, or -inf in an additive mask) has weight +0 and cannot leak, be it NaN. A row whose
 * every element is masked becomes zeros, as it does in heed_attention. Otherwise as heed_softmax: what the other
 * elements make NaN is the whole row, masked elements too. Bound: that of heed_softmax of the scores z, and y (d + sum
 * y d) for the d = u |scale x| + u |z| by which the scores themselves are rounded. */
HEED_API heed_status heed_masked_softmax(const heed_context *context, size_t rows, size_t cols, const float *src,
                                         size_t ld_src, const heed_softmax_options *options, float *dst, size_t ld_dst);

/* dst = log(softmax(scale * src + mask)) = (z - max) - log(sum), with operands, options and NaN as
 * heed_masked_softmax. Masked elements, but for those of a row of NaN, and rows of them become -inf.
 * Bound: 1.01 ((|z - max| + ln n + n + 3 + 2 log(sum) + |y|) u + 2 e) + d + sum softmax d, where e = 2 u bounds exp's
 * relative error. */
HEED_API heed_status heed_log_softmax(const heed_context *context, size_t rows, size_t cols, const float *src,
                                      size_t ld_src, const heed_softmax_options *options, float *dst, size_t ld_dst);

typedef struct heed_layernorm_options {
    size_t struct_size;
    const float *scale;    /* [cols], or NULL for 1 */
    const float *shift;    /* [cols], or NULL for 0 */
    float eps;             /* >= 0; default 1e-5 */
    const float *residual; /* [rows][cols], added to x before anything else, or NULL */
    size_t ld_residual;
    float *sum; /* receives x + residual, or NULL; may be x or residual; without residual HEED_ERR_NULL */
    size_t ld_sum;
    float *mean;              /* [rows], receives the mean of x + residual, or NULL; like the next one left alone
                               * where cols = 0 */
    float *inverse_deviation; /* [rows], receives 1 / sqrt(var + eps) of it, 0 where that root is 0; or NULL */
} heed_layernorm_options;

#define HEED_LAYERNORM_OPTIONS_INIT                                                                                    \
    {                                                                                                                  \
        sizeof(heed_layernorm_options), NULL, NULL, 1e-5f, NULL, 0, NULL, 0, NULL, NULL                                \
    }

/* y = (x - mean) / sqrt(var + eps) * scale + shift for each row (Ba, Kiros and Hinton,
 * arXiv:1607.06450); var is the mean squared deviation.
 * y may be x or residual, but not sum. Two passes over deviations from the row's first element, so
 * a constant row gives shift exactly and a large offset costs no accuracy. eps = 0 on a constant
 * row gives shift. A row with NaN or infinity becomes NaN; finite rows whose squared deviations sum
 * to a finite value never give NaN. HEED_ERR_VALUE if eps is negative, NaN or infinite.
 * Bound, with s = sqrt(var + eps), z = (x - mean) / s, d = g(cols) mean|x - x[0]| / s + u max|x - x[0]| / s:
 * 1.01 (|scale| d + |scale z| f + 2 u (|scale z| + |shift|)) + |scale| d f, f = g(cols + 4) / 2 + d^2 / 2 + 8 u; of the
 * mean g(cols) mean|x - x[0]| + u |mean|, of the inverse deviation (d + g(cols + 6) / 2 + 3 u) times itself. */
HEED_API heed_status heed_layernorm(const heed_context *context, size_t rows, size_t cols, const float *x, size_t ldx,
                                    const heed_layernorm_options *options, float *y, size_t ldy);

typedef struct heed_rmsnorm_options {
    size_t struct_size;
    const float *scale;    /* [cols], or NULL for 1 */
    float eps;             /* >= 0; default 1e-5 */
    const float *residual; /* [rows][cols], added to x before anything else, or NULL */
    size_t ld_residual;
    float *sum; /* receives x + residual, or NULL; may be x or residual; without residual HEED_ERR_NULL */
    size_t ld_sum;
    float *inverse_rms; /* [rows], receives 1 / sqrt(mean of (x + residual)^2 + eps), 0 where that root is 0; or NULL;
                         * left alone where cols = 0 */
} heed_rmsnorm_options;

#define HEED_RMSNORM_OPTIONS_INIT                                                                                      \
    {                                                                                                                  \
        sizeof(heed_rmsnorm_options), NULL, 1e-5f, NULL, 0, NULL, 0, NULL                                              \
    }

/* y = x / sqrt(mean(x^2) + eps) * scale for each row (Zhang and Sennrich, arXiv:1910.07467).
 * y may be x or residual, but not sum. A zero row stays zero, eps or not. A row with NaN becomes NaN.
 * Where squares overflow, and so with an infinity in the row, 1 / root is 0: finite elements become
 * zeros, infinite ones NaN. HEED_ERR_VALUE if eps is negative, NaN or infinite.
 * Bound: (g(cols + 4) / 2 + 4 u) |y| while neither squares nor results underflow. */
HEED_API heed_status heed_rmsnorm(const heed_context *context, size_t rows, size_t cols, const float *x, size_t ldx,
                                  const heed_rmsnorm_options *options, float *y, size_t ldy);

/* dst = activation(src), element by element; GELU and SiLU as in Hendrycks and Gimpel,
 * arXiv:1606.08415. dst may be src. NaN gives NaN; +inf gives +inf, and at -inf the GELUs and SiLU are -0, not NaN.
 * Bound for the GELUs and SiLU: 4 ulp or u |x|, whichever is larger; RELU is exact. */
HEED_API heed_status heed_activate(const heed_context *context, heed_activation activation, size_t rows, size_t cols,
                                   const float *src, size_t ld_src, float *dst, size_t ld_dst);

/* dst = activation(gate) * up, element by element: SwiGLU with SILU, GEGLU with a GELU, ReGLU with RELU
 * (Shazeer, arXiv:2002.05202). dst may be gate or up. NaN and infinity as the activation's and then as
 * IEEE 754 multiplies.
 * Bound: that of the activation times |up|, and u |dst| + 2^-149. */
HEED_API heed_status heed_activate_gated(const heed_context *context, heed_activation activation, size_t rows,
                                         size_t cols, const float *gate, size_t ld_gate, const float *up, size_t ld_up,
                                         float *dst, size_t ld_dst);

/* index[r] = the lowest column of the largest value of row r. NaN counts as largest, and -0 equals +0. cols = 0 with
 * rows > 0 is HEED_ERR_SHAPE, since there is no answer. */
HEED_API heed_status heed_argmax(const heed_context *context, size_t rows, size_t cols, const float *src, size_t ld,
                                 size_t *index);

/* index[r][0 .. k - 1] = the columns of the k largest values of row r, largest first, and values, if not NULL,
 * those values. NaN counts as largest, and of equal values (-0 and +0 are equal, and NaN to NaN) the lower column comes
 * first. k > cols with rows > 0 is HEED_ERR_SHAPE. */
HEED_API heed_status heed_top_k(const heed_context *context, size_t rows, size_t cols, size_t k, const float *src,
                                size_t ld, float *values, size_t ld_values, size_t *index, size_t ld_index);

/* dst = src / max(|src|_2, eps) for each row, as 1 / norm times src, by that definition. dst may be src. eps is finite
 * and >= 0, else HEED_ERR_VALUE; 0 < eps < 2^-126 counts as 2^-126. A zero row stays zero. A row with NaN becomes NaN.
 * Where squares overflow, and so with an infinity in the row, finite elements become zeros, infinite ones NaN.
 * Bound: (g(cols + 4) / 2 + 3 u) |y|, unless max(|src|_2, eps) is below 2^-62 sqrt(cols), where squares underflow. */
HEED_API heed_status heed_l2_normalize(const heed_context *context, size_t rows, size_t cols, float eps,
                                       const float *src, size_t ld_src, float *dst, size_t ld_dst);

typedef enum heed_pooling {
    HEED_POOLING_FIRST = 0, /* the first token ("CLS") */
    HEED_POOLING_MEAN = 1,  /* sums in token order, times 1 / count */
    HEED_POOLING_MAX = 2,   /* the largest of each column; NaN where any token has it */
    HEED_POOLING_LAST = 3   /* the last token, of which a language model takes the next one */
} heed_pooling;

/* dst[s] = the pooled rows offsets[s] .. offsets[s + 1] - 1 of src, which has offsets[sequences] rows; offsets has
 * sequences + 1 entries that do not decrease (else HEED_ERR_INDEX). A sequence without rows gives zeros; offsets[0]
 * need not be 0. NaN and infinity reach the mean and single tokens as IEEE 754 says. Bound of the mean: g(rows + 2)
 * times the mean of |src|. */
HEED_API heed_status heed_pool(const heed_context *context, heed_pooling pooling, size_t sequences,
                               const size_t *offsets, size_t cols, const float *src, size_t ld_src, float *dst,
                               size_t ld_dst);

/* ---- embeddings and positions -------------------------------------------------------------- */

/* One table to look rows up in. */
typedef struct heed_embedding_table {
    const float *table; /* [rows][cols] */
    size_t rows, ld;
    const int32_t *ids; /* [n]; NULL: each token's position in its sequence plus first */
    size_t first;       /* used where ids is NULL */
} heed_embedding_table;

/* dst[t] = sum over the 1 to 8 tables (else HEED_ERR_VALUE), in order, of the row that token t selects. n is the number
 * of tokens. Learned positions are a table with ids NULL; positions then count from each offsets[s] (sequences + 1
 * entries, from 0 to offsets[sequences] = n, else HEED_ERR_SHAPE; NULL: one sequence). An id or position outside its
 * table is HEED_ERR_INDEX, as are offsets that decrease. NaN and infinity add up as numbers do. dst overlaps no table.
 * Bound: g(n_tables - 1) times the sum of the magnitudes. */
HEED_API heed_status heed_embed(const heed_context *context, size_t n, size_t cols, size_t n_tables,
                                const heed_embedding_table *tables, size_t sequences, const size_t *offsets, float *dst,
                                size_t ld_dst);

/* heed_layernorm of what heed_embed gives, in one pass and with the same bits; options NULL means its
 * defaults. options->sum, if not NULL, receives the embeddings themselves; residual is HEED_ERR_VALUE. dst
 * and the other outputs overlap nothing. Errors, bounds and what NaN and infinity give as these two, one after the
 * other. */
HEED_API heed_status heed_embed_layernorm(const heed_context *context, size_t n, size_t cols, size_t n_tables,
                                          const heed_embedding_table *tables, size_t sequences, const size_t *offsets,
                                          const heed_layernorm_options *options, float *dst, size_t ld_dst);

/* dst[i] = the sinusoidal encoding (Vaswani and others, arXiv:1706.03762, section 3.5) of position
 * first + i, i < n: columns 2j and 2j + 1 hold sin and
 * cos of position / base^(2j / cols). Computed in double and rounded once: the error is below 0.51
 * ulp + position 2^-49. 1 <= base <= 2^1000; 10000 in the original text. first + n <= 2^31. Otherwise HEED_ERR_VALUE.
 * The last of an odd number of columns holds a sine. */
HEED_API heed_status heed_sinusoidal_positions(const heed_context *context, size_t first, size_t n, size_t cols,
                                               double base, float *dst, size_t ld_dst);

/* Rows of heads, for each sequence of a batch: element (b, h, i, d) is
 * data[b * batch_stride + h * head_stride + i * row_stride + d]. Interleaved [tokens][heads *
 * head_dim] has head_stride = head_dim; head-major [heads][tokens][head_dim] has row_stride =
 * head_dim. Strides of inputs may be 0 (broadcast); those of outputs may not make elements meet: taken by
 * size, each steps over all that the smaller ones reach (else HEED_ERR_STRIDE). */
typedef struct heed_heads {
    const float *data;
    size_t batch_stride, head_stride, row_stride;
} heed_heads;

typedef struct heed_heads_out {
    float *data;
    size_t batch_stride, head_stride, row_stride;
} heed_heads_out;

typedef struct heed_rotary_options {
    size_t struct_size;
    double base;           /* 1 <= base <= 2^1000, default 10000 */
    double position_scale; /* positions are multiplied by it, default 1: 1 / s for linear scaling by s */
    const double *factors; /* [dims / 2], multiplied into the frequencies, or NULL */
    double magnitude;      /* multiplied into cosines and sines, default 1 */
} heed_rotary_options;

#define HEED_ROTARY_OPTIONS_INIT                                                                                       \
    {                                                                                                                  \
        sizeof(heed_rotary_options), 10000.0, 1.0, NULL, 1.0                                                           \
    }

/* cosine[i][j], sine[i][j], i < n, j < dims / 2: magnitude times the cosine and sine of position * frequency for
 * heed_rotary; frequency = base^(-2 j / dims) * position_scale * factors[j] (Su and others, arXiv:2104.09864).
 * positions is [n], or NULL for first + i, then first + n <= 2^31. Computed in double and rounded once: the
 * error is below 0.51 ulp + |magnitude angle| (1 + ln base) 2^-50. HEED_ERR_SHAPE if dims is odd, HEED_ERR_VALUE if
 * first + n or base is out of its range, an option is not finite or |position| position_scale max(1, |factor|) may
 * exceed 2^31. */
HEED_API heed_status heed_rotary_table(const heed_context *context, size_t n, const int32_t *positions, size_t first,
                                       size_t dims, const heed_rotary_options *options, float *cosine, size_t ld_cosine,
                                       float *sine, size_t ld_sine);

/* The factors of Llama 3.1's scaling: pairs that turn fewer than low_freq_factor times over the original
 * context are slowed down by factor >= 1, those that turn more than high_freq_factor times are left
 * alone, and those between are blended: factors[j] = (1 - t) / factor + t, where t is (turns - low_freq_factor) /
 * (high_freq_factor - low_freq_factor) held to [0, 1] and turns = original_context base^(-2 j / dims) / (2 pi). As its
 * model's configuration says; there is no paper. HEED_ERR_SHAPE if dims is odd. factors is [dims / 2]; for
 * heed_rotary_table with the same dims and base > 1. Their error is below (1 + ln base) 2^-49 high_freq_factor /
 * (high_freq_factor - low_freq_factor). HEED_ERR_VALUE unless 0 < low_freq_factor < high_freq_factor, factor >= 1, all
 * finite, and 1 <= original_context <= 2^31. */
HEED_API heed_status heed_rotary_llama3(size_t dims, double base, double factor, double low_freq_factor,
                                        double high_freq_factor, size_t original_context, double *factors);

/* The factors and the magnitude of YaRN (Peng and others, arXiv:2309.00071), blended over dimensions between
 * those that turn beta_fast (32 in the original text) and beta_slow (1) times over the original context, rounded
 * outward to whole ones: factors[j] = r / factor + 1 - r, r rising from 0 to 1 between the two; magnitude = 1 + 0.1
 * ln factor. HEED_ERR_SHAPE if dims is odd. Given these, the error of a factor is below 2^-50, and that of the
 * magnitude 2^-50 of it. base, factor and original_context as for heed_rotary_llama3, and 2^-100 <= beta_slow <=
 * beta_fast <= 2^100, else HEED_ERR_VALUE.
 */
HEED_API heed_status heed_rotary_yarn(size_t dims, double base, double factor, double beta_fast, double beta_slow,
                                      size_t original_context, double *factors, double *magnitude);

/* Which elements of a head turn together, for j < dims / 2. */
typedef enum heed_rotary_pairs {
    HEED_ROTARY_HALVES = 0,     /* j and j + dims / 2, as GPT-NeoX and Llama in PyTorch have it */
    HEED_ROTARY_INTERLEAVED = 1 /* 2 j and 2 j + 1, as in the original text and GPT-J */
} heed_rotary_pairs;

/* What turns the elements of heads, as heed_rotary_table makes it. */
typedef struct heed_rotary_tables {
    heed_rotary_pairs pairs;
    size_t dims;                /* elements that turn, the rest stays; HEED_ERR_SHAPE unless even and <= head_dim */
    const float *cosine, *sine; /* [positions][dims / 2]; with dims = 0 neither these nor their strides count */
    size_t ld_cosine, ld_sine, positions;
} heed_rotary_tables;

typedef struct heed_rotary_args {
    size_t struct_size;
    heed_rotary_tables tables;
    size_t batch, seq, n_heads, head_dim;
    const int32_t *ids; /* [batch][seq]: the row of the tables for each token; NULL: first + i */
    size_t first;
    heed_heads src;     /* [batch][n_heads][seq][head_dim] */
    heed_heads_out dst; /* may be src, with the same strides */
} heed_rotary_args;

#define HEED_ROTARY_ARGS_INIT                                                                                          \
    {                                                                                                                  \
        sizeof(heed_rotary_args), {HEED_ROTARY_HALVES, 0, NULL, NULL, 0, 0, 0}, 0, 0, 0, 0, NULL, 0, {NULL, 0, 0, 0},  \
        {                                                                                                              \
            NULL, 0, 0, 0                                                                                              \
        }                                                                                                              \
    }

/* Rotary positions: a pair (a, b) becomes (a c - b s, b c + a s). A row of the tables outside them is
 * HEED_ERR_INDEX. NaN and infinity as IEEE 754 says; they reach their own pair only. Packed tokens of
 * several sequences are one batch with ids.
 * Bound: g(2) (|a c| + |b s|), and likewise for the other. */
HEED_API heed_status heed_rotary(const heed_context *context, const heed_rotary_args *args);

/* ---- feed-forward -------------------------------------------------------------------------- */

typedef struct heed_ffn_weights {
    size_t struct_size;
    const heed_weights *up;   /* d_in -> d_ff */
    const heed_weights *down; /* d_ff -> d_out, which may differ from d_in; not gated */
    const float *up_bias;     /* [d_ff], or NULL */
    const float *down_bias;   /* [d_out], or NULL */
    heed_activation activation;
    const float *gate_bias; /* [d_ff], or NULL; for gated weights in up only, as SwiGLU has them */
} heed_ffn_weights;

#define HEED_FFN_WEIGHTS_INIT                                                                                          \
    {                                                                                                                  \
        sizeof(heed_ffn_weights), NULL, NULL, NULL, NULL, HEED_ACTIVATION_RELU, NULL                                   \
    }

/* y = activation(x up + up_bias) down + down_bias, + residual if not NULL (arXiv:1706.03762, section 3.3). With gated
 * weights in up: y = (activation(x gate + gate_bias) * (x up + up_bias)) down + down_bias, + residual (Shazeer,
 * arXiv:2002.05202). x is [m][d_in], residual and y are [m][d_out]; HEED_ERR_SHAPE unless up has as many outputs as
 * down inputs. y may be residual, or x if d_in = d_out. HEED_ERR_VALUE if down is gated, or if there is a gate_bias and
 * up is not. Bits, bounds and what NaN and infinity give as two heed_linear calls. Workspace: m * d_ff floats, rounded
 * up to 64 bytes, and 64 more. */
HEED_API heed_status heed_ffn(const heed_context *context, const heed_ffn_weights *weights, size_t m, const float *x,
                              size_t ldx, const float *residual, size_t ld_residual, float *y, size_t ldy,
                              const heed_workspace *workspace);
HEED_API heed_status heed_ffn_workspace(const heed_context *context, const heed_ffn_weights *weights, size_t m,
                                        size_t *bytes);

/* ---- attention ----------------------------------------------------------------------------- */

/* Which keys a causal query sees: with query i of seq_q and a sequence of len keys,
 * TOP_LEFT key j <= i; BOTTOM_RIGHT key j <= i + len - seq_q (queries are the last tokens). */
typedef enum heed_causal { HEED_CAUSAL_NONE = 0, HEED_CAUSAL_TOP_LEFT = 1, HEED_CAUSAL_BOTTOM_RIGHT = 2 } heed_causal;

typedef enum heed_scale {
    HEED_SCALE_RSQRT_HEAD_DIM = 0, /* 1 / sqrt(head_dim) */
    HEED_SCALE_VALUE = 1           /* the field scale_value, of any sign, or 0; scale_value log2(e) is a finite float */
} heed_scale;

/* What a task of a thread is. Workspace and time depend on it, the bits of the result do not. Where the other arguments
 * rule a loop out AUTO is used. */
typedef enum heed_attention_loop {
    HEED_ATTENTION_LOOP_AUTO = 0,  /* chosen by shape and threads */
    HEED_ATTENTION_LOOP_HEADS = 1, /* one head of keys and values, packed and then met by all its queries; with neither
                                      cache nor mean_map */
    HEED_ATTENTION_LOOP_ROWS = 2,  /* a run of query rows of one head, or few of several, once all heads are packed */
    HEED_ATTENTION_LOOP_KEYS = 3   /* some key blocks of such a run, which are folded in the end; with two blocks and
                                      two threads at least, and without maps */
} heed_attention_loop;

/* Keys and values of sequences that grow, see below. */
typedef struct heed_kv_cache heed_kv_cache;

/* A window without an end on that side. */
#define HEED_UNBOUNDED SIZE_MAX

/* softmax(shape(scale q k^T) + mask) v, head by head (arXiv:1706.03762, section 3.2; grouped heads:
 * arXiv:2305.13245).
 *
 * A batch is either `batch` sequences of seq_q queries and seq_kv keys, or ragged: with q_offsets (batch + 1 entries
 * that do not decrease) the queries of sequence b are rows q_offsets[b] .. q_offsets[b + 1] - 1 of one tensor,
 * q.batch_stride and out.batch_stride are not used, and seq_q is no less than any sequence has. kv_offsets does the
 * same for k, v and seq_kv. Rows before the first offset are no part of the call. With a cache keys and values come
 * from there; k, v and kv_offsets are not used, and seq_kv is no less than the keys of any sequence: the cache's
 * capacity will do, for every token.
 *
 * A query has a position among the len keys of its sequence (kv_lengths where given): query i of n is at i with
 * HEED_CAUSAL_TOP_LEFT, and at i + len - n otherwise. A window lets it see the keys from position -
 * window_left to position + window_right.
 *
 * A score s is scaled; softcap c > 0 makes it c tanh(s / c); slopes (ALiBi, arXiv:2108.12409) add slope[head] *
 * (key - position); then the mask tensor is added. A sink is a further score in each softmax, which
 * takes its share of the weights but has no value. Weights are 2^(z log2(e)): finite masks and sinks below
 * -FLT_MAX / log2(e), some -2.36e38, count as that bound.
 *
 * HEED_ERR_SHAPE: n_heads is no multiple of n_kv_heads; a sequence has more than seq_q queries or seq_kv keys, or
 * kv_lengths[b] is more than its keys; a cache has other heads or dimensions. HEED_ERR_INDEX: offsets that decrease; a
 * sequence that the cache does not have, or a page that it lacks. HEED_ERR_VALUE: a scale or softcap that is not what
 * the fields say. HEED_ERR_STRIDE: rows of an output that meet. */
typedef struct heed_attention_args {
    size_t struct_size;
    size_t batch, n_heads, n_kv_heads; /* n_heads is a multiple of n_kv_heads: grouped heads */
    size_t seq_q, seq_kv, head_dim, value_dim;
    heed_heads q;            /* [batch][n_heads][seq_q][head_dim] */
    heed_heads k, v;         /* [batch][n_kv_heads][seq_kv][head_dim], and of v [value_dim] */
    heed_heads_out out;      /* [batch][n_heads][seq_q][value_dim] */
    const size_t *q_offsets; /* NULL: not ragged */
    const size_t *kv_offsets;
    const size_t *kv_lengths; /* [batch]: keys from there on are masked, or NULL; <= the number of keys */
    heed_causal causal;
    heed_mask mask; /* [batch][n_heads][seq_q][seq_kv], any stride 0; all of it lies in memory, also what lengths,
                       offsets or causal leave out */
    heed_scale scale;
    float scale_value;                /* 0 unless scale is HEED_SCALE_VALUE */
    heed_heads_out map;               /* receives the weights, [batch][n_heads][seq_q][seq_kv], if data is not NULL;
                                         row i of a ragged sequence is row i of that sequence's own map, and rows past its end are
                                         not written */
    size_t window_left, window_right; /* default HEED_UNBOUNDED */
    float softcap;                    /* >= 0; 0: none. softcap log2(e) and scale / softcap are finite floats too */
    const float *slopes;              /* [n_heads], or NULL; a slope times log2(e) is finite, else NaN */
    const float *sinks;               /* [n_heads], or NULL; -inf is no sink; others are below FLT_MAX / log2(e) */
    heed_heads_out log_sum_exp;       /* receives the natural logarithm of each softmax's denominator, sink
                                         included, [batch][n_heads][seq_q], rows as in map, if data is not NULL */
    heed_heads_out mean_map;          /* receives the mean of map over the heads, [batch][seq_q][seq_kv], if data is
                                         not NULL and there are heads; head_stride is not used */
    const heed_kv_cache *cache;       /* or NULL */
    const size_t *cache_sequences;    /* [batch]: the cache's sequence for each of the batch; NULL: the same */
    heed_attention_loop loop;         /* default HEED_ATTENTION_LOOP_AUTO */
} heed_attention_args;

#define HEED_ATTENTION_ARGS_INIT                                                                                       \
    {                                                                                                                  \
        sizeof(heed_attention_args), 0, 0, 0, 0, 0, 0, 0, {NULL, 0, 0, 0}, {NULL, 0, 0, 0}, {NULL, 0, 0, 0},           \
            {NULL, 0, 0, 0}, NULL, NULL, NULL, HEED_CAUSAL_NONE, {NULL, HEED_MASK_NONE, 0, 0, 0},                      \
            HEED_SCALE_RSQRT_HEAD_DIM, 0.0f, {NULL, 0, 0, 0}, HEED_UNBOUNDED, HEED_UNBOUNDED, 0.0f, NULL, NULL,        \
            {NULL, 0, 0, 0}, {NULL, 0, 0, 0}, NULL, NULL, HEED_ATTENTION_LOOP_AUTO                                     \
    }

/* Keys past kv_lengths, and those that causal and window hide from every query of a call, are never read; those hidden
 * from some queries only, or masked by the tensor, have weight 0 there and change nothing, be they NaN. A query
 * without a key to see gives zeros, in the maps too, and without a sink -inf in log_sum_exp.
 *
 * Otherwise NaN in a score, a +inf score, or scores that are all -inf make the row NaN (the last only without a sink,
 * and with -inf in log_sum_exp); a softcap makes infinite scores finite. In the map of such a row keys that a mask
 * tensor masks are NaN as well, and those that length, causal or window cut off are 0. A weight below 2^-100 of its
 * block's largest is +0, which makes an infinite value NaN; a block of 256 keys whose scores are all -inf adds
 * nothing, even where values are infinite. map columns from the sequence's own number of keys on are set to 0. Outputs
 * overlap no input and not each other.
 *
 * The canonical order (blocks of 256 keys, base-2 weights) and the bounds of all outputs and of the workspace are in
 * design.md, which is installed with the documentation. The workspace holds packed keys and values of a head for each
 * thread or of all heads, and for each thread some rows of a key block; nothing is as large as seq_q by seq_kv. With a
 * cache the query answers for all lengths that its sequences may come to have, up to seq_kv and its capacity, whatever
 * they hold and whichever pages are there at the moment, so that one workspace serves until it is full. A call accepts
 * any that is large enough for its own lengths. */
HEED_API heed_status heed_attention(const heed_context *context, const heed_attention_args *args,
                                    const heed_workspace *workspace);
HEED_API heed_status heed_attention_workspace(const heed_context *context, const heed_attention_args *args,
                                              size_t *bytes);

/* slopes[i] = 2^(-max_bias (i + 1) / n) for n heads, max_bias being 8 in the original text (Press and others,
 * arXiv:2108.12409); where n is no power of
 * two, the slopes of the power below, and then every other one of twice that many. In double, rounded once;
 * 0 < max_bias <= 100, else HEED_ERR_VALUE. */
HEED_API heed_status heed_alibi_slopes(size_t n_heads, double max_bias, float *slopes);

/* ---- cache of keys and values ---------------------------------------------------------------- */

/* Keys and values of `batch` sequences in the form that attention reads: the bits of heed_attention over a cache are
 * those over the same keys and values as tensors, however they were appended, paged or not. The
 * object lies in the caller's memory and needs no destroying, but points into itself and may be neither moved nor
 * copied; it may be read by many threads at once, or written by one.
 *
 * Without pages every sequence, of which there are at most 2^31 - 1, has room for `capacity` keys of its own. With
 * pages, `pages` of them with page_keys keys each make a pool, and the caller says with heed_kv_cache_set_pages which
 * page holds which keys of a sequence; several sequences may share pages. A sequence that a cache does not have is
 * HEED_ERR_INDEX. */
typedef struct heed_kv_cache_options {
    size_t struct_size;
    size_t batch, n_kv_heads, head_dim, value_dim;
    size_t capacity;  /* the most keys of a sequence */
    size_t page_keys; /* a multiple of 16; 0: no pages */
    size_t pages;     /* at most 2^31 - 1 */
} heed_kv_cache_options;

#define HEED_KV_CACHE_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(heed_kv_cache_options), 0, 0, 0, 0, 0, 0, 0                                                             \
    }

/* Bytes that heed_kv_cache_create needs. HEED_ERR_SHAPE if page_keys is no multiple of 16, or is 0 while pages is not;
 * HEED_ERR_OVERFLOW for more sequences or pages than may be, or more than PTRDIFF_MAX keys or bytes. */
HEED_API heed_status heed_kv_cache_bytes(const heed_kv_cache_options *options, size_t *bytes);

/* Makes a cache of empty sequences, without pages in their tables, in memory that is aligned to size_t or better (64
 * is fastest) and outlives it. Too few bytes are HEED_ERR_WORKSPACE. */
HEED_API heed_status heed_kv_cache_create(const heed_kv_cache_options *options, void *memory, size_t bytes,
                                          heed_kv_cache **cache);

/* Says that keys first * page_keys and on of a sequence lie in pages[0], pages[1], ...; -1 takes a page away, which is
 * right for keys that no window reaches any more. HEED_ERR_SHAPE for a cache without pages or keys beyond its
 * capacity, HEED_ERR_INDEX for a page that the pool does not have; then nothing changes. */
HEED_API heed_status heed_kv_cache_set_pages(heed_kv_cache *cache, size_t sequence, size_t first, size_t n,
                                             const int32_t *pages);

/* Appends n keys and values, [n_kv_heads][n] rows each, whatever numbers they hold, from outside the cache;
 * batch_stride is not used; they are copied exactly. HEED_ERR_SHAPE where capacity does not suffice, HEED_ERR_INDEX
 * where a page is missing. In a page that sequences share the keys change for all of them, and later keys of the same
 * group of 16 are lost: share pages that are full. */
HEED_API heed_status heed_kv_cache_append(const heed_context *context, heed_kv_cache *cache, size_t sequence, size_t n,
                                          const heed_heads *k, const heed_heads *v);

/* Appends to several sequences at once: n keys and values to each of `batch` of them, or with offsets (batch + 1
 * entries that do not decrease) ragged, rows offsets[b] .. offsets[b + 1] - 1 of k and v being those of sequence b,
 * batch_stride then not being used and n the most that any has; rows before the first offset are no part of the call.
 * sequences is [batch], the cache's sequence for each, none twice where anything is appended (HEED_ERR_OVERLAP);
 * NULL: the same. As so many calls of heed_kv_cache_append, in order, but on an error nothing is appended. k and v may
 * be NULL where there are no rows; the cache overlaps no input. NaN and infinity are kept as they are. */
HEED_API heed_status heed_kv_cache_append_batch(const heed_context *context, heed_kv_cache *cache, size_t batch,
                                                const size_t *sequences, size_t n, const size_t *offsets,
                                                const heed_heads *k, const heed_heads *v);

/* Forgets the keys of a sequence from `length` on. Here and below a length that the sequence does not have is
 * HEED_ERR_SHAPE. */
HEED_API heed_status heed_kv_cache_truncate(heed_kv_cache *cache, size_t sequence, size_t length);

/* Replaces a sequence by a copy of the first `length` keys of another one, perhaps of another cache of the same
 * n_kv_heads, head_dim and value_dim (else HEED_ERR_SHAPE, as is a length beyond the capacity). Both have all pages of
 * these keys (else HEED_ERR_INDEX), and those that are written hold no key of the other sequence (HEED_ERR_OVERLAP),
 * nor may they be any third one's, which is not checked: after heed_kv_cache_share set pages of its own first. */
HEED_API heed_status heed_kv_cache_fork(heed_kv_cache *cache, size_t sequence, const heed_kv_cache *from,
                                        size_t from_sequence, size_t length);

/* Replaces a sequence by one that shares the pages of the first `length` keys of another one; length is a
 * multiple of page_keys, and without pages nothing is shared (HEED_ERR_SHAPE). What its table says of later keys stays.
 */
HEED_API heed_status heed_kv_cache_share(heed_kv_cache *cache, size_t sequence, size_t from_sequence, size_t length);

/* *length = how many keys the sequence holds. */
HEED_API heed_status heed_kv_cache_length(const heed_kv_cache *cache, size_t sequence, size_t *length);

/* ---- multi-head attention with its projections ---------------------------------------------- */

typedef struct heed_mha_weights {
    size_t struct_size;
    size_t n_heads, n_kv_heads, head_dim, value_dim;
    const heed_weights *query;                                     /* d_model -> n_heads * head_dim */
    const heed_weights *key;                                       /* d_memory -> n_kv_heads * head_dim */
    const heed_weights *value;                                     /* d_memory -> n_kv_heads * value_dim */
    const heed_weights *output;                                    /* n_heads * value_dim -> d_out */
    const float *query_bias, *key_bias, *value_bias, *output_bias; /* NULL: none */
    const float *query_norm, *key_norm; /* [head_dim], scale of an RMSNorm of each projected head, or NULL: none */
    float norm_eps;                     /* of these two; >= 0, default 1e-6 */
} heed_mha_weights;

#define HEED_MHA_WEIGHTS_INIT                                                                                          \
    {                                                                                                                  \
        sizeof(heed_mha_weights), 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1e-6f        \
    }

/* Tokens of all sequences lie packed, one row each. A batch is `batch` sequences of seq_q tokens, or
 * with offsets (batch + 1 entries from 0, not decreasing, else HEED_ERR_INDEX) ragged, seq_q then being no less than
 * the longest. */
typedef struct heed_mha_args {
    size_t struct_size;
    size_t batch, seq_q, seq_kv;
    const size_t *offsets;
    const float *x; /* [tokens][d_model] */
    size_t ldx;
    const float *memory; /* cross-attention: [memory tokens][d_memory]; NULL: x, then memory_offsets are not
                            used, nor without a cache seq_kv. Where a cache has it already any pointer but NULL, which
                            is not read: see below */
    size_t ld_memory;
    const size_t *memory_offsets;
    const size_t *kv_lengths;
    heed_causal causal;
    heed_mask mask;   /* as in heed_attention_args */
    heed_scale scale; /* this and the next, too */
    float scale_value;
    const float *residual; /* [tokens][d_out], added last, or NULL */
    size_t ld_residual;
    float *y; /* [tokens][d_out]; may be residual, or x if that has d_out columns */
    size_t ldy;
    heed_heads_out map;
    size_t window_left, window_right; /* these as in heed_attention_args */
    float softcap;
    const float *slopes, *sinks;
    heed_heads_out mean_map;
    heed_kv_cache *cache;          /* gets the new keys and values, or NULL: see below */
    const size_t *cache_sequences; /* [batch]: the cache's sequence for each of the batch; NULL: the same */
    heed_rotary_tables rotary;     /* turns queries and new keys; dims = 0: none */
    const int32_t *position_ids;   /* [tokens]: rotary's row for each of them; NULL: row i for token i of a sequence,
                                      counted from the keys that the cache already has of it */
} heed_mha_args;

#define HEED_MHA_ARGS_INIT                                                                                             \
    {                                                                                                                  \
        sizeof(heed_mha_args), 0, 0, 0, NULL, NULL, 0, NULL, 0, NULL, NULL, HEED_CAUSAL_NONE,                          \
            {NULL, HEED_MASK_NONE, 0, 0, 0}, HEED_SCALE_RSQRT_HEAD_DIM, 0.0f, NULL, 0, NULL, 0, {NULL, 0, 0, 0},       \
            HEED_UNBOUNDED, HEED_UNBOUNDED, 0.0f, NULL, NULL, {NULL, 0, 0, 0}, NULL, NULL,                             \
            {HEED_ROTARY_HALVES, 0, NULL, NULL, 0, 0, 0}, NULL                                                         \
    }

/* y = concat(attention(x Wq + bq, m Wk + bk, m Wv + bv)) Wo + bo, + residual, where m is memory
 * (arXiv:1706.03762, section 3.2.2). Between projections and attention heads are normalized, where query_norm or
 * key_norm is given (as in Qwen3, arXiv:2505.09388), and then turned, with rotary. HEED_ERR_SHAPE for weights that fit
 * neither the heads nor one another; HEED_ERR_VALUE for gated ones, a norm_eps that is negative or not finite, and
 * rotary beside memory, whose rows have no place among the tokens; HEED_ERR_INDEX for positions that the tables do not
 * have. Bits, and what NaN, infinity and masked keys give, as the operators it is made of: heed_linear, heed_rmsnorm,
 * heed_rotary, heed_attention and again heed_linear, the bounds of which hold one after the other. Workspace: queries,
 * keys, values and heads' results of all tokens, a number for each with rotary but not position_ids, and that of
 * heed_attention.
 *
 * With a cache the new keys and values, of x or of the rows that memory_offsets gives, are appended as by
 * heed_kv_cache_append_batch, and the queries attend to all that their sequences then hold, with which
 * seq_kv, kv_lengths, mask and maps count. So sequences may be decoded token by token, with HEED_CAUSAL_BOTTOM_RIGHT
 * and the bits of one causal call for all tokens. memory (not NULL) without memory_offsets is not read: queries attend
 * to what earlier calls appended. The cache overlaps nothing else; on an error nothing is appended. The query answers
 * for all lengths of the cache, as that of heed_attention does. */
HEED_API heed_status heed_mha(const heed_context *context, const heed_mha_weights *weights, const heed_mha_args *args,
                              const heed_workspace *workspace);
HEED_API heed_status heed_mha_workspace(const heed_context *context, const heed_mha_weights *weights,
                                        const heed_mha_args *args, size_t *bytes);

/* ---- encoder ------------------------------------------------------------------------------- */

typedef enum heed_norm_order {
    HEED_NORM_POST = 0, /* x = norm1(x + mha(x)); y = norm2(x + ffn(x)), the original transformer, BERT */
    HEED_NORM_PRE = 1   /* x = x + mha(norm1(x)); y = x + ffn(norm2(x)) */
} heed_norm_order;

typedef enum heed_norm {
    HEED_NORM_LAYERNORM = 0, /* heed_layernorm */
    HEED_NORM_RMSNORM = 1    /* heed_rmsnorm, which has no shift */
} heed_norm;

typedef struct heed_encoder_layer {
    size_t struct_size;
    const heed_mha_weights *attention; /* never NULL, nor is ffn */
    const heed_ffn_weights *ffn;
    const float *norm1_scale, *norm1_shift; /* [d_model], NULL: 1 and 0 */
    const float *norm2_scale, *norm2_shift;
    float eps;
    heed_norm_order order;
    heed_scale scale; /* these as in heed_attention_args */
    float scale_value;
    size_t window_left, window_right;
    float softcap;
    const float *slopes, *sinks;
    heed_kv_cache *cache; /* as in heed_mha_args, of this layer alone */
    heed_norm norm;
    heed_rotary_tables rotary; /* as in heed_mha_args */
} heed_encoder_layer;

#define HEED_ENCODER_LAYER_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(heed_encoder_layer), NULL, NULL, NULL, NULL, NULL, NULL, 1e-5f, HEED_NORM_POST,                         \
            HEED_SCALE_RSQRT_HEAD_DIM, 0.0f, HEED_UNBOUNDED, HEED_UNBOUNDED, 0.0f, NULL, NULL, NULL,                   \
            HEED_NORM_LAYERNORM,                                                                                       \
        {                                                                                                              \
            HEED_ROTARY_HALVES, 0, NULL, NULL, 0, 0, 0                                                                 \
        }                                                                                                              \
    }

typedef struct heed_encoder_args {
    size_t struct_size;
    size_t batch, seq;
    const size_t *offsets;    /* as in heed_mha_args */
    const size_t *kv_lengths; /* [batch]: tokens, with caches all keys, from there on are padding: not attended */
    heed_causal causal;       /* with NONE every token sees later ones, in a decoder too */
    heed_mask mask;           /* [batch][n_heads][seq][seq], with caches [..][seq_kv]; for every layer */
    const float *final_scale, *final_shift; /* both NULL: no norm after the last layer; for one without factors pass
                                               a scale of ones */
    float final_eps;
    const float *x; /* [tokens][d_model] */
    size_t ldx;
    float *y; /* [tokens][d_model]; may be x */
    size_t ldy;
    size_t seq_kv; /* with caches, these two as in heed_mha_args */
    const size_t *cache_sequences;
    heed_norm final_norm;
    const int32_t *position_ids; /* as in heed_mha_args */
} heed_encoder_args;

#define HEED_ENCODER_ARGS_INIT                                                                                         \
    {                                                                                                                  \
        sizeof(heed_encoder_args), 0, 0, NULL, NULL, HEED_CAUSAL_NONE, {NULL, HEED_MASK_NONE, 0, 0, 0}, NULL, NULL,    \
            1e-5f, NULL, 0, NULL, 0, 0, NULL, HEED_NORM_LAYERNORM, NULL                                                \
    }

/* y = the n_layers encoder layers applied to x one after another; n_layers = 1 is a single layer, 0
 * is HEED_ERR_SHAPE. layers is an array; every layer has the same d_model and the same struct_size (else
 * HEED_ERR_STRUCT).
 * HEED_ERR_VALUE for an eps that is negative or not finite and a shift of RMSNorm, HEED_ERR_SHAPE where weights do not
 * have d_model rows or columns, and all errors of heed_mha and heed_ffn, before the first layer. y overlaps no input
 * but x. Bits, and what NaN, infinity and masked keys give, as the operators it is made of, heed_mha, heed_layernorm or
 * heed_rmsnorm and heed_ffn, the bounds of which hold one after the other (arXiv:1706.03762, section 3.1). Workspace:
 * that of the largest part of a layer and, where a layer has its norms before, d_model floats for each token. As all
 * queries it does not look at operands, such as positions.
 *
 * With a cache in every layer (in some of them: HEED_ERR_NULL; one in two layers: HEED_ERR_OVERLAP) the tokens go on
 * from those of earlier calls, as in heed_mha: a stack with HEED_CAUSAL_BOTTOM_RIGHT is a decoder without
 * cross-attention, as GPT and Llama are, that may be run token by token, with the bits of one call for all, and a
 * workspace that is asked for once. Each layer counts positions by its own cache: truncate all of them alike. The
 * caller must ensure that a layer's cache overlaps no other layer's weights or cache: only operands of the same layer
 * are compared. */
HEED_API heed_status heed_encoder(const heed_context *context, size_t n_layers, const heed_encoder_layer *layers,
                                  const heed_encoder_args *args, const heed_workspace *workspace);
HEED_API heed_status heed_encoder_workspace(const heed_context *context, size_t n_layers,
                                            const heed_encoder_layer *layers, const heed_encoder_args *args,
                                            size_t *bytes);

/* ---- decoder ------------------------------------------------------------------------------- */

/* Between the halves of a layer of heed_encoder, self-attention and feed-forward, attention to a memory, which is
 * another stack's result as a rule; its norm is of the order, kind and eps of the other two. */
typedef struct heed_decoder_layer {
    size_t struct_size;
    const heed_encoder_layer *self;       /* never NULL, nor is cross */
    const heed_mha_weights *cross;        /* queries from d_model, keys and values from d_memory */
    const float *norm_scale, *norm_shift; /* [d_model], NULL: 1 and 0 */
    heed_scale scale;                     /* these as in heed_attention_args */
    float scale_value;
    heed_kv_cache *memory_cache; /* gets keys and values of the memory, of this layer alone, or NULL */
} heed_decoder_layer;

#define HEED_DECODER_LAYER_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(heed_decoder_layer), NULL, NULL, NULL, NULL, HEED_SCALE_RSQRT_HEAD_DIM, 0.0f, NULL                      \
    }

typedef struct heed_decoder_args {
    size_t struct_size;
    const heed_encoder_args *self; /* tokens, what masks them, x, y and the last norm; causal is to be set there */
    const float *memory;           /* [memory tokens][d_memory] */
    size_t ld_memory;
    size_t memory_seq;              /* memory tokens of a sequence, with offsets or caches the most that any has */
    const size_t *memory_offsets;   /* [batch + 1], from 0, not decreasing, or NULL */
    const size_t *memory_lengths;   /* [batch]: memory tokens from there on are not attended, or NULL */
    heed_mask memory_mask;          /* [batch][n_heads][seq][memory_seq], as in heed_attention_args */
    const size_t *memory_sequences; /* [batch]: the memory caches' sequence for each; NULL: the same */
} heed_decoder_args;

#define HEED_DECODER_ARGS_INIT                                                                                         \
    {                                                                                                                  \
        sizeof(heed_decoder_args), NULL, NULL, 0, 0, NULL, NULL, {NULL, HEED_MASK_NONE, 0, 0, 0}, NULL                 \
    }

/* y = the n_layers decoder layers applied to x one after another (arXiv:1706.03762, section 3.1). With HEED_NORM_POST a
 * layer is x = norm1(x + mha(x)); x = norm(x + cross(x, memory)); y = norm2(x + ffn(x)), with HEED_NORM_PRE each part
 * has its norm before it. y does not overlap memory; errors, bits, bounds and what NaN, infinity and masked keys give
 * are otherwise as of heed_encoder.
 *
 * With memory caches, in every layer or in none, keys and values of memory are appended to them; memory_offsets then
 * says how many (without: HEED_ERR_NULL). Later calls leave memory NULL and attend to what the caches hold, so that it
 * is projected once, and several sequences may name the same one of a cache. A call without tokens does no more than
 * append; one that appends nothing only reads memory caches, which other calls may read meanwhile. Workspace as of
 * heed_encoder, of which a part is keys and values of the memory where it is given. */
HEED_API heed_status heed_decoder(const heed_context *context, size_t n_layers, const heed_decoder_layer *layers,
                                  const heed_decoder_args *args, const heed_workspace *workspace);
HEED_API heed_status heed_decoder_workspace(const heed_context *context, size_t n_layers,
                                            const heed_decoder_layer *layers, const heed_decoder_args *args,
                                            size_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
