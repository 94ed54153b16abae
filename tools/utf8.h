/* SPDX-License-Identifier: MIT
 * UTF-8: decoding, encoding, and the repair of what is not UTF-8. */
#ifndef TOOLS_UTF8_H
#define TOOLS_UTF8_H

#include "memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT 0xFFFD
#define UTF8_MAX 4

/* Whether a byte of well-formed text is the first one of a character. */
static inline bool utf8_starts_character(char byte)
{
    return ((unsigned char)byte & 0xC0) != 0x80;
}

/* Decodes the code point at the start of text (length > 0) and returns how many bytes it takes. Of
 * what is ill-formed, *code_point is -1 and the length that of the longest start of a sequence. */
size_t utf8_decode(const char *text, size_t length, int32_t *code_point);

/* Writes a code point, which is no surrogate, and returns its length. */
size_t utf8_encode(int32_t code_point, char bytes[UTF8_MAX]);

/* Appends text with every ill-formed part replaced by U+FFFD, and adds their number to *replaced.
 * false after a message. */
bool utf8_repair(const char *text, size_t length, struct text *repaired, size_t *replaced);

#endif
