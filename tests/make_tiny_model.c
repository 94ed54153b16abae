/* SPDX-License-Identifier: MIT
 * Writes a BERT model of a few kilobytes, whole or with one fault, for the tests of heed-embed.
 * usage: make_tiny_model DIRECTORY f32|f16|bf16 [VARIANT] */
#include "config.h"

#include "../tools/diag.h"
#include "../tools/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN 32
#define INNER 64
#define LAYERS 2
#define HEADS 4
#define POSITIONS 48
#define TYPES 2
#define TENSORS_MAX 64
#define NAME_BYTES 96

static const char *const vocabulary[] = {
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "a",
    "b",
    "c",
    "the",
    "cat",
    "dog",
    "sat",
    "on",
    "mat",
    "un",
    "##do",
    "##able",
    "cafe",
    "eleve",
    "!",
    ".",
    ",",
    "?",
    "'",
    "-",
    "1",
    "2",
    "##1",
    "##2",
    "\xE4\xBB\x8A",
    "\xE5\xA4\xA9",
    "##s",
    "run",
    "##ning",
    "x",
    "##x",
};
#define VOCABULARY (sizeof vocabulary / sizeof *vocabulary)

/* Variants of model.safetensors. The first ones are sound. */
enum variant {
    PLAIN,
    PREFIXED,          /* names begin with "bert." */
    MISALIGNED,        /* the header ends at an odd byte */
    OLD_NAMES,         /* gamma and beta */
    NO_ELEMENTS,       /* with a tensor of no elements */
    EPS_OF_EMBEDDINGS, /* the eps of the other norms makes no difference */
    EPS_OF_LAYERS,
    TRUNCATED,
    SHORT,
    LONG_HEADER,
    PAST_END, /* the header, by a byte */
    HUGE_HEADER,
    BAD_JSON,
    WRONG_TYPE,
    UNKNOWN_TYPE,
    WRONG_SHAPE,
    DEEP_SHAPE, /* of nine dimensions */
    TRANSPOSED, /* a matrix, which has as many elements */
    FLAT,       /* a vector in place of a table */
    SHAPE_OVERFLOW,
    WRONG_SIZE,
    OVERLAP,
    GAP,
    DECREASING,
    OUTSIDE,
    NEGATIVE,
    TRAILING,
    DUPLICATE,
    MISSING,
    VARIANTS
};

static const char *const variant_names[VARIANTS] = {
    "plain",         "prefixed",       "misaligned",   "old-names",   "no-elements", "eps-of-embeddings",
    "eps-of-layers", "truncated",      "short",        "long-header", "past-end",    "huge-header",
    "bad-json",      "wrong-type",     "unknown-type", "wrong-shape", "deep-shape",  "transposed",
    "flat",          "shape-overflow", "wrong-size",   "overlap",     "gap",         "decreasing",
    "outside",       "negative",       "trailing",     "duplicate",   "missing",
};

struct tensor {
    char name[sizeof "bert." + NAME_BYTES];
    size_t rows, cols; /* rows 0: a vector */
};

struct tiny {
    const char *directory;
    const char *type; /* F32, F16 or BF16 */
    enum variant variant;
    struct tensor tensors[TENSORS_MAX];
    size_t count;
    uint32_t random;
};

/* ---- values -------------------------------------------------------------------------------- */

/* A multiple of 1/64 between -1 and 1, which all three types hold exactly. */
static float next_value(struct tiny *tiny)
{
    tiny->random = tiny->random * 1664525u + 1013904223u;
    return (float)((int)(tiny->random >> 25) - 64) / 64.0f;
}

/* What values of a tensor are multiplied by. No eps counts beside variances of 2^40, nor where the scale is 0. */
static float factor_of(const struct tiny *tiny, const char *name)
{
    if (tiny->variant == EPS_OF_EMBEDDINGS && strstr(name, "LayerNorm"))
        return 0x1p20f;
    return tiny->variant == EPS_OF_LAYERS && strcmp(name, "embeddings.LayerNorm.weight") == 0 ? 0.0f : 1.0f;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Of a value that is a normal number of binary16, or 0. */
static uint32_t half_of(float value)
{
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000;
    if (value == 0.0f)
        return sign;
    return sign | ((bits >> 23 & 0xFF) - 112) << 10 | (bits >> 13 & 0x3FF);
}

static size_t type_bytes(const struct tiny *tiny)
{
    return strcmp(tiny->type, "F32") == 0 ? 4 : 2;
}

static bool append_value(const struct tiny *tiny, float value, struct text *data)
{
    uint32_t bits = bits_of(value);
    if (strcmp(tiny->type, "F16") == 0)
        bits = half_of(value);
    else if (strcmp(tiny->type, "BF16") == 0)
        bits >>= 16;
    unsigned char bytes[4] = {(unsigned char)bits, (unsigned char)(bits >> 8), (unsigned char)(bits >> 16),
                              (unsigned char)(bits >> 24)};
    return text_append(data, bytes, type_bytes(tiny));
}

/* ---- tensors ------------------------------------------------------------------------------- */

static void add(struct tiny *tiny, const char *name, size_t rows, size_t cols)
{
    struct tensor *tensor = &tiny->tensors[tiny->count++];
    snprintf(tensor->name, sizeof tensor->name, "%s%s", tiny->variant == PREFIXED ? "bert." : "", name);
    tensor->rows = rows;
    tensor->cols = cols;
}

static void add_linear(struct tiny *tiny, size_t layer, const char *part, size_t out, size_t in)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "encoder.layer.%zu.%s.weight", layer, part);
    add(tiny, name, out, in);
    snprintf(name, sizeof name, "encoder.layer.%zu.%s.bias", layer, part);
    add(tiny, name, 0, out);
}

static void add_norm(struct tiny *tiny, const char *part)
{
    char name[NAME_BYTES];
    bool old = tiny->variant == OLD_NAMES;
    snprintf(name, sizeof name, "%s.LayerNorm.%s", part, old ? "gamma" : "weight");
    add(tiny, name, 0, HIDDEN);
    snprintf(name, sizeof name, "%s.LayerNorm.%s", part, old ? "beta" : "bias");
    add(tiny, name, 0, HIDDEN);
}

static void add_layer(struct tiny *tiny, size_t layer)
{
    char name[NAME_BYTES];
    add_linear(tiny, layer, "attention.self.query", HIDDEN, HIDDEN);
    add_linear(tiny, layer, "attention.self.key", HIDDEN, HIDDEN);
    add_linear(tiny, layer, "attention.self.value", HIDDEN, HIDDEN);
    add_linear(tiny, layer, "attention.output.dense", HIDDEN, HIDDEN);
    bool transposed = tiny->variant == TRANSPOSED;
    add_linear(tiny, layer, "intermediate.dense", transposed ? HIDDEN : INNER, transposed ? INNER : HIDDEN);
    add_linear(tiny, layer, "output.dense", HIDDEN, INNER);
    snprintf(name, sizeof name, "encoder.layer.%zu.attention.output", layer);
    add_norm(tiny, name);
    snprintf(name, sizeof name, "encoder.layer.%zu.output", layer);
    add_norm(tiny, name);
}

static void add_tensors(struct tiny *tiny)
{
    add(tiny, "embeddings.word_embeddings.weight", VOCABULARY, HIDDEN);
    add(tiny, "embeddings.position_embeddings.weight", POSITIONS, HIDDEN);
    add(tiny, "embeddings.token_type_embeddings.weight", tiny->variant == FLAT ? 0 : TYPES, HIDDEN);
    if (tiny->variant == NO_ELEMENTS)
        add(tiny, "no-elements", 0, 0);
    add_norm(tiny, "embeddings");
    for (size_t layer = 0; layer < LAYERS; layer++)
        add_layer(tiny, layer);
    if (tiny->variant == MISSING)
        tiny->count--;
}

/* ---- model.safetensors --------------------------------------------------------------------- */

/* One entry of the header; the faults are in that of the last tensor. */
static bool append_entry(const struct tiny *tiny, size_t index, size_t begin, size_t end, struct text *header)
{
    const struct tensor *tensor = &tiny->tensors[index];
    enum variant fault = index + 1 == tiny->count ? tiny->variant : PLAIN;
    const char *name = fault == DUPLICATE ? tiny->tensors[0].name : tensor->name;
    const char *type = tiny->type;
    if (fault == WRONG_TYPE)
        type = type_bytes(tiny) == 4 ? "I32" : "I16";
    else if (fault == UNKNOWN_TYPE)
        type = "X9";
    char shape[64], entry[2 * NAME_BYTES + 128];
    if (tensor->rows)
        snprintf(shape, sizeof shape, "%zu,%zu", tensor->rows, tensor->cols);
    else if (fault == SHAPE_OVERFLOW)
        snprintf(shape, sizeof shape, "2147483647,2147483647,2147483647");
    else if (fault == DEEP_SHAPE)
        snprintf(shape, sizeof shape, "1,1,1,1,1,1,1,1,%zu", tensor->cols);
    else if (fault == WRONG_SHAPE)
        snprintf(shape, sizeof shape, "%zu,%d", tensor->cols / 2, 2);
    else
        snprintf(shape, sizeof shape, "%zu", tensor->cols + (fault == WRONG_SIZE));
    long long first = (long long)begin, last = (long long)end, bytes = last - first;
    if (fault == OVERLAP || fault == GAP) {
        long long shift = fault == OVERLAP ? -bytes : 4;
        first += shift;
        last += shift;
    } else if (fault == DECREASING) {
        last = first - 1;
    } else if (fault == OUTSIDE) {
        last += 4;
    } else if (fault == NEGATIVE) {
        first = -first;
    }
    int length =
        snprintf(entry, sizeof entry, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%lld,%lld]}",
                 index ? "," : "", name, type, shape, first, last);
    return text_append(header, entry, (size_t)length);
}

static bool append_tensor(struct tiny *tiny, size_t index, struct text *header, struct text *data)
{
    const struct tensor *tensor = &tiny->tensors[index];
    size_t begin = data->length, elements = (tensor->rows ? tensor->rows : 1) * tensor->cols;
    float factor = factor_of(tiny, tensor->name);
    for (size_t i = 0; i < elements; i++)
        if (!append_value(tiny, factor * next_value(tiny), data))
            return false;
    return append_entry(tiny, index, begin, data->length, header);
}

static bool build(struct tiny *tiny, struct text *header, struct text *data)
{
    static const char start[] = "{\"__metadata__\":{\"format\":\"pt\"},";
    if (!text_append(header, start, sizeof start - 1))
        return false;
    for (size_t i = 0; i < tiny->count; i++)
        if (!append_tensor(tiny, i, header, data))
            return false;
    if (!text_append(header, tiny->variant == BAD_JSON ? "]" : "}", 1))
        return false;
    size_t odd = tiny->variant == MISALIGNED ? 1 : 0;
    while (header->length % 8 != odd)
        if (!text_append(header, " ", 1))
            return false;
    return (tiny->variant != TRAILING && tiny->variant != GAP) || text_append(data, "more", 4);
}

static void write_length(FILE *stream, uint64_t length)
{
    for (int i = 0; i < 8; i++)
        putc((int)(length >> 8 * i & 0xFF), stream);
}

static void write_weights(const struct tiny *tiny, const struct text *header, const struct text *data, FILE *stream)
{
    if (tiny->variant == SHORT) {
        fwrite("abc", 1, 3, stream);
        return;
    }
    uint64_t length = header->length;
    if (tiny->variant == HUGE_HEADER)
        length = UINT64_MAX;
    else if (tiny->variant == LONG_HEADER)
        length = 50000000;
    else if (tiny->variant == PAST_END)
        length += data->length + 1;
    write_length(stream, length);
    fwrite(header->bytes, 1, header->length, stream);
    fwrite(data->bytes, 1, tiny->variant == TRUNCATED ? data->length / 2 : data->length, stream);
}

/* ---- the other files ----------------------------------------------------------------------- */

static FILE *create(const struct tiny *tiny, const char *name)
{
    char *path = memory_path(tiny->directory, name);
    FILE *stream = path ? fopen(path, "wb") : NULL;
    if (path && !stream)
        diag_print("%s: %s", path, strerror(errno));
    free(path);
    return stream;
}

static void write_config(FILE *stream)
{
    fprintf(stream,
            "{\"model_type\":\"bert\",\"hidden_size\":%d,\"num_hidden_layers\":%d,\"num_attention_heads\":%d,\n"
            "\"intermediate_size\":%d,\"hidden_act\":\"gelu\",\"layer_norm_eps\":1e-12,\n"
            "\"max_position_embeddings\":%d,\"type_vocab_size\":%d,\"vocab_size\":%zu}\n",
            HIDDEN, LAYERS, HEADS, INNER, POSITIONS, TYPES, VOCABULARY);
}

static void write_vocab(FILE *stream)
{
    for (size_t i = 0; i < VOCABULARY; i++)
        fprintf(stream, "%s\n", vocabulary[i]);
}

static void write_tokenizer(FILE *stream)
{
    fputs("{\"added_tokens\":[", stream);
    for (int i = 0; i < 5; i++)
        fprintf(stream, "%s{\"id\":%d,\"content\":\"%s\",\"special\":true,\"normalized\":false}", i ? "," : "", i,
                vocabulary[i]);
    fputs("],\n\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
          "\"strip_accents\":null,\"lowercase\":true},\n\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\n"
          "\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"[CLS]\",2],\"sep\":[\"[SEP]\",3]},\n"
          "\"truncation\":{\"max_length\":24},\n"
          "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{",
          stream);
    for (size_t i = 0; i < VOCABULARY; i++)
        fprintf(stream, "%s\"%s\":%zu", i ? "," : "", vocabulary[i], i);
    fputs("}}}\n", stream);
}

static bool finish(const char *name, FILE *stream)
{
    bool broken = ferror(stream) != 0;
    broken = fclose(stream) != 0 || broken;
    if (broken)
        diag_print("%s: cannot be written", name);
    return !broken;
}

static bool write_file(const struct tiny *tiny, const char *name, void (*write)(FILE *))
{
    FILE *stream = create(tiny, name);
    if (!stream)
        return false;
    write(stream);
    return finish(name, stream);
}

static bool write_model(struct tiny *tiny)
{
    struct text header = {0}, data = {0};
    add_tensors(tiny);
    bool done = build(tiny, &header, &data);
    FILE *stream = done ? create(tiny, "model.safetensors") : NULL;
    if (stream) {
        write_weights(tiny, &header, &data, stream);
        done = finish("model.safetensors", stream);
    }
    text_free(&header);
    text_free(&data);
    return stream && done && write_file(tiny, "config.json", write_config) &&
           write_file(tiny, "vocab.txt", write_vocab) && write_file(tiny, "tokenizer.json", write_tokenizer);
}

static size_t find(const char *const *names, size_t count, const char *name)
{
    size_t index = 0;
    while (index < count && strcmp(names[index], name) != 0)
        index++;
    return index;
}

int main(int argc, char **argv)
{
    static const char *const options[] = {"f32", "f16", "bf16"};
    static const char *const types[] = {"F32", "F16", "BF16"};
    diag_set_program("make_tiny_model");
    size_t type = argc > 2 ? find(options, 3, argv[2]) : 3;
    size_t variant = argc > 3 ? find(variant_names, VARIANTS, argv[3]) : PLAIN;
    if (type == 3 || variant == VARIANTS) {
        fprintf(stderr, "usage: make_tiny_model DIRECTORY f32|f16|bf16 [VARIANT]\n");
        return 2;
    }
    struct tiny tiny = {.directory = argv[1], .type = types[type], .variant = (enum variant)variant, .random = 1};
    return write_model(&tiny) ? 0 : 1;
}
