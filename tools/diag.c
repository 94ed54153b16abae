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

/* Bytes of a control character that begins here, or 0: U+0000 to U+001F, U+007F to U+009F; what ends lines, U+2028 and
 * U+2029; and what turns the direction of text, U+061C, U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069. */
static size_t control_bytes(const char *text)
{
    unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];
    if (first < ' ' || first == 0x7F)
        return 1;
    if ((first == 0xC2 && second >= 0x80 && second <= 0x9F) || (first == 0xD8 && second == 0x9C))
        return 2;
    if (first != 0xE2 || (second != 0x80 && second != 0x81))
        return 0;
    unsigned char third = (unsigned char)text[2];
    if (second == 0x81)
        return third >= 0xA6 && third <= 0xA9 ? 3 : 0;
    return third == 0x8E || third == 0x8F || (third >= 0xA8 && third <= 0xAE) ? 3 : 0;
}

void diag_replace_controls(char *text, size_t length, char replacement)
{
    for (size_t i = 0; i < length; i++) {
        size_t bytes = control_bytes(text + i);
        if (bytes > 0)
            memset(text + i, replacement, bytes);
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
