/* SPDX-License-Identifier: MIT
 * What the configuration files of a model directory say. */
#ifndef TOOLS_MODEL_CONFIG_H
#define TOOLS_MODEL_CONFIG_H

#include <heed.h>
#include <stdbool.h>
#include <stddef.h>

struct model_config {
    size_t hidden_size, n_layers, n_heads, intermediate_size;
    size_t max_positions, n_types, vocab_size;
    heed_activation activation;
    float layer_norm_eps;
    heed_pooling pooling;
    bool normalize;
    size_t max_sequence; /* tokens, as the sentence embedding asks for it; 0: it does not */
};

/* What the user chose in place of the model's settings. */
struct model_choice {
    bool has_pooling, has_normalize;
    heed_pooling pooling;
    bool normalize;
};

/* Reads config.json and, where they are, modules.json, the configuration of the pooling module and
 * sentence_bert_config.json. false after a message. */
bool model_config_load(struct model_config *config, const char *directory, const struct model_choice *choice);

#endif
