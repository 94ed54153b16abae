/* SPDX-License-Identifier: MIT
 * UTF-8: decoding, encoding, and the repair of what is not UTF-8. */
#include "config.h"

#include "utf8.h"

/* What may follow a first byte: the number of continuation bytes, and the range of the first of
 * them, which is what keeps overlong forms, surrogates and values past U+10FFFF out. */
struct lead {
    size_t continuations;
    unsigned char low, high;
};

static struct lead lead_of(unsigned char byte)
{
    if (byte >= 0xC2 && byte <= 0xDF)
        return (struct lead){1, 0x80, 0xBF};
    if (byte >= 0xE0 && byte <= 0xEF)
        return (struct lead){2, byte == 0xE0 ? 0xA0 : 0x80, byte == 0xED ? 0x9F : 0xBF};
    if (byte >= 0xF0 && byte <= 0xF4)
        return (struct lead){3, byte == 0xF0 ? 0x90 : 0x80, byte == 0xF4 ? 0x8F : 0xBF};
    return (struct lead){0, 0, 0};
}

size_t utf8_decode(const char *text, size_t length, int32_t *code_point)
{
    unsigned char first = (unsigned char)text[0];
    if (first < 0x80) {
        *code_point = first;
        return 1;
    }
    *code_point = -1;
    struct lead lead = lead_of(first);
    if (lead.continuations == 0)
        return 1;
    int32_t value = first & (0x3F >> lead.continuations);
    for (size_t i = 1; i <= lead.continuations; i++) {
        unsigned char byte = i < length ? (unsigned char)text[i] : 0;
        if (byte < lead.low || byte > lead.high)
            return i;
        value = value << 6 | (byte & 0x3F);
        lead.low = 0x80;
        lead.high = 0xBF;
    }
    *code_point = value;
    return lead.continuations + 1;
}

static char continuation(int32_t code_point, int shift)
{
    return (char)(0x80 | (code_point >> shift & 0x3F));
}

size_t utf8_encode(int32_t code_point, char bytes[UTF8_MAX])
{
    if (code_point < 0x80) {
        bytes[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        bytes[0] = (char)(0xC0 | code_point >> 6);
        bytes[1] = continuation(code_point, 0);
        return 2;
    }
    if (code_point < 0x10000) {
        bytes[0] = (char)(0xE0 | code_point >> 12);
        bytes[1] = continuation(code_point, 6);
        bytes[2] = continuation(code_point, 0);
        return 3;
    }
    bytes[0] = (char)(0xF0 | code_point >> 18);
    bytes[1] = continuation(code_point, 12);
    bytes[2] = continuation(code_point, 6);
    bytes[3] = continuation(code_point, 0);
    return 4;
}

bool utf8_repair(const char *text, size_t length, struct text *repaired, size_t *replaced)
{
    char replacement[UTF8_MAX];
    size_t replacement_length = utf8_encode(UTF8_REPLACEMENT, replacement);
    size_t kept = 0;
    for (size_t at = 0; at < length;) {
        int32_t code_point;
        size_t step = utf8_decode(text + at, length - at, &code_point);
        if (code_point < 0) {
            if (!text_append(repaired, text + kept, at - kept) ||
                !text_append(repaired, replacement, replacement_length))
                return false;
            kept = at + step;
            ++*replaced;
        }
        at += step;
    }
    return text_append(repaired, text + kept, length - kept);
}
