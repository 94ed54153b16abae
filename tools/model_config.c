/* SPDX-License-Identifier: MIT
 * What the configuration files of a model directory say. */
#include "config.h"

#include "diag.h"
#include "json.h"
#include "memory.h"
#include "model_config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define POOLING_PREFIX "pooling_mode_"

static bool refuse(const char *path, const char *name, const char *value)
{
    diag_print("%s: %s \"%s\" is not supported", path, name, value);
    return false;
}

/* ---- config.json --------------------------------------------------------------------------- */

static bool read_sizes(struct model_config *config, const char *path, const cJSON *json)
{
    const struct {
        const char *name;
        size_t *size, max;
    } sizes[] = {
        {"hidden_size", &config->hidden_size, 1 << 20},
        {"num_hidden_layers", &config->n_layers, 1 << 12},
        {"num_attention_heads", &config->n_heads, 1 << 20},
        {"intermediate_size", &config->intermediate_size, 1 << 24},
        {"max_position_embeddings", &config->max_positions, 1 << 24},
        {"type_vocab_size", &config->n_types, 1 << 24},
        {"vocab_size", &config->vocab_size, INT32_MAX},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (!json_get_size(path, json, sizes[i].name, sizes[i].max, sizes[i].size))
            return false;
        if (*sizes[i].size == 0) {
            diag_print("%s: %s is missing or zero", path, sizes[i].name);
            return false;
        }
    }
    if (config->hidden_size % config->n_heads) {
        diag_print("%s: hidden_size %zu is not a multiple of num_attention_heads %zu", path, config->hidden_size,
                   config->n_heads);
        return false;
    }
    return true;
}

static bool read_activation(struct model_config *config, const char *path, const cJSON *json)
{
    static const struct {
        const char *name;
        heed_activation activation;
    } known[] = {
        {"gelu", HEED_ACTIVATION_GELU_ERF},
        {"gelu_new", HEED_ACTIVATION_GELU_TANH},
        {"gelu_pytorch_tanh", HEED_ACTIVATION_GELU_TANH},
        {"relu", HEED_ACTIVATION_RELU},
    };
    const char *name = "gelu";
    if (!json_get_string(path, json, "hidden_act", &name))
        return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i].name) == 0) {
            config->activation = known[i].activation;
            return true;
        }
    }
    return refuse(path, "hidden_act", name);
}

static bool read_eps(struct model_config *config, const char *path, const cJSON *json)
{
    const cJSON *eps = json_member(json, "layer_norm_eps");
    if (eps && (!cJSON_IsNumber(eps) || !(eps->valuedouble >= 0 && eps->valuedouble <= 1))) {
        diag_print("%s: layer_norm_eps is not a number from 0 to 1", path);
        return false;
    }
    config->layer_norm_eps = eps ? (float)eps->valuedouble : 1e-12f;
    return true;
}

static bool check_family(const char *path, const cJSON *json)
{
    const char *type = "bert", *positions = "absolute";
    bool decoder = false, cross = false;
    if (!json_get_string(path, json, "model_type", &type) ||
        !json_get_string(path, json, "position_embedding_type", &positions) ||
        !json_get_bool(path, json, "is_decoder", &decoder) || !json_get_bool(path, json, "add_cross_attention", &cross))
        return false;
    if (strcmp(type, "bert") != 0)
        return refuse(path, "model_type", type);
    if (strcmp(positions, "absolute") != 0)
        return refuse(path, "position_embedding_type", positions);
    if (decoder || cross) {
        diag_print("%s: a decoder is not supported", path);
        return false;
    }
    return true;
}

static bool read_transformer(struct model_config *config, const char *path, const cJSON *json)
{
    return check_family(path, json) && read_sizes(config, path, json) && read_activation(config, path, json) &&
           read_eps(config, path, json);
}

/* ---- the sentence embedding ---------------------------------------------------------------- */

/* Of the settings "pooling_mode_...", one is true and it is one that heed has. */
static bool read_pooling(struct model_config *config, const char *path, const cJSON *json)
{
    const char *mode = NULL;
    const cJSON *member;
    cJSON_ArrayForEach(member, json)
    {
        if (!member->string || strncmp(member->string, POOLING_PREFIX, strlen(POOLING_PREFIX)) != 0 ||
            !cJSON_IsTrue(member))
            continue;
        if (mode) {
            diag_print("%s: more than one pooling mode is not supported", path);
            return false;
        }
        mode = member->string + strlen(POOLING_PREFIX);
    }
    if (!mode) {
        diag_print("%s: no pooling mode is set", path);
        return false;
    }
    if (strcmp(mode, "mean_tokens") == 0)
        config->pooling = HEED_POOLING_MEAN;
    else if (strcmp(mode, "cls_token") == 0)
        config->pooling = HEED_POOLING_FIRST;
    else
        return refuse(path, "pooling mode", mode);
    return true;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* The modules that follow one another: what they are, and where that of pooling is configured. */
static bool read_modules(struct model_config *config, const char *path, const cJSON *json, const char **pooling)
{
    const cJSON *module;
    config->normalize = false;
    cJSON_ArrayForEach(module, json)
    {
        const char *type = "", *folder = "";
        if (!json_get_string(path, module, "type", &type) || !json_get_string(path, module, "path", &folder))
            return false;
        if (ends_with(type, ".Pooling"))
            *pooling = folder;
        else if (ends_with(type, ".Normalize"))
            config->normalize = true;
        else if (!ends_with(type, ".Transformer") || *folder)
            return refuse(path, "module", type);
    }
    return true;
}

static bool load_pooling(struct model_config *config, const char *directory, const char *folder, bool optional)
{
    char *folder_path = memory_path(directory, folder);
    char *path = folder_path ? memory_path(folder_path, "config.json") : NULL;
    cJSON *json = NULL;
    bool done = path && json_read(path, cJSON_Object, optional, &json) && (!json || read_pooling(config, path, json));
    cJSON_Delete(json);
    free(path);
    free(folder_path);
    return done;
}

static bool load_modules(struct model_config *config, const char *directory, const struct model_choice *choice)
{
    char *path = memory_path(directory, "modules.json");
    cJSON *json = NULL;
    const char *pooling = NULL;
    bool done =
        path && json_read(path, cJSON_Array, true, &json) && (!json || read_modules(config, path, json, &pooling));
    if (done && json && !pooling && !choice->has_pooling) {
        diag_print("%s: no pooling module", path);
        done = false;
    }
    if (done && !choice->has_pooling)
        done = load_pooling(config, directory, pooling ? pooling : "1_Pooling", !pooling);
    cJSON_Delete(json);
    free(path);
    return done;
}

static bool read_sentence(struct model_config *config, const char *path, const cJSON *json)
{
    bool lowercase = false;
    if (!json_get_size(path, json, "max_seq_length", INT32_MAX, &config->max_sequence) ||
        !json_get_bool(path, json, "do_lower_case", &lowercase))
        return false;
    if (lowercase)
        diag_print("%s: do_lower_case is not supported", path);
    return !lowercase;
}

/* Reads one file of the directory with `read`. */
static bool load(struct model_config *config, const char *directory, const char *name, bool optional,
                 bool (*read)(struct model_config *, const char *, const cJSON *))
{
    char *path = memory_path(directory, name);
    cJSON *json = NULL;
    bool done = path && json_read(path, cJSON_Object, optional, &json) && (!json || read(config, path, json));
    cJSON_Delete(json);
    free(path);
    return done;
}

bool model_config_load(struct model_config *config, const char *directory, const struct model_choice *choice)
{
    *config = (struct model_config){.pooling = HEED_POOLING_MEAN, .normalize = true};
    if (!load(config, directory, "config.json", false, read_transformer) || !load_modules(config, directory, choice) ||
        !load(config, directory, "sentence_bert_config.json", true, read_sentence))
        return false;
    if (choice->has_pooling)
        config->pooling = choice->pooling;
    if (choice->has_normalize)
        config->normalize = choice->normalize;
    return true;
}
