/* SPDX-License-Identifier: MIT
 * Where output goes: standard output, or a file that appears only when it is complete. */
#ifndef TOOLS_TARGET_H
#define TOOLS_TARGET_H

#include <stdbool.h>
#include <stdio.h>

struct target {
    FILE *stream;
    const char *name; /* for messages */
    char *path;       /* the file that the temporary one becomes, or NULL: written in place */
    char *temporary;
};

/* Opens path, or standard output if it is NULL or the file that it goes to. A regular file is written under a temporary
 * name beside it, which a signal removes. path is kept. false after a message. */
bool target_open(struct target *target, const char *path);

/* Whether the stream can be written to without error so far; says so if not. */
bool target_check(struct target *target);

/* Closes the stream and gives the file its name. false after a message; nothing is left then. */
bool target_commit(struct target *target);

/* Closes the stream and removes the temporary file. */
void target_abandon(struct target *target);

#endif
