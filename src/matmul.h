/* SPDX-License-Identifier: MIT
 * What the ways of heed_matmul share (matmul.c, across.c, transposed.c).
 */
#ifndef HEED_MATMUL_H
#define HEED_MATMUL_H

#include "reading.h"

/* Whether c is computed as its transpose, by few rows of a or few columns of b. */
enum heed_product_form { HEED_AS_IT_IS, HEED_FEW_ROWS, HEED_FEW_COLUMNS };

/* How a matrix in place is read across (across.c). */
struct heed_across {
    size_t depth;    /* rows of it at once */
    size_t ahead;    /* as row_distance in struct heed_panels; 0: it is not read so */
    size_t cols;     /* as most_tile_cols there */
    bool prefetches; /* or leaves it to the CPU's prefetchers */
};

struct matmul {
    const struct heed_kernels *kernels;
    bool transpose_a, transpose_b;
    size_t m, n, k;
    const float *a, *b;
    size_t lda, ldb;
    float *c;
    size_t ldc;
    struct heed_epilogue epilogue;
    struct heed_cut cut; /* of c, or of its transpose along the longer side */
    enum heed_product_form form;
    bool packs;                      /* b; else it is read in place */
    bool by_tn;                      /* a transposed a is read where it lies */
    struct heed_across across;       /* of b, or of an a that is transposed */
    bool strips;                     /* then, whether b goes by kernels/strips.inc instead */
    bool uncopied, far_c;            /* as in struct heed_panels */
    enum heed_reading reading;       /* as there */
    size_t distance;                 /* as there, of rows that few columns go across */
    enum heed_pack_prefetch packing; /* what is prefetched where a transposed b is packed */
    size_t block;                    /* columns of b that are packed at once, or what is transposed at once */
    size_t block_rows;               /* rows of a that pass by them at once */
    float *scratch;
    size_t packed_floats, worker_floats;
};

static inline size_t heed_whole_lines(size_t floats)
{
    return heed_scratch_part(floats, sizeof(float)) / sizeof(float);
}

/* Products whose scratch fits here need no workspace; most by a b of that size need no plan either. */
#define HEED_SMALL_FLOATS 4096

/* Floats of a small a that is transposed, beside b's panels or the edge of it; and whether all of that fits. */
static inline size_t heed_small_rows(const struct matmul *mm)
{
    return mm->transpose_a && !mm->by_tn ? heed_pad(heed_times(mm->m, mm->k)) : 0;
}

static inline bool heed_fits_small(const struct matmul *mm)
{
    size_t b_floats = heed_times(mm->k, mm->transpose_b ? heed_pad(mm->n) : HEED_PANEL);
    return heed_plus(heed_small_rows(mm), b_floats) <= HEED_SMALL_FLOATS;
}

/* Whether a b in place spans so few floats, a quarter of the smallest L2, that it is as good as there. */
#define HEED_NEAR_FLOATS 16384

static inline bool heed_is_near(size_t rows, size_t ld)
{
    return heed_times(rows, ld) <= HEED_NEAR_FLOATS;
}

/* Steps of k of a single row at once, whose b is read from row to row (kernels/gemv.inc) whether it is across or not:
 * room for a copy of a panel needs no workspace. */
#define HEED_ROW_DEPTH (HEED_SMALL_FLOATS / HEED_PANEL)

extern const struct heed_across heed_not_across;

/* How a matrix of so many columns by so many rows is read, or heed_not_across. c holds the sums meanwhile, so that no
 * old c may be in it. */
struct heed_across heed_find_across(const struct heed_context *context, size_t rows, size_t cols, size_t depth,
                                    size_t ld);
void heed_read_across(const struct heed_across *across, struct heed_panels *b);

/* Whether a b that is read across goes by strips of whole columns. */
bool heed_goes_by_strips(const struct heed_context *context, size_t rows, size_t cols, size_t depth, size_t ld);

/* Columns of such a b that are worth a task. */
size_t heed_across_cols(const struct heed_context *context, size_t cols);

/* A vector is a row and a column: it need not be transposed itself, and by it a transposed matrix is one as it lies,
 * wherever its elements are side by side; a that is one may become a transposed one to this end. Needs sizes that
 * multiply without overflow. */
void heed_transpose_vectors(struct matmul *mm);

/* Depends on sizes, kernels, epilogue and packing only. */
enum heed_product_form heed_find_form(const struct matmul *mm);

/* Whether few columns read a transposed a where it lies (kernels/tn.inc), of whose product the form is known.
 * Depends on lda as well. */
bool heed_goes_by_tn(const struct matmul *mm);

/* Sets the cut, the block and what scratch a worker needs. */
void heed_transposed_plan(const struct heed_context *context, struct matmul *mm);

/* Computes a small product, which has no plan, in room for HEED_SMALL_FLOATS, if it is to be transposed and fits. */
bool heed_transposed_in_room(struct matmul *mm, float *room);

/* A task of a struct matmul so planned. */
heed_task heed_transposed_task;

#endif
