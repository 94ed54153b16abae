/* SPDX-License-Identifier: MIT
 * The tokenizer of a model directory: reading its files, and encoding lines. */
#ifndef TOOLS_TOKENIZER_H
#define TOOLS_TOKENIZER_H

#include "wordpiece.h"

#include <stdbool.h>
#include <stddef.h>

struct tokenizer {
    struct wordpiece wordpiece;
    struct token_ids prefix, suffix; /* around every line, as [CLS] and [SEP] */
    size_t max_length;               /* that the files ask for, prefix and suffix included; 0: none */
    const char *max_length_file;     /* which of them */
};

/* Reads tokenizer.json or else vocab.txt with tokenizer_config.json. Every id is below vocab_size.
 * false after a message. */
bool tokenizer_load(struct tokenizer *tokenizer, const char *directory, size_t vocab_size);
void tokenizer_free(struct tokenizer *tokenizer);

/* Appends the tokens of well-formed UTF-8 text, prefix and suffix included: at most max_tokens,
 * which has room for these two. *truncated says whether there were more. false after a message. */
bool tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t length, size_t max_tokens,
                      struct token_ids *tokens, bool *truncated);

#endif
