/* SPDX-License-Identifier: MIT
 * Runs the cases of a conformance folder (a manifest GROUP/NAME.txt beside the tensors GROUP/NAME.bin) on the
 * default level and on every level that can be selected: conformance DIR.
 */
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TENSORS 64
#define MOST_ATTRIBUTES 32
#define MOST_DIMS 6
#define NAME_LENGTH 96

/* ---- manifests ---- */

enum dtype { DTYPE_NONE, DTYPE_F32, DTYPE_I32, DTYPE_I64, DTYPE_U8, DTYPE_I8, DTYPE_BOOL, DTYPES };

static const char *const dtype_names[DTYPES] = {"none", "f32", "i32", "i64", "u8", "i8", "bool"};
static const size_t dtype_sizes[DTYPES] = {0, 4, 4, 8, 1, 1, 1};

struct tensor {
    enum dtype dtype;
    size_t ndim, dims[MOST_DIMS], elements, offset, bytes;
    const void *data; /* NULL: left out */
};

struct attribute {
    char name[NAME_LENGTH], text[NAME_LENGTH];
    size_t count;
    double values[8];
};

struct test_case {
    char name[NAME_LENGTH], op[NAME_LENGTH];
    long opset;
    size_t attributes;
    struct attribute attribute[MOST_ATTRIBUTES];
    struct tensor in[MOST_TENSORS], out[4];
    double ref_err;
    size_t bin_bytes;
    int complete;
};

static int parse_tensor(char *fields, struct test_case *t, int output)
{
    char formal[NAME_LENGTH], dtype[16];
    size_t index, ndim;
    int used;
    if (sscanf(fields, "%zu %95s %15s %zu%n", &index, formal, dtype, &ndim, &used) != 4)
        return 0;
    if (index >= (output ? sizeof t->out / sizeof *t->out : MOST_TENSORS) || ndim > MOST_DIMS)
        return 0;
    struct tensor x = {.ndim = ndim, .elements = 1};
    while (x.dtype < DTYPES && strcmp(dtype, dtype_names[x.dtype]) != 0)
        x.dtype++;
    if (x.dtype == DTYPES)
        return 0;
    char *rest = fields + used;
    for (size_t d = 0; d < ndim; d++) {
        x.dims[d] = strtoul(rest, &rest, 10);
        x.elements *= x.dims[d];
    }
    x.offset = strtoul(rest, &rest, 10);
    x.bytes = strtoul(rest, &rest, 10);
    if (x.dtype != DTYPE_NONE && x.bytes != x.elements * dtype_sizes[x.dtype])
        return 0;
    *(output ? &t->out[index] : &t->in[index]) = x;
    return *rest == '\0';
}

/* The first definition of a name holds: given attributes come before defaults of the same name. */
static int parse_attribute(char *fields, struct test_case *t)
{
    char type[16];
    int used;
    struct attribute a = {.count = 0};
    if (sscanf(fields, "%95s %15s %zu%n", a.name, type, &a.count, &used) != 3 || t->attributes == MOST_ATTRIBUTES)
        return 0;
    char *rest = fields + used;
    if (strcmp(type, "int") == 0 || strcmp(type, "float") == 0)
        for (size_t i = 0; i < a.count && i < 8; i++)
            a.values[i] = strtod(rest, &rest);
    else if (sscanf(rest, " %95[^\n]", a.text) != 1)
        return 0;
    t->attribute[t->attributes++] = a;
    return 1;
}

static int parse_line(char *line, struct test_case *t)
{
    char *rest = strchr(line, ' ');
    if (rest)
        *rest++ = '\0';
    else
        rest = line + strlen(line);
    if (strcmp(line, "case") == 0)
        return sscanf(rest, "%95s", t->name) == 1;
    if (strcmp(line, "op") == 0)
        return sscanf(rest, "%95s", t->op) == 1;
    if (strcmp(line, "opset") == 0)
        return sscanf(rest, "%ld", &t->opset) == 1;
    if (strcmp(line, "in") == 0 || strcmp(line, "out") == 0)
        return parse_tensor(rest, t, line[0] == 'o');
    if (strcmp(line, "attr") == 0 || strcmp(line, "attr_default") == 0)
        return parse_attribute(rest, t);
    if (strcmp(line, "ref_err") == 0)
        return sscanf(rest, "%lf", &t->ref_err) == 1;
    if (strcmp(line, "bin") == 0)
        return sscanf(rest, "%zu", &t->bin_bytes) == 1;
    if (strcmp(line, "end") == 0)
        t->complete = 1;
    static const char *const free_text[] = {"source", "license", "tier", "domain", "end"};
    for (size_t i = 0; i < sizeof free_text / sizeof *free_text; i++)
        if (strcmp(line, free_text[i]) == 0)
            return 1;
    return 0;
}

static int read_manifest(const char *path, struct test_case *t)
{
    char line[4096];
    FILE *file = fopen(path, "r");
    memset(t, 0, sizeof *t);
    if (!file)
        return 0;
    int ok = 1;
    while (ok && !t->complete && fgets(line, sizeof line, file)) {
        size_t length = strcspn(line, "\n");
        ok = line[length] == '\n';
        line[length] = '\0';
        ok = ok && parse_line(line, t);
    }
    fclose(file);
    return ok && t->complete && t->name[0] && t->op[0] && t->bin_bytes > 0;
}

static int locate(struct tensor *x, size_t count, const unsigned char *data, size_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        if (x[i].dtype == DTYPE_NONE)
            continue;
        if (x[i].offset % 64 != 0 || x[i].offset > bytes || x[i].bytes > bytes - x[i].offset)
            return 0;
        x[i].data = data + x[i].offset;
    }
    return 1;
}

static int read_tensors(const char *path, struct test_case *t)
{
    unsigned char *data = (unsigned char *)buffer(t->bin_bytes / 4 + 1, 0);
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    size_t bytes = fread(data, 1, t->bin_bytes, file);
    int whole = bytes == t->bin_bytes && fgetc(file) == EOF;
    fclose(file);
    return whole && locate(t->in, MOST_TENSORS, data, bytes) && locate(t->out, 4, data, bytes);
}

static const struct attribute *find(const struct test_case *t, const char *name)
{
    for (size_t i = 0; i < t->attributes; i++)
        if (strcmp(t->attribute[i].name, name) == 0)
            return &t->attribute[i];
    return NULL;
}

static double number(const struct test_case *t, const char *name, double otherwise)
{
    const struct attribute *a = find(t, name);
    return a && a->count > 0 ? a->values[0] : otherwise;
}

static size_t count(const struct test_case *t, const char *name)
{
    return (size_t)number(t, name, 0.0);
}

static int text_is(const struct test_case *t, const char *name, const char *value)
{
    const struct attribute *a = find(t, name);
    return a && strcmp(a->text, value) == 0;
}

static const float *floats(const struct tensor *x)
{
    return x->data;
}

static size_t product(const struct tensor *x, size_t first, size_t end)
{
    size_t n = 1;
    for (size_t d = first; d < end; d++)
        n *= x->dims[d];
    return n;
}

/* A possibly negative axis. */
static size_t axis_of(const struct test_case *t, const struct tensor *x, double otherwise)
{
    double axis = number(t, "axis", otherwise);
    return (size_t)(axis < 0 ? axis + (double)x->ndim : axis);
}

/* ---- comparison ---- */

/* Outputs of the running case that were compared: the library does not give all (means, raw scores). */
static unsigned compared;

static void compare(const struct test_case *t, size_t output, const float *got)
{
    const struct tensor *want = &t->out[output];
    size_t failures = 0, first = 0;
    compared |= 1u << output;
    for (size_t i = 0; i < want->elements; i++) {
        double w = (double)floats(want)[i], bound = (1e-5 + 4.0 * t->ref_err) * fmax(1.0, fabs(w));
        if (!(fabs((double)got[i] - w) <= bound) && failures++ == 0)
            first = i;
    }
    check_that(failures == 0 && want->elements > 0, "%s: output %zu: %zu of %zu differ, first %zu: %.9g, not %.9g",
               t->name, output, failures, want->elements, first, (double)got[first], (double)floats(want)[first]);
}

static void check_status(const struct test_case *t, heed_status status)
{
    check_that(status == HEED_OK, "%s: %s", t->name, heed_status_string(status));
}

/* ---- operators: each returns NULL, or why the case does not apply ---- */

typedef const char *runner(const struct test_case *t, const heed_context *context);

/* Where matrix `index` of a broadcast stack lies. */
static size_t broadcast_start(const struct tensor *x, const struct tensor *y, size_t index)
{
    size_t at = 0, step = product(x, x->ndim - 2, x->ndim);
    for (size_t back = 3; back <= y->ndim; back++) {
        size_t digit = index % y->dims[y->ndim - back];
        index /= y->dims[y->ndim - back];
        if (back > x->ndim)
            continue;
        if (x->dims[x->ndim - back] > 1)
            at += digit * step;
        step *= x->dims[x->ndim - back];
    }
    return at;
}

static const char *run_matmul(const struct test_case *t, const heed_context *context)
{
    const struct tensor *a = &t->in[0], *b = &t->in[1], *y = &t->out[0];
    if (a->ndim < 2 || b->ndim < 2 || y->ndim < 2)
        return "vectors are not offered";
    size_t m = a->dims[a->ndim - 2], k = a->dims[a->ndim - 1], n = b->dims[b->ndim - 1];
    float *got = buffer(y->elements, 1);
    for (size_t i = 0; i < product(y, 0, y->ndim - 2); i++)
        check_status(t, heed_matmul(context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, m, n, k, 1.0f,
                                    floats(a) + broadcast_start(a, y, i), k, floats(b) + broadcast_start(b, y, i), n,
                                    0.0f, got + i * m * n, n, NULL));
    compare(t, 0, got);
    return NULL;
}

/* Element (i, j) of a matrix, row, column or scalar. */
static float broadcast_element(const struct tensor *x, size_t i, size_t j)
{
    size_t cols = x->ndim > 0 ? x->dims[x->ndim - 1] : 1, rows = x->ndim > 1 ? x->dims[x->ndim - 2] : 1;
    return floats(x)[(rows > 1 ? i : 0) * cols + (cols > 1 ? j : 0)];
}

static const char *run_gemm(const struct test_case *t, const heed_context *context)
{
    const struct tensor *a = &t->in[0], *b = &t->in[1], *c = &t->in[2];
    int ta = number(t, "transA", 0) != 0.0, tb = number(t, "transB", 0) != 0.0;
    size_t m = a->dims[ta], k = a->dims[!ta], n = b->dims[!tb];
    float *got = buffer(m * n, 1);
    for (size_t i = 0; c->data && i < m * n; i++)
        got[i] = broadcast_element(c, i / n, i % n);
    check_status(t,
                 heed_matmul(context, ta ? HEED_TRANSPOSE : HEED_NO_TRANSPOSE, tb ? HEED_TRANSPOSE : HEED_NO_TRANSPOSE,
                             m, n, k, (float)number(t, "alpha", 1.0), floats(a), a->dims[1], floats(b), b->dims[1],
                             c->data ? (float)number(t, "beta", 1.0) : 0.0f, got, n, NULL));
    compare(t, 0, got);
    return NULL;
}

/* Rows along any axis are gathered into a matrix and scattered back. Before version 13 all axes from
 * the given one on form the row. */
static const char *run_softmax(const struct test_case *t, const heed_context *context)
{
    const struct tensor *x = &t->in[0];
    size_t axis = axis_of(t, x, -1.0);
    int flat = t->opset > 0 && t->opset < 13;
    size_t cols = flat ? product(x, axis, x->ndim) : x->dims[axis];
    size_t inner = flat ? 1 : product(x, axis + 1, x->ndim), rows = x->elements / cols;
    float *matrix = buffer(x->elements, 1), *got = buffer(x->elements, 0);
    for (size_t i = 0; i < x->elements; i++)
        matrix[i] = floats(x)[i / cols / inner * cols * inner + i % cols * inner + i / cols % inner];
    check_status(t, strcmp(t->op, "LogSoftmax") == 0
                        ? heed_log_softmax(context, rows, cols, matrix, cols, NULL, matrix, cols)
                        : heed_softmax(context, rows, cols, matrix, cols, matrix, cols));
    for (size_t i = 0; i < x->elements; i++)
        got[i / cols / inner * cols * inner + i % cols * inner + i / cols % inner] = matrix[i];
    compare(t, 0, got);
    return NULL;
}

static const char *run_layernorm(const struct test_case *t, const heed_context *context)
{
    const struct tensor *x = &t->in[0];
    size_t axis = axis_of(t, x, -1.0), cols = product(x, axis, x->ndim), rows = x->elements / cols;
    float *got = buffer(x->elements, 1), *mean = buffer(rows, 2), *inverse = buffer(rows, 3);
    heed_layernorm_options options = HEED_LAYERNORM_OPTIONS_INIT;
    options.scale = floats(&t->in[1]);
    options.shift = floats(&t->in[2]);
    options.eps = (float)number(t, "epsilon", 1e-5);
    options.mean = mean;
    options.inverse_deviation = inverse;
    check_status(t, heed_layernorm(context, rows, cols, floats(x), cols, &options, got, cols));
    compare(t, 0, got);
    if (t->out[1].data)
        compare(t, 1, mean);
    if (t->out[2].data)
        compare(t, 2, inverse);
    return NULL;
}

static const char *run_rmsnorm(const struct test_case *t, const heed_context *context)
{
    const struct tensor *x = &t->in[0];
    size_t axis = axis_of(t, x, -1.0), cols = product(x, axis, x->ndim);
    heed_rmsnorm_options options = HEED_RMSNORM_OPTIONS_INIT;
    options.scale = floats(&t->in[1]);
    options.eps = (float)number(t, "epsilon", 1e-5);
    float *got = buffer(x->elements, 1);
    check_status(t, heed_rmsnorm(context, x->elements / cols, cols, floats(x), cols, &options, got, cols));
    compare(t, 0, got);
    return NULL;
}

static const char *run_skip_layernorm(const struct test_case *t, const heed_context *context)
{
    const struct tensor *x = &t->in[0], *skip = &t->in[1], *bias = &t->in[4];
    size_t cols = x->dims[x->ndim - 1], rows = x->elements / cols;
    float *residual = buffer(x->elements, 1), *got = buffer(x->elements, 2), *sum = buffer(x->elements, 3);
    for (size_t i = 0; i < x->elements; i++)
        residual[i] = floats(skip)[i % skip->elements] + (bias->data ? floats(bias)[i % cols] : 0.0f);
    heed_layernorm_options options = HEED_LAYERNORM_OPTIONS_INIT;
    options.scale = floats(&t->in[2]);
    options.shift = floats(&t->in[3]);
    options.eps = (float)number(t, "epsilon", 1e-12);
    options.residual = residual;
    options.sum = sum;
    options.ld_residual = options.ld_sum = cols;
    check_status(t, heed_layernorm(context, rows, cols, floats(x), cols, &options, got, cols));
    compare(t, 0, got);
    if (t->out[1].data)
        compare(t, 1, sum);
    return NULL;
}

static const char *run_activation(const struct test_case *t, const heed_context *context)
{
    const struct tensor *x = &t->in[0];
    if (strcmp(t->op, "Swish") == 0 && number(t, "alpha", 1.0) != 1.0)
        return "swish with a factor is not offered";
    heed_activation activation = strcmp(t->op, "Relu") == 0          ? HEED_ACTIVATION_RELU
                                 : strcmp(t->op, "Swish") == 0       ? HEED_ACTIVATION_SILU
                                 : text_is(t, "approximate", "tanh") ? HEED_ACTIVATION_GELU_TANH
                                                                     : HEED_ACTIVATION_GELU_ERF;
    float *got = buffer(x->elements, 1);
    check_status(t, heed_activate(context, activation, 1, x->elements, floats(x), x->elements, got, x->elements));
    compare(t, 0, got);
    return NULL;
}

/* What lies behind the axis is a row of a table, one table for each index before it. */
static const char *run_gather(const struct test_case *t, const heed_context *context)
{
    const struct tensor *x = &t->in[0], *ids = &t->in[1];
    size_t axis = axis_of(t, x, 0.0), cols = product(x, axis + 1, x->ndim), rows = x->dims[axis];
    int32_t *selected = (int32_t *)(void *)buffer(ids->elements, 0);
    float *got = buffer(t->out[0].elements, 1);
    for (size_t i = 0; i < ids->elements; i++)
        selected[i] =
            ids->dtype == DTYPE_I64 ? (int32_t)((const int64_t *)ids->data)[i] : ((const int32_t *)ids->data)[i];
    for (size_t i = 0; i < product(x, 0, axis); i++) {
        const heed_embedding_table table = {floats(x) + i * rows * cols, rows, cols, selected, 0};
        check_status(
            t, heed_embed(context, ids->elements, cols, 1, &table, 0, NULL, got + i * ids->elements * cols, cols));
    }
    compare(t, 0, got);
    return NULL;
}

/* [batch][heads][seq][dim], or interleaved [batch][seq][heads * dim]. */
static void set_rotary_shape(const struct tensor *x, size_t heads, float *got, heed_rotary_args *a)
{
    a->batch = x->dims[0];
    a->n_heads = x->ndim == 4 ? x->dims[1] : heads;
    a->seq = x->dims[x->ndim == 4 ? 2 : 1];
    a->head_dim = x->dims[x->ndim - 1] / (x->ndim == 4 ? 1 : heads);
    size_t head = x->ndim == 4 ? a->seq * a->head_dim : a->head_dim;
    size_t row = x->ndim == 4 ? a->head_dim : a->n_heads * a->head_dim;
    a->src = (heed_heads){floats(x), a->n_heads * a->seq * a->head_dim, head, row};
    a->dst = (heed_heads_out){got, a->src.batch_stride, head, row};
}

/* Without ids the caches have a row for each token. */
static const char *run_rotary_embedding(const struct test_case *t, const heed_context *context)
{
    const struct tensor *x = &t->in[0], *cosine = &t->in[1], *sine = &t->in[2], *ids = &t->in[3];
    heed_rotary_args a = HEED_ROTARY_ARGS_INIT;
    float *got = buffer(x->elements, 1);
    set_rotary_shape(x, count(t, "num_heads"), got, &a);
    size_t half = cosine->dims[cosine->ndim - 1], tokens = a.batch * a.seq;
    int32_t *selected = (int32_t *)(void *)buffer(tokens, 0);
    for (size_t i = 0; i < tokens; i++)
        selected[i] = ids->data ? (int32_t)((const int64_t *)ids->data)[i] : (int32_t)i;
    a.tables.pairs = count(t, "interleaved") ? HEED_ROTARY_INTERLEAVED : HEED_ROTARY_HALVES;
    a.tables.dims = 2 * half;
    a.tables.cosine = floats(cosine);
    a.tables.sine = floats(sine);
    a.tables.ld_cosine = a.tables.ld_sine = half;
    a.tables.positions = cosine->elements / half;
    a.ids = selected;
    check_status(t, heed_rotary(context, &a));
    compare(t, 0, got);
    return NULL;
}

/* Positions and a base instead of caches. */
static const char *run_rope(const struct test_case *t, const heed_context *context)
{
    const struct tensor *x = &t->in[0], *positions = &t->in[1];
    heed_rotary_args a = HEED_ROTARY_ARGS_INIT;
    heed_rotary_options options = HEED_ROTARY_OPTIONS_INIT;
    float *got = buffer(x->elements, 1);
    set_rotary_shape(x, 1, got, &a);
    size_t tokens = a.batch * a.seq, half = a.head_dim / 2;
    int32_t *position = (int32_t *)(void *)buffer(tokens, 0), *row = (int32_t *)(void *)buffer(tokens, 0);
    float *cosine = buffer(tokens * half, 2), *sine = buffer(tokens * half, 3);
    for (size_t i = 0; i < tokens; i++) {
        position[i] = (int32_t)((const int64_t *)positions->data)[i % positions->elements];
        row[i] = (int32_t)i;
    }
    options.base = number(t, "base", 10000.0);
    options.position_scale = number(t, "position_scale", 1.0);
    check_status(t, heed_rotary_table(context, tokens, position, 0, a.head_dim, &options, cosine, half, sine, half));
    a.tables.pairs = count(t, "interleaved") ? HEED_ROTARY_INTERLEAVED : HEED_ROTARY_HALVES;
    a.tables.dims = a.head_dim;
    a.tables.cosine = cosine;
    a.tables.sine = sine;
    a.tables.ld_cosine = a.tables.ld_sine = half;
    a.tables.positions = tokens;
    a.ids = row;
    check_status(t, heed_rotary(context, &a));
    compare(t, 0, got);
    return NULL;
}

/* ---- attention ---- */

/* What an attention case says in whichever dialect, before it becomes arguments. */
struct attention {
    heed_attention_args args;
    const struct tensor *mask; /* true or 0: attend; up to 4 dimensions, broadcast */
    const struct tensor *keep; /* boolean mask beside an additive one */
    int causal, relative;      /* relative: the score gains query - key */
    size_t past;
    const struct tensor *lengths;
    double left, right; /* window; -1: none */
};

static heed_heads interleaved(const float *data, size_t seq, size_t heads, size_t dim)
{
    return (heed_heads){data, seq * heads * dim, dim, heads * dim};
}

static heed_heads head_major(const float *data, size_t seq, size_t heads, size_t dim)
{
    return (heed_heads){data, heads * seq * dim, seq * dim, dim};
}

/* [batch][heads][past + new][dim] out of the past tensor and new rows. */
static heed_heads join_past(const float *past, size_t n_past, const heed_heads *rows, size_t n_new, size_t batch,
                            size_t heads, size_t dim)
{
    size_t n = n_past + n_new;
    float *joined = buffer(batch * heads * n * dim, 0);
    for (size_t i = 0; i < batch * heads * n * dim; i++) {
        size_t d = i % dim, j = i / dim % n, h = i / dim / n % heads, b = i / dim / n / heads;
        joined[i] =
            j < n_past
                ? past[((b * heads + h) * n_past + j) * dim + d]
                : rows->data[b * rows->batch_stride + h * rows->head_stride + (j - n_past) * rows->row_stride + d];
    }
    return head_major(joined, n, heads, dim);
}

/* Where the mask holds what query i says of key j; SIZE_MAX if it ends before that key. */
static size_t mask_index(const struct tensor *x, size_t b, size_t h, size_t i, size_t j)
{
    const size_t at[4] = {b, h, i, j};
    size_t index = 0;
    if (x->dims[x->ndim - 1] > 1 && j >= x->dims[x->ndim - 1])
        return SIZE_MAX;
    for (size_t d = 0; d < x->ndim; d++) {
        size_t digit = at[4 - x->ndim + d];
        index = index * x->dims[d] + (x->dims[d] > 1 ? digit : 0);
    }
    return index;
}

static float mask_value(const struct tensor *x, size_t b, size_t h, size_t i, size_t j)
{
    size_t at = x->data ? mask_index(x, b, h, i, j) : 0;
    if (!x->data)
        return 0.0f;
    if (at == SIZE_MAX)
        return -INFINITY;
    if (x->dtype == DTYPE_F32)
        return floats(x)[at];
    return ((const unsigned char *)x->data)[at] ? 0.0f : -INFINITY;
}

static size_t diagonal_of(const struct attention *a, size_t b)
{
    if (a->lengths && a->lengths->data)
        return (size_t)((const int64_t *)a->lengths->data)[b] - a->args.seq_q;
    return a->past;
}

static int in_window(const struct attention *a, size_t i, size_t j, double diagonal)
{
    double distance = (double)j - (double)i - diagonal;
    if (a->causal && distance > 0.0)
        return 0;
    return !(a->left >= 0.0 && distance < -a->left) && !(a->right >= 0.0 && distance > a->right);
}

/* All masks in one tensor: for what is no argument of the library, or not with that diagonal. */
static void expand_masks(struct attention *a)
{
    heed_attention_args *args = &a->args;
    size_t n = args->seq_q * args->seq_kv;
    float *mask = buffer(args->batch * args->n_heads * n, 0);
    for (size_t at = 0; at < args->batch * args->n_heads * n; at++) {
        size_t j = at % args->seq_kv, i = at / args->seq_kv % args->seq_q, h = at / n % args->n_heads;
        size_t b = at / n / args->n_heads;
        mask[at] = a->mask ? mask_value(a->mask, b, h, i, j) : 0.0f;
        if (a->keep)
            mask[at] += mask_value(a->keep, b, h, i, j);
        if (a->relative)
            mask[at] += (float)i - (float)j;
        if (!in_window(a, i, j, (double)(ptrdiff_t)diagonal_of(a, b)))
            mask[at] = -INFINITY;
    }
    args->mask = (heed_mask){mask, HEED_MASK_ADDITIVE, args->n_heads * n, n, args->seq_kv};
    args->causal = HEED_CAUSAL_NONE;
}

/* The mask tensor as it is, by strides; needs full rows. */
static void set_mask(heed_attention_args *args, const struct tensor *x)
{
    size_t stride = x->dims[x->ndim - 1], strides[3] = {0, 0, 0};
    for (size_t back = 2; back <= x->ndim; back++) {
        size_t dim = x->dims[x->ndim - back];
        strides[back - 2] = dim > 1 ? stride : 0;
        stride *= dim;
    }
    args->mask = (heed_mask){x->data, x->dtype == DTYPE_F32 ? HEED_MASK_ADDITIVE : HEED_MASK_BOOLEAN, strides[2],
                             strides[1], strides[0]};
}

static void set_masks(struct attention *a)
{
    heed_attention_args *args = &a->args;
    int has_mask = a->mask && a->mask->data, has_lengths = a->lengths && a->lengths->data;
    int short_mask = has_mask && a->mask->dims[a->mask->ndim - 1] != args->seq_kv;
    int has_window = a->left >= 0.0 || a->right >= 0.0;
    int odd_diagonal = a->causal && !has_lengths && a->past != 0 && a->past != args->seq_kv - args->seq_q;
    odd_diagonal |= has_window && !has_lengths && args->seq_kv != args->seq_q + a->past && (a->past != 0 || !a->causal);
    if (has_lengths) {
        size_t *lengths = (size_t *)(void *)buffer(args->batch * 2, 0);
        for (size_t b = 0; b < args->batch; b++)
            lengths[b] = (size_t)((const int64_t *)a->lengths->data)[b];
        args->kv_lengths = lengths;
    }
    if (short_mask || odd_diagonal || a->keep || a->relative) {
        expand_masks(a);
        return;
    }
    args->window_left = a->left >= 0.0 ? (size_t)a->left : HEED_UNBOUNDED;
    args->window_right = a->right >= 0.0 ? (size_t)a->right : HEED_UNBOUNDED;
    if (has_mask)
        set_mask(args, a->mask);
    if (a->causal)
        args->causal = has_lengths || a->past != 0 ? HEED_CAUSAL_BOTTOM_RIGHT : HEED_CAUSAL_TOP_LEFT;
}

/* The output takes the layout of the query. */
static float *prepare_output(heed_attention_args *args, int heads_first)
{
    float *out = buffer(args->batch * args->n_heads * args->seq_q * args->value_dim, 1);
    heed_heads o = heads_first ? head_major(out, args->seq_q, args->n_heads, args->value_dim)
                               : interleaved(out, args->seq_q, args->n_heads, args->value_dim);
    args->out = (heed_heads_out){out, o.batch_stride, o.head_stride, o.row_stride};
    return out;
}

static void set_scale(const struct test_case *t, heed_attention_args *args)
{
    if (find(t, "scale")) {
        args->scale = HEED_SCALE_VALUE;
        args->scale_value = (float)number(t, "scale", 1.0);
    }
}

/* Q, K, V of three or four dimensions, with the past before the new keys. */
static void set_operands(const struct test_case *t, struct attention *a, size_t heads, size_t kv_heads)
{
    const struct tensor *q = &t->in[0], *k = &t->in[1], *v = &t->in[2], *past = &t->in[4];
    heed_attention_args *args = &a->args;
    int flat = q->ndim == 3;
    args->batch = q->dims[0];
    args->n_heads = flat ? heads : q->dims[1];
    args->n_kv_heads = flat ? kv_heads : k->dims[1];
    args->seq_q = q->dims[flat ? 1 : 2];
    args->seq_kv = k->dims[flat ? 1 : 2];
    args->head_dim = flat ? q->dims[2] / heads : q->dims[3];
    args->value_dim = flat ? v->dims[2] / kv_heads : v->dims[3];
    heed_heads (*const layout)(const float *, size_t, size_t, size_t) = flat ? interleaved : head_major;
    args->q = layout(floats(q), args->seq_q, args->n_heads, args->head_dim);
    args->k = layout(floats(k), args->seq_kv, args->n_kv_heads, args->head_dim);
    args->v = layout(floats(v), args->seq_kv, args->n_kv_heads, args->value_dim);
    if (past->data) {
        size_t n = args->seq_kv;
        a->past = past->dims[2];
        args->k = join_past(floats(past), a->past, &args->k, n, args->batch, args->n_kv_heads, args->head_dim);
        args->v = join_past(floats(&t->in[5]), a->past, &args->v, n, args->batch, args->n_kv_heads, args->value_dim);
        args->seq_kv += a->past;
    }
}

static const char *run_attention(const struct test_case *t, const heed_context *context)
{
    const heed_attention_args defaults = HEED_ATTENTION_ARGS_INIT;
    struct attention a = {.args = defaults, .mask = &t->in[3], .lengths = &t->in[6]};
    a.args.softcap = (float)number(t, "softcap", 0.0);
    set_operands(t, &a, count(t, "q_num_heads"), count(t, "kv_num_heads"));
    a.causal = number(t, "is_causal", 0.0) != 0.0;
    a.left = number(t, "left_window_size", -1.0);
    a.right = number(t, "right_window_size", -1.0);
    set_masks(&a);
    set_scale(t, &a.args);
    float *got = prepare_output(&a.args, t->in[0].ndim == 4), *map = NULL;
    if (t->out[3].data && number(t, "qk_matmul_output_mode", 0.0) == 3.0) {
        heed_heads rows = head_major(NULL, a.args.seq_q, a.args.n_heads, a.args.seq_kv);
        map = buffer(a.args.batch * rows.batch_stride, 3);
        a.args.map = (heed_heads_out){map, rows.batch_stride, rows.head_stride, rows.row_stride};
    }
    check_status(t, heed_attention(context, &a.args, NULL));
    compare(t, 0, got);
    if (map)
        compare(t, 3, map);
    return NULL;
}

static const char *run_flex_attention(const struct test_case *t, const heed_context *context)
{
    const heed_attention_args defaults = HEED_ATTENTION_ARGS_INIT;
    const struct attribute *mod = find(t, "score_mod");
    struct attention a = {.args = defaults, .left = -1.0, .right = -1.0};
    a.relative = mod && strncmp(mod->text, "score_mod_relative_positional", 29) == 0;
    a.causal = mod && strncmp(mod->text, "score_mod_causal_mask", 21) == 0;
    int capped = mod && strncmp(mod->text, "score_mod_soft_cap", 18) == 0;
    const char *cap = capped ? strstr(mod->text, "cap=") : NULL;
    a.args.softcap = cap ? strtof(cap + 4, NULL) : 0.0f;
    if ((mod && !a.relative && !a.causal && !cap) || find(t, "prob_mod"))
        return "the graph is no mask";
    set_operands(t, &a, 0, 0);
    set_masks(&a);
    set_scale(t, &a.args);
    float *got = prepare_output(&a.args, 1);
    check_status(t, heed_attention(context, &a.args, NULL));
    compare(t, 0, got);
    return NULL;
}

/* The bias of one query, the last of its keys: what the weights of equal scores say, compared as what they are
 * logarithms of. */
static const char *run_alibi(const struct test_case *t, const heed_context *context)
{
    size_t heads = count(t, "num_heads"), keys = count(t, "key_length");
    float *slopes = buffer(heads, 0), *map = buffer(heads * keys, 0), *bias = buffer(heads * keys, 1);
    heed_attention_args args = HEED_ATTENTION_ARGS_INIT;
    check_status(t, heed_alibi_slopes(heads, number(t, "alibi_bias_max", 8.0), slopes));
    args.batch = args.seq_q = 1;
    args.n_heads = args.n_kv_heads = heads;
    args.seq_kv = keys;
    args.slopes = slopes;
    args.map = (heed_heads_out){map, 0, keys, keys};
    check_status(t, heed_attention(context, &args, NULL));
    for (size_t i = 0; i < heads * keys; i++) {
        size_t h = i / keys;
        bias[i] = slopes[h] * ((float)(i % keys) - (float)(keys - 1));
        check_bound(log((double)map[i] / (double)map[h * keys + keys - 1]), (double)bias[i], 2e-6, "weights", i);
    }
    compare(t, 0, bias);
    return NULL;
}

/* x plus the part of the bias that starts at first. */
static const struct tensor *add_bias(const struct tensor *x, const struct tensor *bias, size_t first,
                                     struct tensor *sum)
{
    size_t cols = x->dims[x->ndim - 1];
    float *data = buffer(x->elements, 0);
    for (size_t i = 0; i < x->elements; i++)
        data[i] = floats(x)[i] + (bias->data ? floats(bias)[first + i % cols] : 0.0f);
    *sum = *x;
    sum->data = data;
    return sum;
}

/* A [batch][keys] mask is one row for all heads and queries, a [batch][queries][keys] one for all heads. */
static struct tensor mask_of_heads(const struct tensor *x)
{
    struct tensor mask = *x;
    if (!x->data)
        return mask;
    mask.ndim = 4;
    mask.dims[0] = x->dims[0];
    mask.dims[1] = 1;
    mask.dims[2] = x->ndim == 3 ? x->dims[1] : 1;
    mask.dims[3] = x->dims[x->ndim - 1];
    return mask;
}

/* Either, both or none of the two may be given. */
static void set_mask_pair(struct attention *a, const struct tensor *keep, const struct tensor *bias)
{
    a->left = a->right = -1.0;
    a->mask = bias->data ? bias : keep;
    a->keep = bias->data && keep->data ? keep : NULL;
    set_masks(a);
}

static void attend_and_compare(const struct test_case *t, const heed_context *context, struct attention *a,
                               const struct tensor *keep, const struct tensor *bias)
{
    struct tensor mask = mask_of_heads(keep);
    set_mask_pair(a, &mask, bias);
    float *got = prepare_output(&a->args, 0);
    check_status(t, heed_attention(context, &a->args, NULL));
    compare(t, 0, got);
}

static const char *run_mha(const struct test_case *t, const heed_context *context)
{
    const heed_attention_args defaults = HEED_ATTENTION_ARGS_INIT;
    struct attention a = {.args = defaults};
    size_t heads = count(t, "num_heads"), dim = t->in[0].dims[2], first = 0;
    if (t->in[1].ndim != 3 || t->in[2].ndim != 3)
        return "keys of four dimensions beside interleaved queries";
    /* in[3] is the bias here: set_operands looks at in[4] and in[5] for the past. */
    struct test_case *shifted = (struct test_case *)(void *)buffer(sizeof *t / sizeof(float) + 1, 0);
    *shifted = *t;
    for (size_t i = 0; i < 3; i++) {
        add_bias(&t->in[i], &t->in[3], first, &shifted->in[i]);
        first += i < 2 ? dim : 0;
    }
    shifted->in[4] = t->in[6];
    shifted->in[5] = t->in[7];
    set_operands(shifted, &a, heads, heads);
    a.causal = number(t, "unidirectional", 0.0) != 0.0;
    set_scale(t, &a.args);
    attend_and_compare(t, context, &a, &t->in[4], &t->in[5]);
    return NULL;
}

/* Columns first .. first + cols - 1 of a weight matrix [in][total], packed. */
static const heed_weights *pack_columns(const struct tensor *w, size_t first, size_t cols)
{
    size_t in = w->dims[0], total = w->dims[1], bytes = 0;
    const heed_weights *weights = NULL;
    CHECK(heed_weights_bytes(HEED_TYPE_F32, in, cols, &bytes) == HEED_OK);
    CHECK(heed_weights_pack(NULL, HEED_TYPE_F32, HEED_LAYOUT_IN_OUT, in, cols, floats(w) + first, total,
                            buffer(bytes / 4, 0), bytes, &weights) == HEED_OK);
    return weights;
}

/* x W + b for the columns of one of query, key and value. */
static float *project(const struct test_case *t, const heed_context *context, size_t first, size_t cols)
{
    const struct tensor *x = &t->in[0];
    size_t rows = x->dims[0] * x->dims[1];
    float *y = buffer(rows * cols, 0);
    heed_linear_options options = HEED_LINEAR_OPTIONS_INIT;
    options.bias = t->in[2].data ? floats(&t->in[2]) + first : NULL;
    check_status(
        t, heed_linear(context, rows, floats(x), x->dims[2], pack_columns(&t->in[1], first, cols), &options, y, cols));
    return y;
}

static const char *run_qkv_attention(const struct test_case *t, const heed_context *context)
{
    const heed_attention_args defaults = HEED_ATTENTION_ARGS_INIT;
    const struct attribute *sizes = find(t, "qkv_sizes");
    struct attention a = {.args = defaults};
    const struct tensor *past = &t->in[4];
    heed_attention_args *args = &a.args;
    if (!sizes || sizes->count != 3)
        return "sizes are not given";
    size_t q = (size_t)sizes->values[0], k = (size_t)sizes->values[1], v = (size_t)sizes->values[2];
    args->batch = t->in[0].dims[0];
    args->seq_q = args->seq_kv = t->in[0].dims[1];
    args->n_heads = args->n_kv_heads = count(t, "num_heads");
    args->head_dim = q / args->n_heads;
    args->value_dim = v / args->n_heads;
    args->q = interleaved(project(t, context, 0, q), args->seq_q, args->n_heads, args->head_dim);
    args->k = interleaved(project(t, context, q, k), args->seq_q, args->n_heads, args->head_dim);
    args->v = interleaved(project(t, context, q + k, v), args->seq_q, args->n_heads, args->value_dim);
    a.causal = number(t, "unidirectional", 0.0) != 0.0;
    if (past->data) {
        a.past = past->dims[3];
        args->k = join_past(floats(past), a.past, &args->k, args->seq_q, args->batch, args->n_heads, args->head_dim);
        args->v = join_past(floats(past) + past->elements / 2, a.past, &args->v, args->seq_q, args->batch,
                            args->n_heads, args->value_dim);
        args->seq_kv += a.past;
    }
    attend_and_compare(t, context, &a, &t->in[3], &t->in[5]);
    return NULL;
}

/* ---- encoder and decoder ---- */

/* Rows first .. first + out - 1 of a matrix [total][in] as PyTorch stores it, packed. */
static const heed_weights *pack_rows(const struct tensor *w, size_t first, size_t out)
{
    size_t in = w->dims[1], bytes = 0;
    const heed_weights *weights = NULL;
    CHECK(heed_weights_bytes(HEED_TYPE_F32, in, out, &bytes) == HEED_OK);
    CHECK(heed_weights_pack(NULL, HEED_TYPE_F32, HEED_LAYOUT_OUT_IN, in, out, floats(w) + first * in, in,
                            buffer(bytes / 4, 0), bytes, &weights) == HEED_OK);
    return weights;
}

/* w: weight and bias of the projections to queries, keys and values, then of that to the output. */
static heed_mha_weights read_attention(const struct test_case *t, const struct tensor *w)
{
    heed_mha_weights attention = HEED_MHA_WEIGHTS_INIT;
    size_t d = w[0].dims[1];
    attention.n_heads = attention.n_kv_heads = count(t, "nhead");
    attention.head_dim = attention.value_dim = d / attention.n_heads;
    attention.query = pack_rows(&w[0], 0, d);
    attention.key = pack_rows(&w[0], d, d);
    attention.value = pack_rows(&w[0], 2 * d, d);
    attention.output = pack_rows(&w[2], 0, d);
    attention.query_bias = floats(&w[1]);
    attention.key_bias = floats(&w[1]) + d;
    attention.value_bias = floats(&w[1]) + 2 * d;
    attention.output_bias = floats(&w[3]);
    return attention;
}

static heed_ffn_weights read_ffn(const struct test_case *t, const struct tensor *w)
{
    heed_ffn_weights ffn = HEED_FFN_WEIGHTS_INIT;
    ffn.up = pack_rows(&w[0], 0, w[0].dims[0]);
    ffn.up_bias = floats(&w[1]);
    ffn.down = pack_rows(&w[2], 0, w[2].dims[0]);
    ffn.down_bias = floats(&w[3]);
    ffn.activation = text_is(t, "activation", "gelu") ? HEED_ACTIVATION_GELU_ERF : HEED_ACTIVATION_RELU;
    return ffn;
}

static float epsilon(const struct test_case *t)
{
    return (float)number(t, "epsilon", 1e-5);
}

static heed_encoder_layer make_layer(const struct test_case *t, const heed_mha_weights *attention,
                                     const heed_ffn_weights *ffn, const struct tensor *norm1,
                                     const struct tensor *norm2)
{
    heed_encoder_layer layer = HEED_ENCODER_LAYER_INIT;
    layer.attention = attention;
    layer.ffn = ffn;
    layer.norm1_scale = floats(&norm1[0]);
    layer.norm1_shift = floats(&norm1[1]);
    layer.norm2_scale = floats(&norm2[0]);
    layer.norm2_shift = floats(&norm2[1]);
    layer.eps = epsilon(t);
    layer.order = number(t, "norm_first", 0.0) != 0.0 ? HEED_NORM_PRE : HEED_NORM_POST;
    return layer;
}

/* The layers of a stack share their weights. */
static const void *repeat(const void *layer, size_t bytes, size_t layers)
{
    unsigned char *stack = (unsigned char *)buffer(layers * bytes / sizeof(float), 0);
    for (size_t i = 0; i < layers; i++)
        memcpy(stack + i * bytes, layer, bytes);
    return stack;
}

static heed_encoder_args make_stack_args(const struct test_case *t, const struct tensor *x, heed_mask mask,
                                         const struct tensor *final_norm, float *y)
{
    heed_encoder_args args = HEED_ENCODER_ARGS_INIT;
    args.batch = x->dims[0];
    args.seq = x->dims[1];
    args.mask = mask;
    if (number(t, "final_norm", 0.0) != 0.0) {
        args.final_scale = floats(&final_norm[0]);
        args.final_shift = floats(&final_norm[1]);
        args.final_eps = epsilon(t);
    }
    args.x = floats(x);
    args.y = y;
    args.ldx = args.ldy = x->dims[2];
    return args;
}

/* PyTorch's boolean masks are true where a key is ignored. */
static struct tensor invert_mask(const struct tensor *x)
{
    struct tensor mask = *x;
    if (x->dtype != DTYPE_BOOL)
        return mask;
    unsigned char *keep = (unsigned char *)buffer(x->elements, 0);
    for (size_t i = 0; i < x->elements; i++)
        keep[i] = !((const unsigned char *)x->data)[i];
    mask.data = keep;
    return mask;
}

/* mask is [queries][keys], padding [batch][keys]; either may be left out. One head stands for all. */
static heed_mask join_masks(const struct tensor *mask, const struct tensor *padding, const struct tensor *queries,
                            const struct tensor *keys)
{
    const heed_attention_args defaults = HEED_ATTENTION_ARGS_INIT;
    struct attention a = {.args = defaults};
    struct tensor bias = invert_mask(mask), keep = invert_mask(padding);
    keep = mask_of_heads(&keep);
    a.args.batch = queries->dims[0];
    a.args.n_heads = 1;
    a.args.seq_q = queries->dims[1];
    a.args.seq_kv = keys->dims[1];
    set_mask_pair(&a, &keep, &bias);
    a.args.mask.head_stride = 0;
    return a.args.mask;
}

static struct tensor encode(const struct test_case *t, const heed_context *context, const struct tensor *src,
                            heed_mask mask, const struct tensor *w)
{
    size_t layers = count(t, "num_layers");
    float *y = buffer(src->elements, 1);
    const heed_mha_weights attention = read_attention(t, &w[0]);
    const heed_ffn_weights ffn = read_ffn(t, &w[4]);
    const heed_encoder_layer layer = make_layer(t, &attention, &ffn, &w[8], &w[10]);
    const heed_encoder_args args = make_stack_args(t, src, mask, &w[12], y);
    check_status(t, heed_encoder(context, layers, repeat(&layer, sizeof layer, layers), &args, NULL));
    struct tensor encoded = *src;
    encoded.data = y;
    return encoded;
}

static void decode_and_compare(const struct test_case *t, const heed_context *context, const struct tensor *tgt,
                               const struct tensor *memory, heed_mask mask, heed_mask memory_mask,
                               const struct tensor *w)
{
    size_t layers = (size_t)number(t, "num_decoder_layers", number(t, "num_layers", 0.0));
    float *got = buffer(tgt->elements, 1);
    const heed_mha_weights attention = read_attention(t, &w[0]), cross = read_attention(t, &w[4]);
    const heed_ffn_weights ffn = read_ffn(t, &w[8]);
    const heed_encoder_layer self = make_layer(t, &attention, &ffn, &w[12], &w[16]);
    const heed_encoder_args self_args = make_stack_args(t, tgt, mask, &w[18], got);
    heed_decoder_layer layer = HEED_DECODER_LAYER_INIT;
    heed_decoder_args args = HEED_DECODER_ARGS_INIT;
    layer.self = &self;
    layer.cross = &cross;
    layer.norm_scale = floats(&w[14]);
    layer.norm_shift = floats(&w[15]);
    args.self = &self_args;
    args.memory = floats(memory);
    args.ld_memory = memory->dims[2];
    args.memory_seq = memory->dims[1];
    args.memory_mask = memory_mask;
    check_status(t, heed_decoder(context, layers, repeat(&layer, sizeof layer, layers), &args, NULL));
    compare(t, 0, got);
}

static const char *run_encoder(const struct test_case *t, const heed_context *context)
{
    const struct tensor *src = &t->in[0];
    struct tensor encoded = encode(t, context, src, join_masks(&t->in[1], &t->in[2], src, src), &t->in[3]);
    compare(t, 0, floats(&encoded));
    return NULL;
}

static const char *run_decoder(const struct test_case *t, const heed_context *context)
{
    const struct tensor *tgt = &t->in[0], *memory = &t->in[1];
    heed_mask mask = join_masks(&t->in[2], &t->in[4], tgt, tgt);
    heed_mask memory_mask = join_masks(&t->in[3], &t->in[5], tgt, memory);
    decode_and_compare(t, context, tgt, memory, mask, memory_mask, &t->in[6]);
    return NULL;
}

/* The decoder's weights follow those of the encoder, the last norm of which is always there. */
static const char *run_transformer(const struct test_case *t, const heed_context *context)
{
    const struct tensor *src = &t->in[0], *tgt = &t->in[1];
    struct tensor memory = encode(t, context, src, join_masks(&t->in[2], &t->in[5], src, src), &t->in[8]);
    heed_mask mask = join_masks(&t->in[3], &t->in[6], tgt, tgt);
    heed_mask memory_mask = join_masks(&t->in[4], &t->in[7], tgt, &memory);
    decode_and_compare(t, context, tgt, &memory, mask, memory_mask, &t->in[22]);
    return NULL;
}

/* ---- the run ---- */

static const struct {
    const char *op;
    runner *run;
} operators[] = {
    {"MatMul", run_matmul},
    {"Gemm", run_gemm},
    {"Softmax", run_softmax},
    {"LogSoftmax", run_softmax},
    {"LayerNormalization", run_layernorm},
    {"RMSNormalization", run_rmsnorm},
    {"SkipLayerNorm", run_skip_layernorm},
    {"Gelu", run_activation},
    {"Relu", run_activation},
    {"Swish", run_activation},
    {"Gather", run_gather},
    {"RotaryEmbedding", run_rotary_embedding},
    {"RoPE", run_rope},
    {"ALiBi", run_alibi},
    {"Attention", run_attention},
    {"FlexAttention", run_flex_attention},
    {"MultiHeadAttention", run_mha},
    {"QKVAttention", run_qkv_attention},
    {"TransformerEncoder", run_encoder},
    {"TransformerDecoder", run_decoder},
    {"Transformer", run_transformer},
};

#define MOST_LEVELS 8
#define MOST_NAMES 1024

static struct {
    heed_context *contexts[MOST_LEVELS + 1];
    size_t n_contexts, ran, passed, failed, partly, not_applicable, malformed;
    char failed_names[MOST_NAMES][NAME_LENGTH];
} driver;

static void open_contexts(void)
{
    heed_level_info info;
    const char *name = "";
    CHECK(heed_level_default(&name) == HEED_OK);
    driver.contexts[driver.n_contexts++] = NULL;
    note("default level: %s", name);
    for (size_t i = 0; driver.n_contexts <= MOST_LEVELS && heed_level_query(i, &info) == HEED_OK; i++) {
        heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
        options.level = info.name;
        options.threads = 2;
        if (!info.supported) {
            note("level %s is not used: %s", info.name, info.reason);
            continue;
        }
        CHECK(heed_context_create(&driver.contexts[driver.n_contexts], &options) == HEED_OK);
        note("level %s", heed_context_level(driver.contexts[driver.n_contexts]));
        driver.n_contexts++;
    }
}

/* On every context; the first answer says whether the case applies. */
static const char *run_everywhere(const struct test_case *t)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (strcmp(operators[i].op, t->op) != 0)
            continue;
        for (size_t c = 0; c < driver.n_contexts; c++) {
            const char *reason = operators[i].run(t, driver.contexts[c]);
            if (reason)
                return reason;
        }
        return NULL;
    }
    return "operator not offered";
}

static int is_partly_compared(const struct test_case *t)
{
    for (size_t i = 0; i < sizeof t->out / sizeof *t->out; i++)
        if (t->out[i].data && !(compared >> i & 1u))
            return 1;
    return 0;
}

static void run_case(const char *manifest)
{
    static struct test_case t;
    char tensors[4096];
    size_t length = strlen(manifest);
    memcpy(tensors, manifest, length - 3);
    memcpy(tensors + length - 3, "bin", 4);
    if (!read_manifest(manifest, &t) || !read_tensors(tensors, &t)) {
        driver.malformed++;
        begin("%s is well-formed", manifest);
        CHECK(0);
        end();
        return;
    }
    begin("%s", t.name);
    compared = 0;
    const char *reason = run_everywhere(&t);
    if (reason) {
        driver.not_applicable++;
        skip(reason, "%s (%s)", t.name, t.op);
    } else {
        int ok = line_is_ok();
        driver.ran++;
        driver.partly += (size_t)is_partly_compared(&t);
        driver.passed += (size_t)ok;
        if (!ok && driver.failed < MOST_NAMES)
            memcpy(driver.failed_names[driver.failed], t.name, sizeof t.name);
        driver.failed += (size_t)!ok;
        end();
    }
    release_all();
}

static int is_manifest(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && strcmp(entry->d_name + length - 4, ".txt") == 0;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strcmp(entry->d_name, "LICENSES") != 0;
}

static void run_group(const char *directory, const char *group)
{
    char path[4096];
    struct dirent **entries;
    snprintf(path, sizeof path, "%s/%s", directory, group);
    int n = scandir(path, &entries, is_manifest, alphasort);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", directory, group, entries[i]->d_name);
        run_case(path);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        printf("Bail out! usage: conformance DIR\n");
        return 99;
    }
    begin("levels");
    open_contexts();
    end();
    struct dirent **groups;
    int n = scandir(argv[1], &groups, is_visible, alphasort);
    if (n < 0) {
        printf("Bail out! %s: %s\n", argv[1], strerror(errno));
        return 99;
    }
    for (int i = 0; i < n; i++) {
        run_group(argv[1], groups[i]->d_name);
        free(groups[i]);
    }
    free(groups);
    begin("cases were found and run");
    CHECK(driver.ran > 0);
    CHECK(driver.malformed == 0);
    end();
    note("%zu of those that ran have further outputs that the library does not offer", driver.partly);
    note("cases: %zu ran, %zu passed, %zu failed, %zu not applicable, %zu malformed", driver.ran, driver.passed,
         driver.failed, driver.not_applicable, driver.malformed);
    for (size_t i = 0; i < driver.failed && i < MOST_NAMES; i++)
        note("failed: %s", driver.failed_names[i]);
    for (size_t i = 0; i < driver.n_contexts; i++)
        heed_context_destroy(driver.contexts[i]);
    return finish();
}
