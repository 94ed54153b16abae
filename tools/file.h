/* SPDX-License-Identifier: MIT
 * Reading the files of a model directory. */
#ifndef TOOLS_FILE_H
#define TOOLS_FILE_H

#include "memory.h"

#include <stdbool.h>
#include <stddef.h>

#define FILE_READ_MAX ((size_t)256 << 20)

/* Opens a regular file to be read: its descriptor, or -1 after a message. That the file is missing is
 * no error where `missing` is not NULL: *missing says so, and -1 comes without a message. */
int file_open(const char *path, bool *missing);

/* Appends a whole regular file of at most FILE_READ_MAX bytes to *content, nothing where *missing is
 * set, which is as for file_open. false after a message. */
bool file_read(const char *path, bool *missing, struct text *content);

#endif
