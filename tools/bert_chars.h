/* SPDX-License-Identifier: MIT
 * The classes of characters that the BERT tokenizer tells apart. */
#ifndef TOOLS_BERT_CHARS_H
#define TOOLS_BERT_CHARS_H

#include <stdbool.h>
#include <stdint.h>

bool bert_is_whitespace(int32_t code_point);
bool bert_is_removed(int32_t code_point); /* by cleaning; some of these are whitespace, too */
bool bert_is_accent(int32_t code_point);
bool bert_is_punctuation(int32_t code_point);
bool bert_is_chinese(int32_t code_point);

#endif
