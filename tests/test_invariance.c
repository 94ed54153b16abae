/* SPDX-License-Identifier: MIT
 * The bits of every operator do not depend on threads, executor, alignment, strides, batch or layout,
 * and all tables of a class agree; also under concurrent calls, inside a parallel region and after fork.
 */
#include "reference.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* How an operator is called: where its operands lie and which part of the batch it gets. */
struct setting {
    const heed_context *context;
    size_t offset, gap;  /* floats: from 64-byte alignment, and between rows */
    size_t first, units; /* rows, or sequences */
};

/* A matrix with the same values wherever it lies. */
static float *matrix(const struct setting *s, size_t rows, size_t cols, uint64_t salt)
{
    float *x = buffer(rows * (cols + s->gap) + 1, s->offset);
    seed(salt);
    for (size_t i = 0; i < rows; i++)
        fill_uniform(x + i * (cols + s->gap), cols, -1.5f, 1.5f);
    return x;
}

static void copy_out(const struct setting *s, size_t rows, size_t cols, const float *y, float *out)
{
    for (size_t i = 0; i < rows; i++)
        memcpy(out + i * cols, y + i * (cols + s->gap), cols * sizeof *out);
}

/* The same for an operand whose rows are further apart than those of others. */
static struct setting apart(const struct setting *s)
{
    struct setting wider = *s;
    wider.gap += 3;
    return wider;
}

/* ---- operators on rows ---- */

enum { ROWS = 96, INNER = 75, COLS = 83, WIDE = 700, SHORT_ROWS = 2801, SHORT = 24, LAYER_ROWS = 96 };
enum { FEW_ROWS = 35, LONG_INNER = 300, LONG = 1030 };
enum { TILE_ROWS = 6, TILE_INNER = 2800, TILE_COLS = 130 };
enum { SHARED_ROWS = 2, SHARED_COLS = 33333 };

static void run_matmul(const struct setting *s, float *out)
{
    float *a = matrix(s, ROWS, INNER, 1), *b = matrix(s, INNER, COLS, 2), *c = matrix(s, ROWS, COLS, 3);
    c += s->first * (COLS + s->gap);
    check_ok(heed_matmul(s->context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, s->units, COLS, INNER, 0.75f,
                         a + s->first * (INNER + s->gap), INNER + s->gap, b, COLS + s->gap, -0.5f, c, COLS + s->gap,
                         NULL),
             "matmul");
    copy_out(s, s->units, COLS, c, out);
}

/* Of a b that is read across where it comes from memory, a few rows at a time. */
static void run_long_matmul(const struct setting *s, float *out)
{
    float *a = matrix(s, FEW_ROWS, LONG_INNER, 1), *b = matrix(s, LONG_INNER, LONG, 2),
          *c = matrix(s, FEW_ROWS, LONG, 3);
    c += s->first * (LONG + s->gap);
    check_ok(heed_matmul(s->context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, s->units, LONG, LONG_INNER, 0.75f,
                         a + s->first * (LONG_INNER + s->gap), LONG_INNER + s->gap, b, LONG + s->gap, 0.0f, c,
                         LONG + s->gap, NULL),
             "matmul of long rows");
    copy_out(s, s->units, LONG, c, out);
}

static void run_matmul_transposed(const struct setting *s, float *out)
{
    float *a = matrix(s, INNER, ROWS, 1), *b = matrix(s, COLS, INNER, 2), *c = matrix(s, ROWS, COLS, 3);
    check_ok(heed_matmul(s->context, HEED_TRANSPOSE, HEED_TRANSPOSE, s->units, COLS, INNER, 1.0f, a + s->first,
                         ROWS + s->gap, b, INNER + s->gap, 0.0f, c, COLS + s->gap, NULL),
             "transposed matmul");
    copy_out(s, s->units, COLS, c, out);
}

static void run_linear(const struct setting *s, float *out)
{
    const struct setting dense = {s->context, s->offset, 0, 0, 0}, wider = apart(s);
    float *x = matrix(s, ROWS, INNER, 4), *w = matrix(&dense, INNER, COLS, 5), *r = matrix(&wider, ROWS, COLS, 6);
    float *y = matrix(s, ROWS, COLS, 7);
    heed_linear_options options = HEED_LINEAR_OPTIONS_INIT;
    options.bias = matrix(&dense, 1, COLS, 8);
    options.activation = HEED_ACTIVATION_GELU_ERF;
    options.ld_residual = COLS + wider.gap;
    options.residual = r + s->first * options.ld_residual;
    check_ok(heed_linear(s->context, s->units, x + s->first * (INNER + s->gap), INNER + s->gap, packed(INNER, COLS, w),
                         &options, y, COLS + s->gap),
             "linear");
    copy_out(s, s->units, COLS, y, out);
}

/* Of one tile, of which the widest take a k in parts where weights lie in the last cache. */
static void run_long_linear(const struct setting *s, float *out)
{
    const struct setting dense = {s->context, s->offset, 0, 0, 0};
    float *x = matrix(s, TILE_ROWS, TILE_INNER, 4), *w = matrix(&dense, TILE_INNER, TILE_COLS, 5);
    float *y = matrix(s, TILE_ROWS, TILE_COLS, 7), *r = matrix(s, TILE_ROWS, TILE_COLS, 6);
    heed_linear_options options = HEED_LINEAR_OPTIONS_INIT;
    options.bias = matrix(&dense, 1, TILE_COLS, 8);
    options.activation = HEED_ACTIVATION_GELU_TANH;
    options.residual = r + s->first * (TILE_COLS + s->gap);
    options.ld_residual = TILE_COLS + s->gap;
    check_ok(heed_linear(s->context, s->units, x + s->first * (TILE_INNER + s->gap), TILE_INNER + s->gap,
                         packed(TILE_INNER, TILE_COLS, w), &options, y, TILE_COLS + s->gap),
             "linear of long rows");
    copy_out(s, s->units, TILE_COLS, y, out);
}

static void gated_linear_of(const struct setting *s, size_t rows, size_t inner, size_t cols, float *out)
{
    const struct setting dense = {s->context, s->offset, 0, 0, 0};
    float *x = matrix(s, rows, inner, 4), *gate = matrix(&dense, inner, cols, 5), *up = matrix(&dense, inner, cols, 6);
    float *y = matrix(s, rows, cols, 7);
    heed_linear_options options = HEED_LINEAR_OPTIONS_INIT;
    options.bias = matrix(&dense, 1, cols, 8);
    options.up_bias = matrix(&dense, 1, cols, 9);
    options.activation = HEED_ACTIVATION_SILU;
    check_ok(heed_linear(s->context, s->units, x + s->first * (inner + s->gap), inner + s->gap,
                         packed_pair(inner, cols, gate, up), &options, y, cols + s->gap),
             "gated linear");
    copy_out(s, s->units, cols, y, out);
}

static void run_gated_linear(const struct setting *s, float *out)
{
    gated_linear_of(s, ROWS, INNER, COLS, out);
}

/* So few that workers share columns. */
static void run_short_gated_linear(const struct setting *s, float *out)
{
    gated_linear_of(s, TILE_ROWS, LONG_INNER, TILE_COLS, out);
}

static void softmax_of(const struct setting *s, size_t rows, size_t cols, float *out)
{
    float *x = matrix(s, rows, cols, 9), *y = matrix(s, rows, cols, 10);
    size_t ld = cols + s->gap;
    check_ok(heed_softmax(s->context, s->units, cols, x + s->first * ld, ld, y, ld), "softmax");
    copy_out(s, s->units, cols, y, out);
}

static void run_softmax(const struct setting *s, float *out)
{
    softmax_of(s, ROWS, WIDE, out);
}

static void run_short_softmax(const struct setting *s, float *out)
{
    softmax_of(s, SHORT_ROWS, SHORT, out);
}

static void run_masked_softmax(const struct setting *s, float *out)
{
    float *x = matrix(s, ROWS, WIDE, 78), *mask = matrix(s, ROWS, WIDE, 79), *y = matrix(s, ROWS, WIDE, 80);
    size_t ld = WIDE + s->gap;
    heed_softmax_options options = HEED_SOFTMAX_OPTIONS_INIT;
    options.scale = 1.7f;
    options.mask = (heed_mask){mask + s->first * ld, HEED_MASK_ADDITIVE, 0, 0, ld};
    check_ok(heed_masked_softmax(s->context, s->units, WIDE, x + s->first * ld, ld, &options, y, ld), "masked softmax");
    copy_out(s, s->units, WIDE, y, out);
}

/* So long that several threads share a row, at whose begin or end the largest score is; masked, and the logarithm. */
static void run_long_softmax(const struct setting *s, float *out)
{
    size_t ld = SHARED_COLS + s->gap;
    float *x = matrix(s, SHARED_ROWS, SHARED_COLS, 6), *mask = matrix(s, 1, SHARED_COLS, 7);
    float *y = buffer(SHARED_ROWS * ld, s->offset), *z = buffer(SHARED_ROWS * ld, s->offset);
    heed_softmax_options options = HEED_SOFTMAX_OPTIONS_INIT;
    for (size_t i = 0; i < SHARED_COLS; i += 3)
        mask[i] = -INFINITY;
    x[SHARED_COLS - 1] = x[ld + 1] = 5.0f;
    options.mask = (heed_mask){mask, HEED_MASK_ADDITIVE, 0, 0, 0};
    x += s->first * ld;
    check_ok(heed_masked_softmax(s->context, s->units, SHARED_COLS, x, ld, &options, y, ld), "softmax of long rows");
    check_ok(heed_log_softmax(s->context, s->units, SHARED_COLS, x, ld, NULL, z, ld), "log softmax of long rows");
    for (size_t r = 0; r < s->units; r++)
        for (size_t i = 0; i < SHARED_COLS; i++)
            out[r * SHARED_COLS + i] = i % 2 ? z[r * ld + i] : y[r * ld + i];
}

static void log_softmax_of(const struct setting *s, size_t rows, size_t cols, float *out)
{
    float *x = matrix(s, rows, cols, 81);
    size_t ld = cols + s->gap;
    x += s->first * ld;
    check_ok(heed_log_softmax(s->context, s->units, cols, x, ld, NULL, x, ld), "log softmax");
    copy_out(s, s->units, cols, x, out);
}

static void run_log_softmax(const struct setting *s, float *out)
{
    log_softmax_of(s, ROWS, WIDE, out);
}

static void run_short_log_softmax(const struct setting *s, float *out)
{
    log_softmax_of(s, SHORT_ROWS, SHORT, out);
}

static void layernorm_of(const struct setting *s, size_t rows, size_t cols, float *out)
{
    const struct setting dense = {s->context, s->offset, 0, 0, 0}, wider = apart(s);
    float *x = matrix(s, rows, cols, 11), *r = matrix(&wider, rows, cols, 12), *y = matrix(s, rows, cols, 13);
    size_t ld = cols + s->gap;
    heed_layernorm_options options = HEED_LAYERNORM_OPTIONS_INIT;
    options.scale = matrix(&dense, 1, cols, 14);
    options.shift = matrix(&dense, 1, cols, 15);
    options.ld_residual = cols + wider.gap;
    options.residual = r + s->first * options.ld_residual;
    options.ld_sum = ld + 5;
    options.sum = buffer(rows * options.ld_sum, s->offset);
    check_ok(heed_layernorm(s->context, s->units, cols, x + s->first * ld, ld, &options, y, ld), "layernorm");
    copy_out(s, s->units, cols, y, out);
    for (size_t row = 0; row < s->units; row++)
        for (size_t i = 0; i < cols; i += 3) /* of some columns the sum instead */
            out[row * cols + i] = options.sum[row * options.ld_sum + i];
}

static void run_layernorm(const struct setting *s, float *out)
{
    layernorm_of(s, ROWS, WIDE, out);
}

static void run_short_layernorm(const struct setting *s, float *out)
{
    layernorm_of(s, SHORT_ROWS, SHORT, out);
}

static void rmsnorm_of(const struct setting *s, size_t rows, size_t cols, float *out)
{
    const struct setting dense = {s->context, s->offset, 0, 0, 0}, wider = apart(s);
    float *x = matrix(s, rows, cols, 73), *r = matrix(&wider, rows, cols, 74), *y = matrix(s, rows, cols, 75);
    size_t ld = cols + s->gap;
    heed_rmsnorm_options options = HEED_RMSNORM_OPTIONS_INIT;
    options.scale = matrix(&dense, 1, cols, 76);
    options.ld_residual = cols + wider.gap;
    options.residual = r + s->first * options.ld_residual;
    check_ok(heed_rmsnorm(s->context, s->units, cols, x + s->first * ld, ld, &options, y, ld), "rmsnorm");
    copy_out(s, s->units, cols, y, out);
}

static void run_rmsnorm(const struct setting *s, float *out)
{
    rmsnorm_of(s, ROWS, WIDE, out);
}

static void run_short_rmsnorm(const struct setting *s, float *out)
{
    rmsnorm_of(s, SHORT_ROWS, SHORT, out);
}

/* Mean and inverse deviation only. */
static void run_moments(const struct setting *s, float *out)
{
    float *x = matrix(s, ROWS, WIDE, 77), mean[ROWS], inverse[ROWS];
    size_t ld = WIDE + s->gap;
    heed_layernorm_options options = HEED_LAYERNORM_OPTIONS_INIT;
    options.mean = mean;
    options.inverse_deviation = inverse;
    x += s->first * ld;
    check_ok(heed_layernorm(s->context, s->units, WIDE, x, ld, &options, x, ld), "layernorm");
    for (size_t i = 0; i < s->units; i++) {
        out[2 * i] = mean[i];
        out[2 * i + 1] = inverse[i];
    }
}

static void run_gelu(const struct setting *s, float *out)
{
    float *x = matrix(s, ROWS, WIDE, 16), *y = matrix(s, ROWS, WIDE, 17);
    size_t ld = WIDE + s->gap;
    check_ok(heed_activate(s->context, HEED_ACTIVATION_GELU_TANH, s->units, WIDE, x + s->first * ld, ld, y, ld),
             "gelu");
    copy_out(s, s->units, WIDE, y, out);
}

static void run_gated(const struct setting *s, float *out)
{
    const struct setting wider = apart(s);
    float *gate = matrix(s, ROWS, WIDE, 70), *up = matrix(&wider, ROWS, WIDE, 71), *y = matrix(s, ROWS, WIDE, 72);
    size_t ld = WIDE + s->gap, ld_up = WIDE + wider.gap;
    check_ok(heed_activate_gated(s->context, HEED_ACTIVATION_SILU, s->units, WIDE, gate + s->first * ld, ld,
                                 up + s->first * ld_up, ld_up, y, ld),
             "gated");
    copy_out(s, s->units, WIDE, y, out);
}

static void run_l2(const struct setting *s, float *out)
{
    float *x = matrix(s, ROWS, WIDE, 18), *y = matrix(s, ROWS, WIDE, 19);
    size_t ld = WIDE + s->gap;
    check_ok(heed_l2_normalize(s->context, s->units, WIDE, 1e-12f, x + s->first * ld, ld, y, ld), "l2");
    copy_out(s, s->units, WIDE, y, out);
}

static void run_positions(const struct setting *s, float *out)
{
    float *y = matrix(s, ROWS, WIDE, 20);
    check_ok(heed_sinusoidal_positions(s->context, 1000 + s->first, s->units, WIDE, 10000.0, y, WIDE + s->gap),
             "positions");
    copy_out(s, s->units, WIDE, y, out);
}

static void run_rotary(const struct setting *s, float *out)
{
    enum { HEADS = 7, DIM = WIDE / HEADS, HALF = 46 };
    float *x = matrix(s, ROWS, WIDE, 82), *y = matrix(s, ROWS, WIDE, 83), *c = matrix(s, ROWS, HALF, 84);
    float *sine = matrix(s, ROWS, HALF, 85);
    size_t ld = WIDE + s->gap;
    heed_rotary_args a = HEED_ROTARY_ARGS_INIT;
    a.tables.pairs = HEED_ROTARY_INTERLEAVED;
    a.batch = 1;
    a.seq = s->units;
    a.n_heads = HEADS;
    a.head_dim = DIM;
    a.tables.dims = 2 * HALF;
    a.tables.cosine = c;
    a.tables.sine = sine;
    a.tables.ld_cosine = a.tables.ld_sine = HALF + s->gap;
    a.tables.positions = ROWS;
    a.first = s->first;
    a.src = (heed_heads){x + s->first * ld, 0, DIM, ld};
    a.dst = (heed_heads_out){y, 0, DIM, ld};
    check_ok(heed_rotary(s->context, &a), "rotary");
    copy_out(s, s->units, WIDE, y, out);
}

/* Cosines in the first half of a row of the output, sines in the second. */
static void run_rotary_table(const struct setting *s, float *out)
{
    enum { HALF = WIDE / 2 };
    float *c = matrix(s, ROWS, HALF, 86), *sine = matrix(s, ROWS, HALF, 92);
    size_t ld = HALF + s->gap;
    check_ok(heed_rotary_table(s->context, s->units, NULL, 77 + s->first, 2 * HALF, NULL, c, ld, sine, ld), "table");
    for (size_t i = 0; i < s->units; i++) {
        memcpy(out + i * WIDE, c + i * ld, HALF * sizeof *out);
        memcpy(out + i * WIDE + HALF, sine + i * ld, HALF * sizeof *out);
    }
}

static void embed(const struct setting *s, bool normalized, float *out)
{
    float *y = matrix(s, ROWS, WIDE, 21);
    size_t ld = WIDE + s->gap;
    heed_embedding_table tables[] = {{matrix(s, 13, WIDE, 22), 13, ld, NULL, 0},
                                     {matrix(s, ROWS, WIDE, 23), ROWS, ld, NULL, s->first}};
    int32_t ids[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        ids[i] = (int32_t)(i * 7 % 13);
    tables[0].ids = ids + s->first;
    check_ok(normalized ? heed_embed_layernorm(s->context, s->units, WIDE, 2, tables, 0, NULL, NULL, y, ld)
                        : heed_embed(s->context, s->units, WIDE, 2, tables, 0, NULL, y, ld),
             "embed");
    copy_out(s, s->units, WIDE, y, out);
}

static void run_embed(const struct setting *s, float *out)
{
    embed(s, false, out);
}

static void run_embed_layernorm(const struct setting *s, float *out)
{
    embed(s, true, out);
}

static void pool(const struct setting *s, heed_pooling pooling, float *out)
{
    float *x = matrix(s, 3 * ROWS, WIDE, 24), *y = matrix(s, ROWS, WIDE, 25);
    size_t offsets[ROWS + 1], ld = WIDE + s->gap;
    for (size_t i = 0; i <= ROWS; i++)
        offsets[i] = 3 * i - i % 3;
    check_ok(heed_pool(s->context, pooling, s->units, offsets + s->first, WIDE, x, ld, y, ld), "pool");
    copy_out(s, s->units, WIDE, y, out);
}

static void run_pool(const struct setting *s, float *out)
{
    pool(s, HEED_POOLING_MEAN, out);
}

static void run_max_pool(const struct setting *s, float *out)
{
    pool(s, HEED_POOLING_MAX, out);
}

static void run_last_pool(const struct setting *s, float *out)
{
    pool(s, HEED_POOLING_LAST, out);
}

static void run_top_k(const struct setting *s, float *out)
{
    enum { K = 30 };
    float *x = matrix(s, ROWS, WIDE, 89), *y = matrix(s, ROWS, WIDE, 90);
    size_t ld = WIDE + s->gap, index[ROWS * K];
    check_ok(heed_top_k(s->context, s->units, WIDE, K, x + s->first * ld, ld, y, ld, index, K), "top k");
    for (size_t i = 0; i < s->units * K; i++)
        y[i / K * ld + K + i % K] = (float)index[i];
    for (size_t i = 0; i < s->units; i++)
        memcpy(out + i * 2 * K, y + i * ld, 2 * K * sizeof *out);
}

/* ---- layers: the units are sequences ---- */

#define SEQUENCES 6
static const size_t offsets[SEQUENCES + 1] = {0, 1, 18, 58, 61, 61, LAYER_ROWS};
#define LONGEST 40

enum { D_MODEL = 48, N_HEADS = 3, HEAD_DIM = 16 };

/* What a layer's attention sees. */
static struct {
    heed_causal causal;
    heed_norm_order order;
    heed_norm norm; /* RMSNorm: norms of heads and rotary too */
} layer_options;

static void make_layer(struct layer_problem *p, uint64_t salt)
{
    *p = (struct layer_problem){.d_model = D_MODEL,
                                .d_ff = 100,
                                .n_heads = N_HEADS,
                                .n_kv_heads = N_HEADS,
                                .head_dim = HEAD_DIM,
                                .value_dim = HEAD_DIM,
                                .activation = HEED_ACTIVATION_GELU_ERF,
                                .order = layer_options.order,
                                .eps = 1e-12f,
                                .norm = layer_options.norm,
                                .norm_eps = 1e-6f};
    p->rotary.dims = p->norm == HEED_NORM_RMSNORM ? HEAD_DIM : 0;
    seed(salt);
    random_layer(p);
}

/* Offsets of the sequences that a setting asks for, from 0. */
static size_t cut_offsets(const struct setting *s, size_t cut[SEQUENCES + 1])
{
    for (size_t i = 0; i <= s->units; i++)
        cut[i] = offsets[s->first + i] - offsets[s->first];
    return cut[s->units];
}

static void run_encoder(const struct setting *s, float *out)
{
    struct layer_problem problems[2];
    struct packed_layer layers[2];
    heed_encoder_layer stack[2];
    size_t cut[SEQUENCES + 1], rows = cut_offsets(s, cut), ld = D_MODEL + s->gap;
    for (size_t i = 0; i < 2; i++) {
        make_layer(&problems[i], 30 + i);
        pack_layer(&layers[i], &problems[i]);
        stack[i] = layers[i].layer;
    }
    float *x = matrix(s, LAYER_ROWS, D_MODEL, 32), *y = matrix(s, LAYER_ROWS, D_MODEL, 33);
    heed_encoder_args args = HEED_ENCODER_ARGS_INIT;
    args.batch = s->units;
    args.seq = LONGEST;
    args.offsets = cut;
    args.causal = layer_options.causal;
    args.x = x + offsets[s->first] * ld;
    args.y = y;
    args.ldx = args.ldy = ld;
    args.final_scale = problems[0].norm1_scale;
    check_ok(heed_encoder(s->context, 2, stack, &args, NULL), "encoder");
    copy_out(s, rows, D_MODEL, y, out);
}

static void run_post_norm(const struct setting *s, float *out)
{
    layer_options.order = HEED_NORM_POST;
    layer_options.causal = HEED_CAUSAL_NONE;
    run_encoder(s, out);
}

static void run_pre_norm_causal(const struct setting *s, float *out)
{
    layer_options.order = HEED_NORM_PRE;
    layer_options.causal = HEED_CAUSAL_TOP_LEFT;
    run_encoder(s, out);
}

/* As Llama and Qwen have them, but with attention to a memory of equal length for all. */
static void run_decoder(const struct setting *s, float *out)
{
    enum { MEMORY_ROWS = 50 };
    struct layer_problem problem, cross;
    struct packed_layer layer, other;
    size_t cut[SEQUENCES + 1], rows = cut_offsets(s, cut), ld = D_MODEL + s->gap;
    layer_options.order = HEED_NORM_PRE;
    layer_options.norm = HEED_NORM_RMSNORM;
    make_layer(&problem, 44);
    make_layer(&cross, 45);
    layer_options.norm = HEED_NORM_LAYERNORM;
    pack_layer(&layer, &problem);
    pack_layer(&other, &cross);
    float *x = matrix(s, LAYER_ROWS, D_MODEL, 46), *memory = matrix(s, SEQUENCES * MEMORY_ROWS, D_MODEL, 47);
    heed_encoder_args self = HEED_ENCODER_ARGS_INIT;
    heed_decoder_args args = HEED_DECODER_ARGS_INIT;
    heed_decoder_layer stack[2] = {HEED_DECODER_LAYER_INIT, HEED_DECODER_LAYER_INIT};
    for (size_t i = 0; i < 2; i++) {
        stack[i].self = i == 0 ? &layer.layer : &other.layer;
        stack[i].cross = i == 0 ? &other.attention : &layer.attention;
        stack[i].norm_scale = problem.norm2_scale;
    }
    self.batch = s->units;
    self.seq = LONGEST;
    self.offsets = cut;
    self.causal = HEED_CAUSAL_BOTTOM_RIGHT;
    self.x = self.y = x + offsets[s->first] * ld;
    self.ldx = self.ldy = ld;
    self.final_norm = HEED_NORM_RMSNORM;
    self.final_scale = problem.norm1_scale;
    args.self = &self;
    args.memory = memory + s->first * MEMORY_ROWS * ld;
    args.ld_memory = ld;
    args.memory_seq = MEMORY_ROWS;
    check_ok(heed_decoder(s->context, 2, stack, &args, NULL), "decoder");
    copy_out(s, rows, D_MODEL, self.y, out);
}

static void run_cross_attention(const struct setting *s, float *out)
{
    struct layer_problem problem;
    struct packed_layer layer;
    size_t cut[SEQUENCES + 1], rows = cut_offsets(s, cut), ld = D_MODEL + s->gap;
    make_layer(&problem, 40);
    pack_layer(&layer, &problem);
    float *x = matrix(s, LAYER_ROWS, D_MODEL, 41), *memory = matrix(s, SEQUENCES * 50, D_MODEL, 42);
    float *y = matrix(s, LAYER_ROWS, D_MODEL, 43);
    heed_mha_args args = HEED_MHA_ARGS_INIT;
    args.batch = s->units;
    args.seq_q = LONGEST;
    args.offsets = cut;
    args.seq_kv = 50;
    args.x = x + offsets[s->first] * ld;
    args.memory = memory + s->first * 50 * ld;
    args.y = y;
    args.ldx = args.ld_memory = args.ldy = ld;
    check_ok(heed_mha(s->context, &layer.attention, &args, NULL), "cross-attention");
    copy_out(s, rows, D_MODEL, y, out);
}

static void run_ffn(const struct setting *s, float *out)
{
    struct layer_problem problem;
    struct packed_layer layer;
    const struct setting wider = apart(s);
    size_t ld = D_MODEL + s->gap, ldr = D_MODEL + wider.gap;
    make_layer(&problem, 50);
    pack_layer(&layer, &problem);
    float *x = matrix(s, LAYER_ROWS, D_MODEL, 51), *y = matrix(s, LAYER_ROWS, D_MODEL, 52);
    float *r = matrix(&wider, LAYER_ROWS, D_MODEL, 53);
    check_ok(heed_ffn(s->context, &layer.ffn, s->units, x + s->first * ld, ld, r + s->first * ldr, ldr, y, ld, NULL),
             "ffn");
    copy_out(s, s->units, D_MODEL, y, out);
}

/* ---- attention over several key blocks: the units are sequences of equal size ---- */

enum { ATTENTION_BATCH = 3, QUERIES = 50, KEYS = 530, VALUE_DIM = 20 };

static heed_attention_args attention_args(void)
{
    heed_attention_args a = HEED_ATTENTION_ARGS_INIT;
    a.n_heads = N_HEADS;
    a.n_kv_heads = 1;
    a.seq_q = QUERIES;
    a.seq_kv = KEYS;
    a.head_dim = HEAD_DIM;
    a.value_dim = VALUE_DIM;
    a.causal = HEED_CAUSAL_BOTTOM_RIGHT;
    return a;
}

static void attend(const struct setting *s, heed_attention_args a, float *out)
{
    size_t q_ld = N_HEADS * HEAD_DIM + s->gap, k_ld = HEAD_DIM + s->gap, v_ld = VALUE_DIM + s->gap;
    size_t out_ld = N_HEADS * VALUE_DIM + s->gap;
    float *q = matrix(s, ATTENTION_BATCH * QUERIES, N_HEADS * HEAD_DIM, 60);
    float *k = matrix(s, ATTENTION_BATCH * KEYS, HEAD_DIM, 61), *v = matrix(s, ATTENTION_BATCH * KEYS, VALUE_DIM, 62);
    float *y = matrix(s, ATTENTION_BATCH * QUERIES, N_HEADS * VALUE_DIM, 63);
    a.batch = s->units;
    a.q = (heed_heads){q + s->first * QUERIES * q_ld, QUERIES * q_ld, HEAD_DIM, q_ld};
    a.k = (heed_heads){k + s->first * KEYS * k_ld, KEYS * k_ld, 0, k_ld};
    a.v = (heed_heads){v + s->first * KEYS * v_ld, KEYS * v_ld, 0, v_ld};
    a.out = (heed_heads_out){y, QUERIES * out_ld, VALUE_DIM, out_ld};
    check_ok(heed_attention(s->context, &a, NULL), "attention");
    copy_out(s, s->units * QUERIES, N_HEADS * VALUE_DIM, y, out);
}

static void run_attention(const struct setting *s, float *out)
{
    attend(s, attention_args(), out);
}

/* Window, softcap, slopes and sinks together. */
static void run_shaped_attention(const struct setting *s, float *out)
{
    const struct setting dense = {s->context, s->offset, 0, 0, 0};
    heed_attention_args a = attention_args();
    a.window_left = 290;
    a.softcap = 4.0f;
    a.slopes = matrix(&dense, 1, N_HEADS, 64);
    a.sinks = matrix(&dense, 1, N_HEADS, 65);
    attend(s, a, out);
}

/* The mean map is one row for each query, whatever the workers. */
static void run_mean_map(const struct setting *s, float *out)
{
    static float unused[ATTENTION_BATCH * QUERIES * N_HEADS * VALUE_DIM];
    float *mean = matrix(s, ATTENTION_BATCH * QUERIES, KEYS, 66);
    heed_attention_args a = attention_args();
    a.mean_map = (heed_heads_out){mean, QUERIES * (KEYS + s->gap), 0, KEYS + s->gap};
    attend(s, a, unused);
    copy_out(s, s->units * QUERIES, KEYS, mean, out);
}

static const size_t attention_offsets[] = {0, QUERIES, 2 * QUERIES, 3 * QUERIES};

/* ---- all of them ---- */

static const struct invariant {
    const char *name;
    void (*run)(const struct setting *, float *out);
    size_t units, cols;
    const size_t *rows; /* first row of each unit; NULL: a unit is a row */
} invariants[] = {
    {"matmul", run_matmul, ROWS, COLS, NULL},
    {"transposed matmul", run_matmul_transposed, ROWS, COLS, NULL},
    {"matmul of long rows", run_long_matmul, FEW_ROWS, LONG, NULL},
    {"linear", run_linear, ROWS, COLS, NULL},
    {"linear of long rows", run_long_linear, TILE_ROWS, TILE_COLS, NULL},
    {"gated linear", run_gated_linear, ROWS, COLS, NULL},
    {"gated linear of few rows", run_short_gated_linear, TILE_ROWS, TILE_COLS, NULL},
    {"softmax", run_softmax, ROWS, WIDE, NULL},
    {"softmax of short rows", run_short_softmax, SHORT_ROWS, SHORT, NULL},
    {"masked softmax", run_masked_softmax, ROWS, WIDE, NULL},
    {"softmax of long rows", run_long_softmax, SHARED_ROWS, SHARED_COLS, NULL},
    {"log softmax", run_log_softmax, ROWS, WIDE, NULL},
    {"log softmax of short rows", run_short_log_softmax, SHORT_ROWS, SHORT, NULL},
    {"layernorm", run_layernorm, ROWS, WIDE, NULL},
    {"layernorm of short rows", run_short_layernorm, SHORT_ROWS, SHORT, NULL},
    {"rmsnorm", run_rmsnorm, ROWS, WIDE, NULL},
    {"rmsnorm of short rows", run_short_rmsnorm, SHORT_ROWS, SHORT, NULL},
    {"moments", run_moments, ROWS, 2, NULL},
    {"gelu", run_gelu, ROWS, WIDE, NULL},
    {"gated", run_gated, ROWS, WIDE, NULL},
    {"l2_normalize", run_l2, ROWS, WIDE, NULL},
    {"positions", run_positions, ROWS, WIDE, NULL},
    {"rotary", run_rotary, ROWS, WIDE, NULL},
    {"rotary table", run_rotary_table, ROWS, WIDE, NULL},
    {"embed", run_embed, ROWS, WIDE, NULL},
    {"pool", run_pool, ROWS, WIDE, NULL},
    {"maximum pool", run_max_pool, ROWS, WIDE, NULL},
    {"last of a pool", run_last_pool, ROWS, WIDE, NULL},
    {"top k", run_top_k, ROWS, 60, NULL},
    {"embed and layernorm", run_embed_layernorm, ROWS, WIDE, NULL},
    {"ffn", run_ffn, LAYER_ROWS, D_MODEL, NULL},
    {"attention", run_attention, ATTENTION_BATCH, N_HEADS *VALUE_DIM, attention_offsets},
    {"shaped attention", run_shaped_attention, ATTENTION_BATCH, N_HEADS *VALUE_DIM, attention_offsets},
    {"mean map", run_mean_map, ATTENTION_BATCH, KEYS, attention_offsets},
    {"cross-attention", run_cross_attention, SEQUENCES, D_MODEL, offsets},
    {"encoder, post-norm", run_post_norm, SEQUENCES, D_MODEL, offsets},
    {"encoder, pre-norm, causal", run_pre_norm_causal, SEQUENCES, D_MODEL, offsets},
    {"decoder with rotary", run_decoder, SEQUENCES, D_MODEL, offsets},
};

enum { MOST_OUT = ATTENTION_BATCH * QUERIES * KEYS };

static float base[MOST_OUT], got[MOST_OUT];

static size_t row_of(const struct invariant *op, size_t unit)
{
    return op->rows ? op->rows[unit] : unit;
}

static void run_all(const struct invariant *op, const heed_context *context, size_t offset, size_t gap, float *out)
{
    const struct setting s = {context, offset, gap, 0, op->units};
    op->run(&s, out);
    release_all();
}

static void compare(const struct invariant *op, size_t first, size_t units, const char *what, size_t number)
{
    char text[128];
    size_t from = row_of(op, first), rows = row_of(op, first + units) - from;
    snprintf(text, sizeof text, "%s, %s %zu", op->name, what, number);
    check_same(rows, op->cols, got, op->cols, base + from * op->cols, op->cols, text);
}

static void check_executors(const struct invariant *op, const struct heed_kernels *table)
{
    for (size_t threads = 2; threads <= 4; threads += quick() ? 2 : 1) {
        heed_context *context = context_on(table, threads);
        CHECK(heed_context_threads(context) == threads);
        run_all(op, context, 0, 0, got);
        compare(op, 0, op->units, "threads", threads);
        heed_context_destroy(context);
    }
    for (int random = 0; random < 2; random++) {
        struct host host = {.threads = 3, .order = random ? HOST_RANDOM : HOST_REVERSED};
        heed_context *context = host_context(table, &host);
        run_all(op, context, 0, 0, got);
        compare(op, 0, op->units, random ? "random host" : "reversing host", 0);
        check_that(host.runs > 0, "%s never ran on the host", op->name);
        heed_context_destroy(context);
    }
}

static void check_memory(const struct invariant *op, const heed_context *context)
{
    for (size_t offset = 1; offset < 16; offset += quick() ? 7 : 1) {
        run_all(op, context, offset, 0, got);
        compare(op, 0, op->units, "offset", offset);
    }
    for (size_t gap = 1; gap < 20; gap += quick() ? 15 : 3) {
        run_all(op, context, gap % 7, gap, got);
        compare(op, 0, op->units, "gap", gap);
    }
}

/* Rows in groups, one after the other, and asked for far ahead, and operands that a second cache holds or does not,
 * whatever this CPU is given. */
static void check_caches(const struct invariant *op, heed_context *context)
{
    const size_t in_order = context->in_order, l2 = context->l2;
    const bool wide_core = context->wide_core;
    const size_t orders[] = {HEED_CPU_ANY_ORDER, 0, HEED_CPU_ANY_ORDER - 1}, caches[] = {1024, l2};
    for (size_t i = 0; i < COUNT(orders) * COUNT(caches); i++) {
        context->in_order = orders[i / COUNT(caches)];
        context->l2 = caches[i % COUNT(caches)];
        context->wide_core = (i / COUNT(caches) + i) % 2 > 0;
        run_all(op, context, 0, 0, got);
        compare(op, 0, op->units, context->l2 == l2 ? "in order from bytes" : "small L2, in order from bytes",
                context->in_order);
    }
    context->in_order = in_order;
    context->l2 = l2;
    context->wide_core = wide_core;
}

static void check_split(const struct invariant *op, const heed_context *context)
{
    size_t step = op->rows ? 1 : op->units / (quick() ? 3 : 14) + 1;
    for (size_t unit = 0; unit < op->units; unit += step) {
        const struct setting alone = {context, 0, 0, unit, 1};
        op->run(&alone, got);
        release_all();
        compare(op, unit, 1, "alone", unit);
    }
    size_t half = op->units / 2;
    const struct setting rest = {context, 0, 0, half, op->units - half};
    op->run(&rest, got);
    release_all();
    compare(op, half, op->units - half, "second half from", half);
}

static uint64_t class_hashes[2][COUNT(invariants)];

static void check_class(const struct invariant *op, size_t index, const struct heed_kernels *table)
{
    uint64_t hash = hash_floats(HASH_START, row_of(op, op->units) * op->cols, base);
    uint64_t *expected = &class_hashes[table->fused][index];
    if (*expected == 0)
        *expected = hash;
    check_that(hash == *expected, "%s on %s differs from the first table of its class", op->name, table->name);
}

/* ---- norms of long rows, wherever their results lie ---- */

enum { MOST_LONG = 8193, MOST_LONG_ROWS = 5, PAGE_FLOATS = 1024 };

static void run_norm(const heed_context *context, bool root, size_t rows, size_t cols, const float *x, float *y)
{
    float scale[MOST_LONG], shift[MOST_LONG];
    for (size_t j = 0; j < cols; j++) {
        scale[j] = 0.5f + (float)(j % 29);
        shift[j] = (float)(j % 31) - 15.0f;
    }
    heed_layernorm_options options = HEED_LAYERNORM_OPTIONS_INIT;
    heed_rmsnorm_options root_options = HEED_RMSNORM_OPTIONS_INIT;
    options.scale = root_options.scale = scale;
    options.shift = shift;
    if (root)
        check_ok(heed_rmsnorm(context, rows, cols, x, cols, &root_options, y, cols), "rmsnorm");
    else
        check_ok(heed_layernorm(context, rows, cols, x, cols, &options, y, cols), "layernorm");
}

/* y lies `at` floats after a multiple of 4096 bytes from x, in room of its own. */
static void check_norm_at(const heed_context *context, bool root, size_t rows, size_t cols, size_t at, const float *x,
                          const float *want)
{
    size_t n = rows * cols;
    float *room = buffer(n + 2 * PAGE_FLOATS, 0), *y = room + 1;
    for (size_t i = 0; i < n + 2 * PAGE_FLOATS; i++)
        room[i] = -7.0f;
    y += (at + PAGE_FLOATS - ((uintptr_t)y - (uintptr_t)x) / sizeof *y % PAGE_FLOATS) % PAGE_FLOATS;
    run_norm(context, root, rows, cols, x, y);
    check_that(memcmp(y, want, n * sizeof *y) == 0, "%zu x %zu, results %zu floats after", rows, cols, at);
    check_that(y[-1] == -7.0f && y[n] == -7.0f, "%zu x %zu: written beside the results", rows, cols);
}

/* Their last pass goes up or down by it. */
static void test_long_norms(const struct heed_kernels *table, const heed_context *context)
{
    static const size_t lengths[] = {1537, 1568, 2048, 2060, 3072, 4099, MOST_LONG};
    static const size_t near[] = {0, 1, 8, 16, 33, 100, 127, 128, 512, 896, 897, 1000, 1023};
    begin("%s norms of long rows, wherever their results lie", table->name);
    for (size_t l = 0; l < COUNT(lengths); l++)
        for (size_t rows = 1; rows <= MOST_LONG_ROWS; rows++)
            for (int root = 0; root <= 1; root++) {
                size_t n = rows * lengths[l];
                float *x = buffer(n, rows), *want = buffer(n, 0);
                fill_uniform(x, n, -1.5f, 1.5f);
                memcpy(want, x, n * sizeof *x);
                run_norm(context, root != 0, rows, lengths[l], want, want);
                for (size_t i = 0; i < COUNT(near); i += quick() ? 3 : 1)
                    check_norm_at(context, root != 0, rows, lengths[l], near[i], x, want);
            }
    end();
}

/* A padded batch with kv_lengths gives the rows of the ragged one. */
static void test_padding(const struct heed_kernels *table, const heed_context *context)
{
    struct layer_problem problem;
    struct packed_layer layer;
    float *x = buffer(LAYER_ROWS * D_MODEL, 1), *y = buffer(LAYER_ROWS * D_MODEL, 2);
    float *padded = buffer(SEQUENCES * LONGEST * D_MODEL, 3);
    size_t lengths[SEQUENCES];
    begin("%s encoder layer, padded and ragged", table->name);
    layer_options.order = HEED_NORM_POST;
    make_layer(&problem, 80);
    pack_layer(&layer, &problem);
    fill_uniform(x, LAYER_ROWS * D_MODEL, -1.0f, 1.0f);
    for (size_t s = 0; s < SEQUENCES; s++) {
        lengths[s] = offsets[s + 1] - offsets[s];
        memcpy(padded + s * LONGEST * D_MODEL, x + offsets[s] * D_MODEL, lengths[s] * D_MODEL * sizeof *x);
    }
    heed_encoder_args args = HEED_ENCODER_ARGS_INIT;
    args.batch = SEQUENCES;
    args.seq = LONGEST;
    args.offsets = offsets;
    args.x = x;
    args.y = y;
    args.ldx = args.ldy = D_MODEL;
    check_ok(heed_encoder(context, 1, &layer.layer, &args, NULL), "ragged");
    args.offsets = NULL;
    args.kv_lengths = lengths;
    args.x = args.y = padded;
    check_ok(heed_encoder(context, 1, &layer.layer, &args, NULL), "padded, in place");
    for (size_t s = 0; s < SEQUENCES; s++)
        check_same(lengths[s], D_MODEL, padded + s * LONGEST * D_MODEL, D_MODEL, y + offsets[s] * D_MODEL, D_MODEL,
                   "sequence");
    end();
    release_all();
}

/* ---- layers have the bits of the operators that they are made of ---- */

static float *project_rows(const heed_context *context, size_t rows, const float *x, const heed_weights *w,
                           const float *bias, heed_activation activation, const float *residual)
{
    heed_linear_options options = HEED_LINEAR_OPTIONS_INIT;
    float *y = buffer(rows * heed_weights_out(w), 1);
    options.bias = bias;
    options.activation = activation;
    options.residual = residual;
    options.ld_residual = heed_weights_out(w);
    check_ok(heed_linear(context, rows, x, heed_weights_in(w), w, &options, y, heed_weights_out(w)), "linear");
    return y;
}

static float *project(const heed_context *context, const float *x, const heed_weights *w, const float *bias,
                      heed_activation activation, const float *residual)
{
    return project_rows(context, LAYER_ROWS, x, w, bias, activation, residual);
}

/* A gated feed-forward layer against two projections and the elementwise gate. */
static void test_gated(const heed_context *context, const float *x)
{
    enum { HIDDEN = 50 };
    float *gate = buffer(D_MODEL * HIDDEN, 3), *up = buffer(D_MODEL * HIDDEN, 3), *down = buffer(HIDDEN * D_MODEL, 3);
    float *gate_bias = buffer(HIDDEN, 1), *up_bias = buffer(HIDDEN, 2), *y = buffer(LAYER_ROWS * D_MODEL, 3);
    fill_uniform(gate, D_MODEL * HIDDEN, -1.0f, 1.0f);
    fill_uniform(up, D_MODEL * HIDDEN, -1.0f, 1.0f);
    fill_uniform(down, HIDDEN * D_MODEL, -1.0f, 1.0f);
    fill_uniform(gate_bias, HIDDEN, -1.0f, 1.0f);
    fill_uniform(up_bias, HIDDEN, -1.0f, 1.0f);
    heed_ffn_weights w = HEED_FFN_WEIGHTS_INIT;
    w.up = packed_pair(D_MODEL, HIDDEN, gate, up);
    w.down = packed(HIDDEN, D_MODEL, down);
    w.activation = HEED_ACTIVATION_SILU;
    w.gate_bias = gate_bias;
    w.up_bias = up_bias;
    check_ok(heed_ffn(context, &w, LAYER_ROWS, x, D_MODEL, x, D_MODEL, y, D_MODEL, NULL), "gated ffn");
    float *g = project(context, x, packed(D_MODEL, HIDDEN, gate), gate_bias, HEED_ACTIVATION_NONE, NULL);
    float *u = project(context, x, packed(D_MODEL, HIDDEN, up), up_bias, HEED_ACTIVATION_NONE, NULL);
    check_ok(heed_activate_gated(context, HEED_ACTIVATION_SILU, LAYER_ROWS, HIDDEN, g, HIDDEN, u, HIDDEN, g, HIDDEN),
             "gate");
    const float *want = project(context, g, w.down, NULL, HEED_ACTIVATION_NONE, x);
    check_same(LAYER_ROWS, D_MODEL, y, D_MODEL, want, D_MODEL, "gated ffn by parts");
}

/* Positions of packed tokens, counted in each sequence. */
static void count_positions(int32_t positions[LAYER_ROWS])
{
    for (size_t b = 0; b < SEQUENCES; b++)
        for (size_t i = offsets[b]; i < offsets[b + 1]; i++)
            positions[i] = (int32_t)(i - offsets[b]);
}

/* Projected heads with their norm and rotary, where they have them. */
static float *project_heads(const heed_context *context, size_t rows, const float *x, const heed_weights *w,
                            const float *bias, const float *norm, float eps, const heed_rotary_tables *rotary)
{
    float *heads = project_rows(context, rows, x, w, bias, HEED_ACTIVATION_NONE, NULL);
    heed_rmsnorm_options options = HEED_RMSNORM_OPTIONS_INIT;
    options.scale = norm;
    options.eps = eps;
    if (norm)
        check_ok(heed_rmsnorm(context, rows * N_HEADS, HEAD_DIM, heads, HEAD_DIM, &options, heads, HEAD_DIM),
                 "head norm");
    int32_t positions[LAYER_ROWS];
    count_positions(positions);
    heed_rotary_args turn = HEED_ROTARY_ARGS_INIT;
    turn.tables = *rotary;
    turn.batch = 1;
    turn.seq = rows;
    turn.n_heads = N_HEADS;
    turn.head_dim = HEAD_DIM;
    turn.ids = positions;
    turn.src = (heed_heads){heads, 0, HEAD_DIM, D_MODEL};
    turn.dst = (heed_heads_out){heads, 0, HEAD_DIM, D_MODEL};
    if (rotary->dims > 0)
        check_ok(heed_rotary(context, &turn), "rotary");
    return heads;
}

/* Where keys and values come from. */
struct source {
    const float *rows;
    size_t n, longest;
    const size_t *offsets;
};

static float *attend_by_parts(const heed_context *context, const heed_mha_weights *w, heed_attention_args a,
                              const heed_rotary_tables *rotary, const float *x, struct source from,
                              const float *residual)
{
    const float *q = project_heads(context, LAYER_ROWS, x, w->query, w->query_bias, w->query_norm, w->norm_eps, rotary);
    const float *k = project_heads(context, from.n, from.rows, w->key, w->key_bias, w->key_norm, w->norm_eps, rotary);
    const float *v = project_rows(context, from.n, from.rows, w->value, w->value_bias, HEED_ACTIVATION_NONE, NULL);
    float *out = buffer(LAYER_ROWS * D_MODEL, 2);
    a.batch = SEQUENCES;
    a.n_heads = a.n_kv_heads = N_HEADS;
    a.seq_q = LONGEST;
    a.seq_kv = from.longest;
    a.head_dim = a.value_dim = HEAD_DIM;
    a.q = (heed_heads){q, 0, HEAD_DIM, D_MODEL};
    a.k = (heed_heads){k, 0, HEAD_DIM, D_MODEL};
    a.v = (heed_heads){v, 0, HEAD_DIM, D_MODEL};
    a.out = (heed_heads_out){out, 0, HEAD_DIM, D_MODEL};
    a.q_offsets = offsets;
    a.kv_offsets = from.offsets;
    check_ok(heed_attention(context, &a, NULL), "attention");
    return project(context, out, w->output, w->output_bias, HEED_ACTIVATION_NONE, residual);
}

static float *self_by_parts(const heed_context *context, const heed_encoder_layer *l, heed_causal causal,
                            const float *x, const float *residual)
{
    heed_attention_args a = HEED_ATTENTION_ARGS_INIT;
    a.causal = causal;
    a.scale = l->scale;
    a.scale_value = l->scale_value;
    a.window_left = l->window_left;
    a.window_right = l->window_right;
    a.softcap = l->softcap;
    a.slopes = l->slopes;
    a.sinks = l->sinks;
    const struct source tokens = {x, LAYER_ROWS, LONGEST, offsets};
    return attend_by_parts(context, l->attention, a, &l->rotary, x, tokens, residual);
}

static float *cross_by_parts(const heed_context *context, const heed_decoder_layer *l, struct source memory,
                             const float *x, const float *residual)
{
    static const heed_rotary_tables none;
    heed_attention_args a = HEED_ATTENTION_ARGS_INIT;
    a.scale = l->scale;
    a.scale_value = l->scale_value;
    return attend_by_parts(context, l->cross, a, &none, x, memory, residual);
}

static float *feed_forward_by_parts(const heed_context *context, const heed_ffn_weights *w, const float *x,
                                    const float *residual)
{
    const float *hidden = project(context, x, w->up, w->up_bias, w->activation, NULL);
    return project(context, hidden, w->down, w->down_bias, HEED_ACTIVATION_NONE, residual);
}

static float *normalize(const heed_context *context, heed_norm norm, const float *x, const float *scale,
                        const float *shift, float eps)
{
    heed_layernorm_options layer = HEED_LAYERNORM_OPTIONS_INIT;
    heed_rmsnorm_options rms = HEED_RMSNORM_OPTIONS_INIT;
    float *y = buffer(LAYER_ROWS * D_MODEL, 3);
    layer.scale = rms.scale = scale;
    layer.shift = shift;
    layer.eps = rms.eps = eps;
    check_ok(norm == HEED_NORM_RMSNORM ? heed_rmsnorm(context, LAYER_ROWS, D_MODEL, x, D_MODEL, &rms, y, D_MODEL)
                                       : heed_layernorm(context, LAYER_ROWS, D_MODEL, x, D_MODEL, &layer, y, D_MODEL),
             "norm");
    return y;
}

/* cross NULL: an encoder's layer. */
static const float *layer_by_parts(const heed_context *context, const heed_encoder_layer *l, heed_causal causal,
                                   const heed_decoder_layer *cross, struct source memory, const float *x)
{
    const float *y;
    if (l->order == HEED_NORM_PRE) {
        y = normalize(context, l->norm, x, l->norm1_scale, l->norm1_shift, l->eps);
        x = self_by_parts(context, l, causal, y, x);
        if (cross) {
            y = normalize(context, l->norm, x, cross->norm_scale, cross->norm_shift, l->eps);
            x = cross_by_parts(context, cross, memory, y, x);
        }
        y = normalize(context, l->norm, x, l->norm2_scale, l->norm2_shift, l->eps);
        return feed_forward_by_parts(context, l->ffn, y, x);
    }
    y = self_by_parts(context, l, causal, x, x);
    y = normalize(context, l->norm, y, l->norm1_scale, l->norm1_shift, l->eps);
    if (cross) {
        y = cross_by_parts(context, cross, memory, y, y);
        y = normalize(context, l->norm, y, cross->norm_scale, cross->norm_shift, l->eps);
    }
    y = feed_forward_by_parts(context, l->ffn, y, y);
    return normalize(context, l->norm, y, l->norm2_scale, l->norm2_shift, l->eps);
}

static void check_longest_softmax(const struct heed_kernels *table, size_t rows, size_t cols)
{
    heed_context *one = context_on(table, 1), *four = context_on(table, 4);
    float *x = buffer(rows * cols, 0), *want = buffer(rows * cols, 0);
    fill_uniform(x, rows * cols, -3.0f, 3.0f);
    check_ok(heed_softmax(one, rows, cols, x, cols, want, cols), "softmax of the longest rows");
    check_ok(heed_softmax(four, rows, cols, x, cols, x, cols), "softmax of the longest rows by four threads");
    check_same(rows, cols, x, cols, want, cols, "softmax of the longest rows");
    heed_context_destroy(four);
    heed_context_destroy(one);
}

/* A row, or two, of more blocks of a reduction than workers that share a row have room to note sums of. */
static void test_longest_softmax(const struct heed_kernels *table)
{
    enum { BLOCK = 4096 };
    if (quick())
        return;
    check_longest_softmax(table, 1, (size_t)1300 * BLOCK + 5);
    check_longest_softmax(table, 2, (size_t)650 * BLOCK + 5);
}

/* What a layer passes on to its attention; kind 0 leaves the defaults. */
static void shape_attention(heed_encoder_layer *layer, int kind)
{
    float *slopes = buffer(N_HEADS, 1), *sinks = buffer(N_HEADS, 1);
    fill_uniform(slopes, N_HEADS, 0.1f, 0.5f);
    fill_uniform(sinks, N_HEADS, -1.0f, 2.0f);
    if (kind == 1) {
        layer->window_left = 3;
        layer->window_right = 2;
        layer->sinks = sinks;
    } else if (kind == 2) {
        layer->scale = HEED_SCALE_VALUE;
        layer->scale_value = 0.7f;
        layer->softcap = 1.5f;
        layer->slopes = slopes;
    }
}

static const struct source nowhere;

static const float *random_memory(size_t rows)
{
    float *memory = buffer(rows * D_MODEL, 1);
    fill_uniform(memory, rows * D_MODEL, -1.0f, 1.0f);
    return memory;
}

/* Layers one after another, rows of x and y by strides of their own, and a last norm with either vector. */
static void test_stack(const heed_context *context, const float *x)
{
    enum { LDX = D_MODEL + 3, LDY = D_MODEL + 5 };
    float *apart = buffer(LAYER_ROWS * LDX, 1), *y = buffer(LAYER_ROWS * LDY, 2);
    for (size_t i = 0; i < LAYER_ROWS; i++)
        memcpy(apart + i * LDX, x + i * D_MODEL, D_MODEL * sizeof *x);
    for (int kind = 0; kind < 4; kind++) {
        struct layer_problem problems[2];
        struct packed_layer layers[2];
        layer_options.order = kind & 1 ? HEED_NORM_PRE : HEED_NORM_POST;
        for (size_t i = 0; i < 2; i++) {
            make_layer(&problems[i], 88 + i);
            pack_layer(&layers[i], &problems[i]);
        }
        const heed_encoder_layer stack[] = {layers[0].layer, layers[1].layer};
        heed_encoder_args args = HEED_ENCODER_ARGS_INIT;
        args.batch = SEQUENCES;
        args.seq = LONGEST;
        args.offsets = offsets;
        args.final_norm = kind == 0 ? HEED_NORM_RMSNORM : HEED_NORM_LAYERNORM;
        args.final_scale = kind != 1 ? problems[0].norm1_scale : NULL;
        args.final_shift = kind != 0 ? problems[0].norm1_shift : NULL;
        args.final_eps = 0.25f;
        args.x = apart;
        args.ldx = LDX;
        args.y = y;
        args.ldy = LDY;
        check_ok(heed_encoder(context, 2, stack, &args, NULL), "stack");
        const float *want = layer_by_parts(context, &stack[0], HEED_CAUSAL_NONE, NULL, nowhere, x);
        want = layer_by_parts(context, &stack[1], HEED_CAUSAL_NONE, NULL, nowhere, want);
        want = normalize(context, args.final_norm, want, args.final_scale, args.final_shift, args.final_eps);
        check_same(LAYER_ROWS, D_MODEL, y, LDY, want, D_MODEL, "stack");
    }
}

/* The layer with attention to memory beside, of other lengths than the tokens. */
static void check_decoder(const heed_context *context, const heed_encoder_layer *self, const heed_encoder_args *tokens,
                          const float *x)
{
    static const size_t memory_offsets[SEQUENCES + 1] = {0, 30, 30, 33, 50, 51, 60};
    const struct source memory = {random_memory(60), 60, 30, memory_offsets};
    struct layer_problem problem;
    struct packed_layer other;
    make_layer(&problem, 87);
    pack_layer(&other, &problem);
    heed_decoder_layer layer = HEED_DECODER_LAYER_INIT;
    heed_decoder_args args = HEED_DECODER_ARGS_INIT;
    layer.self = self;
    layer.cross = &other.attention;
    layer.norm_scale = problem.norm1_scale;
    layer.norm_shift = problem.norm1_shift;
    layer.scale = HEED_SCALE_VALUE;
    layer.scale_value = 0.3f;
    args.self = tokens;
    args.memory = memory.rows;
    args.ld_memory = D_MODEL;
    args.memory_seq = memory.longest;
    args.memory_offsets = memory_offsets;
    check_ok(heed_decoder(context, 1, &layer, &args, NULL), "decoder");
    const float *want = layer_by_parts(context, self, tokens->causal, &layer, memory, x);
    check_same(LAYER_ROWS, D_MODEL, tokens->y, D_MODEL, want, D_MODEL, "decoder layer");
}

static void test_composition(const struct heed_kernels *table, const heed_context *context)
{
    begin("%s layers have the bits of their operators", table->name);
    for (int kind = 0; kind < 6; kind++) {
        static const heed_causal causals[] = {HEED_CAUSAL_NONE, HEED_CAUSAL_NONE, HEED_CAUSAL_BOTTOM_RIGHT};
        struct layer_problem problem;
        struct packed_layer layer;
        float *x = buffer(LAYER_ROWS * D_MODEL, 1), *y = buffer(LAYER_ROWS * D_MODEL, 2);
        layer_options.order = kind < 3 ? HEED_NORM_POST : HEED_NORM_PRE;
        layer_options.norm = kind % 3 == 2 ? HEED_NORM_RMSNORM : HEED_NORM_LAYERNORM;
        make_layer(&problem, 85);
        pack_layer(&layer, &problem);
        fill_uniform(x, LAYER_ROWS * D_MODEL, -1.0f, 1.0f);
        shape_attention(&layer.layer, kind % 3);
        heed_encoder_args args = HEED_ENCODER_ARGS_INIT;
        args.batch = SEQUENCES;
        args.seq = LONGEST;
        args.offsets = offsets;
        args.x = x;
        args.y = y;
        args.ldx = args.ldy = D_MODEL;
        args.causal = causals[kind % 3];
        check_ok(heed_encoder(context, 1, &layer.layer, &args, NULL), "encoder");
        const float *want = layer_by_parts(context, &layer.layer, args.causal, NULL, nowhere, x);
        check_same(LAYER_ROWS, D_MODEL, y, D_MODEL, want, D_MODEL, "layer");
        check_decoder(context, &layer.layer, &args, x);
        release_all();
    }
    layer_options.norm = HEED_NORM_LAYERNORM;
    float *x = buffer(LAYER_ROWS * D_MODEL, 1);
    fill_uniform(x, LAYER_ROWS * D_MODEL, -1.0f, 1.0f);
    test_stack(context, x);
    test_gated(context, x);
    test_longest_softmax(table);
    release_all();
    end();
}

static void test_table(const struct heed_kernels *table)
{
    heed_context *context = context_on(table, 1);
    for (size_t i = 0; i < COUNT(invariants); i++) {
        const struct invariant *op = &invariants[i];
        begin("%s %s whatever runs it", table->name, op->name);
        run_all(op, context, 0, 0, base);
        check_class(op, i, table);
        check_executors(op, table);
        check_memory(op, context);
        check_caches(op, context);
        check_split(op, context);
        end();
    }
    test_long_norms(table, context);
    test_padding(table, context);
    test_composition(table, context);
    heed_context_destroy(context);
}

/* ---- a context used from everywhere ---- */

#define CALLERS 8

/* What the callers share: made before, because the test's own buffers are not for threads. */
static struct {
    heed_context *context;
    struct packed_layer layer;
    const float *x;
    float want[LAYER_ROWS * D_MODEL];
} shared;

static int encode(const heed_context *context, float *y)
{
    heed_encoder_args args = HEED_ENCODER_ARGS_INIT;
    args.batch = SEQUENCES;
    args.seq = LONGEST;
    args.offsets = offsets;
    args.x = shared.x;
    args.y = y;
    args.ldx = args.ldy = D_MODEL;
    return heed_encoder(context, 1, &shared.layer.layer, &args, NULL) == HEED_OK;
}

static int encode_and_compare(const heed_context *context)
{
    float y[LAYER_ROWS * D_MODEL];
    return encode(context, y) && memcmp(y, shared.want, sizeof y) == 0;
}

static void *caller(void *failed)
{
    for (int i = 0; i < (quick() ? 4 : 20); i++)
        if (!encode_and_compare(i % 4 == 3 ? NULL : shared.context))
            *(int *)failed = 1;
    return NULL;
}

static void test_concurrent_calls(void)
{
    pthread_t threads[CALLERS];
    int failed[CALLERS] = {0};
    begin("one context used by %d threads at once", CALLERS);
    for (size_t i = 0; i < CALLERS; i++)
        CHECK(pthread_create(&threads[i], NULL, caller, &failed[i]) == 0);
    for (size_t i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(!failed[i]);
    }
    end();
}

static void test_parallel_region(void)
{
    int failed = 0;
    begin("called inside a parallel region");
#ifdef _OPENMP
#pragma omp parallel num_threads(2) reduction(+ : failed)
#endif
    for (int i = 0; i < 5; i++)
        failed += !encode_and_compare(shared.context);
    CHECK(failed == 0);
    end();
}

/* A context of the child's own is no safer: the dead threads belong to the process. */
static int encode_on_new_context(void)
{
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    heed_context *context = NULL;
    options.threads = 2;
    int ok = heed_context_create(&context, &options) == HEED_OK && encode_and_compare(context);
    heed_context_destroy(context);
    return ok;
}

/* The parent's OpenMP threads do not exist in the child: it must neither hang nor differ. */
static void test_fork(void)
{
    begin("called after fork");
    CHECK(encode_and_compare(shared.context));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        _exit(encode_and_compare(shared.context) && encode_on_new_context() && encode_and_compare(NULL) ? 0 : 1);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    check_that(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status 0x%x", (unsigned)status);
    end();
}

int main(void)
{
    for_each_planned_table(test_table);
    struct layer_problem problem;
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    make_layer(&problem, 90);
    float *x = buffer(LAYER_ROWS * D_MODEL, 1);
    fill_uniform(x, LAYER_ROWS * D_MODEL, -1.0f, 1.0f);
    shared.x = x;
    options.threads = 2;
    begin("shared context");
    pack_layer(&shared.layer, &problem);
    CHECK(heed_context_create(&shared.context, &options) == HEED_OK);
    CHECK(encode(NULL, shared.want));
    end();
    test_concurrent_calls();
    test_parallel_region();
    test_fork();
    heed_context_destroy(shared.context);
    return finish();
}
