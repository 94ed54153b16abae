/* SPDX-License-Identifier: MIT
 * heed's own part.
 */
#include "config.h"

#include "impl.h"

#include "diag.h"
#include "memory.h"
#include "own.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINKED(name) .name = heed_##name,
static struct own_functions linked = {OWN_FUNCTIONS(LINKED)};

struct own {
    const struct problem *problem;
    const struct own_functions *heed;
    const heed_context *context;
    heed_context *made; /* of another build, or NULL */
    void *packed;
    const heed_weights *weights;
    heed_linear_options linear;
    heed_layernorm_options layernorm;
    heed_rmsnorm_options rmsnorm;
    heed_attention_args attention;
    heed_workspace workspace;
    float *sum; /* of rows and residual */
    float *slopes;
    void *cache;   /* of decode */
    float *scores; /* of the unfused form, as is the mask: all masks in one */
    heed_softmax_options softmax;
    void *mask;
};

bool own_done(heed_status status)
{
    if (status != HEED_OK)
        diag_print("heed: %s", heed_status_string(status));
    return status == HEED_OK;
}

static bool pack(const struct own_functions *heed, const heed_context *context, size_t in, size_t out,
                 const float *matrix, void **memory, const heed_weights **weights)
{
    size_t bytes = 0;
    if (!own_done(heed->weights_bytes(HEED_TYPE_F32, in, out, &bytes)))
        return false;
    *memory = memory_aligned_array(bytes, 1);
    return *memory && own_done(heed->weights_pack(context, HEED_TYPE_F32, HEED_LAYOUT_IN_OUT, in, out, matrix, out,
                                                  *memory, bytes, weights));
}

bool own_pack(const heed_context *context, size_t in, size_t out, const float *matrix, void **memory,
              const heed_weights **weights)
{
    return pack(&linked, context, in, out, matrix, memory, weights);
}

static bool take_workspace(struct own *own, size_t bytes)
{
    own->workspace = (heed_workspace){memory_aligned_array(bytes, 1), bytes};
    return own->workspace.memory != NULL;
}

/* ---- products ------------------------------------------------------------------------------- */

static heed_transpose transpose(bool transposed)
{
    return transposed ? HEED_TRANSPOSE : HEED_NO_TRANSPOSE;
}

static bool call_matmul(void *state)
{
    const struct own *own = state;
    const struct problem *p = own->problem;
    const struct shape *s = &p->shape;
    /* A product that needs so little takes it from the stack if it is given none. */
    const heed_workspace *workspace = own->workspace.bytes > 16384 ? &own->workspace : NULL;
    return own_done(own->heed->matmul(own->context, transpose(s->transposed_a), transpose(s->transposed_b), s->m, s->n,
                                      s->k, 1.0f, p->operand[0], s->transposed_a ? s->m : s->k, p->operand[1],
                                      s->transposed_b ? s->k : s->n, 0.0f, p->out, s->n, workspace));
}

static bool call_linear(void *state)
{
    const struct own *own = state;
    const struct problem *p = own->problem;
    return own_done(own->heed->linear(own->context, p->shape.m, p->operand[0], p->shape.k, own->weights, &own->linear,
                                      p->out, p->shape.n));
}

static bool prepare_matmul(struct own *own)
{
    const struct problem *p = own->problem;
    const struct shape *s = &p->shape;
    size_t bytes = 0;
    return own_done(own->heed->matmul_workspace(own->context, transpose(s->transposed_a), transpose(s->transposed_b),
                                                s->m, s->n, s->k, &bytes)) &&
           take_workspace(own, bytes);
}

static bool prepare_linear(struct own *own)
{
    static const heed_activation activations[N_EPILOGUES] = {
        [EPILOGUE_RELU] = HEED_ACTIVATION_RELU,
        [EPILOGUE_GELU_ERF] = HEED_ACTIVATION_GELU_ERF,
        [EPILOGUE_GELU_TANH] = HEED_ACTIVATION_GELU_TANH,
        [EPILOGUE_SILU] = HEED_ACTIVATION_SILU,
    };
    const struct problem *p = own->problem;
    size_t in = p->shape.k, out = p->shape.n;
    own->linear.bias = p->shape.epilogue == EPILOGUE_NONE ? NULL : p->operand[2];
    own->linear.activation = activations[p->shape.epilogue];
    return pack(own->heed, own->context, in, out, p->operand[1], &own->packed, &own->weights);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static bool call_softmax(void *state)
{
    const struct own *own = state;
    const struct problem *p = own->problem;
    size_t n = p->shape.n;
    return own_done(own->heed->softmax(own->context, p->shape.m, n, p->operand[0], n, p->out, n));
}

static bool call_log_softmax(void *state)
{
    const struct own *own = state;
    const struct problem *p = own->problem;
    size_t n = p->shape.n;
    return own_done(own->heed->log_softmax(own->context, p->shape.m, n, p->operand[0], n, NULL, p->out, n));
}

static bool call_rmsnorm(void *state)
{
    const struct own *own = state;
    const struct problem *p = own->problem;
    size_t n = p->shape.n;
    return own_done(own->heed->rmsnorm(own->context, p->shape.m, n, p->operand[0], n, &own->rmsnorm, p->out, n));
}

static bool call_layernorm(void *state)
{
    const struct own *own = state;
    const struct problem *p = own->problem;
    size_t n = p->shape.n;
    return own_done(own->heed->layernorm(own->context, p->shape.m, n, p->operand[0], n, &own->layernorm, p->out, n));
}

static heed_activation activation_of(enum row_function function)
{
    switch (function) {
    case ROW_RELU:
        return HEED_ACTIVATION_RELU;
    case ROW_GELU_ERF:
        return HEED_ACTIVATION_GELU_ERF;
    case ROW_GELU_TANH:
        return HEED_ACTIVATION_GELU_TANH;
    default:
        return HEED_ACTIVATION_SILU;
    }
}

static bool call_activation(void *state)
{
    const struct own *own = state;
    const struct problem *p = own->problem;
    size_t n = p->shape.n;
    return own_done(own->heed->activate(own->context, activation_of(p->shape.function), p->shape.m, n, p->operand[0], n,
                                        p->out, n));
}

static bool call_swiglu(void *state)
{
    const struct own *own = state;
    const struct problem *p = own->problem;
    size_t n = p->shape.n;
    return own_done(own->heed->activate_gated(own->context, HEED_ACTIVATION_SILU, p->shape.m, n, p->operand[0], n,
                                              p->operand[1], n, p->out, n));
}

/* Where there is one. */
static bool prepare_residual(struct own *own)
{
    const struct problem *p = own->problem;
    if (!shape_adds_residual(p->shape.function))
        return true;
    own->sum = memory_aligned_array(p->out_count, sizeof *own->sum);
    own->layernorm.residual = own->rmsnorm.residual = p->operand[3];
    own->layernorm.sum = own->rmsnorm.sum = own->sum;
    own->layernorm.ld_residual = own->rmsnorm.ld_residual = own->layernorm.ld_sum = own->rmsnorm.ld_sum = p->shape.n;
    return own->sum != NULL;
}

static bool prepare_rows(struct own *own, struct impl *impl)
{
    own->layernorm.scale = own->rmsnorm.scale = own->problem->operand[1];
    own->layernorm.shift = own->problem->operand[2];
    switch (own->problem->shape.function) {
    case ROW_SOFTMAX:
        impl->call = call_softmax;
        break;
    case ROW_LOG_SOFTMAX:
        impl->call = call_log_softmax;
        break;
    case ROW_RMSNORM:
    case ROW_ADD_RMSNORM:
        impl->call = call_rmsnorm;
        break;
    case ROW_LAYERNORM:
    case ROW_ADD_LAYERNORM:
        impl->call = call_layernorm;
        break;
    case ROW_SWIGLU:
        impl->call = call_swiglu;
        break;
    default:
        impl->call = call_activation;
    }
    return prepare_residual(own);
}

/* ---- attention ------------------------------------------------------------------------------ */

static bool call_attention(void *state)
{
    const struct own *own = state;
    return own_done(own->heed->attention(own->context, &own->attention, &own->workspace));
}

static bool describe_masks(struct own *own)
{
    const struct shape *s = &own->problem->shape;
    heed_attention_args *args = &own->attention;
    args->causal = s->causal ? HEED_CAUSAL_BOTTOM_RIGHT : HEED_CAUSAL_NONE;
    if (s->window)
        args->window_left = args->window_right = s->window;
    if (s->tensor == TENSOR_ADDITIVE)
        args->mask = (heed_mask){own->problem->operand[3], HEED_MASK_ADDITIVE, 0, 0, s->n};
    else if (s->tensor == TENSOR_BOOLEAN)
        args->mask = (heed_mask){own->problem->boolean, HEED_MASK_BOOLEAN, 0, 0, s->n};
    if (!s->alibi)
        return true;
    args->slopes = own->slopes = memory_aligned_array(s->heads, sizeof *own->slopes);
    return own->slopes && own_done(own->heed->alibi_slopes(s->heads, 8.0, own->slopes));
}

static bool describe_attention(struct own *own)
{
    const struct problem *p = own->problem;
    const struct shape *s = &p->shape;
    heed_attention_args *args = &own->attention;
    args->batch = s->batch;
    args->n_heads = s->heads;
    args->n_kv_heads = s->kv_heads;
    args->seq_q = s->m;
    args->seq_kv = s->n;
    args->head_dim = args->value_dim = s->k;
    args->q = problem_queries(p);
    args->k = problem_keys(p, 1);
    args->v = problem_keys(p, 2);
    args->out = problem_result(p);
    args->loop = p->loop;
    return describe_masks(own);
}

/* Puts the keys and values where a decoder has them. */
static bool fill_cache(struct own *own)
{
    const struct problem *p = own->problem;
    const struct shape *s = &p->shape;
    heed_kv_cache_options options = HEED_KV_CACHE_OPTIONS_INIT;
    heed_kv_cache *cache;
    size_t bytes = 0;
    options.batch = s->batch;
    options.n_kv_heads = s->kv_heads;
    options.head_dim = options.value_dim = s->k;
    options.capacity = s->n;
    if (!own_done(own->heed->kv_cache_bytes(&options, &bytes)))
        return false;
    own->cache = memory_aligned_array(bytes, 1);
    if (!own->cache || !own_done(own->heed->kv_cache_create(&options, own->cache, bytes, &cache)))
        return false;
    own->attention.cache = cache;
    return own_done(own->heed->kv_cache_append_batch(own->context, cache, s->batch, NULL, s->n, NULL, &own->attention.k,
                                                     &own->attention.v));
}

static bool prepare_attention(struct own *own)
{
    size_t bytes = 0;
    return describe_attention(own) && (own->problem->suite->kind != SUITE_DECODE || fill_cache(own)) &&
           own_done(own->heed->attention_workspace(own->context, &own->attention, &bytes)) &&
           take_workspace(own, bytes);
}

/* ---- attention, unfused --------------------------------------------------------------------- */

/* What is added to a score, but for -inf where causality or window mask it. */
static float bias_of(const struct own *own, size_t head, size_t row, size_t key)
{
    const struct problem *p = own->problem;
    float bias = 0.0f;
    if (p->shape.alibi)
        bias = own->slopes[head] * (float)((ptrdiff_t)key - problem_position(&p->shape, row));
    if (p->shape.tensor == TENSOR_ADDITIVE)
        bias += p->operand[3][row * p->shape.n + key];
    return bias;
}

static bool make_additive(struct own *own)
{
    const struct problem *p = own->problem;
    size_t m = p->shape.m, n = p->shape.n, heads = p->shape.alibi ? p->shape.heads : 1;
    float *mask = own->mask = memory_aligned_array(heads * m * n, sizeof *mask);
    for (size_t i = 0; mask && i < heads * m * n; i++) {
        size_t row = i / n % m;
        mask[i] = problem_is_visible(p, row, i % n) ? bias_of(own, i / n / m, row, i % n) : -INFINITY;
    }
    own->softmax.mask = (heed_mask){mask, HEED_MASK_ADDITIVE, 0, m * n, n};
    return mask;
}

static bool make_boolean(struct own *own)
{
    const struct problem *p = own->problem;
    size_t m = p->shape.m, n = p->shape.n;
    unsigned char *mask = own->mask = memory_aligned_array(m * n, 1);
    for (size_t i = 0; mask && i < m * n; i++)
        mask[i] = problem_is_visible(p, i / n, i % n);
    own->softmax.mask = (heed_mask){mask, HEED_MASK_BOOLEAN, 0, 0, n};
    return mask;
}

/* All masks as one tensor, since that is what a softmax of its own can take. */
static bool make_mask(struct own *own)
{
    const struct shape *s = &own->problem->shape;
    if (s->alibi || s->tensor == TENSOR_ADDITIVE)
        return make_additive(own);
    return (!s->causal && !s->window && s->tensor == TENSOR_NONE) || make_boolean(own);
}

static bool scale_scores(const struct own *own, size_t head)
{
    const struct problem *p = own->problem;
    size_t n = p->shape.n;
    if (!own->mask)
        return own_done(own->heed->softmax(own->context, p->shape.m, n, own->scores, n, own->scores, n));
    heed_softmax_options options = own->softmax;
    if (p->shape.alibi)
        options.mask.data = (const float *)own->mask + head * own->softmax.mask.head_stride;
    return own_done(own->heed->masked_softmax(own->context, p->shape.m, n, own->scores, n, &options, own->scores, n));
}

static bool run_head(const struct own *own, size_t batch, size_t head)
{
    const struct problem *p = own->problem;
    const struct shape *s = &p->shape;
    const heed_attention_args *a = &own->attention;
    size_t kv_head = head / (s->heads / s->kv_heads);
    const float *q = a->q.data + batch * a->q.batch_stride + head * a->q.head_stride;
    const float *k = a->k.data + batch * a->k.batch_stride + kv_head * a->k.head_stride;
    const float *v = a->v.data + batch * a->v.batch_stride + kv_head * a->v.head_stride;
    float *out = a->out.data + batch * a->out.batch_stride + head * a->out.head_stride;
    return own_done(own->heed->matmul(own->context, HEED_NO_TRANSPOSE, HEED_TRANSPOSE, s->m, s->n, s->k,
                                      1.0f / sqrtf((float)s->k), q, a->q.row_stride, k, a->k.row_stride, 0.0f,
                                      own->scores, s->n, &own->workspace)) &&
           scale_scores(own, head) &&
           own_done(own->heed->matmul(own->context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, s->m, s->k, s->n, 1.0f,
                                      own->scores, s->n, v, a->v.row_stride, 0.0f, out, a->out.row_stride,
                                      &own->workspace));
}

static bool call_unfused(void *state)
{
    const struct own *own = state;
    for (size_t batch = 0; batch < own->problem->shape.batch; batch++)
        for (size_t head = 0; head < own->problem->shape.heads; head++)
            if (!run_head(own, batch, head))
                return false;
    return true;
}

static bool prepare_unfused(struct own *own)
{
    const struct problem *p = own->problem;
    const struct shape *s = &p->shape;
    size_t first = 0, second = 0;
    if (!describe_attention(own) || !make_mask(own) ||
        !own_done(
            own->heed->matmul_workspace(own->context, HEED_NO_TRANSPOSE, HEED_TRANSPOSE, s->m, s->n, s->k, &first)) ||
        !own_done(
            own->heed->matmul_workspace(own->context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, s->m, s->k, s->n, &second)))
        return false;
    own->scores = memory_aligned_array(s->m * s->n, sizeof *own->scores);
    return take_workspace(own, first > second ? first : second) && own->scores;
}

/* ---- heed as a library ---------------------------------------------------------------------- */

static bool find(struct library *library, const char *path, char about[LIBRARY_ABOUT])
{
    (void)library;
    (void)path;
    (void)about;
    return true;
}

void own_set_threads(const struct library *library, size_t threads)
{
    (void)library;
    (void)threads;
}

static void close_own(void *state)
{
    struct own *own = state;
    free(own->packed);
    free(own->workspace.memory);
    free(own->sum);
    free(own->slopes);
    free(own->cache);
    free(own->scores);
    free(own->mask);
    if (own->made)
        own->heed->context_destroy(own->made);
    free(own);
}

static bool prepare(struct own *own, struct impl *impl)
{
    switch (own->problem->suite->kind) {
    case SUITE_MATMUL:
        impl->call = call_matmul;
        return prepare_matmul(own);
    case SUITE_ROWS:
        return prepare_rows(own, impl);
    case SUITE_ATTENTION:
    case SUITE_DECODE:
        impl->call = call_attention;
        return prepare_attention(own);
    default:
        impl->call = call_linear;
        return prepare_linear(own);
    }
}

/* Another build takes no other's context. */
static bool make_context(struct own *own)
{
    const struct problem *p = own->problem;
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    options.level = p->isa;
    options.threads = p->threads;
    own->context = p->context;
    if (own->heed == &linked)
        return true;
    bool made = own_done(own->heed->context_create(&own->made, &options));
    own->context = own->made;
    return made;
}

static bool make_own(const struct own_functions *heed, struct impl *impl)
{
    struct own *own = memory_array(1, sizeof *own);
    if (!own)
        return false;
    *own = (struct own){.problem = impl->problem,
                        .heed = heed,
                        .linear = HEED_LINEAR_OPTIONS_INIT,
                        .layernorm = HEED_LAYERNORM_OPTIONS_INIT,
                        .rmsnorm = HEED_RMSNORM_OPTIONS_INIT,
                        .attention = HEED_ATTENTION_ARGS_INIT,
                        .softmax = HEED_SOFTMAX_OPTIONS_INIT};
    impl->state = own;
    impl->close = close_own;
    return make_context(own);
}

enum outcome own_open(const struct library *library, struct impl *impl)
{
    const struct own_functions *heed = library->state;
    if (impl->problem->suite->kind == SUITE_LAYER) {
        if (heed != &linked)
            return OUTCOME_UNABLE;
        impl->state = own_layer_open(impl->problem);
        impl->call = own_layer_call;
        impl->close = own_layer_close;
        return impl->state ? OUTCOME_READY : OUTCOME_FAILED;
    }
    return make_own(heed, impl) && prepare(impl->state, impl) ? OUTCOME_READY : OUTCOME_FAILED;
}

static enum outcome open_unfused(const struct library *library, struct impl *impl)
{
    enum suite_kind kind = impl->problem->suite->kind;
    if (kind != SUITE_ATTENTION && kind != SUITE_DECODE)
        return OUTCOME_UNABLE;
    impl->call = call_unfused;
    return make_own(library->state, impl) && prepare_unfused(impl->state) ? OUTCOME_READY : OUTCOME_FAILED;
}

struct library library_heed = {
    .name = "heed", .find = find, .set_threads = own_set_threads, .open = own_open, .state = &linked};
struct library library_unfused = {
    .name = "unfused", .find = find, .set_threads = own_set_threads, .open = open_unfused, .state = &linked};
