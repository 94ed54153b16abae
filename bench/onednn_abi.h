/* SPDX-License-Identifier: MIT
 * As much of the C interface of oneDNN 3 as the bench calls, described for a library that is opened at
 * run time: its header is not needed to build. Handles are pointers to what only the library knows;
 * functions return 0 for success.
 */
#ifndef BENCH_ONEDNN_ABI_H
#define BENCH_ONEDNN_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct onednn_handle *onednn_handle; /* engine, stream, memory, its description, primitive, ... */

#define ONEDNN_MOST_DIMS 12
typedef int64_t onednn_dims[ONEDNN_MOST_DIMS];

struct onednn_version {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
};

struct onednn_argument {
    int which;
    onednn_handle memory;
};

enum { ONEDNN_UNIMPLEMENTED = 3 };
enum { ONEDNN_CPU = 1, ONEDNN_IN_ORDER = 1, ONEDNN_F32 = 3, ONEDNN_INFERENCE = 96 };
enum { ONEDNN_ANY_LAYOUT = 1 };
enum { ONEDNN_RUNTIME_SEQUENTIAL = 1, ONEDNN_RUNTIME_OPENMP = 2 };
enum { ONEDNN_QUERY_IMPLEMENTATION = 8, ONEDNN_QUERY_WEIGHTS = 131 };
enum {
    ONEDNN_ARGUMENT_SRC = 1,
    ONEDNN_ARGUMENT_DST = 17,
    ONEDNN_ARGUMENT_WEIGHTS = 33,
    ONEDNN_ARGUMENT_BIAS = 41,
    ONEDNN_ARGUMENT_SCALE = 51,
    ONEDNN_ARGUMENT_SHIFT = 52
};
enum { ONEDNN_RELU = 32, ONEDNN_LINEAR = 38, ONEDNN_GELU_TANH = 43, ONEDNN_SWISH = 44, ONEDNN_GELU_ERF = 49 };
enum { ONEDNN_SOFTMAX = 0x30000, ONEDNN_LOG_SOFTMAX = 0x30001 };
enum { ONEDNN_USE_SCALE = 2, ONEDNN_USE_SHIFT = 4, ONEDNN_RMS_NORM = 32 };

/* X(name, arguments): the function dnnl_<name>. */
#define ONEDNN_FUNCTIONS(X)                                                                                            \
    X(engine_create, (onednn_handle * engine, int kind, size_t index))                                                 \
    X(stream_create, (onednn_handle * stream, onednn_handle engine, unsigned flags))                                   \
    X(stream_wait, (onednn_handle stream))                                                                             \
    X(memory_desc_create_with_tag, (onednn_handle * md, int ndims, const onednn_dims dims, int type, int tag))         \
    X(memory_desc_create_with_strides,                                                                                 \
      (onednn_handle * md, int ndims, const onednn_dims dims, int type, const onednn_dims strides))                    \
    X(memory_desc_destroy, (onednn_handle md))                                                                         \
    X(memory_create, (onednn_handle * memory, onednn_handle md, onednn_handle engine, void *data))                     \
    X(memory_destroy, (onednn_handle memory))                                                                          \
    X(post_ops_create, (onednn_handle * ops))                                                                          \
    X(post_ops_append_eltwise, (onednn_handle ops, int function, float alpha, float beta))                             \
    X(post_ops_destroy, (onednn_handle ops))                                                                           \
    X(primitive_attr_create, (onednn_handle * attributes))                                                             \
    X(primitive_attr_set_post_ops, (onednn_handle attributes, onednn_handle ops))                                      \
    X(primitive_attr_destroy, (onednn_handle attributes))                                                              \
    X(matmul_primitive_desc_create,                                                                                    \
      (onednn_handle * pd, onednn_handle engine, onednn_handle src, onednn_handle weights, onednn_handle bias,         \
       onednn_handle dst, onednn_handle attributes))                                                                   \
    X(eltwise_forward_primitive_desc_create,                                                                           \
      (onednn_handle * pd, onednn_handle engine, int use, int function, onednn_handle src, onednn_handle dst,          \
       float alpha, float beta, onednn_handle attributes))                                                             \
    X(softmax_forward_primitive_desc_create,                                                                           \
      (onednn_handle * pd, onednn_handle engine, int use, int algorithm, onednn_handle src, onednn_handle dst,         \
       int axis, onednn_handle attributes))                                                                            \
    X(layer_normalization_forward_primitive_desc_create,                                                               \
      (onednn_handle * pd, onednn_handle engine, int use, onednn_handle src, onednn_handle dst,                        \
       onednn_handle statistics, float eps, unsigned flags, onednn_handle attributes))                                 \
    X(reorder_primitive_desc_create, (onednn_handle * pd, onednn_handle src, onednn_handle src_engine,                 \
                                      onednn_handle dst, onednn_handle dst_engine, onednn_handle attributes))          \
    X(primitive_desc_query, (onednn_handle pd, int what, int index, void *result))                                     \
    X(primitive_desc_destroy, (onednn_handle pd))                                                                      \
    X(primitive_create, (onednn_handle * primitive, onednn_handle pd))                                                 \
    X(primitive_execute,                                                                                               \
      (onednn_handle primitive, onednn_handle stream, int count, const struct onednn_argument *arguments))             \
    X(primitive_destroy, (onednn_handle primitive))

#define ONEDNN_MEMBER(name, arguments) int(*name) arguments;

struct onednn_abi {
    ONEDNN_FUNCTIONS(ONEDNN_MEMBER)
    const struct onednn_version *(*version)(void);
    /* The description that a primitive's description chose; it belongs to the latter. */
    onednn_handle (*primitive_desc_query_md)(onednn_handle pd, int what, int index);
    size_t (*memory_desc_get_size)(onednn_handle md);
};

#endif
