/* SPDX-License-Identifier: MIT
 * heed-embed: sentence embeddings of lines of text. */
#include "config.h"

#include "diag.h"
#include "embedder.h"
#include "lines.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "program.h"
#include "progress.h"
#include "similar.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What becomes of the rows: one of three, as the options say. */
struct job {
    const struct options *options;
    struct target target;
    struct output output;
    struct ranking ranking;
    struct similarity similarity;
};

static bool take_row(void *state, const struct row *row)
{
    struct job *job = state;
    if (job->options->similar)
        return ranking_add(&job->ranking, row);
    if (job->options->similarity)
        return similarity_add(&job->similarity, row);
    return output_row(&job->output, row);
}

static bool take_query(void *state, const struct row *row)
{
    struct ranking *ranking = state;
    ranking->query = memory_aligned_array(row->cols, sizeof *ranking->query);
    if (ranking->query)
        memcpy(ranking->query, row->values, row->cols * sizeof *ranking->query);
    return ranking->query != NULL;
}

/* What was not embedded as it was given: in lines, or in the text of an option. */
static void report_changes(const struct options *options, const struct embedder *embedder, const char *option)
{
    if (embedder->replaced && !options->quiet)
        diag_print("%sinvalid UTF-8 sequences replaced by U+FFFD: %zu", option, embedder->replaced);
    if (embedder->truncated && !options->quiet)
        diag_print("%slines cut to %zu tokens: %zu", option, embedder->max_tokens, embedder->truncated);
}

/* Embeds the text that the lines are compared with. */
static bool embed_query(struct job *job, struct embedder *embedder)
{
    const char *query = job->options->similar;
    embedder_start(embedder, take_query, &job->ranking);
    if (!embedder_add(embedder, query, strlen(query)) || !embedder_flush(embedder))
        return false;
    report_changes(job->options, embedder, "--similar: ");
    return ranking_start(&job->ranking);
}

static bool start_job(struct job *job, struct embedder *embedder)
{
    const struct options *options = job->options;
    size_t cols = embedder->config.hidden_size;
    job->ranking = (struct ranking){.context = embedder->context, .top = options->top, .cols = cols};
    job->similarity = (struct similarity){.context = embedder->context, .cols = cols};
    return (!options->similar || embed_query(job, embedder)) && target_open(&job->target, options->output) &&
           output_open(&job->output, &job->target, options->format, cols);
}

static bool embed_lines(struct job *job, struct embedder *embedder)
{
    struct line_reader reader = {.names = job->options->files, .count = job->options->n_files};
    struct progress progress;
    enum line_status status;
    bool done = true;
    progress_start(&progress, job->options->quiet);
    embedder_start(embedder, take_row, job);
    while (done && (status = line_reader_next(&reader)) != LINE_END) {
        done = status == LINE_READ && embedder_add(embedder, reader.line.bytes, reader.line.length);
        progress_update(&progress, embedder->lines);
    }
    done = done && embedder_flush(embedder);
    diag_clear();
    line_reader_close(&reader);
    return done;
}

static bool finish_job(struct job *job)
{
    bool done = true;
    if (job->options->similar)
        ranking_print(&job->ranking, job->target.stream);
    else if (job->options->similarity)
        done = similarity_print(&job->similarity, job->target.stream);
    else
        done = output_finish(&job->output);
    return done && target_commit(&job->target);
}

static void close_job(struct job *job)
{
    output_close(&job->output);
    target_abandon(&job->target);
    ranking_free(&job->ranking);
    similarity_free(&job->similarity);
}

static void report(const struct options *options, const struct embedder *embedder, double seconds)
{
    report_changes(options, embedder, "");
    if (options->verbose && embedder->context)
        diag_print("level %s, threads: %zu, lines: %zu, tokens: %zu, %.3f s, %.1f lines/s, %.0f tokens/s",
                   heed_context_level(embedder->context), heed_context_threads(embedder->context), embedder->lines,
                   embedder->tokens, seconds, (double)embedder->lines / seconds, (double)embedder->tokens / seconds);
}

static int run(const struct options *options)
{
    struct embedder embedder;
    struct job job = {.options = options};
    int status = embedder_open(&embedder, options);
    if (status != EXIT_DONE)
        return status;
    bool done = start_job(&job, &embedder);
    double started = progress_clock();
    done = done && embed_lines(&job, &embedder);
    double seconds = progress_clock() - started;
    done = done && finish_job(&job);
    close_job(&job);
    if (done)
        report(options, &embedder, seconds);
    embedder_close(&embedder);
    return done ? EXIT_DONE : EXIT_FAILED;
}

int main(int argc, char **argv)
{
    struct options options;
    int status;
    if (!program_start("heed-embed"))
        return EXIT_FAILED;
    if (!options_parse(&options, argc, argv, &status))
        return status;
    return run(&options);
}
