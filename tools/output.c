/* SPDX-License-Identifier: MIT
 * Writing embeddings, one per line of input: JSON lines, .npy or plain text. */
#include "config.h"

#include "diag.h"
#include "json_write.h"
#include "memory.h"
#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Of an .npy file of version 1.0: magic, version, length of what follows, and a Python dictionary
 * padded so that the data begin at a multiple of 64. */
#define NPY_HEADER_BYTES 128
#define NPY_PREAMBLE_BYTES 10

/* ---- JSON and text ------------------------------------------------------------------------- */

static void write_json_ids(FILE *stream, const struct row *row)
{
    putc('[', stream);
    for (size_t i = 0; i < row->n_ids; i++)
        fprintf(stream, "%s%" PRId32, i ? "," : "", row->ids[i]);
    putc(']', stream);
}

/* 9 digits read back as the same float. JSON has no NaN and no infinity. */
static void write_json_row(FILE *stream, const struct row *row)
{
    fprintf(stream, "{\"line\":%zu,\"tokens\":%zu,\"text\":", row->number, row->n_ids);
    json_write_string(stream, row->text, row->length);
    fputs(",\"embedding\":[", stream);
    for (size_t i = 0; i < row->cols; i++) {
        fputs(i ? "," : "", stream);
        if (isfinite(row->values[i]))
            fprintf(stream, "%.9g", (double)row->values[i]);
        else
            fputs("null", stream);
    }
    fputs("]}\n", stream);
}

static void write_text_row(FILE *stream, const struct row *row)
{
    for (size_t i = 0; i < row->cols; i++)
        fprintf(stream, "%s%.9g", i ? " " : "", (double)row->values[i]);
    putc('\n', stream);
}

/* ---- .npy ---------------------------------------------------------------------------------- */

static void write_npy_header(const struct output *output, FILE *stream)
{
    char header[NPY_HEADER_BYTES + 1];
    int length = snprintf(header + NPY_PREAMBLE_BYTES, sizeof header - NPY_PREAMBLE_BYTES,
                          "{'descr': '%cf4', 'fortran_order': False, 'shape': (%zu, %zu), }",
                          memory_is_little_endian() ? '<' : '>', output->rows, output->cols);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = NPY_HEADER_BYTES - NPY_PREAMBLE_BYTES;
    header[9] = 0;
    size_t used = NPY_PREAMBLE_BYTES + (size_t)length;
    memset(header + used, ' ', NPY_HEADER_BYTES - 1 - used);
    header[NPY_HEADER_BYTES - 1] = '\n';
    fwrite(header, 1, NPY_HEADER_BYTES, stream);
}

static bool spool_failed(void)
{
    diag_print("temporary file: %s", strerror(errno));
    return false;
}

static bool copy_spool(const struct output *output)
{
    char block[65536];
    size_t got;
    if (fflush(output->spool) != 0 || ferror(output->spool) || fseek(output->spool, 0, SEEK_SET) != 0)
        return spool_failed();
    while ((got = fread(block, 1, sizeof block, output->spool)) > 0)
        if (fwrite(block, 1, got, output->target->stream) != got)
            return target_check(output->target);
    return !ferror(output->spool) || spool_failed();
}

static bool finish_npy(const struct output *output)
{
    FILE *stream = output->target->stream;
    if (output->spool) {
        write_npy_header(output, stream);
        return copy_spool(output);
    }
    if (fseek(stream, 0, SEEK_SET) == 0)
        write_npy_header(output, stream);
    return target_check(output->target);
}

/* ---- all formats --------------------------------------------------------------------------- */

bool output_open(struct output *output, struct target *target, enum output_format format, size_t cols)
{
    *output = (struct output){.target = target, .format = format, .cols = cols};
    if (format != FORMAT_NPY)
        return true;
    if (target->temporary) {
        write_npy_header(output, target->stream);
        return true;
    }
    output->spool = tmpfile();
    return output->spool || spool_failed();
}

bool output_row(struct output *output, const struct row *row)
{
    FILE *stream = output->spool ? output->spool : output->target->stream;
    output->rows++;
    switch (output->format) {
    case FORMAT_JSONL:
        write_json_row(stream, row);
        break;
    case FORMAT_TEXT:
        write_text_row(stream, row);
        break;
    case FORMAT_NPY:
        fwrite(row->values, sizeof *row->values, row->cols, stream);
        break;
    case FORMAT_TOKENS:
        write_json_ids(stream, row);
        putc('\n', stream);
        break;
    }
    if (!ferror(stream))
        return true;
    return output->spool ? spool_failed() : target_check(output->target);
}

bool output_finish(struct output *output)
{
    return output->format != FORMAT_NPY || finish_npy(output);
}

void output_close(struct output *output)
{
    if (output->spool)
        fclose(output->spool);
    output->spool = NULL;
}
