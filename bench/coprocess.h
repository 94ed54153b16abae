/* SPDX-License-Identifier: MIT
 * A program that answers requests, line by line, over pipes.
 */
#ifndef BENCH_COPROCESS_H
#define BENCH_COPROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct coprocess {
    FILE *to, *from;
    long id;
};

/* Starts argv[0], found by PATH. false if it cannot be started; errno says why. */
bool coprocess_start(struct coprocess *process, char *const argv[]);

/* Reads a line without its end; false if there is none, or it does not fit. */
bool coprocess_hear(struct coprocess *process, char *line, size_t size);

/* Sends a line. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
bool coprocess_say(struct coprocess *process, const char *format, ...);

/* Lets it read the end of its input, and waits for its own end. */
void coprocess_end(struct coprocess *process);

#endif
