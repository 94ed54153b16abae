/* SPDX-License-Identifier: MIT
 * A vocabulary: from token to id. */
#include "config.h"

#include "utf8.h"
#include "vocab.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 1024
#define HASH_START 0xCBF29CE484222325u /* FNV-1a, 64 bits */
#define HASH_PRIME 0x00000100000001B3u

static uint64_t hash(uint64_t state, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        state = (state ^ (unsigned char)bytes[i]) * HASH_PRIME;
    return state;
}

static bool holds(const struct vocab *vocab, const struct vocab_entry *entry, const char *head, size_t head_length,
                  const char *tail, size_t tail_length)
{
    const char *token = vocab->tokens.bytes + entry->begin;
    return entry->length == head_length + tail_length && memcmp(token, head, head_length) == 0 &&
           memcmp(token + head_length, tail, tail_length) == 0;
}

/* The slot of the token with that hash, or the free one where it would go. The table is never full. */
static struct vocab_entry *slot_of_hash(const struct vocab *vocab, uint64_t state, const char *head, size_t head_length,
                                        const char *tail, size_t tail_length)
{
    size_t mask = vocab->n_slots - 1;
    size_t at = (size_t)(state ^ state >> 32) & mask;
    while (vocab->slots[at].id >= 0 && !holds(vocab, &vocab->slots[at], head, head_length, tail, tail_length))
        at = (at + 1) & mask;
    return &vocab->slots[at];
}

static struct vocab_entry *slot_of(const struct vocab *vocab, const char *head, size_t head_length, const char *tail,
                                   size_t tail_length)
{
    uint64_t state = hash(hash(HASH_START, head, head_length), tail, tail_length);
    return slot_of_hash(vocab, state, head, head_length, tail, tail_length);
}

/* Twice the slots, so that at most half are taken. */
static bool rehash(struct vocab *vocab)
{
    struct vocab larger = *vocab;
    larger.n_slots = vocab->n_slots ? vocab->n_slots * 2 : FIRST_SLOTS;
    larger.slots = memory_array(larger.n_slots, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < larger.n_slots; i++)
        larger.slots[i].id = -1;
    for (size_t i = 0; i < vocab->n_slots; i++) {
        struct vocab_entry entry = vocab->slots[i];
        if (entry.id >= 0)
            *slot_of(&larger, "", 0, vocab->tokens.bytes + entry.begin, entry.length) = entry;
    }
    free(vocab->slots);
    *vocab = larger;
    return true;
}

bool vocab_put(struct vocab *vocab, const char *token, size_t length, int32_t id)
{
    if (vocab->count * 2 >= vocab->n_slots && !rehash(vocab))
        return false;
    struct vocab_entry *slot = slot_of(vocab, "", 0, token, length);
    if (slot->id < 0) {
        *slot = (struct vocab_entry){vocab->tokens.length, length, -1};
        if (!text_append(&vocab->tokens, token, length))
            return false;
        vocab->count++;
        if (length > vocab->longest)
            vocab->longest = length;
    }
    slot->id = id;
    return true;
}

int32_t vocab_find(const struct vocab *vocab, const char *head, size_t head_length, const char *tail,
                   size_t tail_length)
{
    if (vocab->count == 0 || head_length + tail_length > vocab->longest)
        return -1;
    return slot_of(vocab, head, head_length, tail, tail_length)->id;
}

int32_t vocab_find_longest(const struct vocab *vocab, const char *head, size_t head_length, const char *text,
                           size_t length, size_t *part)
{
    int32_t longest = -1;
    if (vocab->longest < head_length)
        return longest;
    size_t max = vocab->longest - head_length;
    uint64_t state = hash(HASH_START, head, head_length);
    for (size_t end = 1; end <= length && end <= max; end++) {
        state = hash(state, text + end - 1, 1);
        if (end < length && !utf8_starts_character(text[end]))
            continue;
        int32_t id = slot_of_hash(vocab, state, head, head_length, text, end)->id;
        if (id >= 0) {
            longest = id;
            *part = end;
        }
    }
    return longest;
}

void vocab_free(struct vocab *vocab)
{
    text_free(&vocab->tokens);
    free(vocab->slots);
    *vocab = (struct vocab){0};
}
