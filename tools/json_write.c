/* SPDX-License-Identifier: MIT
 * Writing JSON. */
#include "config.h"

#include "json_write.h"

void json_write_string(FILE *stream, const char *text, size_t length)
{
    putc('"', stream);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            fprintf(stream, "\\%c", c);
        else if (c < ' ')
            fprintf(stream, "\\u%04x", c);
        else
            putc(c, stream);
    }
    putc('"', stream);
}
