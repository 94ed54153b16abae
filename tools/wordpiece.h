/* SPDX-License-Identifier: MIT
 * The BERT tokenizer: added tokens, normalisation, splitting into words, WordPiece. */
#ifndef TOOLS_WORDPIECE_H
#define TOOLS_WORDPIECE_H

#include "vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A token that is looked for in the text itself, as "[SEP]" is. */
struct added_token {
    char *content;
    size_t length;
    size_t place; /* among all, as they were added */
    int32_t id;
    bool normalized;     /* looked for after normalisation, else before it */
    bool lstrip, rstrip; /* takes the whitespace on that side along */
};

struct wordpiece {
    struct vocab vocab;
    struct added_token *added; /* in order once all are there: first those that are looked for before normalisation */
    size_t n_added, n_raw, added_capacity;
    bool clean_text, handle_chinese_chars, strip_accents, lowercase;
    struct text continuing_prefix;
    size_t max_word_chars; /* a longer word is unknown */
    int32_t unknown_id;
};

/* Ids of tokens. Starts as {0}. */
struct token_ids {
    int32_t *ids;
    size_t count, capacity;
};

/* false after a message */
bool token_ids_push(struct token_ids *tokens, int32_t id);

/* Adds a token to look for; content is copied, and normalised if token.normalized. To be called
 * after the settings of normalisation are final. false after a message. */
bool wordpiece_add(struct wordpiece *wordpiece, const char *content, struct added_token token);

/* To be called after the last wordpiece_add, before wordpiece_encode. */
void wordpiece_sort(struct wordpiece *wordpiece);

/* Appends the ids of well-formed UTF-8 text, at most `limit` of them; *truncated says whether there
 * were more. false after a message. */
bool wordpiece_encode(const struct wordpiece *wordpiece, const char *text, size_t length, size_t limit,
                      struct token_ids *tokens, bool *truncated);

void wordpiece_free(struct wordpiece *wordpiece);

#endif
