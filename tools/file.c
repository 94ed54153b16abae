/* SPDX-License-Identifier: MIT
 * Reading the files of a model directory. */
#include "config.h"

#include "diag.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_error(const char *path)
{
    diag_print("%s: %s", path, strerror(errno));
}

static bool check_regular(const char *path, int descriptor)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0) {
        print_error(path);
        return false;
    }
    if (!S_ISREG(status.st_mode))
        diag_print("%s: not a regular file", path);
    return S_ISREG(status.st_mode);
}

int file_open(const char *path, bool *missing)
{
    /* Otherwise open() of a FIFO would wait until somebody writes. Regular files do not mind. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool absent = descriptor < 0 && errno == ENOENT && missing;
    if (missing)
        *missing = absent;
    if (descriptor < 0) {
        if (!absent)
            print_error(path);
        return -1;
    }
    if (check_regular(path, descriptor))
        return descriptor;
    close(descriptor);
    return -1;
}

static bool read_stream(const char *path, FILE *stream, struct text *content)
{
    char block[65536];
    size_t got;
    while ((got = fread(block, 1, sizeof block, stream)) > 0) {
        if (content->length + got > FILE_READ_MAX) {
            diag_print("%s: file is larger than %zu bytes", path, FILE_READ_MAX);
            return false;
        }
        if (!text_append(content, block, got))
            return false;
    }
    if (ferror(stream))
        print_error(path);
    return !ferror(stream);
}

bool file_read(const char *path, bool *missing, struct text *content)
{
    int descriptor = file_open(path, missing);
    if (descriptor < 0)
        return missing && *missing;
    FILE *stream = fdopen(descriptor, "rb");
    if (!stream) {
        print_error(path);
        close(descriptor);
        return false;
    }
    bool done = read_stream(path, stream, content);
    fclose(stream);
    return done;
}
