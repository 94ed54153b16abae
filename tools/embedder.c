/* SPDX-License-Identifier: MIT
 * From lines of text to embeddings: collects lines into ragged batches and computes them. */
#include "config.h"

#include "diag.h"
#include "embedder.h"
#include "levels.h"
#include "program.h"
#include "utf8.h"

#include <stdlib.h>

/* Bytes of text that wait at most: of a line that is cut, most of them become no tokens. */
#define BATCH_TEXT_MAX ((size_t)16 << 20)

/* ---- batches ------------------------------------------------------------------------------- */

static bool set_offset(size_t **offsets, size_t *capacity, size_t index, size_t value)
{
    size_t *grown = memory_grow(*offsets, capacity, index + 1, sizeof *grown);
    if (!grown)
        return false;
    *offsets = grown;
    grown[index] = value;
    return true;
}

/* Notes where the text and tokens that were appended so far end, and the next line begins. */
static bool mark_lines(struct batch *batch, size_t count)
{
    batch->count = count;
    return set_offset(&batch->text_offsets, &batch->text_capacity, count, batch->text.length) &&
           set_offset(&batch->offsets, &batch->capacity, count, batch->tokens.count);
}

static void empty_batch(struct batch *batch)
{
    batch->count = batch->text.length = batch->tokens.count = 0;
}

static void free_batch(struct batch *batch)
{
    text_free(&batch->text);
    free(batch->tokens.ids);
    free(batch->text_offsets);
    free(batch->offsets);
}

/* ---- loading ------------------------------------------------------------------------------- */

/* The threads are the program's own: those of GNU OpenMP spin at the end of every operator, which
 * takes the CPUs from the ones that still work where other programs are busy, too. */
static bool create_context(struct embedder *embedder, const struct options *options)
{
    heed_context_options wanted = HEED_CONTEXT_OPTIONS_INIT;
    /* A level of the command line was checked with it. */
    if (!options->level && !level_check(NULL))
        return false;
    embedder->pool = pool_create(options->threads ? options->threads : heed_default_threads());
    if (!embedder->pool)
        return false;
    wanted.level = options->level;
    wanted.executor = HEED_EXECUTOR_HOST;
    wanted.threads = pool_workers(embedder->pool);
    wanted.host = (heed_host){pool_run, embedder->pool};
    heed_status status = heed_context_create(&embedder->context, &wanted);
    if (status)
        diag_print("cannot start: %s", heed_status_string(status));
    return !status;
}

static size_t tokens_around(const struct embedder *embedder)
{
    return embedder->tokenizer.prefix.count + embedder->tokenizer.suffix.count;
}

/* The limit on the tokens of a line that the model's files give. */
static bool set_max_tokens(struct embedder *embedder, const char *directory)
{
    const struct model_config *config = &embedder->config;
    const char *file = "config.json";
    embedder->max_tokens = config->max_positions;
    size_t asked = config->max_sequence ? config->max_sequence : embedder->tokenizer.max_length;
    if (asked && asked < config->max_positions) {
        file = config->max_sequence ? "sentence_bert_config.json" : embedder->tokenizer.max_length_file;
        embedder->max_tokens = asked;
    }
    size_t around = tokens_around(embedder);
    if (embedder->max_tokens < around)
        diag_print("%s/%s: a limit of %zu tokens leaves no room for the %zu around every line", directory, file,
                   embedder->max_tokens, around);
    return embedder->max_tokens >= around;
}

/* Takes the limit of the command line, which the model must allow. */
static bool choose_max_tokens(struct embedder *embedder, size_t chosen)
{
    size_t around = tokens_around(embedder), positions = embedder->config.max_positions;
    if (chosen > positions)
        diag_print("--max-tokens %zu: the model has %zu positions", chosen, positions);
    else if (chosen < around)
        diag_print("--max-tokens %zu: leaves no room for the %zu tokens around every line", chosen, around);
    embedder->max_tokens = chosen;
    return chosen >= around && chosen <= positions;
}

static int load(struct embedder *embedder, const struct options *options)
{
    bool weights = options->format != FORMAT_TOKENS;
    if ((weights && !create_context(embedder, options)) ||
        !model_config_load(&embedder->config, options->model, &options->choice) ||
        !tokenizer_load(&embedder->tokenizer, options->model, embedder->config.vocab_size))
        return EXIT_FAILED;
    if (options->max_tokens && !choose_max_tokens(embedder, options->max_tokens))
        return EXIT_USAGE;
    if (!options->max_tokens && !set_max_tokens(embedder, options->model))
        return EXIT_FAILED;
    bool done = !weights || model_load(&embedder->model, options->model, &embedder->config, embedder->context);
    return done ? EXIT_DONE : EXIT_FAILED;
}

int embedder_open(struct embedder *embedder, const struct options *options)
{
    *embedder = (struct embedder){.batch_tokens = options->batch_tokens};
    int status = load(embedder, options);
    if (status != EXIT_DONE)
        embedder_close(embedder);
    return status;
}

void embedder_close(struct embedder *embedder)
{
    free_batch(&embedder->batch);
    free(embedder->embeddings);
    model_scratch_free(&embedder->scratch);
    model_free(&embedder->model);
    tokenizer_free(&embedder->tokenizer);
    heed_context_destroy(embedder->context);
    pool_destroy(embedder->pool);
    *embedder = (struct embedder){0};
}

/* ---- lines --------------------------------------------------------------------------------- */

void embedder_start(struct embedder *embedder, embedder_sink sink, void *state)
{
    embedder->sink = sink;
    embedder->sink_state = state;
    embedder->lines = embedder->tokens = embedder->replaced = embedder->truncated = 0;
}

/* A line without tokens counts as one: it has an embedding, too. */
static bool is_complete(const struct batch *batch, size_t batch_tokens)
{
    return batch->tokens.count >= batch_tokens || batch->count >= batch_tokens || batch->text.length >= BATCH_TEXT_MAX;
}

bool embedder_add(struct embedder *embedder, const char *text, size_t length)
{
    struct batch *batch = &embedder->batch;
    bool truncated = false;
    if ((batch->count == 0 && !mark_lines(batch, 0)) || !utf8_repair(text, length, &batch->text, &embedder->replaced))
        return false;
    size_t begin = batch->text_offsets[batch->count];
    if (!tokenizer_encode(&embedder->tokenizer, batch->text.bytes + begin, batch->text.length - begin,
                          embedder->max_tokens, &batch->tokens, &truncated) ||
        !mark_lines(batch, batch->count + 1))
        return false;
    embedder->truncated += truncated;
    return !is_complete(batch, embedder->batch_tokens) || embedder_flush(embedder);
}

static bool compute(struct embedder *embedder)
{
    const struct batch *batch = &embedder->batch;
    if (!embedder->context)
        return true;
    float *grown = memory_grow(embedder->embeddings, &embedder->embeddings_capacity, batch->count,
                               embedder->config.hidden_size * sizeof *grown);
    if (!grown)
        return false;
    embedder->embeddings = grown;
    const struct model_batch sequences = {batch->count, batch->offsets, batch->tokens.ids};
    return model_embed(&embedder->model, &sequences, &embedder->scratch, grown);
}

static struct row row_of(const struct embedder *embedder, size_t index)
{
    const struct batch *batch = &embedder->batch;
    size_t hidden = embedder->config.hidden_size;
    size_t begin = batch->offsets[index], end = batch->offsets[index + 1];
    return (struct row){
        .number = embedder->lines + index + 1,
        .text = batch->text.bytes + batch->text_offsets[index],
        .length = batch->text_offsets[index + 1] - batch->text_offsets[index],
        .ids = begin < end ? batch->tokens.ids + begin : NULL,
        .n_ids = end - begin,
        .values = embedder->context ? embedder->embeddings + index * hidden : NULL,
        .cols = hidden,
    };
}

bool embedder_flush(struct embedder *embedder)
{
    struct batch *batch = &embedder->batch;
    if (batch->count == 0)
        return true;
    if (!compute(embedder))
        return false;
    for (size_t i = 0; i < batch->count; i++) {
        struct row row = row_of(embedder, i);
        if (!embedder->sink(embedder->sink_state, &row))
            return false;
    }
    embedder->lines += batch->count;
    embedder->tokens += batch->tokens.count;
    empty_batch(batch);
    return true;
}
