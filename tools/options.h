/* SPDX-License-Identifier: MIT
 * The command line of heed-embed. */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include "model_config.h"
#include "output.h"

#include <stdbool.h>
#include <stddef.h>

struct options {
    const char *model;   /* directory */
    const char *output;  /* NULL: standard output */
    const char *similar; /* NULL: no ranking */
    const char *level;   /* NULL: the default one */
    bool similarity, quiet, verbose;
    bool has_format, tokens;
    enum output_format format; /* FORMAT_TOKENS if tokens */
    struct model_choice choice;
    size_t top, threads, batch_tokens;
    size_t max_tokens; /* 0: as the model says */
    char **files;
    size_t n_files;
};

/* Reads the command line. true: go on; false: end with *status, after help, version or a message. */
bool options_parse(struct options *options, int argc, char **argv, int *status);

#endif
