/* SPDX-License-Identifier: MIT
 * Tests of the tokenizer of heed-embed, with a small vocabulary. Prints TAP. */
#include "config.h"

#include "../tools/diag.h"
#include "../tools/utf8.h"
#include "../tools/wordpiece.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_LIMIT 100000
#define EXPECTED_MAX 512

static const char *const vocabulary[] = {"[UNK]",
                                         "[CLS]",
                                         "[SEP]",
                                         "[MASK]",
                                         "a",
                                         "b",
                                         "ab",
                                         "un",
                                         "##able",
                                         "##do",
                                         "##s",
                                         "cafe",
                                         "eleve",
                                         "i",
                                         "ss",
                                         "new",
                                         "york",
                                         "!",
                                         ".",
                                         "?",
                                         "[",
                                         "]",
                                         "cls",
                                         "今",
                                         "天",
                                         "##今",
                                         "σας",
                                         "##x",
                                         "x",
                                         "é",
                                         "İ",
                                         "i\xCC\x87",
                                         "Ab",
                                         "«",
                                         "»",
                                         "$",
                                         "\xEF\xAC\x81",
                                         "한",
                                         "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB",
                                         "\xF0\x9D\x85\xA5\xF0\x9D\x85\xAD",
                                         "wonderful"};
#define VOCABULARY (sizeof vocabulary / sizeof *vocabulary)

static int count, failures;

static void check(bool passed, const char *name)
{
    count++;
    failures += !passed;
    printf("%sok %d - %s\n", passed ? "" : "not ", count, name);
}

static bool make(struct wordpiece *wordpiece, bool lowercase)
{
    *wordpiece = (struct wordpiece){.clean_text = true,
                                    .handle_chinese_chars = true,
                                    .strip_accents = lowercase,
                                    .lowercase = lowercase,
                                    .max_word_chars = 100};
    bool done = text_append(&wordpiece->continuing_prefix, "##", 2);
    for (size_t i = 0; done && i < VOCABULARY; i++)
        done = vocab_put(&wordpiece->vocab, vocabulary[i], strlen(vocabulary[i]), (int32_t)i) == VOCAB_PUT;
    for (int32_t id = 1; done && id <= 3; id++)
        done = wordpiece_add(wordpiece, vocabulary[id], (struct added_token){.id = id});
    wordpiece_sort(wordpiece);
    return done;
}

/* The tokens of text, with a space after each. */
static char *tokens_of(const struct wordpiece *wordpiece, const char *text, size_t length, size_t limit,
                       bool *truncated)
{
    struct token_ids tokens = {0};
    struct text joined = {0};
    bool done = wordpiece_encode(wordpiece, text, length, limit, &tokens, truncated);
    for (size_t i = 0; done && i < tokens.count; i++) {
        const char *token = vocabulary[tokens.ids[i]];
        done = text_append(&joined, token, strlen(token)) && text_append(&joined, " ", 1);
    }
    done = done && text_append(&joined, "", 1);
    free(tokens.ids);
    if (!done)
        text_free(&joined);
    return joined.bytes;
}

static void expect_bytes(const struct wordpiece *wordpiece, const char *name, const char *text, size_t length,
                         const char *expected)
{
    bool truncated = false;
    char *found = tokens_of(wordpiece, text, length, NO_LIMIT, &truncated);
    bool passed = found && strcmp(found, expected) == 0 && !truncated;
    check(passed, name);
    if (!passed)
        printf("# got \"%s\", not \"%s\"\n", found ? found : "(nothing)", expected);
    free(found);
}

static void expect(const struct wordpiece *wordpiece, const char *name, const char *text, const char *expected)
{
    expect_bytes(wordpiece, name, text, strlen(text), expected);
}

static void test_words(const struct wordpiece *w)
{
    expect(w, "no text", "", "");
    expect(w, "spaces only", " \t  ", "");
    expect(w, "two words", "a b", "a b ");
    expect(w, "the longest piece first", "ab", "ab ");
    expect(w, "pieces", "undoables", "un ##do ##able ##s ");
    expect(w, "a piece as long as any", "wonderfuls", "wonderful ##s ");
    expect(w, "a rest without a piece makes the word unknown", "undoq", "[UNK] ");
    expect(w, "an unknown word among others", "a q b", "a [UNK] b ");
    expect(w, "punctuation splits", "a!b?.", "a ! b ? . ");
    expect(w, "symbols of ASCII count as punctuation", "a$b", "a $ b ");
    expect(w, "other punctuation splits", "«a»", "« a » ");
    expect(w, "upper case", "AB UN", "ab un ");
}

static void test_normalization(const struct wordpiece *w)
{
    expect(w, "accents, composed", "Café Élève", "cafe eleve ");
    expect(w, "accents, composed and not", "CAFÉ E\xCC\x81le\xCC\x80ve", "cafe eleve ");
    expect(w, "dotted capital I", "\xC4\xB0", "i ");
    expect(w, "ideographs are words", "今天a", "今 天 a ");
    expect(w, "an ideograph never continues", "a今", "a 今 ");
    expect(w, "Hangul is taken apart", "한", "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB ");
    expect(w, "marks that stay are ordered by class", "\xF0\x9D\x85\xAD\xF0\x9D\x85\xA5",
           "\xF0\x9D\x85\xA5\xF0\x9D\x85\xAD ");
    expect(w, "compatibility characters stay", "\xEF\xAC\x81", "\xEF\xAC\x81 ");
    expect(w, "final sigma is not special", "\xCE\xA3\xCE\xB1\xCE\xA3", "[UNK] ");
    expect(w, "controls vanish",
           "a\x07\x0B"
           "b",
           "ab ");
    expect(w, "soft hyphen and zero width space vanish",
           "a\xC2\xAD\xE2\x80\x8B"
           "b",
           "ab ");
    expect(w, "U+FFFD vanishes",
           "a\xEF\xBF\xBD"
           "b",
           "ab ");
    expect(w, "no-break and ideographic spaces separate",
           "a\xC2\xA0"
           "b\xE3\x80\x80"
           "a",
           "a b a ");
    expect(w, "tab and carriage return separate", "a\tb\ra", "a b a ");
    expect(w, "next line is a control first",
           "a\xC2\x85"
           "b",
           "ab ");
    expect_bytes(w, "NUL vanishes", "a\0b", 3, "ab ");
}

static void test_added(const struct wordpiece *w)
{
    expect(w, "an added token in the text", "a[MASK]b", "a [MASK] b ");
    expect(w, "added tokens side by side", "[CLS][SEP]", "[CLS] [SEP] ");
    expect(w, "in lower case it is text", "[cls]", "[ cls ] ");
    expect(w, "half an added token is text", "[CLS", "[ cls ");
}

static void test_cased(void)
{
    struct wordpiece w;
    if (!make(&w, false))
        return;
    expect(&w, "cased: capitals stay", "Ab ab", "Ab ab ");
    expect(&w, "cased: accents stay", "é \xC4\xB0", "é \xC4\xB0 ");
    w.lowercase = true;
    expect(&w, "lower case without stripping: two code points", "\xC4\xB0", "i\xCC\x87 ");
    wordpiece_free(&w);
}

static void test_normalized_added(void)
{
    struct wordpiece w;
    if (!make(&w, true))
        return;
    struct added_token york = {.id = 16, .normalized = true}, new = {.id = 15, .normalized = true};
    struct added_token again = {.id = 4, .normalized = true};
    check(wordpiece_add(&w, "New", new) && wordpiece_add(&w, "New York", york) && wordpiece_add(&w, "NEW", again),
          "added tokens with capitals");
    wordpiece_sort(&w);
    expect(&w, "they are found after normalisation", "a N\xC3\x89W b", "a new b ");
    expect(&w, "the longest one, with its space", "a NEW YORK b", "a york b ");
    expect(&w, "within words", "anew yorkb", "a york b ");
    expect(&w, "beside one that is looked for before", "[MASK]new", "[MASK] new ");
    wordpiece_free(&w);
}

/* What they take along is missing for those that are looked for later. */
static void test_stripping(void)
{
    struct wordpiece w;
    if (!make(&w, true))
        return;
    struct added_token cls = {.id = 1, .lstrip = true}, mask = {.id = 3, .rstrip = true}, space = {.id = 28};
    struct added_token before = {.id = 4, .normalized = true}, behind = {.id = 5, .normalized = true};
    struct added_token taking = {.id = 27, .lstrip = true};
    check(wordpiece_add(&w, "\r", taking) && wordpiece_add(&w, "<", cls) && wordpiece_add(&w, ">", mask) &&
              wordpiece_add(&w, "\t", space) && wordpiece_add(&w, " un", before) && wordpiece_add(&w, "un ", behind),
          "added tokens that begin or end with a space");
    wordpiece_sort(&w);
    expect(&w, "before what takes no space along", "un [MASK]", "b [MASK] ");
    expect(&w, "behind it", "[MASK] un", "[MASK] a ");
    expect(&w, "before what takes spaces along", "un \xE3\x80\x80<", "un [CLS] ");
    expect(&w, "behind it", "> \xE3\x80\x80un", "[MASK] un ");
    expect(&w, "on the other sides", "un > < un", "b [MASK] [CLS] a ");
    expect(&w, "only spaces", " < > ", "[CLS] [MASK] ");
    expect(&w, "one that takes spaces along, too", "a \r >", "a ##x [MASK] ");
    expect(&w, "one of which nothing is left", "> \r ", "[MASK] ");
    expect(&w, "one that is looked for together with it", "> \t un", "[MASK] x a ");
    wordpiece_free(&w);
}

/* Each takes the rest of the line along, and the one between begins in it. In quadratic time the test would not end. */
static void test_long_stripping(void)
{
    enum { TIMES = 200000 };
    struct wordpiece w;
    struct token_ids tokens = {0};
    struct text text = {0};
    struct added_token taking = {.id = 4, .rstrip = true}, other = {.id = 5};
    bool truncated, done = make(&w, true) && wordpiece_add(&w, " ", taking) && wordpiece_add(&w, "\t", other);
    wordpiece_sort(&w);
    for (size_t i = 0; done && i < TIMES; i++)
        done = text_append(&text, " \t", 2);
    alarm(10);
    done = done && wordpiece_encode(&w, text.bytes, text.length, 2 * TIMES, &tokens, &truncated);
    alarm(0);
    check(done && tokens.count == 2 * TIMES, "a long line of added tokens that are spaces");
    free(tokens.ids);
    text_free(&text);
    wordpiece_free(&w);
}

/* Every place of the text could begin any of them. */
static void test_many_added(void)
{
    enum { MANY = 100000, LENGTH = 100000 };
    struct wordpiece w;
    struct token_ids tokens = {0};
    struct text text = {0};
    bool truncated, done = make(&w, true);
    alarm(10);
    for (size_t i = 0; done && i < MANY; i++) {
        char content[32];
        snprintf(content, sizeof content, "<%zu", i);
        done = wordpiece_add(&w, content, (struct added_token){.id = 3});
    }
    wordpiece_sort(&w);
    for (size_t i = 0; done && i < LENGTH; i++)
        done = text_append(&text, "<", 1);
    done = done && text_append(&text, "<99999", 6) && text_append(&text, "a<0", 3);
    done = done && wordpiece_encode(&w, text.bytes, text.length, 2 * LENGTH, &tokens, &truncated);
    alarm(0);
    check(done && tokens.count == LENGTH + 3 && tokens.ids[LENGTH - 1] == 0 && tokens.ids[LENGTH] == 3 &&
              tokens.ids[LENGTH + 1] == 4 && tokens.ids[LENGTH + 2] == 3,
          "a hundred thousand added tokens");
    free(tokens.ids);
    text_free(&text);
    wordpiece_free(&w);
}

/* FNV-1a, folded, as vocab.c has it. */
static uint64_t hash(const char *token)
{
    uint64_t state = 0xCBF29CE484222325u;
    for (; *token; token++)
        state = (state ^ (unsigned char)*token) * 0x00000100000001B3u;
    return state ^ state >> 32;
}

/* Tokens that all belong into one slot of the first table, which are few enough for it. */
static void test_crowd(void)
{
    struct vocab crowd = {0}, even = {0};
    char token[32];
    int32_t held = 0, found = 0;
    enum vocab_status status = VOCAB_PUT;
    for (size_t i = 0; status == VOCAB_PUT && held < 500; i++) {
        snprintf(token, sizeof token, "%zu", i);
        if (hash(token) % 1024 == 0 && (status = vocab_put(&crowd, token, strlen(token), held)) == VOCAB_PUT)
            held++;
    }
    check(status == VOCAB_CROWDED && held > 100, "a vocabulary that is made for long searches is refused");
    for (size_t i = 0; found < held; i++) {
        snprintf(token, sizeof token, "%zu", i);
        if (hash(token) % 1024 == 0 && vocab_find(&crowd, "", 0, token, strlen(token)) != found++)
            break;
    }
    check(found == held, "what it holds is found");
    bool done = true;
    for (int32_t i = 0; done && i < 1000000; i++) {
        snprintf(token, sizeof token, "token%d", (int)i);
        done = vocab_put(&even, token, strlen(token), i) == VOCAB_PUT;
    }
    check(done && vocab_find(&even, "token", 5, "999999", 6) == 999999, "one of a million tokens is not");
    vocab_free(&crowd);
    vocab_free(&even);
}

static void fill(char *text, const char *piece, size_t times)
{
    *text = '\0';
    for (size_t i = 0; i < times; i++)
        strcat(text, piece);
}

static void test_long(const struct wordpiece *w)
{
    char text[EXPECTED_MAX], expected[EXPECTED_MAX + 1024];
    fill(text, "x", 100);
    strcpy(expected, "x ");
    fill(expected + 2, "##x ", 99);
    expect(w, "a word of 100 characters", text, expected);
    fill(text, "x", 101);
    expect(w, "a word of 101 characters is unknown", text, "[UNK] ");
    fill(text, "\xC3\xA9", 101);
    expect(w, "characters count, not bytes: 101", text, "[UNK] ");
}

static void test_limit(const struct wordpiece *w)
{
    static const struct {
        const char *text, *expected;
        size_t limit;
        bool truncated;
    } cases[] = {
        {"a b", "a b ", 2, false},          {"a b a", "a b ", 2, true},  {"a undo", "a un ", 2, true},
        {"a undoq", "a [UNK] ", 2, false},  {"a b!", "a b ", 2, true},   {"a b [SEP]", "a b ", 2, true},
        {"a undoq b", "a [UNK] ", 2, true}, {"a b  ", "a b ", 2, false}, {"a", "", 0, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[128];
        bool truncated = false;
        char *found = tokens_of(w, cases[i].text, strlen(cases[i].text), cases[i].limit, &truncated);
        snprintf(name, sizeof name, "\"%s\" cut to %zu tokens", cases[i].text, cases[i].limit);
        check(found && strcmp(found, cases[i].expected) == 0 && truncated == cases[i].truncated, name);
        free(found);
    }
}

/* A line that is longer than what is normalised at once. */
static void test_pieces(const struct wordpiece *w)
{
    struct text text = {0};
    struct token_ids tokens = {0};
    bool truncated = false, passed = true;
    for (size_t i = 0; passed && i < 5000; i++)
        passed = text_append(&text, "undo\xC2\xA0", 6);
    passed = passed && wordpiece_encode(w, text.bytes, text.length, NO_LIMIT, &tokens, &truncated);
    check(passed && !truncated && tokens.count == 10000, "a long line");
    for (size_t i = 0; passed && i < tokens.count; i++)
        passed = strcmp(vocabulary[tokens.ids[i]], i % 2 ? "##do" : "un") == 0;
    check(passed, "a long line, token by token");
    text.length = tokens.count = 0;
    for (size_t i = 0; passed && i < 5000; i++)
        passed = text_append(&text, "a\x0B", 2);
    passed = passed && wordpiece_encode(w, text.bytes, text.length, NO_LIMIT, &tokens, &truncated);
    check(passed && tokens.count == 1, "a long line of one word, with controls in it that vanish");
    text_free(&text);
    free(tokens.ids);
}

/* A run of marks as long as the line is not sorted in quadratic time, in which the test would not end. */
static void test_marks(const struct wordpiece *w)
{
    struct text text = {0};
    struct token_ids tokens = {0};
    bool truncated = false, passed = text_append(&text, "a", 1);
    for (size_t i = 0; passed && i < 500000; i++)
        passed = text_append(&text, i % 2 ? "\xCC\x81" : "\xCC\xA3", 2);
    passed = passed && wordpiece_encode(w, text.bytes, text.length, NO_LIMIT, &tokens, &truncated);
    check(passed && tokens.count == 1 && strcmp(vocabulary[tokens.ids[0]], "a") == 0,
          "half a million marks on a letter");
    text_free(&text);
    free(tokens.ids);
}

/* A word of which every rest nearly is a long token takes no more than quadratic time: in cubic time the test would
 * not end. */
static void test_long_token(void)
{
    enum { CHARACTERS = 10000 };
    struct wordpiece w;
    struct token_ids tokens = {0};
    bool truncated = false;
    char *token = memory_array(CHARACTERS + 3, 1);
    if (!token || !make(&w, true)) {
        free(token);
        return;
    }
    w.max_word_chars = CHARACTERS;
    memset(token, 'x', CHARACTERS + 2);
    memcpy(token, "##", 2);
    token[CHARACTERS + 2] = 's';
    bool passed = vocab_put(&w.vocab, token, CHARACTERS + 3, 0) == VOCAB_PUT &&
                  wordpiece_encode(&w, token + 2, CHARACTERS, NO_LIMIT, &tokens, &truncated);
    check(passed && tokens.count == CHARACTERS, "a word of 10000 characters, and a token of as many");
    free(tokens.ids);
    free(token);
    wordpiece_free(&w);
}

static void test_repair(void)
{
    static const struct {
        const char *name, *bytes, *repaired;
        size_t replaced;
    } cases[] = {
        {"well-formed text", "a\xC3\xA9\xE4\xBB\x8A\xF0\x9F\x98\x80", "a\xC3\xA9\xE4\xBB\x8A\xF0\x9F\x98\x80", 0},
        {"a byte that starts nothing",
         "a\xFF"
         "b",
         "a\xEF\xBF\xBD"
         "b",
         1},
        {"a lone continuation", "\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD", 2},
        {"an unfinished sequence is one",
         "\xE4\xBB"
         "b",
         "\xEF\xBF\xBD"
         "b",
         1},
        {"an unfinished sequence at the end", "\xF0\x9F\x98", "\xEF\xBF\xBD", 1},
        {"an overlong form", "\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD", 2},
        {"an overlong form of three", "\xE0\x80\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", 3},
        {"a surrogate", "\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", 3},
        {"past the last code point", "\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text repaired = {0};
        size_t replaced = 0;
        bool passed = utf8_repair(cases[i].bytes, strlen(cases[i].bytes), &repaired, &replaced);
        check(passed && replaced == cases[i].replaced && repaired.length == strlen(cases[i].repaired) &&
                  memcmp(repaired.bytes, cases[i].repaired, repaired.length) == 0,
              cases[i].name);
        text_free(&repaired);
    }
}

/* Last, since nothing is said of memory after it. */
static void test_no_memory(void)
{
    FILE *messages = tmpfile();
    int terminal = dup(STDERR_FILENO), lines = 0;
    if (!messages || terminal < 0) {
        check(false, "a file for messages");
        return;
    }
    dup2(fileno(messages), STDERR_FILENO);
    bool none = !memory_array(SIZE_MAX, 2) && !memory_aligned_array(SIZE_MAX, 2) && !memory_array(SIZE_MAX, 2);
    dup2(terminal, STDERR_FILENO);
    close(terminal);
    rewind(messages);
    for (int c; (c = getc(messages)) != EOF;)
        lines += c == '\n';
    fclose(messages);
    check(none && lines == 1, "that there is no memory is said once");
}

int main(void)
{
    struct wordpiece wordpiece;
    diag_set_program("test_wordpiece");
    if (!make(&wordpiece, true))
        return 1;
    test_words(&wordpiece);
    test_normalization(&wordpiece);
    test_added(&wordpiece);
    test_long(&wordpiece);
    test_limit(&wordpiece);
    test_pieces(&wordpiece);
    test_marks(&wordpiece);
    wordpiece_free(&wordpiece);
    test_cased();
    test_normalized_added();
    test_stripping();
    test_long_stripping();
    test_many_added();
    test_crowd();
    test_long_token();
    test_repair();
    test_no_memory();
    printf("1..%d\n", count);
    return failures ? 1 : 0;
}
