/* SPDX-License-Identifier: MIT
 * The cache of keys and values: attention over it, however it was filled, gives the bits of attention over
 * tensors, row by row as all at once, on any number of threads.
 */
#include "check.h"

#include <string.h>

enum { HEADS = 6, KV_HEADS = 2, DIM = 9, VALUES = 20, MOST_KEYS = 700, SEQUENCES = 3 };

static const size_t lengths[SEQUENCES] = {700, 257, 33};

static float keys[SEQUENCES][KV_HEADS * MOST_KEYS * DIM], values[SEQUENCES][KV_HEADS * MOST_KEYS * VALUES];
static float queries[SEQUENCES][HEADS * MOST_KEYS * DIM];
static float want[SEQUENCES][HEADS * MOST_KEYS * VALUES], want_sum[SEQUENCES][HEADS * MOST_KEYS];
static float slopes[HEADS], sinks[HEADS];

static heed_context *context;

/* What a case adds to plain causal attention; rotary for what has projections. */
struct shaping {
    const char *name;
    size_t window_left;
    float softcap;
    int slopes, sinks, rotary;
};

static const struct shaping shapings[] = {
    {"plain", HEED_UNBOUNDED, 0.0f, 0, 0, 0},
    {"window", 300, 0.0f, 0, 0, 1},
    {"all", 290, 8.0f, 1, 1, 1},
};

static float cosines[MOST_KEYS * DIM / 2], sines[MOST_KEYS * DIM / 2];
static const heed_rotary_tables rotary = {HEED_ROTARY_HALVES, DIM - 1, cosines, sines, DIM / 2, DIM / 2, MOST_KEYS};

static heed_heads head_major(const float *data, size_t rows, size_t dim)
{
    return (heed_heads){data, 0, rows * dim, dim};
}

static heed_attention_args common_args(const struct shaping *shaping)
{
    heed_attention_args a = HEED_ATTENTION_ARGS_INIT;
    a.batch = 1;
    a.n_heads = HEADS;
    a.n_kv_heads = KV_HEADS;
    a.seq_kv = MOST_KEYS;
    a.head_dim = DIM;
    a.value_dim = VALUES;
    a.causal = HEED_CAUSAL_BOTTOM_RIGHT;
    a.window_left = shaping->window_left;
    a.softcap = shaping->softcap;
    a.slopes = shaping->slopes ? slopes : NULL;
    a.sinks = shaping->sinks ? sinks : NULL;
    return a;
}

static void fill(void)
{
    seed(300);
    fill_uniform(slopes, HEADS, -0.1f, 0.2f);
    fill_uniform(sinks, HEADS, -1.0f, 3.0f);
    fill_uniform(cosines, MOST_KEYS * DIM / 2, -1.0f, 1.0f);
    fill_uniform(sines, MOST_KEYS * DIM / 2, -1.0f, 1.0f);
    for (size_t s = 0; s < SEQUENCES; s++) {
        fill_uniform(keys[s], KV_HEADS * MOST_KEYS * DIM, -1.5f, 1.5f);
        fill_uniform(values[s], KV_HEADS * MOST_KEYS * VALUES, -1.0f, 1.0f);
        fill_uniform(queries[s], HEADS * MOST_KEYS * DIM, -1.5f, 1.5f);
    }
}

/* Every row of every sequence from tensors, on one thread. */
static void prefill(const struct shaping *shaping, const heed_context *serial)
{
    for (size_t s = 0; s < SEQUENCES; s++) {
        heed_attention_args a = common_args(shaping);
        a.seq_q = a.seq_kv = lengths[s];
        a.q = head_major(queries[s], MOST_KEYS, DIM);
        a.k = head_major(keys[s], MOST_KEYS, DIM);
        a.v = head_major(values[s], MOST_KEYS, VALUES);
        a.out = (heed_heads_out){want[s], 0, MOST_KEYS * VALUES, VALUES};
        a.log_sum_exp = (heed_heads_out){want_sum[s], 0, MOST_KEYS, 1};
        CHECK(heed_attention(serial, &a, NULL) == HEED_OK);
    }
}

/* ---- caches ---- */

static heed_kv_cache *make_cache(size_t page_keys, size_t pages)
{
    heed_kv_cache_options o = HEED_KV_CACHE_OPTIONS_INIT;
    heed_kv_cache *cache = NULL;
    size_t bytes = 0;
    o.batch = SEQUENCES;
    o.n_kv_heads = KV_HEADS;
    o.head_dim = DIM;
    o.value_dim = VALUES;
    o.capacity = MOST_KEYS;
    o.page_keys = page_keys;
    o.pages = pages;
    CHECK(heed_kv_cache_bytes(&o, &bytes) == HEED_OK);
    /* NaN throughout, and nothing beyond. */
    CHECK(heed_kv_cache_create(&o, guarded((bytes + 7) / 8 * 2, 1), bytes, &cache) == HEED_OK);
    return cache;
}

/* Pages in an order that is not that of the keys. */
static void set_all_pages(heed_kv_cache *cache, size_t page_keys)
{
    size_t cols = (MOST_KEYS + page_keys - 1) / page_keys;
    for (size_t s = 0; s < SEQUENCES; s++)
        for (size_t i = 0; i < cols; i++) {
            int32_t page = (int32_t)((cols - 1 - i) * SEQUENCES + s);
            CHECK(heed_kv_cache_set_pages(cache, s, i, 1, &page) == HEED_OK);
        }
}

static heed_kv_cache *make_filled_pages(size_t page_keys)
{
    if (page_keys == 0)
        return make_cache(0, 0);
    heed_kv_cache *cache = make_cache(page_keys, SEQUENCES * ((MOST_KEYS + page_keys - 1) / page_keys));
    set_all_pages(cache, page_keys);
    return cache;
}

/* Keys first to first + n - 1 of a sequence's tensors, as the next ones of sequence `to`. */
static void append(heed_kv_cache *cache, size_t to, size_t s, size_t first, size_t n)
{
    heed_heads k = head_major(keys[s] + first * DIM, MOST_KEYS, DIM);
    heed_heads v = head_major(values[s] + first * VALUES, MOST_KEYS, VALUES);
    CHECK(heed_kv_cache_append(context, cache, to, n, &k, &v) == HEED_OK);
}

/* ---- attention over a cache ---- */

/* The last `rows` queries of every sequence whose cache now holds so many keys, compared with prefill. */
static void attend_last(const heed_kv_cache *cache, const struct shaping *shaping, const size_t *order, size_t rows,
                        const size_t held[SEQUENCES])
{
    static float q[SEQUENCES][HEADS * MOST_KEYS * DIM], out[SEQUENCES][HEADS * MOST_KEYS * VALUES];
    static float sum[SEQUENCES][HEADS * MOST_KEYS];
    heed_attention_args a = common_args(shaping);
    a.batch = SEQUENCES;
    a.seq_q = rows;
    a.cache = cache;
    a.cache_sequences = order;
    a.q = (heed_heads){q[0], HEADS * MOST_KEYS * DIM, rows * DIM, DIM};
    a.out = (heed_heads_out){out[0], HEADS * MOST_KEYS * VALUES, rows * VALUES, VALUES};
    a.log_sum_exp = (heed_heads_out){sum[0], HEADS * MOST_KEYS, rows, 1};
    for (size_t s = 0; s < SEQUENCES; s++)
        for (size_t h = 0; h < HEADS; h++)
            memcpy(q[s] + h * rows * DIM, queries[s] + (h * MOST_KEYS + held[s] - rows) * DIM,
                   rows * DIM * sizeof(float));
    CHECK(heed_attention(context, &a, NULL) == HEED_OK);
    for (size_t s = 0; s < SEQUENCES; s++)
        for (size_t h = 0; h < HEADS; h++) {
            size_t from = h * MOST_KEYS + held[s] - rows;
            check_same(rows, VALUES, out[s] + h * rows * VALUES, VALUES, want[s] + from * VALUES, VALUES, "decode");
            check_same(1, rows, sum[s] + h * rows, rows, want_sum[s] + from, rows, "log-sum-exp of decode");
        }
}

/* Filled in pieces, and attended to whenever a piece is in; sequence s of the batch is sequence order[s] of the
 * cache. */
static void check_growth(size_t page_keys, const struct shaping *shaping)
{
    static const size_t order[SEQUENCES] = {1, 2, 0};
    static const size_t pieces[] = {1, 1, 14, 16, 3, 222, 1, 31, 411};
    heed_kv_cache *cache = make_filled_pages(page_keys);
    size_t held[SEQUENCES] = {0};
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        size_t least = MOST_KEYS;
        for (size_t s = 0; s < SEQUENCES; s++) {
            size_t left = lengths[s] - held[s], n = pieces[p] < left ? pieces[p] : left, now = 0;
            append(cache, order[s], s, held[s], n);
            held[s] += n;
            CHECK(heed_kv_cache_length(cache, order[s], &now) == HEED_OK && now == held[s]);
            least = held[s] < least ? held[s] : least;
        }
        attend_last(cache, shaping, order, 1, held);
        attend_last(cache, shaping, order, least < 7 ? least : 7, held);
    }
    attend_last(cache, shaping, order, 33, held);
}

/* ---- appending to several sequences at once ---- */

/* The next n[s] keys of every sequence, packed behind two rows that belong to none. */
static void append_packed(heed_kv_cache *cache, const size_t *order, const size_t held[SEQUENCES],
                          const size_t n[SEQUENCES])
{
    enum { K_ROW = KV_HEADS * DIM, V_ROW = KV_HEADS * VALUES };
    size_t offsets[SEQUENCES + 1] = {2};
    for (size_t s = 0; s < SEQUENCES; s++)
        offsets[s + 1] = offsets[s] + n[s];
    float *k = guarded(offsets[SEQUENCES] * K_ROW, 1), *v = guarded(offsets[SEQUENCES] * V_ROW, 1);
    for (size_t s = 0; s < SEQUENCES; s++)
        for (size_t i = 0; i < n[s]; i++)
            for (size_t h = 0; h < KV_HEADS; h++) {
                size_t to = offsets[s] + i, from = h * MOST_KEYS + held[s] + i;
                memcpy(k + to * K_ROW + h * DIM, keys[s] + from * DIM, DIM * sizeof(float));
                memcpy(v + to * V_ROW + h * VALUES, values[s] + from * VALUES, VALUES * sizeof(float));
            }
    const heed_heads k_heads = {k, 0, DIM, K_ROW}, v_heads = {v, 0, VALUES, V_ROW};
    CHECK(heed_kv_cache_append_batch(context, cache, SEQUENCES, order, MOST_KEYS, offsets, &k_heads, &v_heads) ==
          HEED_OK);
}

static void check_same_caches(const heed_kv_cache *a, const heed_kv_cache *b)
{
    CHECK(memcmp(a->length, b->length, a->batch * sizeof *a->length) == 0);
    CHECK(memcmp(a->data, b->data, a->pages * a->page_floats * sizeof *a->data) == 0);
}

/* Appended at once, packed and not, sequences give the cache that they give one after another. */
static void check_batches(size_t page_keys)
{
    static const size_t order[SEQUENCES] = {2, 0, 1}, in_order[SEQUENCES] = {0, 1, 2};
    static const size_t pieces[][SEQUENCES] = {{3, 0, 1}, {0, 0, 0}, {1, 17, 2}, {300, 210, 1}, {390, 24, 23}};
    enum { EACH = 6 };
    heed_kv_cache *apart = make_filled_pages(page_keys), *at_once = make_filled_pages(page_keys);
    size_t held[SEQUENCES] = {EACH, EACH, EACH};
    for (size_t s = 0; s < SEQUENCES; s++)
        append(apart, order[s], s, 0, EACH);
    heed_heads k = {keys[0], KV_HEADS * MOST_KEYS * DIM, MOST_KEYS * DIM, DIM};
    heed_heads v = {values[0], KV_HEADS * MOST_KEYS * VALUES, MOST_KEYS * VALUES, VALUES};
    CHECK(heed_kv_cache_append_batch(context, at_once, SEQUENCES, order, EACH, NULL, &k, &v) == HEED_OK);
    check_same_caches(at_once, apart);
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        append_packed(at_once, order, held, pieces[p]);
        for (size_t s = 0; s < SEQUENCES; s++) {
            append(apart, order[s], s, held[s], pieces[p][s]);
            held[s] += pieces[p][s];
        }
        check_same_caches(at_once, apart);
    }
    attend_last(at_once, &shapings[0], order, 5, held);
    for (size_t s = 0; s < SEQUENCES; s++)
        CHECK(heed_kv_cache_truncate(at_once, s, 0) == HEED_OK);
    CHECK(heed_kv_cache_append_batch(context, at_once, SEQUENCES, NULL, lengths[2], NULL, &k, &v) == HEED_OK);
    const size_t even[SEQUENCES] = {lengths[2], lengths[2], lengths[2]};
    attend_last(at_once, &shapings[0], in_order, 2, even);
}

/* ---- multi-head attention over a cache ---- */

enum { MODEL = 21, MEMORY_ROWS = 50 };

static float tokens[SEQUENCES][MOST_KEYS * MODEL], want_rows[SEQUENCES][MOST_KEYS * MODEL];

static const heed_weights *random_weights(size_t in, size_t out, const float **bias)
{
    float *w = buffer(in * out, 0), *b = buffer(out, 0);
    fill_uniform(w, in * out, -0.4f, 0.4f);
    fill_uniform(b, out, -0.5f, 0.5f);
    *bias = b;
    return packed(in, out, w);
}

static heed_mha_weights random_mha(void)
{
    heed_mha_weights w = HEED_MHA_WEIGHTS_INIT;
    seed(310);
    w.n_heads = HEADS;
    w.n_kv_heads = KV_HEADS;
    w.head_dim = DIM;
    w.value_dim = VALUES;
    w.query = random_weights(MODEL, HEADS * DIM, &w.query_bias);
    w.key = random_weights(MODEL, KV_HEADS * DIM, &w.key_bias);
    w.value = random_weights(MODEL, KV_HEADS * VALUES, &w.value_bias);
    w.output = random_weights(HEADS * VALUES, MODEL, &w.output_bias);
    w.query_norm = w.query_bias;
    w.key_norm = w.key_bias;
    for (size_t s = 0; s < SEQUENCES; s++)
        fill_uniform(tokens[s], MOST_KEYS * MODEL, -1.0f, 1.0f);
    return w;
}

static heed_mha_args common_mha(const struct shaping *shaping)
{
    heed_mha_args a = HEED_MHA_ARGS_INIT;
    a.batch = SEQUENCES;
    a.seq_kv = MOST_KEYS;
    a.ldx = a.ld_memory = a.ld_residual = a.ldy = MODEL;
    a.causal = HEED_CAUSAL_BOTTOM_RIGHT;
    a.window_left = shaping->window_left;
    a.softcap = shaping->softcap;
    a.slopes = shaping->slopes ? slopes : NULL;
    if (shaping->rotary)
        a.rotary = rotary;
    a.sinks = shaping->sinks ? sinks : NULL;
    return a;
}

/* In no more workspace than the query asks for. */
static void run_mha(const heed_mha_weights *w, const heed_mha_args *args)
{
    size_t bytes = 0;
    CHECK(heed_mha_workspace(context, w, args, &bytes) == HEED_OK);
    const heed_workspace workspace = {guarded(bytes / sizeof(float), 1), bytes};
    CHECK(heed_mha(context, w, args, &workspace) == HEED_OK);
}

/* All tokens of every sequence in a causal call without a cache. */
static void run_whole(const heed_mha_weights *w, const struct shaping *shaping)
{
    for (size_t s = 0; s < SEQUENCES; s++) {
        heed_mha_args a = common_mha(shaping);
        a.batch = 1;
        a.seq_q = lengths[s];
        a.x = a.residual = tokens[s];
        a.y = want_rows[s];
        run_mha(w, &a);
    }
}

/* The next n[s] tokens of every sequence; where uniform, without offsets. */
static void step(heed_kv_cache *cache, const heed_mha_weights *w, const struct shaping *shaping, const size_t *order,
                 size_t held[SEQUENCES], const size_t n[SEQUENCES], int is_uniform)
{
    size_t offsets[SEQUENCES + 1] = {0};
    for (size_t s = 0; s < SEQUENCES; s++)
        offsets[s + 1] = offsets[s] + n[s];
    float *x = guarded(offsets[SEQUENCES] * MODEL, 1), *y = guarded(offsets[SEQUENCES] * MODEL, 1);
    for (size_t s = 0; s < SEQUENCES; s++)
        memcpy(x + offsets[s] * MODEL, tokens[s] + held[s] * MODEL, n[s] * MODEL * sizeof *x);
    heed_mha_args a = common_mha(shaping);
    a.seq_q = is_uniform ? n[0] : MOST_KEYS;
    a.offsets = is_uniform ? NULL : offsets;
    a.x = a.residual = x;
    a.y = y;
    a.cache = cache;
    a.cache_sequences = order;
    run_mha(w, &a);
    for (size_t s = 0; s < SEQUENCES; s++) {
        size_t now = 0;
        check_same(n[s], MODEL, y + offsets[s] * MODEL, MODEL, want_rows[s] + held[s] * MODEL, MODEL, "decoded tokens");
        held[s] += n[s];
        CHECK(heed_kv_cache_length(cache, order[s], &now) == HEED_OK && now == held[s]);
    }
}

static void check_mha_steps(const heed_mha_weights *w, const struct shaping *shaping, size_t page_keys)
{
    static const size_t order[SEQUENCES] = {1, 2, 0};
    static const size_t pieces[][SEQUENCES] = {{30, 1, 0}, {1, 1, 1},    {1, 0, 0},    {400, 200, 7},
                                               {1, 1, 1},  {17, 30, 20}, {250, 23, 3}, {0, 1, 1}};
    heed_kv_cache *cache = make_filled_pages(page_keys);
    size_t held[SEQUENCES] = {0};
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
        step(cache, w, shaping, order, held, pieces[p], pieces[p][1] == pieces[p][0] && pieces[p][2] == pieces[p][0]);
    CHECK(held[0] == lengths[0] && held[1] == lengths[1] && held[2] == lengths[2]);
}

/* Queries to rows of a memory of equal length, with maps and a mask. */
static heed_mha_args cross_args(const float *x, size_t seq_q, float *y, float *map, const float *mask)
{
    heed_mha_args a = common_mha(&shapings[0]);
    a.seq_q = seq_q;
    a.seq_kv = MEMORY_ROWS;
    a.causal = HEED_CAUSAL_NONE;
    a.x = x;
    a.y = y;
    a.memory = tokens[2];
    a.mask = (heed_mask){mask, HEED_MASK_ADDITIVE, 0, 0, 0};
    a.map = (heed_heads_out){map, HEADS * seq_q * MEMORY_ROWS, seq_q * MEMORY_ROWS, MEMORY_ROWS};
    return a;
}

/* A memory that is cached by a first call, of no queries or of some, and then attended to without being read. */
static void check_cached_memory(const heed_mha_weights *w, size_t page_keys, size_t first_queries)
{
    enum { ASKED = 4 };
    const size_t memory_offsets[SEQUENCES + 1] = {0, MEMORY_ROWS, 2 * MEMORY_ROWS, 3 * MEMORY_ROWS};
    float *mask = guarded(MEMORY_ROWS, 1), *y[2], *map[2];
    fill_uniform(mask, MEMORY_ROWS, -1.0f, 1.0f);
    for (int i = 0; i < 2; i++) {
        y[i] = guarded(SEQUENCES * ASKED * MODEL, 1);
        map[i] = guarded(SEQUENCES * HEADS * ASKED * MEMORY_ROWS, 1);
    }
    heed_kv_cache *cache = make_filled_pages(page_keys);
    heed_mha_args a = cross_args(tokens[0], first_queries, y[0], map[0], mask);
    a.cache = cache;
    a.memory_offsets = memory_offsets;
    run_mha(w, &a);
    for (size_t asked = first_queries ? first_queries : ASKED; asked > 0; asked = asked == ASKED ? 1 : 0) {
        heed_mha_args plain = cross_args(tokens[0], asked, y[1], map[1], mask);
        run_mha(w, &plain);
        if (asked != first_queries) {
            a = cross_args(tokens[0], asked, y[0], map[0], mask);
            a.cache = cache;
            a.memory = guarded(0, 1);
            run_mha(w, &a);
        }
        check_same(SEQUENCES * asked, MODEL, y[0], MODEL, y[1], MODEL, "cached memory");
        check_same(SEQUENCES * HEADS * asked, MEMORY_ROWS, map[0], MEMORY_ROWS, map[1], MEMORY_ROWS,
                   "map of a cached memory");
    }
    for (size_t s = 0; s < SEQUENCES; s++)
        CHECK(cache->length[s] == MEMORY_ROWS);
}

/* ---- a stack of layers over caches ---- */

enum { LAYERS = 2, HIDDEN = 30, STACK_TOKENS = 40 };

static void make_stack(const heed_mha_weights w[LAYERS], heed_ffn_weights f[LAYERS], heed_encoder_layer stack[LAYERS])
{
    for (size_t i = 0; i < LAYERS; i++) {
        f[i] = (heed_ffn_weights)HEED_FFN_WEIGHTS_INIT;
        f[i].up = random_weights(MODEL, HIDDEN, &f[i].up_bias);
        f[i].down = random_weights(HIDDEN, MODEL, &f[i].down_bias);
        stack[i] = (heed_encoder_layer)HEED_ENCODER_LAYER_INIT;
        stack[i].attention = &w[i];
        stack[i].ffn = &f[i];
        stack[i].order = HEED_NORM_PRE;
    }
    stack[0].norm = HEED_NORM_RMSNORM;
    stack[0].rotary = rotary;
    stack[0].window_left = 7;
    stack[1].sinks = sinks;
}

/* n tokens of every sequence from `first` on, all of equal length. */
static heed_encoder_args stack_args(const size_t *order, size_t first, size_t n, float *y)
{
    heed_encoder_args a = HEED_ENCODER_ARGS_INIT;
    float *x = guarded(SEQUENCES * n * MODEL, 1);
    for (size_t s = 0; s < SEQUENCES; s++)
        memcpy(x + s * n * MODEL, tokens[s] + first * MODEL, n * MODEL * sizeof *x);
    a.batch = SEQUENCES;
    a.seq = n;
    a.causal = HEED_CAUSAL_BOTTOM_RIGHT;
    a.x = x;
    a.y = y;
    a.ldx = a.ldy = MODEL;
    a.seq_kv = STACK_TOKENS;
    a.cache_sequences = order;
    return a;
}

/* With an exact workspace. */
static void run_stack(const heed_encoder_layer stack[LAYERS], const heed_encoder_args *a)
{
    size_t bytes = 0;
    CHECK(heed_encoder_workspace(context, LAYERS, stack, a, &bytes) == HEED_OK);
    const heed_workspace workspace = {guarded(bytes / sizeof(float), 1), bytes};
    CHECK(heed_encoder(context, LAYERS, stack, a, &workspace) == HEED_OK);
}

static const size_t stack_order[SEQUENCES] = {2, 0, 1}, stack_pieces[] = {1, 1, 15, 2, 21};
enum { PIECES = sizeof stack_pieces / sizeof *stack_pieces };

static void check_piece(const float *whole, size_t held, size_t piece, const float *y)
{
    for (size_t s = 0; s < SEQUENCES; s++)
        check_same(piece, MODEL, y + s * piece * MODEL, MODEL, whole + (s * STACK_TOKENS + held) * MODEL, MODEL,
                   "stack by pieces");
}

static void check_stack(size_t page_keys)
{
    const heed_mha_weights w[LAYERS] = {random_mha(), random_mha()};
    heed_ffn_weights f[LAYERS];
    heed_encoder_layer stack[LAYERS];
    float *whole = guarded(SEQUENCES * STACK_TOKENS * MODEL, 1);
    make_stack(w, f, stack);
    heed_encoder_args a = stack_args(NULL, 0, STACK_TOKENS, whole);
    run_stack(stack, &a);
    for (size_t i = 0; i < LAYERS; i++)
        stack[i].cache = make_filled_pages(page_keys);
    size_t held = 0;
    for (size_t p = 0; p < PIECES; held += stack_pieces[p++]) {
        float *y = guarded(SEQUENCES * stack_pieces[p] * MODEL, 1);
        a = stack_args(stack_order, held, stack_pieces[p], y);
        run_stack(stack, &a);
        check_piece(whole, held, stack_pieces[p], y);
    }
    CHECK(held == STACK_TOKENS);
}

/* ---- a decoder over caches of tokens and of memory ---- */

static void run_decoder(const heed_decoder_layer layers[LAYERS], const heed_decoder_args *a)
{
    size_t bytes = 0;
    CHECK(heed_decoder_workspace(context, LAYERS, layers, a, &bytes) == HEED_OK);
    const heed_workspace workspace = {guarded(bytes / sizeof(float), 1), bytes};
    CHECK(heed_decoder(context, LAYERS, layers, a, &workspace) == HEED_OK);
}

/* Gives the caches a memory of their own for each sequence, or one for all in the cache's sequence 1. */
static void append_memory(const heed_decoder_layer layers[LAYERS], const float *memory, int shared)
{
    static const size_t offsets[SEQUENCES + 1] = {0, MEMORY_ROWS, 2 * MEMORY_ROWS, 3 * MEMORY_ROWS}, second = 1;
    heed_encoder_args none = HEED_ENCODER_ARGS_INIT;
    heed_decoder_args a = HEED_DECODER_ARGS_INIT;
    none.batch = shared ? 1 : SEQUENCES;
    a.self = &none;
    a.memory = memory;
    a.ld_memory = MODEL;
    a.memory_seq = MEMORY_ROWS;
    a.memory_offsets = offsets;
    a.memory_sequences = shared ? &second : NULL;
    run_decoder(layers, &a);
}

static void check_decoder(size_t page_keys, int shared)
{
    static const size_t second_for_all[SEQUENCES] = {1, 1, 1};
    const heed_mha_weights w[LAYERS] = {random_mha(), random_mha()}, cross = random_mha();
    heed_ffn_weights f[LAYERS];
    heed_encoder_layer stack[LAYERS];
    heed_decoder_layer layers[LAYERS];
    float *whole = guarded(SEQUENCES * STACK_TOKENS * MODEL, 1), *memory = guarded(SEQUENCES * MEMORY_ROWS * MODEL, 1);
    make_stack(w, f, stack);
    for (size_t s = 0; s < SEQUENCES; s++)
        memcpy(memory + s * MEMORY_ROWS * MODEL, tokens[shared ? 0 : s], MEMORY_ROWS * MODEL * sizeof *memory);
    for (size_t i = 0; i < LAYERS; i++) {
        layers[i] = (heed_decoder_layer)HEED_DECODER_LAYER_INIT;
        layers[i].self = &stack[i];
        layers[i].cross = &cross;
    }
    heed_decoder_args a = HEED_DECODER_ARGS_INIT;
    heed_encoder_args self = stack_args(NULL, 0, STACK_TOKENS, whole);
    a.self = &self;
    a.memory = memory;
    a.ld_memory = MODEL;
    a.memory_seq = MEMORY_ROWS;
    run_decoder(layers, &a);
    for (size_t i = 0; i < LAYERS; i++) {
        stack[i].cache = make_filled_pages(page_keys);
        layers[i].memory_cache = make_filled_pages(page_keys);
    }
    append_memory(layers, memory, shared);
    a.memory = NULL;
    a.memory_sequences = shared ? second_for_all : NULL;
    for (size_t p = 0, held = 0; p < PIECES; held += stack_pieces[p++]) {
        float *y = guarded(SEQUENCES * stack_pieces[p] * MODEL, 1);
        self = stack_args(stack_order, held, stack_pieces[p], y);
        run_decoder(layers, &a);
        check_piece(whole, held, stack_pieces[p], y);
    }
}

static void test_layers(const struct heed_kernels *table)
{
    static const size_t page_sizes[] = {0, 16, 272};
    for (size_t threads = 1; threads <= (quick() ? 1 : 3); threads += 2) {
        begin("%s: layers and decoders over caches have the bits of a whole call, %zu threads", table->name, threads);
        context = context_on(table, threads);
        fill();
        heed_mha_weights w = random_mha();
        for (size_t i = 0; i < sizeof shapings / sizeof *shapings; i++) {
            run_whole(&w, &shapings[i]);
            for (size_t p = 0; p < sizeof page_sizes / sizeof *page_sizes; p++)
                check_mha_steps(&w, &shapings[i], page_sizes[p]);
        }
        check_cached_memory(&w, 0, 4);
        check_cached_memory(&w, 16, 0);
        check_stack(0);
        check_stack(16);
        check_decoder(0, 0);
        check_decoder(16, 1);
        heed_context_destroy(context);
        context = NULL;
        end();
        release_all();
    }
}

/* ---- a workspace for all lengths ---- */

enum { GROWTH = 175 }; /* less than a key block; a part of the capacity */

static heed_workspace room(size_t bytes)
{
    return (heed_workspace){guarded(bytes / sizeof(float), 1), bytes};
}

/* What the query says of an empty cache, which has no pages yet, serves it until it is full, and calls are content with
 * less before. */
static void check_lasting_attention(heed_attention_loop loop, float *map)
{
    heed_kv_cache *cache = make_filled_pages(48);
    heed_attention_args a = common_args(&shapings[0]), shorter;
    size_t bytes = 0, now = 0, less = 0;
    a.seq_q = 1;
    a.cache = cache;
    a.loop = loop;
    a.q = head_major(queries[0], MOST_KEYS, DIM);
    a.out = (heed_heads_out){guarded(HEADS * VALUES, 1), 0, VALUES, VALUES};
    a.map = (heed_heads_out){map, 0, MOST_KEYS, MOST_KEYS};
    shorter = a;
    shorter.seq_kv = GROWTH;
    CHECK(heed_attention_workspace(context, &a, &bytes) == HEED_OK);
    CHECK(heed_attention_workspace(context, &shorter, &less) == HEED_OK && less < bytes);
    a.cache = make_cache(48, 1);
    CHECK(heed_attention_workspace(context, &a, &now) == HEED_OK && now == bytes);
    const size_t most = a.cache->capacity, beyond = most + 1;
    a.kv_lengths = &most;
    CHECK(heed_attention_workspace(context, &a, &now) == HEED_OK && now == bytes);
    a.kv_lengths = &beyond;
    CHECK(heed_attention_workspace(context, &a, &now) == HEED_ERR_SHAPE);
    a.kv_lengths = NULL;
    a.cache = cache;
    const heed_workspace lasting = room(bytes), small = room(less);
    for (size_t held = 0; held < MOST_KEYS; held += GROWTH) {
        append(cache, 0, 0, held, GROWTH);
        CHECK(heed_attention(context, &a, &lasting) == HEED_OK);
        CHECK(heed_attention(context, &a, &small) == (held == 0 ? HEED_OK : HEED_ERR_WORKSPACE) || held == GROWTH);
        CHECK(heed_attention_workspace(context, &a, &now) == HEED_OK && now == bytes);
    }
    CHECK(heed_attention_workspace(context, &shorter, &now) == HEED_OK && now == less);
    a.seq_kv = SIZE_MAX / 4; /* no cache has more than its capacity */
    a.map.data = NULL;
    CHECK(heed_attention_workspace(context, &a, &now) == HEED_OK && now <= bytes);
}

static void check_lasting_layers(void)
{
    const heed_mha_weights w[LAYERS] = {random_mha(), random_mha()};
    heed_ffn_weights f[LAYERS];
    heed_encoder_layer stack[LAYERS];
    heed_kv_cache *caches[] = {make_filled_pages(0), make_filled_pages(48), make_filled_pages(16)};
    heed_mha_args m = common_mha(&shapings[0]);
    heed_encoder_args e = HEED_ENCODER_ARGS_INIT;
    size_t bytes = 0, now = 0, stack_bytes = 0, stack_less = 0;
    make_stack(w, f, stack);
    stack[0].cache = caches[0];
    stack[1].cache = caches[1];
    m.batch = m.seq_q = e.batch = e.seq = 1;
    m.x = e.x = tokens[0];
    m.y = e.y = guarded(MODEL, 1);
    m.cache = caches[2];
    e.ldx = e.ldy = MODEL;
    e.seq_kv = GROWTH;
    CHECK(heed_encoder_workspace(context, LAYERS, stack, &e, &stack_less) == HEED_OK);
    e.seq_kv = MOST_KEYS;
    CHECK(heed_mha_workspace(context, &w[0], &m, &bytes) == HEED_OK);
    m.cache = make_cache(16, 1);
    CHECK(heed_mha_workspace(context, &w[0], &m, &now) == HEED_OK && now == bytes);
    m.seq_q = m.cache->capacity + 1;
    CHECK(heed_mha_workspace(context, &w[0], &m, &now) == HEED_ERR_SHAPE);
    m.seq_q = 1;
    m.cache = caches[2];
    CHECK(heed_encoder_workspace(context, LAYERS, stack, &e, &stack_bytes) == HEED_OK);
    const heed_workspace lasting = room(bytes), stack_lasting = room(stack_bytes), stack_small = room(stack_less);
    for (size_t held = 0; held < MOST_KEYS; held += GROWTH) {
        for (size_t i = 0; i < sizeof caches / sizeof *caches; i++)
            append(caches[i], 0, 0, held, GROWTH - 1);
        CHECK(heed_mha(context, &w[0], &m, &lasting) == HEED_OK);
        CHECK(heed_encoder(context, LAYERS, stack, &e, held == 0 ? &stack_small : &stack_lasting) == HEED_OK);
    }
    m.seq_kv = GROWTH; /* fewer than it holds */
    CHECK(heed_mha_workspace(context, &w[0], &m, &now) == HEED_OK && now <= bytes);
    CHECK(heed_mha(context, &w[0], &m, &lasting) == HEED_ERR_SHAPE);
}

static void test_lasting(const struct heed_kernels *table)
{
    for (size_t threads = 2; threads < 4; threads++) {
        begin("%s: a workspace serves a cache up to its capacity, %zu threads", table->name, threads);
        context = context_on(table, threads);
        fill();
        check_lasting_attention(HEED_ATTENTION_LOOP_KEYS, NULL);
        check_lasting_attention(HEED_ATTENTION_LOOP_ROWS, guarded(HEADS * MOST_KEYS, 1));
        check_lasting_layers();
        heed_context_destroy(context);
        context = NULL;
        end();
        release_all();
    }
}

/* ---- pages ---- */

/* Keys that no window reaches need no page. */
static void check_released_pages(void)
{
    enum { PAGE = 48 };
    heed_kv_cache *cache = make_filled_pages(PAGE);
    const int32_t none[6] = {-1, -1, -1, -1, -1, -1};
    const size_t order[SEQUENCES] = {0, 0, 0}, held[SEQUENCES] = {MOST_KEYS, MOST_KEYS, MOST_KEYS};
    append(cache, 0, 0, 0, MOST_KEYS);
    heed_attention_args a = common_args(&shapings[1]);
    float *out = buffer(HEADS * VALUES, 0);
    a.seq_q = 1;
    a.cache = cache;
    a.q = head_major(queries[0] + (held[0] - 1) * DIM, MOST_KEYS, DIM);
    a.out = (heed_heads_out){out, 0, VALUES, VALUES};
    a.cache_sequences = order;
    CHECK(heed_kv_cache_set_pages(cache, 0, 0, 6, none) == HEED_OK);
    CHECK(heed_attention(context, &a, NULL) == HEED_OK);
    for (size_t h = 0; h < HEADS; h++)
        check_same(1, VALUES, out + h * VALUES, VALUES, want[0] + (h * MOST_KEYS + held[0] - 1) * VALUES, VALUES,
                   "behind the window");
    a.window_left = 700;
    CHECK(heed_attention(context, &a, NULL) == HEED_ERR_INDEX);
}

/* A prefix that is copied, or shared, and goes on as another sequence; and one that is cut and filled again. */
static void check_prefixes(size_t page_keys, size_t other_page_keys)
{
    static const size_t order[SEQUENCES] = {0, 0, 0};
    enum { PREFIX = 96, CUT = 75 };
    heed_kv_cache *cache = make_filled_pages(page_keys), *other = make_filled_pages(other_page_keys);
    size_t held[SEQUENCES] = {MOST_KEYS, lengths[1], lengths[2]};
    append(cache, 1, 0, 0, 300);
    append(cache, 0, 1, 0, 111); /* to be forgotten */
    CHECK(heed_kv_cache_truncate(cache, 1, 299) == HEED_OK);
    append(cache, 1, 0, 299, 100);
    CHECK(heed_kv_cache_fork(other, 2, cache, 1, CUT) == HEED_OK);
    CHECK(heed_kv_cache_fork(cache, 0, other, 2, CUT - 3) == HEED_OK);
    append(cache, 0, 0, CUT - 3, MOST_KEYS - CUT + 3);
    append(other, 2, 0, CUT, MOST_KEYS - CUT);
    heed_attention_args a = common_args(&shapings[0]);
    float *out = buffer(HEADS * VALUES, 0);
    a.seq_q = 1;
    a.q = head_major(queries[0] + (held[0] - 1) * DIM, MOST_KEYS, DIM);
    a.out = (heed_heads_out){out, 0, VALUES, VALUES};
    for (int i = 0; i < 2; i++) {
        const size_t which[] = {i ? 2 : 0};
        a.cache = i ? other : cache;
        a.cache_sequences = which;
        CHECK(heed_attention(context, &a, NULL) == HEED_OK);
        for (size_t h = 0; h < HEADS; h++)
            check_same(1, VALUES, out + h * VALUES, VALUES, want[0] + (h * MOST_KEYS + held[0] - 1) * VALUES, VALUES,
                       i ? "fork" : "fork of a fork");
    }
    if (page_keys == 0 || PREFIX % page_keys != 0)
        return;
    append(cache, 1, 0, 399, MOST_KEYS - 399);
    CHECK(heed_kv_cache_share(cache, 2, 1, PREFIX) == HEED_OK);
    append(cache, 2, 0, PREFIX, MOST_KEYS - PREFIX);
    a.cache = cache;
    for (size_t s = 1; s < SEQUENCES; s++) {
        a.cache_sequences = &s;
        CHECK(heed_attention(context, &a, NULL) == HEED_OK);
        for (size_t h = 0; h < HEADS; h++)
            check_same(1, VALUES, out + h * VALUES, VALUES, want[0] + (h * MOST_KEYS + held[0] - 1) * VALUES, VALUES,
                       "shared prefix");
    }
    (void)order;
}

static void test_table(const struct heed_kernels *table)
{
    static const size_t page_sizes[] = {0, 16, 48, 256, 272};
    heed_context *serial = context_on(table, 1);
    fill();
    for (size_t i = 0; i < sizeof shapings / sizeof *shapings; i++) {
        begin("%s: decode over caches has the bits of prefill, %s", table->name, shapings[i].name);
        prefill(&shapings[i], serial);
        for (size_t threads = 1; threads <= (quick() ? 2 : 5); threads += 2) {
            context = context_on(table, threads);
            for (size_t p = 0; p < sizeof page_sizes / sizeof *page_sizes; p += quick() ? 2 : 1)
                check_growth(page_sizes[p], &shapings[i]);
            if (i == 1)
                check_released_pages();
            if (i == 0) {
                check_prefixes(0, 0);
                check_prefixes(48, 16);
                check_prefixes(16, 0);
                for (size_t p = 0; p < sizeof page_sizes / sizeof *page_sizes; p += quick() ? 2 : 1)
                    check_batches(page_sizes[p]);
            }
            heed_context_destroy(context);
        }
        end();
        release_all();
    }
    heed_context_destroy(serial);
}

/* ---- arguments ---- */

#define EXPECT(status, call) check_that((call) == (status), "%s", #call)

static void test_options(void)
{
    heed_kv_cache_options o = HEED_KV_CACHE_OPTIONS_INIT, good;
    heed_kv_cache *cache = NULL;
    size_t bytes = 0, none = 0;
    o.batch = 2;
    o.n_kv_heads = 2;
    o.head_dim = 3;
    o.value_dim = 5;
    o.capacity = 40;
    good = o;
    begin("heed_kv_cache_bytes and create refuse");
    EXPECT(HEED_OK, heed_kv_cache_bytes(&o, &bytes));
    EXPECT(HEED_ERR_NULL, heed_kv_cache_bytes(NULL, &bytes));
    EXPECT(HEED_ERR_NULL, heed_kv_cache_bytes(&o, NULL));
    size_t *sizes[] = {&o.batch, &o.n_kv_heads, &o.head_dim, &o.value_dim, &o.capacity};
    for (size_t i = 0; i < 5; i++) {
        o = good;
        *sizes[i] = SIZE_MAX / 2;
        EXPECT(HEED_ERR_OVERFLOW, heed_kv_cache_bytes(&o, &none));
    }
    o = good;
    o.page_keys = 24;
    EXPECT(HEED_ERR_SHAPE, heed_kv_cache_bytes(&o, &none));
    o.page_keys = 0;
    o.pages = 3;
    EXPECT(HEED_ERR_SHAPE, heed_kv_cache_bytes(&o, &none));
    o.page_keys = 16;
    o.pages = SIZE_MAX / 1024;
    EXPECT(HEED_ERR_OVERFLOW, heed_kv_cache_bytes(&o, &none));
    o = good;
    o.struct_size--;
    EXPECT(HEED_ERR_STRUCT, heed_kv_cache_bytes(&o, &none));
    o = good;
    o.n_kv_heads = o.head_dim = o.value_dim = 0; /* keys that take no bytes are counted all the same */
    o.capacity = (size_t)PTRDIFF_MAX;
    EXPECT(HEED_ERR_OVERFLOW, heed_kv_cache_bytes(&o, &none));
    o.page_keys = (size_t)PTRDIFF_MAX + 1;
    o.pages = 1;
    EXPECT(HEED_ERR_OVERFLOW, heed_kv_cache_bytes(&o, &none));
    o.capacity = 40;
    EXPECT(HEED_ERR_OVERFLOW, heed_kv_cache_bytes(&o, &none));
    o = good;
    o.capacity = 0; /* nor need sequences take many bytes */
    o.batch = (size_t)INT32_MAX + 1;
    EXPECT(HEED_ERR_OVERFLOW, heed_kv_cache_bytes(&o, &none));
    o = good;
    o.page_keys = 16;
    o.n_kv_heads = 0;
    o.pages = (size_t)INT32_MAX + 1;
    EXPECT(HEED_ERR_OVERFLOW, heed_kv_cache_bytes(&o, &none));
    o = good; /* nor keys that no page holds */
    o.n_kv_heads = o.head_dim = o.value_dim = 0;
    o.batch = o.pages = 1;
    o.page_keys = 16;
    o.capacity = (size_t)PTRDIFF_MAX + 1;
    EXPECT(HEED_ERR_OVERFLOW, heed_kv_cache_bytes(&o, &none));
    o = good;
    unsigned char *memory = (unsigned char *)buffer(bytes / 4 + 2, 0);
    CHECK(bytes % 64 == 0);
    EXPECT(HEED_ERR_NULL, heed_kv_cache_create(&o, NULL, bytes, &cache));
    EXPECT(HEED_ERR_NULL, heed_kv_cache_create(&o, memory, bytes, NULL));
    EXPECT(HEED_ERR_ALIGNMENT, heed_kv_cache_create(&o, memory + 1, bytes, &cache));
    EXPECT(HEED_ERR_ALIGNMENT, heed_kv_cache_create(&o, memory + sizeof(size_t) / 2, bytes, &cache));
    EXPECT(HEED_ERR_WORKSPACE, heed_kv_cache_create(&o, memory, bytes - 1, &cache));
    CHECK(cache == NULL && none == 0);
    o.batch = o.capacity = 0;
    EXPECT(HEED_OK, heed_kv_cache_bytes(&o, &bytes));
    EXPECT(HEED_OK, heed_kv_cache_create(&o, memory, bytes, &cache));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_truncate(cache, 0, 0));
    end();
    release_all();
}

/* More heads than anybody could count, of keys that take no bytes, and of no keys. */
static void test_heads_of_nothing(void)
{
    heed_kv_cache_options o = HEED_KV_CACHE_OPTIONS_INIT;
    const heed_heads nothing = {0};
    size_t bytes = 0, length = 0;
    o.batch = 2;
    o.n_kv_heads = (size_t)1 << (sizeof(size_t) * 8 - 3);
    o.capacity = 9;
    begin("heads that hold nothing are not counted one by one");
    for (int paged = 0; paged < 2; paged++) {
        heed_kv_cache *cache = NULL;
        o.page_keys = paged ? 16 : 0;
        o.head_dim = paged ? 4 : 0;
        EXPECT(HEED_OK, heed_kv_cache_bytes(&o, &bytes));
        EXPECT(HEED_OK, heed_kv_cache_create(&o, buffer(bytes / 4 + 2, 0), bytes, &cache));
        if (!cache)
            continue;
        if (!paged)
            EXPECT(HEED_OK, heed_kv_cache_append(context, cache, 0, 3, &nothing, &nothing));
        EXPECT(HEED_OK, heed_kv_cache_fork(cache, 1, cache, 0, paged ? 0 : 3));
        EXPECT(HEED_OK, heed_kv_cache_length(cache, 1, &length));
        CHECK(length == (paged ? 0u : 3u));
    }
    end();
    release_all();
}

/* Nothing is appended by a call that refuses. */
static void expect_append(heed_status status, heed_kv_cache *cache, size_t batch, const size_t *sequences, size_t n,
                          const size_t *offsets, const heed_heads *k, const heed_heads *v, const char *what)
{
    size_t before[SEQUENCES];
    memcpy(before, cache->length, sizeof before);
    check_that(heed_kv_cache_append_batch(context, cache, batch, sequences, n, offsets, k, v) == status, "%s", what);
    check_that(memcmp(before, cache->length, sizeof before) == 0, "%s: lengths", what);
}

static void test_batch_calls(void)
{
    enum { PAGE = 48 };
    const int32_t page = 3;
    const size_t order[] = {2, 0, 1}, twice[] = {2, 0, 2}, outside[] = {0, SEQUENCES, 1};
    size_t offsets[] = {0, 1, 1, 3};
    const size_t falling[] = {0, 2, 1, 3}, none[] = {0, 0, 0, 0}, later[] = {5, 5, 5, 5},
                 many[] = {0, 1, 2, 2 + MOST_KEYS + 1};
    heed_heads k = head_major(keys[0], MOST_KEYS, DIM), v = head_major(values[0], MOST_KEYS, VALUES), bad = k;
    begin("appending to several sequences refuses");
    heed_kv_cache *plain = make_cache(0, 0), *paged = make_cache(PAGE, 15);
    EXPECT(HEED_ERR_NULL, heed_kv_cache_append_batch(context, NULL, 3, order, 2, offsets, &k, &v));
    expect_append(HEED_ERR_NULL, plain, 3, order, 2, offsets, NULL, &v, "k is NULL");
    expect_append(HEED_ERR_NULL, plain, 3, order, 2, offsets, &k, NULL, "v is NULL");
    expect_append(HEED_OK, plain, 3, order, 0, NULL, NULL, NULL, "nothing to append");
    expect_append(HEED_OK, plain, 3, twice, 0, NULL, NULL, NULL, "nothing to append to a sequence twice");
    expect_append(HEED_OK, plain, 3, twice, 2, none, NULL, NULL, "nothing by offsets");
    expect_append(HEED_OK, plain, 3, twice, 2, later, NULL, NULL, "nothing by offsets beyond other rows");
    expect_append(HEED_OK, plain, 0, NULL, 5, NULL, NULL, NULL, "no sequence");
    expect_append(HEED_ERR_INDEX, plain, 3, outside, 2, offsets, &k, &v, "a sequence outside");
    expect_append(HEED_ERR_INDEX, plain, SEQUENCES + 1, NULL, 1, NULL, &k, &v, "more sequences than there are");
    expect_append(HEED_ERR_OVERLAP, plain, 3, twice, 2, offsets, &k, &v, "a sequence twice");
    expect_append(HEED_ERR_ALIGNMENT, plain, 2, (const size_t *)(const void *)((const char *)order + 1), 2, NULL, &k,
                  &v, "sequences askew");
    expect_append(HEED_ERR_ALIGNMENT, plain, 2, order, 2, (const size_t *)(const void *)((const char *)offsets + 1), &k,
                  &v, "offsets askew");
    expect_append(HEED_ERR_INDEX, plain, 3, order, 2, falling, &k, &v, "falling offsets");
    expect_append(HEED_ERR_SHAPE, plain, 3, order, 1, offsets, &k, &v, "longer than the longest");
    expect_append(HEED_ERR_SHAPE, plain, 3, order, SIZE_MAX, many, &k, &v, "beyond the capacity");
    expect_append(HEED_ERR_OVERFLOW, plain, 3, order, SIZE_MAX / 2, NULL, &k, &v, "more rows than can be counted");
    expect_append(HEED_ERR_OVERFLOW, plain, SIZE_MAX / 4, order, 0, NULL, NULL, NULL, "more sequences than fit");
    bad.head_stride = SIZE_MAX;
    expect_append(HEED_ERR_OVERFLOW, plain, 3, order, 2, offsets, &bad, &v, "head stride");
    bad = k;
    bad.data = (const float *)(const void *)plain;
    expect_append(HEED_ERR_OVERLAP, plain, 3, order, 2, offsets, &bad, &v, "k in the cache");
    bad.data = NULL;
    expect_append(HEED_ERR_NULL, plain, 3, order, 2, offsets, &bad, &v, "no data");
    expect_append(HEED_ERR_OVERLAP, plain, 1, plain->length, 1, NULL, &k, &v, "sequences in the cache");
    expect_append(HEED_ERR_OVERLAP, plain, 2, NULL, 1, plain->length, &k, &v, "offsets in the cache");
    EXPECT(HEED_OK, heed_kv_cache_set_pages(paged, order[0], 0, 1, &page));
    expect_append(HEED_ERR_INDEX, paged, 3, order, 2, offsets, &k, &v, "a missing page");
    offsets[2] = offsets[3] = 1;
    EXPECT(HEED_OK, heed_kv_cache_append_batch(context, paged, 3, order, 2, offsets, &k, &v));
    CHECK(paged->length[order[0]] == 1 && paged->length[order[1]] == 0 && paged->length[order[2]] == 0);
    end();
    release_all();
}

/* Without pages, for one sequence. */
static heed_kv_cache_options dense_options(size_t n_heads, size_t dim, size_t value_dim, size_t capacity)
{
    heed_kv_cache_options o = HEED_KV_CACHE_OPTIONS_INIT;
    o.batch = 1;
    o.n_kv_heads = n_heads;
    o.head_dim = dim;
    o.value_dim = value_dim;
    o.capacity = capacity;
    return o;
}

static heed_kv_cache *make_dense(size_t n_heads, size_t dim, size_t value_dim, size_t capacity)
{
    heed_kv_cache_options o = dense_options(n_heads, dim, value_dim, capacity);
    heed_kv_cache *cache = NULL;
    size_t bytes = 0;
    CHECK(heed_kv_cache_bytes(&o, &bytes) == HEED_OK);
    CHECK(heed_kv_cache_create(&o, buffer(bytes / 4 + 2, 0), bytes, &cache) == HEED_OK);
    return cache;
}

/* As make_cache makes one, but with another size: 0 heads, 1 head_dim, 2 value_dim. */
static heed_kv_cache *make_unlike(size_t which)
{
    return make_dense(KV_HEADS + (which == 0), DIM + (which == 1), VALUES + (which == 2), MOST_KEYS);
}

/* Memory that is aligned to no more than size_t, wherever its end lies. */
static void test_exact_bytes(void)
{
    enum { CAPACITY = 32, PAST = 64 };
    heed_kv_cache_options o = dense_options(KV_HEADS, DIM, VALUES, CAPACITY);
    heed_heads k = head_major(keys[0], MOST_KEYS, DIM), v = head_major(values[0], MOST_KEYS, VALUES);
    size_t bytes = 0;
    begin("a cache stays within its bytes wherever it lies");
    CHECK(heed_kv_cache_bytes(&o, &bytes) == HEED_OK);
    for (size_t offset = 0; offset < 64; offset += sizeof(size_t)) {
        heed_kv_cache *cache = NULL;
        unsigned char *memory = (unsigned char *)buffer((bytes + 2 * PAST) / 4, 0) + offset, past[PAST];
        memset(memory, 0x5a, bytes + PAST);
        memset(past, 0x5a, sizeof past);
        EXPECT(HEED_OK, heed_kv_cache_create(&o, memory, bytes, &cache));
        EXPECT(HEED_OK, heed_kv_cache_append(NULL, cache, 0, CAPACITY, &k, &v));
        CHECK(memcmp(memory + bytes, past, sizeof past) == 0);
    }
    end();
    release_all();
}

static void test_calls(void)
{
    enum { PAGE = 48 };
    const int32_t pages[] = {0, 1, 99}, other = 2, negative[] = {-2}, missing[] = {-1}, past[] = {15};
    heed_heads k = head_major(keys[0], MOST_KEYS, DIM), v = head_major(values[0], MOST_KEYS, VALUES), bad;
    size_t length = 0;
    begin("the calls of a cache refuse");
    heed_kv_cache *plain = make_cache(0, 0), *paged = make_cache(PAGE, 15);
    EXPECT(HEED_ERR_NULL, heed_kv_cache_append(context, NULL, 0, 1, &k, &v));
    EXPECT(HEED_ERR_NULL, heed_kv_cache_append(context, plain, 0, 1, NULL, &v));
    EXPECT(HEED_ERR_NULL, heed_kv_cache_append(context, plain, 0, 1, &k, NULL));
    EXPECT(HEED_OK, heed_kv_cache_append(context, plain, 0, 0, NULL, NULL));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_append(context, plain, SEQUENCES, 1, &k, &v));
    EXPECT(HEED_ERR_SHAPE, heed_kv_cache_append(context, plain, 0, MOST_KEYS + 1, &k, &v));
    bad = k;
    bad.data = NULL;
    EXPECT(HEED_ERR_NULL, heed_kv_cache_append(context, plain, 0, 1, &bad, &v));
    bad.data = (const float *)(const void *)((const char *)keys[0] + 1);
    EXPECT(HEED_ERR_ALIGNMENT, heed_kv_cache_append(context, plain, 0, 1, &bad, &v));
    bad.data = (const float *)(const void *)plain;
    EXPECT(HEED_ERR_OVERLAP, heed_kv_cache_append(context, plain, 0, 1, &bad, &v));
    bad = v;
    bad.head_stride = SIZE_MAX;
    EXPECT(HEED_ERR_OVERFLOW, heed_kv_cache_append(context, plain, 0, 1, &k, &bad));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_set_pages(paged, 0, 0, 3, pages)); /* nor is the first of them set */
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_append(context, paged, 0, 1, &k, &v));
    EXPECT(HEED_OK, heed_kv_cache_set_pages(paged, 0, 0, 2, pages));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_append(context, paged, 0, 2 * PAGE + 1, &k, &v));
    EXPECT(HEED_OK, heed_kv_cache_append(context, paged, 0, 2 * PAGE, &k, &v));
    EXPECT(HEED_ERR_NULL, heed_kv_cache_set_pages(NULL, 0, 0, 1, pages));
    EXPECT(HEED_ERR_NULL, heed_kv_cache_set_pages(paged, 0, 0, 1, NULL));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_set_pages(paged, SEQUENCES, 0, 1, pages));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_set_pages(paged, 0, 0, 1, negative));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_set_pages(paged, 0, 0, 1, past));
    EXPECT(HEED_OK, heed_kv_cache_set_pages(paged, 0, 15, 0, NULL));
    EXPECT(HEED_ERR_SHAPE, heed_kv_cache_set_pages(paged, 0, 14, 2, pages));
    EXPECT(HEED_ERR_SHAPE, heed_kv_cache_set_pages(paged, 0, SIZE_MAX, 1, pages));
    EXPECT(HEED_ERR_SHAPE, heed_kv_cache_set_pages(paged, 0, 1, SIZE_MAX, pages));
    EXPECT(HEED_ERR_SHAPE, heed_kv_cache_set_pages(plain, 0, 0, 1, pages));
    EXPECT(HEED_ERR_NULL, heed_kv_cache_truncate(NULL, 0, 0));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_truncate(plain, SEQUENCES, 0));
    EXPECT(HEED_ERR_SHAPE, heed_kv_cache_truncate(plain, 0, 1));
    EXPECT(HEED_ERR_NULL, heed_kv_cache_fork(NULL, 0, plain, 0, 0));
    EXPECT(HEED_ERR_NULL, heed_kv_cache_fork(plain, 0, NULL, 0, 0));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_fork(plain, SEQUENCES, paged, 0, 1));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_fork(plain, 0, paged, SEQUENCES, 1));
    EXPECT(HEED_ERR_SHAPE, heed_kv_cache_fork(plain, 0, paged, 0, 2 * PAGE + 1));
    EXPECT(HEED_ERR_OVERLAP, heed_kv_cache_fork(paged, 0, paged, 0, 1));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_fork(paged, 1, paged, 0, 1));
    EXPECT(HEED_OK, heed_kv_cache_set_pages(paged, 1, 0, 1, pages + 1)); /* the source's second page */
    EXPECT(HEED_ERR_OVERLAP, heed_kv_cache_fork(paged, 1, paged, 0, PAGE));
    EXPECT(HEED_OK, heed_kv_cache_truncate(paged, 0, PAGE + 1)); /* of which it has one key */
    EXPECT(HEED_ERR_OVERLAP, heed_kv_cache_fork(paged, 1, paged, 0, PAGE));
    EXPECT(HEED_OK, heed_kv_cache_append(context, paged, 0, PAGE - 1, &k, &v));
    EXPECT(HEED_OK, heed_kv_cache_fork(paged, 1, paged, 0, 0));
    EXPECT(HEED_OK, heed_kv_cache_set_pages(paged, 1, 0, 1, &other));
    EXPECT(HEED_OK, heed_kv_cache_fork(paged, 1, paged, 0, PAGE));
    EXPECT(HEED_OK, heed_kv_cache_fork(plain, 1, paged, 0, 2 * PAGE));
    heed_kv_cache *alike = make_cache(PAGE, 15), *short_one = make_dense(KV_HEADS, DIM, VALUES, 2 * PAGE - 1);
    EXPECT(HEED_OK, heed_kv_cache_set_pages(alike, 1, 0, 2, pages));
    EXPECT(HEED_OK, heed_kv_cache_fork(alike, 1, paged, 0, 2 * PAGE)); /* pages of those numbers, but its own */
    EXPECT(HEED_ERR_SHAPE, heed_kv_cache_fork(short_one, 0, paged, 0, 2 * PAGE));
    EXPECT(HEED_OK, heed_kv_cache_fork(short_one, 0, paged, 0, 2 * PAGE - 1));
    EXPECT(HEED_OK, heed_kv_cache_set_pages(alike, 1, 1, 1, missing));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_fork(plain, 0, alike, 1, PAGE + 1));
    EXPECT(HEED_OK, heed_kv_cache_fork(plain, 0, alike, 1, PAGE));
    EXPECT(HEED_OK, heed_kv_cache_fork(plain, 0, paged, 0, PAGE)); /* over what it holds itself */
    EXPECT(HEED_ERR_SHAPE, heed_kv_cache_share(paged, 1, 0, 1));
    EXPECT(HEED_ERR_SHAPE, heed_kv_cache_share(paged, 1, 0, 3 * PAGE));
    EXPECT(HEED_ERR_SHAPE, heed_kv_cache_share(plain, 0, 1, 0));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_share(paged, SEQUENCES, 0, 0));
    for (size_t which = 0; which < 3; which++)
        EXPECT(HEED_ERR_SHAPE, heed_kv_cache_fork(plain, 0, make_unlike(which), 0, 0));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_share(paged, 0, SEQUENCES, 0));
    EXPECT(HEED_ERR_ALIGNMENT,
           heed_kv_cache_set_pages(paged, 0, 0, 1, (const int32_t *)(const void *)((const char *)pages + 1)));
    EXPECT(HEED_ERR_NULL, heed_kv_cache_length(NULL, 0, &length));
    EXPECT(HEED_ERR_NULL, heed_kv_cache_length(plain, 0, NULL));
    EXPECT(HEED_ERR_INDEX, heed_kv_cache_length(plain, SEQUENCES, &length));
    CHECK(length == 0);

    heed_attention_args a = common_args(&shapings[0]), good;
    size_t which[] = {0}, most = 2 * PAGE + 1;
    float *out = buffer(HEADS * VALUES, 0);
    a.seq_q = 1;
    a.cache = paged;
    a.cache_sequences = which;
    a.q = head_major(queries[0], MOST_KEYS, DIM);
    a.out = (heed_heads_out){out, 0, VALUES, VALUES};
    good = a;
    EXPECT(HEED_OK, heed_attention(context, &a, NULL));
    a.kv_lengths = &most;
    EXPECT(HEED_ERR_SHAPE, heed_attention(context, &a, NULL));
    a = good;
    a.seq_kv = 2 * PAGE - 1;
    EXPECT(HEED_ERR_SHAPE, heed_attention(context, &a, NULL));
    a = good;
    a.n_kv_heads = 3;
    EXPECT(HEED_ERR_SHAPE, heed_attention(context, &a, NULL));
    a = good;
    a.head_dim--;
    EXPECT(HEED_ERR_SHAPE, heed_attention(context, &a, NULL));
    a = good;
    a.value_dim--;
    EXPECT(HEED_ERR_SHAPE, heed_attention(context, &a, NULL));
    a = good;
    which[0] = SEQUENCES;
    EXPECT(HEED_ERR_INDEX, heed_attention(context, &a, NULL));
    which[0] = 0;
    a.cache_sequences = NULL;
    a.batch = SEQUENCES + 1;
    EXPECT(HEED_ERR_INDEX, heed_attention(context, &a, NULL));
    a = good;
    a.cache_sequences = (const size_t *)(const void *)((const char *)which + 1);
    EXPECT(HEED_ERR_ALIGNMENT, heed_attention(context, &a, NULL));
    a = good;
    a.out.data = (float *)(void *)paged;
    EXPECT(HEED_ERR_OVERLAP, heed_attention(context, &a, NULL));
    a.out.data = (float *)(void *)which;
    EXPECT(HEED_ERR_OVERLAP, heed_attention(context, &a, NULL));
    a = good;
    a.kv_offsets = (const size_t *)(const void *)((const char *)out + 1);
    EXPECT(HEED_OK, heed_attention(context, &a, NULL));
    EXPECT(HEED_OK, heed_kv_cache_set_pages(paged, 0, 1, 1, missing));
    EXPECT(HEED_ERR_INDEX, heed_attention(context, &good, NULL));
    end();
    release_all();
}

int main(void)
{
    test_options();
    test_heads_of_nothing();
    test_exact_bytes();
    test_calls();
    test_batch_calls();
    for_each_table(test_table);
    for_each_table(test_layers);
    for_each_table(test_lasting);
    return finish();
}
