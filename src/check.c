/* SPDX-License-Identifier: MIT
 * Argument checks: nothing is read through a caller's pointer, or written, before these have passed.
 */
#include "internal.h"

#include <string.h>

void heed_fail(struct heed_operands *operands, heed_status status)
{
    if (operands->status == HEED_OK)
        operands->status = status;
}

void heed_require(struct heed_operands *operands, bool condition, heed_status otherwise)
{
    if (!condition)
        heed_fail(operands, otherwise);
}

/* A power of two: elements are bytes, floats, integers up to size_t, or doubles, which i686 aligns to less than their
 * size. */
static size_t alignment_of(size_t size)
{
    return size == sizeof(double) ? _Alignof(double) : size;
}

heed_status heed_array_check(const void *data, size_t size, size_t elements)
{
    uintptr_t begin = (uintptr_t)data;
    size_t bytes = heed_times(elements, size);
    if ((begin & (alignment_of(size) - 1)) != 0) /* % would divide */
        return HEED_ERR_ALIGNMENT;
    return bytes > PTRDIFF_MAX || bytes > UINTPTR_MAX - begin ? HEED_ERR_OVERFLOW : HEED_OK;
}

/* Registers the bytes from data to the end of `elements` elements. */
static void add_span(struct heed_operands *operands, const void *data, size_t size, size_t elements, size_t ld,
                     unsigned groups, bool written)
{
    heed_fail(operands, data ? heed_array_check(data, size, elements) : HEED_ERR_NULL);
    heed_require(operands, operands->count < HEED_OPERANDS_MOST, HEED_ERR_OVERFLOW);
    if (operands->status != HEED_OK)
        return;
    uintptr_t begin = (uintptr_t)data;
    operands->operand[operands->count++] = (struct heed_operand){begin, begin + elements * size, ld, groups, written};
}

static void add_matrix(struct heed_operands *operands, const void *data, size_t size, size_t rows, size_t cols,
                       size_t ld, unsigned groups, bool written)
{
    if (rows == 0 || cols == 0)
        return;
    if (ld < cols)
        heed_fail(operands, HEED_ERR_STRIDE);
    else if (rows == 1) /* whose stride, if it is no error, does not count */
        add_span(operands, data, size, cols, cols, groups, written);
    else
        add_span(operands, data, size, heed_plus(heed_times(rows - 1, ld), cols), ld, groups, written);
}

void heed_read(struct heed_operands *operands, const void *data, size_t size, size_t rows, size_t cols, size_t ld,
               unsigned groups)
{
    add_matrix(operands, data, size, rows, cols, ld, groups, false);
}

void heed_write(struct heed_operands *operands, void *data, size_t size, size_t rows, size_t cols, size_t ld,
                unsigned groups)
{
    add_matrix(operands, data, size, rows, cols, ld, groups, true);
}

void heed_read_optional(struct heed_operands *operands, const void *data, size_t size, size_t rows, size_t cols,
                        size_t ld, unsigned groups)
{
    if (data)
        heed_read(operands, data, size, rows, cols, ld, groups);
}

void heed_write_optional(struct heed_operands *operands, void *data, size_t size, size_t rows, size_t cols, size_t ld,
                         unsigned groups)
{
    if (data)
        heed_write(operands, data, size, rows, cols, ld, groups);
}

static bool is_empty(const struct heed_dims *dims)
{
    return dims->cols == 0 || dims->count[0] == 0 || dims->count[1] == 0 || dims->count[2] == 0;
}

static size_t tensor_elements(const struct heed_dims *dims)
{
    size_t last = dims->cols;
    for (int d = 0; d < 3; d++)
        last = heed_plus(last, heed_times(dims->count[d] - 1, dims->stride[d]));
    return last;
}

/* Taken by ascending stride, each stride must step over all that the smaller ones reach. */
static bool strides_collide(const struct heed_dims *dims)
{
    size_t reach = dims->cols;
    bool used[3] = {false, false, false};
    for (int round = 0; round < 3; round++) {
        int least = -1;
        for (int d = 0; d < 3; d++)
            if (!used[d] && dims->count[d] > 1 && (least < 0 || dims->stride[d] < dims->stride[least]))
                least = d;
        if (least < 0)
            return false;
        if (dims->stride[least] < reach)
            return true;
        used[least] = true;
        reach = heed_plus(reach, heed_times(dims->count[least] - 1, dims->stride[least]));
    }
    return false;
}

static void add_tensor(struct heed_operands *operands, const void *data, size_t size, const struct heed_dims *dims,
                       bool written)
{
    if (is_empty(dims))
        return;
    if (written && strides_collide(dims))
        heed_fail(operands, HEED_ERR_STRIDE);
    else
        add_span(operands, data, size, tensor_elements(dims), 0, 0, written);
}

void heed_read_tensor(struct heed_operands *operands, const void *data, size_t size, const struct heed_dims *dims)
{
    add_tensor(operands, data, size, dims, false);
}

void heed_write_tensor(struct heed_operands *operands, void *data, size_t size, const struct heed_dims *dims)
{
    add_tensor(operands, data, size, dims, true);
}

bool heed_mask_type_is_valid(heed_mask_type type)
{
    return type == HEED_MASK_NONE || type == HEED_MASK_ADDITIVE || type == HEED_MASK_BOOLEAN;
}

void heed_read_mask(struct heed_operands *operands, const heed_mask *mask, size_t batch, size_t heads, size_t rows,
                    size_t cols)
{
    const struct heed_dims dims = {
        {batch, heads, rows}, {mask->batch_stride, mask->head_stride, mask->row_stride}, cols};
    if (mask->type != HEED_MASK_NONE)
        heed_read_tensor(operands, mask->data, mask->type == HEED_MASK_ADDITIVE ? sizeof(float) : 1, &dims);
}

static bool meet(const struct heed_operand *a, const struct heed_operand *b)
{
    return a->begin < b->end && b->begin < a->end;
}

static bool may_meet(const struct heed_operand *a, const struct heed_operand *b)
{
    return (a->groups & b->groups) != 0 && a->begin == b->begin && a->end == b->end && a->ld == b->ld;
}

/* Of the operands from one on, with each other and with those before. */
static void check_overlaps(struct heed_operands *operands, size_t first)
{
    for (size_t i = first; i < operands->count; i++)
        for (size_t j = 0; j < i; j++) {
            const struct heed_operand *a = &operands->operand[i], *b = &operands->operand[j];
            if ((a->written || b->written) && meet(a, b) && !may_meet(a, b))
                heed_fail(operands, HEED_ERR_OVERLAP);
        }
}

heed_status heed_operands_check(struct heed_operands *operands, const heed_workspace *workspace, size_t bytes)
{
    size_t count = operands->count;
    check_overlaps(operands, 0);
    if (workspace && bytes > 0) {
        heed_require(operands, workspace->bytes >= bytes, HEED_ERR_WORKSPACE);
        if (operands->status == HEED_OK)
            heed_write(operands, workspace->memory, 4, 1, bytes / 4, bytes / 4, 0);
        check_overlaps(operands, count);
    }
    return operands->status;
}

heed_status heed_struct_read(void *known, size_t known_size, size_t least, const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < least || size > 65536)
        return HEED_ERR_STRUCT;
    for (size_t i = known_size; i < size; i++)
        if (((const unsigned char *)given)[i] != 0)
            return HEED_ERR_STRUCT;
    memcpy(known, given, size < known_size ? size : known_size);
    return HEED_OK;
}

heed_status heed_sequences_check(const struct heed_sequences *s, bool limited, size_t *rows)
{
    if (!s->offsets) {
        *rows = heed_times(s->batch, s->length);
        return *rows == SIZE_MAX ? HEED_ERR_OVERFLOW : HEED_OK;
    }
    heed_status status = heed_array_check(s->offsets, sizeof *s->offsets, heed_plus(s->batch, 1));
    if (status != HEED_OK)
        return status;
    for (size_t b = 0; b < s->batch; b++) {
        if (s->offsets[b + 1] < s->offsets[b])
            return HEED_ERR_INDEX;
        if (limited && s->offsets[b + 1] - s->offsets[b] > s->length)
            return HEED_ERR_SHAPE;
    }
    *rows = s->offsets[s->batch] - s->offsets[0];
    return HEED_OK;
}

void heed_read_offsets(struct heed_operands *operands, const struct heed_sequences *s)
{
    if (s->offsets)
        heed_read(operands, s->offsets, sizeof *s->offsets, 1, s->batch + 1, s->batch + 1, 0);
}

const float *heed_row_at(struct heed_operands *operands, const float *data, size_t row, size_t stride)
{
    size_t floats = heed_times(row, stride);
    if (row == 0 || !data)
        return data;
    heed_fail(operands, heed_array_check(data, sizeof *data, floats));
    return operands->status == HEED_OK ? data + floats : data;
}

/* A ragged tensor is one sequence of all rows. */
static struct heed_dims dims_of(const heed_heads *heads, const struct heed_sequences *s, size_t rows, size_t n_heads,
                                size_t cols)
{
    if (s->offsets)
        return (struct heed_dims){{1, n_heads, rows}, {0, heads->head_stride, heads->row_stride}, cols};
    return (struct heed_dims){
        {s->batch, n_heads, s->length}, {heads->batch_stride, heads->head_stride, heads->row_stride}, cols};
}

static void add_heads(struct heed_operands *operands, const heed_heads *heads, const struct heed_sequences *s,
                      size_t rows, size_t n_heads, size_t cols, bool written)
{
    const struct heed_dims dims = dims_of(heads, s, rows, n_heads, cols);
    if (!is_empty(&dims))
        add_tensor(operands, heed_row_at(operands, heads->data, heed_sequence_begin(s, 0), heads->row_stride),
                   sizeof(float), &dims, written);
}

void heed_read_heads(struct heed_operands *operands, const heed_heads *heads, const struct heed_sequences *s,
                     size_t rows, size_t n_heads, size_t cols)
{
    add_heads(operands, heads, s, rows, n_heads, cols, false);
}

void heed_write_heads(struct heed_operands *operands, const heed_heads_out *heads, const struct heed_sequences *s,
                      size_t rows, size_t n_heads, size_t cols)
{
    const heed_heads out = heed_heads_of_out(heads);
    add_heads(operands, &out, s, rows, n_heads, cols, true);
}
