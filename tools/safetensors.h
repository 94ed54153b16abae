/* SPDX-License-Identifier: MIT
 * Reading safetensors files: named tensors, mapped into memory read-only. */
#ifndef TOOLS_SAFETENSORS_H
#define TOOLS_SAFETENSORS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#define TENSOR_DIMENSIONS_MAX 8

enum tensor_type { TENSOR_F32, TENSOR_F16, TENSOR_BF16, TENSOR_OTHER };

struct tensor {
    const char *name;
    const char *type_name;
    enum tensor_type type;
    size_t n_dimensions, shape[TENSOR_DIMENSIONS_MAX];
    size_t count;            /* elements */
    size_t begin, end;       /* bytes from safetensors.data on */
    const unsigned char *at; /* its first byte */
};

struct safetensors {
    const char *path;
    void *map;
    size_t map_bytes;
    const unsigned char *data;
    cJSON *header;
    struct tensor *tensors; /* by name */
    size_t count;
};

/* Maps a file and checks all of its header. path is kept. false after a message. */
bool safetensors_open(struct safetensors *file, const char *path);
void safetensors_close(struct safetensors *file);

/* NULL if there is none. */
const struct tensor *safetensors_find(const struct safetensors *file, const char *name);

/* The tensor as floats that can be used in place, or NULL if it has to be copied: another type, byte
 * order or alignment. */
const float *tensor_floats_in_place(const struct tensor *tensor);

/* Copies a tensor of type F32, F16 or BF16 to floats; exact. */
void tensor_copy_floats(const struct tensor *tensor, float *floats);

#endif
