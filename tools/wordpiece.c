/* SPDX-License-Identifier: MIT
 * The BERT tokenizer: added tokens, normalisation, splitting into words, WordPiece. */
#include "config.h"

#include "bert_chars.h"
#include "normalize.h"
#include "utf8.h"
#include "wordpiece.h"

#include <stdlib.h>
#include <string.h>

/* Text is normalised in pieces of about this many bytes, so that what is cut off by the limit is
 * not normalised at all. */
#define PIECE_BYTES 4096

struct encoder {
    const struct wordpiece *wordpiece;
    struct token_ids *tokens;
    size_t limit; /* of tokens->count */
    bool full;    /* there was a token more */
};

bool token_ids_push(struct token_ids *tokens, int32_t id)
{
    int32_t *grown = memory_grow(tokens->ids, &tokens->capacity, tokens->count + 1, sizeof *grown);
    if (!grown)
        return false;
    tokens->ids = grown;
    grown[tokens->count++] = id;
    return true;
}

bool wordpiece_add(struct wordpiece *wordpiece, const char *content, struct added_token token)
{
    struct text text = {0};
    bool prepared = token.normalized ? normalize(wordpiece, content, strlen(content), &text)
                                     : text_append(&text, content, strlen(content));
    if (!prepared || text.length == 0) {
        text_free(&text);
        return prepared;
    }
    struct added_token *grown =
        memory_grow(wordpiece->added, &wordpiece->added_capacity, wordpiece->n_added + 1, sizeof *grown);
    if (!grown) {
        text_free(&text);
        return false;
    }
    wordpiece->added = grown;
    token.content = text.bytes;
    token.length = text.length;
    token.place = wordpiece->n_added;
    grown[wordpiece->n_added++] = token;
    wordpiece->n_raw += !token.normalized;
    return true;
}

/* Of two with the same content the one that was added first counts. */
static int compare_added(const void *a, const void *b)
{
    const struct added_token *x = a, *y = b;
    if (x->normalized != y->normalized)
        return x->normalized ? 1 : -1;
    int order = memcmp(x->content, y->content, x->length < y->length ? x->length : y->length);
    if (order == 0)
        order = (x->length > y->length) - (x->length < y->length);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

void wordpiece_sort(struct wordpiece *wordpiece)
{
    if (wordpiece->n_added)
        qsort(wordpiece->added, wordpiece->n_added, sizeof *wordpiece->added, compare_added);
}

void wordpiece_free(struct wordpiece *wordpiece)
{
    vocab_free(&wordpiece->vocab);
    for (size_t i = 0; i < wordpiece->n_added; i++)
        free(wordpiece->added[i].content);
    free(wordpiece->added);
    text_free(&wordpiece->continuing_prefix);
    *wordpiece = (struct wordpiece){0};
}

/* Appends an id, or notes that there is no room for it. */
static bool emit(struct encoder *encoder, int32_t id)
{
    if (encoder->tokens->count == encoder->limit) {
        encoder->full = true;
        return true;
    }
    return token_ids_push(encoder->tokens, id);
}

/* ---- WordPiece ----------------------------------------------------------------------------- */

static size_t count_characters(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += utf8_starts_character(text[i]);
    return count;
}

/* The longest token that word starts with; *length receives its length in the word. */
static int32_t longest_piece(const struct wordpiece *wordpiece, bool first, const char *word, size_t available,
                             size_t *length)
{
    const char *prefix = wordpiece->continuing_prefix.bytes;
    size_t prefix_length = first ? 0 : wordpiece->continuing_prefix.length;
    /* Most words are a token, and so are most rests of the others. */
    *length = available;
    int32_t id = vocab_find(&wordpiece->vocab, prefix, prefix_length, word, available);
    return id >= 0 ? id : vocab_find_longest(&wordpiece->vocab, prefix, prefix_length, word, available, length);
}

/* Greedy: the longest piece each time. A word that does not come out even is one unknown token. */
static bool encode_word(struct encoder *encoder, const char *word, size_t length)
{
    const struct wordpiece *wordpiece = encoder->wordpiece;
    if (count_characters(word, length) > wordpiece->max_word_chars)
        return emit(encoder, wordpiece->unknown_id);
    size_t first = encoder->tokens->count;
    for (size_t at = 0, step = 0; at < length; at += step) {
        int32_t id = longest_piece(wordpiece, at == 0, word + at, length - at, &step);
        if (id < 0) {
            encoder->tokens->count = first;
            encoder->full = false;
            return emit(encoder, wordpiece->unknown_id);
        }
        if (!emit(encoder, id))
            return false;
    }
    return true;
}

/* Words end at whitespace, and punctuation is a word of its own. */
static bool encode_words(struct encoder *encoder, const char *text, size_t length)
{
    size_t begin = 0;
    for (size_t at = 0, step; at < length && !encoder->full; at += step) {
        int32_t code_point;
        step = utf8_decode(text + at, length - at, &code_point);
        bool space = bert_is_whitespace(code_point);
        if (!space && !bert_is_punctuation(code_point))
            continue;
        if (begin < at && !encode_word(encoder, text + begin, at - begin))
            return false;
        begin = at + step;
        if (!space && !encoder->full && !encode_word(encoder, text + at, step))
            return false;
    }
    return begin == length || encoder->full || encode_word(encoder, text + begin, length - begin);
}

/* ---- added tokens -------------------------------------------------------------------------- */

/* Of those in order from begin to end - 1, whose first `at` bytes are the same: the first one that has no less than
 * that byte there. One that ends there comes before all others. */
static size_t first_with(const struct added_token *added, size_t begin, size_t end, size_t at, int byte)
{
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        int found = added[middle].length > at ? (unsigned char)added[middle].content[at] : -1;
        if (found < byte)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Byte by byte, as long as there is one that goes on so: however many there are. */
static const struct added_token *longest_added(const struct wordpiece *wordpiece, bool normalized, const char *text,
                                               size_t length)
{
    const struct added_token *added = wordpiece->added, *longest = NULL;
    size_t begin = normalized ? wordpiece->n_raw : 0, end = normalized ? wordpiece->n_added : wordpiece->n_raw;
    if (begin == end || memcmp(text, added[begin].content, 1) < 0 || memcmp(text, added[end - 1].content, 1) > 0)
        return NULL; /* as at most places */
    for (size_t at = 0; at < length && begin < end; at++) {
        int byte = (unsigned char)text[at];
        begin = first_with(added, begin, end, at, byte);
        end = first_with(added, begin, end, at, byte + 1);
        if (begin < end && added[begin].length == at + 1)
            longest = &added[begin];
    }
    return longest;
}

/* The leftmost longest added token from `from` on; *at receives its place. NULL: there is none. */
static const struct added_token *find_added(const struct wordpiece *wordpiece, bool normalized, const char *text,
                                            size_t from, size_t length, size_t *at)
{
    if (normalized && wordpiece->n_raw == wordpiece->n_added)
        return NULL;
    for (*at = from; *at < length; ++*at) {
        const struct added_token *token = longest_added(wordpiece, normalized, text + *at, length - *at);
        if (token)
            return token;
    }
    return NULL;
}

static bool encode_raw(struct encoder *encoder, const char *text, size_t length);

/* The end of text without the whitespace that ends it. */
static size_t end_of_words(const char *text, size_t begin, size_t end)
{
    size_t words = begin;
    for (size_t at = begin; at < end;) {
        int32_t code_point;
        at += utf8_decode(text + at, end - at, &code_point);
        if (!bert_is_whitespace(code_point))
            words = at;
    }
    return words;
}

static size_t skip_whitespace(const char *text, size_t begin, size_t end)
{
    for (size_t at = begin; at < end;) {
        int32_t code_point;
        size_t step = utf8_decode(text + at, end - at, &code_point);
        if (!bert_is_whitespace(code_point))
            return at;
        at += step;
    }
    return end;
}

/* Splits at the added tokens and encodes what is between them. One that begins in whitespace that the one before it
 * has taken along counts, unless it takes whitespace along and has nothing left. */
static bool encode_between(struct encoder *encoder, bool normalized, const char *text, size_t length)
{
    bool (*encode)(struct encoder *, const char *, size_t) = normalized ? encode_words : encode_raw;
    size_t done = 0, from = 0, at;
    size_t whitespace = 0; /* where that behind an added token ends */
    const struct added_token *token;
    while (!encoder->full && (token = find_added(encoder->wordpiece, normalized, text, from, length, &at))) {
        from = at + token->length;
        if (token->rstrip)
            whitespace = skip_whitespace(text, whitespace > from ? whitespace : from, length);
        size_t begin = token->lstrip ? end_of_words(text, done, at) : at;
        size_t end = token->rstrip ? whitespace : from;
        if (done < begin && !encode(encoder, text + done, begin - done))
            return false;
        if (begin < end && !encoder->full && !emit(encoder, token->id))
            return false;
        done = end;
    }
    return encoder->full || encode(encoder, text + done, length - done);
}

/* The end of a piece that can be normalised by itself: after whitespace that stays whitespace. */
static size_t piece_end(const struct wordpiece *wordpiece, const char *text, size_t begin, size_t length)
{
    if (wordpiece->n_raw < wordpiece->n_added || length - begin <= PIECE_BYTES)
        return length;
    for (size_t at = begin; at < length;) {
        int32_t code_point;
        at += utf8_decode(text + at, length - at, &code_point);
        bool space = bert_is_whitespace(code_point) && !(wordpiece->clean_text && bert_is_removed(code_point));
        if (space && at - begin >= PIECE_BYTES)
            return at;
    }
    return length;
}

static bool encode_raw(struct encoder *encoder, const char *text, size_t length)
{
    struct text normalized = {0};
    bool done = true;
    for (size_t begin = 0, end; done && !encoder->full && begin < length; begin = end) {
        end = piece_end(encoder->wordpiece, text, begin, length);
        normalized.length = 0;
        done = normalize(encoder->wordpiece, text + begin, end - begin, &normalized);
        if (done && normalized.length)
            done = encode_between(encoder, true, normalized.bytes, normalized.length);
    }
    text_free(&normalized);
    return done;
}

bool wordpiece_encode(const struct wordpiece *wordpiece, const char *text, size_t length, size_t limit,
                      struct token_ids *tokens, bool *truncated)
{
    struct encoder encoder = {wordpiece, tokens, tokens->count + limit, false};
    bool done = encode_between(&encoder, false, text, length);
    *truncated = encoder.full;
    return done;
}
