/* SPDX-License-Identifier: MIT
 * What heed's own parts share: own.c has single operators, own_layer.c whole layers.
 */
#ifndef BENCH_OWN_H
#define BENCH_OWN_H

#include <heed.h>
#include <stdbool.h>
#include <stddef.h>

#include "problem.h"

/* false after a message, unless the status is HEED_OK. */
bool own_done(heed_status status);

/* Packs a matrix [in][out] into new memory, which the caller frees even after a failure. */
bool own_pack(const heed_context *context, size_t in, size_t out, const float *matrix, void **memory,
              const heed_weights **weights);

struct own_layer *own_layer_open(const struct problem *problem);
bool own_layer_call(void *layer);
void own_layer_close(void *layer);

#endif
