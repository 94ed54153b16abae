/* SPDX-License-Identifier: MIT
 * The command line of heed-embed. */
#include "config.h"

#include "diag.h"
#include "levels.h"
#include "options.h"
#include "program.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_TOP 10
#define DEFAULT_BATCH_TOKENS 1024
#define THREADS_MAX 65536

/* No option has a letter, except those that every program has. */
enum {
    OPTION_MODEL = 256,
    OPTION_OUTPUT,
    OPTION_FORMAT,
    OPTION_SIMILAR,
    OPTION_TOP,
    OPTION_SIMILARITY,
    OPTION_TOKENS,
    OPTION_POOLING,
    OPTION_NORMALIZE,
    OPTION_NO_NORMALIZE,
    OPTION_MAX_TOKENS,
    OPTION_BATCH_TOKENS,
    OPTION_THREADS,
    OPTION_ISA,
    OPTION_QUIET,
    OPTION_VERBOSE
};

static const struct option long_options[] = {
    {"model", required_argument, NULL, OPTION_MODEL},
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {"format", required_argument, NULL, OPTION_FORMAT},
    {"similar", required_argument, NULL, OPTION_SIMILAR},
    {"top", required_argument, NULL, OPTION_TOP},
    {"similarity", no_argument, NULL, OPTION_SIMILARITY},
    {"tokens", no_argument, NULL, OPTION_TOKENS},
    {"pooling", required_argument, NULL, OPTION_POOLING},
    {"normalize", no_argument, NULL, OPTION_NORMALIZE},
    {"no-normalize", no_argument, NULL, OPTION_NO_NORMALIZE},
    {"max-tokens", required_argument, NULL, OPTION_MAX_TOKENS},
    {"batch-tokens", required_argument, NULL, OPTION_BATCH_TOKENS},
    {"threads", required_argument, NULL, OPTION_THREADS},
    {"isa", required_argument, NULL, OPTION_ISA},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"verbose", no_argument, NULL, OPTION_VERBOSE},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static const char help[] = "usage: heed-embed --model DIR [OPTION]... [FILE]...\n"
                           "Turns each line of text, from files or standard input, into a sentence embedding.\n"
                           "\n"
                           "  --model DIR        model directory: config.json, tokenizer.json or vocab.txt,\n"
                           "                     model.safetensors\n"
                           "  --format FORMAT    jsonl (default), npy or text\n"
                           "  --output FILE      write FILE, which appears when it is complete;\n"
                           "                     - is standard output, as without this option\n"
                           "  --similar TEXT     print the lines that are most similar to TEXT\n"
                           "  --top N            how many of them (default 10)\n"
                           "  --similarity       print the cosines between all lines, at most 100\n"
                           "  --tokens           print the token ids of each line\n"
                           "  --pooling MODE     mean or cls (default: as the model says)\n"
                           "  --normalize, --no-normalize\n"
                           "                     embeddings of length 1 or not (default: as the model says)\n"
                           "  --max-tokens N     cut lines to N tokens (default: as the model says)\n"
                           "  --batch-tokens N   tokens that are computed at once (default 1024)\n"
                           "  --threads N        threads (default: the CPUs that may be used)\n"
                           "  --isa NAME         instruction set, see heed-info (default: HEED_ISA, or the best)\n"
                           "  --quiet            no progress, no notes\n"
                           "  --verbose          say at the end what ran and how fast\n"
                           "  --help, --version\n"
                           "\n"
                           "example: heed-embed --model all-MiniLM-L6-v2 --similar 'a cat on a mat' sentences.txt\n";

static bool usage_error(int *status)
{
    *status = EXIT_USAGE;
    return false;
}

static bool parse_number(const char *name, const char *text, size_t min, size_t max, size_t *number)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    bool digits = *text >= '0' && *text <= '9' && *end == '\0';
    if (!digits || errno || value < min || value > max) {
        diag_print("--%s %s: not a number from %zu to %zu", name, text, min, max);
        return false;
    }
    *number = (size_t)value;
    return true;
}

static bool parse_format(const char *text, enum output_format *format)
{
    static const struct {
        const char *name;
        enum output_format format;
    } formats[] = {{"jsonl", FORMAT_JSONL}, {"npy", FORMAT_NPY}, {"text", FORMAT_TEXT}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(text, formats[i].name) == 0) {
            *format = formats[i].format;
            return true;
        }
    }
    diag_print("--format %s: not jsonl, npy or text", text);
    return false;
}

static bool parse_pooling(const char *text, struct model_choice *choice)
{
    bool mean = strcmp(text, "mean") == 0;
    if (!mean && strcmp(text, "cls") != 0) {
        diag_print("--pooling %s: not mean or cls", text);
        return false;
    }
    choice->has_pooling = true;
    choice->pooling = mean ? HEED_POOLING_MEAN : HEED_POOLING_FIRST;
    return true;
}

static void choose_normalize(struct model_choice *choice, bool normalize)
{
    choice->has_normalize = true;
    choice->normalize = normalize;
}

static bool parse_option(struct options *options, int option, char *argument)
{
    switch (option) {
    case OPTION_MODEL:
        options->model = argument;
        return true;
    case OPTION_OUTPUT:
        options->output = strcmp(argument, "-") == 0 ? NULL : argument;
        return true;
    case OPTION_FORMAT:
        options->has_format = true;
        return parse_format(argument, &options->format);
    case OPTION_SIMILAR:
        options->similar = argument;
        return true;
    case OPTION_TOP:
        return parse_number("top", argument, 1, SIZE_MAX / 4, &options->top);
    case OPTION_SIMILARITY:
        options->similarity = true;
        return true;
    case OPTION_TOKENS:
        options->tokens = true;
        return true;
    case OPTION_POOLING:
        return parse_pooling(argument, &options->choice);
    case OPTION_NORMALIZE:
    case OPTION_NO_NORMALIZE:
        choose_normalize(&options->choice, option == OPTION_NORMALIZE);
        return true;
    case OPTION_MAX_TOKENS:
        return parse_number("max-tokens", argument, 1, INT32_MAX, &options->max_tokens);
    case OPTION_BATCH_TOKENS:
        return parse_number("batch-tokens", argument, 1, INT32_MAX, &options->batch_tokens);
    case OPTION_THREADS:
        return parse_number("threads", argument, 1, THREADS_MAX, &options->threads);
    case OPTION_ISA:
        options->level = argument;
        return true;
    case OPTION_QUIET:
        options->quiet = true;
        return true;
    case OPTION_VERBOSE:
        options->verbose = true;
        return true;
    default:
        return false;
    }
}

static bool is_empty(const char *name)
{
    return name && *name == '\0';
}

static bool check_names(const struct options *options)
{
    const char *message = NULL;
    if (is_empty(options->model))
        message = "the name of the model directory is empty";
    else if (is_empty(options->output))
        message = "the name of the output file is empty";
    for (size_t i = 0; !message && i < options->n_files; i++)
        if (is_empty(options->files[i]))
            message = "the name of an input file is empty";
    if (message)
        diag_print("%s", message);
    return !message;
}

/* Whether the options fit one another. */
static bool check_options(const struct options *options)
{
    const char *message = NULL;
    if (!options->model)
        message = "--model DIR is missing; see --help";
    else if ((options->similar != NULL) + options->similarity + options->tokens > 1)
        message = "only one of --similar, --similarity and --tokens can be used";
    else if (options->top && !options->similar)
        message = "--top needs --similar";
    else if (options->has_format && (options->similar || options->similarity || options->tokens))
        message = "--format does not go with --similar, --similarity or --tokens";
    else if (options->format == FORMAT_NPY && !options->output && isatty(STDOUT_FILENO))
        message = "--format npy is not for a terminal; use --output FILE";
    if (message)
        diag_print("%s", message);
    return !message && check_names(options) && (!options->level || level_check(options->level));
}

static bool print_and_end(const char *text, int *status)
{
    fputs(text, stdout);
    *status = program_end(EXIT_DONE);
    return false;
}

bool options_parse(struct options *options, int argc, char **argv, int *status)
{
    *options = (struct options){.format = FORMAT_JSONL, .batch_tokens = DEFAULT_BATCH_TOKENS};
    int option;
    while ((option = getopt_long(argc, argv, ":hV", long_options, NULL)) != -1) {
        if (option == 'h')
            return print_and_end(help, status);
        if (option == 'V')
            return print_and_end("heed-embed " PACKAGE_VERSION "\n", status);
        if (option == '?' || option == ':') {
            program_refuse_option(option, argv, long_options);
            return usage_error(status);
        }
        if (!parse_option(options, option, optarg))
            return usage_error(status);
    }
    options->files = argv + optind;
    options->n_files = (size_t)(argc - optind);
    if (!check_options(options))
        return usage_error(status);
    if (options->tokens)
        options->format = FORMAT_TOKENS;
    if (!options->top)
        options->top = DEFAULT_TOP;
    return true;
}
