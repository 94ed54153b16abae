/* SPDX-License-Identifier: MIT
 * oneDNN: weights in whatever layout it likes best, reordered once; everything else as it lies.
 */
#include "config.h"

#include "impl.h"

#include "diag.h"
#include "memory.h"
#include "onednn_abi.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_MEMORIES 8

static struct onednn_abi dnnl;
static onednn_handle engine, stream;
static void (*omp_threads)(int threads);
static unsigned runtime;

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
    return all;
}

/* Threads of other runtimes cannot be counted from here. */
static const char *runtime_name(void)
{
    if (runtime == ONEDNN_RUNTIME_SEQUENTIAL)
        return "no threads";
    return runtime == ONEDNN_RUNTIME_OPENMP && omp_threads ? "OpenMP" : NULL;
}

static bool find(struct library *library, const char *path, char about[LIBRARY_ABOUT])
{
    static const char *const files[] = {"libdnnl.so.3", "libdnnl.3.dylib", "libdnnl.so", "libdnnl.dylib", NULL};
    const char *file;
    (void)library;
    void *handle = library_dlopen(path, files, &file, about);
    if (!handle)
        return false;
    if (!look_up(handle)) {
        snprintf(about, LIBRARY_ABOUT, "%s: has not the interface of oneDNN 3", file);
        return false;
    }
    const struct onednn_version *version = dnnl.version();
    runtime = version->cpu_runtime;
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

/* Rows of contiguous floats; NULL after a message. */
static onednn_handle describe(size_t rows, size_t cols, int tag)
{
    onednn_handle md = NULL;
    const onednn_dims dims = {(int64_t)rows, (int64_t)cols}, strides = {(int64_t)cols, 1};
    int status = tag == ONEDNN_ANY_LAYOUT ? dnnl.memory_desc_create_with_tag(&md, 2, dims, ONEDNN_F32, tag)
                                          : dnnl.memory_desc_create_with_strides(&md, 2, dims, ONEDNN_F32, strides);
    good(status, "description");
    return md;
}

/* ---- products ------------------------------------------------------------------------------- */

#define PLAIN_LAYOUT 0

struct layer {
    onednn_handle src, weights, chosen, bias, dst; /* descriptions; chosen belongs to pd */
    onednn_handle attributes;
};

/* Appends an activation; NULL where there is none, or after a message. */
static onednn_handle make_attributes(int function)
{
    onednn_handle attributes = NULL, ops = NULL;
    if (good(dnnl.primitive_attr_create(&attributes), "attributes") && good(dnnl.post_ops_create(&ops), "operations") &&
        good(dnnl.post_ops_append_eltwise(ops, function, 0.0f, 0.0f), "activation"))
        good(dnnl.primitive_attr_set_post_ops(attributes, ops), "operations");
    if (ops)
        dnnl.post_ops_destroy(ops);
    return attributes;
}

static bool describe_layer(struct layer *l, const struct problem *p)
{
    static const int functions[N_EPILOGUES] = {
        [EPILOGUE_RELU] = ONEDNN_RELU,
        [EPILOGUE_GELU_ERF] = ONEDNN_GELU_ERF,
        [EPILOGUE_GELU_TANH] = ONEDNN_GELU_TANH,
    };
    const struct shape *s = &p->shape;
    int function = functions[s->epilogue];
    l->src = describe(s->m, s->k, PLAIN_LAYOUT);
    l->weights = describe(s->k, s->n, p->suite->kind == SUITE_MATMUL ? PLAIN_LAYOUT : ONEDNN_ANY_LAYOUT);
    l->dst = describe(s->m, s->n, PLAIN_LAYOUT);
    if (s->epilogue != EPILOGUE_NONE)
        l->bias = describe(1, s->n, PLAIN_LAYOUT);
    if (function)
        l->attributes = make_attributes(function);
    return l->src && l->weights && l->dst && (s->epilogue == EPILOGUE_NONE || l->bias) && (!function || l->attributes);
}

static void forget_layer(struct layer *l)
{
    onednn_handle all[] = {l->src, l->weights, l->bias, l->dst};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            dnnl.memory_desc_destroy(all[i]);
    if (l->attributes)
        dnnl.primitive_attr_destroy(l->attributes);
}

/* Brings the weights into the layout that the primitive chose. */
static bool pack(struct primitive *p, onednn_handle chosen, const struct problem *problem)
{
    struct primitive reorder = {0};
    onednn_handle pd = NULL, plain = describe(problem->shape.k, problem->shape.n, PLAIN_LAYOUT);
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

static bool make_product(struct primitive *p, const struct problem *problem)
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
    return made;
}

/* ---- oneDNN as a library -------------------------------------------------------------------- */

static bool call(void *state)
{
    return execute(state);
}

static void close_state(void *state)
{
    close_primitive(state);
    free(state);
}

static enum outcome open_onednn(const struct library *library, struct impl *impl)
{
    (void)library;
    if (impl->problem->threads > 1 && runtime == ONEDNN_RUNTIME_SEQUENTIAL)
        return OUTCOME_UNABLE;
    struct primitive *p = memory_array(1, sizeof *p);
    if (!p)
        return OUTCOME_FAILED;
    *p = (struct primitive){0};
    impl->state = p;
    impl->close = close_state;
    impl->call = call;
    return make_product(p, impl->problem) ? OUTCOME_READY : OUTCOME_FAILED;
}

struct library library_onednn = {.name = "onednn", .find = find, .set_threads = set_threads, .open = open_onednn};
