/* SPDX-License-Identifier: MIT
 * Golden hashes: the bits of every kernel, of the operators beyond them and of a whole encoder, for
 * both classes. A hash changes only by decision, with the reason in CHANGELOG.md.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 5, COLS = 4133, LONG_COLS = 9001, M = 13, N = 75, K = 130 };

static float *random_floats(size_t n, float low, float high)
{
    float *x = buffer(n, 0);
    fill_uniform(x, n, low, high);
    return x;
}

static uint64_t hash_of(size_t n, const float *x)
{
    return hash_floats(HASH_START, n, x);
}

/* ---- kernels ---- */

static uint64_t golden_gemm(const struct heed_kernels *t)
{
    float *a = random_floats(M * K, -1.0f, 1.0f), *b = random_floats(80 * K, -1.0f, 1.0f), *c = buffer(M * N, 0);
    const struct heed_panels panels = heed_panels_packed(b, K);
    const struct heed_epilogue e = {
        .kind = HEED_EPILOGUE_LINEAR, .bias = a, .activation = HEED_KIND_GELU_ERF, .residual = b, .ld_residual = N};
    t->gemm(M, N, K, a, K, &panels, c, N, &e);
    return hash_of(M * N, c);
}

static uint64_t golden_gated_gemm(const struct heed_kernels *t)
{
    float *a = random_floats(M * K, -1.0f, 1.0f), *b = random_floats(160 * K, -1.0f, 1.0f), *c = buffer(M * N, 0);
    const struct heed_panels panels = heed_panels_packed(b, K);
    const struct heed_epilogue e = {.kind = HEED_EPILOGUE_GATED,
                                    .bias = a,
                                    .up_bias = b,
                                    .activation = HEED_KIND_SILU,
                                    .residual = b,
                                    .ld_residual = N};
    t->gemm(M, N, K, a, K, &panels, c, N, &e);
    return hash_of(M * N, c);
}

static uint64_t golden_gemm_few(const struct heed_kernels *t)
{
    float *a = random_floats(K * M, -1.0f, 1.0f), *b = random_floats(N * K, -1.0f, 1.0f), *c = buffer(M * N, 0);
    t->gemm_few(M, N, K, a, M, b, K, c, N, HEED_READ_PLAINLY, 0);
    return hash_of(M * N, c);
}

/* The same product, of which b was turned before. */
static uint64_t golden_gemm_tn(const struct heed_kernels *t)
{
    float *a = random_floats(K * M, -1.0f, 1.0f), *b = random_floats(N * K, -1.0f, 1.0f), *c = buffer(M * N, 0);
    float *rows = buffer(K * N, 0);
    t->transpose(N, K, b, K, rows, N);
    const struct heed_panels panels = heed_panels_in_place(rows, N);
    t->gemm_tn(M, N, K, a, M, &panels, c, N);
    return hash_of(M * N, c);
}

static uint64_t golden_pack(const struct heed_kernels *t)
{
    float *b = random_floats(K * N, -1.0f, 1.0f), *packed_b = buffer(80 * K, 0);
    t->pack(true, HEED_PACK_PREFETCH_BELOW, N, K, b, K, packed_b);
    return hash_of(80 * K, packed_b);
}

static uint64_t golden_transpose(const struct heed_kernels *t)
{
    float *b = random_floats(K * N, -1.0f, 1.0f), *c = buffer(K * N, 0);
    t->transpose(K, N, b, N, c, K);
    return hash_of(K * N, c);
}

/* In place. */
static struct heed_softmax_task softmax_task(float *x)
{
    return (struct heed_softmax_task){.rows = ROWS,
                                      .cols = COLS,
                                      .src = x,
                                      .ld_src = COLS,
                                      .dst = x,
                                      .ld_dst = COLS,
                                      .scale = 1.0f,
                                      .mask_rows = ROWS,
                                      .mask_heads = 1,
                                      .mask_row = COLS};
}

static uint64_t golden_softmax(const struct heed_kernels *t)
{
    float *x = random_floats(ROWS * COLS, -30.0f, 30.0f);
    const struct heed_softmax_task task = softmax_task(x);
    t->softmax(&task);
    return hash_of(ROWS * COLS, x);
}

/* Every mask and scale, as softmax and its logarithm. */
static uint64_t golden_masked_softmax(const struct heed_kernels *t)
{
    float *x = random_floats(ROWS * COLS, -20.0f, 20.0f), *additive = random_floats(ROWS * COLS, -5.0f, 5.0f);
    float *y = buffer(ROWS * COLS, 0);
    unsigned char *boolean = guarded_bytes(ROWS * COLS, 0);
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < ROWS * COLS; i++) {
        boolean[i] = random_below(5) != 0;
        if (random_below(5) == 0)
            additive[i] = -__builtin_inff();
    }
    for (int variant = 0; variant < 8; variant++) {
        struct heed_softmax_task task = softmax_task(x);
        task.dst = y;
        task.scale = variant / 2 == 0 ? 1.0f : 0.37f;
        task.mask_kind = variant / 2 == 2   ? HEED_KIND_ADDITIVE
                         : variant / 2 == 3 ? HEED_KIND_BOOLEAN
                                            : HEED_KIND_UNMASKED;
        task.mask = variant / 2 == 2 ? (const void *)additive : boolean;
        task.logarithm = variant % 2;
        t->softmax(&task);
        hash = hash_floats(hash, ROWS * COLS, y);
    }
    return hash;
}

/* A row of two blocks and a part of a third, some of whose scores are masked. */
static struct heed_softmax_task long_softmax_task(float *y, bool logarithm)
{
    float *additive = random_floats(LONG_COLS, -5.0f, 5.0f);
    for (size_t i = 0; i < LONG_COLS; i += 5)
        additive[i] = -__builtin_inff();
    return (struct heed_softmax_task){.rows = 1,
                                      .cols = LONG_COLS,
                                      .src = random_floats(LONG_COLS, -20.0f, 20.0f),
                                      .ld_src = LONG_COLS,
                                      .dst = y,
                                      .ld_dst = LONG_COLS,
                                      .scale = 0.37f,
                                      .mask_kind = HEED_KIND_ADDITIVE,
                                      .mask = additive,
                                      .mask_rows = 1,
                                      .mask_heads = 1,
                                      .mask_row = LONG_COLS,
                                      .logarithm = logarithm};
}

static uint64_t golden_softmax_max(const struct heed_kernels *t)
{
    const struct heed_softmax_task task = long_softmax_task(buffer(LONG_COLS, 0), false);
    float max[2] = {t->softmax_max(&task, 0, 0, HEED_REDUCTION_BLOCK),
                    t->softmax_max(&task, 0, HEED_REDUCTION_BLOCK, LONG_COLS - HEED_REDUCTION_BLOCK)};
    return hash_of(2, max);
}

static uint64_t golden_softmax_exps(const struct heed_kernels *t)
{
    float *y = buffer(LONG_COLS, 0), sums[3];
    const struct heed_softmax_task task = long_softmax_task(y, false);
    t->softmax_exps(&task, 0, HEED_REDUCTION_BLOCK, LONG_COLS - HEED_REDUCTION_BLOCK, 12.0f, sums + 1);
    t->softmax_exps(&task, 0, 0, HEED_REDUCTION_BLOCK, 12.0f, sums);
    return hash_floats(hash_of(LONG_COLS, y), 3, sums);
}

static uint64_t golden_softmax_end(const struct heed_kernels *t)
{
    float *y = random_floats(LONG_COLS, 0.0f, 1.0f), *logarithm = buffer(LONG_COLS, 0);
    struct heed_softmax_task task = long_softmax_task(y, false);
    t->softmax_end(&task, 0, 0, HEED_REDUCTION_BLOCK, 12.0f, 4321.0f);
    t->softmax_end(&task, 0, HEED_REDUCTION_BLOCK, LONG_COLS - HEED_REDUCTION_BLOCK, 12.0f, 4321.0f);
    task.dst = logarithm;
    task.logarithm = true;
    t->softmax_end(&task, 0, 0, LONG_COLS, 12.0f, 4321.0f);
    return hash_floats(hash_of(LONG_COLS, y), LONG_COLS, logarithm);
}

static uint64_t golden_vlog(const struct heed_kernels *t)
{
    float *x = random_floats(COLS, 0.0f, 2.0f);
    for (size_t i = 0; i < COLS; i += 3)
        x[i] = uniform(0.0f, 1.0f) * (i % 2 ? 1e30f : 1e-30f);
    t->vlog(COLS, x, x);
    return hash_of(COLS, x);
}

static uint64_t golden_layernorm(const struct heed_kernels *t)
{
    float *x = random_floats(ROWS * COLS, 95.0f, 105.0f), *scale = random_floats(COLS, 0.5f, 1.5f);
    float *shift = random_floats(COLS, -1.0f, 1.0f), *y = buffer(ROWS * COLS, 0);
    const struct heed_norm_task task = {.rows = ROWS,
                                        .cols = COLS,
                                        .x = x,
                                        .ldx = COLS,
                                        .scale = scale,
                                        .shift = shift,
                                        .eps = 1e-5f,
                                        .y = y,
                                        .ldy = COLS};
    t->layernorm(&task);
    return hash_of(ROWS * COLS, y);
}

static uint64_t golden_rmsnorm(const struct heed_kernels *t)
{
    enum { NARROW = 77 };
    float *x = random_floats(ROWS * COLS, -3.0f, 5.0f), *scale = random_floats(COLS, 0.5f, 1.5f);
    float *residual = random_floats(ROWS * COLS, -1.0f, 1.0f), *y = buffer(ROWS * COLS + ROWS, 0);
    struct heed_norm_task task = {.rows = ROWS,
                                  .cols = COLS,
                                  .x = x,
                                  .ldx = COLS,
                                  .scale = scale,
                                  .eps = 1e-5f,
                                  .y = y,
                                  .ldy = COLS,
                                  .inverse = y + ROWS * COLS};
    t->rmsnorm(&task);
    uint64_t hash = hash_of(ROWS * COLS + ROWS, y);
    task.cols = NARROW;
    task.residual = residual;
    task.ld_residual = COLS;
    task.sum = x;
    task.ld_sum = COLS;
    t->rmsnorm(&task);
    return hash_floats(hash_floats(hash, ROWS * COLS + ROWS, y), ROWS * COLS, x);
}

static uint64_t golden_layernorm_moments(const struct heed_kernels *t)
{
    float *x = random_floats(ROWS * COLS, 95.0f, 105.0f), *y = buffer(ROWS * COLS, 0), moments[2 * ROWS];
    const struct heed_norm_task task = {.rows = ROWS,
                                        .cols = COLS,
                                        .x = x,
                                        .ldx = COLS,
                                        .eps = 1e-5f,
                                        .y = y,
                                        .ldy = COLS,
                                        .mean = moments,
                                        .inverse = moments + ROWS};
    t->layernorm(&task);
    return hash_of(2 * ROWS, moments);
}

static uint64_t golden_activate(const struct heed_kernels *t)
{
    float *x = random_floats(ROWS * COLS, -9.0f, 9.0f), *y = buffer(ROWS * COLS, 0);
    uint64_t hash = HASH_START;
    for (int kind = HEED_KIND_RELU; kind <= HEED_KIND_GELU_TANH; kind++) {
        t->activate((enum heed_activation_kind)kind, ROWS, COLS, x, COLS, y, COLS, 0, false);
        hash = hash_floats(hash, ROWS * COLS, y);
    }
    return hash;
}

static uint64_t golden_silu(const struct heed_kernels *t)
{
    float *x = random_floats(ROWS * COLS, -80.0f, 20.0f);
    t->activate(HEED_KIND_SILU, ROWS, COLS, x, COLS, x, COLS, 0, false);
    return hash_of(ROWS * COLS, x);
}

static uint64_t golden_activate_gated(const struct heed_kernels *t)
{
    float *x = random_floats(ROWS * COLS, -9.0f, 9.0f), *up = random_floats(ROWS * COLS, -2.0f, 2.0f);
    float *y = buffer(ROWS * COLS, 0);
    uint64_t hash = HASH_START;
    for (int kind = HEED_KIND_NONE; kind <= HEED_KIND_SILU; kind++) {
        t->activate_gated((enum heed_activation_kind)kind, ROWS, COLS, x, COLS, up, COLS, y, COLS, 0, false);
        hash = hash_floats(hash, ROWS * COLS, y);
    }
    return hash;
}

static uint64_t golden_attention(const struct heed_kernels *t)
{
    enum { KEYS = 600, DIM = 40 };
    float *q = random_floats(M * DIM, -2.0f, 2.0f), *k = random_floats(608 * DIM, -2.0f, 2.0f);
    float *v = random_floats(48 * KEYS, -1.0f, 1.0f), *out = buffer(M * DIM + M * KEYS, 0);
    float *mask = random_floats(M * KEYS, -2.0f, 2.0f);
    for (size_t i = 0; i < M * KEYS; i += 3)
        mask[i] = -__builtin_inff();
    uint64_t hash = HASH_START;
    for (int variant = 0; variant < 3; variant++) {
        struct heed_attention_task task = {
            .rows = M,
            .head_dim = DIM,
            .value_dim = DIM,
            .q = q,
            .q_row = DIM,
            .k = heed_panels_packed(k, DIM),
            .v = heed_panels_packed(v, KEYS),
            .heads = 1,
            .keys = KEYS,
            .causal = variant == 1,
            .diagonal = KEYS - M,
            .mask_kind = variant == 2 ? HEED_KIND_ADDITIVE : HEED_KIND_UNMASKED,
            .mask = mask,
            .mask_row = KEYS,
            .scale_log2e = 0.228f,
            .out = out,
            .out_row = DIM,
            .map = out + M * DIM,
            .map_row = KEYS,
            .map_cols = KEYS,
            .scratch = buffer(heed_attention_scratch(DIM, DIM, KEYS, true), 0),
        };
        t->attention(&task);
        hash = hash_floats(hash, M * DIM + M * KEYS, out);
    }
    return hash;
}

/* What shapes scores, without and with everything else: a bit of `shaping` each. */
enum { WINDOW = 1, SOFTCAP = 2, SLOPES = 4, SINKS = 8, CAUSAL = 16, MASK = 32, ALL_SHAPING = 63 };

struct shaped_attention {
    float *q, *k, *v, *mask, *out, *partial;
    struct heed_attention_task task;
};

static void shape_attention(struct shaped_attention *x, int shaping)
{
    enum { KEYS = 600, DIM = 40 };
    static const float slope[M] = {0.5f, 0.25f, 0.125f}, sink[M] = {3.0f, -2.0f, 0.25f};
    struct heed_attention_task task = {
        .rows = M,
        .head_dim = DIM,
        .value_dim = DIM,
        .q = x->q,
        .q_row = DIM,
        .k = heed_panels_packed(x->k, DIM),
        .v = heed_panels_packed(x->v, KEYS),
        .heads = 1,
        .keys = KEYS,
        .causal = (shaping & CAUSAL) != 0,
        .diagonal = KEYS - M,
        .windowed = (shaping & WINDOW) != 0,
        .oldest = KEYS - M - 300,
        .first_block = shaping & WINDOW ? (KEYS - M - 300) / HEED_KEY_BLOCK * HEED_KEY_BLOCK : 0,
        .position = KEYS - M,
        .slopes = shaping & SLOPES ? slope : NULL,
        .sinks = shaping & SINKS ? sink : NULL,
        .mask_kind = shaping & MASK ? HEED_KIND_ADDITIVE : HEED_KIND_UNMASKED,
        .mask = x->mask,
        .mask_row = KEYS,
        .scale_log2e = 0.228f,
        .cap = shaping & SOFTCAP ? 7.2134752f : 0.0f,
        .cap_slope = 0.0316f,
        .out = x->out,
        .out_row = DIM,
        .log_sum = x->out + M * DIM,
        .log_sum_row = 1,
        .scratch = buffer(heed_attention_scratch(DIM, DIM, KEYS, true), 0),
        .partial = x->partial,
    };
    x->task = task;
}

static struct shaped_attention random_shaped(void)
{
    enum { KEYS = 600, DIM = 40 };
    struct shaped_attention x;
    x.q = random_floats(M * DIM, -2.0f, 2.0f);
    x.k = random_floats(608 * DIM, -2.0f, 2.0f);
    x.v = random_floats(48 * KEYS, -1.0f, 1.0f);
    x.mask = random_floats(M * KEYS, -2.0f, 2.0f);
    x.out = buffer(M * DIM + M + M * KEYS, 0);
    x.partial = random_floats(heed_attention_partial(M, DIM, 3), 0.0f, 0.0f);
    return x;
}

static uint64_t golden_shaped(const struct heed_kernels *t, int shaping, int with_map)
{
    struct shaped_attention x = random_shaped();
    shape_attention(&x, shaping);
    size_t n = x.task.rows * (x.task.value_dim + 1);
    if (with_map) {
        x.task.map = x.out + n;
        x.task.map_row = x.task.map_cols = x.task.keys;
        n += x.task.rows * x.task.keys;
    }
    t->attention(&x.task);
    return hash_of(n, x.out);
}

static uint64_t golden_window(const struct heed_kernels *t)
{
    return golden_shaped(t, WINDOW, 1);
}

static uint64_t golden_softcap(const struct heed_kernels *t)
{
    return golden_shaped(t, SOFTCAP, 1);
}

static uint64_t golden_slopes(const struct heed_kernels *t)
{
    return golden_shaped(t, SLOPES, 1);
}

static uint64_t golden_sinks(const struct heed_kernels *t)
{
    return golden_shaped(t, SINKS, 1);
}

static uint64_t golden_all_shaping(const struct heed_kernels *t)
{
    return golden_shaped(t, ALL_SHAPING, 1);
}

static uint64_t golden_attention_blocks(const struct heed_kernels *t)
{
    struct shaped_attention x = random_shaped();
    shape_attention(&x, WINDOW | SLOPES | CAUSAL);
    t->attention_blocks(&x.task, 256, 512);
    t->attention_blocks(&x.task, 512, 600);
    return hash_of(heed_attention_partial(M, x.task.value_dim, 3), x.partial);
}

static uint64_t golden_attention_fold(const struct heed_kernels *t)
{
    struct shaped_attention x = random_shaped();
    shape_attention(&x, ALL_SHAPING & ~SOFTCAP);
    x.task.queries = 1;
    x.task.q_head = x.task.q_row;
    x.task.mask_head = x.task.mask_row;
    x.task.out_head = x.task.out_row;
    x.task.log_sum_head = x.task.log_sum_row;
    x.task.map_head = x.task.map_row;
    t->attention_blocks(&x.task, x.task.first_block, 600);
    t->attention_fold(&x.task);
    return hash_of(x.task.rows * (x.task.value_dim + 1), x.out);
}

static uint64_t golden_vtanh(const struct heed_kernels *t)
{
    enum { SIZE = 4000 };
    float *x = random_floats(SIZE, -12.0f, 12.0f), *y = buffer(SIZE, 0);
    for (size_t i = 0; i < SIZE; i += 3)
        x[i] /= 16.0f;
    t->vtanh(SIZE, x, y);
    return hash_of(SIZE, y);
}

static uint64_t golden_rotary(const struct heed_kernels *t)
{
    enum { HEADS = 3, DIM = 130, DIMS = 122 };
    float *x = random_floats(HEADS * DIM, -2.0f, 2.0f), *table = random_floats(DIMS, -1.0f, 1.0f);
    float *y = buffer(HEADS * DIM, 0);
    uint64_t hash = HASH_START;
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        const struct heed_rotary_task task = {interleaved, HEADS, DIMS, DIM, table, table + DIMS / 2, x, DIM, y, DIM};
        t->rotary(&task);
        hash = hash_floats(hash, HEADS * DIM, y);
    }
    return hash;
}

static uint64_t golden_rotary_table(const struct heed_kernels *t)
{
    enum { POSITIONS = 50, HALF = 64 };
    double factors[HALF], magnitude;
    float *table = buffer(2 * POSITIONS * HALF, 0);
    heed_context *context = context_on(t, 1);
    heed_rotary_options options = HEED_ROTARY_OPTIONS_INIT;
    uint64_t hash = HASH_START;
    options.base = 500000.0;
    options.factors = factors;
    CHECK(heed_rotary_llama3(2 * HALF, options.base, 8.0, 1.0, 4.0, 8192, factors) == HEED_OK);
    for (int yarn = 0; yarn < 2; yarn++) {
        CHECK(heed_rotary_table(context, POSITIONS, NULL, 100000, 2 * HALF, &options, table, HALF,
                                table + POSITIONS * HALF, HALF) == HEED_OK);
        hash = hash_floats(hash, 2 * POSITIONS * HALF, table);
        CHECK(heed_rotary_yarn(2 * HALF, options.base, 40.0, 32.0, 1.0, 4096, factors, &magnitude) == HEED_OK);
        options.magnitude = magnitude;
    }
    heed_context_destroy(context);
    return hash;
}

static uint64_t golden_sum_rows(const struct heed_kernels *t)
{
    float *x = random_floats(3 * COLS, -1.0f, 1.0f), *y = buffer(COLS, 0);
    const float *rows[] = {x, x + COLS, x + 2 * COLS};
    t->sum_rows(3, rows, COLS, y);
    return hash_of(COLS, y);
}

static uint64_t golden_mean_rows(const struct heed_kernels *t)
{
    float *x = random_floats(ROWS * COLS, -1.0f, 1.0f), *y = buffer(COLS, 0);
    t->mean_rows(ROWS, COLS, x, COLS, 0.2f, y);
    return hash_of(COLS, y);
}

static uint64_t golden_l2_normalize(const struct heed_kernels *t)
{
    float *x = random_floats(ROWS * COLS, -1.0f, 1.0f);
    const struct heed_norm_task task = {
        .rows = ROWS, .cols = COLS, .x = x, .ldx = COLS, .eps = 1e-12f, .y = x, .ldy = COLS};
    t->l2_normalize(&task);
    return hash_of(ROWS * COLS, x);
}

static uint64_t golden_argmax(const struct heed_kernels *t)
{
    float index[ROWS], *x = random_floats(ROWS * COLS, -1.0f, 1.0f);
    for (size_t r = 0; r < ROWS; r++)
        index[r] = (float)t->argmax(COLS, x + r * COLS);
    return hash_of(ROWS, index);
}

static uint64_t golden_max_rows(const struct heed_kernels *t)
{
    float *x = random_floats(ROWS * COLS, -1.0f, 1.0f), *y = buffer(COLS, 0);
    t->max_rows(ROWS, COLS, x, COLS, y);
    return hash_of(COLS, y);
}

static uint64_t golden_top_k(const struct heed_kernels *t)
{
    enum { MOST = 40 };
    size_t index[MOST];
    float found[ROWS * MOST], *x = random_floats(ROWS * COLS, -1.0f, 1.0f);
    for (size_t r = 0; r < ROWS; r++) {
        t->top_k(COLS, MOST, x + r * COLS, index);
        for (size_t i = 0; i < MOST; i++)
            found[r * MOST + i] = (float)index[i];
    }
    return hash_of(ROWS * MOST, found);
}

static uint64_t golden_vexp(const struct heed_kernels *t)
{
    float *x = random_floats(COLS, -110.0f, 95.0f);
    t->vexp(COLS, x, x);
    return hash_of(COLS, x);
}

static uint64_t golden_vexp2(const struct heed_kernels *t)
{
    float *x = random_floats(COLS, -130.0f, 1.0f);
    t->vexp2(COLS, x, x);
    return hash_of(COLS, x);
}

/* ---- operators ---- */

static uint64_t golden_positions(const struct heed_kernels *t)
{
    float *x = buffer(64 * 96, 0);
    heed_context *context = context_on(t, 1);
    CHECK(heed_sinusoidal_positions(context, 1000000, 64, 96, 10000.0, x, 96) == HEED_OK);
    heed_context_destroy(context);
    return hash_of(64 * 96, x);
}

enum { D_MODEL = 48, D_FF = 112, HEADS = 4, TOKENS = 330, VOCABULARY = 50 };

static const heed_weights *random_weights(size_t in, size_t out)
{
    return packed(in, out, random_floats(in * out, -0.3f, 0.3f));
}

static heed_mha_weights random_mha(size_t n_kv_heads)
{
    heed_mha_weights w = HEED_MHA_WEIGHTS_INIT;
    w.n_heads = HEADS;
    w.n_kv_heads = n_kv_heads;
    w.head_dim = w.value_dim = D_MODEL / HEADS;
    w.query = random_weights(D_MODEL, D_MODEL);
    w.key = random_weights(D_MODEL, n_kv_heads * w.head_dim);
    w.value = random_weights(D_MODEL, n_kv_heads * w.value_dim);
    w.output = random_weights(D_MODEL, D_MODEL);
    return w;
}

static uint64_t golden_encoder(const struct heed_kernels *t)
{
    static const size_t offsets[] = {0, 7, 7, 300, 330};
    int32_t ids[TOKENS];
    float *x = buffer(TOKENS * D_MODEL, 0), *pooled = buffer(4 * D_MODEL, 0);
    heed_mha_weights mha[2];
    heed_ffn_weights ffn[2];
    heed_encoder_layer layers[2];
    heed_context *context = context_on(t, 2);
    for (int i = 0; i < TOKENS; i++)
        ids[i] = (int32_t)random_below(VOCABULARY);
    const float *words = random_floats(VOCABULARY * D_MODEL, -1.0f, 1.0f);
    const float *positions = random_floats(TOKENS * D_MODEL, -0.5f, 0.5f);
    const heed_embedding_table tables[] = {{words, VOCABULARY, D_MODEL, ids, 0}, {positions, TOKENS, D_MODEL, NULL, 0}};
    for (int i = 0; i < 2; i++) {
        const heed_ffn_weights no_ffn = HEED_FFN_WEIGHTS_INIT;
        const heed_encoder_layer no_layer = HEED_ENCODER_LAYER_INIT;
        mha[i] = random_mha(i == 0 ? HEADS : HEADS / 2);
        mha[i].query_bias = random_floats(D_MODEL, -0.1f, 0.1f);
        ffn[i] = no_ffn;
        ffn[i].up = random_weights(D_MODEL, D_FF);
        ffn[i].down = random_weights(D_FF, D_MODEL);
        ffn[i].up_bias = random_floats(D_FF, -0.1f, 0.1f);
        ffn[i].activation = i == 0 ? HEED_ACTIVATION_GELU_ERF : HEED_ACTIVATION_GELU_TANH;
        layers[i] = no_layer;
        layers[i].attention = &mha[i];
        layers[i].ffn = &ffn[i];
        layers[i].norm1_scale = random_floats(D_MODEL, 0.5f, 1.5f);
        layers[i].order = i == 0 ? HEED_NORM_POST : HEED_NORM_PRE;
    }
    heed_encoder_args args = HEED_ENCODER_ARGS_INIT;
    args.batch = 4;
    args.seq = 293;
    args.offsets = offsets;
    args.x = args.y = x;
    args.ldx = args.ldy = D_MODEL;
    CHECK(heed_embed(context, TOKENS, D_MODEL, 2, tables, 4, offsets, x, D_MODEL) == HEED_OK);
    CHECK(heed_encoder(context, 2, layers, &args, NULL) == HEED_OK);
    CHECK(heed_pool(context, HEED_POOLING_MEAN, 4, offsets, D_MODEL, x, D_MODEL, pooled, D_MODEL) == HEED_OK);
    heed_context_destroy(context);
    return hash_floats(hash_of(TOKENS * D_MODEL, x), 4 * D_MODEL, pooled);
}

enum { SEQ = 60, MEMORY = 300, BATCH = 2, KV_HEADS = HEADS / 2, HALF = D_MODEL / HEADS / 2 };

static heed_kv_cache *empty_cache(void)
{
    heed_kv_cache_options options = HEED_KV_CACHE_OPTIONS_INIT;
    heed_kv_cache *cache = NULL;
    size_t bytes = 0;
    options.batch = BATCH;
    options.n_kv_heads = KV_HEADS;
    options.head_dim = options.value_dim = D_MODEL / HEADS;
    options.capacity = MEMORY;
    CHECK(heed_kv_cache_bytes(&options, &bytes) == HEED_OK);
    CHECK(heed_kv_cache_create(&options, buffer(bytes / sizeof(float) + 1, 0), bytes, &cache) == HEED_OK);
    return cache;
}

static heed_encoder_layer random_self(const heed_mha_weights *attention, const heed_ffn_weights *ffn)
{
    heed_encoder_layer layer = HEED_ENCODER_LAYER_INIT;
    layer.attention = attention;
    layer.ffn = ffn;
    layer.norm1_scale = random_floats(D_MODEL, 0.5f, 1.5f);
    layer.order = HEED_NORM_PRE;
    layer.norm = HEED_NORM_RMSNORM;
    layer.cache = empty_cache();
    return layer;
}

/* Most tokens at once and then one by one, the memory with the first of them. */
static void decode(const heed_context *context, const heed_decoder_layer layers[2], float *x)
{
    static const size_t memory_offsets[BATCH + 1] = {0, MEMORY, MEMORY + 17};
    heed_encoder_args tokens = HEED_ENCODER_ARGS_INIT;
    heed_decoder_args args = HEED_DECODER_ARGS_INIT;
    tokens.batch = BATCH;
    tokens.causal = HEED_CAUSAL_BOTTOM_RIGHT;
    tokens.seq_kv = SEQ;
    tokens.ldx = tokens.ldy = D_MODEL;
    tokens.final_norm = HEED_NORM_RMSNORM;
    tokens.final_scale = layers[0].norm_scale;
    args.self = &tokens;
    args.memory = random_floats((MEMORY + 17) * D_MODEL, -1.0f, 1.0f);
    args.ld_memory = D_MODEL;
    args.memory_seq = MEMORY;
    args.memory_offsets = memory_offsets;
    tokens.seq = SEQ - 2;
    for (size_t done = 0; done < SEQ; done += tokens.seq, tokens.seq = 1) {
        tokens.x = tokens.y = x + BATCH * done * D_MODEL;
        CHECK(heed_decoder(context, 2, layers, &args, NULL) == HEED_OK);
        args.memory = NULL;
        args.memory_offsets = NULL;
    }
}

/* Two layers as Llama and Qwen have them, and with a memory. */
static uint64_t golden_decoder(const struct heed_kernels *t)
{
    float cosine[SEQ * HALF], sine[SEQ * HALF], *x = random_floats(BATCH * SEQ * D_MODEL, -1.0f, 1.0f);
    heed_context *context = context_on(t, 2);
    heed_ffn_weights ffn = HEED_FFN_WEIGHTS_INIT;
    const float *gate = random_floats(D_MODEL * D_FF, -0.3f, 0.3f), *up = random_floats(D_MODEL * D_FF, -0.3f, 0.3f);
    ffn.up = packed_pair(D_MODEL, D_FF, gate, up);
    ffn.down = random_weights(D_FF, D_MODEL);
    ffn.activation = HEED_ACTIVATION_SILU;
    CHECK(heed_rotary_table(context, SEQ, NULL, 0, 2 * HALF, NULL, cosine, HALF, sine, HALF) == HEED_OK);
    heed_mha_weights mha[2];
    heed_encoder_layer self[2];
    heed_decoder_layer layers[2];
    for (int i = 0; i < 2; i++) {
        const heed_decoder_layer no_layer = HEED_DECODER_LAYER_INIT;
        const heed_rotary_pairs pairs = i == 0 ? HEED_ROTARY_HALVES : HEED_ROTARY_INTERLEAVED;
        mha[i] = random_mha(KV_HEADS);
        mha[i].query_norm = random_floats(2 * HALF, 0.5f, 1.5f);
        mha[i].key_norm = random_floats(2 * HALF, 0.5f, 1.5f);
        self[i] = random_self(&mha[i], &ffn);
        self[i].rotary = (heed_rotary_tables){pairs, 2 * HALF, cosine, sine, HALF, HALF, SEQ};
        layers[i] = no_layer;
        layers[i].self = &self[i];
        layers[i].cross = &mha[1 - i];
        layers[i].norm_scale = random_floats(D_MODEL, 0.5f, 1.5f);
        layers[i].memory_cache = empty_cache();
    }
    decode(context, layers, x);
    heed_context_destroy(context);
    return hash_of(BATCH * SEQ * D_MODEL, x);
}

/* ---- the hashes ---- */

static const struct golden {
    uint64_t seed;
    const char *name;
    uint64_t (*run)(const struct heed_kernels *table);
    uint64_t fused, unfused;
    uint64_t flushing; /* AArch32 NEON; 0: the fused one */
} goldens[] = {
#define GOLDEN(number, name, fused, unfused) GOLDEN_OF_3(number, name, fused, unfused, 0)
#define GOLDEN_OF_3(number, name, fused, unfused, flushing)                                                            \
    {                                                                                                                  \
        number, #name, golden_##name, UINT64_C(fused), UINT64_C(unfused), UINT64_C(flushing)                           \
    }
    GOLDEN(1, gemm, 0x32fa54697220b832, 0x4f466401d9723447),
    GOLDEN(90, gated_gemm, 0x79cc45ed0a6a98d2, 0x009fb415bea4102a),
    GOLDEN(125, gemm_few, 0x6200dbc5e79d0490, 0x8e1eacbbc3d769e5),
    GOLDEN(125, gemm_tn, 0x6200dbc5e79d0490, 0x8e1eacbbc3d769e5),
    GOLDEN(2, pack, 0xd2c524d97f524dc2, 0xd2c524d97f524dc2),
    GOLDEN(3, transpose, 0xccc06591589ec459, 0xccc06591589ec459),
    GOLDEN(4, softmax, 0x8b5dfc91073c793a, 0x0c1d34874614b0de),
    GOLDEN(5, layernorm, 0xf5cad4c12686314d, 0x0d30fb3128256487),
    GOLDEN(6, activate, 0x3a041a451fcee689, 0x372f351f0e030592),
    GOLDEN(7, attention, 0xf301ac458a21e294, 0xa34f7cb79c6a3d0c),
    GOLDEN(8, sum_rows, 0xce9acc77fdbceec0, 0xce9acc77fdbceec0),
    GOLDEN(9, mean_rows, 0xbaa4f53bfb616174, 0xbaa4f53bfb616174),
    GOLDEN(10, l2_normalize, 0xc03ccb35084dcf11, 0xfe6df4362f36baf0),
    GOLDEN(11, argmax, 0x0897603ac9b76b30, 0x0897603ac9b76b30),
    GOLDEN_OF_3(12, vexp, 0x28bfa1623927eabe, 0x6f0247cc7130df74, 0x21e60a7b136ded6d),
    GOLDEN(13, vexp2, 0x702e1e9b3ece2008, 0x3526a87277393838),
    GOLDEN(14, positions, 0xfd3c9c477cc70acc, 0xfd3c9c477cc70acc),
    GOLDEN(15, encoder, 0x8c7125284ff8f87b, 0x033c337cfd887c0d),
    GOLDEN(124, decoder, 0xa6f13e18f8c962b5, 0x19e58281a3277ca7),
    GOLDEN(102, activate_gated, 0xc3f37adf7f790878, 0xed31c62ad1c6f162),
    GOLDEN(106, rmsnorm, 0x322e07a3443d3d78, 0x565987c2f112cc58),
    GOLDEN(104, layernorm_moments, 0xd9316321c6833458, 0x5eb41d81d6cc7ee4),
    GOLDEN(107, masked_softmax, 0x326b54e727bc3058, 0xbc928395ff3b8776),
    GOLDEN(108, vlog, 0x9aea9dbdd8af7a42, 0x7a38bd0ec9bdaace),
    GOLDEN(109, rotary, 0xd3bca5a4cd9eb94a, 0xd3bca5a4cd9eb94a),
    GOLDEN(110, rotary_table, 0x1293ad266896b7e4, 0x1293ad266896b7e4),
    GOLDEN(111, max_rows, 0xd8cb3f88e8ba290c, 0xd8cb3f88e8ba290c),
    GOLDEN(112, top_k, 0x2a14dce7b7907d4f, 0x2a14dce7b7907d4f),
    GOLDEN(113, vtanh, 0x62caa6e429137d71, 0xb3dd7f60d4b4ce6a),
    GOLDEN(114, window, 0xfb0f1eb9380d1698, 0x3a98bada2a9f5ec9),
    GOLDEN(115, softcap, 0x4e82182562fe0b37, 0xda3e0c16dbe17259),
    GOLDEN_OF_3(116, slopes, 0xefe7b00674a28bbb, 0x838bc807ddd307be, 0x31cfdbf4ef6daa4a),
    GOLDEN(117, sinks, 0x7ab5d68e70d28f28, 0xe26befef436e50f0),
    GOLDEN_OF_3(118, all_shaping, 0x21e212e31e9eeb33, 0x2f6c121e32373421, 0xad0c5adb878c771f),
    GOLDEN(119, attention_blocks, 0xabd92c56932f5b90, 0x90931f0d49a8b9d7),
    GOLDEN(120, attention_fold, 0xc20949d781886d1c, 0x871cc44d99c4679b),
    GOLDEN(121, softmax_max, 0x0774605746a1ad65, 0xfb149ed8ab76f631),
    GOLDEN(122, softmax_exps, 0x25f8670b641e0ddf, 0xe53b70eaece8f649),
    GOLDEN(123, softmax_end, 0x83d90fa5d551792c, 0xab28fd02cd113e92),
    GOLDEN(101, silu, 0xe8f2bfcc84f4ba56, 0xfe27dfbcfbb3160f),
};

/* Every kernel of the list has its hash: a new slot without one fails here. */
static void check_completeness(void)
{
#define SLOT_NAME(type, name, parameters) #name,
    static const char *const slots[] = {HEED_KERNELS(SLOT_NAME)};
    begin("every kernel has a golden hash");
    for (size_t s = 0; s < sizeof slots / sizeof *slots; s++) {
        size_t found = 0;
        for (size_t g = 0; g < sizeof goldens / sizeof *goldens; g++)
            found += strcmp(slots[s], goldens[g].name) == 0;
        check_that(found == 1, "%s has %zu", slots[s], found);
    }
    end();
}

static uint64_t golden_of(const struct golden *g, const struct heed_kernels *table)
{
    if (subnormal_slack(table) > 0.0 && g->flushing)
        return g->flushing;
    return table->fused ? g->fused : g->unfused;
}

static void test_table(const struct heed_kernels *table)
{
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        begin("%s: golden %s", table->name, goldens[i].name);
        seed(goldens[i].seed);
        uint64_t hash = goldens[i].run(table), want = golden_of(&goldens[i], table);
        check_that(hash == want, "%s class: 0x%016llx, not 0x%016llx", table->fused ? "fused" : "unfused",
                   (unsigned long long)hash, (unsigned long long)want);
        end();
        release_all();
    }
}

int main(void)
{
    check_completeness();
    for_each_table(test_table);
    return finish();
}
