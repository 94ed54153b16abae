/* SPDX-License-Identifier: MIT
 * A BERT model: its weights in the library's layout, and the forward pass to sentence embeddings. */
#ifndef TOOLS_MODEL_H
#define TOOLS_MODEL_H

#include "model_config.h"
#include "safetensors.h"

#include <heed.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that the model owns beside the mapped file. */
struct allocations {
    void **items;
    size_t count, capacity;
};

struct model {
    struct model_config config;
    const heed_context *context;
    char *path; /* of the weights */
    struct safetensors file;
    const char *prefix; /* of every tensor's name: "" or "bert." */
    const float *words, *positions, *types;
    const float *norm_scale, *norm_shift;
    heed_encoder_layer *layers;
    heed_mha_weights *attention;
    heed_ffn_weights *ffn;
    struct allocations owned;
};

/* A batch of sequences: tokens of sequence s are ids[offsets[s]] .. ids[offsets[s + 1] - 1]. */
struct model_batch {
    size_t sequences;
    const size_t *offsets;
    const int32_t *ids;
};

/* Memory of the forward pass, which grows with the largest batch. Starts as {0}. */
struct model_scratch {
    float *states; /* [tokens][hidden_size] */
    int32_t *types;
    size_t tokens;
    heed_workspace workspace;
};

/* Loads model.safetensors of a directory. The context is kept. false after a message. */
bool model_load(struct model *model, const char *directory, const struct model_config *config,
                const heed_context *context);
void model_free(struct model *model);

/* Writes one embedding of hidden_size floats for each sequence. No sequence is longer than
 * max_positions, and every id is below vocab_size. false after a message. */
bool model_embed(const struct model *model, const struct model_batch *batch, struct model_scratch *scratch,
                 float *embeddings);
void model_scratch_free(struct model_scratch *scratch);

#endif
