/* SPDX-License-Identifier: MIT
 * Operands of any size flush against guard pages, on either side, from one mapping each.
 */
#ifndef HEED_TESTS_ARENA_H
#define HEED_TESTS_ARENA_H

#include "check.h"

#include <stdio.h>
#include <stdlib.h>

struct arena {
    float *begin, *end; /* begin follows one guard page, end precedes another */
    size_t floats;
};

static inline struct arena arena_make(size_t floats)
{
    float *at_end = guarded(floats, 1), *at_begin = guarded(floats, 0);
    return (struct arena){at_begin, at_end + floats, floats};
}

/* n floats of the arena that touch the guard page after (at_end) or before them. Without room for them the test is
 * wrong, and ends. */
static inline float *arena_place(const struct arena *arena, size_t n, int at_end)
{
    if (n > arena->floats) {
        printf("Bail out! %zu floats asked of an arena of %zu\n", n, arena->floats);
        exit(99);
    }
    return at_end ? arena->end - n : arena->begin;
}

#endif
