/* SPDX-License-Identifier: MIT
 * What heed-bench counts as the work of a shape, what it takes for a right result, and the shapes it draws. */
#include "check.h"

#include "../bench/impl.h"
#include "../bench/problem.h"
#include "../bench/reference.h"
#include "../bench/shape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FLOAT sizeof(float)

/* ---- problems ------------------------------------------------------------------------------ */

static bool open_problem(struct problem *p, const char *suite, const char *text)
{
    struct shape shape;
    const struct suite *named = suites_named(suite);
    *p = (struct problem){.threads = 1};
    if (!CHECK(named && shape_parse(named->kind, text, &shape)))
        return false;
    return CHECK(problem_open(p, named, &shape));
}

/* ---- work ---------------------------------------------------------------------------------- */

static void check_work(const struct problem *p, double flops, size_t bytes, enum limit_kind memory)
{
    check_that(p->flops == flops, "%s: %.0f operations, not %.0f", p->text, p->flops, flops);
    check_that(p->bytes == bytes, "%s: %zu bytes, not %zu", p->text, p->bytes, bytes);
    check_that(p->memory == memory, "%s: bytes are %s", p->text, p->memory == LIMIT_COPY ? "copied" : "read");
}

/* A multiply-add counts twice; both operands, the bias and the result move once. */
static void test_products(void)
{
    static const struct {
        const char *suite, *shape;
        size_t floats;
    } products[] = {
        {"matmul", "3x5x7", 3 * 7 + 7 * 5 + 3 * 5},          {"matmul", "3x5x7+tn", 3 * 7 + 7 * 5 + 3 * 5},
        {"linear", "3x5x7", 3 * 7 + 7 * 5 + 3 * 5},          {"linear", "3x5x7+bias", 3 * 7 + 7 * 5 + 5 + 3 * 5},
        {"linear", "3x5x7+silu", 3 * 7 + 7 * 5 + 5 + 3 * 5},
    };
    begin("work of products");
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        struct problem p;
        if (open_problem(&p, products[i].suite, products[i].shape))
            check_work(&p, 2.0 * 3 * 5 * 7, products[i].floats * FLOAT, LIMIT_READ);
        problem_close(&p);
    }
    end();
}

/* The instructions that doc/bench.md lists, times lanes times two; vectors is what moves but rows of x and the
 * result. */
static void test_rows(void)
{
    enum { ROWS = 3, COLS = 21 };
    static const struct {
        const char *function;
        int instructions;
        size_t matrices, vectors;
    } functions[] = {
        {"softmax", 19, 2, 0}, {"log-softmax", 20, 2, 0},  {"layernorm", 7, 2, 2},   {"rmsnorm", 3, 2, 1},
        {"relu", 1, 2, 0},     {"gelu-erf", 24, 2, 0},     {"gelu-tanh", 26, 2, 0},  {"silu", 23, 2, 0},
        {"swiglu", 24, 3, 0},  {"add-layernorm", 8, 4, 2}, {"add-rmsnorm", 4, 4, 1},
    };
    begin("work of rows");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        struct problem p;
        char text[SHAPE_TEXT];
        snprintf(text, sizeof text, "%s:%dx%d", functions[i].function, ROWS, COLS);
        if (open_problem(&p, "rows", text))
            check_work(&p, 2.0 * (functions[i].instructions * ROWS * COLS),
                       (functions[i].matrices * ROWS + functions[i].vectors) * COLS * FLOAT, LIMIT_COPY);
        problem_close(&p);
    }
    end();
}

/* As doc/bench.md says it: the queries are the last tokens, and a window is so many keys on either side. */
static bool is_seen(const struct shape *s, size_t row, size_t key)
{
    ptrdiff_t after = (ptrdiff_t)(key + s->m) - (ptrdiff_t)(row + s->n), window = (ptrdiff_t)s->window;
    return (!s->causal || after <= 0) && (!s->window || (after <= window && -after <= window));
}

static void count_pairs(const struct shape *s, size_t *pairs, size_t *keys)
{
    *pairs = *keys = 0;
    for (size_t key = 0; key < s->n; key++) {
        size_t rows = 0;
        for (size_t row = 0; row < s->m; row++)
            rows += is_seen(s, row, key);
        *pairs += rows;
        *keys += rows > 0;
    }
}

static const char *const attentions[] = {
    "1x2x7x9x8",
    "2x6/3x9x21x8+causal",
    "1x4/2x9x21x8+window3",
    "2x4/2x9x21x8+causal+window2",
    "1x2x9x5x8+causal",
    "1x2x9x5x8",
    "1x2x3x40x8+window6",
    "1x2x7x9x8+alibi",
    "1x4/2x9x21x8+causal+additive",
    "2x6/3x9x21x8+boolean",
    "1x2x9x21x8+causal+window4+boolean",
};
#define N_ATTENTIONS (sizeof attentions / sizeof *attentions)

/* Queries, the result, and the keys and values that are reached; of a mask, which all heads share, what is seen. */
static void check_attention_work(const struct problem *p)
{
    const struct shape *s = &p->shape;
    size_t pairs, keys, element = s->tensor == TENSOR_NONE ? 0 : s->tensor == TENSOR_BOOLEAN ? 1 : FLOAT;
    count_pairs(s, &pairs, &keys);
    size_t heads = 2 * s->batch * s->heads * s->m * s->k, reached = 2 * s->batch * s->kv_heads * keys * s->k;
    check_work(p, 2.0 * 2.0 * (double)(s->batch * s->heads * pairs * s->k), (heads + reached) * FLOAT + pairs * element,
               LIMIT_READ);
}

static void check_visible(const struct problem *p)
{
    const struct shape *s = &p->shape;
    size_t hidden = 0, seen = 0;
    for (size_t row = 0; row < s->m; row++)
        for (size_t key = 0; key < s->n; key++) {
            bool visible = problem_is_visible(p, row, key), own = key + s->m == row + s->n;
            seen += is_seen(s, row, key);
            hidden += is_seen(s, row, key) && !visible;
            check_that(is_seen(s, row, key) ? visible || (p->boolean && !own) : !visible, "%s: query %zu, key %zu",
                       p->text, row, key);
        }
    CHECK(p->boolean ? hidden > seen / 8 && hidden < seen / 2 : hidden == 0);
}

static void test_attention(const char *suite)
{
    begin("work of %s, and which keys are seen", suite);
    for (size_t i = 0; i < N_ATTENTIONS; i++) {
        struct problem p;
        if (open_problem(&p, suite, attentions[i])) {
            check_attention_work(&p);
            check_visible(&p);
        }
        problem_close(&p);
    }
    end();
}

/* BERT's and GPT-2's have biases, two norms with shifts and two matrices of d_ff; Llama's three, and scales only. */
static void test_layers(void)
{
    enum { BATCH = 2, TOKENS = 5, MODEL = 24, HIDDEN = 40, ROWS = BATCH * TOKENS };
    const size_t rows = 2 * ROWS * MODEL, attention = 4 * MODEL * MODEL, shared = 3 * MODEL * MODEL;
    static const struct {
        const char *shape;
        size_t pairs;
    } layers[] = {{"bert:2x5x24x4x40", 25}, {"gpt2:2x5x24x4x40", 15}, {"llama:2x5x24x4/2x40", 15}};
    begin("work of layers");
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        struct problem p;
        bool llama = i == 2;
        size_t matrices = llama ? shared + 3 * MODEL * HIDDEN : attention + 2 * MODEL * HIDDEN;
        size_t vectors = llama ? 2 * MODEL : 5 * MODEL + HIDDEN + 4 * MODEL;
        if (open_problem(&p, "layer", layers[i].shape))
            check_work(&p, (double)(2 * ROWS * matrices + 4 * BATCH * layers[i].pairs * MODEL),
                       (rows + matrices + vectors) * FLOAT, LIMIT_READ);
        problem_close(&p);
    }
    end();
}

/* ---- results ------------------------------------------------------------------------------- */

static bool open_heed(struct problem *p, const heed_context *context, struct impl *impl)
{
    *impl = (struct impl){.library = &library_heed, .problem = p};
    p->context = context;
    problem_spoil(p);
    return CHECK(library_heed.open(&library_heed, impl) == OUTCOME_READY);
}

static void close_heed(struct impl *impl)
{
    if (impl->state)
        impl->close(impl->state);
}

static bool compute(struct problem *p, const heed_context *context)
{
    struct impl impl;
    bool done = open_heed(p, context, &impl) && CHECK(!problem_agrees(p) && !reference_agrees(p)) &&
                CHECK(impl.call(impl.state));
    close_heed(&impl);
    return done;
}

/* Each element counts where results are compared, and any 32 of them where a reference is. */
static void check_wrong(struct problem *p)
{
    memcpy(p->expected, p->out, p->out_count * sizeof *p->out);
    CHECK(problem_agrees(p) && reference_agrees(p));
    for (size_t i = 0; i < p->out_count; i++) {
        float right = p->out[i];
        p->out[i] += 1e-3f * (1.0f + fabsf(right));
        check_that(!problem_agrees(p), "%s: element %zu is wrong", p->text, i);
        p->out[i] = right;
    }
    for (size_t i = 0; i < p->out_count; i++)
        p->out[i] += 1e-3f * (1.0f + fabsf(p->out[i]));
    check_that(!reference_agrees(p), "%s is wrong", p->text);
}

static void check_result(const char *suite, const char *text, const heed_context *context)
{
    struct problem p;
    if (open_problem(&p, suite, text) && compute(&p, context))
        check_wrong(&p);
    problem_close(&p);
}

static void test_results(void)
{
    static const char *const rows[] = {"softmax", "log-softmax",   "layernorm",  "rmsnorm",
                                       "relu",    "gelu-erf",      "gelu-tanh",  "silu",
                                       "swiglu",  "add-layernorm", "add-rmsnorm"};
    static const char *const products[] = {"", "+bias", "+relu", "+gelu-erf", "+gelu-tanh", "+silu"};
    heed_context *context = NULL;
    char text[SHAPE_TEXT];
    begin("a right result is told from a wrong one");
    CHECK(heed_context_create(&context, NULL) == HEED_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text, "%s:3x21", rows[i]);
        check_result("rows", text, context);
    }
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        snprintf(text, sizeof text, "5x7x20%s", products[i]);
        check_result("linear", text, context);
    }
    check_result("layer", "bert:2x7x24x3x40", context);
    check_result("layer", "gpt2:1x9x24x2x33", context);
    check_result("layer", "llama:2x50x32x4/2x48", context);
    for (size_t i = 0; i < N_ATTENTIONS; i++) {
        check_result("attention", attentions[i], context);
        check_result("decode", attentions[i], context);
    }
    heed_context_destroy(context);
    end();
}

/* ---- where and how heed computes ----------------------------------------------------------- */

static void spoil(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = NAN;
}

static void test_cache(void)
{
    struct problem p;
    struct impl impl;
    heed_context *context = NULL;
    begin("decode takes keys and values from a cache that was filled before");
    CHECK(heed_context_create(&context, NULL) == HEED_OK);
    if (open_problem(&p, "decode", "2x4/2x3x21x8+causal") && compute(&p, context)) {
        memcpy(p.expected, p.out, p.out_count * sizeof *p.out);
        bool opened = open_heed(&p, context, &impl);
        spoil(p.operand[1], p.operand_count[1]);
        spoil(p.operand[2], p.operand_count[2]);
        CHECK(opened && impl.call(impl.state));
        check_same(1, p.out_count, p.out, p.out_count, p.expected, p.out_count, "by the cache");
        close_heed(&impl);
    }
    problem_close(&p);
    heed_context_destroy(context);
    end();
}

static size_t most_tasks;

static void count_tasks(void *host, size_t n_tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg)
{
    (void)host;
    most_tasks = n_tasks > most_tasks ? n_tasks : most_tasks;
    for (size_t i = 0; i < n_tasks; i++)
        task(arg, i, 0);
}

static size_t tasks_of(heed_attention_loop loop)
{
    struct problem p;
    heed_context *context = NULL;
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    options.executor = HEED_EXECUTOR_HOST;
    options.host.run = count_tasks;
    options.threads = 4;
    most_tasks = 0;
    CHECK(heed_context_create(&context, &options) == HEED_OK);
    if (open_problem(&p, "attention", "1x2x600x600x8")) {
        p.loop = loop;
        compute(&p, context);
    }
    problem_close(&p);
    heed_context_destroy(context);
    return most_tasks;
}

/* One task for each head, or for each run of its rows. */
static void test_loop(void)
{
    begin("the loop of attention is the one that was asked for");
    CHECK(tasks_of(HEED_ATTENTION_LOOP_HEADS) == 2);
    CHECK(tasks_of(HEED_ATTENTION_LOOP_ROWS) > 2);
    end();
}

/* ---- random shapes ------------------------------------------------------------------------- */

#define DRAWN 11000
#define MAGNITUDES 11 /* from 1 to 2047 */

/* By how much a count of so many draws may differ from its mean, which it does in one of some million cases. */
static bool is_likely(size_t count, size_t draws, size_t outcomes)
{
    double mean = (double)draws / (double)outcomes;
    return fabs((double)count - mean) < 5.0 * sqrt(mean);
}

static void test_random_sizes(const char *suite)
{
    size_t m[MAGNITUDES + 1] = {0}, n[MAGNITUDES + 1] = {0}, forms[4] = {0};
    uint64_t state = 1;
    enum suite_kind kind = suites_named(suite)->kind;
    begin("random shapes of %s have every magnitude alike", suite);
    for (size_t i = 0; i < DRAWN; i++) {
        struct shape s = shape_random(kind, &state);
        if (!CHECK(s.m >= 1 && s.m <= 2048 && s.n >= 1 && s.n <= 2048))
            break;
        m[ilogb((double)s.m)]++;
        n[ilogb((double)s.n)]++;
        forms[s.transposed_a + 2 * s.transposed_b]++;
    }
    for (size_t i = 0; i < MAGNITUDES; i++)
        CHECK((kind == SUITE_GEMV || is_likely(m[i], DRAWN, MAGNITUDES)) && is_likely(n[i], DRAWN, MAGNITUDES));
    for (size_t i = 0; i < 4; i++)
        CHECK(kind == SUITE_MATMUL ? is_likely(forms[i], DRAWN, 4) : forms[i] == (i ? 0 : DRAWN));
    CHECK(kind != SUITE_GEMV || m[0] == DRAWN);
    end();
}

static void test_random_functions(void)
{
    size_t functions[N_ROW_FUNCTIONS] = {0};
    uint64_t state = 1;
    begin("random rows have every function alike");
    for (size_t i = 0; i < DRAWN; i++)
        functions[shape_random(SUITE_ROWS, &state).function]++;
    for (size_t i = 0; i < N_ROW_FUNCTIONS; i++)
        CHECK(is_likely(functions[i], DRAWN, N_ROW_FUNCTIONS));
    end();
}

static void check_random(enum suite_kind kind, const struct shape *s, size_t queries, size_t keys)
{
    struct shape again;
    char text[SHAPE_TEXT];
    shape_print(kind, s, text);
    CHECK(shape_parse(kind, text, &again) && again.m == s->m && again.n == s->n && again.k == s->k &&
          again.batch == s->batch && again.heads == s->heads && again.kv_heads == s->kv_heads &&
          again.causal == s->causal && again.window == s->window && again.alibi == s->alibi &&
          again.tensor == s->tensor);
    CHECK(s->m <= queries && s->n <= keys && s->k % 8 == 0 && s->k <= 256 && s->heads % s->kv_heads == 0);
    CHECK(s->m <= s->n || (!s->causal && !s->window));
}

/* What is printed is what --shape takes to measure it again. Only where there are no more queries than keys
 * do some have causality or a window. */
static void test_random_attention(const char *suite, size_t queries, size_t keys)
{
    size_t fitting = 0, causal = 0, windows = 0, alibi = 0, tensors[3] = {0}, grouped = 0, longest = 0;
    uint64_t state = 1;
    enum suite_kind kind = suites_named(suite)->kind;
    begin("random shapes of %s have every mask, and every query a key", suite);
    for (size_t i = 0; i < DRAWN; i++) {
        struct shape s = shape_random(kind, &state);
        check_random(kind, &s, queries, keys);
        fitting += s.m <= s.n;
        causal += s.causal;
        windows += s.window > 0;
        alibi += s.alibi;
        tensors[s.tensor]++;
        grouped += s.heads > s.kv_heads;
        longest += s.k == 256;
    }
    CHECK(causal > fitting / 4 && causal < fitting / 4 * 3 && grouped > DRAWN / 4 && longest > 0);
    CHECK(is_likely(windows, fitting, 4) && is_likely(alibi, DRAWN, 8));
    CHECK(is_likely(tensors[TENSOR_ADDITIVE], DRAWN, 8) && is_likely(tensors[TENSOR_BOOLEAN], DRAWN, 8));
    end();
}

int main(void)
{
    test_products();
    test_rows();
    test_layers();
    test_attention("attention");
    test_attention("decode");
    test_results();
    test_cache();
    test_loop();
    test_random_sizes("matmul");
    test_random_sizes("linear");
    test_random_sizes("gemv");
    test_random_sizes("rows");
    test_random_functions();
    test_random_attention("attention", 2048, 2048);
    test_random_attention("decode", 16, 32768);
    return finish();
}
