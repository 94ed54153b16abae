/* SPDX-License-Identifier: MIT
 * Worked examples of attention from the texts that explain it, with outputs recomputed in float64 to
 * seven digits, through the public API on every table.
 */
#include "reference.h"

#include <math.h>
#include <stdio.h>

/* Half a unit of the seventh printed digit behind the point, and float rounding of numbers up to 8. */
#define TOLERANCE (0.5e-7 + 16.0 * UNIT)

static heed_context *context;

static void check_values(size_t n, const float *got, const double *want, const char *what)
{
    for (size_t i = 0; i < n; i++)
        check_bound((double)got[i], want[i], TOLERANCE, what, i);
}

#define CHECK_VALUES(got, ...)                                                                                         \
    do {                                                                                                               \
        const double want_[] = __VA_ARGS__;                                                                            \
        check_values(sizeof want_ / sizeof *want_, got, want_, #got);                                                  \
    } while (0)

/* Rows of tokens with the heads side by side. */
struct sentence {
    size_t heads, queries, keys, head_dim, value_dim;
    heed_causal causal;
    const float *q, *k, *v;
};

static void attend(const struct sentence *s, float *out, float *map)
{
    heed_attention_args a = HEED_ATTENTION_ARGS_INIT;
    a.batch = 1;
    a.n_heads = a.n_kv_heads = s->heads;
    a.seq_q = s->queries;
    a.seq_kv = s->keys;
    a.head_dim = s->head_dim;
    a.value_dim = s->value_dim;
    a.q = (heed_heads){s->q, 0, s->head_dim, s->heads * s->head_dim};
    a.k = (heed_heads){s->k, 0, s->head_dim, s->heads * s->head_dim};
    a.v = (heed_heads){s->v, 0, s->value_dim, s->heads * s->value_dim};
    a.out = (heed_heads_out){out, 0, s->value_dim, s->heads * s->value_dim};
    a.map = (heed_heads_out){map, 0, s->queries * s->keys, s->keys};
    a.causal = s->causal;
    CHECK(heed_attention(context, &a, NULL) == HEED_OK);
}

static void multiply(size_t m, size_t n, size_t k, heed_transpose transpose_b, const float *a, const float *b, float *c)
{
    CHECK(heed_matmul(context, HEED_NO_TRANSPOSE, transpose_b, m, n, k, 1.0f, a, k, b,
                      transpose_b == HEED_TRANSPOSE ? k : n, 0.0f, c, n, NULL) == HEED_OK);
}

/* "the ring fell" */
static void test_one_head(void)
{
    static const float q[] = {1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0}, k[] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0};
    static const float v[] = {1, 1, 0, 0, 0, 0, 2, 2, 3, 0, 0, 3};
    float scores[9], a[9], z[12];
    multiply(3, 3, 4, HEED_TRANSPOSE, q, k, scores);
    CHECK_VALUES(scores, {1, 0, 0, 0, 1, 2, 0, 1, 1});
    attend(&(struct sentence){1, 3, 3, 4, 4, HEED_CAUSAL_NONE, q, k, v}, z, a);
    CHECK_VALUES(a,
                 {0.4518628, 0.2740686, 0.2740686, 0.1863237, 0.3071959, 0.5064804, 0.2326965, 0.3836517, 0.3836517});
    CHECK_VALUES(z, {1.2740686, 0.4518628, 0.5481372, 1.3703431, 1.7057649, 0.1863237, 0.6143918, 2.1338329, 1.3836517,
                     0.2326965, 0.7673035, 1.9182587});
}

static void test_two_heads(void)
{
    static const float q[] = {1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0}, k[] = {1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1};
    static const float v[] = {1, 1, 0, 0, 2, 2, 0, 0, 0, 0, 3, 3};
    float maps[18], z[12];
    attend(&(struct sentence){2, 3, 3, 2, 2, HEED_CAUSAL_NONE, q, k, v}, z, maps);
    CHECK_VALUES(z, {1.2033363, 1.2033363, 1.2033363, 1.2033363, 0.7447652, 0.7447652, 0.7447652, 0.7447652, 1.2033363,
                     1.2033363, 0.7447652, 0.7447652});
}

static void test_residual(void)
{
    static const float x[] = {0.5f, 0.6f, 0.7f, 0.8f}, attended[] = {1.6f, 1.6f, 2.4f, 2.4f};
    float sum[4], y[4];
    heed_layernorm_options options = HEED_LAYERNORM_OPTIONS_INIT;
    options.eps = 0.0f;
    options.residual = attended;
    options.sum = sum;
    options.ld_residual = options.ld_sum = 4;
    CHECK(heed_layernorm(context, 1, 4, x, 4, &options, y, 4) == HEED_OK);
    CHECK_VALUES(sum, {2.1, 2.2, 3.1, 3.2});
    /* Sums rounded to 2^-23 are divided by a deviation of 0.5: twice their error, and half of it in scale. */
    const double want[] = {-1.0945409, -0.8955335, 0.8955335, 1.0945409};
    for (size_t i = 0; i < 4; i++)
        check_bound((double)y[i], want[i], 0.5e-7 + 5.0 * 0x1p-22, "normalised", i);
}

/* "Chai piyo": projections as packed weights and as a product, then attention. */
static void test_projection(void)
{
    static const float x[] = {1, 0, 1, 0, 0, 1, 0, 1}, w_q[] = {1, 0, 0, 1, 1, 0, 0, 1},
                       w_k[] = {0, 1, 1, 0, 0, 1, 1, 0};
    float q[4], k[4], v[4], scores[4], a[4], z[4];
    multiply(2, 2, 4, HEED_NO_TRANSPOSE, x, w_q, q);
    CHECK(heed_linear(context, 2, x, 4, packed(4, 2, w_k), NULL, k, 2) == HEED_OK);
    CHECK(heed_linear(context, 2, x, 4, packed(4, 2, w_q), NULL, v, 2) == HEED_OK);
    CHECK_VALUES(q, {2, 0, 0, 2});
    CHECK_VALUES(k, {0, 2, 2, 0});
    CHECK_VALUES(v, {2, 0, 0, 2});
    multiply(2, 2, 2, HEED_TRANSPOSE, q, k, scores);
    CHECK_VALUES(scores, {0, 4, 4, 0});
    attend(&(struct sentence){1, 2, 2, 2, 2, HEED_CAUSAL_NONE, q, k, v}, z, a);
    CHECK_VALUES(a, {0.0558072, 0.9441928, 0.9441928, 0.0558072});
    CHECK_VALUES(z, {0.1116144, 1.8883856, 1.8883856, 0.1116144});
}

static void test_one_query(void)
{
    static const float k[] = {1, 0, 0, 1, 1, 1}, v[] = {10, 0, 0, 10, 5, 5}, first[] = {1, 0}, second[] = {0, 2};
    float a[3], z[2];
    attend(&(struct sentence){1, 1, 3, 2, 2, HEED_CAUSAL_NONE, first, k, v}, z, a);
    CHECK_VALUES(a, {0.4011121, 0.1977758, 0.4011121});
    CHECK_VALUES(z, {6.0166814, 3.9833186});
    attend(&(struct sentence){1, 1, 3, 2, 2, HEED_CAUSAL_NONE, second, k, v}, z, a);
    CHECK_VALUES(a, {0.1083835, 0.4458083, 0.4458083});
    CHECK_VALUES(z, {3.3128759, 6.6871241});
}

/* "I love math" */
static void test_causal(void)
{
    static const float q[] = {1, 0, 0, 1, 1, 1}, k[] = {0, 1, 1, 0, 1, 1}, v[] = {1, 2, 3, 4, 5, 6};
    static const float x[] = {1.0f, 0.5f, -0.3f, 0.8f}, w[] = {0.2f, 0.1f, 0.4f, -0.3f, 0.1f, 0.5f, -0.2f, 0.3f};
    float a[9], z[6], projected[2];
    attend(&(struct sentence){1, 3, 3, 2, 2, HEED_CAUSAL_NONE, q, k, v}, z, a);
    CHECK_VALUES(a,
                 {0.1977758, 0.4011121, 0.4011121, 0.4011121, 0.1977758, 0.4011121, 0.2482551, 0.2482551, 0.5034898});
    CHECK_VALUES(z, {3.4066726, 4.4066726, 3, 4, 3.5104695, 4.5104695});
    attend(&(struct sentence){1, 3, 3, 2, 2, HEED_CAUSAL_TOP_LEFT, q, k, v}, z, a);
    CHECK_VALUES(a, {1, 0, 0, 0.6697615, 0.3302385, 0, 0.2482551, 0.2482551, 0.5034898});
    CHECK_VALUES(z, {1, 2, 1.6604769, 2.6604769, 3.5104695, 4.5104695});
    multiply(1, 2, 4, HEED_NO_TRANSPOSE, x, w, projected);
    CHECK_VALUES(projected, {0.21, 0.04});
}

static void test_positions(void)
{
    static const float word[] = {0.5f, 0.3f, -0.1f, 0.8f};
    const int32_t ids[] = {0};
    float p[16], sum[4];
    CHECK(heed_sinusoidal_positions(context, 0, 4, 4, 10000.0, p, 4) == HEED_OK);
    CHECK_VALUES(p, {0, 1, 0, 1, 0.8414710, 0.5403023, 0.0099998, 0.9999500, 0.9092974, -0.4161468, 0.0199987,
                     0.9998000, 0.1411200, -0.9899925, 0.0299955, 0.9995500});
    const heed_embedding_table tables[] = {{word, 1, 4, ids, 0}, {p, 4, 4, NULL, 3}};
    CHECK(heed_embed(context, 1, 4, 2, tables, 0, NULL, sum, 4) == HEED_OK);
    CHECK_VALUES(sum, {0.6411200, -0.6899925, -0.0700045, 1.7995500});
}

/* The next token is the row of the output matrix with the largest dot product with the context. */
static void test_next_token(void)
{
    static const float vocabulary[] = {0.1f, 0.2f, -1.0f, 0.4f, 0.9f, -0.3f, 0.8f, 0.1f, 0.0f, 1.0f, 1.0f, 0.5f};
    static const float last[] = {0.5f, 1.0f, 2.0f};
    float scores[4];
    size_t chosen = 9;
    multiply(1, 4, 3, HEED_TRANSPOSE, last, vocabulary, scores);
    CHECK_VALUES(scores, {-1.75, 0.5, 0.5, 2.5});
    CHECK(heed_argmax(context, 1, 4, scores, 4, &chosen) == HEED_OK && chosen == 3);
}

static const struct {
    const char *name;
    void (*run)(void);
} examples[] = {
    {"attention with one head", test_one_head}, {"attention with two heads", test_two_heads},
    {"residual and LayerNorm", test_residual},  {"projection and attention", test_projection},
    {"one query, three keys", test_one_query},  {"causal attention", test_causal},
    {"sinusoidal positions", test_positions},   {"next token", test_next_token},
};

static void test_table(const struct heed_kernels *table)
{
    context = context_on(table, 1);
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        begin("%s: %s", table->name, examples[i].name);
        examples[i].run();
        end();
    }
    heed_context_destroy(context);
}

int main(void)
{
    for_each_table(test_table);
    return finish();
}
