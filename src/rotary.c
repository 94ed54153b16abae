/* SPDX-License-Identifier: MIT
 * heed_rotary, the tables of cosines and sines that it takes, and the scalings of their frequencies.
 */
#include "rows.h"

#define PI 3.14159265358979323846

/* ---- tables ---- */

struct rotary_table {
    const int32_t *positions;
    size_t first, half, ld_cosine, ld_sine;
    double log_base, scale, magnitude;
    const double *factors;
    float *cosine, *sine;
};

static void table_rows(const void *arg, size_t first, size_t count)
{
    const struct rotary_table *t = arg;
    for (size_t j = 0; j < t->half; j++) {
        double frequency = heed_exp(-((double)j / (double)t->half) * t->log_base) * t->scale, sine, cosine;
        if (t->factors)
            frequency *= t->factors[j];
        for (size_t i = first; i < first + count; i++) {
            double position = t->positions ? (double)t->positions[i] : (double)(t->first + i);
            heed_sincos(position * frequency, &sine, &cosine);
            t->cosine[i * t->ld_cosine + j] = (float)(cosine * t->magnitude);
            t->sine[i * t->ld_sine + j] = (float)(sine * t->magnitude);
        }
    }
}

/* Frequencies are at most 1 before they are scaled, and heed_sincos takes angles up to 2^31. */
static bool angles_are_small(size_t n, const int32_t *positions, size_t first, size_t half,
                             const heed_rotary_options *o)
{
    double most_position = n > 0 && !positions ? (double)first + (double)(n - 1) : 0.0, most_factor = 1.0;
    for (size_t i = 0; positions && i < n; i++) {
        double magnitude = positions[i] < 0 ? -(double)positions[i] : (double)positions[i];
        most_position = magnitude > most_position ? magnitude : most_position;
    }
    for (size_t j = 0; o->factors && j < half; j++) {
        double magnitude = o->factors[j] < 0.0 ? -o->factors[j] : o->factors[j];
        if (!heed_is_finite(magnitude))
            return false;
        most_factor = magnitude > most_factor ? magnitude : most_factor;
    }
    double scale = o->position_scale < 0.0 ? -o->position_scale : o->position_scale;
    return most_position * (most_factor * scale) <= 0x1p31;
}

heed_status heed_rotary_table(const heed_context *context, size_t n, const int32_t *positions, size_t first,
                              size_t dims, const heed_rotary_options *options, float *cosine, size_t ld_cosine,
                              float *sine, size_t ld_sine)
{
    struct heed_context fallback;
    const struct heed_context *c;
    const heed_rotary_options defaults = HEED_ROTARY_OPTIONS_INIT;
    heed_rotary_options o = defaults;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    size_t half = dims / 2;
    struct heed_operands operands;
    heed_operands_begin(&operands, status);
    if (operands.status == HEED_OK)
        heed_read_optional(&operands, positions, sizeof *positions, 1, n, n, 0);
    heed_require(&operands, positions || heed_plus(first, n) <= (size_t)1 << 31, HEED_ERR_VALUE);
    heed_require(&operands, dims % 2 == 0, HEED_ERR_SHAPE);
    if (operands.status == HEED_OK && options)
        heed_fail(&operands, heed_struct_read(&o, sizeof o, sizeof o, options));
    heed_require(&operands, o.base >= 1.0 && o.base <= 0x1p1000, HEED_ERR_VALUE);
    heed_require(&operands, heed_is_finite(o.position_scale) && heed_is_finite(o.magnitude), HEED_ERR_VALUE);
    heed_read_optional(&operands, o.factors, sizeof *o.factors, n ? 1 : 0, half, half, 0);
    if (operands.status == HEED_OK)
        heed_require(&operands, angles_are_small(n, positions, first, n ? half : 0, &o), HEED_ERR_VALUE);
    heed_write(&operands, cosine, sizeof *cosine, n, half, ld_cosine, 0);
    heed_write(&operands, sine, sizeof *sine, n, half, ld_sine, 0);
    status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || n == 0 || half == 0)
        return status;
    const struct rotary_table t = {positions,        first,       half,      ld_cosine, ld_sine, heed_log(o.base),
                                   o.position_scale, o.magnitude, o.factors, cosine,    sine};
    heed_run_rows(c, n, dims, HEED_EXP_WORK, table_rows, &t);
    return HEED_OK;
}

/* ---- scalings ---- */

static bool is_positive(double x)
{
    return x > 0.0 && heed_is_finite(x);
}

static heed_status check_scaling(size_t dims, double base, double factor, size_t context, const double *factors)
{
    if (dims % 2 != 0)
        return HEED_ERR_SHAPE;
    if (!(base > 1.0 && base <= 0x1p1000) || !(factor >= 1.0 && heed_is_finite(factor)))
        return HEED_ERR_VALUE;
    if (context == 0 || context > (size_t)1 << 31)
        return HEED_ERR_VALUE;
    if (dims > 0 && !factors)
        return HEED_ERR_NULL;
    return heed_array_check(factors, sizeof *factors, dims / 2);
}

heed_status heed_rotary_llama3(size_t dims, double base, double factor, double low_freq_factor, double high_freq_factor,
                               size_t original_context, double *factors)
{
    heed_status status = check_scaling(dims, base, factor, original_context, factors);
    if (status != HEED_OK)
        return status;
    if (!is_positive(low_freq_factor) || !is_positive(high_freq_factor) || low_freq_factor >= high_freq_factor)
        return HEED_ERR_VALUE;
    for (size_t j = 0; j < dims / 2; j++) {
        double frequency = heed_exp(-(2.0 * (double)j / (double)dims) * heed_log(base));
        double turns = (double)original_context * frequency / (2.0 * PI);
        double smooth = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
        smooth = smooth < 0.0 ? 0.0 : smooth > 1.0 ? 1.0 : smooth;
        factors[j] = (1.0 - smooth) / factor + smooth;
    }
    return HEED_OK;
}

/* The dimension, as a real number, whose pair turns so often over the context. */
static double turning_dimension(size_t dims, double base, double turns, size_t context)
{
    return (double)dims * heed_log((double)context / (turns * 2.0 * PI)) / (2.0 * heed_log(base));
}

heed_status heed_rotary_yarn(size_t dims, double base, double factor, double beta_fast, double beta_slow,
                             size_t original_context, double *factors, double *magnitude)
{
    struct heed_operands operands;
    heed_operands_begin(&operands, check_scaling(dims, base, factor, original_context, factors));
    heed_require(&operands, beta_fast <= 0x1p100 && beta_slow >= 0x1p-100 && beta_slow <= beta_fast, HEED_ERR_VALUE);
    heed_write(&operands, factors, sizeof *factors, 1, dims / 2, dims / 2, 0);
    heed_write(&operands, magnitude, sizeof *magnitude, 1, 1, 1, 0);
    heed_status status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK)
        return status;
    double last = dims > 0 ? (double)(dims - 1) : 0.0;
    double low = turning_dimension(dims, base, beta_fast, original_context);
    double high = turning_dimension(dims, base, beta_slow, original_context);
    low = low < 0.0 ? 0.0 : low > last ? last : (double)(size_t)low;
    high = high < 0.0 ? 0.0 : high > last ? last : high > (double)(size_t)high ? (double)(size_t)high + 1.0 : high;
    if (low == high)
        high += 0.001;
    for (size_t j = 0; j < dims / 2; j++) {
        double ramp = ((double)j - low) / (high - low);
        ramp = ramp < 0.0 ? 0.0 : ramp > 1.0 ? 1.0 : ramp;
        factors[j] = ramp / factor + (1.0 - ramp);
    }
    *magnitude = 0.1 * heed_log(factor) + 1.0;
    return HEED_OK;
}

/* ---- rotation ---- */

struct rotation {
    const struct heed_kernels *kernels;
    heed_rotary_args args;
};

static void rotate_tokens(const void *arg, size_t first, size_t count)
{
    const struct rotation *r = arg;
    const heed_rotary_args *a = &r->args;
    const heed_rotary_tables *t = &a->tables;
    for (size_t token = first; token < first + count; token++) {
        size_t b = token / a->seq, i = token % a->seq;
        size_t position = a->ids ? (size_t)a->ids[token] : a->first + i;
        const struct heed_rotary_task task = {t->pairs == HEED_ROTARY_INTERLEAVED,
                                              a->n_heads,
                                              t->dims,
                                              a->head_dim,
                                              t->dims ? t->cosine + position * t->ld_cosine : heed_nothing,
                                              t->dims ? t->sine + position * t->ld_sine : heed_nothing,
                                              a->src.data + b * a->src.batch_stride + i * a->src.row_stride,
                                              a->src.head_stride,
                                              a->dst.data + b * a->dst.batch_stride + i * a->dst.row_stride,
                                              a->dst.head_stride};
        r->kernels->rotary(&task);
    }
}

void heed_read_rotary_tables(struct heed_operands *operands, const heed_rotary_tables *t, size_t head_dim, bool used)
{
    heed_require(operands, t->pairs == HEED_ROTARY_HALVES || t->pairs == HEED_ROTARY_INTERLEAVED, HEED_ERR_ENUM);
    heed_require(operands, t->dims % 2 == 0 && t->dims <= head_dim, HEED_ERR_SHAPE);
    heed_read(operands, t->cosine, sizeof(float), used ? t->positions : 0, t->dims / 2, t->ld_cosine, 0);
    heed_read(operands, t->sine, sizeof(float), used ? t->positions : 0, t->dims / 2, t->ld_sine, 0);
}

heed_status heed_rotary_check_ids(const heed_rotary_tables *tables, size_t n, const int32_t *ids)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= tables->positions)
            return HEED_ERR_INDEX;
    return HEED_OK;
}

static heed_status check_rows(const heed_rotary_args *a, size_t tokens)
{
    if (a->ids)
        return heed_rotary_check_ids(&a->tables, tokens, a->ids);
    return heed_plus(a->first, a->seq) <= a->tables.positions ? HEED_OK : HEED_ERR_INDEX;
}

/* A stride by which there is no second element does not count. */
static bool is_in_place(const heed_rotary_args *a)
{
    const heed_heads *src = &a->src;
    const heed_heads_out *dst = &a->dst;
    return src->data == dst->data && (a->batch <= 1 || src->batch_stride == dst->batch_stride) &&
           (a->n_heads <= 1 || src->head_stride == dst->head_stride) &&
           (a->seq <= 1 || src->row_stride == dst->row_stride);
}

heed_status heed_rotary(const heed_context *context, const heed_rotary_args *args)
{
    struct heed_context fallback;
    const struct heed_context *c;
    struct rotation r;
    heed_rotary_args *a = &r.args;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    if (status == HEED_OK && !args)
        status = HEED_ERR_NULL;
    if (status == HEED_OK)
        status = heed_struct_read(a, sizeof *a, sizeof *a, args);
    if (status != HEED_OK)
        return status;
    struct heed_operands operands;
    heed_operands_begin(&operands, HEED_OK);
    size_t tokens = heed_times(a->batch, a->seq);
    bool empty = tokens == 0 || a->n_heads == 0 || a->head_dim == 0;
    heed_read_rotary_tables(&operands, &a->tables, a->head_dim, !empty);
    heed_read_optional(&operands, a->ids, sizeof(int32_t), empty ? 0 : 1, tokens, tokens, 0);
    if (operands.status == HEED_OK && !empty && a->tables.dims > 0)
        heed_fail(&operands, check_rows(a, tokens));
    const struct heed_dims src = {
        {a->batch, a->n_heads, a->seq}, {a->src.batch_stride, a->src.head_stride, a->src.row_stride}, a->head_dim};
    const struct heed_dims dst = {
        {a->batch, a->n_heads, a->seq}, {a->dst.batch_stride, a->dst.head_stride, a->dst.row_stride}, a->head_dim};
    if (!is_in_place(a))
        heed_read_tensor(&operands, a->src.data, sizeof(float), &src);
    heed_write_tensor(&operands, a->dst.data, sizeof(float), &dst);
    status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK || empty)
        return status;
    r.kernels = c->kernels;
    heed_run_rows(c, tokens, heed_times(a->n_heads, a->head_dim), HEED_MOVE_WORK, rotate_tokens, &r);
    return HEED_OK;
}
