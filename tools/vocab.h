/* SPDX-License-Identifier: MIT
 * A vocabulary: from token to id. */
#ifndef TOOLS_VOCAB_H
#define TOOLS_VOCAB_H

#include "memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vocab_entry {
    size_t begin, length; /* of the token in vocab.tokens */
    int32_t id;           /* -1: the slot is free */
};

/* Starts as {0}. */
struct vocab {
    struct text tokens;
    struct vocab_entry *slots; /* open addressing; the number of slots is a power of two */
    size_t n_slots, count;
    size_t longest; /* length of the longest token in bytes */
};

enum vocab_status {
    VOCAB_PUT,
    VOCAB_NO_MEMORY, /* after a message */
    VOCAB_CROWDED    /* too many tokens belong into the same few slots, which is no accident */
};

/* Gives token an id, in place of the one it may have had. */
enum vocab_status vocab_put(struct vocab *vocab, const char *token, size_t length, int32_t id);

/* The id of the token head followed by tail, or -1. */
int32_t vocab_find(const struct vocab *vocab, const char *head, size_t head_length, const char *tail,
                   size_t tail_length);

/* The id of the longest token that is head followed by a part of the text, which is well-formed UTF-8,
 * from its beginning to the end of a character; *part receives the length of that. -1 if there is none.
 * The time is linear in the length of the longest token. */
int32_t vocab_find_longest(const struct vocab *vocab, const char *head, size_t head_length, const char *text,
                           size_t length, size_t *part);

void vocab_free(struct vocab *vocab);

#endif
