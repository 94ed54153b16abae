/* SPDX-License-Identifier: MIT
 * Lines of text from files or standard input, one after another. */
#include "config.h"

#include "diag.h"
#include "lines.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool open_next(struct line_reader *reader)
{
    const char *name = reader->count ? reader->names[reader->next] : "-";
    reader->next++;
    reader->number = 0;
    if (strcmp(name, "-") == 0) {
        reader->name = "standard input";
        reader->stream = stdin;
        return true;
    }
    reader->name = name;
    reader->stream = fopen(name, "rb");
    if (!reader->stream)
        diag_print("%s: %s", name, strerror(errno));
    return reader->stream != NULL;
}

static void close_stream(struct line_reader *reader)
{
    if (reader->stream && reader->stream != stdin)
        fclose(reader->stream);
    reader->stream = NULL;
}

/* Reads up to a line feed. LINE_END: nothing was left. */
static enum line_status read_line(struct line_reader *reader)
{
    reader->number++;
    reader->line.length = 0;
    /* Even an empty line has an address. */
    if (!text_append(&reader->line, "", 0))
        return LINE_ERROR;
    int c;
    /* A byte more than the limit may be the carriage return. */
    while ((c = getc_unlocked(reader->stream)) != EOF && c != '\n' && reader->line.length <= LINE_BYTES_MAX) {
        char byte = (char)c;
        if (!text_append(&reader->line, &byte, 1))
            return LINE_ERROR;
    }
    if (c == EOF && ferror(reader->stream)) {
        diag_print("%s:%zu: %s", reader->name, reader->number, strerror(errno));
        return LINE_ERROR;
    }
    if (c == EOF && reader->line.length == 0)
        return LINE_END;
    if (c == '\n' && reader->line.length && reader->line.bytes[reader->line.length - 1] == '\r')
        reader->line.length--;
    if (reader->line.length > LINE_BYTES_MAX) {
        diag_print("%s:%zu: line is longer than %zu bytes", reader->name, reader->number, LINE_BYTES_MAX);
        return LINE_ERROR;
    }
    return LINE_READ;
}

enum line_status line_reader_next(struct line_reader *reader)
{
    size_t streams = reader->count ? reader->count : 1;
    for (;;) {
        if (!reader->stream) {
            if (reader->next == streams)
                return LINE_END;
            if (!open_next(reader))
                return LINE_ERROR;
        }
        enum line_status status = read_line(reader);
        if (status != LINE_END)
            return status;
        close_stream(reader);
    }
}

void line_reader_close(struct line_reader *reader)
{
    close_stream(reader);
    text_free(&reader->line);
}
