/* SPDX-License-Identifier: MIT
 * oneDNN: weights in whatever layout it likes best, reordered once; everything else as it lies.
 */
#include "config.h"

#include "impl.h"

#include "diag.h"
#include "memory.h"
#include "onednn_abi.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_MEMORIES 4
#define MOST_PRIMITIVES 3

static struct onednn_abi dnnl;
static onednn_handle engine, stream;
static void (*omp_threads)(int threads);
static unsigned runtime;
static bool shares_openmp;

/* ---- looking for it ------------------------------------------------------------------------- */

static bool look_up(void *handle)
{
    bool all = LIBRARY_SYMBOL(handle, "dnnl_version", dnnl.version) &&
               LIBRARY_SYMBOL(handle, "dnnl_primitive_desc_query_md", dnnl.primitive_desc_query_md) &&
               LIBRARY_SYMBOL(handle, "dnnl_memory_desc_get_size", dnnl.memory_desc_get_size);
#define LOOK_UP(name, arguments) all = LIBRARY_SYMBOL(handle, "dnnl_" #name, dnnl.name) && all;
    ONEDNN_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    /* Also finds it in the library's own dependencies, be that OpenMP's GNU or Intel form. */
    LIBRARY_SYMBOL(handle, "omp_set_num_threads", omp_threads);
    shares_openmp = library_shares_openmp(handle);
    return all;
}

/* Threads of other runtimes cannot be counted from here. */
static const char *runtime_name(void)
{
    if (runtime == ONEDNN_RUNTIME_SEQUENTIAL)
        return "no threads";
    if (runtime != ONEDNN_RUNTIME_OPENMP || !omp_threads)
        return NULL;
    return shares_openmp ? "OpenMP" : "an OpenMP of its own";
}

static bool find(struct library *library, const char *path, char about[LIBRARY_ABOUT])
{
    static const char *const files[] = {"libdnnl.so.3", "libdnnl.3.dylib", "libdnnl.so", "libdnnl.dylib", NULL};
    const char *file;
    if (!library_load(path, files, look_up, "oneDNN 3", &file, about))
        return false;
    const struct onednn_version *version = dnnl.version();
    runtime = version->cpu_runtime;
    library->pool = runtime == ONEDNN_RUNTIME_SEQUENTIAL || shares_openmp ? NULL : library;
    if (!runtime_name()) {
        snprintf(about, LIBRARY_ABOUT, "%s: is built neither for OpenMP nor for a single thread", file);
        return false;
    }
    if (dnnl.engine_create(&engine, ONEDNN_CPU, 0) || dnnl.stream_create(&stream, engine, ONEDNN_IN_ORDER)) {
        snprintf(about, LIBRARY_ABOUT, "%s: does not start", file);
        return false;
    }
    snprintf(about, LIBRARY_ABOUT, "%s, version %d.%d.%d, %s, with packed form", file, version->major, version->minor,
             version->patch, runtime_name());
    return true;
}

static void set_threads(const struct library *library, size_t threads)
{
    (void)library;
    if (omp_threads)
        omp_threads((int)threads);
}

/* ---- a primitive with its memories ---------------------------------------------------------- */

struct primitive {
    onednn_handle handle;
    struct onednn_argument arguments[MOST_MEMORIES];
    int count;
    void *packed;
};

/* What computes a problem: primitives one after another. */
struct chain {
    struct primitive primitives[MOST_PRIMITIVES];
    float *scores; /* of attention */
};

static bool good(int status, const char *what)
{
    if (status)
        diag_print("onednn: %s: status %d", what, status);
    return status == 0;
}

static bool execute(const struct primitive *p)
{
    return good(dnnl.primitive_execute(p->handle, stream, p->count, p->arguments), "execute") &&
           good(dnnl.stream_wait(stream), "wait");
}

static bool add_memory(struct primitive *p, int which, onednn_handle md, void *data)
{
    struct onednn_argument *argument = &p->arguments[p->count];
    argument->which = which;
    if (!good(dnnl.memory_create(&argument->memory, md, engine, data), "memory"))
        return false;
    p->count++;
    return true;
}

static void close_primitive(struct primitive *p)
{
    for (int i = 0; i < p->count; i++)
        dnnl.memory_destroy(p->arguments[i].memory);
    if (p->handle)
        dnnl.primitive_destroy(p->handle);
    free(p->packed);
    *p = (struct primitive){0};
}

/* Takes over pd. */
static bool make_primitive(struct primitive *p, onednn_handle pd)
{
    bool made = good(dnnl.primitive_create(&p->handle, pd), "primitive");
    dnnl.primitive_desc_destroy(pd);
    return made;
}

/* NULL after a message. */
static onednn_handle describe_strided(int n, const onednn_dims dims, const onednn_dims strides)
{
    onednn_handle md = NULL;
    good(dnnl.memory_desc_create_with_strides(&md, n, dims, ONEDNN_F32, strides), "description");
    return md;
}

/* Rows of contiguous floats; NULL after a message. */
static onednn_handle describe(size_t rows, size_t cols)
{
    const onednn_dims dims = {(int64_t)rows, (int64_t)cols}, strides = {(int64_t)cols, 1};
    return describe_strided(2, dims, strides);
}

/* rows x cols, stored as cols x rows; NULL after a message. */
static onednn_handle describe_transposed(size_t rows, size_t cols)
{
    const onednn_dims dims = {(int64_t)rows, (int64_t)cols}, strides = {1, (int64_t)rows};
    return describe_strided(2, dims, strides);
}

static void forget(onednn_handle *descriptions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (descriptions[i])
            dnnl.memory_desc_destroy(descriptions[i]);
}

/* Attributes that append an element-wise function; NULL after a message. */
static onednn_handle append_function(int function, float alpha)
{
    onednn_handle attributes = NULL, ops = NULL;
    if (good(dnnl.primitive_attr_create(&attributes), "attributes") && good(dnnl.post_ops_create(&ops), "operations") &&
        good(dnnl.post_ops_append_eltwise(ops, function, alpha, 0.0f), "activation"))
        good(dnnl.primitive_attr_set_post_ops(attributes, ops), "operations");
    if (ops)
        dnnl.post_ops_destroy(ops);
    return attributes;
}

/* ---- products ------------------------------------------------------------------------------- */

struct layer {
    onednn_handle src, weights, bias, dst; /* descriptions */
    onednn_handle attributes;
};

/* Weights in the layout that the primitive likes best. */
static onednn_handle describe_any(size_t rows, size_t cols)
{
    onednn_handle md = NULL;
    const onednn_dims dims = {(int64_t)rows, (int64_t)cols};
    good(dnnl.memory_desc_create_with_tag(&md, 2, dims, ONEDNN_F32, ONEDNN_ANY_LAYOUT), "description");
    return md;
}

static bool describe_layer(struct layer *l, const struct problem *p)
{
    static const int functions[N_EPILOGUES] = {
        [EPILOGUE_RELU] = ONEDNN_RELU,
        [EPILOGUE_GELU_ERF] = ONEDNN_GELU_ERF,
        [EPILOGUE_GELU_TANH] = ONEDNN_GELU_TANH,
        [EPILOGUE_SILU] = ONEDNN_SWISH,
    };
    const struct shape *s = &p->shape;
    int function = functions[s->epilogue];
    bool any = p->suite->kind != SUITE_MATMUL;
    l->src = (s->transposed_a ? describe_transposed : describe)(s->m, s->k);
    l->weights = (any ? describe_any : s->transposed_b ? describe_transposed : describe)(s->k, s->n);
    l->dst = describe(s->m, s->n);
    if (s->epilogue != EPILOGUE_NONE)
        l->bias = describe(1, s->n);
    if (function)
        l->attributes = append_function(function, function == ONEDNN_SWISH ? 1.0f : 0.0f);
    return l->src && l->weights && l->dst && (s->epilogue == EPILOGUE_NONE || l->bias) && (!function || l->attributes);
}

static void forget_layer(struct layer *l)
{
    onednn_handle all[] = {l->src, l->weights, l->bias, l->dst};
    forget(all, sizeof all / sizeof *all);
    if (l->attributes)
        dnnl.primitive_attr_destroy(l->attributes);
}

/* Brings the weights into the layout that the primitive chose. */
static bool pack(struct primitive *p, onednn_handle chosen, const struct problem *problem)
{
    struct primitive reorder = {0};
    onednn_handle pd = NULL, plain = describe(problem->shape.k, problem->shape.n);
    p->packed = memory_aligned_array(dnnl.memory_desc_get_size(chosen), 1);
    bool packed = plain && p->packed &&
                  good(dnnl.reorder_primitive_desc_create(&pd, plain, engine, chosen, engine, NULL), "reorder") &&
                  make_primitive(&reorder, pd) &&
                  add_memory(&reorder, ONEDNN_ARGUMENT_SRC, plain, problem->operand[1]) &&
                  add_memory(&reorder, ONEDNN_ARGUMENT_DST, chosen, p->packed) && execute(&reorder);
    close_primitive(&reorder);
    if (plain)
        dnnl.memory_desc_destroy(plain);
    return packed;
}

static bool add_operands(struct primitive *p, const struct layer *l, onednn_handle pd, const struct problem *problem)
{
    onednn_handle chosen = dnnl.primitive_desc_query_md(pd, ONEDNN_QUERY_WEIGHTS, 0);
    if (problem->suite->kind != SUITE_MATMUL && !pack(p, chosen, problem))
        return false;
    void *weights = p->packed ? p->packed : problem->operand[1];
    return add_memory(p, ONEDNN_ARGUMENT_SRC, l->src, problem->operand[0]) &&
           add_memory(p, ONEDNN_ARGUMENT_WEIGHTS, chosen, weights) &&
           (!l->bias || add_memory(p, ONEDNN_ARGUMENT_BIAS, l->bias, problem->operand[2])) &&
           add_memory(p, ONEDNN_ARGUMENT_DST, l->dst, problem->out);
}

static enum outcome make_product(struct primitive *p, const struct problem *problem)
{
    struct layer layer = {0};
    onednn_handle pd = NULL;
    bool made = describe_layer(&layer, problem) &&
                good(dnnl.matmul_primitive_desc_create(&pd, engine, layer.src, layer.weights, layer.bias, layer.dst,
                                                       layer.attributes),
                     "matmul") &&
                add_operands(p, &layer, pd, problem);
    if (made)
        made = make_primitive(p, pd);
    else if (pd)
        dnnl.primitive_desc_destroy(pd);
    forget_layer(&layer);
    return made ? OUTCOME_READY : OUTCOME_FAILED;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static const int row_functions[N_ROW_FUNCTIONS] = {
    [ROW_RELU] = ONEDNN_RELU,
    [ROW_GELU_ERF] = ONEDNN_GELU_ERF,
    [ROW_GELU_TANH] = ONEDNN_GELU_TANH,
    [ROW_SILU] = ONEDNN_SWISH,
};

static int describe_norm(onednn_handle *pd, unsigned flags, onednn_handle rows)
{
    return dnnl.layer_normalization_forward_primitive_desc_create(pd, engine, ONEDNN_INFERENCE, rows, rows, NULL, 1e-5f,
                                                                  flags, NULL);
}

static int describe_softmax(onednn_handle *pd, int algorithm, int axis, onednn_handle rows)
{
    return dnnl.softmax_forward_primitive_desc_create(pd, engine, ONEDNN_INFERENCE, algorithm, rows, rows, axis, NULL);
}

static int describe_rows(onednn_handle *pd, enum row_function function, onednn_handle rows)
{
    switch (function) {
    case ROW_SOFTMAX:
        return describe_softmax(pd, ONEDNN_SOFTMAX, 1, rows);
    case ROW_LOG_SOFTMAX:
        return describe_softmax(pd, ONEDNN_LOG_SOFTMAX, 1, rows);
    case ROW_LAYERNORM:
        return describe_norm(pd, ONEDNN_USE_SCALE | ONEDNN_USE_SHIFT, rows);
    case ROW_RMSNORM:
        return describe_norm(pd, ONEDNN_USE_SCALE | ONEDNN_RMS_NORM, rows);
    case ROW_SWIGLU:
    case ROW_ADD_LAYERNORM:
    case ROW_ADD_RMSNORM:
        return ONEDNN_UNIMPLEMENTED;
    default:
        /* alpha is what multiplies x within SiLU, and the slope of ReLU below 0. */
        return dnnl.eltwise_forward_primitive_desc_create(pd, engine, ONEDNN_INFERENCE, row_functions[function], rows,
                                                          rows, function == ROW_SILU ? 1.0f : 0.0f, 0.0f, NULL);
    }
}

static bool add_rows(struct primitive *p, const struct problem *problem, onednn_handle rows, onednn_handle row)
{
    bool scaled = problem->shape.function == ROW_LAYERNORM || problem->shape.function == ROW_RMSNORM;
    bool shifted = problem->shape.function == ROW_LAYERNORM;
    return add_memory(p, ONEDNN_ARGUMENT_SRC, rows, problem->operand[0]) &&
           add_memory(p, ONEDNN_ARGUMENT_DST, rows, problem->out) &&
           (!scaled || add_memory(p, ONEDNN_ARGUMENT_SCALE, row, problem->operand[1])) &&
           (!shifted || add_memory(p, ONEDNN_ARGUMENT_SHIFT, row, problem->operand[2]));
}

static enum outcome make_rows(struct primitive *p, const struct problem *problem)
{
    const struct shape *s = &problem->shape;
    const onednn_dims length = {(int64_t)s->n}, step = {1};
    onednn_handle pd = NULL, md[] = {describe(s->m, s->n), describe_strided(1, length, step)};
    enum outcome outcome = OUTCOME_FAILED;
    if (md[0] && md[1]) {
        /* Older versions refuse RMSNorm as a wrong argument. */
        if (describe_rows(&pd, s->function, md[0]) != 0)
            outcome = OUTCOME_UNABLE;
        else if (make_primitive(p, pd) && add_rows(p, problem, md[0], md[1]))
            outcome = OUTCOME_READY;
    }
    forget(md, 2);
    return outcome;
}

/* ---- attention: two products and a softmax ---------------------------------------------------- */

enum { QUERIES, KEYS, VALUES, SCORES, RESULT, N_TENSORS };

/* Batch, heads of keys, heads of queries to each of those, and a matrix. */
static onednn_handle describe_heads(const struct problem *p, const heed_heads *h, size_t sharing, size_t rows,
                                    size_t cols, bool transposed)
{
    const struct shape *s = &p->shape;
    size_t together = s->heads / s->kv_heads;
    const onednn_dims dims = {(int64_t)s->batch, (int64_t)s->kv_heads, (int64_t)(sharing ? together : 1), (int64_t)rows,
                              (int64_t)cols};
    const onednn_dims strides = {(int64_t)h->batch_stride, (int64_t)(h->head_stride * (sharing ? together : 1)),
                                 (int64_t)h->head_stride, transposed ? 1 : (int64_t)h->row_stride,
                                 transposed ? (int64_t)h->row_stride : 1};
    return describe_strided(5, dims, strides);
}

static bool describe_attention(onednn_handle md[N_TENSORS], const struct problem *p)
{
    const struct shape *s = &p->shape;
    heed_heads q = problem_queries(p), k = problem_keys(p, 1);
    heed_heads scores = {NULL, s->heads * s->m * s->n, s->m * s->n, s->n};
    md[QUERIES] = describe_heads(p, &q, true, s->m, s->k, false);
    md[KEYS] = describe_heads(p, &k, false, s->k, s->n, true);
    md[VALUES] = describe_heads(p, &k, false, s->n, s->k, false);
    md[SCORES] = describe_heads(p, &scores, true, s->m, s->n, false);
    md[RESULT] = describe_heads(p, &q, true, s->m, s->k, false);
    return md[QUERIES] && md[KEYS] && md[VALUES] && md[SCORES] && md[RESULT];
}

static bool make_head_product(struct primitive *p, onednn_handle a, float *a_data, onednn_handle b, float *b_data,
                              onednn_handle c, float *c_data, onednn_handle attributes)
{
    onednn_handle pd = NULL;
    return good(dnnl.matmul_primitive_desc_create(&pd, engine, a, b, NULL, c, attributes), "matmul") &&
           make_primitive(p, pd) && add_memory(p, ONEDNN_ARGUMENT_SRC, a, a_data) &&
           add_memory(p, ONEDNN_ARGUMENT_WEIGHTS, b, b_data) && add_memory(p, ONEDNN_ARGUMENT_DST, c, c_data);
}

static bool make_head_softmax(struct primitive *p, onednn_handle scores, float *data)
{
    onednn_handle pd = NULL;
    return good(describe_softmax(&pd, ONEDNN_SOFTMAX, 4, scores), "softmax") && make_primitive(p, pd) &&
           add_memory(p, ONEDNN_ARGUMENT_SRC, scores, data) && add_memory(p, ONEDNN_ARGUMENT_DST, scores, data);
}

static bool make_scores(struct primitive *p, const struct problem *problem, onednn_handle *md, float *scores)
{
    onednn_handle attributes = append_function(ONEDNN_LINEAR, 1.0f / sqrtf((float)problem->shape.k));
    bool made = attributes && make_head_product(p, md[QUERIES], problem->operand[0], md[KEYS], problem->operand[1],
                                                md[SCORES], scores, attributes);
    if (attributes)
        dnnl.primitive_attr_destroy(attributes);
    return made;
}

static enum outcome make_attention(struct chain *chain, const struct problem *p)
{
    const struct shape *s = &p->shape;
    onednn_handle md[N_TENSORS] = {0};
    if (s->causal || s->window || s->alibi || s->tensor != TENSOR_NONE)
        return OUTCOME_UNABLE;
    chain->scores = memory_aligned_array(s->batch * s->heads * s->m * s->n, sizeof *chain->scores);
    struct primitive *steps = chain->primitives;
    bool made =
        chain->scores && describe_attention(md, p) && make_scores(&steps[0], p, md, chain->scores) &&
        make_head_softmax(&steps[1], md[SCORES], chain->scores) &&
        make_head_product(&steps[2], md[SCORES], chain->scores, md[VALUES], p->operand[2], md[RESULT], p->out, NULL);
    forget(md, N_TENSORS);
    return made ? OUTCOME_READY : OUTCOME_FAILED;
}

/* ---- oneDNN as a library -------------------------------------------------------------------- */

static bool call(void *state)
{
    const struct chain *chain = state;
    for (int i = 0; i < MOST_PRIMITIVES && chain->primitives[i].handle; i++)
        if (!execute(&chain->primitives[i]))
            return false;
    return true;
}

static void close_chain(void *state)
{
    struct chain *chain = state;
    for (int i = 0; i < MOST_PRIMITIVES; i++)
        close_primitive(&chain->primitives[i]);
    free(chain->scores);
    free(chain);
}

static enum outcome make_chain(struct chain *chain, const struct problem *problem)
{
    switch (problem->suite->kind) {
    case SUITE_ROWS:
        return make_rows(chain->primitives, problem);
    case SUITE_ATTENTION:
    case SUITE_DECODE:
        return make_attention(chain, problem);
    case SUITE_LAYER:
        return OUTCOME_UNABLE;
    default:
        return make_product(chain->primitives, problem);
    }
}

static enum outcome open_onednn(const struct library *library, struct impl *impl)
{
    (void)library;
    if (impl->problem->threads > 1 && runtime == ONEDNN_RUNTIME_SEQUENTIAL)
        return OUTCOME_UNABLE;
    struct chain *chain = memory_array(1, sizeof *chain);
    if (!chain)
        return OUTCOME_FAILED;
    *chain = (struct chain){0};
    impl->state = chain;
    impl->close = close_chain;
    impl->call = call;
    return make_chain(chain, impl->problem);
}

struct library library_onednn = {.name = "onednn", .find = find, .set_threads = set_threads, .open = open_onednn};
