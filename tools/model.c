/* SPDX-License-Identifier: MIT
 * A BERT model: its weights in the library's layout, and the forward pass to sentence embeddings. */
#include "config.h"

#include "diag.h"
#include "memory.h"
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 128
#define NORMALIZE_EPS 1e-12f /* least norm that is divided by, as sentence embeddings have it */

/* ---- tensors ------------------------------------------------------------------------------- */

/* Keeps an allocation, which may be NULL, until the model is freed. */
static void *own(struct model *model, void *memory)
{
    struct allocations *owned = &model->owned;
    if (!memory)
        return NULL;
    void **grown = memory_grow(owned->items, &owned->capacity, owned->count + 1, sizeof *grown);
    if (!grown) {
        free(memory);
        return NULL;
    }
    owned->items = grown;
    grown[owned->count++] = memory;
    return memory;
}

static bool check_tensor(const struct model *model, const struct tensor *tensor, size_t rows, size_t cols)
{
    if (tensor->type == TENSOR_OTHER) {
        diag_print("%s: tensor %s: dtype %s is not supported; F32, F16 and BF16 are", model->path, tensor->name,
                   tensor->type_name);
        return false;
    }
    bool vector = rows == 1 && tensor->n_dimensions == 1 && tensor->shape[0] == cols;
    bool matrix = tensor->n_dimensions == 2 && tensor->shape[0] == rows && tensor->shape[1] == cols;
    if (!vector && !matrix)
        diag_print("%s: tensor %s: shape does not fit config.json, which wants %zu x %zu", model->path, tensor->name,
                   rows, cols);
    return vector || matrix;
}

static const struct tensor *find_tensor(const struct model *model, const char *name)
{
    char full[NAME_MAX_BYTES];
    snprintf(full, sizeof full, "%s%s", model->prefix, name);
    return safetensors_find(&model->file, full);
}

/* The tensor of that name, or of the older one where that is not NULL. */
static const struct tensor *require_tensor(const struct model *model, const char *name, const char *older, size_t rows,
                                           size_t cols)
{
    const struct tensor *tensor = find_tensor(model, name);
    if (!tensor && older)
        tensor = find_tensor(model, older);
    if (!tensor) {
        diag_print("%s: tensor %s%s is missing", model->path, model->prefix, name);
        return NULL;
    }
    return check_tensor(model, tensor, rows, cols) ? tensor : NULL;
}

/* A tensor as floats: in the mapped file, or in a copy that *copy receives and the caller frees. */
static const float *floats_of(const struct tensor *tensor, float **copy)
{
    const float *floats = tensor_floats_in_place(tensor);
    *copy = NULL;
    if (floats)
        return floats;
    *copy = memory_aligned_array(tensor->count, sizeof **copy);
    if (*copy)
        tensor_copy_floats(tensor, *copy);
    return *copy;
}

static bool load_floats(struct model *model, const char *name, const char *older, size_t rows, size_t cols,
                        const float **floats)
{
    const struct tensor *tensor = require_tensor(model, name, older, rows, cols);
    float *copy = NULL;
    *floats = tensor ? floats_of(tensor, &copy) : NULL;
    if (copy)
        *floats = own(model, copy);
    return *floats != NULL;
}

static bool pack(struct model *model, const struct tensor *tensor, const heed_weights **weights)
{
    size_t out = tensor->shape[0], in = tensor->shape[1], bytes;
    heed_status status = heed_weights_bytes(HEED_TYPE_F32, in, out, &bytes);
    if (!status) {
        void *memory = own(model, memory_aligned_array(bytes, 1));
        float *copy = NULL;
        const float *floats = memory ? floats_of(tensor, &copy) : NULL;
        if (!floats)
            return false;
        status = heed_weights_pack(model->context, HEED_TYPE_F32, HEED_LAYOUT_OUT_IN, in, out, floats, in, memory,
                                   bytes, weights);
        free(copy);
    }
    if (status)
        diag_print("%s: tensor %s: %s", model->path, tensor->name, heed_status_string(status));
    return !status;
}

/* The weight and the bias of a linear layer of an encoder layer. */
static bool load_linear(struct model *model, size_t layer, const char *name, size_t in, size_t out,
                        const heed_weights **weights, const float **bias)
{
    char weight_name[NAME_MAX_BYTES], bias_name[NAME_MAX_BYTES];
    snprintf(weight_name, sizeof weight_name, "encoder.layer.%zu.%s.weight", layer, name);
    snprintf(bias_name, sizeof bias_name, "encoder.layer.%zu.%s.bias", layer, name);
    const struct tensor *tensor = require_tensor(model, weight_name, NULL, out, in);
    if (tensor && tensor->n_dimensions != 2) {
        diag_print("%s: tensor %s: not a matrix", model->path, tensor->name);
        return false;
    }
    return tensor && pack(model, tensor, weights) && load_floats(model, bias_name, NULL, 1, out, bias);
}

/* A LayerNorm; older files call its tensors gamma and beta. */
static bool load_norm(struct model *model, const char *name, const float **scale, const float **shift)
{
    char weight[NAME_MAX_BYTES], bias[NAME_MAX_BYTES], gamma[NAME_MAX_BYTES], beta[NAME_MAX_BYTES];
    snprintf(weight, sizeof weight, "%s.LayerNorm.weight", name);
    snprintf(bias, sizeof bias, "%s.LayerNorm.bias", name);
    snprintf(gamma, sizeof gamma, "%s.LayerNorm.gamma", name);
    snprintf(beta, sizeof beta, "%s.LayerNorm.beta", name);
    return load_floats(model, weight, gamma, 1, model->config.hidden_size, scale) &&
           load_floats(model, bias, beta, 1, model->config.hidden_size, shift);
}

/* ---- layers -------------------------------------------------------------------------------- */

static bool load_attention(struct model *model, size_t layer)
{
    size_t hidden = model->config.hidden_size;
    heed_mha_weights *attention = &model->attention[layer];
    *attention = (heed_mha_weights)HEED_MHA_WEIGHTS_INIT;
    attention->n_heads = attention->n_kv_heads = model->config.n_heads;
    attention->head_dim = attention->value_dim = hidden / model->config.n_heads;
    return load_linear(model, layer, "attention.self.query", hidden, hidden, &attention->query,
                       &attention->query_bias) &&
           load_linear(model, layer, "attention.self.key", hidden, hidden, &attention->key, &attention->key_bias) &&
           load_linear(model, layer, "attention.self.value", hidden, hidden, &attention->value,
                       &attention->value_bias) &&
           load_linear(model, layer, "attention.output.dense", hidden, hidden, &attention->output,
                       &attention->output_bias);
}

static bool load_ffn(struct model *model, size_t layer)
{
    size_t hidden = model->config.hidden_size, inner = model->config.intermediate_size;
    heed_ffn_weights *ffn = &model->ffn[layer];
    *ffn = (heed_ffn_weights)HEED_FFN_WEIGHTS_INIT;
    ffn->activation = model->config.activation;
    return load_linear(model, layer, "intermediate.dense", hidden, inner, &ffn->up, &ffn->up_bias) &&
           load_linear(model, layer, "output.dense", inner, hidden, &ffn->down, &ffn->down_bias);
}

static bool load_layer(struct model *model, size_t layer)
{
    char norm1[NAME_MAX_BYTES / 2], norm2[NAME_MAX_BYTES / 2];
    snprintf(norm1, sizeof norm1, "encoder.layer.%zu.attention.output", layer);
    snprintf(norm2, sizeof norm2, "encoder.layer.%zu.output", layer);
    heed_encoder_layer *encoder = &model->layers[layer];
    *encoder = (heed_encoder_layer)HEED_ENCODER_LAYER_INIT;
    encoder->attention = &model->attention[layer];
    encoder->ffn = &model->ffn[layer];
    encoder->eps = model->config.layer_norm_eps;
    encoder->order = HEED_NORM_POST;
    return load_attention(model, layer) && load_ffn(model, layer) &&
           load_norm(model, norm1, &encoder->norm1_scale, &encoder->norm1_shift) &&
           load_norm(model, norm2, &encoder->norm2_scale, &encoder->norm2_shift);
}

static bool load_layers(struct model *model)
{
    size_t n_layers = model->config.n_layers;
    model->layers = own(model, memory_array(n_layers, sizeof *model->layers));
    model->attention = own(model, memory_array(n_layers, sizeof *model->attention));
    model->ffn = own(model, memory_array(n_layers, sizeof *model->ffn));
    if (!model->layers || !model->attention || !model->ffn)
        return false;
    for (size_t layer = 0; layer < n_layers; layer++)
        if (!load_layer(model, layer))
            return false;
    return true;
}

static bool load_embeddings(struct model *model)
{
    const struct model_config *config = &model->config;
    size_t hidden = config->hidden_size;
    return load_floats(model, "embeddings.word_embeddings.weight", NULL, config->vocab_size, hidden, &model->words) &&
           load_floats(model, "embeddings.position_embeddings.weight", NULL, config->max_positions, hidden,
                       &model->positions) &&
           load_floats(model, "embeddings.token_type_embeddings.weight", NULL, config->n_types, hidden,
                       &model->types) &&
           load_norm(model, "embeddings", &model->norm_scale, &model->norm_shift);
}

bool model_load(struct model *model, const char *directory, const struct model_config *config,
                const heed_context *context)
{
    *model = (struct model){.config = *config, .context = context, .prefix = "bert."};
    model->path = memory_path(directory, "model.safetensors");
    bool done = model->path && safetensors_open(&model->file, model->path);
    if (done && !find_tensor(model, "embeddings.word_embeddings.weight"))
        model->prefix = "";
    done = done && load_embeddings(model) && load_layers(model);
    if (!done)
        model_free(model);
    return done;
}

void model_free(struct model *model)
{
    for (size_t i = 0; i < model->owned.count; i++)
        free(model->owned.items[i]);
    free(model->owned.items);
    safetensors_close(&model->file);
    free(model->path);
    *model = (struct model){0};
}

/* ---- forward pass -------------------------------------------------------------------------- */

static size_t longest_sequence(const struct model_batch *batch)
{
    size_t longest = 0;
    for (size_t s = 0; s < batch->sequences; s++)
        if (batch->offsets[s + 1] - batch->offsets[s] > longest)
            longest = batch->offsets[s + 1] - batch->offsets[s];
    return longest;
}

static bool reserve_states(struct model_scratch *scratch, size_t tokens, size_t hidden)
{
    if (tokens <= scratch->tokens)
        return true;
    free(scratch->states);
    free(scratch->types);
    scratch->tokens = 0;
    scratch->types = memory_array(tokens, sizeof *scratch->types);
    scratch->states = memory_aligned_array(tokens, hidden * sizeof *scratch->states);
    if (!scratch->states || !scratch->types)
        return false;
    memset(scratch->types, 0, tokens * sizeof *scratch->types);
    scratch->tokens = tokens;
    return true;
}

static bool reserve_workspace(heed_workspace *workspace, size_t bytes)
{
    if (bytes <= workspace->bytes)
        return true;
    free(workspace->memory);
    workspace->memory = memory_aligned_array(bytes, 1);
    workspace->bytes = workspace->memory ? bytes : 0;
    return workspace->memory != NULL;
}

static bool succeeded(const struct model *model, heed_status status)
{
    if (status)
        diag_print("%s: forward pass: %s", model->path, heed_status_string(status));
    return !status;
}

static bool embed_tokens(const struct model *model, const struct model_batch *batch,
                         const struct model_scratch *scratch)
{
    const struct model_config *config = &model->config;
    size_t hidden = config->hidden_size, tokens = batch->offsets[batch->sequences];
    const heed_embedding_table tables[] = {
        {model->words, config->vocab_size, hidden, batch->ids, 0},
        {model->types, config->n_types, hidden, scratch->types, 0},
        {model->positions, config->max_positions, hidden, NULL, 0},
    };
    heed_layernorm_options norm = HEED_LAYERNORM_OPTIONS_INIT;
    norm.scale = model->norm_scale;
    norm.shift = model->norm_shift;
    norm.eps = config->layer_norm_eps;
    return succeeded(model, heed_embed_layernorm(model->context, tokens, hidden, sizeof tables / sizeof *tables, tables,
                                                 batch->sequences, batch->offsets, &norm, scratch->states, hidden));
}

static bool encode_tokens(const struct model *model, const struct model_batch *batch, struct model_scratch *scratch)
{
    heed_encoder_args args = HEED_ENCODER_ARGS_INIT;
    args.batch = batch->sequences;
    args.seq = longest_sequence(batch);
    args.offsets = batch->offsets;
    args.x = args.y = scratch->states;
    args.ldx = args.ldy = model->config.hidden_size;
    size_t bytes = 0;
    return succeeded(model,
                     heed_encoder_workspace(model->context, model->config.n_layers, model->layers, &args, &bytes)) &&
           reserve_workspace(&scratch->workspace, bytes) &&
           succeeded(model,
                     heed_encoder(model->context, model->config.n_layers, model->layers, &args, &scratch->workspace));
}

bool model_embed(const struct model *model, const struct model_batch *batch, struct model_scratch *scratch,
                 float *embeddings)
{
    size_t hidden = model->config.hidden_size;
    if (!reserve_states(scratch, batch->offsets[batch->sequences], hidden) || !embed_tokens(model, batch, scratch) ||
        !encode_tokens(model, batch, scratch) ||
        !succeeded(model, heed_pool(model->context, model->config.pooling, batch->sequences, batch->offsets, hidden,
                                    scratch->states, hidden, embeddings, hidden)))
        return false;
    return !model->config.normalize ||
           succeeded(model, heed_l2_normalize(model->context, batch->sequences, hidden, NORMALIZE_EPS, embeddings,
                                              hidden, embeddings, hidden));
}

void model_scratch_free(struct model_scratch *scratch)
{
    free(scratch->states);
    free(scratch->types);
    free(scratch->workspace.memory);
    *scratch = (struct model_scratch){0};
}
