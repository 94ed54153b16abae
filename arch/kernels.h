/* SPDX-License-Identifier: MIT
 * The contract between src (what is computed) and arch (how one CPU computes a tile or a row).
 *
 * A kernel allocates nothing, starts no thread, keeps no state, calls no function outside its unit
 * (but memcpy and memset, which compilers call unasked) and checks no argument: src has done that.
 * Every pointer is aligned to 4 bytes only, every element that is read or written belongs to the
 * operand, and the order of operations is the canonical one of doc/design.md, so that tables of one
 * class give the same bits.
 */
#ifndef HEED_KERNELS_H
#define HEED_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* configure takes such options back, but "make CFLAGS=..." puts the user's last. */
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) ||                               \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#error "NaN, infinity and the promised bits need IEEE arithmetic: leave out -ffast-math and its single options"
#endif

/* Columns of a packed panel: one cache line of floats. */
#define HEED_PANEL 16

/* In place of how far ahead lines are prefetched: what is written goes past the caches, which would not hold it. */
#define HEED_PAST_CACHES SIZE_MAX

/* Virtual lanes of every reduction; element i belongs to lane i mod HEED_LANES. */
#define HEED_LANES 32

/* Rows longer than this are reduced in blocks whose sums are added in order. */
#define HEED_REDUCTION_BLOCK 4096

/* A b in place is copied into panels on the first pass if so many rows are to follow: the copy saves
 * translations of addresses and strides that share cache sets, once b has left L1. */
#define HEED_COPIED_ROWS 32

/* Rows so many floats apart, or a multiple of it, share sets of L1: they begin in four at most. */
#define HEED_SHARED_SETS 256

/* Rows so many apart crowd it: they lie in one or two. */
#define HEED_CROWDED_ROW 512

/* So many apart they lie in one. */
#define HEED_SAME_SET 1024

/* Up to so many columns of a packed b, unless the main tiles divide them, are multiplied by those that suit one in
 * place: what is left over beside the main ones weighs more. */
#define HEED_NARROW_COLS 256

/* The most rows for which b is left to the CPU's prefetchers: in memory, for the most part in the last cache, and in
 * half of it; and those of any tile, for a packed b of which few long runs are read. */
#define HEED_HW_PREFETCHED_ROWS 6
#define HEED_HW_PREFETCHED_MIXED_ROWS 2
#define HEED_HW_PREFETCHED_CACHED_ROWS 3
#define HEED_HW_PREFETCHED_TALLEST 9

/* The most rows that go by strips of a b in place (kernels/strips.inc), without a copy of any of it. */
#define HEED_STRIP_ROWS 9

/* The most rows, two tiles, that prefetch packed weights into L1. */
#define HEED_L1_PREFETCHED_ROWS 18

/* Floats of a sliver up to which one tile alone prefetches the next: it reads as fast as memory gives, and of larger
 * ones L2 would not hold two. */
#define HEED_ONE_TILE_PREFETCH_FLOATS 131072

/* Keys that attention reduces from zero before it folds the result into the row. */
#define HEED_KEY_BLOCK 256

/* How rows of a are read, most of all those that few columns go across: nothing is known; whole lines of them where
 * that pays, by a wide core, of which two units multiply and add the widest vectors and L1 keeps twelve lines of a set
 * or more; by any other core, eight rows at a time from the caches, or from memory. */
enum heed_reading { HEED_READ_PLAINLY, HEED_READ_LINES, HEED_READ_EIGHTS, HEED_READ_FROM_MEMORY };

/* The right operand of a product. Element (p, j) is data[(j / 16) * panel + p * row + j % 16]. Every
 * panel holds 16 readable columns, also where fewer are asked for. Packed: row = 16, panel = 16 k, or
 * more for part of a longer k. In place: panel = 16, and with a copy only the columns asked for exist. */
struct heed_panels {
    const float *data;
    size_t row, panel;
    float *copy;               /* or NULL: room for k x min(n, 128) floats, n in whole panels, to pack b in place */
    const float *next;         /* a hint: what is wanted after the last column, laid out alike; or NULL */
    bool in_l2;                /* a hint: all of it is, and need not be prefetched far ahead */
    size_t hw_prefetched_rows; /* a hint: what up to so many rows read the CPU's prefetchers bring; or it is prefetched
                                * as it is read, if row_distance or prefetch_l1. HEED_HW_PREFETCHED_TALLEST at the most,
                                * but with these */
    bool from_memory; /* a hint: what so few rows read lies in memory, and tiles that gain by it prefetch it into L2 */
    size_t row_distance;   /* a hint, in place: rows are read from end to end. If from_memory, so many floats ahead in
                            * each are prefetched, and at its end in the rows below the last, not the rows to come; if
                            * prefetch_l1, few rows go by strips (strips.inc) */
    size_t most_tile_cols; /* a hint, beside it, or of a packed one: the most columns of a tile; or 0 */
    bool prefetch_l1; /* a hint: what so few rows read is prefetched into L1, wherever it comes from; if from_memory, in
                       * the order of memory. By more rows of a packed one: what is wanted next is */
    bool uncopied;    /* a hint, in place: all rows go by b as it lies, whatever room for a copy there is */
    bool far_c;       /* a hint: c, or what it is a part of, is so large that lines of it are waited for */
    enum heed_reading reading; /* a hint */
    size_t distance; /* a hint, in place, with prefetch_l1: so many floats from what is read to what is prefetched; 0:
                      * some rows. Of rows that few columns go across: as of gemm_few */
};

/* Floats of few columns that are copied side by side at the most. */
#define HEED_COLUMNS_FLOATS 4096

/* As the distance of rows that few columns go across: nothing of them is prefetched; or they come from memory, in which
 * order is up to the kernel. */
#define HEED_NO_PREFETCH SIZE_MAX
#define HEED_PREFETCH_FROM_MEMORY (SIZE_MAX - 1)

/* Columns by a transposed a that go across a vector of rows of c (kernels/tn_across.inc) even if most of a second one
 * were computed twice. */
#define HEED_FEW_ACROSS_BY_TN 4

/* Whether n columns go across m rows, by vectors of so many lanes, in a table that has loops for `most` columns. */
static inline bool heed_goes_across_by_tn(size_t m, size_t n, size_t lanes, size_t most)
{
    bool few = n <= HEED_FEW_ACROSS_BY_TN || m == lanes || m >= 2 * lanes;
    return n <= most && m >= lanes && few;
}

/* Rows from which on steps of k go in parts (kernels/outer.inc), and the most of these; where the last panel is half a
 * one or less, of which tiles waste most; fewer steps where that has a few columns, which else go across rows, and by a
 * far c. */
#define HEED_PARTED_ROWS 64
#define HEED_PARTED_STEPS 16
#define HEED_PARTED_HALF_ROWS 24
#define HEED_PARTED_HALF_STEPS 24
#define HEED_PARTED_FEW_COLS 3
#define HEED_PARTED_FEW_STEPS 12
#define HEED_PARTED_FAR_STEPS 10

/* Columns up to which L1 keeps rows of c whose vectors cross lines. */
#define HEED_PARTED_CROSSING_COLS 64

/* Floats past which c is far: more than the last cache keeps of it beside all else. */
#define HEED_UNCACHED_FLOATS ((size_t)1 << 21)

/* Floats of a page, and rows whose stores are still under way while the next one is loaded. */
#define HEED_PAGE_FLOATS 1024
#define HEED_ALIASED_ROWS 4

/* Whether panels of rows so many floats apart overlap in the bits of addresses below a page, by which CPUs tell whether
 * a load waits for a store, within HEED_ALIASED_ROWS of them. Rows that share sets of L1 do. */
static inline bool heed_rows_alias(size_t ld)
{
    for (size_t rows = 1; rows <= HEED_ALIASED_ROWS; rows++)
        if ((rows * ld + HEED_PANEL - 1) % HEED_PAGE_FLOATS < 2 * HEED_PANEL - 1)
            return true;
    return false;
}

/* Whether k steps go in parts of up to `held`, of which some columns of b are in registers. Not where a part would wait
 * for sums of the last one that are not its own. */
static inline bool heed_goes_by_parts(size_t m, size_t n, size_t k, size_t ldc, size_t held, bool far_c)
{
    size_t rest = n % HEED_PANEL, rows = HEED_PARTED_ROWS, steps = HEED_PARTED_STEPS;
    if (n > HEED_PANEL && rest > 0 && rest <= HEED_PANEL / 2) {
        rows = HEED_PARTED_HALF_ROWS;
        bool crossing = n > HEED_PARTED_CROSSING_COLS && ldc % (HEED_PANEL / 2) != 0;
        steps = rest <= HEED_PARTED_FEW_COLS ? HEED_PARTED_FEW_STEPS : crossing ? steps : HEED_PARTED_HALF_STEPS;
    }
    steps = far_c ? HEED_PARTED_FAR_STEPS : steps;
    return k > held && k <= steps && n > HEED_PANEL / 2 && m >= rows && !heed_rows_alias(ldc);
}

/* What packing a transposed b prefetches: the rows below those that it transposes, into L2; the runs to their right,
 * into L1, in an order that memory likes, by vectors as long as a line, and by others what is below; or nothing. */
enum heed_pack_prefetch { HEED_PACK_PREFETCH_BELOW, HEED_PACK_PREFETCH_RUNS, HEED_PACK_PREFETCH_NOTHING };

/* Into how many tiles of even height m >= 1 rows are split: 7 rows of a 6-row table as 4 + 3, not 6 + 1,
 * which would starve the FMA chains. One fewer, higher ones where they are as wide and would be low. */
static inline size_t heed_row_tiles(size_t m, size_t mr, size_t tallest, const unsigned char *tile_cols)
{
    if (m <= tallest)
        return 1;
    size_t tiles = m / mr + (m % mr != 0);
    bool low = m < (mr - 1) * tiles;
    if (!low || tiles == 1)
        return tiles;
    size_t higher = m / (tiles - 1) + (m % (tiles - 1) != 0);
    return higher <= tallest && tile_cols[higher - 1] == tile_cols[mr - 1] ? tiles - 1 : tiles;
}

static inline struct heed_panels heed_panels_packed(const float *data, size_t k)
{
    struct heed_panels panels = {.data = data, .row = HEED_PANEL, .panel = HEED_PANEL * k};
    return panels;
}

static inline struct heed_panels heed_panels_in_place(const float *data, size_t row)
{
    struct heed_panels panels = {.data = data, .row = row, .panel = HEED_PANEL};
    return panels;
}

enum heed_epilogue_kind {
    HEED_EPILOGUE_STORE,  /* c = acc */
    HEED_EPILOGUE_SCALE,  /* c = fma(beta, c, alpha * acc), or alpha * acc where beta is 0 */
    HEED_EPILOGUE_LINEAR, /* c = activation(acc + bias) + residual */
    HEED_EPILOGUE_GATED   /* c = activation(gate + bias) * (up + up_bias) + residual, see gemm */
};

/* Values of heed_activation in heed.h, which arch does not include. */
enum heed_activation_kind { HEED_KIND_NONE, HEED_KIND_RELU, HEED_KIND_GELU_ERF, HEED_KIND_GELU_TANH, HEED_KIND_SILU };

struct heed_epilogue {
    enum heed_epilogue_kind kind;
    bool accumulate; /* the chains start from c instead of +0 */
    float alpha, beta;
    const float *bias;    /* [n] or NULL */
    const float *up_bias; /* [n] or NULL */
    enum heed_activation_kind activation;
    const float *residual; /* [m][n] or NULL; may be c */
    size_t ld_residual;
};

enum heed_mask_kind { HEED_KIND_UNMASKED, HEED_KIND_ADDITIVE, HEED_KIND_BOOLEAN };

/* Rows of the keys and values of the head that comes next, in the caller's memory. */
struct heed_coming_keys {
    const float *k, *v;
    size_t k_row, v_row;
    size_t keys;
};

/* A run of query rows of one sequence: of one head, or, where there are few, of several heads that share keys and
 * values, or whose keys and values lie beside each other, one head's after the other's. What belongs to rows lies
 * *_row apart for the next query, *_head for the next head. */
struct heed_attention_task {
    size_t rows, head_dim, value_dim;
    size_t queries; /* of each head; 0: all rows are of one head */
    const float *q;
    size_t q_row, q_head;
    struct heed_panels k; /* element (p, j): component p of key j */
    const float *k_rows;  /* or, for HEED_IN_PLACE_ROWS rows at the most, keys as they lie, k_row apart; else NULL */
    size_t k_row;
    struct heed_panels v; /* element (j, d): component d of value j */
    size_t heads;         /* of such keys and values, each with as many of the rows; of several the rows are one tile */
    bool tall;            /* a hint: keys and values are better read half as often, by twice the rows at once */
    size_t k_head, v_head; /* how far these are apart */
    const int32_t *pages;  /* with page_keys: page number of every page_keys keys, pages being page_floats apart */
    size_t page_keys;      /* a multiple of a panel; 0: k and v are whole */
    size_t page_floats;
    size_t keys;        /* keys of the sequence; later ones are not read */
    size_t first_block; /* the first key of the first block that any row sees, or of one before */
    bool causal;        /* query i sees key j only if j <= i + diagonal */
    ptrdiff_t diagonal;
    bool windowed; /* query i sees key j only if j >= i + oldest */
    ptrdiff_t oldest;
    ptrdiff_t position;          /* of query 0 among the keys, for slopes */
    const float *slopes, *sinks; /* [heads], or NULL */
    enum heed_mask_kind mask_kind;
    const void *mask; /* of row 0, key 0 */
    size_t mask_row, mask_head;
    float scale_log2e;
    float cap, cap_slope; /* cap > 0: z = cap tanh(s cap_slope) in place of s scale_log2e */
    float *out;
    size_t out_row, out_head;
    float *log_sum; /* or NULL */
    size_t log_sum_row, log_sum_head;
    float *map; /* or NULL; map_cols columns, those without weight become 0 */
    size_t map_row, map_head, map_cols;
    float *scratch;                 /* heed_attention_scratch() floats */
    float *partial;                 /* for attention_blocks and attention_fold: heed_attention_partial() floats */
    struct heed_coming_keys coming; /* to be prefetched, each row of the task its share */
};

/* Rows of the highest row tile, which is one of several heads of keys and values, and those of a head whose keys are
 * left in place: beside transposed_rows. */
#define HEED_ATTENTION_ROWS 48
#define HEED_IN_PLACE_ROWS 24

/* Floats of scratch for a row tile: scores and weights of a key block, the row's output and that of the block, with a
 * map the references of all blocks, and queries of several heads side by side or across. */
static inline size_t heed_attention_scratch(size_t head_dim, size_t value_dim, size_t keys, bool map)
{
    size_t padded = (value_dim + HEED_PANEL - 1) / HEED_PANEL * HEED_PANEL;
    size_t blocks = map ? (keys + HEED_KEY_BLOCK - 1) / HEED_KEY_BLOCK : 0;
    return HEED_ATTENTION_ROWS * (HEED_KEY_BLOCK + 2 * padded + blocks + head_dim);
}

/* Floats of the results of so many key blocks that wait to be folded. */
static inline size_t heed_attention_partial(size_t rows, size_t value_dim, size_t blocks)
{
    size_t padded = (value_dim + HEED_PANEL - 1) / HEED_PANEL * HEED_PANEL;
    return rows * blocks * (HEED_PANEL + padded);
}

/* softmax(scale src + mask), or its logarithm. Row r has the mask row (first + r) of head (first + r) /
 * mask_rows, those rows and heads counted modulo mask_rows and mask_heads; strides are in elements. */
struct heed_softmax_task {
    size_t rows, cols;
    const float *src;
    size_t ld_src;
    float *dst; /* may be src */
    size_t ld_dst;
    size_t write_ahead; /* how many floats ahead of its writing a line is prefetched; or HEED_PAST_CACHES */
    bool in_order;      /* rows come from memory, which gives most when they are read one after the other */
    size_t far;     /* how many floats ahead dst, without gaps, is prefetched into the second cache; 0: not at all */
    bool wide_core; /* a hint: the CPU brings the next row into the first cache by itself, if it is long or in memory,
                       and starts so many instructions that short rows may come in bursts */
    float scale;    /* > 0 and finite */
    enum heed_mask_kind mask_kind;
    const void *mask;
    size_t first, mask_rows, mask_heads, mask_batch, mask_head, mask_row;
    bool logarithm;
};

/* LayerNorm, or RMSNorm, which uses neither shift nor mean, or the L2 norm, which uses no scale either. */
struct heed_norm_task {
    size_t rows, cols;
    const float *x;
    size_t ldx;
    const float *residual; /* or NULL */
    size_t ld_residual;
    float *sum; /* receives x + residual; may be x or residual; or NULL: y receives it at first */
    size_t ld_sum;
    const float *scale, *shift; /* or NULL */
    float eps;
    float *y;
    size_t ldy;
    float *mean, *inverse; /* [rows], of the deviation or the root mean square; or NULL */
    size_t write_ahead;    /* as in softmax; 0 where the CPU prefetches what is read and written; or HEED_PAST_CACHES */
    bool in_order;         /* as in softmax */
    size_t far;            /* as in softmax, of x and y; there is no residual then */
    bool wide_core; /* a hint: which rows go together, or in turns, is as a first cache of 48 KiB wants it and a CPU
                       that starts eight instructions a cycle */
};

/* The heads of one token. */
struct heed_rotary_task {
    bool interleaved; /* pairs (2 j, 2 j + 1); else (j, j + dims / 2) */
    size_t heads, dims, cols;
    const float *cosine, *sine; /* [dims / 2] */
    const float *src;
    size_t src_head;
    float *dst; /* may be src; from dims on it receives a copy */
    size_t dst_head;
};

/* Every kernel once: return type, name, parameters. Struct, tables and tests are made from this list.
 *
 * gemm          c = epilogue(a b), m x n, chains over k in ascending order. Gated: b has two packed
 *               panels for each 16 columns of c, gate and up, and m x n is the size of c
 * gemm_few      c = a' b', m x n: few rows by a transposed b, n x k; a is k x m. n >= 1, k >= VF_STEPS. reading: how
 *               rows of b are; ahead: how many floats from what is read of b is prefetched into L1, in the order of
 *               memory where rows have no gaps; 0: it is not, but in L2; or HEED_NO_PREFETCH, or
 *               HEED_PREFETCH_FROM_MEMORY
 * gemm_tn       c = a' b, m x n, n >= 1, a is k x m
 * pack          n columns of b (k x n, or n x k if transposed) into packed panels, zero-padded; prefetch: a hint
 * transpose     dst[j][i] = src[i][j], src is rows x cols
 * softmax       one heed_softmax_task
 * softmax_max   the largest of n scores of a row from column `from` on, which begins a block of HEED_REDUCTION_BLOCK
 * softmax_exps  their exponentials, to dst unless the logarithm is wanted, and the sum of each block
 * softmax_end   their results: max and sum are the row's
 * layernorm     y = LayerNorm(x + residual), see heed_norm_task
 * rmsnorm       y = RMSNorm(x + residual)
 * activate      dst = activation(src); dst may be src; write_ahead as in softmax, or HEED_PAST_CACHES; wide: a hint,
 *               two units multiply and add the widest vectors
 * activate_gated  dst = activation(src) * up; dst may be src or up
 * attention     one heed_attention_task
 * attention_blocks  the key blocks of keys begin to end - 1 of a task without a map, each into task->partial
 * attention_fold    attention, from the partial results of all blocks
 * rotary        one heed_rotary_task
 * sum_rows      dst = rows[0] + rows[1] + ... in that order, n_rows >= 1
 * mean_rows     dst = (src row 0 + row 1 + ...) * factor, in row order from +0
 * max_rows      dst = maximum of the rows, NaN where any is; rows >= 1
 * l2_normalize  y = x (1 / max(norm, eps)) for each row; no residual
 * argmax        index of the first NaN, or else of the first largest element; cols >= 1
 * top_k         indices of the k first elements, by NaN, then value, then index; 1 <= k <= cols
 * vexp          y = exp(x); for the tests, which hold it to all floats
 * vlog          y = log(x); for the tests
 * vtanh         y = tanh(x); for the tests
 * vexp2         y = 2^x for x <= 1, +0 below -100: attention's weight function; for the tests */
#define HEED_KERNELS(X)                                                                                                \
    X(void, gemm,                                                                                                      \
      (size_t m, size_t n, size_t k, const float *a, size_t lda, const struct heed_panels *b, float *c, size_t ldc,    \
       const struct heed_epilogue *epilogue))                                                                          \
    X(void, gemm_few,                                                                                                  \
      (size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb, float *c, size_t ldc,     \
       enum heed_reading reading, size_t ahead))                                                                       \
    X(void, gemm_tn,                                                                                                   \
      (size_t m, size_t n, size_t k, const float *a, size_t lda, const struct heed_panels *b, float *c, size_t ldc))   \
    X(void, pack,                                                                                                      \
      (bool transposed, enum heed_pack_prefetch prefetch, size_t n, size_t k, const float *b, size_t ldb, float *dst)) \
    X(void, transpose, (size_t rows, size_t cols, const float *src, size_t ld_src, float *dst, size_t ld_dst))         \
    X(void, softmax, (const struct heed_softmax_task *task))                                                           \
    X(float, softmax_max, (const struct heed_softmax_task *task, size_t row, size_t from, size_t n))                   \
    X(void, softmax_exps,                                                                                              \
      (const struct heed_softmax_task *task, size_t row, size_t from, size_t n, float max, float *sums))               \
    X(void, softmax_end,                                                                                               \
      (const struct heed_softmax_task *task, size_t row, size_t from, size_t n, float max, float sum))                 \
    X(void, layernorm, (const struct heed_norm_task *task))                                                            \
    X(void, rmsnorm, (const struct heed_norm_task *task))                                                              \
    X(void, activate,                                                                                                  \
      (enum heed_activation_kind activation, size_t rows, size_t cols, const float *src, size_t ld_src, float *dst,    \
       size_t ld_dst, size_t write_ahead, bool wide))                                                                  \
    X(void, activate_gated,                                                                                            \
      (enum heed_activation_kind activation, size_t rows, size_t cols, const float *src, size_t ld_src,                \
       const float *up, size_t ld_up, float *dst, size_t ld_dst, size_t write_ahead, bool wide))                       \
    X(void, attention, (const struct heed_attention_task *task))                                                       \
    X(void, attention_blocks, (const struct heed_attention_task *task, size_t begin, size_t end))                      \
    X(void, attention_fold, (const struct heed_attention_task *task))                                                  \
    X(void, rotary, (const struct heed_rotary_task *task))                                                             \
    X(void, sum_rows, (size_t n_rows, const float *const *rows, size_t cols, float *dst))                              \
    X(void, mean_rows, (size_t rows, size_t cols, const float *src, size_t ld, float factor, float *dst))              \
    X(void, max_rows, (size_t rows, size_t cols, const float *src, size_t ld, float *dst))                             \
    X(void, l2_normalize, (const struct heed_norm_task *task))                                                         \
    X(size_t, argmax, (size_t cols, const float *src))                                                                 \
    X(void, top_k, (size_t cols, size_t k, const float *src, size_t *index))                                           \
    X(void, vexp, (size_t n, const float *x, float *y))                                                                \
    X(void, vlog, (size_t n, const float *x, float *y))                                                                \
    X(void, vtanh, (size_t n, const float *x, float *y))                                                               \
    X(void, vexp2, (size_t n, const float *x, float *y))

#define HEED_KERNEL_FIELD(type, name, parameters) type(*name) parameters;

struct heed_kernels {
    const char *name;
    bool fused;                     /* class of bits */
    size_t mr;                      /* rows of a tile of the micro-kernel where there are many */
    size_t narrow_mr;               /* and b is in place, gated, or of few columns (HEED_NARROW_COLS) */
    size_t tallest;                 /* most rows of a tile */
    const unsigned char *tile_cols; /* [tallest] columns of a tile of 1, 2, ... rows */
    size_t copied_rows;             /* from which a copy of a b in place pays, HEED_COPIED_ROWS at least */
    size_t few_cols;                /* columns of c that are multiplied across many rows of a, or 0 */
    size_t across_cols;             /* of these, as many as are by any number of them and of steps of k */
    size_t transposed_rows;         /* rows of a product that is still worth it, in several groups of columns */
    size_t tn_cols, tn_lanes;       /* columns of c up to which gemm_tn is worth it, or 0; floats of a vector */
    size_t tn_across;               /* the most columns that go across rows of c in gemm_tn, or 0 */
    size_t parted_steps;            /* of k that a part has at most (heed_goes_by_parts), or 0 */
    HEED_KERNELS(HEED_KERNEL_FIELD)
};

#undef HEED_KERNEL_FIELD

extern const struct heed_kernels heed_kernels_scalar;
extern const struct heed_kernels heed_kernels_scalar_fma;
extern const struct heed_kernels heed_kernels_sse2;
extern const struct heed_kernels heed_kernels_avx2;
extern const struct heed_kernels heed_kernels_avx512;
extern const struct heed_kernels heed_kernels_neon;

#endif
