/* SPDX-License-Identifier: MIT
 * A vocabulary: from token to id. */
#include "config.h"

#include "utf8.h"
#include "vocab.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 16
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

/* Slots that are looked at for a token. With half of them taken at random a run of so many has a probability of
 * exp(-0.19 * 256); in a vocabulary that was made for it each search would go through all tokens. */
#define MOST_PROBES 256

/* The slot of the token with that hash, or the free one where it would go; NULL if neither is near. */
static struct vocab_entry *slot_of_hash(const struct vocab *vocab, uint64_t state, const char *head, size_t head_length,
                                        const char *tail, size_t tail_length)
{
    size_t mask = vocab->n_slots - 1;
    size_t at = (size_t)(state ^ state >> 32);
    for (size_t i = 0; i < MOST_PROBES; i++) {
        struct vocab_entry *slot = &vocab->slots[(at + i) & mask];
        if (slot->id < 0 || holds(vocab, slot, head, head_length, tail, tail_length))
            return slot;
    }
    return NULL;
}

static int32_t id_in(const struct vocab_entry *slot)
{
    return slot ? slot->id : -1;
}

static struct vocab_entry *slot_of(const struct vocab *vocab, const char *head, size_t head_length, const char *tail,
                                   size_t tail_length)
{
    uint64_t state = hash(hash(HASH_START, head, head_length), tail, tail_length);
    return slot_of_hash(vocab, state, head, head_length, tail, tail_length);
}

static bool move(const struct vocab *from, struct vocab *to, const struct vocab_entry *entry)
{
    struct vocab_entry *slot = slot_of(to, "", 0, from->tokens.bytes + entry->begin, entry->length);
    if (slot)
        *slot = *entry;
    return slot != NULL;
}

/* Twice the slots, so that at most half are taken. */
static enum vocab_status rehash(struct vocab *vocab)
{
    struct vocab larger = *vocab;
    larger.n_slots = vocab->n_slots ? vocab->n_slots * 2 : FIRST_SLOTS;
    larger.slots = memory_array(larger.n_slots, sizeof *larger.slots);
    if (!larger.slots)
        return VOCAB_NO_MEMORY;
    for (size_t i = 0; i < larger.n_slots; i++)
        larger.slots[i].id = -1;
    for (size_t i = 0; i < vocab->n_slots; i++)
        if (vocab->slots[i].id >= 0 && !move(vocab, &larger, &vocab->slots[i])) {
            free(larger.slots);
            return VOCAB_CROWDED;
        }
    free(vocab->slots);
    *vocab = larger;
    return VOCAB_PUT;
}

enum vocab_status vocab_put(struct vocab *vocab, const char *token, size_t length, int32_t id)
{
    enum vocab_status status = vocab->count * 2 >= vocab->n_slots ? rehash(vocab) : VOCAB_PUT;
    if (status != VOCAB_PUT)
        return status;
    struct vocab_entry *slot = slot_of(vocab, "", 0, token, length);
    if (!slot)
        return VOCAB_CROWDED;
    if (slot->id < 0) {
        *slot = (struct vocab_entry){vocab->tokens.length, length, -1};
        if (!text_append(&vocab->tokens, token, length))
            return VOCAB_NO_MEMORY;
        vocab->count++;
        if (length > vocab->longest)
            vocab->longest = length;
    }
    slot->id = id;
    return VOCAB_PUT;
}

int32_t vocab_find(const struct vocab *vocab, const char *head, size_t head_length, const char *tail,
                   size_t tail_length)
{
    if (vocab->count == 0 || head_length + tail_length > vocab->longest)
        return -1;
    return id_in(slot_of(vocab, head, head_length, tail, tail_length));
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
        int32_t id = id_in(slot_of_hash(vocab, state, head, head_length, text, end));
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
