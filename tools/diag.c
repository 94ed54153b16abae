/* SPDX-License-Identifier: MIT
 * Messages of the programs: one line each on standard error. */
#include "config.h"

#include "diag.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Of a longer message, which quotes a long name, the middle is left out: what is wrong stands at its end. */
#define LONGEST 1000
#define LONGEST_BEGIN 600
#define LONGEST_END 300

static bool continues(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

static void print_line(const char *message, size_t length)
{
    size_t begin = LONGEST_BEGIN, end = length - LONGEST_END;
    if (length <= LONGEST) {
        fprintf(stderr, "%s: %s\n", program, message);
        return;
    }
    while (begin > 0 && continues(message[begin]))
        begin--;
    while (continues(message[end]))
        end++;
    fprintf(stderr, "%s: %.*s...%s\n", program, (int)begin, message, message + end);
}

void diag_print(const char *format, ...)
{
    char some[LONGEST + 1], *message = some;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(some, sizeof some, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    char *all = length > LONGEST ? malloc((size_t)length + 1) : NULL;
    if (all) {
        va_start(arguments, format);
        vsnprintf(all, (size_t)length + 1, format, arguments);
        va_end(arguments);
        message = all;
    }
    diag_replace_controls(message, strlen(message), '?');
    diag_clear();
    print_line(message, strlen(message));
    free(all);
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
