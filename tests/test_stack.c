/* SPDX-License-Identifier: MIT
 * The stack that a call and a task take, on every table: heed.h promises it to hosts whose threads have little.
 */
#include "check.h"

#include <pthread.h>
#include <string.h>

enum { CALL_BYTES = 80 * 1024, TASK_BYTES = 64 * 1024, STACK_BYTES = 256 * 1024, PAINT = 0xa5 };

/* Frames are promised of optimised code that nothing instruments. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
#define FRAMES_ARE_PLAIN 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define FRAMES_ARE_PLAIN 0
#endif
#endif
#ifndef FRAMES_ARE_PLAIN
#define FRAMES_ARE_PLAIN 1
#endif

/* What a thread that starts and ends takes itself, and the bytes of painted stack that a function changed besides. */
static size_t thread_bytes;

static size_t changed(void *(*function)(void *arg), void *arg)
{
    static _Alignas(4096) unsigned char stacks[2][STACK_BYTES];
    static size_t depth;
    unsigned char *stack = stacks[depth], clean[512];
    pthread_attr_t attributes;
    pthread_t thread;
    memset(stack, PAINT, STACK_BYTES);
    memset(clean, PAINT, sizeof clean);
    depth++;
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack, STACK_BYTES) == 0 &&
          pthread_create(&thread, &attributes, function, arg) == 0 && pthread_join(thread, NULL) == 0);
    pthread_attr_destroy(&attributes);
    depth--;
    size_t untouched = 0; /* by some hundred bytes: emulators would feel single ones */
    while (untouched < STACK_BYTES && memcmp(stack + untouched, clean, sizeof clean) == 0)
        untouched += sizeof clean;
    size_t bytes = STACK_BYTES - untouched;
    return bytes > thread_bytes ? bytes - thread_bytes : 0;
}

static void *do_nothing(void *arg)
{
    return arg;
}

/* ---- operators ---- */

enum { ROWS = 300, COLS = 320, LONG = 2048 };

static struct {
    float *a, *b, *c;
    const heed_weights *weights, *pair;
    heed_context *context;
} p;

static void call_matmul(void)
{
    static const size_t sizes[][3] = {{ROWS, COLS, ROWS}, {3, LONG, ROWS}, {ROWS, 2, COLS}, {8, LONG, 64}};
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (unsigned form = 0; form < 4; form++) {
            size_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
            check_ok(heed_matmul(p.context, form & 1 ? HEED_TRANSPOSE : HEED_NO_TRANSPOSE,
                                 form & 2 ? HEED_TRANSPOSE : HEED_NO_TRANSPOSE, m, n, k, 1.0f, p.a, form & 1 ? m : k,
                                 p.b, form & 2 ? k : n, 0.0f, p.c, n, NULL),
                     "matmul");
        }
}

static void call_linear(void)
{
    heed_linear_options o = HEED_LINEAR_OPTIONS_INIT;
    o.activation = HEED_ACTIVATION_GELU_ERF;
    for (size_t m = 1; m <= ROWS; m = 3 * m + 1) {
        check_ok(heed_linear(p.context, m, p.a, COLS, p.weights, &o, p.c, COLS), "linear");
        check_ok(heed_linear(p.context, m, p.a, COLS, p.pair, &o, p.c, COLS), "gated linear");
    }
}

static void call_rows(void)
{
    heed_layernorm_options norm = HEED_LAYERNORM_OPTIONS_INIT;
    norm.residual = p.b;
    norm.ld_residual = COLS;
    check_ok(heed_softmax(p.context, ROWS, COLS, p.a, COLS, p.c, COLS), "softmax");
    check_ok(heed_layernorm(p.context, ROWS, COLS, p.a, COLS, &norm, p.c, COLS), "layernorm");
    check_ok(heed_activate(p.context, HEED_ACTIVATION_SILU, ROWS, COLS, p.a, COLS, p.c, COLS), "silu");
}

static void call_attention(void)
{
    static const size_t queries[] = {1, 4, ROWS};
    for (size_t i = 0; i < COUNT(queries); i++) {
        heed_attention_args args = HEED_ATTENTION_ARGS_INIT;
        args.batch = 1;
        args.n_heads = args.n_kv_heads = 5;
        args.seq_q = queries[i];
        args.seq_kv = ROWS;
        args.head_dim = args.value_dim = 64;
        args.q = (heed_heads){p.a, 0, 64, COLS};
        args.k = args.v = (heed_heads){p.b, 0, 64, COLS};
        args.out = (heed_heads_out){p.c, 0, 64, COLS};
        args.causal = i == 2 ? HEED_CAUSAL_TOP_LEFT : HEED_CAUSAL_NONE;
        check_ok(heed_attention(p.context, &args, NULL), "attention");
    }
}

static void (*const operators[])(void) = {call_matmul, call_linear, call_rows, call_attention};
static const char *const operator_names[] = {"products", "linear layers", "row operators", "attention"};

static void *call_operator(void *arg)
{
    operators[*(const size_t *)arg]();
    return NULL;
}

/* ---- hosts: tasks on the caller's stack, or each on one of its own ---- */

struct one_task {
    void (*task)(void *arg, size_t index, size_t worker);
    void *arg;
    size_t index;
};

static size_t deepest_task;

static void *run_one(void *arg)
{
    const struct one_task *one = arg;
    one->task(one->arg, one->index, 0);
    return NULL;
}

static void run_here(void *host, size_t n_tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg)
{
    (void)host;
    for (size_t i = 0; i < n_tasks; i++)
        task(arg, i, 0);
}

static void run_apart(void *host, size_t n_tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg)
{
    (void)host;
    for (size_t i = 0; i < n_tasks; i++) {
        struct one_task one = {task, arg, i};
        size_t bytes = changed(run_one, &one);
        deepest_task = bytes > deepest_task ? bytes : deepest_task;
    }
}

static heed_context *host_on(const struct heed_kernels *table, heed_host host)
{
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    heed_context *context = NULL;
    options.executor = HEED_EXECUTOR_HOST;
    options.threads = 2;
    options.host = host;
    CHECK(heed_context_create_on(&context, &options, table) == HEED_OK);
    return context;
}

/* The second time: what a first call resolves and starts is not its own. As from the caches and from memory, to a core
 * that is wide and to one that is not. */
static size_t most_changed(const struct heed_kernels *table, heed_host host, size_t operator)
{
    size_t most = 0;
    p.context = host_on(table, host);
    for (unsigned kind = quick() ? 3 : 0; kind < 4; kind++) {
        p.context->wide_core = kind & 1;
        p.context->in_order = kind & 2 ? 0 : HEED_CPU_ANY_ORDER - 1;
        operators[operator]();
        size_t bytes = changed(call_operator, &operator);
        most = bytes > most ? bytes : most;
    }
    heed_context_destroy(p.context);
    return most;
}

static void make_operands(void)
{
    size_t floats = LONG * ROWS;
    p.a = buffer(floats, 0);
    p.b = buffer(floats, 0);
    p.c = buffer(floats, 0);
    fill_uniform(p.a, floats, -1.0f, 1.0f);
    fill_uniform(p.b, floats, -1.0f, 1.0f);
    p.weights = packed(COLS, COLS, p.b);
    p.pair = packed_pair(COLS, COLS, p.b, p.a);
}

static void test_table(const struct heed_kernels *table)
{
    make_operands();
    for (size_t i = 0; i < COUNT(operators); i++) {
        begin("%s: the stack of %s", table->name, operator_names[i]);
        size_t call = most_changed(table, (heed_host){run_here, NULL}, i);
        deepest_task = 0;
        most_changed(table, (heed_host){run_apart, NULL}, i);
        check_that(call <= CALL_BYTES, "a call with its tasks takes %zu bytes", call);
        check_that(deepest_task <= TASK_BYTES, "a task takes %zu bytes", deepest_task);
        note("%zu bytes for a call with its tasks, %zu for a task", call, deepest_task);
        end();
    }
}

int main(void)
{
    if (!FRAMES_ARE_PLAIN) {
        skip("the code is instrumented, or not optimised", "the stack of calls and tasks");
        return finish();
    }
    thread_bytes = changed(do_nothing, NULL);
    for_each_table(test_table);
    return finish();
}
