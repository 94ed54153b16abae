/* SPDX-License-Identifier: MIT
 * Writing JSON. */
#ifndef TOOLS_JSON_WRITE_H
#define TOOLS_JSON_WRITE_H

#include <stddef.h>
#include <stdio.h>

/* Writes well-formed UTF-8 as a JSON string, quotes included. */
void json_write_string(FILE *stream, const char *text, size_t length);

#endif
