/* SPDX-License-Identifier: MIT
 * Every kernel of every table bitwise against the scalar table of its class, flush against guard
 * pages. Sizes and alignments are complete each on its own and in pairs.
 */
#include "arena.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LONGEST_SWEEP 130

static struct {
    const struct heed_kernels *table, *oracle;
    struct arena a, b, got, extra, mask; /* the mask's apart: what it puts in place of some numbers stays there */
    float *want;                         /* what the oracle writes; as large as got */
    size_t compared, numbers;            /* results, and those whose first and last elements are numbers */
} t;

enum { ARENA_FLOATS = 1 << 19 };

static size_t sweep_end(void)
{
    return quick() ? 35 : LONGEST_SWEEP;
}

static size_t step(size_t natively, size_t quickly)
{
    return quick() ? quickly : natively;
}

/* Both outputs start from the same contents; gaps between rows must survive. */
static float *prepare(size_t n, int at_end)
{
    float *got = arena_place(&t.got, n, at_end);
    for (size_t i = 0; i < n; i++)
        got[i] = t.want[i] = uniform(-1.0f, 1.0f);
    return got;
}

static size_t span(size_t rows, size_t cols, size_t ld)
{
    return rows == 0 || cols == 0 ? 0 : (rows - 1) * ld + cols;
}

static void compare(size_t n, const float *got, const char *what, size_t p, size_t q, size_t r)
{
    char text[128];
    snprintf(text, sizeof text, "%s %zu x %zu x %zu", what, p, q, r);
    check_same(1, n, got, n, t.want, n, text);
    t.compared += n > 0;
    t.numbers += n > 0 && !isnan(t.want[0]) && !isnan(t.want[n - 1]);
}

/* NaN equals NaN, whatever it comes of: tables that agree on little else have shown nothing. */
static void end_sweep(void)
{
    check_that(4 * t.numbers >= 3 * t.compared, "%zu of %zu results are numbers", t.numbers, t.compared);
    t.compared = t.numbers = 0;
    end();
}

/* ---- gemm ---- */

struct gemm_case {
    size_t m, n, k, lda_gap, ldc_gap, align_a, align_c;
    int at_end;
    unsigned kind; /* epilogue, chosen round robin */
    size_t beyond; /* steps of a longer k, of which packed panels are a part */
    bool ahead;    /* more is named that follows */
};

#define EPILOGUES 8

static struct heed_epilogue epilogue_of(unsigned kind, const float *bias, const float *residual, size_t ld_residual)
{
    struct heed_epilogue e = {.kind = HEED_EPILOGUE_LINEAR, .alpha = 0.75f, .ld_residual = ld_residual};
    switch (kind % EPILOGUES) {
    case 0:
        e.kind = HEED_EPILOGUE_STORE;
        break;
    case 1:
        e.kind = HEED_EPILOGUE_STORE;
        e.accumulate = true;
        break;
    case 2:
        e.kind = HEED_EPILOGUE_SCALE;
        e.beta = -1.25f;
        break;
    case 3:
        e.kind = HEED_EPILOGUE_SCALE;
        break;
    case 4:
        e.bias = bias;
        break;
    case 5:
        e.bias = bias;
        e.accumulate = true;
        e.activation = HEED_KIND_RELU;
        e.residual = residual;
        break;
    case 6:
        e.bias = bias;
        e.activation = HEED_KIND_GELU_ERF;
        break;
    default:
        e.residual = residual;
        e.activation = HEED_KIND_GELU_TANH;
        break;
    }
    return e;
}

/* Rows up to which b is called foreseen, in turn. */
static const size_t hw_prefetched[] = {0, 2, HEED_HW_PREFETCHED_ROWS, 0, HEED_HW_PREFETCHED_TALLEST};

static void check_gemm(const struct gemm_case *g)
{
    size_t lda = g->k + g->lda_gap, ldc = g->n + g->ldc_gap, padded = (g->n + 15) / 16 * 16;
    int in_place = g->kind % 3 == 0; /* b row-major rather than packed */
    int copied = in_place && g->k <= 1024 && (g->kind % 2 == 0 || g->kind % EPILOGUES > 4);
    size_t b_cols = copied ? g->n : padded, b_row = padded + (g->kind % 4 == 0 ? 0 : 5);
    struct heed_panels b = in_place ? heed_panels_in_place(NULL, b_row) : heed_panels_packed(NULL, g->k);
    const float *a = g->align_a ? t.a.begin + g->align_a : arena_place(&t.a, span(g->m, g->k, lda), g->at_end);
    b.panel += in_place ? 0 : g->beyond * HEED_PANEL;
    size_t packed_floats = padded * g->k + (padded ? padded / HEED_PANEL - 1 : 0) * g->beyond * HEED_PANEL;
    b.data = arena_place(&t.b, in_place ? span(g->k, b_cols, b.row) : packed_floats, g->at_end);
    b.next = g->ahead ? b.data : NULL;
    b.hw_prefetched_rows = hw_prefetched[g->kind % 5];
    b.from_memory = g->kind % 5 == 4 && g->kind % 36 != 0;
    b.row_distance = g->kind % 5 == 4 && in_place ? g->n / 2 : 0;
    b.most_tile_cols = b.row_distance > 0 && g->m % 2 ? 32 : 0;
    b.in_l2 = g->kind / 5 % 2;
    b.prefetch_l1 = g->kind % 11 > 7;
    b.hw_prefetched_rows = b.prefetch_l1 ? HEED_L1_PREFETCHED_ROWS : b.hw_prefetched_rows;
    b.uncopied = g->kind % 7 == 6;
    b.far_c = g->kind / 8 % 2;
    b.reading = (enum heed_reading)((g->kind + g->kind / EPILOGUES) % 4);
    b.distance = !b.prefetch_l1 && g->m % 2 ? HEED_PREFETCH_FROM_MEMORY : 0;
    size_t n = span(g->m, g->n, ldc);
    float *got = g->align_c ? prepare(n, 0) + g->align_c : prepare(n, g->at_end);
    if (g->align_c)
        memcpy(got, t.want, n * sizeof(float));
    const float *bias = arena_place(&t.extra, g->n, g->at_end), *residual = t.extra.begin + 3;
    struct heed_epilogue e = epilogue_of(g->kind, bias, residual, g->n + 1);
    static float sliver[128 * 1024];
    if (copied)
        b.copy = sliver;
    t.table->gemm(g->m, g->n, g->k, a, lda, &b, got, ldc, &e);
    t.oracle->gemm(g->m, g->n, g->k, a, lda, &b, t.want, ldc, &e);
    compare(n, got, "gemm", g->m, g->n, g->k);
}

static void check_gated(size_t m, size_t n, size_t k, unsigned kind, int at_end)
{
    size_t ldc = n + kind % 3;
    struct heed_panels b = heed_panels_packed(arena_place(&t.b, (n + 15) / 16 * 32 * k, at_end), k);
    b.hw_prefetched_rows = hw_prefetched[kind % 5];
    b.from_memory = kind % 5 == 4;
    b.prefetch_l1 = kind % 7 > 4;
    b.reading = (enum heed_reading)(kind % 4);
    b.hw_prefetched_rows = b.prefetch_l1 ? HEED_L1_PREFETCHED_ROWS : b.hw_prefetched_rows;
    const float *a = arena_place(&t.a, span(m, k, k + 1), at_end), *bias = arena_place(&t.extra, n, at_end);
    struct heed_epilogue e = {.kind = HEED_EPILOGUE_GATED,
                              .activation = (enum heed_activation_kind)(kind % 5),
                              .bias = kind & 1 ? bias : NULL,
                              .up_bias = kind & 2 ? t.extra.begin + 1 : NULL,
                              .residual = kind & 4 ? t.extra.begin + 3 : NULL,
                              .ld_residual = n};
    size_t size = span(m, n, ldc);
    float *got = prepare(size, at_end);
    t.table->gemm(m, n, k, a, k + 1, &b, got, ldc, &e);
    t.oracle->gemm(m, n, k, a, k + 1, &b, t.want, ldc, &e);
    compare(size, got, "gated gemm", m, n, k);
}

static void sweep_gated(void)
{
    unsigned kind = 0;
    for (size_t m = 0; m <= 2 * t.table->tallest + 1; m++)
        for (size_t n = 0; n <= (size_t)t.table->tile_cols[0] + 17; n += step(1, 5), kind++)
            check_gated(m, n, kind % 3 ? 5 : 33, kind, kind & 1);
    check_gated(t.table->mr, 40, 0, 7, 1);
}

static void sweep_gemm_sizes(void)
{
    size_t most_m = 2 * t.table->tallest + 1,
           most_n = (size_t)2 * t.table->tile_cols[t.table->mr - 1] + t.table->tile_cols[0], most_k = sweep_end();
    unsigned kind = 0;
    static const size_t few_k[] = {0, 1, 7, 64}, few[] = {1, 6, 17, 33, 65};
    for (size_t m = 0; m <= most_m; m++)
        for (size_t n = 0; n <= most_n; n++, kind++)
            for (size_t i = 0; i < step(4, 1); i++)
                check_gemm(&(struct gemm_case){m, n, few_k[(i + n) % 4], kind % 4, kind % 5, 0, 0, kind & 1,
                                               kind + (unsigned)i, 0, false});
    for (size_t m = 0; m <= most_m; m += step(1, 3))
        for (size_t k = 0; k <= most_k; k++, kind++)
            check_gemm(&(struct gemm_case){m, few[kind % 5], k, kind % 3, kind % 2, 0, 0, kind & 1, kind, 0, false});
    for (size_t n = 0; n <= most_n; n += step(1, 7))
        for (size_t k = 0; k <= most_k; k += step(1, 5), kind++)
            check_gemm(&(struct gemm_case){1 + kind % (t.table->tallest + 1), n, k, kind % 3, kind % 2, 0, 0, kind & 1,
                                           kind, 0, false});
    static const size_t past_narrow[] = {1, 16, 17, 32, 48, 64, 80, 83};
    for (size_t m = 0; m <= 3 * t.table->mr + 1; m++)
        for (size_t i = 0; i < sizeof past_narrow / sizeof *past_narrow; i++, kind++)
            check_gemm(&(struct gemm_case){m, HEED_NARROW_COLS + past_narrow[i], 5, kind % 4, kind % 5, 0, 0, kind & 1,
                                           kind, 0, false});
    static const size_t edges[] = {255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 4095, 4096, 4097};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        check_gemm(&(struct gemm_case){t.table->mr + 1, 17, edges[i], 0, 1, 0, 0, 1, (unsigned)i, 0, false});
}

/* With something to ask for, by rows and by lines, from few tiles and from many, within a panel and from one to the
 * next; at last a c that is large enough to be claimed, by tiles of one height and of two: none of these kinds names b
 * near. */
static void sweep_gemm_ahead(void)
{
    size_t width = t.table->tile_cols[t.table->mr - 1], kind = 0;
    static const size_t depths[] = {0, 1, 5, 64, 193};
    for (size_t m = 1; m <= 12 * t.table->mr; m += step(3, 11))
        for (size_t i = 0; i < sizeof depths / sizeof *depths; i++, kind++)
            check_gemm(&(struct gemm_case){.m = m,
                                           .n = width * (1 + kind % 3) + kind % 19,
                                           .k = depths[i],
                                           .at_end = kind & 1,
                                           .kind = (unsigned)kind,
                                           .beyond = kind % 4 * 5,
                                           .ahead = true});
    for (size_t beyond = 0; beyond < step(8, 4); beyond += 3, kind++)
        check_gemm(&(struct gemm_case){80 - kind % 2, 830, 194 + beyond, 1, 1, 0, 0, 1, (unsigned)(10 * kind + 1),
                                       beyond, true});
}

/* Few columns, alone or after whole panels, by whole groups of rows and some left over, by few steps and by more than
 * are copied side by side, of rows that crowd one set of L1. */
static void sweep_gemm_few_columns(void)
{
    static const size_t rows[] = {8, 15, 16, 17, 31, 32, 40}, depths[] = {7, 8, 9, 15, 16, 23};
    unsigned kind = 0;
    for (size_t cols = 1; cols <= HEED_PANEL; cols++) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t j = 0; j < sizeof depths / sizeof *depths; j++, kind++)
                if (!is_left_out(cols + i + j, 3))
                    check_gemm(&(struct gemm_case){rows[i], cols + kind / 3 % 3 * 2 * HEED_PANEL, depths[j], kind % 4,
                                                   kind % 5, 0, 0, kind & 1, kind / 2, 0, false});
        for (size_t k = 4096 / cols - 1; k <= 4096 / cols + 1; k++, kind++)
            check_gemm(&(struct gemm_case){17, cols, k, 0, 1, 0, 0, 1, kind, 0, false});
        for (size_t i = 0; i < (cols > 1 ? 4 : 1); i++, kind++) /* b is copied, but for one of more floats */
            check_gemm(&(struct gemm_case){129 + kind % 7, cols, i == 0 ? 257 : 4096 / cols - 2 + i, kind % 4, 1, 0, 0,
                                           1, kind, 0, false});
        for (size_t k = 244; k <= 256; k += 4, kind++) /* rows a page apart, or a quarter */
            for (size_t lda = 256; lda <= 1024; lda += 768)
                check_gemm(&(struct gemm_case){27 + k % 3 * 20 + kind % 7, cols, k + lda - 256, 256 - k, 1, 0, 0, 1,
                                               kind % 4 * 9 + 2, 0, false});
        for (size_t k = 63; k <= 95; k += 8, kind++)
            check_gemm(&(struct gemm_case){27 + kind % 7, cols, k, 1024 - k, 1, 0, 0, 1, kind, 0, false});
        for (unsigned i = 0; i < step(24, 7); i++, kind++) /* long ones, for a core that reads whole lines of them */
            check_gemm(&(struct gemm_case){14 + kind % 31 * 2, cols, i % 4 ? 320 + kind % 19 : 512, kind % 4, 1, 0, 0,
                                           kind & 1, i, 0, false});
    }
}

/* One to three columns across 32 rows at a time, eight of these together, and what they leave, by every way of reading
 * rows and every epilogue. */
static void sweep_gemm_eights(void)
{
    static const size_t rows[] = {31, 32, 34, 40, 48, 50, 62, 63, 64, 82, 130}, depths[] = {8, 9, 12, 15, 16, 23, 121};
    unsigned kind = 0;
    for (size_t cols = 1; cols <= 3; cols++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t j = 0; j < sizeof depths / sizeof *depths; j++)
                for (unsigned each = 0; each < step(31, 2); each++, kind++)
                    check_gemm(&(struct gemm_case){rows[i], cols, depths[j], kind / 3 % 2 * 3, kind % 5, 0, 0, kind & 1,
                                                   kind, 0, false});
}

/* A single row by a b in place (gemv.inc), from zero and from what is there, and read across, asked for or not: of the
 * kinds these name b neither near nor foreseen, or far, or across alone. */
static void sweep_gemm_row(void)
{
    static const unsigned kinds[] = {0, 33, 24, 144};
    for (size_t n = 255; n <= 256 + 67; n++)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            check_gemm(&(struct gemm_case){1, n, 1 + n % 18, 0, 0, 0, 0, 1, kinds[i], 0, false});
            check_gemm(&(struct gemm_case){1, n, 1 + n % 18, 0, 0, 0, 0, 0, kinds[i], 0, false});
        }
    check_gemm(&(struct gemm_case){1, 1000, 40, 0, 0, 0, 0, 1, 0, 0, false});
}

/* A single row by packed panels in runs, and what they leave: stored, from what is there, with bias, activation and
 * residual, of panels that adjoin or not; none of the kinds names b far. */
static void sweep_gemm_row_by_runs(void)
{
    static const unsigned kinds[] = {1, 5, 7, 8, 16, 22};
    for (size_t n = 256; n <= 256 + 67; n++)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            check_gemm(&(struct gemm_case){1, n, (n + i) % 18, 0, 0, 0, 0, n & 1, kinds[i], n % 3, false});
    check_gemm(&(struct gemm_case){1, 1000, 40, 0, 0, 0, 0, 1, 8, 0, false});
}

/* Rows of which the first tile leaves a packed copy of a b in place for the others, or may not. */
static void sweep_gemm_copied(void)
{
    static const size_t rows[] = {31, 32, 33, 40, 67}, cols[] = {128, 131, 144, 150, 193}, depths[] = {64, 65, 67};
    static const unsigned kinds[] = {0, 6, 12, 18, 30, 36};
    unsigned turn = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < sizeof cols / sizeof *cols; j++)
            for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
                for (size_t e = 0; e < sizeof kinds / sizeof *kinds; e++, turn++)
                    check_gemm(&(struct gemm_case){rows[i], cols[j], depths[d], turn % 3, turn % 4, 0, 0, turn & 1,
                                                   kinds[e], 0, false});
}

/* All columns less than a panel of a b nearby, in place and packed. */
static void sweep_gemm_narrow(void)
{
    static const size_t depths[] = {0, 1, 3, 4, 5, 8, 11, 64};
    static const unsigned kinds[] = {48, 8};
    unsigned turn = 0;
    for (size_t m = 1; m <= 17; m += step(1, 3))
        for (size_t n = 1; n < HEED_PANEL; n++)
            for (size_t i = 0; i < sizeof depths / sizeof *depths; i++, turn++)
                for (size_t j = 0; j < 2; j++)
                    check_gemm(
                        &(struct gemm_case){m, n, depths[i], turn % 3, turn % 4, 0, 0, turn & 1, kinds[j], 0, false});
}

/* A few rows by strips of a b nearby that is read across (strips.inc): whole and partial ones, of whole groups of steps
 * and of some left over, by each way to end but those that begin from what is there. */
static void sweep_gemm_strips(void)
{
    static const size_t cols[] = {300, 511, 512, 513, 1024, 1025, 1100, 2070}, depths[] = {6, 8, 11, 40, 43};
    static const unsigned kinds[] = {384, 219, 54, 714};
    unsigned turn = 0;
    for (size_t m = 2; m <= 10; m++)
        for (size_t n = 0; n < sizeof cols / sizeof *cols; n++)
            for (size_t d = 0; d < sizeof depths / sizeof *depths; d++, turn++)
                check_gemm(&(struct gemm_case){m, cols[n], depths[d], turn % 3, turn % 5, 0, 0, turn & 1,
                                               kinds[turn / 3 % 4], 0, false});
}

/* Rows from memory by few columns in groups (groups.inc): less than a block of them, two, and some left over. */
static void sweep_gemm_afar(void)
{
    static const size_t rows[] = {16, 23, 270, 272, 300, 545}, depths[] = {510, 512, 514};
    unsigned kind = 0;
    for (size_t n = 8; n <= 27; n++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++, kind++)
            for (size_t d = 0; d < sizeof depths / sizeof *depths; d++, kind++)
                if (!is_left_out(n + i + d, 7))
                    check_gemm(&(struct gemm_case){rows[i] + kind % 3, n, n > 16 ? depths[d] - 200 : depths[d],
                                                   kind % 4, kind % 5, 0, 0, kind & 1, kind % 8 + 8 + kind / 8 * 16, 0,
                                                   false});
}

/* Rows from memory by tiles that ask for those below, and claim their part of c where it is large: in place, packed by
 * the way and packed, of steps about the fewest and the most that are worth it. Last, packed ones that claim of fewer
 * steps than others, by each way to end. */
static void sweep_gemm_rows_below(void)
{
    static const size_t rows[] = {46, 530}, cols[] = {25, 32, 48, 49, 64, 130},
                        depths[] = {95, 96, 101, 300, 512, 513, 960};
    static const unsigned claiming[EPILOGUES] = {40, 73, 170, 203, 220, 253, 110, 143};
    unsigned turn = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t n = 0; n < sizeof cols / sizeof *cols; n++)
            for (size_t d = 0; d < sizeof depths / sizeof *depths; d++, turn++)
                if (!is_left_out(i + n + d, 3))
                    check_gemm(&(struct gemm_case){rows[i] + turn % 7, cols[n], depths[d], turn / 7 % 3 * 8, turn % 5,
                                                   0, 0, turn & 1, turn % 8 + 8 + turn / 8 * 16, 0, turn / 7 % 2 > 0});
    for (unsigned kind = 0; kind < EPILOGUES; kind++)
        check_gemm(&(struct gemm_case){1030, 133 + kind, 97 + kind, 0, kind % 3, 0, 0, 0, claiming[kind], 0, false});
}

/* Products of few steps (flat.inc), of every rest of columns: in place, nearby or not, and packed, of more steps. */
static void sweep_gemm_flat(void)
{
    static const size_t rows[] = {1, 2, 3, 17};
    static const unsigned kinds[] = {0, 48, 8};
    unsigned turn = 0;
    for (size_t n = HEED_PANEL; n <= 100; n += step(1, 3))
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t k = 1; k <= 5; k++, turn++)
                for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++)
                    check_gemm(&(struct gemm_case){rows[i], n, k, turn % 3, turn % 4, 0, 0, turn & 1, kinds[j],
                                                   turn % 2 * 5, false});
}

/* Products of few steps that hold b in registers (outer.inc): more rows than go at once of more columns than a pass
 * has, also where rows of c share sets; of as many steps as are held, and one more. */
static void sweep_gemm_outer(void)
{
    static const size_t rows[] = {3, 5, 8, 9, 32, 41}, cols[] = {17, 48, 65, 79, 128, 150, 201, 256, 300};
    static const unsigned kinds[] = {0, 48, 8};
    unsigned turn = 0;
    for (size_t n = 0; n < sizeof cols / sizeof *cols; n++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t k = 1; k <= 9; k++, turn++)
                for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++)
                    if (!is_left_out(turn + j, 3))
                        check_gemm(&(struct gemm_case){rows[i], cols[n], k, turn % 3, turn % 2 * 3, 0, 0, turn & 1,
                                                       kinds[j], turn % 2 * 5, false});
}

/* Products that go by parts of k, near and far, by packed panels and in place: as few rows as do, more than go at once,
 * and all numbers of columns past a panel. */
static void sweep_gemm_parted(void)
{
    static const size_t rows[] = {23, 24, 64, 129, 150}, cols[] = {96, 101, 200, 256};
    static const unsigned kinds[] = {0, 48, 8, 24};
    unsigned turn = 0;
    if (t.table->parted_steps == 0)
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t n = 9; n < 53 + sizeof cols / sizeof *cols; n++)
            for (size_t k = 7; k <= HEED_PARTED_HALF_STEPS + 1; k += 1 + turn % 3, turn++)
                check_gemm(&(struct gemm_case){rows[i], n < 53 ? n : cols[n - 53], k, turn % 3, turn % 4, 0, 0,
                                               turn & 1, kinds[turn / 2 % 4], turn % 2 * 5, false});
}

/* The last columns of a b nearby as half vectors, in place and packed, alone and as part of a longer k. */
static void sweep_gemm_halved(void)
{
    static const size_t rows[] = {4, 5, 8, 9, 15, 19, 31}, cols[] = {17, 20, 24, 33, 40, 49, 56, 72, 120},
                        depths[] = {9, 27, 80, 129};
    static const unsigned kinds[] = {48, 16};
    unsigned turn = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t n = 0; n < sizeof cols / sizeof *cols; n++)
            for (size_t d = 0; d < sizeof depths / sizeof *depths; d++, turn++)
                for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++)
                    if (!is_left_out(turn + j, 2))
                        check_gemm(&(struct gemm_case){rows[i], cols[n], depths[d], turn % 3, turn % 2 * 3, 0, 0,
                                                       turn / 2 & 1, kinds[j], j > 0 ? turn % 2 * 5 : 0, false});
}

/* A column by rows without gaps that are shorter than a vector of steps, from one end of their pages to the other. */
static void sweep_gemm_short_column(void)
{
    static const size_t rows[] = {1, 15, 16, 17, 24, 25, 31, 32, 33, 47, 48, 100, 171, 320};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 1; k <= 33; k++)
            for (int at_end = 0; at_end < 2; at_end++) {
                check_gemm(&(struct gemm_case){rows[i], 1, k, 0, 0, 0, 0, at_end, at_end ? 8 : 48, 0, false});
                check_gemm(&(struct gemm_case){rows[i], 1, k, 3, 0, 0, 0, at_end, at_end ? 8 : 48, 0, false});
            }
}

static void sweep_gemm_alignments(void)
{
    size_t most_m = 2 * t.table->tallest + 1,
           most_n = (size_t)2 * t.table->tile_cols[t.table->mr - 1] + t.table->tile_cols[0];
    unsigned kind = 0;
    for (size_t align = 0; align < 16; align++) {
        for (size_t other = 0; other < 16; other++, kind++)
            check_gemm(&(struct gemm_case){3, 35, 9, 1, 2, align, other, 0, kind, 0, false});
        for (size_t m = 0; m <= most_m; m += step(1, 4), kind++)
            check_gemm(&(struct gemm_case){m, 19, 11, 0, 1, align, 15 - align, 0, kind, 0, false});
        for (size_t n = 0; n <= most_n; n += step(1, 4), kind++)
            check_gemm(&(struct gemm_case){4, n, 11, 0, 1, align, 15 - align, 0, kind, 0, false});
        for (size_t k = 0; k <= sweep_end(); k += step(1, 4), kind++)
            check_gemm(&(struct gemm_case){4, 21, k, 0, 1, align, 15 - align, 0, kind, 0, false});
    }
}

/* ---- few rows by a transposed b ---- */

static void check_gemm_few(size_t m, size_t n, size_t k, size_t gap, int at_end)
{
    size_t lda = m + gap, ldb = gap > 1 ? (k + 1023) / 1024 * 1024 : k + gap, ldc = n + gap;
    const float *a = arena_place(&t.a, span(k, m, lda), at_end), *b = arena_place(&t.b, span(n, k, ldb), at_end);
    size_t floats = span(m, n, ldc);
    float *got = prepare(floats, at_end);
    const size_t ahead[] = {3 * ldb, HEED_NO_PREFETCH, 0, HEED_PREFETCH_FROM_MEMORY};
    t.table->gemm_few(m, n, k, a, lda, b, ldb, got, ldc, (enum heed_reading)(n / 2 % 4), ahead[(m + n) % 4]);
    t.oracle->gemm_few(m, n, k, a, lda, b, ldb, t.want, ldc, HEED_READ_PLAINLY, 0);
    compare(floats, got, "few rows", m, n, k);
}

static void sweep_gemm_few(void)
{
    size_t seed = 0;
    for (size_t m = 1; m <= 35; m += step(1, 3))
        for (size_t n = 1; n <= 67; n += step(1, 5))
            for (size_t k = 8; k <= 40; k += step(1, 5), seed++)
                check_gemm_few(m, n, k, seed % 3, seed % 2);
    for (size_t m = 1; m <= 12; m++)
        for (size_t n = 1; n <= 19; n++, seed++)
            check_gemm_few(m, n, 60 + seed % 40, seed % 3, seed % 2);
    for (size_t m = 1; m <= 3; m++)
        for (size_t n = 15; n <= 67; n += 13, seed++) /* rows a quarter of a page apart */
            check_gemm_few(m, n, 256 - seed % 3, seed % 3, seed % 2);
    for (size_t m = 1; m <= 12; m++)
        for (size_t n = 15; n <= 67; n += 13, seed++) /* long rows, of whole vectors of steps and not */
            check_gemm_few(m, n, 300 + seed % 4 * 160 + m, seed / 4 % 3, seed % 2);
}

/* ---- few columns by a transposed a ---- */

static void check_gemm_tn(size_t m, size_t n, size_t k, size_t gap, int packed, int at_end)
{
    size_t lda = m + gap, ldb = n + gap, ldc = n + gap, padded = (n + 15) / 16 * 16;
    const float *a = arena_place(&t.a, span(k, m, lda), at_end);
    const float *data = arena_place(&t.b, packed ? padded * k : span(k, n, ldb), at_end);
    const struct heed_panels b = packed ? heed_panels_packed(data, k) : heed_panels_in_place(data, ldb);
    size_t floats = span(m, n, ldc);
    float *got = prepare(floats, at_end);
    t.table->gemm_tn(m, n, k, a, lda, &b, got, ldc);
    t.oracle->gemm_tn(m, n, k, a, lda, &b, t.want, ldc);
    compare(floats, got, "few columns by a transposed a", m, n, k);
}

/* Of every height and width of a tile, by b in place and packed; and what the oracle gives is what it gives for a that
 * was turned. */
static void sweep_gemm_tn(void)
{
    size_t seed = 0;
    for (size_t m = 1; m <= 19; m++)
        for (size_t n = 1; n <= 67; n++)
            for (size_t k = 1; k <= 25; k += step(3, 11), seed++)
                check_gemm_tn(m, n, k, seed % 3, seed / 2 % 2, seed % 2);
    for (size_t m = 20; m <= 300; m += step(7, 23)) /* across rows: every number of vectors of a pass, and several */
        for (size_t n = 1; n <= 9; n++)
            for (size_t k = 1; k <= 9; k += 4, seed++)
                check_gemm_tn(m, n, k, seed % 3, seed / 2 % 2, seed % 2);
    for (size_t n = 1; n <= 20; n++, seed++) {
        static float turned[40 * 30];
        const float *a = arena_place(&t.a, 30 * 40, 1), *data = arena_place(&t.b, 30 * ((n + 15) / 16 * 16), 1);
        const struct heed_panels b = heed_panels_packed(data, 30);
        const struct heed_epilogue store = {.kind = HEED_EPILOGUE_STORE};
        float *got = prepare(40 * n, 1);
        t.oracle->transpose(30, 40, a, 40, turned, 30);
        t.table->gemm_tn(40, n, 30, a, 40, &b, got, n);
        t.oracle->gemm(40, n, 30, turned, 30, &b, t.want, n, &store);
        compare(40 * n, got, "few columns, and a turned a", 40, n, 30);
    }
}

/* ---- pack and transpose ---- */

static void check_pack(size_t n, size_t k, int transposed, size_t gap, int at_end)
{
    static unsigned prefetch;
    size_t ldb = (transposed ? k : n) + gap, panels = (n + 15) / 16 * 16 * k;
    const float *b = arena_place(&t.b, transposed ? span(n, k, ldb) : span(k, n, ldb), at_end);
    float *got = prepare(panels, at_end);
    t.table->pack(transposed, (enum heed_pack_prefetch)(prefetch++ % 3), n, k, b, ldb, got);
    t.oracle->pack(transposed, HEED_PACK_PREFETCH_BELOW, n, k, b, ldb, t.want);
    compare(panels, got, transposed ? "pack transposed" : "pack", n, k, gap);
}

static void check_transpose(size_t rows, size_t cols, size_t gap, int at_end)
{
    const float *src = arena_place(&t.b, span(rows, cols, cols + gap), at_end);
    size_t n = span(cols, rows, rows + gap);
    float *got = prepare(n, at_end);
    t.table->transpose(rows, cols, src, cols + gap, got, rows + gap);
    t.oracle->transpose(rows, cols, src, cols + gap, t.want, rows + gap);
    compare(n, got, "transpose", rows, cols, gap);
}

static void sweep_packing(void)
{
    for (size_t n = 0; n <= 67; n += step(1, 3))
        for (size_t k = 0; k <= sweep_end(); k += step(1, 3)) {
            int at_end = (n ^ k) & 1;
            check_pack(n, k, 0, k % 3, at_end);
            check_pack(n, k, 1, n % 3, at_end);
            if (k <= 67)
                check_transpose(n, k, (n + k) % 3, at_end);
        }
    for (size_t n = 15; n <= 49; n += 17) /* long rows, of whole vectors of steps and not */
        for (size_t k = 250; k <= 1040; k += step(2, 18))
            check_pack(n, k, 1, k / 2 % 3, k / 2 % 2);
}

/* ---- rows ---- */

/* All sizes of groups that tables reduce at once, 4 + 4 + 2 + 1: two of four, of which one follows the other. */
enum { ROWS_AT_MOST = 11 };

/* More than two of the batches in which norms take short rows, of 64 at most. */
enum { ROWS_OF_BATCHES = 2 * 64 + ROWS_AT_MOST };

struct row_case {
    size_t rows, cols, gap, align;
    int at_end, in_place;
};

/* Places input and output, runs both tables, compares. run(kernels, case, src, dst, ld). */
static void check_rows(const struct row_case *r, const char *what,
                       void (*run)(const struct heed_kernels *kernels, const struct row_case *r, const float *src,
                                   float *dst, size_t ld))
{
    size_t ld = r->cols + r->gap, n = span(r->rows, r->cols, ld);
    float *got = r->align ? prepare(n, 0) + r->align : prepare(n, r->at_end);
    if (r->align)
        memcpy(got, t.want, n * sizeof(float));
    const float *src = r->align ? t.a.begin + (15 - r->align) : arena_place(&t.a, n, r->at_end);
    run(t.oracle, r, r->in_place ? t.want : src, t.want, ld);
    run(t.table, r, r->in_place ? got : src, got, ld);
    compare(n, got, what, r->rows, r->cols, r->align);
}

static bool is_wide(const struct row_case *r)
{
    return (r->rows / 4 + r->cols / 16) % 2 > 0;
}

/* The ways to walk rows in turn. */
static struct heed_softmax_task softmax_task(const struct row_case *r, const float *src, float *dst, size_t ld)
{
    static const size_t write_ahead[] = {0, 64, HEED_PAST_CACHES};
    return (struct heed_softmax_task){.rows = r->rows,
                                      .cols = r->cols,
                                      .src = src,
                                      .ld_src = ld,
                                      .dst = dst,
                                      .ld_dst = ld,
                                      .write_ahead = write_ahead[r->in_place ? 0 : (r->rows + r->cols / 2) % 3],
                                      .in_order = (r->rows + r->cols / 16) % 2 > 0,
                                      .far = (r->rows + r->cols / 4) % 2 > 0 ? 100 : 0,
                                      .wide_core = is_wide(r),
                                      .scale = 1.0f};
}

static void run_softmax(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                        size_t ld)
{
    const struct heed_softmax_task task = softmax_task(r, src, dst, ld);
    kernels->softmax(&task);
}

static void run_log_softmax(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                            size_t ld)
{
    struct heed_softmax_task task = softmax_task(r, src, dst, ld);
    task.logarithm = true;
    kernels->softmax(&task);
}

/* A fifth of a mask; and of some all of its first row, which has no weight to give. */
static bool is_masked(const struct row_case *r, size_t i)
{
    return (i * 7 + r->cols) % 5 == 0 || (r->cols % 4 == 1 && i < r->cols);
}

/* Scales, masks and logarithms in turn; the mask's rows lie flush against a guard page, two of them to a head and two
 * heads to a sequence, each of which begins a little later. */
static struct heed_softmax_task masked_softmax_task(const struct row_case *r, const float *src, float *dst, size_t ld)
{
    unsigned variant = (unsigned)(r->cols + 3 * r->rows) % 6;
    size_t rows = r->rows < 2 ? r->rows : 2, head = r->rows > 2 ? 1 : 0,
           batch = r->rows > 0 ? (r->rows - 1) / 4 * 2 : 0;
    size_t masked = span(rows, r->cols, r->cols) + head + batch;
    float *additive = arena_place(&t.mask, masked, r->at_end);
    unsigned char *boolean = (unsigned char *)additive;
    struct heed_softmax_task task = softmax_task(r, src, dst, ld);
    task.scale = 0.7f;
    task.mask_rows = 2;
    task.mask_heads = 2;
    task.mask_head = 1;
    task.mask_batch = 2;
    task.mask_row = r->cols;
    task.logarithm = variant % 2;
    if (variant / 2 == 1) {
        for (size_t i = 0; i < masked; i++)
            additive[i] = is_masked(r, i) ? -__builtin_inff() : 0.25f * (float)(i % 9);
        task.mask_kind = HEED_KIND_ADDITIVE;
        task.mask = additive;
    } else if (variant / 2 == 2) {
        if (r->at_end)
            boolean += masked * (sizeof(float) - 1);
        for (size_t i = 0; i < masked; i++)
            boolean[i] = is_masked(r, i) ? 0 : (unsigned char)(1 + i % 255);
        task.mask_kind = HEED_KIND_BOOLEAN;
        task.mask = boolean;
    }
    return task;
}

static void run_masked_softmax(const struct heed_kernels *kernels, const struct row_case *r, const float *src,
                               float *dst, size_t ld)
{
    const struct heed_softmax_task task = masked_softmax_task(r, src, dst, ld);
    kernels->softmax(&task);
}

/* Row by row in two parts, of which the second one comes first. */
static void softmax_in_parts(const struct heed_kernels *kernels, const struct heed_softmax_task *task, size_t row)
{
    enum { MOST = 8 };
    size_t cols = task->cols, blocks = (cols + HEED_REDUCTION_BLOCK - 1) / HEED_REDUCTION_BLOCK, half = blocks / 2;
    size_t from = half * HEED_REDUCTION_BLOCK;
    float sums[MOST], sum = 0.0f, max = kernels->softmax_max(task, row, from, cols - from);
    if (!check_that(blocks <= MOST, "%zu blocks", blocks))
        return;
    if (half > 0) {
        float first = kernels->softmax_max(task, row, 0, from);
        max = first > max ? first : max;
    }
    kernels->softmax_exps(task, row, from, cols - from, max, sums + half);
    if (half > 0)
        kernels->softmax_exps(task, row, 0, from, max, sums);
    for (size_t b = 0; b < blocks; b++)
        sum += sums[b];
    kernels->softmax_end(task, row, from, cols - from, max, sum);
    if (half > 0)
        kernels->softmax_end(task, row, 0, from, max, sum);
}

/* The oracle computes rows whole. */
static void run_softmax_parts(const struct heed_kernels *kernels, const struct row_case *r, const float *src,
                              float *dst, size_t ld)
{
    struct heed_softmax_task task = masked_softmax_task(r, src, dst, ld);
    if ((r->rows + r->cols / 2) % 3 == 0) {
        task.scale = 1.0f;
        task.mask_kind = HEED_KIND_UNMASKED;
    }
    if (dst == t.want)
        kernels->softmax(&task);
    for (size_t row = 0; dst != t.want && row < r->rows && r->cols > 0; row++)
        softmax_in_parts(kernels, &task, row);
}

/* The options and ways to walk in turn; where there is a residual, its sum goes to its own place or nowhere, and mean
 * and inverse into the last two columns where there are so many. */
static struct heed_norm_task norm_task(const struct row_case *r, const float *src, float *dst, size_t ld)
{
    struct heed_norm_task task = {
        .rows = r->rows, .cols = r->cols, .x = src, .ldx = ld, .eps = 1e-5f, .y = dst, .ldy = ld};
    unsigned options = (unsigned)(r->cols + r->rows) % 8;
    task.write_ahead = r->cols % 3 == 0 ? 256 : r->rows % 2 ? HEED_PAST_CACHES : 0;
    task.in_order = r->cols % 3 == 1;
    task.far = (r->cols / 3 + r->rows) % 2 ? 100 : 0;
    task.wide_core = is_wide(r);
    if (options & 1)
        task.scale = arena_place(&t.extra, r->cols, r->at_end);
    if (options & 2)
        task.shift = t.extra.begin;
    if (options & 4) {
        task.residual = arena_place(&t.b, r->rows * r->cols, r->at_end);
        task.ld_residual = r->cols;
    }
    return task;
}

static void run_layernorm(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                          size_t ld)
{
    const struct heed_norm_task task = norm_task(r, src, dst, ld);
    kernels->layernorm(&task);
}

static void run_rmsnorm(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                        size_t ld)
{
    const struct heed_norm_task task = norm_task(r, src, dst, ld);
    kernels->rmsnorm(&task);
}

/* The first half of the columns is normalised. A sum goes behind all results, its rows further apart than theirs if
 * there is room; means and inverses go to the first column of dst. */
static void run_norm_outputs(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                             size_t ld)
{
    float mean[ROWS_OF_BATCHES] = {0.0f}, inverse[ROWS_OF_BATCHES] = {0.0f}, root[ROWS_OF_BATCHES] = {0.0f};
    struct row_case half = *r;
    half.cols = r->cols / 2;
    if (half.cols == 0 || r->rows == 0 || r->in_place)
        return;
    struct heed_norm_task task = norm_task(&half, src, dst, ld);
    if (task.residual) {
        task.ldy = half.cols;
        task.sum = dst + r->rows * half.cols;
        task.ld_sum = half.cols + (ld > 2 * half.cols ? 1 : 0);
    }
    task.mean = mean;
    task.inverse = inverse;
    kernels->layernorm(&task);
    task.inverse = root;
    kernels->rmsnorm(&task);
    for (size_t i = 0; i < r->rows; i++)
        dst[i * ld] = mean[i] + 3.0f * inverse[i] + 5.0f * root[i];
}

enum { TURNS_AT_MOST = 9, LONGEST_TURN = 2561, TURNS_FLOATS = TURNS_AT_MOST * (LONGEST_TURN + 16) };

/* Norms with all factors, as on Zen 5, where rows go in turns: an odd number of them with a residual; sums take the
 * place of the results, one of their own, or that of x or of the residual. Rows without a residual that have gaps go in
 * memory's order, and two of four past the caches. Sums, means and inverses change the first column of dst. */
static void run_turns(void (*norm)(const struct heed_norm_task *), const struct row_case *r, const float *src,
                      float *dst, size_t ld)
{
    static float sums[TURNS_FLOATS], residual[TURNS_FLOATS], x[TURNS_FLOATS];
    float mean[TURNS_AT_MOST] = {0.0f}, inverse[TURNS_AT_MOST] = {0.0f};
    struct heed_norm_task task = norm_task(r, src, dst, ld);
    task.wide_core = true;
    task.far = 0;
    task.scale = arena_place(&t.extra, r->cols, r->at_end);
    task.shift = t.extra.begin;
    task.residual = NULL;
    task.in_order = r->gap > 0 && r->rows % 2 == 0;
    task.write_ahead = r->rows % 4 == 2 ? HEED_PAST_CACHES : 0;
    if (r->rows % 2) {
        float *const places[] = {NULL, sums, x, residual};
        task.residual = residual;
        task.ld_residual = task.ld_sum = ld;
        memcpy(residual, t.b.begin, span(r->rows, r->cols, ld) * sizeof(float));
        task.sum = places[(r->rows / 2 + r->cols) % COUNT(places)];
        if (task.sum == x) {
            memcpy(x, src, span(r->rows, r->cols, ld) * sizeof(float));
            task.x = x;
        }
    }
    task.mean = mean;
    task.inverse = inverse;
    norm(&task);
    for (size_t i = 0; i < r->rows; i++)
        dst[i * ld] += (task.sum ? task.sum[i * ld + r->cols - 1] : 0.0f) + mean[i] + 3.0f * inverse[i];
}

static void run_layernorm_turns(const struct heed_kernels *kernels, const struct row_case *r, const float *src,
                                float *dst, size_t ld)
{
    run_turns(kernels->layernorm, r, src, dst, ld);
}

static void run_rmsnorm_turns(const struct heed_kernels *kernels, const struct row_case *r, const float *src,
                              float *dst, size_t ld)
{
    run_turns(kernels->rmsnorm, r, src, dst, ld);
}

/* Rows that go as many at once as a vector has lanes (norm_squares.inc), near, far, or written ahead, with both
 * factors, one, or none. */
static void run_squares(void (*norm)(const struct heed_norm_task *), const struct row_case *r, const float *src,
                        float *dst, size_t ld)
{
    float mean[ROWS_OF_BATCHES] = {0.0f}, inverse[ROWS_OF_BATCHES] = {0.0f};
    const float *factors = arena_place(&t.extra, r->cols, r->at_end);
    const size_t kind = (r->cols / 3 + r->rows) % 8;
    const struct heed_norm_task task = {.rows = r->rows,
                                        .cols = r->cols,
                                        .x = src,
                                        .ldx = ld,
                                        .scale = kind & 1 ? factors : NULL,
                                        .shift = kind & 2 ? factors : NULL,
                                        .eps = 1e-5f,
                                        .y = dst,
                                        .ldy = ld,
                                        .mean = mean,
                                        .inverse = inverse,
                                        .write_ahead = kind == 6 ? 256 : 0,
                                        .far = kind & 4 ? 100 : 0};
    norm(&task);
    for (size_t i = 0; i < r->rows; i++)
        dst[i * ld] += mean[i] + 3.0f * inverse[i];
}

static void run_layernorm_squares(const struct heed_kernels *kernels, const struct row_case *r, const float *src,
                                  float *dst, size_t ld)
{
    run_squares(kernels->layernorm, r, src, dst, ld);
}

static void run_rmsnorm_squares(const struct heed_kernels *kernels, const struct row_case *r, const float *src,
                                float *dst, size_t ld)
{
    run_squares(kernels->rmsnorm, r, src, dst, ld);
}

static void run_l2_normalize(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                             size_t ld)
{
    const struct heed_norm_task task = {.rows = r->rows,
                                        .cols = r->cols,
                                        .x = src,
                                        .ldx = ld,
                                        .eps = r->cols % 4 ? 1e-12f : 3.0f,
                                        .y = dst,
                                        .ldy = ld,
                                        .wide_core = is_wide(r)};
    kernels->l2_normalize(&task);
}

/* RMSNorm without a scale, and the L2 norm. */
static void run_plain_turns(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                            size_t ld)
{
    struct heed_norm_task task = {.rows = r->rows, .cols = r->cols, .x = src, .ldx = ld, .y = dst, .ldy = ld};
    task.eps = 1e-5f;
    task.wide_core = true;
    (r->rows % 2 ? kernels->rmsnorm : kernels->l2_normalize)(&task);
}

static size_t ahead_of(const struct row_case *r)
{
    return (r->rows + r->cols) % 2 ? HEED_PAST_CACHES : 256;
}

static void run_relu(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                     size_t ld)
{
    kernels->activate(HEED_KIND_RELU, r->rows, r->cols, src, ld, dst, ld, ahead_of(r), is_wide(r));
}

static void run_gelu_erf(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                         size_t ld)
{
    kernels->activate(HEED_KIND_GELU_ERF, r->rows, r->cols, src, ld, dst, ld, ahead_of(r), is_wide(r));
}

static void run_gelu_tanh(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                          size_t ld)
{
    kernels->activate(HEED_KIND_GELU_TANH, r->rows, r->cols, src, ld, dst, ld, ahead_of(r), is_wide(r));
}

static void run_silu(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                     size_t ld)
{
    kernels->activate(HEED_KIND_SILU, r->rows, r->cols, src, ld, dst, ld, ahead_of(r), is_wide(r));
}

static void run_gated(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                      size_t ld)
{
    enum heed_activation_kind kind = (enum heed_activation_kind)(r->cols % (HEED_KIND_SILU + 1));
    size_t ld_up = r->cols + r->rows % 2;
    const float *up = arena_place(&t.b, span(r->rows, r->cols, ld_up), r->at_end);
    kernels->activate_gated(kind, r->rows, r->cols, src, ld, up, ld_up, dst, ld, ahead_of(r), is_wide(r));
}

static void run_mean_rows(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                          size_t ld)
{
    if (!r->in_place && r->rows > 0)
        kernels->mean_rows(r->rows, r->cols, src, ld, 0.3f, dst);
}

/* Rows are heads; dims, pairs and the guard side of the tables change with the case. */
static void run_rotary(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                       size_t ld)
{
    size_t half = r->cols / 2 - (r->cols / 2) * (r->rows % 3) / 4;
    struct heed_rotary_task task = {
        false, r->rows, 2 * half, r->cols, arena_place(&t.b, half, r->at_end), arena_place(&t.extra, half, r->at_end),
        src,   ld,      dst,      ld};
    task.interleaved = (r->cols / 2 + r->rows) % 2;
    kernels->rotary(&task);
}

static void run_max_rows(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                         size_t ld)
{
    if (!r->in_place && r->rows > 0)
        kernels->max_rows(r->rows, r->cols, src, ld, dst);
}

/* Indices as floats; k changes with the case. */
static void run_top_k(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                      size_t ld)
{
    size_t index[10000], k = 1 + (r->cols + r->rows) % (r->cols < 70 ? r->cols : 70);
    for (size_t i = 0; i < r->rows; i++) {
        kernels->top_k(r->cols, k, src + i * ld, index);
        for (size_t j = 0; j < k; j++)
            dst[i * ld + j] = (float)index[j];
    }
}

static void run_sum_rows(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                         size_t ld)
{
    const float *rows[] = {src, t.b.begin, src + (r->rows > 1 ? ld : 0)};
    if (r->rows > 0)
        kernels->sum_rows(1 + r->cols % 3, rows, r->cols, dst);
}

static void run_argmax(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                       size_t ld)
{
    for (size_t i = 0; i < r->rows; i++)
        dst[i * ld] = (float)kernels->argmax(r->cols, src + i * ld);
}

static void run_vexp(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                     size_t ld)
{
    (void)ld;
    if (r->rows > 0)
        kernels->vexp(r->cols, src, dst);
}

/* Most of positive numbers. */
static void run_vlog(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                     size_t ld)
{
    float *x = r->in_place ? dst : arena_place(&t.mask, r->cols, r->at_end);
    (void)ld;
    for (size_t i = 0; r->rows > 0 && i < r->cols; i++)
        x[i] = i % 8 == 5 ? src[i] : fabsf(src[i]);
    if (r->rows > 0)
        kernels->vlog(r->cols, x, dst);
}

static void run_vtanh(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                      size_t ld)
{
    (void)ld;
    if (r->rows > 0)
        kernels->vtanh(r->cols, src, dst);
}

static void run_vexp2(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst,
                      size_t ld)
{
    float negative[LONGEST_SWEEP + 1];
    (void)ld;
    if (r->rows == 0 || r->cols > LONGEST_SWEEP)
        return;
    for (size_t i = 0; i < r->cols; i++)
        negative[i] = -30.0f * src[i] * src[i];
    kernels->vexp2(r->cols, negative, dst);
}

static const struct {
    const char *name;
    void (*run)(const struct heed_kernels *kernels, const struct row_case *r, const float *src, float *dst, size_t ld);
} row_kernels[] = {
    {"softmax", run_softmax},
    {"log_softmax", run_log_softmax},
    {"masked softmax", run_masked_softmax},
    {"softmax in parts", run_softmax_parts},
    {"layernorm", run_layernorm},
    {"rmsnorm", run_rmsnorm},
    {"norm outputs", run_norm_outputs},
    {"l2_normalize", run_l2_normalize},
    {"relu", run_relu},
    {"gelu erf", run_gelu_erf},
    {"gelu tanh", run_gelu_tanh},
    {"silu", run_silu},
    {"activate_gated", run_gated},
    {"mean_rows", run_mean_rows},
    {"rotary", run_rotary},
    {"max_rows", run_max_rows},
    {"top_k", run_top_k},
    {"sum_rows", run_sum_rows},
    {"argmax", run_argmax},
    {"vexp", run_vexp},
    {"vlog", run_vlog},
    {"vtanh", run_vtanh},
    {"vexp2", run_vexp2},
};

static void sweep_row_kernel(size_t index)
{
    /* 2060, 2076, 2559, 2564, 3572 and 3588: norms neither in order nor with a residual, all but 2559 LayerNorm with
     * scale and shift; 2060 to 2564 but for 2076 as on Zen 5 */
    static const size_t edges[] = {255,  256,  257,  511,  513,  768,  769,  1000, 1535, 1536, 1537, 2060, 2076,
                                   2559, 2564, 3072, 3073, 3572, 3588, 4095, 4096, 4097, 8191, 8192, 8193, 9000};
    static const size_t batched[] = {1, 2, 15, 16, 32, 47, 50, 65, 100, 128, 192};
    for (size_t cols = 1; cols <= sweep_end(); cols++) {
        for (size_t rows = 0; rows <= ROWS_AT_MOST; rows++)
            for (int at_end = 0; at_end <= 1; at_end++)
                check_rows(&(struct row_case){rows, cols, (rows + cols) % 3, 0, at_end, (cols + rows) % 5 == 0},
                           row_kernels[index].name, row_kernels[index].run);
        for (size_t align = 1; align < 16; align += step(1, 5))
            check_rows(&(struct row_case){2, cols, align % 3, align, 0, 0}, row_kernels[index].name,
                       row_kernels[index].run);
    }
    for (size_t align = 1; align < 16; align += step(1, 5)) /* long enough for stores to be aligned */
        check_rows(&(struct row_case){3, 250 + 3 * align, align % 3, align, 0, 0}, row_kernels[index].name,
                   row_kernels[index].run);
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        for (size_t rows = ROWS_AT_MOST - 4; rows <= ROWS_AT_MOST; rows += 4)
            check_rows(&(struct row_case){rows, edges[i], i % 2, 0, i & 1, i % 3 == 0}, row_kernels[index].name,
                       row_kernels[index].run);
    for (size_t i = 0; i < sizeof batched / sizeof *batched; i++)
        for (size_t rows = ROWS_OF_BATCHES - 3; rows <= ROWS_OF_BATCHES; rows++)
            check_rows(&(struct row_case){rows, batched[i], i % 2, 0, i & 1, (i + rows) % 3 == 0},
                       row_kernels[index].name, row_kernels[index].run);
}

/* NaN of any bits, which integers may take for numbers. */
static float nan_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A softmax in place of rows that have one such score. */
static void check_deep_rows_in_place(size_t rows, size_t n, size_t at, float score)
{
    const struct row_case r = {rows, n, 0, 0, 0, 1};
    float *got = prepare(rows * n, 0);
    got[at] = t.want[at] = score;
    run_softmax(t.oracle, &r, t.want, t.want, n);
    run_softmax(t.table, &r, got, got, n);
    compare(rows * n, got, "softmax of deep rows in place", rows, n, at);
}

/* Rows whose scores go so deep below the largest one that exponentials are subnormal, 0 or NaN, among such whose do
 * not: one of each batch, at its begin, in it, or at its end. */
static void sweep_deep_rows(void)
{
    const float deep[] = {-86.5f,
                          -87.5f,
                          -95.0f,
                          -103.5f,
                          -104.5f,
                          -3e38f,
                          -INFINITY,
                          INFINITY,
                          NAN,
                          88.0f,
                          nan_of_bits(0x7fc00155),
                          nan_of_bits(0xffc001fe)};
    static const size_t cols[] = {1, 2, 7, 8, 9, 17, 33, 63, 64, 65, 100, 300, 1000, 4096, 4100, 9000};
    for (size_t i = 0; i < COUNT(cols); i++)
        for (size_t d = is_left_out(i, 2) ? 1 : 0; d < COUNT(deep); d += step(1, 2))
            for (size_t rows = 1; rows <= ROWS_AT_MOST; rows += 5) {
                size_t n = cols[i], row = d % rows, gap = d % 3, at_end = d % 2, all = span(rows, n, n + gap);
                size_t at = (3 * d + rows) % n;
                float *score = arena_place(&t.a, all, (int)at_end) + row * (n + gap) + at;
                float before = *score;
                *score = deep[d];
                const struct row_case r = {rows, n, gap, 0, (int)at_end, 0};
                check_rows(&r, "softmax of deep rows", run_softmax);
                check_rows(&r, "log_softmax of deep rows", run_log_softmax);
                check_rows(&r, "masked softmax of deep rows", run_masked_softmax);
                *score = before;
                check_deep_rows_in_place(rows, n, row * n + at, deep[d]);
            }
}

/* The second of three rows has a score that its maximum forgets, for a NaN of any bits that comes later in its lane, so
 * that exponentials are of numbers far above 0. */
static void sweep_forgotten_maxima(void)
{
    const float largest[] = {20.0f, 300.0f, 1e6f, 5e6f, 1e9f, 3e38f, INFINITY};
    static const uint32_t nans[] = {0x7fc00000, 0x7fc00001, 0x7fc00155, 0xffc001fe, 0x7f800155};
    static const size_t cols[] = {9, 17, 40, 96, 4096, 9000}, lanes[] = {4, 8, 16, HEED_LANES, 2 * HEED_LANES};
    for (size_t i = 0; i < COUNT(cols) * COUNT(largest) * COUNT(nans); i += step(1, 11)) {
        const size_t n = cols[i % COUNT(cols)], lane = lanes[i % COUNT(lanes)], at = lane < n ? lane : 4;
        const float large = largest[i / COUNT(cols) % COUNT(largest)];
        float *score = arena_place(&t.a, 3 * n, 0) + n;
        const float before[] = {score[0], score[at]};
        score[0] = large;
        score[at] = nan_of_bits(nans[i % COUNT(nans)]);
        const struct row_case r = {3, n, 0, 0, 0, 0};
        check_rows(&r, "softmax of forgotten maxima", run_softmax);
        check_rows(&r, "log_softmax of forgotten maxima", run_log_softmax);
        check_rows(&r, "masked softmax of forgotten maxima", run_masked_softmax);
        score[0] = before[0];
        score[at] = before[1];
    }
}

static void sweep_norm_turns(void)
{
    static const size_t cols[] = {95,  96,  97,  112, 128, 160, 175, 319,  320,  321,  447,  448,  449,
                                  500, 512, 528, 800, 959, 960, 992, 1024, 1025, 2047, 2048, 2560, LONGEST_TURN};
    for (size_t i = 0; i < COUNT(cols); i++)
        for (size_t rows = 3; rows <= TURNS_AT_MOST; rows++)
            for (unsigned kind = 0; kind < 8; kind++) {
                const struct row_case r = {rows,      cols[i], kind & 1 ? 16 : 0, kind & 2 ? 1 + kind % 3 * 7 : 0,
                                           kind == 4, kind > 4};
                check_rows(&r, "LayerNorm in turns", run_layernorm_turns);
                check_rows(&r, "RMSNorm in turns", run_rmsnorm_turns);
                check_rows(&r, "norms in turns", run_plain_turns);
            }
}

/* Every rest of columns of every number of vectors, of whole squares, some rows more, and several batches. */
static void sweep_norm_squares(void)
{
    static const size_t rows[] = {4, 8, 13, ROWS_OF_BATCHES};
    for (size_t cols = 1; cols <= 17 * 8; cols++)
        for (size_t i = 0; i < COUNT(rows); i++) {
            const struct row_case r = {rows[i], cols, cols % 3, 0, (int)(cols % 2), cols % 5 == 0};
            check_rows(&r, "LayerNorm in squares", run_layernorm_squares);
            check_rows(&r, "RMSNorm in squares", run_rmsnorm_squares);
        }
}

/* ---- attention ---- */

struct attention_case {
    size_t rows, keys, head_dim, value_dim;
    /* bits 0-1 causal kind, 2-3 mask kind, 4 map, 5 guard side, 6 interleaved strides, 7 window, 8 softcap, 9 slopes,
     * sinks and log-sum-exp, 10 rows are heads of one query, 11 pages that lie in another order, and with 6 end within
     * a block */
    unsigned options;
    float scale; /* 0: the options choose it, and what is foreseen; else that is all there can be */
};

static void shape_attention(struct heed_attention_task *task, const struct attention_case *c)
{
    static const float factors[64] = {0.5f, -0.25f, 0.125f, 2.0f, 0.0f, -INFINITY, -1.0f};
    if (c->options & 128) {
        ptrdiff_t first = task->diagonal - (ptrdiff_t)(c->keys / 2);
        task->windowed = true;
        task->oldest = first;
        task->first_block = first > 0 ? (size_t)first / HEED_KEY_BLOCK * HEED_KEY_BLOCK : 0;
    }
    if (c->options & 256) {
        task->cap = 3.0f;
        task->cap_slope = 0.3f;
    }
    task->queries = c->options & 1024 ? 1 : 0;
    task->q_head = task->q_row;
    task->out_head = task->out_row;
    task->map_head = task->map_row;
    if (c->options & 512) {
        task->slopes = factors;
        task->sinks = factors + 1;
        task->position = task->diagonal;
    }
}

static void set_attention_mask(struct heed_attention_task *task, const struct attention_case *c, unsigned char *boolean)
{
    unsigned kind = c->options >> 2 & 3;
    task->mask_head = task->mask_row = c->keys + (c->options >> 6 & 1);
    if (kind == 1) {
        task->mask_kind = HEED_KIND_ADDITIVE;
        task->mask = t.extra.begin;
    } else if (kind == 2) {
        task->mask_kind = HEED_KIND_BOOLEAN;
        task->mask = boolean;
    }
}

static void set_attention_pages(struct heed_attention_task *task, const struct attention_case *c, int at_end)
{
    enum { PAGES = 6 };
    static const int32_t pages[PAGES] = {2, 0, 3, 5, 4, 1};
    size_t width = (c->value_dim + 15) / 16 * 16, page_keys = c->options & 64 ? 272 : 512;
    task->pages = pages;
    task->page_keys = page_keys;
    task->page_floats = page_keys * (c->head_dim + width);
    if (!check_that(c->keys <= PAGES * page_keys, "%zu keys in %d pages", c->keys, PAGES))
        return;
    const float *begin = arena_place(&t.b, PAGES * task->page_floats, at_end);
    task->k = heed_panels_packed(begin, c->head_dim);
    task->v = heed_panels_in_place(begin + page_keys * c->head_dim, width);
}

/* The blocks one by one, the last one first, and then folded: what attention gave. */
static void check_attention_parts(const struct attention_case *c, struct heed_attention_task *task, float *out,
                                  size_t out_floats, size_t sum_floats)
{
    enum { MOST = 1 << 16 };
    static float partial[MOST];
    size_t blocks = (c->keys + HEED_KEY_BLOCK - 1) / HEED_KEY_BLOCK;
    size_t floats = heed_attention_partial(c->rows, c->value_dim, blocks);
    if (!check_that(floats <= MOST, "%zu floats of partial results", floats))
        return;
    task->partial = partial + MOST - floats;
    task->out = out;
    task->log_sum = sum_floats ? out + out_floats : NULL;
    for (size_t block = blocks; block-- > task->first_block / HEED_KEY_BLOCK;) {
        size_t end = (block + 1) * HEED_KEY_BLOCK;
        t.table->attention_blocks(task, block * HEED_KEY_BLOCK, end < c->keys ? end : c->keys);
    }
    for (size_t i = 0; i < c->rows; i++)
        for (size_t d = 0; d < c->value_dim; d++)
            out[i * task->out_row + d] = NAN;
    t.table->attention_fold(task);
    compare(out_floats + sum_floats, out, "attention by parts", c->rows, c->keys, c->options);
}

/* References pass 2^22, and products of a score and it are rounded. */
#define LARGE_SCALE 0x1.6a09e6p24f

static void check_attention(const struct attention_case *c)
{
    static unsigned char boolean[40 * 1200];
    static const float scales[] = {0.7f, LARGE_SCALE, 0.7f, -0.7f, 0.7f, 0.0f, 0.7f};
    int at_end = c->options >> 5 & 1;
    size_t gap = c->options >> 6 & 1, padded_keys = (c->keys + 15) / 16 * 16, width = (c->value_dim + 15) / 16 * 16;
    size_t out_row = c->value_dim + gap, out_floats = span(c->rows, c->value_dim, out_row);
    size_t map_row = c->keys + 2, map_floats = c->options & 16 ? span(c->rows, c->keys + 1, map_row) : 0;
    struct heed_attention_task task = {
        .rows = c->rows,
        .head_dim = c->head_dim,
        .value_dim = c->value_dim,
        .q = arena_place(&t.a, span(c->rows, c->head_dim, c->head_dim + gap), at_end),
        .q_row = c->head_dim + gap,
        .k = heed_panels_packed(arena_place(&t.b, padded_keys * c->head_dim, at_end), c->head_dim),
        .v = heed_panels_packed(t.b.begin, c->keys),
        .heads = 1,
        .keys = c->keys,
        .causal = (c->options & 3) != 0,
        .scale_log2e = c->scale != 0.0f ? c->scale : scales[c->options % 7],
        .out_row = out_row,
        .map_row = map_row,
        .map_cols = c->keys + 1,
    };
    if (c->value_dim % 16 == 0 && gap)
        task.v = heed_panels_in_place(arena_place(&t.b, span(c->keys, width, width + 3), at_end), width + 3);
    if (c->options & 2048)
        set_attention_pages(&task, c, at_end);
    task.k.hw_prefetched_rows = task.v.hw_prefetched_rows =
        c->scale != 0.0f ? HEED_HW_PREFETCHED_TALLEST : hw_prefetched[c->options % 5];
    task.k.from_memory = task.v.from_memory = c->options % 5 == 4;
    task.k.prefetch_l1 = task.v.prefetch_l1 = c->options % 11 > 6;
    if (task.k.prefetch_l1)
        task.k.hw_prefetched_rows = task.v.hw_prefetched_rows = HEED_ATTENTION_ROWS;
    task.diagonal = (c->options & 3) == 1 ? 0 : (c->options & 3) == 2 ? (ptrdiff_t)c->keys - (ptrdiff_t)c->rows : -2;
    for (size_t i = 0; i < sizeof boolean; i++)
        boolean[i] = random_below(4) != 0;
    set_attention_mask(&task, c, boolean);
    shape_attention(&task, c);

    size_t sum_floats = c->options & 512 ? c->rows : 0;
    size_t scratch = heed_attention_scratch(c->head_dim, c->value_dim, c->keys, map_floats > 0);
    float *out = prepare(out_floats + map_floats + sum_floats, at_end);
    task.scratch = arena_place(&t.extra, scratch, 1);
    task.out = out;
    task.map = map_floats ? out + out_floats : NULL;
    task.log_sum = sum_floats ? out + out_floats + map_floats : NULL;
    task.log_sum_row = task.log_sum_head = 1;
    t.table->attention(&task);
    task.out = t.want;
    task.map = map_floats ? t.want + out_floats : NULL;
    task.log_sum = sum_floats ? t.want + out_floats + map_floats : NULL;
    t.oracle->attention(&task);
    compare(out_floats + map_floats + sum_floats, out, "attention", c->rows, c->keys,
            c->head_dim * 1000 + c->value_dim);
    if (map_floats == 0)
        check_attention_parts(c, &task, out, out_floats, sum_floats);
}

static void sweep_attention(void)
{
    unsigned options = 0;
    size_t most_rows = 2 * t.table->mr + 1;
    for (size_t rows = 0; rows <= most_rows; rows++)
        for (size_t keys = 0; keys <= sweep_end(); keys += step(1, 5), options += 37)
            check_attention(&(struct attention_case){rows, keys, 5, 6, options & 2047, 0.0f});
    for (size_t keys = 0; keys <= sweep_end(); keys += step(3, 9))
        for (size_t dim = 0; dim <= sweep_end(); dim += step(3, 9), options += 37) {
            check_attention(&(struct attention_case){3, keys, dim, 16, options & 2047, 0.0f});
            check_attention(&(struct attention_case){3, keys, 8, dim, options & 2047, 0.0f});
        }
    for (size_t rows = 0; rows <= most_rows; rows += step(1, 4))
        for (size_t dim = 0; dim <= sweep_end(); dim += step(2, 13), options += 37)
            check_attention(&(struct attention_case){rows, 37, dim, dim, options & 2047, 0.0f});
    static const size_t edges[] = {255, 256, 257, 300, 511, 512, 513, 767, 768, 769, 1025};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        for (options = 0; options < 2048; options += (unsigned)step(5, 37))
            check_attention(&(struct attention_case){t.table->mr + 2, edges[i], 8, 16, options, 0.0f});
}

/* Few rows by several blocks of keys, whose values are as wide as some tiles and wider. */
static void sweep_attention_foreseen(void)
{
    static const size_t lengths[] = {512, 1024, 1300, 1535}, dims[] = {16, 40, 77, 112, 128, 144};
    unsigned options = 0;
    for (size_t rows = 1; rows <= HEED_HW_PREFETCHED_TALLEST + 1; rows++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (size_t j = 0; j < sizeof dims / sizeof *dims; j++)
                for (size_t turn = 0; turn < step(12, 1); turn++, options += 37)
                    check_attention(&(struct attention_case){rows, lengths[i], 5, dims[j], options & 4095, 0.0f});
}

/* Of these, those whose scores become weights at once: all numbers of rows and blocks that go together. */
static void sweep_attention_together(void)
{
    static const size_t lengths[] = {512, 768, 1024, 1792};
    static const unsigned kinds[] = {0, 2, 64, 2048};
    for (size_t rows = 1; rows <= HEED_HW_PREFETCHED_TALLEST; rows++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++) {
                if (is_left_out(rows + i + j, 3))
                    continue;
                check_attention(&(struct attention_case){rows, lengths[i], 5, 16, kinds[j], 0.7f});
                check_attention(&(struct attention_case){rows, lengths[i], 5, 16, kinds[j], LARGE_SCALE});
            }
}

/* ---- all ---- */

static bool is_oracle_of_others(void)
{
    for (size_t i = 0; i < heed_level_count(); i++) {
        struct heed_level level = heed_level_at(i);
        if (level.runnable && level.kernels != t.oracle && oracle_of(level.kernels) == t.oracle)
            return true;
    }
    return false;
}

static void test_table(const struct heed_kernels *table)
{
    size_t before = checks_made();
    t.table = table;
    t.oracle = oracle_of(table);
    if (!t.oracle) {
        skip("no scalar table of its class runs here", "%s against the scalar table", table->name);
        return;
    }
    if (quick() && t.oracle == table && is_oracle_of_others()) {
        note("table %s: others are checked against it", table->name);
        return;
    }
    seed(1);
    t.a = arena_make(ARENA_FLOATS);
    t.b = arena_make(ARENA_FLOATS);
    t.got = arena_make(ARENA_FLOATS);
    t.extra = arena_make(ARENA_FLOATS);
    t.mask = arena_make(ARENA_FLOATS);
    t.want = buffer(ARENA_FLOATS, 1);
    struct arena *inputs[] = {&t.a, &t.b, &t.extra};
    for (int i = 0; i < 3; i++) {
        fill_uniform(inputs[i]->begin, ARENA_FLOATS, -2.0f, 2.0f);
        memcpy(inputs[i]->end - ARENA_FLOATS, inputs[i]->begin, ARENA_FLOATS * sizeof(float));
    }
    begin("%s: gemm, every size", table->name);
    sweep_gemm_sizes();
    end_sweep();
    begin("%s: gemm, few columns", table->name);
    sweep_gemm_few_columns();
    sweep_gemm_eights();
    sweep_gemm_row();
    sweep_gemm_row_by_runs();
    sweep_gemm_copied();
    sweep_gemm_short_column();
    end_sweep();
    begin("%s: gemm, few steps", table->name);
    sweep_gemm_flat();
    sweep_gemm_outer();
    sweep_gemm_parted();
    end_sweep();
    begin("%s: gemm, strips", table->name);
    sweep_gemm_strips();
    end_sweep();
    begin("%s: gemm, rows from afar", table->name);
    sweep_gemm_afar();
    sweep_gemm_rows_below();
    end_sweep();
    begin("%s: gemm, narrow", table->name);
    sweep_gemm_narrow();
    sweep_gemm_halved();
    end_sweep();
    begin("%s: gemm, looking ahead", table->name);
    sweep_gemm_ahead();
    end_sweep();
    begin("%s: gated gemm", table->name);
    sweep_gated();
    end_sweep();
    begin("%s: gemm, every alignment", table->name);
    sweep_gemm_alignments();
    end_sweep();
    begin("%s: few rows by a transposed b", table->name);
    sweep_gemm_few();
    end_sweep();
    begin("%s: few columns by a transposed a", table->name);
    sweep_gemm_tn();
    end_sweep();
    begin("%s: pack and transpose", table->name);
    sweep_packing();
    end_sweep();
    for (size_t i = 0; i < sizeof row_kernels / sizeof *row_kernels; i++) {
        begin("%s: %s", table->name, row_kernels[i].name);
        sweep_row_kernel(i);
        end_sweep();
    }
    begin("%s: softmax of deep rows", table->name);
    sweep_deep_rows();
    sweep_forgotten_maxima();
    end_sweep();
    begin("%s: norms in turns", table->name);
    sweep_norm_turns();
    end_sweep();
    begin("%s: norms in squares", table->name);
    sweep_norm_squares();
    end_sweep();
    begin("%s: attention", table->name);
    sweep_attention();
    end_sweep();
    begin("%s: attention, foreseen", table->name);
    sweep_attention_foreseen();
    sweep_attention_together();
    end_sweep();
    note("table %s: %zu checks against %s", table->name, checks_made() - before, t.oracle->name);
}

int main(void)
{
    for_each_table(test_table);
    return finish();
}
