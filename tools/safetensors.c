/* SPDX-License-Identifier: MIT
 * Reading safetensors files: named tensors, mapped into memory read-only. */
#include "config.h"

#include "diag.h"
#include "file.h"
#include "json.h"
#include "memory.h"
#include "safetensors.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LENGTH_BYTES 8
#define HEADER_MAX ((size_t)100000000)

/* ---- the file ------------------------------------------------------------------------------ */

static bool map_descriptor(struct safetensors *file, int descriptor)
{
    struct stat status;
    if (fstat(descriptor, &status)) {
        diag_print("%s: %s", file->path, strerror(errno));
        return false;
    }
    if (status.st_size < LENGTH_BYTES || (uintmax_t)status.st_size > SIZE_MAX / 2) {
        diag_print("%s: not a safetensors file: it has %jd bytes", file->path, (intmax_t)status.st_size);
        return false;
    }
    file->map_bytes = (size_t)status.st_size;
    file->map = mmap(NULL, file->map_bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (file->map == MAP_FAILED) {
        file->map = NULL;
        diag_print("%s: %s", file->path, strerror(errno));
        return false;
    }
    return true;
}

static bool map_file(struct safetensors *file)
{
    int descriptor = file_open(file->path, NULL);
    if (descriptor < 0)
        return false;
    bool mapped = map_descriptor(file, descriptor);
    close(descriptor);
    return mapped;
}

static bool read_header(struct safetensors *file)
{
    const unsigned char *bytes = file->map;
    uint64_t length = 0;
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        length |= (uint64_t)bytes[i] << 8 * i;
    if (length > HEADER_MAX) {
        diag_print("%s: header length %ju is over the limit of %zu bytes", file->path, (uintmax_t)length, HEADER_MAX);
        return false;
    }
    if (length > file->map_bytes - LENGTH_BYTES) {
        diag_print("%s: header length %ju is more than the file holds; is it truncated?", file->path,
                   (uintmax_t)length);
        return false;
    }
    char *text = memory_string((const char *)bytes + LENGTH_BYTES, (size_t)length);
    if (!text)
        return false;
    file->header = json_parse(file->path, text, (size_t)length);
    free(text);
    file->data = bytes + LENGTH_BYTES + length;
    return file->header != NULL;
}

/* ---- the tensors --------------------------------------------------------------------------- */

/* Bytes of an element, 0 for a type that this reader does not know. */
static size_t type_bytes(const char *name, enum tensor_type *type)
{
    static const struct {
        char name[8];
        enum tensor_type type;
        size_t bytes;
    } types[] = {{"F32", TENSOR_F32, 4},   {"F16", TENSOR_F16, 2},   {"BF16", TENSOR_BF16, 2}, {"F64", TENSOR_OTHER, 8},
                 {"I64", TENSOR_OTHER, 8}, {"U64", TENSOR_OTHER, 8}, {"I32", TENSOR_OTHER, 4}, {"U32", TENSOR_OTHER, 4},
                 {"I16", TENSOR_OTHER, 2}, {"U16", TENSOR_OTHER, 2}, {"I8", TENSOR_OTHER, 1},  {"U8", TENSOR_OTHER, 1},
                 {"BOOL", TENSOR_OTHER, 1}};
    *type = TENSOR_OTHER;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, name) == 0) {
            *type = types[i].type;
            return types[i].bytes;
        }
    }
    return 0;
}

static bool wrong(const struct safetensors *file, const struct tensor *tensor, const char *what)
{
    diag_print("%s: tensor %s: %s", file->path, tensor->name, what);
    return false;
}

static bool read_shape(const struct safetensors *file, const cJSON *shape, struct tensor *tensor)
{
    tensor->count = 1;
    if (!cJSON_IsArray(shape))
        return wrong(file, tensor, "shape is not a list");
    const cJSON *size;
    cJSON_ArrayForEach(size, shape)
    {
        if (tensor->n_dimensions == TENSOR_DIMENSIONS_MAX)
            return wrong(file, tensor, "shape has too many dimensions");
        size_t *dimension = &tensor->shape[tensor->n_dimensions++];
        if (!json_whole(size, INT32_MAX, dimension))
            return wrong(file, tensor, "shape has a size that is not a whole number in range");
        if (*dimension && tensor->count > SIZE_MAX / *dimension)
            return wrong(file, tensor, "shape overflows");
        tensor->count *= *dimension;
    }
    return true;
}

static bool read_offsets(const struct safetensors *file, const cJSON *offsets, struct tensor *tensor)
{
    size_t data_bytes = file->map_bytes - (size_t)(file->data - (const unsigned char *)file->map);
    if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
        !json_whole(cJSON_GetArrayItem(offsets, 0), JSON_WHOLE_MAX, &tensor->begin) ||
        !json_whole(cJSON_GetArrayItem(offsets, 1), JSON_WHOLE_MAX, &tensor->end))
        return wrong(file, tensor, "data_offsets are not two whole numbers in range");
    if (tensor->begin > tensor->end)
        return wrong(file, tensor, "data_offsets decrease");
    if (tensor->end > data_bytes)
        return wrong(file, tensor, "data_offsets lie outside the file; is it truncated?");
    return true;
}

static bool read_tensor(const struct safetensors *file, const cJSON *entry, struct tensor *tensor)
{
    *tensor = (struct tensor){.name = entry->string};
    if (!cJSON_IsObject(entry))
        return wrong(file, tensor, "not described by an object");
    const cJSON *type = json_member(entry, "dtype");
    if (!cJSON_IsString(type))
        return wrong(file, tensor, "dtype is not a string");
    tensor->type_name = type->valuestring;
    if (!read_shape(file, json_member(entry, "shape"), tensor) ||
        !read_offsets(file, json_member(entry, "data_offsets"), tensor))
        return false;
    size_t bytes = type_bytes(tensor->type_name, &tensor->type), span = tensor->end - tensor->begin;
    if (bytes && (tensor->count > SIZE_MAX / bytes || tensor->count * bytes != span))
        return wrong(file, tensor, "data_offsets do not fit dtype and shape");
    tensor->at = file->data + tensor->begin;
    return true;
}

static int compare_places(const void *left, const void *right)
{
    const struct tensor *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const struct tensor *)left)->name, ((const struct tensor *)right)->name);
}

/* The format wants the tensors to follow one another without a gap. */
static bool check_places(const struct safetensors *file)
{
    qsort(file->tensors, file->count, sizeof *file->tensors, compare_places);
    size_t end = 0;
    for (size_t i = 0; i < file->count; i++) {
        const struct tensor *tensor = &file->tensors[i];
        if (tensor->begin < end)
            return wrong(file, tensor, "data_offsets overlap another tensor");
        if (tensor->begin > end)
            return wrong(file, tensor, "data_offsets leave a gap before it");
        end = tensor->end;
    }
    size_t header_bytes = (size_t)(file->data - (const unsigned char *)file->map);
    if (end != file->map_bytes - header_bytes) {
        diag_print("%s: %zu bytes follow the last tensor", file->path, file->map_bytes - header_bytes - end);
        return false;
    }
    return true;
}

static bool read_tensors(struct safetensors *file)
{
    if (!cJSON_IsObject(file->header)) {
        diag_print("%s: header is not an object", file->path);
        return false;
    }
    file->tensors = memory_array((size_t)cJSON_GetArraySize(file->header), sizeof *file->tensors);
    if (!file->tensors)
        return false;
    const cJSON *entry;
    cJSON_ArrayForEach(entry, file->header)
    {
        if (strcmp(entry->string, "__metadata__") == 0)
            continue;
        if (!read_tensor(file, entry, &file->tensors[file->count]))
            return false;
        file->count++;
    }
    if (!check_places(file))
        return false;
    qsort(file->tensors, file->count, sizeof *file->tensors, compare_names); /* for safetensors_find */
    return true;
}

bool safetensors_open(struct safetensors *file, const char *path)
{
    *file = (struct safetensors){.path = path};
    if (map_file(file) && read_header(file) && read_tensors(file))
        return true;
    safetensors_close(file);
    return false;
}

void safetensors_close(struct safetensors *file)
{
    free(file->tensors);
    cJSON_Delete(file->header);
    if (file->map)
        munmap(file->map, file->map_bytes);
    *file = (struct safetensors){0};
}

const struct tensor *safetensors_find(const struct safetensors *file, const char *name)
{
    struct tensor key = {.name = name};
    return file->count ? bsearch(&key, file->tensors, file->count, sizeof key, compare_names) : NULL;
}

/* ---- elements ------------------------------------------------------------------------------ */

const float *tensor_floats_in_place(const struct tensor *tensor)
{
    bool usable = tensor->type == TENSOR_F32 && memory_is_little_endian() && (uintptr_t)tensor->at % sizeof(float) == 0;
    return usable ? (const float *)(const void *)tensor->at : NULL;
}

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t little_16(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

/* IEEE 754 binary16: a subnormal is its mantissa times 2^-24, which float holds exactly. */
static float float_of_half(uint32_t half)
{
    uint32_t sign = half >> 15 << 31, exponent = half >> 10 & 0x1F, mantissa = half & 0x3FF;
    if (exponent == 0) {
        float magnitude = (float)mantissa * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    uint32_t wide = exponent == 0x1F ? 0xFF : exponent + (127 - 15);
    return float_of_bits(sign | wide << 23 | mantissa << 13);
}

void tensor_copy_floats(const struct tensor *tensor, float *floats)
{
    const unsigned char *at = tensor->at;
    switch (tensor->type) {
    case TENSOR_F32:
        for (size_t i = 0; i < tensor->count; i++, at += 4)
            floats[i] = float_of_bits(little_16(at) | little_16(at + 2) << 16);
        break;
    case TENSOR_F16:
        for (size_t i = 0; i < tensor->count; i++, at += 2)
            floats[i] = float_of_half(little_16(at));
        break;
    case TENSOR_BF16:
        for (size_t i = 0; i < tensor->count; i++, at += 2)
            floats[i] = float_of_bits(little_16(at) << 16);
        break;
    case TENSOR_OTHER:
        break;
    }
}
