/* SPDX-License-Identifier: MIT
 * heed's own part.
 */
#include "config.h"

#include "impl.h"

#include "diag.h"
#include "memory.h"

#include <stdlib.h>

struct own {
    const struct problem *problem;
    void *packed;
    const heed_weights *weights;
    heed_linear_options options;
    heed_workspace workspace;
};

static bool done(heed_status status)
{
    if (status != HEED_OK)
        diag_print("heed: %s", heed_status_string(status));
    return status == HEED_OK;
}

static bool take_workspace(struct own *own, size_t bytes)
{
    own->workspace = (heed_workspace){memory_aligned_array(bytes, 1), bytes};
    return own->workspace.memory != NULL;
}

/* ---- products ------------------------------------------------------------------------------- */

static bool call_matmul(void *state)
{
    const struct own *own = state;
    const struct problem *p = own->problem;
    const struct shape *s = &p->shape;
    return done(heed_matmul(p->context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, s->m, s->n, s->k, 1.0f, p->operand[0],
                            s->k, p->operand[1], s->n, 0.0f, p->out, s->n, &own->workspace));
}

static bool call_linear(void *state)
{
    const struct own *own = state;
    const struct problem *p = own->problem;
    return done(heed_linear(p->context, p->shape.m, p->operand[0], p->shape.k, own->weights, &own->options, p->out,
                            p->shape.n));
}

static bool prepare_matmul(struct own *own)
{
    const struct problem *p = own->problem;
    size_t bytes = 0;
    return done(heed_matmul_workspace(p->context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, p->shape.m, p->shape.n,
                                      p->shape.k, &bytes)) &&
           take_workspace(own, bytes);
}

static bool prepare_linear(struct own *own)
{
    static const heed_activation activations[N_EPILOGUES] = {
        [EPILOGUE_RELU] = HEED_ACTIVATION_RELU,
        [EPILOGUE_GELU_ERF] = HEED_ACTIVATION_GELU_ERF,
        [EPILOGUE_GELU_TANH] = HEED_ACTIVATION_GELU_TANH,
    };
    const struct problem *p = own->problem;
    size_t bytes = 0, in = p->shape.k, out = p->shape.n;
    own->options.bias = p->shape.epilogue == EPILOGUE_NONE ? NULL : p->operand[2];
    own->options.activation = activations[p->shape.epilogue];
    if (!done(heed_weights_bytes(HEED_TYPE_F32, in, out, &bytes)))
        return false;
    own->packed = memory_aligned_array(bytes, 1);
    return own->packed && done(heed_weights_pack(p->context, HEED_TYPE_F32, HEED_LAYOUT_IN_OUT, in, out, p->operand[1],
                                                 out, own->packed, bytes, &own->weights));
}

/* ---- heed as a library ---------------------------------------------------------------------- */

static bool find(struct library *library, const char *path, char about[LIBRARY_ABOUT])
{
    (void)library;
    (void)path;
    (void)about;
    return true;
}

/* The context of the problem says how many. */
static void set_threads(const struct library *library, size_t threads)
{
    (void)library;
    (void)threads;
}

static void close_own(void *state)
{
    struct own *own = state;
    free(own->packed);
    free(own->workspace.memory);
    free(own);
}

static enum outcome open_own(const struct library *library, struct impl *impl)
{
    (void)library;
    struct own *own = memory_array(1, sizeof *own);
    if (!own)
        return OUTCOME_FAILED;
    *own = (struct own){.problem = impl->problem, .options = HEED_LINEAR_OPTIONS_INIT};
    impl->state = own;
    impl->close = close_own;
    bool product = impl->problem->suite->kind == SUITE_MATMUL;
    impl->call = product ? call_matmul : call_linear;
    return (product ? prepare_matmul : prepare_linear)(own) ? OUTCOME_READY : OUTCOME_FAILED;
}

struct library library_heed = {.name = "heed", .find = find, .set_threads = set_threads, .open = open_own};
