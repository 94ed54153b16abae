/* SPDX-License-Identifier: MIT
 * The normalisation of the BERT tokenizer. */
#include "config.h"

#include "bert_chars.h"
#include "normalize.h"
#include "utf8.h"
#include "wordpiece.h"

#include <stdlib.h>
#include <utf8proc.h>

#define DECOMPOSED_MAX 32 /* code points; the longest canonical decomposition has 4 */

/* Starts as {0}. */
struct code_points {
    int32_t *items;
    size_t count, capacity;
};

/* A combining mark and its sort key: combining class, then place. */
struct mark {
    uint64_t key;
    int32_t code_point;
};

static bool push(struct code_points *points, int32_t code_point)
{
    int32_t *grown = memory_grow(points->items, &points->capacity, points->count + 1, sizeof *grown);
    if (!grown)
        return false;
    points->items = grown;
    grown[points->count++] = code_point;
    return true;
}

/* Cleaning and the spaces around ideographs. */
static bool push_clean(const struct wordpiece *wordpiece, struct code_points *points, int32_t code_point)
{
    if (wordpiece->clean_text) {
        if (bert_is_removed(code_point))
            return true;
        if (bert_is_whitespace(code_point))
            code_point = ' ';
    }
    if (wordpiece->handle_chinese_chars && bert_is_chinese(code_point))
        return push(points, ' ') && push(points, code_point) && push(points, ' ');
    return push(points, code_point);
}

static bool push_decomposed(struct code_points *points, int32_t code_point)
{
    int32_t parts[DECOMPOSED_MAX];
    int boundary_class = 0;
    utf8proc_ssize_t count =
        utf8proc_decompose_char(code_point, parts, DECOMPOSED_MAX, UTF8PROC_DECOMPOSE, &boundary_class);
    if (count < 1 || count > DECOMPOSED_MAX)
        return push(points, code_point);
    for (utf8proc_ssize_t i = 0; i < count; i++)
        if (!push(points, parts[i]))
            return false;
    return true;
}

static uint64_t combining_class(int32_t code_point)
{
    return code_point < 0x300 ? 0 : (uint64_t)utf8proc_get_property(code_point)->combining_class;
}

static int compare_marks(const void *left, const void *right)
{
    uint64_t a = ((const struct mark *)left)->key, b = ((const struct mark *)right)->key;
    return (a > b) - (a < b);
}

/* Sorts a run of marks by combining class, keeping the order within a class. It is a real sort since
 * a hostile line may be one long run. */
static bool sort_marks(int32_t *items, size_t count)
{
    struct mark *marks = memory_array(count, sizeof *marks);
    if (!marks)
        return false;
    for (size_t i = 0; i < count; i++)
        marks[i] = (struct mark){combining_class(items[i]) << 56 | i, items[i]};
    qsort(marks, count, sizeof *marks, compare_marks);
    for (size_t i = 0; i < count; i++)
        items[i] = marks[i].code_point;
    free(marks);
    return true;
}

static bool order_marks(struct code_points *points)
{
    for (size_t i = 0; i < points->count;) {
        size_t end = i;
        while (end < points->count && combining_class(points->items[end]))
            end++;
        if (end - i > 1 && !sort_marks(points->items + i, end - i))
            return false;
        i = end + 1;
    }
    return true;
}

static bool strip_accents(const struct code_points *points, struct code_points *stripped)
{
    for (size_t i = 0; i < points->count; i++)
        if (!push_decomposed(stripped, points->items[i]))
            return false;
    if (!order_marks(stripped))
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < stripped->count; i++)
        if (!bert_is_accent(stripped->items[i]))
            stripped->items[kept++] = stripped->items[i];
    stripped->count = kept;
    return true;
}

/* Lower case without context: U+0130 is the one character whose lower case is two. */
static bool append_lower(struct text *text, int32_t code_point)
{
    char bytes[2 * UTF8_MAX];
    size_t length;
    if (code_point == 0x130) {
        length = utf8_encode('i', bytes);
        length += utf8_encode(0x307, bytes + length);
    } else {
        length = utf8_encode(utf8proc_tolower(code_point), bytes);
    }
    return text_append(text, bytes, length);
}

static bool append_points(const struct code_points *points, bool lowercase, struct text *text)
{
    for (size_t i = 0; i < points->count; i++) {
        char bytes[UTF8_MAX];
        bool appended = lowercase ? append_lower(text, points->items[i])
                                  : text_append(text, bytes, utf8_encode(points->items[i], bytes));
        if (!appended)
            return false;
    }
    return true;
}

bool normalize(const struct wordpiece *wordpiece, const char *text, size_t length, struct text *normalized)
{
    struct code_points points = {0}, stripped = {0};
    bool done = true;
    for (size_t at = 0; done && at < length;) {
        int32_t code_point;
        at += utf8_decode(text + at, length - at, &code_point);
        done = push_clean(wordpiece, &points, code_point < 0 ? UTF8_REPLACEMENT : code_point);
    }
    if (wordpiece->strip_accents)
        done = done && strip_accents(&points, &stripped);
    done = done && append_points(wordpiece->strip_accents ? &stripped : &points, wordpiece->lowercase, normalized);
    free(points.items);
    free(stripped.items);
    return done;
}
