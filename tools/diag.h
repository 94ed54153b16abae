/* SPDX-License-Identifier: MIT
 * Messages of the programs: one line each on standard error. */
#ifndef TOOLS_DIAG_H
#define TOOLS_DIAG_H

#include <stddef.h>

#if defined(__GNUC__)
#define DIAG_PRINTF __attribute__((format(printf, 1, 2)))
#else
#define DIAG_PRINTF
#endif

/* The name that starts every message; it is kept, not copied. */
void diag_set_program(const char *name);

/* Replaces every byte of control characters, which could drive a terminal or turn its text, in UTF-8 that a NUL
 * follows. */
void diag_replace_controls(char *text, size_t length, char replacement);

/* Prints "<program>: <message>". Control characters of the message, which may quote file names and
 * model files, become '?', so that it stays one line and cannot drive a terminal. Of one of more than 1000 bytes the
 * middle is left out. */
DIAG_PRINTF void diag_print(const char *format, ...);

/* Shows a line on the terminal that is standard error, in place of the one shown before. The next
 * message takes it away. */
DIAG_PRINTF void diag_show(const char *format, ...);

/* Takes away the line that diag_show has shown, if there is one. */
void diag_clear(void);

#endif
