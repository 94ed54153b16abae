/* SPDX-License-Identifier: MIT
 * The classes of characters that the BERT tokenizer tells apart. */
#include "config.h"

#include "bert_chars.h"

#include <stddef.h>

struct code_range {
    int32_t low, high;
};

#include "bert_tables.h"

static const struct code_range whitespace[] = {
    {0x0009, 0x000D}, {0x0020, 0x0020}, {0x0085, 0x0085}, {0x00A0, 0x00A0}, {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000},
};

/* Ideographs, without the scripts that put spaces between words. The hole from 2B820 to 2B91F is the
 * reference tokenizer's. */
static const struct code_range chinese[] = {
    {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
    {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F},
};

static bool in_ranges(const struct code_range *ranges, size_t count, int32_t code_point)
{
    while (count) {
        size_t middle = count / 2;
        if (code_point < ranges[middle].low) {
            count = middle;
        } else if (code_point > ranges[middle].high) {
            ranges += middle + 1;
            count -= middle + 1;
        } else {
            return true;
        }
    }
    return false;
}

#define IN(ranges, code_point) in_ranges(ranges, sizeof(ranges) / sizeof((ranges)[0]), code_point)

bool bert_is_whitespace(int32_t code_point)
{
    return IN(whitespace, code_point);
}

bool bert_is_removed(int32_t code_point)
{
    return IN(removed, code_point);
}

bool bert_is_accent(int32_t code_point)
{
    return IN(stripped, code_point);
}

bool bert_is_punctuation(int32_t code_point)
{
    return IN(punctuation, code_point);
}

bool bert_is_chinese(int32_t code_point)
{
    return IN(chinese, code_point);
}
