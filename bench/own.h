/* SPDX-License-Identifier: MIT
 * What heed's own parts share: own.c has single operators, also of another build (build.c), own_layer.c whole layers.
 */
#ifndef BENCH_OWN_H
#define BENCH_OWN_H

#include <heed.h>
#include <stdbool.h>
#include <stddef.h>

#include "impl.h"
#include "problem.h"

/* What single operators call, heed_ before each name. */
#define OWN_FUNCTIONS(X)                                                                                               \
    X(context_create)                                                                                                  \
    X(context_destroy)                                                                                                 \
    X(weights_bytes)                                                                                                   \
    X(weights_pack)                                                                                                    \
    X(matmul)                                                                                                          \
    X(matmul_workspace)                                                                                                \
    X(linear)                                                                                                          \
    X(softmax)                                                                                                         \
    X(masked_softmax)                                                                                                  \
    X(log_softmax)                                                                                                     \
    X(layernorm)                                                                                                       \
    X(rmsnorm)                                                                                                         \
    X(activate)                                                                                                        \
    X(activate_gated)                                                                                                  \
    X(alibi_slopes)                                                                                                    \
    X(attention)                                                                                                       \
    X(attention_workspace)                                                                                             \
    X(kv_cache_bytes)                                                                                                  \
    X(kv_cache_create)                                                                                                 \
    X(kv_cache_append_batch)
#define OWN_MEMBER(name) __typeof__(&heed_##name) name;

struct own_functions {
    OWN_FUNCTIONS(OWN_MEMBER)
};

/* Opens a problem for the library whose state is a struct own_functions; another build's makes a context of its own. */
enum outcome own_open(const struct library *library, struct impl *impl);

/* The context of the problem says how many. */
void own_set_threads(const struct library *library, size_t threads);

/* false after a message, unless the status is HEED_OK. */
bool own_done(heed_status status);

/* Packs a matrix [in][out] into new memory, which the caller frees even after a failure. */
bool own_pack(const heed_context *context, size_t in, size_t out, const float *matrix, void **memory,
              const heed_weights **weights);

struct own_layer *own_layer_open(const struct problem *problem);
bool own_layer_call(void *layer);
void own_layer_close(void *layer);

#endif
