/* SPDX-License-Identifier: MIT
 * heed_encoder: a stack of encoder layers on packed tokens.
 */
#include "internal.h"

#include <string.h>

struct encoder {
    const struct heed_context *context;
    size_t n_layers;
    const unsigned char *layers; /* struct_size apart, which may be a later version's */
    size_t stride;
    heed_encoder_args args;
    size_t rows, d_model;
    bool lasting; /* planned for all lengths of the caches */
};

static heed_status read_layer(const struct encoder *e, size_t index, heed_encoder_layer *layer)
{
    const heed_encoder_layer defaults = HEED_ENCODER_LAYER_INIT;
    const unsigned char *given = e->layers + index * e->stride;
    size_t size;
    *layer = defaults;
    memcpy(&size, given, sizeof size);
    if (size != e->stride) /* a longer one would reach beyond the array */
        return HEED_ERR_STRUCT;
    return heed_struct_read(layer, sizeof *layer, sizeof *layer, given);
}

static heed_mha_args mha_args(const struct encoder *e, const heed_encoder_layer *layer)
{
    heed_mha_args args = HEED_MHA_ARGS_INIT;
    args.batch = e->args.batch;
    args.seq_q = e->args.seq;
    args.offsets = e->args.offsets;
    args.kv_lengths = e->args.kv_lengths;
    args.causal = e->args.causal;
    args.mask = e->args.mask;
    args.scale = layer->scale;
    args.scale_value = layer->scale_value;
    args.window_left = layer->window_left;
    args.window_right = layer->window_right;
    args.softcap = layer->softcap;
    args.slopes = layer->slopes;
    args.sinks = layer->sinks;
    args.seq_kv = e->args.seq_kv;
    args.cache = layer->cache;
    args.cache_sequences = e->args.cache_sequences;
    return args;
}

static bool eps_is_valid(float eps)
{
    return eps >= 0.0f && eps <= 0x1.fffffep127f;
}

/* All layers have a cache of their own, or none has. */
static heed_status check_cache(const struct encoder *e, size_t index, const heed_encoder_layer *layer)
{
    for (size_t i = 0; i < index; i++) {
        heed_encoder_layer other;
        heed_status status = read_layer(e, i, &other);
        if (status != HEED_OK)
            return status;
        if (!other.cache != !layer->cache)
            return HEED_ERR_NULL;
        if (layer->cache && other.cache == layer->cache)
            return HEED_ERR_OVERLAP;
    }
    return HEED_OK;
}

/* Checks one layer and gives the scratch that its larger half needs. */
static heed_status check_layer(const struct encoder *e, size_t index, size_t *bytes)
{
    heed_encoder_layer layer;
    size_t mha_bytes = 0, ffn_bytes = 0;
    heed_status status = read_layer(e, index, &layer);
    if (status == HEED_OK && (!layer.attention || !layer.ffn))
        status = HEED_ERR_NULL;
    if (status == HEED_OK)
        status = check_cache(e, index, &layer);
    if (status != HEED_OK)
        return status;
    heed_mha_args args = mha_args(e, &layer);
    status = heed_mha_plan(e->context, layer.attention, &args, e->lasting, &mha_bytes);
    if (status == HEED_OK)
        status = heed_ffn_workspace(e->context, layer.ffn, e->rows, &ffn_bytes);
    if (status != HEED_OK)
        return status;
    if (!eps_is_valid(layer.eps))
        return HEED_ERR_VALUE;
    if (layer.order != HEED_NORM_POST && layer.order != HEED_NORM_PRE)
        return HEED_ERR_ENUM;
    size_t d = e->d_model;
    if (heed_weights_in(layer.attention->query) != d || heed_weights_out(layer.attention->output) != d ||
        heed_weights_in(layer.ffn->up) != d || heed_weights_out(layer.ffn->down) != d)
        return HEED_ERR_SHAPE;
    *bytes = mha_bytes > ffn_bytes ? mha_bytes : ffn_bytes;
    return HEED_OK;
}

static heed_status describe(struct encoder *e, const heed_context *context, struct heed_context *fallback,
                            size_t n_layers, const heed_encoder_layer *layers, const heed_encoder_args *args,
                            bool lasting, size_t *layer_bytes)
{
    const heed_encoder_args defaults = HEED_ENCODER_ARGS_INIT;
    *e = (struct encoder){
        .n_layers = n_layers, .layers = (const unsigned char *)layers, .args = defaults, .lasting = lasting};
    *layer_bytes = 0;
    heed_status status = heed_context_resolve(context, fallback, &e->context);
    if (status == HEED_OK && n_layers == 0)
        status = HEED_ERR_SHAPE;
    if (status == HEED_OK && (!args || !layers))
        status = HEED_ERR_NULL;
    if (status == HEED_OK)
        status = heed_struct_read(&e->args, sizeof e->args, sizeof e->args, args);
    if (status == HEED_OK && !eps_is_valid(e->args.final_eps))
        status = HEED_ERR_VALUE;
    const struct heed_sequences sequences = {e->args.batch, e->args.seq, e->args.offsets};
    if (status == HEED_OK)
        status = heed_sequences_check(&sequences, true, &e->rows);
    heed_encoder_layer first;
    if (status == HEED_OK) {
        memcpy(&e->stride, layers, sizeof e->stride);
        status = read_layer(e, 0, &first);
        if (status == HEED_OK && !first.attention)
            status = HEED_ERR_NULL;
        heed_mha_weights attention = HEED_MHA_WEIGHTS_INIT;
        if (status == HEED_OK)
            status = heed_struct_read(&attention, sizeof attention, sizeof attention, first.attention);
        if (status == HEED_OK)
            status = heed_weights_check(attention.query);
        if (status == HEED_OK)
            e->d_model = heed_weights_in(attention.query);
    }
    for (size_t i = 0; status == HEED_OK && i < n_layers; i++) {
        size_t bytes = 0;
        status = check_layer(e, i, &bytes);
        *layer_bytes = bytes > *layer_bytes ? bytes : *layer_bytes;
    }
    return status;
}

/* One buffer of rows beside y, and what the layers need inside. */
static size_t scratch_parts(const struct encoder *e, size_t layer_bytes)
{
    if (e->rows == 0)
        return 0;
    return heed_plus(heed_scratch_part(heed_times(e->rows, e->d_model), sizeof(float)),
                     heed_scratch_part(layer_bytes, 1));
}

heed_status heed_encoder_workspace(const heed_context *context, size_t n_layers, const heed_encoder_layer *layers,
                                   const heed_encoder_args *args, size_t *bytes)
{
    struct heed_context fallback;
    struct encoder e;
    size_t layer_bytes;
    heed_status status = describe(&e, context, &fallback, n_layers, layers, args, true, &layer_bytes);
    return status == HEED_OK ? heed_workspace_answer(scratch_parts(&e, layer_bytes), bytes) : status;
}

/* Vectors and masks of one layer, which its operators would otherwise refuse half-way. */
static void check_layer_operands(struct heed_operands *operands, const struct encoder *e,
                                 const heed_encoder_layer *layer)
{
    const heed_mha_weights *a = layer->attention;
    const heed_ffn_weights *f = layer->ffn;
    const heed_weights *weights[] = {a->query, a->key, a->value, a->output, f->up, f->down};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        heed_read_weights(operands, weights[i]);
    const struct {
        const float *data;
        size_t cols;
    } vectors[] = {
        {layer->norm1_scale, e->d_model},
        {layer->norm1_shift, e->d_model},
        {layer->norm2_scale, e->d_model},
        {layer->norm2_shift, e->d_model},
        {a->query_bias, heed_weights_out(a->query)},
        {a->key_bias, heed_weights_out(a->key)},
        {a->value_bias, heed_weights_out(a->value)},
        {a->output_bias, e->d_model},
        {f->up_bias, heed_weights_out(f->up)},
        {f->gate_bias, heed_weights_out(f->up)},
        {f->down_bias, e->d_model},
        {layer->slopes, a->n_heads},
        {layer->sinks, a->n_heads},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        heed_read_optional(operands, vectors[i].data, sizeof(float), e->rows ? 1 : 0, vectors[i].cols, vectors[i].cols,
                           0);
    if (layer->cache) {
        size_t batch = e->args.batch;
        heed_read_optional(operands, e->args.cache_sequences, sizeof(size_t), 1, batch, batch, 0);
        heed_write(operands, layer->cache, 1, 1, layer->cache->bytes, layer->cache->bytes, 0);
    }
}

static void check_mask(struct heed_operands *operands, const struct encoder *e, const heed_encoder_layer *layer)
{
    const heed_mask *mask = &e->args.mask;
    struct heed_dims dims = {{e->args.batch, layer->attention->n_heads, e->args.seq},
                             {mask->batch_stride, mask->head_stride, mask->row_stride},
                             layer->cache ? e->args.seq_kv : e->args.seq};
    if (mask->type != HEED_MASK_NONE)
        heed_read_tensor(operands, mask->data, mask->type == HEED_MASK_ADDITIVE ? sizeof(float) : 1, &dims);
}

/* What all layers share. */
static void check_common_operands(struct heed_operands *operands, const struct encoder *e)
{
    const heed_encoder_args *args = &e->args;
    heed_read_optional(operands, args->final_scale, sizeof(float), e->rows ? 1 : 0, e->d_model, e->d_model, 0);
    heed_read_optional(operands, args->final_shift, sizeof(float), e->rows ? 1 : 0, e->d_model, e->d_model, 0);
    const struct heed_sequences sequences = {args->batch, args->seq, args->offsets};
    heed_read_offsets(operands, &sequences);
    heed_read_optional(operands, args->kv_lengths, sizeof(size_t), 1, args->batch, args->batch, 0);
    heed_read(operands, args->x, sizeof(float), e->rows, e->d_model, args->ldx, 1);
    heed_write(operands, args->y, sizeof(float), e->rows, e->d_model, args->ldy, 1);
}

static heed_status check_operands(const struct encoder *e, const heed_workspace *workspace, size_t bytes)
{
    heed_status status = HEED_OK;
    for (size_t i = 0; status == HEED_OK && i < e->n_layers; i++) {
        struct heed_operands operands;
        heed_encoder_layer layer;
        heed_operands_begin(&operands, read_layer(e, i, &layer));
        check_common_operands(&operands, e);
        check_layer_operands(&operands, e, &layer);
        check_mask(&operands, e, &layer);
        status = heed_operands_check(&operands, workspace, bytes);
    }
    return status;
}

static heed_status normalize(const struct encoder *e, const float *x, size_t ldx, const float *scale,
                             const float *shift, float eps, float *y, size_t ldy)
{
    heed_layernorm_options options = HEED_LAYERNORM_OPTIONS_INIT;
    options.scale = scale;
    options.shift = shift;
    options.eps = eps;
    return heed_layernorm(e->context, e->rows, e->d_model, x, ldx, &options, y, ldy);
}

static heed_status attend(const struct encoder *e, const heed_encoder_layer *layer, const float *x, size_t ldx,
                          const float *residual, size_t ld_residual, float *y, size_t ldy, const heed_workspace *inner)
{
    heed_mha_args args = mha_args(e, layer);
    args.x = x;
    args.ldx = ldx;
    args.residual = residual;
    args.ld_residual = ld_residual;
    args.y = y;
    args.ldy = ldy;
    return heed_mha(e->context, layer->attention, &args, inner);
}

/* x and y may be the same rows; z is scratch. */
static heed_status run_post_norm(const struct encoder *e, const heed_encoder_layer *l, const float *x, size_t ldx,
                                 float *z, const heed_workspace *inner)
{
    size_t d = e->d_model, ldy = e->args.ldy;
    float *y = e->args.y;
    heed_status status = attend(e, l, x, ldx, x, ldx, z, d, inner);
    if (status == HEED_OK)
        status = normalize(e, z, d, l->norm1_scale, l->norm1_shift, l->eps, z, d);
    if (status == HEED_OK)
        status = heed_ffn(e->context, l->ffn, e->rows, z, d, z, d, y, ldy, inner);
    if (status == HEED_OK)
        status = normalize(e, y, ldy, l->norm2_scale, l->norm2_shift, l->eps, y, ldy);
    return status;
}

static heed_status run_pre_norm(const struct encoder *e, const heed_encoder_layer *l, const float *x, size_t ldx,
                                float *z, const heed_workspace *inner)
{
    size_t d = e->d_model, ldy = e->args.ldy;
    float *y = e->args.y;
    heed_status status = normalize(e, x, ldx, l->norm1_scale, l->norm1_shift, l->eps, z, d);
    if (status == HEED_OK)
        status = attend(e, l, z, d, x, ldx, y, ldy, inner);
    if (status == HEED_OK)
        status = normalize(e, y, ldy, l->norm2_scale, l->norm2_shift, l->eps, z, d);
    if (status == HEED_OK)
        status = heed_ffn(e->context, l->ffn, e->rows, z, d, y, ldy, y, ldy, inner);
    return status;
}

static heed_status run_layers(const struct encoder *e, struct heed_scratch *scratch, size_t layer_bytes)
{
    float *z = heed_scratch_take(scratch, e->rows * e->d_model, sizeof(float));
    const heed_workspace inner = {scratch->next, layer_bytes};
    const float *x = e->args.x;
    size_t ldx = e->args.ldx;
    heed_status status = HEED_OK;
    for (size_t i = 0; status == HEED_OK && i < e->n_layers; i++) {
        heed_encoder_layer layer;
        status = read_layer(e, i, &layer);
        if (status == HEED_OK)
            status = layer.order == HEED_NORM_POST ? run_post_norm(e, &layer, x, ldx, z, &inner)
                                                   : run_pre_norm(e, &layer, x, ldx, z, &inner);
        x = e->args.y;
        ldx = e->args.ldy;
    }
    if (status == HEED_OK && (e->args.final_scale || e->args.final_shift))
        status = normalize(e, e->args.y, e->args.ldy, e->args.final_scale, e->args.final_shift, e->args.final_eps,
                           e->args.y, e->args.ldy);
    return status;
}

heed_status heed_encoder(const heed_context *context, size_t n_layers, const heed_encoder_layer *layers,
                         const heed_encoder_args *args, const heed_workspace *workspace)
{
    struct heed_context fallback;
    struct encoder e;
    size_t layer_bytes = 0;
    heed_status status = describe(&e, context, &fallback, n_layers, layers, args, false, &layer_bytes);
    size_t bytes = heed_scratch_total(scratch_parts(&e, layer_bytes));
    if (status == HEED_OK && bytes > PTRDIFF_MAX)
        status = HEED_ERR_OVERFLOW;
    if (status == HEED_OK)
        status = check_operands(&e, workspace, bytes);
    if (status != HEED_OK || e.rows == 0)
        return status;
    struct heed_scratch scratch;
    status = heed_scratch_open(&scratch, e.context, workspace, bytes);
    if (status == HEED_OK) {
        status = run_layers(&e, &scratch, layer_bytes);
        heed_scratch_close(&scratch);
    }
    return status;
}
