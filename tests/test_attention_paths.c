/* SPDX-License-Identifier: MIT
 * The bits of attention do not depend on how its operands lie, how many queries or keys a call has, or on the loop that
 * it takes, in any table.
 */
#include "check.h"

#include "internal.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- layouts of one attention ---- */

enum { HEAD_MAJOR, INTERLEAVED, RAGGED, PADDED, LAYOUTS };
enum { N_HEADS = 3, HEAD_DIM = 16, VALUE_DIM = 20 };

/* Sequence b of the batch, in a batch of another shape and layout; results as [batch][head][query]. */
static void attend_in_layout(const heed_context *context, int layout, float *out, float *map)
{
    static const size_t q_lengths[2] = {50, 33};
    size_t *kv_lengths = guarded_bytes(2 * sizeof *kv_lengths, 1); /* of these two, and no more */
    enum { MOST_Q = 50, MOST_KV = 300 };
    const size_t q_offsets[3] = {0, 50, 83}, kv_offsets[3] = {0, 300, 570};
    int interleaved = layout == INTERLEAVED || layout == RAGGED, ragged = layout == RAGGED;
    size_t q_row = interleaved ? N_HEADS * HEAD_DIM : HEAD_DIM, q_head = interleaved ? HEAD_DIM : MOST_Q * HEAD_DIM;
    size_t o_row = interleaved ? N_HEADS * VALUE_DIM : VALUE_DIM, o_head = interleaved ? VALUE_DIM : MOST_Q * VALUE_DIM;
    float *q = buffer(2 * N_HEADS * MOST_Q * HEAD_DIM, 1), *y = buffer(2 * N_HEADS * MOST_Q * VALUE_DIM, 2);
    float *k = buffer(2 * MOST_KV * HEAD_DIM, 3), *v = buffer(2 * MOST_KV * VALUE_DIM, 4);
    heed_attention_args a = HEED_ATTENTION_ARGS_INIT;
    kv_lengths[0] = 300;
    kv_lengths[1] = 270;
    a.batch = 2;
    a.n_heads = N_HEADS;
    a.n_kv_heads = 1;
    a.head_dim = HEAD_DIM;
    a.value_dim = VALUE_DIM;
    a.seq_q = MOST_Q;
    a.seq_kv = MOST_KV;
    a.causal = HEED_CAUSAL_TOP_LEFT;
    a.q = (heed_heads){q, N_HEADS * MOST_Q * HEAD_DIM, q_head, q_row};
    a.k = (heed_heads){k, MOST_KV * HEAD_DIM, 0, HEAD_DIM};
    a.v = (heed_heads){v, MOST_KV * VALUE_DIM, 0, VALUE_DIM};
    a.out = (heed_heads_out){y, N_HEADS * MOST_Q * VALUE_DIM, o_head, o_row};
    a.map = (heed_heads_out){map, N_HEADS * MOST_Q * MOST_KV, MOST_Q * MOST_KV, MOST_KV};
    if (ragged) {
        a.q_offsets = q_offsets;
        a.kv_offsets = kv_offsets;
    } else {
        a.kv_lengths = kv_lengths;
    }
    seed(70);
    for (size_t b = 0; b < 2; b++) {
        for (size_t i = 0; i < q_lengths[b]; i++)
            for (size_t h = 0; h < N_HEADS; h++)
                fill_uniform(q + (ragged ? q_offsets[b] * q_row : b * a.q.batch_stride) + h * q_head + i * q_row,
                             HEAD_DIM, -2.0f, 2.0f);
        size_t first = ragged ? kv_offsets[b] : b * MOST_KV;
        fill_uniform(k + first * HEAD_DIM, kv_lengths[b] * HEAD_DIM, -1.0f, 1.0f);
        fill_uniform(v + first * VALUE_DIM, kv_lengths[b] * VALUE_DIM, -1.0f, 1.0f);
    }
    check_ok(heed_attention(context, &a, NULL), "attention");
    for (size_t b = 0, n = 0; b < 2; b++)
        for (size_t h = 0; h < N_HEADS; h++)
            for (size_t i = 0; i < q_lengths[b]; i++, n++)
                memcpy(out + n * VALUE_DIM,
                       y + (ragged ? q_offsets[b] * o_row : b * a.out.batch_stride) + h * o_head + i * o_row,
                       VALUE_DIM * sizeof *out);
    release_all();
}

static void test_layouts(const struct heed_kernels *table, const heed_context *context)
{
    enum { OUT = 83 * N_HEADS * VALUE_DIM, MAP = 2 * N_HEADS * 50 * 300 };
    static float out[2][OUT], map[2][MAP];
    begin("%s attention in every layout", table->name);
    memset(map, 0, sizeof map);
    attend_in_layout(context, HEAD_MAJOR, out[0], map[0]);
    for (int layout = INTERLEAVED; layout < LAYOUTS; layout++) {
        attend_in_layout(context, layout, out[1], map[1]);
        check_same(1, OUT, out[1], OUT, out[0], OUT, "out");
        for (size_t h = 0; h < 2 * N_HEADS; h++) /* rows that the second sequence has */
            check_same(h < N_HEADS ? 50 : 33, 300, map[1] + h * 50 * 300, 300, map[0] + h * 50 * 300, 300, "map");
    }
    end();
}

/* ---- few queries ---- */

enum { FEW_KV_HEADS = 2, FEW_GROUP = 3, MOST_FEW_HEADS = 16, MANY_QUERIES = 50 };

struct few_case {
    size_t kv_heads, group, keys, dim, window_left;
    int interleaved;
};

/* The last `queries` of the same many, which see what they see among many, and one of them or all an infinite value. */
static void attend_few(const heed_context *context, const struct few_case *c, size_t queries, float *out)
{
    size_t heads = c->kv_heads * c->group, values = c->dim, skipped = MANY_QUERIES - queries;
    float *q = buffer(heads * MANY_QUERIES * c->dim, 1);
    float *k = buffer(c->kv_heads * c->keys * c->dim, 2), *v = buffer(c->kv_heads * c->keys * values, 3);
    heed_attention_args a = HEED_ATTENTION_ARGS_INIT;
    seed(71);
    fill_uniform(q, heads * MANY_QUERIES * c->dim, -2.0f, 2.0f);
    fill_uniform(k, c->kv_heads * c->keys * c->dim, -1.0f, 1.0f);
    fill_uniform(v, c->kv_heads * c->keys * values, -1.0f, 1.0f);
    v[(c->kv_heads * c->keys - 15) * values] = INFINITY;
    a.batch = 1;
    a.n_heads = heads;
    a.n_kv_heads = c->kv_heads;
    a.seq_q = queries;
    a.seq_kv = c->keys;
    a.head_dim = a.value_dim = c->dim;
    a.causal = c->window_left < HEED_UNBOUNDED ? HEED_CAUSAL_BOTTOM_RIGHT : HEED_CAUSAL_NONE;
    a.window_left = c->window_left;
    a.q = (heed_heads){q + skipped * c->dim, 0, MANY_QUERIES * c->dim, c->dim};
    a.k = (heed_heads){k, 0, c->keys * c->dim, c->dim};
    a.v = (heed_heads){v, 0, c->keys * values, values};
    if (c->interleaved) {
        a.q = (heed_heads){q + skipped * heads * c->dim, 0, c->dim, heads * c->dim};
        a.k = (heed_heads){k, 0, c->dim, c->kv_heads * c->dim};
        a.v = (heed_heads){v, 0, values, c->kv_heads * values};
    }
    a.out = (heed_heads_out){out, 0, MANY_QUERIES * values, values};
    check_ok(heed_attention(context, &a, NULL), "attention");
    release_all();
}

static void check_few_queries(const heed_context *context, const struct few_case *c)
{
    enum { MOST_DIM = 128 };
    static float many[MOST_FEW_HEADS * MANY_QUERIES * MOST_DIM], few[MOST_FEW_HEADS * MANY_QUERIES * MOST_DIM];
    attend_few(context, c, MANY_QUERIES, many);
    for (size_t queries = 1; queries <= 25; queries += queries < 5 || !quick() ? 1 : 4) {
        attend_few(context, c, queries, few);
        for (size_t h = 0; h < c->kv_heads * c->group; h++) {
            size_t first = h * MANY_QUERIES * c->dim, same = first + (MANY_QUERIES - queries) * c->dim;
            check_same(queries, c->dim, few + first, c->dim, many + same, c->dim, "few queries");
        }
    }
}

static void check_few_queries_of(const heed_context *context, int interleaved)
{
    static const size_t keys[] = {23, 24, 40, 100, 300}, dims[] = {15, 16, 70, 128};
    for (size_t n = 0; n < COUNT(keys); n++)
        for (size_t d = 0; d < COUNT(dims); d++)
            for (size_t form = 0; form < 4; form++) {
                struct few_case c = {FEW_KV_HEADS, 1, keys[n], dims[d], HEED_UNBOUNDED, interleaved};
                c.group = form & 1 ? FEW_GROUP : 1;
                c.window_left = form & 2 ? 9 : HEED_UNBOUNDED;
                if (!is_left_out(n + d + form + (size_t)interleaved, 3))
                    check_few_queries(context, &c);
            }
}

/* Few queries read keys as they lie, the more of them pack these. Of heads beside each other, larger than the caches
 * are said to be, the keys of all are met together, or of as many as have room, by one thread or in parts by several.
 */
static void test_few_queries(const struct heed_kernels *table, const heed_context *context)
{
    begin("%s attention of few queries as of many", table->name);
    check_few_queries_of(context, 0);
    check_few_queries_of(context, 1);
    for (size_t kind = 0; kind < 3; kind++) {
        heed_context *small = context_on(table, kind < 2 ? 1 : 3);
        small->l2 = small->in_order = 256;
        small->wide_core = kind % 2 == 0;
        check_few_queries_of(small, 1);
        check_few_queries(small, &(struct few_case){MOST_FEW_HEADS, 1, 40, 128, HEED_UNBOUNDED, 1});
        heed_context_destroy(small);
    }
    end();
}

/* ---- few keys ---- */

enum { FEW_HEADS = 2, MOST_FEW_QUERIES = 53, MOST_FEW_KEYS = 257, MOST_FEW_VALUES = 96, OUT_GAP = 3 };

enum keys_form {
    KEYS_ALONE,
    KEYS_CAUSAL,
    KEYS_TOP_LEFT,
    KEYS_WINDOW,
    KEYS_SLOPES,
    KEYS_CAPPED,
    KEYS_ADDED,
    KEYS_CHOSEN,
    KEYS_ALL_OF_THESE,
    KEYS_LARGE_SCORES,
    KEYS_NEGATIVE_SCALE,
    KEYS_SHORTENED,
    KEYS_FORMS
};

struct keys_case {
    size_t queries, keys, dim, values;
    enum keys_form form;
};

/* Masks let some rows see no key at all, or but the first, which may be none of those that they see otherwise. */
static void shape_few_keys(heed_attention_args *a, const struct keys_case *c)
{
    static const float slopes[FEW_HEADS] = {0.25f, -0.5f};
    static float added[MOST_FEW_QUERIES * MOST_FEW_KEYS];
    static unsigned char chosen[MOST_FEW_QUERIES * MOST_FEW_KEYS];
    static size_t length;
    bool all = c->form == KEYS_ALL_OF_THESE;
    fill_uniform(added, c->queries * c->keys, -1.0f, 1.0f);
    for (size_t i = 0; i < c->queries * c->keys; i++) {
        chosen[i] = added[i] > 0.0f && i / c->keys % 7 != 3;
        added[i] = chosen[i] || (added[i] < -0.5f && i / c->keys % 7 != 3) ? added[i] : -INFINITY;
        added[i] = i % c->keys == 0 ? -0.25f : added[i];
    }
    a->causal = c->form == KEYS_TOP_LEFT        ? HEED_CAUSAL_TOP_LEFT
                : c->form == KEYS_CAUSAL || all ? HEED_CAUSAL_BOTTOM_RIGHT
                                                : HEED_CAUSAL_NONE;
    if (c->form == KEYS_WINDOW || all)
        a->window_left = 9;
    if (c->form == KEYS_WINDOW)
        a->window_right = 2;
    if (c->form == KEYS_SLOPES || all)
        a->slopes = slopes;
    if (c->form == KEYS_CAPPED || all)
        a->softcap = 2.5f;
    if (c->form == KEYS_ADDED || all)
        a->mask = (heed_mask){added, HEED_MASK_ADDITIVE, 0, 0, c->keys};
    if (c->form == KEYS_CHOSEN)
        a->mask = (heed_mask){chosen, HEED_MASK_BOOLEAN, 0, 0, c->keys};
    if (c->form == KEYS_LARGE_SCORES || c->form == KEYS_NEGATIVE_SCALE) {
        a->scale = HEED_SCALE_VALUE;
        a->scale_value = c->form == KEYS_LARGE_SCORES ? 3e7f : -0.3f;
    }
    length = c->keys - c->keys / 3;
    if (c->form == KEYS_SHORTENED)
        a->kv_lengths = &length;
}

/* What lies between rows of the output is left as it was. The second head has an infinite value, which some rows do not
 * see. */
static void attend_few_keys(const heed_context *context, const struct keys_case *c, float *map, float *out)
{
    size_t rows = FEW_HEADS * c->queries, keys = FEW_HEADS * c->keys, out_row = c->values + OUT_GAP;
    float *q = buffer(rows * c->dim, 1), *k = buffer(keys * c->dim, 2), *v = buffer(keys * c->values, 3);
    float *written = buffer(rows * out_row - OUT_GAP, 1);
    heed_attention_args a = HEED_ATTENTION_ARGS_INIT;
    seed(72);
    fill_uniform(q, rows * c->dim, -2.0f, 2.0f);
    fill_uniform(k, keys * c->dim, -1.0f, 1.0f);
    fill_uniform(v, keys * c->values, -1.0f, 1.0f);
    fill_uniform(written, rows * out_row - OUT_GAP, -1.0f, 1.0f);
    v[(keys - 1) * c->values] = INFINITY;
    a.batch = 1;
    a.n_heads = a.n_kv_heads = FEW_HEADS;
    a.seq_q = c->queries;
    a.seq_kv = c->keys;
    a.head_dim = c->dim;
    a.value_dim = c->values;
    a.q = (heed_heads){q, 0, c->queries * c->dim, c->dim};
    a.k = (heed_heads){k, 0, c->keys * c->dim, c->dim};
    a.v = (heed_heads){v, 0, c->keys * c->values, c->values};
    a.out = (heed_heads_out){written, 0, c->queries * out_row, out_row};
    if (map)
        a.map = (heed_heads_out){map, 0, c->queries * c->keys, c->keys};
    shape_few_keys(&a, c);
    check_ok(heed_attention(context, &a, NULL), "attention");
    memcpy(out, written, (rows * out_row - OUT_GAP) * sizeof *out);
    release_all();
}

/* NaN of either sign is one. */
static void forget_nan(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = isnan(x[i]) ? NAN : x[i];
}

static void check_few_keys(const heed_context *context, const struct keys_case *c)
{
    enum { MOST_WRITTEN = FEW_HEADS * MOST_FEW_QUERIES * (MOST_FEW_VALUES + OUT_GAP) };
    static float map[FEW_HEADS * MOST_FEW_QUERIES * MOST_FEW_KEYS], with_map[MOST_WRITTEN], without[MOST_WRITTEN];
    size_t n = FEW_HEADS * c->queries * (c->values + OUT_GAP) - OUT_GAP;
    attend_few_keys(context, c, map, with_map);
    attend_few_keys(context, c, NULL, without);
    forget_nan(with_map, n);
    forget_nan(without, n);
    check_same(1, n, without, n, with_map, n, "few keys");
}

/* A query in each lane, where keys are few, or the keys of a row one after the other, as where a map is wanted. */
static void test_few_keys(const struct heed_kernels *table, const heed_context *context)
{
    static const size_t keys[] = {1, 2, 3, 4, 5, 8, 11, 12, 15, 16, 17, 24, 33, 48, 64, 88, 127, 128, 208, 257};
    static const size_t queries[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 21, 32, 37, 48, MOST_FEW_QUERIES};
    static const size_t dims[] = {1, 7, 16, 64, 67}, values[] = {1, 16, 40, 64, MOST_FEW_VALUES};
    begin("%s attention by few keys with a map and without", table->name);
    for (size_t n = 0, turn = 0; n < COUNT(keys); n++)
        for (size_t m = 0; m < COUNT(queries); m++)
            for (int form = 0; form < KEYS_FORMS; form++, turn++) {
                struct keys_case c = {queries[m], keys[n], dims[turn % 5], values[turn / 5 % 5], (enum keys_form)form};
                if (!quick() || turn % 5 == 0)
                    check_few_keys(context, &c);
            }
    end();
}

/* ---- every loop of attention ---- */

enum { LOOPS = HEED_ATTENTION_LOOP_KEYS + 1 };
enum { LOOP_BATCH = 3, LOOP_HEADS = 4, LOOP_QUERIES = 60, LOOP_KEYS = 600, LOOP_DIM = 24, LOOP_VALUES = 40 };
enum { NO_MAP, EACH_MAP, MEAN_MAP };
enum { DENSE, OFFSETS, CACHED };

static const struct loop_case {
    const char *name;
    size_t batch, n_kv_heads, queries, keys;
    heed_causal causal;
    size_t window_left;
    int form, map;
    size_t tasks[LOOPS]; /* that each loop makes for three workers: where it is ruled out, those of AUTO */
} loop_cases[] = {
    {"many queries", 2, 2, 60, 600, HEED_CAUSAL_NONE, HEED_UNBOUNDED, DENSE, NO_MAP, {16, 4, 16, 32}},
    {"few queries", 3, 2, 5, 600, HEED_CAUSAL_NONE, HEED_UNBOUNDED, DENSE, NO_MAP, {6, 6, 6, 12}},
    {"one query of each head", 2, 4, 1, 600, HEED_CAUSAL_NONE, HEED_UNBOUNDED, DENSE, NO_MAP, {8, 8, 8, 16}},
    {"one query", 1, 2, 1, 600, HEED_CAUSAL_NONE, HEED_UNBOUNDED, DENSE, NO_MAP, {6, 2, 2, 6}},
    {"few keys", 2, 2, 60, 256, HEED_CAUSAL_NONE, HEED_UNBOUNDED, DENSE, NO_MAP, {16, 4, 16, 16}},
    {"causal", 2, 4, 60, 600, HEED_CAUSAL_BOTTOM_RIGHT, HEED_UNBOUNDED, DENSE, NO_MAP, {16, 8, 16, 32}},
    {"window", 2, 2, 60, 600, HEED_CAUSAL_BOTTOM_RIGHT, 290, DENSE, NO_MAP, {16, 4, 16, 32}},
    {"ragged", 3, 2, 60, 600, HEED_CAUSAL_BOTTOM_RIGHT, HEED_UNBOUNDED, OFFSETS, NO_MAP, {6, 6, 12, 24}},
    {"cache", 2, 2, 60, 600, HEED_CAUSAL_BOTTOM_RIGHT, HEED_UNBOUNDED, CACHED, NO_MAP, {16, 16, 16, 32}},
    {"cache, one query", 2, 1, 1, 600, HEED_CAUSAL_NONE, HEED_UNBOUNDED, CACHED, NO_MAP, {6, 6, 2, 6}},
    {"map", 2, 2, 60, 600, HEED_CAUSAL_BOTTOM_RIGHT, HEED_UNBOUNDED, DENSE, EACH_MAP, {16, 4, 16, 16}},
    {"mean map", 2, 2, 60, 600, HEED_CAUSAL_NONE, HEED_UNBOUNDED, DENSE, MEAN_MAP, {8, 8, 8, 8}},
};

enum {
    LOOP_OUT = LOOP_BATCH * LOOP_QUERIES * LOOP_HEADS * LOOP_VALUES,
    LOOP_SUMS = LOOP_BATCH * LOOP_HEADS * LOOP_QUERIES,
    LOOP_FLOATS = LOOP_OUT + LOOP_SUMS + LOOP_SUMS * LOOP_KEYS
};

/* All outputs of a call, one behind the other, the map last. */
static float loop_want[LOOP_FLOATS], loop_got[LOOP_FLOATS];

static size_t loop_floats(const struct loop_case *c)
{
    return c->map == NO_MAP ? LOOP_OUT + LOOP_SUMS : LOOP_FLOATS;
}

static const float *loop_operand(size_t floats)
{
    float *x = buffer(floats, 1);
    fill_uniform(x, floats, -1.5f, 1.5f);
    return x;
}

static const heed_kv_cache *loop_cache(const heed_attention_args *a)
{
    heed_kv_cache_options o = HEED_KV_CACHE_OPTIONS_INIT;
    heed_kv_cache *cache = NULL;
    size_t bytes = 0;
    o.batch = a->batch;
    o.n_kv_heads = a->n_kv_heads;
    o.head_dim = a->head_dim;
    o.value_dim = a->value_dim;
    o.capacity = a->seq_kv;
    check_ok(heed_kv_cache_bytes(&o, &bytes), "cache");
    check_ok(heed_kv_cache_create(&o, guarded((bytes + 7) / 8 * 2, 1), bytes, &cache), "cache");
    check_ok(heed_kv_cache_append_batch(NULL, cache, a->batch, NULL, a->seq_kv, NULL, &a->k, &a->v), "append");
    return cache;
}

static heed_attention_args loop_args(const struct loop_case *c)
{
    static const size_t q_offsets[] = {0, 37, 37, 97}, kv_offsets[] = {0, 600, 900, 1170};
    size_t kv_rows = c->batch * c->keys, k_ld = c->n_kv_heads * LOOP_DIM, v_ld = c->n_kv_heads * LOOP_VALUES;
    size_t q_ld = LOOP_HEADS * LOOP_DIM, out_ld = LOOP_HEADS * LOOP_VALUES;
    float *map = loop_got + LOOP_OUT + LOOP_SUMS;
    heed_attention_args a = HEED_ATTENTION_ARGS_INIT;
    a.batch = c->batch;
    a.n_heads = LOOP_HEADS;
    a.n_kv_heads = c->n_kv_heads;
    a.seq_q = c->queries;
    a.seq_kv = c->keys;
    a.head_dim = LOOP_DIM;
    a.value_dim = LOOP_VALUES;
    a.causal = c->causal;
    a.window_left = c->window_left;
    a.q = (heed_heads){loop_operand(c->batch * c->queries * q_ld), c->queries * q_ld, LOOP_DIM, q_ld};
    a.k = (heed_heads){loop_operand(kv_rows * k_ld), c->keys * k_ld, LOOP_DIM, k_ld};
    a.v = (heed_heads){loop_operand(kv_rows * v_ld), c->keys * v_ld, LOOP_VALUES, v_ld};
    a.out = (heed_heads_out){loop_got, c->queries * out_ld, LOOP_VALUES, out_ld};
    a.log_sum_exp = (heed_heads_out){loop_got + LOOP_OUT, LOOP_HEADS * c->queries, c->queries, 1};
    if (c->map == EACH_MAP)
        a.map = (heed_heads_out){map, LOOP_HEADS * c->queries * c->keys, c->queries * c->keys, c->keys};
    if (c->map == MEAN_MAP)
        a.mean_map = (heed_heads_out){map, c->queries * c->keys, 0, c->keys};
    if (c->form == OFFSETS) {
        a.q_offsets = q_offsets;
        a.kv_offsets = kv_offsets;
    }
    if (c->form == CACHED)
        a.cache = loop_cache(&a);
    return a;
}

/* In a workspace that ends where the query says; its bytes. */
static size_t attend_exactly(const heed_context *context, const heed_attention_args *a)
{
    size_t bytes = 0;
    check_ok(heed_attention_workspace(context, a, &bytes), "workspace");
    const heed_workspace workspace = {guarded(bytes / sizeof(float), 1), bytes};
    check_ok(heed_attention(context, a, &workspace), "attention");
    return bytes;
}

static size_t run_loop(const heed_context *context, heed_attention_args a, int loop)
{
    a.loop = (heed_attention_loop)loop;
    memset(loop_got, 0xff, (a.map.data || a.mean_map.data ? LOOP_FLOATS : LOOP_OUT + LOOP_SUMS) * sizeof *loop_got);
    return attend_exactly(context, &a);
}

static void check_loop(const struct loop_case *c, const heed_attention_args *a, const heed_context *context, int loop)
{
    static const char *const names[LOOPS] = {"auto", "heads", "rows", "keys"};
    size_t n = loop_floats(c);
    run_loop(context, *a, loop);
    check_same(1, n, loop_got, n, loop_want, n, names[loop]);
}

static void check_loops(const struct loop_case *c, const heed_attention_args *a, const heed_context *context)
{
    for (int loop = 0; loop < LOOPS; loop++)
        check_loop(c, a, context, loop);
}

static void check_loops_on_host(const struct loop_case *c, const heed_attention_args *a,
                                const struct heed_kernels *table)
{
    struct host host = {.threads = 3, .order = HOST_RANDOM};
    heed_context *context = host_context(table, &host);
    for (int loop = 0; loop < LOOPS; loop++) {
        check_loop(c, a, context, loop);
        check_that(host.tasks == c->tasks[loop], "loop %d made %zu tasks instead of %zu", loop, host.tasks,
                   c->tasks[loop]);
    }
    heed_context_destroy(context);
}

static void test_loop_case(const struct loop_case *c, const struct heed_kernels *table, const heed_context *serial)
{
    begin("%s attention in every loop: %s", table->name, c->name);
    seed(95);
    heed_attention_args a = loop_args(c);
    size_t bytes = run_loop(serial, a, HEED_ATTENTION_LOOP_AUTO);
    memcpy(loop_want, loop_got, sizeof loop_want);
    CHECK(run_loop(serial, a, HEED_ATTENTION_LOOP_KEYS) == bytes); /* one thread rules it out */
    check_loops(c, &a, serial);
    for (size_t threads = quick() ? 4 : 2; threads <= 4; threads += 2) {
        heed_context *context = context_on(table, threads);
        check_loops(c, &a, context);
        heed_context_destroy(context);
    }
    check_loops_on_host(c, &a, table);
    release_all();
    end();
}

static void test_loops(const struct heed_kernels *table, const heed_context *serial)
{
    for (size_t i = 0; i < COUNT(loop_cases); i++)
        test_loop_case(&loop_cases[i], table, serial);
}

/* ---- a sequence without queries ---- */

/* The second sequence's keys and values lie in the guard page. */
static void test_sequence_without_queries(const struct heed_kernels *table, const heed_context *context)
{
    enum { SEEN = 64, DIM = 16 };
    static const size_t q_offsets[] = {0, 1, 1}, kv_offsets[] = {0, SEEN, 2 * SEEN};
    static const heed_causal kinds[] = {HEED_CAUSAL_NONE, HEED_CAUSAL_TOP_LEFT, HEED_CAUSAL_BOTTOM_RIGHT};
    float *q = buffer(DIM, 1), *k = guarded(SEEN * DIM, 1), *v = guarded(SEEN * DIM, 1), out[DIM], want[DIM];
    begin("%s attention beside a sequence without queries", table->name);
    fill_uniform(q, DIM, -1.0f, 1.0f);
    fill_uniform(k, SEEN * DIM, -1.0f, 1.0f);
    fill_uniform(v, SEEN * DIM, -1.0f, 1.0f);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        heed_attention_args args = HEED_ATTENTION_ARGS_INIT;
        args.n_heads = args.n_kv_heads = args.seq_q = args.batch = 1;
        args.seq_kv = SEEN;
        args.head_dim = args.value_dim = DIM;
        args.causal = kinds[i];
        args.q = (heed_heads){q, DIM, DIM, DIM};
        args.k = (heed_heads){k, SEEN * DIM, SEEN * DIM, DIM};
        args.v = (heed_heads){v, SEEN * DIM, SEEN * DIM, DIM};
        args.out = (heed_heads_out){want, DIM, DIM, DIM};
        check_ok(heed_attention(context, &args, NULL), "one sequence");
        args.batch = 2;
        args.q_offsets = q_offsets;
        args.kv_offsets = kv_offsets;
        args.out.data = out;
        check_ok(heed_attention(context, &args, NULL), "beside one without queries");
        check_same(1, DIM, out, DIM, want, DIM, "attention beside a sequence without queries");
    }
    release_all();
    end();
}

/* ---- sequences of one head ---- */

enum { ONE_DIM = 8, ONE_WIDTH = 16 };

/* Two sequences of so many queries and keys. */
static heed_attention_args two_sequences(size_t queries, size_t keys, float *out)
{
    heed_attention_args args = HEED_ATTENTION_ARGS_INIT;
    args.batch = 2;
    args.n_heads = args.n_kv_heads = 1;
    args.seq_q = queries;
    args.seq_kv = keys;
    args.head_dim = ONE_DIM;
    args.value_dim = ONE_WIDTH;
    args.q = (heed_heads){loop_operand(2 * queries * ONE_DIM), queries * ONE_DIM, 0, ONE_DIM};
    args.k = (heed_heads){loop_operand(2 * keys * ONE_DIM), keys * ONE_DIM, 0, ONE_DIM};
    args.v = (heed_heads){loop_operand(2 * keys * ONE_WIDTH), keys * ONE_WIDTH, 0, ONE_WIDTH};
    args.out = (heed_heads_out){out, queries * ONE_WIDTH, 0, ONE_WIDTH};
    return args;
}

/* The first sequence has no queries, or few keys: the second one reaches more, and has the bits of a call of its own.
 */
static void test_longer_second_sequence(const struct heed_kernels *table, const heed_context *context)
{
    enum { QUERIES = 6, FEW = 5, KEYS = 600 };
    static const size_t q_offsets[] = {0, 0, QUERIES}, kv_offsets[] = {0, FEW, FEW + KEYS};
    float out[2 * QUERIES * ONE_WIDTH], want[QUERIES * ONE_WIDTH];
    begin("%s attention of a sequence behind a shorter one", table->name);
    for (int by_keys = 0; by_keys < 2; by_keys++) {
        size_t first_query = by_keys ? QUERIES : 0, first_key = by_keys ? FEW : KEYS; /* of the second one */
        heed_attention_args both = two_sequences(QUERIES, KEYS, out), second = both;
        second.batch = 1;
        second.q.data += first_query * ONE_DIM;
        second.k.data += first_key * ONE_DIM;
        second.v.data += first_key * ONE_WIDTH;
        second.out.data = want;
        attend_exactly(context, &second);
        both.q_offsets = by_keys ? NULL : q_offsets;
        both.kv_offsets = by_keys ? kv_offsets : NULL;
        attend_exactly(context, &both);
        check_same(QUERIES, ONE_WIDTH, out + first_query * ONE_WIDTH, ONE_WIDTH, want, ONE_WIDTH,
                   "behind a shorter sequence");
    }
    release_all();
    end();
}

/* Keys past the last query are as good as absent where causality begins at the top left, in a window, too. */
static void test_keys_past_top_left(const struct heed_kernels *table, const heed_context *context)
{
    enum { ROWS = 30 };
    float out[ROWS * ONE_WIDTH], want[ROWS * ONE_WIDTH];
    begin("%s attention from the top left in a window", table->name);
    heed_attention_args args = two_sequences(ROWS, ROWS, want);
    args.batch = 1;
    args.causal = HEED_CAUSAL_BOTTOM_RIGHT;
    args.window_left = 5;
    attend_exactly(context, &args);
    args.seq_kv = 2 * ROWS;
    args.causal = HEED_CAUSAL_TOP_LEFT;
    args.out.data = out;
    attend_exactly(context, &args);
    check_same(ROWS, ONE_WIDTH, out, ONE_WIDTH, want, ONE_WIDTH, "keys past the last query");
    release_all();
    end();
}

/* ---- offsets that do not begin at 0 ---- */

/* Rows before the first offset are no part of a call: they may be another operand's, or lie outside memory. */
static void test_rows_before_the_first(const struct heed_kernels *table, const heed_context *context)
{
    enum { BEFORE = 40, ROWS = 8, DIM = 16 };
    static const size_t q_offsets[] = {BEFORE, BEFORE + ROWS}, none[] = {5, 5}, all[] = {0, ROWS};
    float *x = buffer((BEFORE + ROWS) * DIM, 0), *q = guarded(ROWS * DIM, 0), want[ROWS * DIM];
    float *kv = guarded(ROWS * DIM, 0), *got = guarded(ROWS * DIM, 0);
    size_t bytes = 1;
    begin("%s attention of offsets that do not begin at 0", table->name);
    fill_uniform(x, (BEFORE + ROWS) * DIM, -1.0f, 1.0f);
    fill_uniform(q, ROWS * DIM, -1.0f, 1.0f);
    memcpy(kv, x, ROWS * DIM * sizeof *kv);
    heed_attention_args args = HEED_ATTENTION_ARGS_INIT;
    args.batch = args.n_heads = args.n_kv_heads = 1;
    args.seq_q = args.seq_kv = ROWS;
    args.head_dim = args.value_dim = DIM;
    args.q = (heed_heads){q, 0, 0, DIM};
    args.k = args.v = (heed_heads){x, 0, 0, DIM};
    args.out = (heed_heads_out){want, 0, 0, DIM};
    check_ok(heed_attention(context, &args, NULL), "all rows");
    args.q_offsets = args.kv_offsets = q_offsets;
    args.q.data = q - BEFORE * DIM;
    args.k.data = args.v.data = kv - BEFORE * DIM;
    args.out.data = got - BEFORE * DIM;
    check_ok(heed_attention(context, &args, NULL), "rows before the first outside memory");
    check_same(ROWS, DIM, got, DIM, want, DIM, "attention of the same rows");
    args.kv_offsets = all;
    args.k.data = args.v.data = x;
    args.out.data = x;
    check_ok(heed_attention(context, &args, NULL), "keys, values and results in one tensor");
    check_same(ROWS, DIM, x + BEFORE * DIM, DIM, want, DIM, "attention of offsets that do not begin at 0");
    args.q_offsets = none;
    args.q.data = args.k.data = args.v.data = args.out.data = NULL;
    check_ok(heed_attention_workspace(context, &args, &bytes), "no queries");
    CHECK(bytes == 0);
    args.kv_offsets = none;
    check_ok(heed_attention(context, &args, NULL), "no rows at all");
    release_all();
    end();
}

/* ---- keys of a cache that a window hides from all queries ---- */

/* Whether pages that lie in so many bytes from data on may be read. */
static void allow_reading(float *data, size_t bytes, bool allowed)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (page - (uintptr_t)data % page) % page;
    int rights = allowed ? PROT_READ | PROT_WRITE : PROT_NONE;
    CHECK(mprotect((unsigned char *)data + before, (bytes - before) / page * page, rights) == 0);
}

/* Few of them are one block, whose first panels no query sees. */
static void test_hidden_panels(const struct heed_kernels *table, const heed_context *context)
{
    enum { QUERIES = 16, DIM = 1024, VALUES = 16, MOST = 96 };
    float *q = buffer(QUERIES * DIM, 1), *k = buffer(MOST * DIM, 1), *v = buffer(MOST * VALUES, 1);
    float *want = buffer(QUERIES * VALUES, 1), *got = buffer(QUERIES * VALUES, 1);
    begin("%s attention does not read keys of a cache that a window hides", table->name);
    fill_uniform(q, QUERIES * DIM, -1.0f, 1.0f);
    fill_uniform(k, MOST * DIM, -1.0f, 1.0f);
    fill_uniform(v, MOST * VALUES, -1.0f, 1.0f);
    for (size_t keys = 2 * HEED_PANEL; keys <= MOST; keys += HEED_PANEL) {
        heed_attention_args args = HEED_ATTENTION_ARGS_INIT;
        args.batch = args.n_heads = args.n_kv_heads = 1;
        args.seq_q = QUERIES;
        args.seq_kv = keys;
        args.head_dim = DIM;
        args.value_dim = VALUES;
        args.causal = HEED_CAUSAL_BOTTOM_RIGHT;
        args.window_left = 0;
        args.q = (heed_heads){q, 0, 0, DIM};
        args.k = (heed_heads){k, 0, 0, DIM};
        args.v = (heed_heads){v, 0, 0, VALUES};
        args.out = (heed_heads_out){want, 0, 0, VALUES};
        check_ok(heed_attention(context, &args, NULL), "tensors");
        const heed_kv_cache *cache = args.cache = loop_cache(&args);
        args.out.data = got;
        allow_reading(cache->data, (keys - QUERIES) * DIM * sizeof(float), false);
        check_ok(heed_attention(context, &args, NULL), "a cache");
        allow_reading(cache->data, (keys - QUERIES) * DIM * sizeof(float), true);
        check_same(QUERIES, VALUES, got, VALUES, want, VALUES, "attention behind hidden keys");
    }
    release_all();
    end();
}

static void test_table(const struct heed_kernels *table)
{
    heed_context *context = context_on(table, 1);
    test_layouts(table, context);
    test_few_queries(table, context);
    test_few_keys(table, context);
    test_loops(table, context);
    test_sequence_without_queries(table, context);
    test_longer_second_sequence(table, context);
    test_keys_past_top_left(table, context);
    test_rows_before_the_first(table, context);
    test_hidden_panels(table, context);
    heed_context_destroy(context);
}

int main(void)
{
    for_each_planned_table(test_table);
    return finish();
}
