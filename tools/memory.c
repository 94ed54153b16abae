/* SPDX-License-Identifier: MIT
 * Allocation that checks for overflow and says so once when there is no memory. */
#include "config.h"

#include "diag.h"
#include "memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64

static const char *subject;
static bool said;

void memory_set_subject(const char *name)
{
    subject = name;
}

/* The product may be more than there are addresses. Once, since whoever asks for several arrays does so before looking
 * at any of them. */
static void say_none(size_t count, size_t size)
{
    if (said)
        return;
    said = true;
    diag_print("%s%sout of memory: %.0f bytes", subject ? subject : "", subject ? ": " : "",
               (double)count * (double)size);
}

void *memory_array(size_t count, size_t size)
{
    void *array = NULL;
    if (size == 0 || count <= SIZE_MAX / size)
        array = malloc(count && size ? count * size : 1);
    if (!array)
        say_none(count, size);
    return array;
}

void *memory_aligned_array(size_t count, size_t size)
{
    void *array = NULL;
    if (size == 0 || count <= (SIZE_MAX - CACHE_LINE) / size) {
        size_t lines = count * size / CACHE_LINE + 1;
        array = aligned_alloc(CACHE_LINE, lines * CACHE_LINE);
    }
    if (!array)
        say_none(count, size);
    return array;
}

void *memory_grow(void *array, size_t *capacity, size_t needed, size_t size)
{
    if (array && needed <= *capacity)
        return array;
    size_t larger = *capacity <= SIZE_MAX / 2 ? *capacity * 2 : SIZE_MAX;
    if (larger < needed)
        larger = needed;
    if (larger < 16)
        larger = 16;
    void *grown = larger <= SIZE_MAX / size ? realloc(array, larger * size) : NULL;
    if (!grown) {
        say_none(larger, size);
        return NULL;
    }
    *capacity = larger;
    return grown;
}

bool text_append(struct text *text, const void *bytes, size_t length)
{
    if (length > SIZE_MAX - text->length) {
        say_none(length, 1);
        return false;
    }
    char *grown = memory_grow(text->bytes, &text->capacity, text->length + length, 1);
    if (!grown)
        return false;
    text->bytes = grown;
    if (length)
        memcpy(grown + text->length, bytes, length);
    text->length += length;
    return true;
}

void text_free(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

char *memory_string(const char *bytes, size_t length)
{
    char *copy = memory_array(length + 1, 1);
    if (copy) {
        memcpy(copy, bytes, length);
        copy[length] = '\0';
    }
    return copy;
}

char *memory_path(const char *directory, const char *name)
{
    size_t length = strlen(directory), name_length = strlen(name);
    char *path = memory_array(length + name_length + 2, 1);
    if (path) {
        memcpy(path, directory, length);
        path[length] = '/';
        memcpy(path + length + 1, name, name_length + 1);
    }
    return path;
}

bool memory_is_little_endian(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1;
}
