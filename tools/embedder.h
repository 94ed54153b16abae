/* SPDX-License-Identifier: MIT
 * From lines of text to embeddings: collects lines into ragged batches and computes them. */
#ifndef TOOLS_EMBEDDER_H
#define TOOLS_EMBEDDER_H

#include "memory.h"
#include "model.h"
#include "options.h"
#include "output.h"
#include "pool.h"
#include "tokenizer.h"

#include <heed.h>
#include <stdbool.h>
#include <stddef.h>

/* Receives every line in the order of the input. false, after a message, ends the work. */
typedef bool (*embedder_sink)(void *state, const struct row *row);

/* Lines that wait to be computed. The text of line i begins at text_offsets[i] and its tokens at
 * offsets[i]; both arrays have one entry more, where the next line will begin. */
struct batch {
    struct text text;
    struct token_ids tokens;
    size_t *text_offsets, *offsets;
    size_t count, text_capacity, capacity;
};

struct embedder {
    struct pool *pool;     /* of the context */
    heed_context *context; /* NULL, as are pool and model: token ids are all that is wanted */
    struct model_config config;
    struct tokenizer tokenizer;
    struct model model;
    struct model_scratch scratch;
    struct batch batch;
    float *embeddings; /* of the batch */
    size_t embeddings_capacity, max_tokens, batch_tokens;
    embedder_sink sink;
    void *sink_state;
    size_t lines, tokens, replaced, truncated; /* so far */
};

/* Loads what the options name. EXIT_DONE, or after a message the status to exit with: EXIT_USAGE where
 * the model has no use for an option. */
int embedder_open(struct embedder *embedder, const struct options *options);
void embedder_close(struct embedder *embedder);

/* From now on lines are counted anew and go to sink. */
void embedder_start(struct embedder *embedder, embedder_sink sink, void *state);

/* Takes one line; what is no UTF-8 in it is replaced and counted. false after a message. */
bool embedder_add(struct embedder *embedder, const char *text, size_t length);

/* Computes the lines that wait. false after a message. */
bool embedder_flush(struct embedder *embedder);

#endif
