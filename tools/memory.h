/* SPDX-License-Identifier: MIT
 * Allocation that checks for overflow and says so once when there is no memory. */
#ifndef TOOLS_MEMORY_H
#define TOOLS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* What memory is asked for from now on, for the message; it is kept, not copied. NULL: no more than how much. */
void memory_set_subject(const char *name);

/* count * size bytes, at least 1; NULL after a message, the only one of this process. Freed with free(). */
void *memory_array(size_t count, size_t size);

/* As memory_array, aligned to a cache line. */
void *memory_aligned_array(size_t count, size_t size);

/* An array with room for `needed` items, which holds what array held: array itself or a larger one.
 * NULL after a message, and array is then as it was. */
void *memory_grow(void *array, size_t *capacity, size_t needed, size_t size);

/* A growing string of bytes, which may hold any byte. Starts as {0}. */
struct text {
    char *bytes;
    size_t length, capacity;
};

/* false after a message */
bool text_append(struct text *text, const void *bytes, size_t length);
void text_free(struct text *text);

/* A copy of length bytes with a NUL after them; NULL after a message. */
char *memory_string(const char *bytes, size_t length);

/* "directory/name"; NULL after a message. */
char *memory_path(const char *directory, const char *name);

bool memory_is_little_endian(void);

#endif
