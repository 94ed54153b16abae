/* SPDX-License-Identifier: MIT
 * Lines of text from files or standard input, one after another. */
#ifndef TOOLS_LINES_H
#define TOOLS_LINES_H

#include "memory.h"

#include <stddef.h>
#include <stdio.h>

/* Without what ends the line. */
#define LINE_BYTES_MAX ((size_t)64 << 20)

enum line_status {
    LINE_READ,
    LINE_END,
    LINE_ERROR /* after a message */
};

/* Set names and count; the rest starts as 0. */
struct line_reader {
    char **names; /* "-" is standard input; no names at all are standard input, too */
    size_t count;
    size_t next; /* the name to open next */
    FILE *stream;
    const char *name;
    size_t number; /* of the line in its file, from 1 */
    struct text line;
};

/* Reads the next line into reader->line, without the line feed or carriage return and line feed that
 * end it. The last line of a file need not end so. */
enum line_status line_reader_next(struct line_reader *reader);
void line_reader_close(struct line_reader *reader);

#endif
