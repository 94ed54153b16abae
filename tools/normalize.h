/* SPDX-License-Identifier: MIT
 * The normalisation of the BERT tokenizer. */
#ifndef TOOLS_NORMALIZE_H
#define TOOLS_NORMALIZE_H

#include "memory.h"

#include <stdbool.h>
#include <stddef.h>

struct wordpiece;

/* Appends text, which is well-formed UTF-8, to *normalized as the settings of wordpiece say.
 * Whitespace separates: the pieces of a text that is cut there are normalised as the whole is.
 * false after a message. */
bool normalize(const struct wordpiece *wordpiece, const char *text, size_t length, struct text *normalized);

#endif
