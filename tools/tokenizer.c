/* SPDX-License-Identifier: MIT
 * The tokenizer of a model directory: reading its files, and encoding lines. */
#include "config.h"

#include "diag.h"
#include "file.h"
#include "json.h"
#include "tokenizer.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Ten times what BERT has. Encoding a word takes the square of its length where the vocabulary is made for it. */
#define WORD_CHARS_MAX 1000

/* So much of every place of a text may be compared with an added token. */
#define ADDED_BYTES_MAX 4000

/* It is compared for every piece of a word; BERT's has two. */
#define PREFIX_BYTES_MAX 64

/* Of a template: pieces, special tokens, and ids around every line. Each piece is looked for among the special tokens;
 * BERT has two. */
#define TEMPLATE_MAX 1000

/* What is being read, for messages and for the bound on ids. */
struct source {
    struct tokenizer *tokenizer;
    struct vocab *added; /* tokens that come in addition to the vocabulary: no word has them as its pieces */
    const char *path;
    size_t vocab_size;
};

static bool refuse(const struct source *source, const char *what, const char *value)
{
    diag_print("%s: %s \"%s\" is not supported", source->path, what, value);
    return false;
}

/* Whether object is an object of that "type"; says so if not. */
static bool check_type(const struct source *source, const cJSON *object, const char *what, const char *type)
{
    const char *found = "none";
    if (!json_get_string(source->path, object, "type", &found))
        return false;
    return strcmp(found, type) == 0 || refuse(source, what, found);
}

static int32_t find_in(const struct vocab *vocab, const char *token)
{
    return vocab_find(vocab, "", 0, token, strlen(token));
}

static int32_t find_token(const struct source *source, const char *token)
{
    return find_in(&source->tokenizer->wordpiece.vocab, token);
}

/* The id of a token that the vocabulary must have. */
static bool require_token(const struct source *source, const char *token, int32_t *id)
{
    *id = find_token(source, token);
    if (*id < 0)
        diag_print("%s: token %s is not in the vocabulary", source->path, token);
    return *id >= 0;
}

static bool put_token(const struct source *source, struct vocab *vocab, const char *token, size_t length, size_t id)
{
    int shown = (int)(length < 80 ? length : 80);
    if (id >= source->vocab_size) {
        diag_print("%s: token %.*s has id %zu, but the model has %zu", source->path, shown, token, id,
                   source->vocab_size);
        return false;
    }
    enum vocab_status status = vocab_put(vocab, token, length, (int32_t)id);
    if (status == VOCAB_CROWDED)
        diag_print("%s: token %.*s: too many tokens have the same hash", source->path, shown, token);
    return status == VOCAB_PUT;
}

static bool set_unknown(const struct source *source, const char *token)
{
    return require_token(source, token, &source->tokenizer->wordpiece.unknown_id);
}

static bool set_prefix(const struct source *source, const char *prefix)
{
    size_t length = strlen(prefix);
    if (length > PREFIX_BYTES_MAX) {
        diag_print("%s: continuing_subword_prefix has more than %d bytes", source->path, PREFIX_BYTES_MAX);
        return false;
    }
    return text_append(&source->tokenizer->wordpiece.continuing_prefix, prefix, length);
}

/* ---- tokenizer.json ------------------------------------------------------------------------ */

static bool read_model(const struct source *source, const cJSON *json)
{
    const cJSON *model = json_member(json, "model"), *vocab = json_member(model, "vocab"), *entry;
    const char *unknown = "[UNK]", *prefix = "##";
    struct wordpiece *wordpiece = &source->tokenizer->wordpiece;
    if (!check_type(source, model, "model", "WordPiece") ||
        !json_get_string(source->path, model, "unk_token", &unknown) ||
        !json_get_string(source->path, model, "continuing_subword_prefix", &prefix) ||
        !json_get_size(source->path, model, "max_input_chars_per_word", WORD_CHARS_MAX, &wordpiece->max_word_chars))
        return false;
    if (!cJSON_IsObject(vocab)) {
        diag_print("%s: model.vocab is not an object", source->path);
        return false;
    }
    cJSON_ArrayForEach(entry, vocab)
    {
        size_t id;
        if (!json_whole(entry, INT32_MAX, &id)) {
            diag_print("%s: token %s has no valid id", source->path, entry->string);
            return false;
        }
        if (!put_token(source, &wordpiece->vocab, entry->string, strlen(entry->string), id))
            return false;
    }
    return set_unknown(source, unknown) && set_prefix(source, prefix);
}

static bool read_normalizer(const struct source *source, const cJSON *json)
{
    const cJSON *normalizer = json_member(json, "normalizer");
    struct wordpiece *wordpiece = &source->tokenizer->wordpiece;
    if (!check_type(source, normalizer, "normalizer", "BertNormalizer") ||
        !json_get_bool(source->path, normalizer, "clean_text", &wordpiece->clean_text) ||
        !json_get_bool(source->path, normalizer, "handle_chinese_chars", &wordpiece->handle_chinese_chars) ||
        !json_get_bool(source->path, normalizer, "lowercase", &wordpiece->lowercase))
        return false;
    wordpiece->strip_accents = wordpiece->lowercase;
    return json_get_bool(source->path, normalizer, "strip_accents", &wordpiece->strip_accents);
}

/* The content and id of an added token, which is in the vocabulary by that id or comes in addition. */
static bool put_added_token(const struct source *source, const cJSON *entry, const char **content, int32_t *id)
{
    size_t wanted = SIZE_MAX;
    if (!json_get_string(source->path, entry, "content", content) ||
        !json_get_size(source->path, entry, "id", INT32_MAX, &wanted))
        return false;
    if (!**content || wanted == SIZE_MAX) {
        diag_print("%s: added token \"%s\" has no %s", source->path, *content, **content ? "id" : "content");
        return false;
    }
    if (strlen(*content) > ADDED_BYTES_MAX) {
        diag_print("%s: added token \"%.80s...\" has more than %d bytes", source->path, *content, ADDED_BYTES_MAX);
        return false;
    }
    *id = find_token(source, *content);
    if (*id < 0)
        *id = find_in(source->added, *content);
    if (*id >= 0 && (size_t)*id != wanted) {
        diag_print("%s: added token \"%s\" has id %zu, but %" PRId32 " before", source->path, *content, wanted, *id);
        return false;
    }
    if (*id < 0 && !put_token(source, source->added, *content, strlen(*content), wanted))
        return false;
    *id = (int32_t)wanted;
    return true;
}

static bool read_added_token(const struct source *source, const cJSON *entry)
{
    const char *content = "";
    struct added_token token = {0};
    bool single_word = false;
    if (!put_added_token(source, entry, &content, &token.id) ||
        !json_get_bool(source->path, entry, "normalized", &token.normalized) ||
        !json_get_bool(source->path, entry, "lstrip", &token.lstrip) ||
        !json_get_bool(source->path, entry, "rstrip", &token.rstrip) ||
        !json_get_bool(source->path, entry, "single_word", &single_word))
        return false;
    if (single_word)
        return refuse(source, "single_word of added token", content);
    return wordpiece_add(&source->tokenizer->wordpiece, content, token);
}

static bool read_added_tokens(const struct source *source, const cJSON *json)
{
    const cJSON *entries = NULL, *entry;
    if (!json_get_list(source->path, json, "added_tokens", cJSON_Array, &entries))
        return false;
    cJSON_ArrayForEach(entry, entries)
    {
        if (!read_added_token(source, entry))
            return false;
    }
    return true;
}

/* The ids of a special token of a template. */
static bool push_special(const struct source *source, const cJSON *specials, const char *name, struct token_ids *ids)
{
    const struct tokenizer *tokenizer = source->tokenizer;
    const cJSON *list = json_member(json_member(specials, name), "ids"), *entry;
    if (!cJSON_IsArray(list) || !list->child) {
        diag_print("%s: special token \"%s\" of the template has no ids", source->path, name);
        return false;
    }
    cJSON_ArrayForEach(entry, list)
    {
        size_t id;
        if (!json_whole(entry, INT32_MAX, &id) || id >= source->vocab_size)
            return refuse(source, "id of special token", name);
        if (tokenizer->prefix.count + tokenizer->suffix.count == TEMPLATE_MAX)
            return refuse(source, "post_processor", "TemplateProcessing with so many ids");
        if (!token_ids_push(ids, (int32_t)id))
            return false;
    }
    return true;
}

/* A list of special tokens with the sequence A once among them. */
static bool read_template(const struct source *source, const cJSON *processor)
{
    struct token_ids *ids = &source->tokenizer->prefix;
    const cJSON *specials = json_member(processor, "special_tokens"), *piece;
    size_t pieces = 0;
    if (cJSON_GetArraySize(specials) > TEMPLATE_MAX)
        return refuse(source, "post_processor", "TemplateProcessing with so many special tokens");
    cJSON_ArrayForEach(piece, json_member(processor, "single"))
    {
        if (++pieces > TEMPLATE_MAX)
            return refuse(source, "post_processor", "TemplateProcessing with so many pieces");
        const cJSON *special = json_member(piece, "SpecialToken");
        const cJSON *content = special ? special : json_member(piece, "Sequence");
        size_t type_id = 0;
        const char *name = "";
        if (!json_get_string(source->path, content, "id", &name) ||
            !json_get_size(source->path, content, "type_id", INT32_MAX, &type_id))
            return false;
        bool first_sequence = !special && strcmp(name, "A") == 0 && ids == &source->tokenizer->prefix;
        if (type_id != 0 || (!special && !first_sequence))
            return refuse(source, "post_processor", "TemplateProcessing with such a template");
        if (!special)
            ids = &source->tokenizer->suffix;
        else if (!push_special(source, specials, name, ids))
            return false;
    }
    if (ids == &source->tokenizer->prefix)
        return refuse(source, "post_processor", "TemplateProcessing without a sequence");
    return true;
}

/* ["[SEP]", 102]: the id is the second element. */
static bool push_pair(const struct source *source, const cJSON *pair, struct token_ids *ids)
{
    size_t id;
    if (!json_whole(cJSON_GetArrayItem(pair, 1), INT32_MAX, &id) || id >= source->vocab_size)
        return refuse(source, "post_processor", "BertProcessing with such an id");
    return token_ids_push(ids, (int32_t)id);
}

static bool read_post_processor(const struct source *source, const cJSON *json)
{
    const cJSON *processor = json_member(json, "post_processor");
    const char *type = "";
    if (!processor)
        return true;
    if (!json_get_string(source->path, processor, "type", &type))
        return false;
    if (strcmp(type, "BertProcessing") == 0)
        return push_pair(source, json_member(processor, "cls"), &source->tokenizer->prefix) &&
               push_pair(source, json_member(processor, "sep"), &source->tokenizer->suffix);
    return check_type(source, processor, "post_processor", "TemplateProcessing") && read_template(source, processor);
}

static bool read_truncation(const struct source *source, const cJSON *json)
{
    const cJSON *truncation = NULL;
    const char *direction = "Right";
    source->tokenizer->max_length_file = "tokenizer.json";
    if (!json_get_list(source->path, json, "truncation", cJSON_Object, &truncation) ||
        !json_get_size(source->path, truncation, "max_length", INT32_MAX, &source->tokenizer->max_length) ||
        !json_get_string(source->path, truncation, "direction", &direction))
        return false;
    return strcmp(direction, "Right") == 0 || refuse(source, "truncation direction", direction);
}

static bool read_tokenizer(const struct source *source, const cJSON *json)
{
    return read_model(source, json) && read_normalizer(source, json) &&
           check_type(source, json_member(json, "pre_tokenizer"), "pre_tokenizer", "BertPreTokenizer") &&
           read_added_tokens(source, json) && read_post_processor(source, json) && read_truncation(source, json);
}

/* ---- vocab.txt ----------------------------------------------------------------------------- */

/* One token a line; its number from 0 is the id. */
static bool read_vocab(const struct source *source, const struct text *content)
{
    size_t id = 0;
    for (size_t begin = 0; begin < content->length; id++) {
        const char *line = content->bytes + begin;
        const char *feed = memchr(line, '\n', content->length - begin);
        size_t length = feed ? (size_t)(feed - line) : content->length - begin;
        begin += length + 1;
        if (length && line[length - 1] == '\r')
            length--;
        if (!put_token(source, &source->tokenizer->wordpiece.vocab, line, length, id))
            return false;
    }
    return true;
}

/* The special token of that name, which is a string or an object with "content". */
static bool special_token(const struct source *source, const cJSON *json, const char *name, const char **token)
{
    const cJSON *member = json_member(json, name);
    return cJSON_IsObject(member) ? json_get_string(source->path, member, "content", token)
                                  : json_get_string(source->path, json, name, token);
}

enum special { UNKNOWN, PREFIX, SUFFIX, PAD, MASK, SPECIALS };

static bool read_special_tokens(const struct source *source, const cJSON *json, const char *tokens[SPECIALS])
{
    static const char *const names[SPECIALS] = {"unk_token", "cls_token", "sep_token", "pad_token", "mask_token"};
    for (size_t i = 0; i < SPECIALS; i++)
        if (!special_token(source, json, names[i], &tokens[i]))
            return false;
    return true;
}

static bool add_special_tokens(const struct source *source, const char *const tokens[SPECIALS])
{
    for (size_t i = 0; i < SPECIALS; i++) {
        struct added_token added = {.id = find_token(source, tokens[i])};
        if (added.id >= 0 && !wordpiece_add(&source->tokenizer->wordpiece, tokens[i], added))
            return false;
    }
    int32_t prefix, suffix;
    return set_unknown(source, tokens[UNKNOWN]) && require_token(source, tokens[PREFIX], &prefix) &&
           require_token(source, tokens[SUFFIX], &suffix) && token_ids_push(&source->tokenizer->prefix, prefix) &&
           token_ids_push(&source->tokenizer->suffix, suffix);
}

/* The limit of tokenizer_config.json. */
static bool read_limit(const struct source *source, const cJSON *json)
{
    /* Absent limits are written as a huge number, such as 1e30. */
    const cJSON *limit = json_member(json, "model_max_length");
    source->tokenizer->max_length_file = "tokenizer_config.json";
    if (limit && !json_whole(limit, INT32_MAX, &source->tokenizer->max_length) && !cJSON_IsNumber(limit))
        return refuse(source, "model_max_length", "not a number");
    return true;
}

static bool read_settings(const struct source *source, const cJSON *json)
{
    struct wordpiece *wordpiece = &source->tokenizer->wordpiece;
    bool basic = true;
    if (!json_get_bool(source->path, json, "do_lower_case", &wordpiece->lowercase) ||
        !json_get_bool(source->path, json, "tokenize_chinese_chars", &wordpiece->handle_chinese_chars) ||
        !json_get_bool(source->path, json, "do_basic_tokenize", &basic))
        return false;
    wordpiece->strip_accents = wordpiece->lowercase;
    if (!json_get_bool(source->path, json, "strip_accents", &wordpiece->strip_accents))
        return false;
    if (!basic)
        return refuse(source, "do_basic_tokenize", "false");
    return read_limit(source, json);
}

/* ---- loading ------------------------------------------------------------------------------- */

static bool load_vocab(struct source *source, const char *vocab_path, const char *config_path)
{
    const char *tokens[SPECIALS] = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};
    struct text content = {0};
    cJSON *json = NULL;
    bool missing;
    source->path = vocab_path;
    bool done = file_read(vocab_path, &missing, &content);
    if (done && missing) {
        diag_print("%s: no such file, and no tokenizer.json either", vocab_path);
        done = false;
    }
    done = done && read_vocab(source, &content) && set_prefix(source, "##");
    source->path = config_path;
    done = done && json_read(config_path, cJSON_Object, true, &json) && read_settings(source, json) &&
           read_special_tokens(source, json, tokens);
    source->path = vocab_path;
    done = done && add_special_tokens(source, tokens);
    cJSON_Delete(json);
    text_free(&content);
    return done;
}

/* The limit of tokenizer_config.json counts where tokenizer.json has none. */
static bool load_limit(struct source *source, const char *config_path)
{
    cJSON *json = NULL;
    source->path = config_path;
    bool done = json_read(config_path, cJSON_Object, true, &json) && read_limit(source, json);
    cJSON_Delete(json);
    return done;
}

static bool load_files(struct source *source, const char *json_path, const char *vocab_path, const char *config_path)
{
    cJSON *json = NULL;
    source->path = json_path;
    if (!json_read(json_path, cJSON_Object, true, &json))
        return false;
    if (!json)
        return load_vocab(source, vocab_path, config_path);
    bool done = read_tokenizer(source, json);
    cJSON_Delete(json);
    return done && (source->tokenizer->max_length > 0 || load_limit(source, config_path));
}

bool tokenizer_load(struct tokenizer *tokenizer, const char *directory, size_t vocab_size)
{
    *tokenizer = (struct tokenizer){.wordpiece = {.clean_text = true,
                                                  .handle_chinese_chars = true,
                                                  .strip_accents = true,
                                                  .lowercase = true,
                                                  .max_word_chars = 100}};
    struct vocab added = {0};
    struct source source = {tokenizer, &added, NULL, vocab_size};
    char *json_path = memory_path(directory, "tokenizer.json");
    char *vocab_path = memory_path(directory, "vocab.txt");
    char *config_path = memory_path(directory, "tokenizer_config.json");
    bool done = json_path && vocab_path && config_path && load_files(&source, json_path, vocab_path, config_path);
    free(json_path);
    free(vocab_path);
    free(config_path);
    vocab_free(&added);
    wordpiece_sort(&tokenizer->wordpiece);
    if (!done)
        tokenizer_free(tokenizer);
    return done;
}

void tokenizer_free(struct tokenizer *tokenizer)
{
    wordpiece_free(&tokenizer->wordpiece);
    free(tokenizer->prefix.ids);
    free(tokenizer->suffix.ids);
    *tokenizer = (struct tokenizer){0};
}

/* ---- encoding ------------------------------------------------------------------------------ */

static bool push_all(struct token_ids *tokens, const struct token_ids *more)
{
    for (size_t i = 0; i < more->count; i++)
        if (!token_ids_push(tokens, more->ids[i]))
            return false;
    return true;
}

bool tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t length, size_t max_tokens,
                      struct token_ids *tokens, bool *truncated)
{
    size_t around = tokenizer->prefix.count + tokenizer->suffix.count;
    return push_all(tokens, &tokenizer->prefix) &&
           wordpiece_encode(&tokenizer->wordpiece, text, length, max_tokens - around, tokens, truncated) &&
           push_all(tokens, &tokenizer->suffix);
}
