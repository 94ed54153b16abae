/* SPDX-License-Identifier: MIT
 * Messages of the programs: one line each on standard error. */
#include "config.h"

#include "diag.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *program = "heed";
static bool shown; /* by diag_show */

void diag_set_program(const char *name)
{
    program = name;
}

void diag_replace_controls(char *text, size_t length, char replacement)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i], next = (unsigned char)text[i + 1];
        if (c < ' ' || c == 0x7F)
            text[i] = replacement;
        else if (c == 0xC2 && next >= 0x80 && next <= 0x9F) /* U+0080 to U+009F */
            text[i] = text[i + 1] = replacement;
    }
}

void diag_print(const char *format, ...)
{
    char message[4096];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    diag_replace_controls(message, strlen(message), '?');
    diag_clear();
    fprintf(stderr, "%s: %s\n", program, message);
}

void diag_show(const char *format, ...)
{
    va_list arguments;
    putc('\r', stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs("\033[K", stderr);
    fflush(stderr);
    shown = true;
}

void diag_clear(void)
{
    if (shown)
        fputs("\r\033[K", stderr);
    shown = false;
}
