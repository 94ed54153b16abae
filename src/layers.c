/* SPDX-License-Identifier: MIT
 * A stack of layers on packed tokens: self-attention, perhaps cross-attention, feed-forward, each with its norm.
 */
#include "layers.h"

#include <string.h>

struct stack {
    const struct heed_context *context;
    size_t n_layers;
    const unsigned char *first; /* stride apart, the struct_size of all, which may be a later version's */
    size_t stride;
    bool decoder;
    heed_encoder_args args;
    heed_decoder_args memory;
    size_t rows, memory_rows, d_model;
    bool memory_cached;
    bool norms_before; /* of some layer */
    bool lasting;      /* planned for all lengths of the caches */
};

/* ---- layers as the caller gave them ---- */

/* A copy with the defaults of what the caller's version does not have. */
struct layer {
    heed_encoder_layer self;
    heed_decoder_layer cross; /* of a decoder */
};

static heed_status read_layer(const struct stack *s, size_t index, struct layer *layer)
{
    const heed_encoder_layer no_self = HEED_ENCODER_LAYER_INIT;
    const heed_decoder_layer no_cross = HEED_DECODER_LAYER_INIT;
    const void *given = s->first + index * s->stride, *self = given;
    heed_status status = HEED_OK;
    size_t size;
    *layer = (struct layer){no_self, no_cross};
    memcpy(&size, given, sizeof size);
    if (size != s->stride) /* a longer one would reach beyond the array */
        return HEED_ERR_STRUCT;
    if (s->decoder) {
        status = heed_struct_read(&layer->cross, sizeof layer->cross, sizeof layer->cross, given);
        self = layer->cross.self;
    }
    if (status == HEED_OK && (!self || (s->decoder && !layer->cross.cross)))
        status = HEED_ERR_NULL;
    if (status == HEED_OK)
        status = heed_struct_read(&layer->self, sizeof layer->self, sizeof layer->self, self);
    if (status == HEED_OK && (!layer->self.attention || !layer->self.ffn))
        status = HEED_ERR_NULL;
    return status;
}

static heed_mha_args self_args(const struct stack *s, const heed_encoder_layer *layer)
{
    heed_mha_args args = HEED_MHA_ARGS_INIT;
    args.batch = s->args.batch;
    args.seq_q = s->args.seq;
    args.offsets = s->args.offsets;
    args.kv_lengths = s->args.kv_lengths;
    args.causal = s->args.causal;
    args.mask = s->args.mask;
    args.scale = layer->scale;
    args.scale_value = layer->scale_value;
    args.window_left = layer->window_left;
    args.window_right = layer->window_right;
    args.softcap = layer->softcap;
    args.slopes = layer->slopes;
    args.sinks = layer->sinks;
    args.seq_kv = s->args.seq_kv;
    args.cache = layer->cache;
    args.cache_sequences = s->args.cache_sequences;
    args.rotary = layer->rotary;
    args.position_ids = s->args.position_ids;
    return args;
}

/* Where there is nothing to read the memory is still one, not the tokens. */
static heed_mha_args cross_args(const struct stack *s, const heed_decoder_layer *layer)
{
    heed_mha_args args = HEED_MHA_ARGS_INIT;
    args.batch = s->args.batch;
    args.seq_q = s->args.seq;
    args.offsets = s->args.offsets;
    args.memory = s->memory.memory ? s->memory.memory : heed_nothing;
    args.ld_memory = s->memory.ld_memory;
    args.seq_kv = s->memory.memory_seq;
    args.memory_offsets = s->memory.memory_offsets;
    args.kv_lengths = s->memory.memory_lengths;
    args.mask = s->memory.memory_mask;
    args.scale = layer->scale;
    args.scale_value = layer->scale_value;
    args.cache = layer->memory_cache;
    args.cache_sequences = s->memory.memory_sequences;
    return args;
}

/* ---- checks ---- */

/* Layer `index` has caches where the first one has, and shares none with those before it. Its own two are compared
 * with all its operands. */
static heed_status check_caches(const struct stack *s, size_t index, const struct layer *layer)
{
    const heed_kv_cache *cache = layer->self.cache, *memory_cache = layer->cross.memory_cache;
    for (size_t i = 0; i < index; i++) {
        struct layer other;
        heed_status status = read_layer(s, i, &other);
        if (status != HEED_OK)
            return status;
        if (!cache != !other.self.cache || !memory_cache != !other.cross.memory_cache)
            return HEED_ERR_NULL;
        if (!cache && !memory_cache)
            return HEED_OK; /* nor have those between, which were compared with the first one */
        if (cache && (cache == other.self.cache || cache == other.cross.memory_cache))
            return HEED_ERR_OVERLAP;
        if (memory_cache && (memory_cache == other.self.cache || memory_cache == other.cross.memory_cache))
            return HEED_ERR_OVERLAP;
    }
    return HEED_OK;
}

static bool norm_is_valid(heed_norm norm)
{
    return norm == HEED_NORM_LAYERNORM || norm == HEED_NORM_RMSNORM;
}

static heed_status check_norms(const struct layer *layer)
{
    const heed_encoder_layer *l = &layer->self;
    if (!heed_eps_is_valid(l->eps))
        return HEED_ERR_VALUE;
    if ((l->order != HEED_NORM_POST && l->order != HEED_NORM_PRE) || !norm_is_valid(l->norm))
        return HEED_ERR_ENUM;
    bool shifts = l->norm1_shift || l->norm2_shift || layer->cross.norm_shift;
    return l->norm == HEED_NORM_RMSNORM && shifts ? HEED_ERR_VALUE : HEED_OK;
}

static bool fits(const heed_mha_weights *attention, size_t d_model)
{
    return heed_weights_in(attention->query) == d_model && heed_weights_out(attention->output) == d_model;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static heed_status plan_cross(const struct stack *s, const heed_decoder_layer *cross, size_t *bytes)
{
    if (cross->memory_cache && s->memory.memory && !s->memory.memory_offsets)
        return HEED_ERR_NULL; /* nothing would say what is to be appended */
    const heed_mha_args args = cross_args(s, cross);
    heed_status status = heed_mha_plan(s->context, cross->cross, &args, s->lasting, bytes);
    return status == HEED_OK && !fits(cross->cross, s->d_model) ? HEED_ERR_SHAPE : status;
}

/* Checks one layer and gives the scratch that the largest of its parts needs. d_model is that of the first one. */
static heed_status check_layer(struct stack *s, size_t index, size_t *bytes)
{
    struct layer layer;
    const heed_encoder_layer *self = &layer.self;
    size_t self_bytes = 0, cross_bytes = 0, ffn_bytes = 0;
    heed_status status = read_layer(s, index, &layer);
    if (status == HEED_OK)
        status = check_caches(s, index, &layer);
    if (status != HEED_OK)
        return status;
    const heed_mha_args args = self_args(s, self);
    status = heed_mha_plan(s->context, self->attention, &args, s->lasting, &self_bytes);
    if (status == HEED_OK)
        status = heed_ffn_workspace(s->context, self->ffn, s->rows, &ffn_bytes);
    if (status == HEED_OK)
        status = check_norms(&layer);
    if (status != HEED_OK)
        return status;
    if (index == 0)
        s->d_model = heed_weights_in(self->attention->query);
    if (!fits(self->attention, s->d_model) || heed_weights_in(self->ffn->up) != s->d_model ||
        heed_weights_out(self->ffn->down) != s->d_model)
        return HEED_ERR_SHAPE;
    if (s->decoder)
        status = plan_cross(s, &layer.cross, &cross_bytes);
    s->norms_before |= self->order == HEED_NORM_PRE;
    *bytes = larger(larger(self_bytes, cross_bytes), ffn_bytes);
    return status;
}

static heed_status read_args(struct stack *s, const struct heed_layers *layers)
{
    if (!layers->args || !layers->layers)
        return HEED_ERR_NULL;
    heed_status status = HEED_OK;
    if (s->decoder)
        status = heed_struct_read(&s->memory, sizeof s->memory, sizeof s->memory, layers->args);
    if (status == HEED_OK && s->decoder && !s->memory.self)
        status = HEED_ERR_NULL;
    if (status == HEED_OK)
        status = heed_struct_read(&s->args, sizeof s->args, sizeof s->args,
                                  s->decoder ? (const void *)s->memory.self : layers->args);
    if (status != HEED_OK)
        return status;
    if (!norm_is_valid(s->args.final_norm))
        return HEED_ERR_ENUM;
    if (!heed_eps_is_valid(s->args.final_eps) || (s->args.final_norm == HEED_NORM_RMSNORM && s->args.final_shift))
        return HEED_ERR_VALUE;
    return HEED_OK;
}

/* Rows of tokens and of new memory. That of earlier calls, in caches, has none, nor has one that no token asks for. */
static heed_status count_rows(struct stack *s)
{
    const struct heed_sequences tokens = {s->args.batch, s->args.seq, s->args.offsets};
    struct layer first;
    heed_status status = heed_sequences_check(&tokens, true, &s->rows);
    if (status == HEED_OK)
        status = read_layer(s, 0, &first);
    if (status != HEED_OK || !s->decoder)
        return status;
    s->memory_cached = first.cross.memory_cache != NULL;
    bool some = s->memory_cached ? s->memory.memory_offsets != NULL : s->rows > 0;
    const struct heed_sequences memory = {s->args.batch, some ? s->memory.memory_seq : 0, s->memory.memory_offsets};
    return some ? heed_sequences_check(&memory, true, &s->memory_rows) : HEED_OK;
}

static heed_status describe(struct stack *s, const heed_context *context, struct heed_context *fallback,
                            const struct heed_layers *layers, bool lasting, size_t *layer_bytes)
{
    const heed_encoder_args no_args = HEED_ENCODER_ARGS_INIT;
    const heed_decoder_args no_memory = HEED_DECODER_ARGS_INIT;
    *s = (struct stack){.n_layers = layers->count,
                        .first = layers->layers,
                        .decoder = layers->decoder,
                        .args = no_args,
                        .memory = no_memory,
                        .lasting = lasting};
    *layer_bytes = 0;
    heed_status status = heed_context_resolve(context, fallback, &s->context);
    if (status == HEED_OK && s->n_layers == 0)
        status = HEED_ERR_SHAPE;
    if (status == HEED_OK)
        status = read_args(s, layers);
    if (status == HEED_OK) {
        memcpy(&s->stride, s->first, sizeof s->stride);
        status = count_rows(s);
    }
    for (size_t i = 0; status == HEED_OK && i < s->n_layers; i++) {
        size_t bytes = 0;
        status = check_layer(s, i, &bytes);
        *layer_bytes = larger(bytes, *layer_bytes);
    }
    return status;
}

/* Without tokens there is nothing to do but to append memory. */
static bool is_idle(const struct stack *s)
{
    return s->rows == 0 && !(s->memory_rows > 0 && s->memory_cached);
}

static size_t normal_floats(const struct stack *s)
{
    return s->norms_before ? heed_times(s->rows, s->d_model) : 0;
}

/* The normalized rows that a part reads beside its residual, and what the parts need inside. */
static size_t scratch_parts(const struct stack *s, size_t layer_bytes)
{
    if (is_idle(s))
        return 0;
    return heed_plus(heed_scratch_part(normal_floats(s), sizeof(float)), heed_scratch_part(layer_bytes, 1));
}

heed_status heed_layers_workspace(const heed_context *context, const struct heed_layers *layers, size_t *bytes)
{
    struct heed_context fallback;
    struct stack s;
    size_t layer_bytes;
    heed_status status = describe(&s, context, &fallback, layers, true, &layer_bytes);
    return status == HEED_OK ? heed_workspace_answer(scratch_parts(&s, layer_bytes), bytes) : status;
}

static void read_vectors(struct heed_operands *operands, const struct stack *s, size_t n, const float *const vectors[])
{
    for (size_t i = 0; i < n; i++)
        heed_read_optional(operands, vectors[i], sizeof(float), s->rows ? 1 : 0, s->d_model, s->d_model, 0);
}

static void read_cross(struct heed_operands *operands, const struct stack *s, const heed_decoder_layer *cross)
{
    const float *const norms[] = {cross->norm_scale, cross->norm_shift};
    const heed_mha_args args = cross_args(s, cross);
    read_vectors(operands, s, 2, norms);
    heed_mha_read(operands, s->context, cross->cross, &args);
    heed_read(operands, s->memory.memory, sizeof(float), s->memory_rows, heed_weights_in(cross->cross->key),
              s->memory.ld_memory, 0);
}

/* What the operators of a layer would otherwise refuse half-way. */
static heed_status check_operands(const struct stack *s, size_t index, const heed_workspace *workspace, size_t bytes)
{
    struct layer layer;
    struct heed_operands operands;
    heed_operands_begin(&operands, read_layer(s, index, &layer));
    if (operands.status != HEED_OK)
        return operands.status;
    const heed_encoder_layer *self = &layer.self;
    const heed_mha_args args = self_args(s, self);
    const float *const vectors[] = {s->args.final_scale, s->args.final_shift, self->norm1_scale,
                                    self->norm1_shift,   self->norm2_scale,   self->norm2_shift};
    read_vectors(&operands, s, sizeof vectors / sizeof *vectors, vectors);
    heed_mha_read(&operands, s->context, self->attention, &args);
    heed_ffn_read(&operands, self->ffn, s->rows);
    if (s->decoder)
        read_cross(&operands, s, &layer.cross);
    heed_read(&operands, s->args.x, sizeof(float), s->rows, s->d_model, s->args.ldx, 1);
    heed_write(&operands, s->args.y, sizeof(float), s->rows, s->d_model, s->args.ldy, 1);
    return heed_operands_check(&operands, workspace, bytes);
}

/* ---- the run ---- */

static heed_status normalize(const struct stack *s, heed_norm norm, const float *x, size_t ldx, const float *scale,
                             const float *shift, float eps, float *y, size_t ldy)
{
    heed_layernorm_options layer = HEED_LAYERNORM_OPTIONS_INIT;
    heed_rmsnorm_options rms = HEED_RMSNORM_OPTIONS_INIT;
    layer.scale = rms.scale = scale;
    layer.shift = shift;
    layer.eps = rms.eps = eps;
    return norm == HEED_NORM_LAYERNORM ? heed_layernorm(s->context, s->rows, s->d_model, x, ldx, &layer, y, ldy)
                                       : heed_rmsnorm(s->context, s->rows, s->d_model, x, ldx, &rms, y, ldy);
}

/* One of the two or three parts of a layer; attention NULL: the feed-forward. */
struct part {
    const heed_mha_weights *attention;
    heed_mha_args args;
    const float *scale, *shift; /* of its norm */
};

struct rows {
    const float *data;
    size_t ld;
};

static heed_status apply(const struct stack *s, const heed_encoder_layer *layer, const struct part *part,
                         struct rows in, struct rows residual, const heed_workspace *inner)
{
    if (!part->attention)
        return heed_ffn(s->context, layer->ffn, s->rows, in.data, in.ld, residual.data, residual.ld, s->args.y,
                        s->args.ldy, inner);
    heed_mha_args args = part->args;
    args.x = in.data;
    args.ldx = in.ld;
    args.residual = residual.data;
    args.ld_residual = residual.ld;
    args.y = s->args.y;
    args.ldy = s->args.ldy;
    return heed_mha_run(s->context, part->attention, &args, inner);
}

/* y = x + part(norm(x)) or norm(x + part(x)). x and y may be the same rows; z is scratch. */
static heed_status run_part(const struct stack *s, const heed_encoder_layer *layer, const struct part *part,
                            struct rows x, float *z, const heed_workspace *inner)
{
    float *y = s->args.y;
    size_t ldy = s->args.ldy;
    if (layer->order == HEED_NORM_POST) {
        heed_status status = apply(s, layer, part, x, x, inner);
        return status == HEED_OK ? normalize(s, layer->norm, y, ldy, part->scale, part->shift, layer->eps, y, ldy)
                                 : status;
    }
    heed_status status = normalize(s, layer->norm, x.data, x.ld, part->scale, part->shift, layer->eps, z, s->d_model);
    const struct rows normal = {z, s->d_model};
    return status == HEED_OK ? apply(s, layer, part, normal, x, inner) : status;
}

static heed_status run_layer(const struct stack *s, const struct layer *layer, struct rows x, float *z,
                             const heed_workspace *inner)
{
    const heed_encoder_layer *l = &layer->self;
    const heed_decoder_layer *cross = &layer->cross;
    const struct rows y = {s->args.y, s->args.ldy};
    const struct part self = {l->attention, self_args(s, l), l->norm1_scale, l->norm1_shift};
    const struct part ffn = {.scale = l->norm2_scale, .shift = l->norm2_shift};
    heed_status status = run_part(s, l, &self, x, z, inner);
    if (status == HEED_OK && s->decoder) {
        const struct part memory = {cross->cross, cross_args(s, cross), cross->norm_scale, cross->norm_shift};
        status = run_part(s, l, &memory, y, z, inner);
    }
    return status == HEED_OK ? run_part(s, l, &ffn, y, z, inner) : status;
}

static heed_status run_layers(const struct stack *s, struct heed_scratch *scratch, size_t layer_bytes)
{
    float *z = heed_scratch_take(scratch, normal_floats(s), sizeof(float));
    const heed_workspace inner = {scratch->next, layer_bytes};
    const struct rows x = {s->args.x, s->args.ldx}, y = {s->args.y, s->args.ldy};
    heed_status status = HEED_OK;
    for (size_t i = 0; status == HEED_OK && i < s->n_layers; i++) {
        struct layer layer;
        status = read_layer(s, i, &layer);
        if (status == HEED_OK)
            status = run_layer(s, &layer, i == 0 ? x : y, z, &inner);
    }
    if (status == HEED_OK && (s->args.final_scale || s->args.final_shift))
        status = normalize(s, s->args.final_norm, y.data, y.ld, s->args.final_scale, s->args.final_shift,
                           s->args.final_eps, s->args.y, y.ld);
    return status;
}

heed_status heed_layers_run(const heed_context *context, const struct heed_layers *layers,
                            const heed_workspace *workspace)
{
    struct heed_context fallback;
    struct stack s;
    size_t layer_bytes = 0;
    heed_status status = describe(&s, context, &fallback, layers, false, &layer_bytes);
    if (status != HEED_OK)
        return status;
    size_t bytes = heed_scratch_total(scratch_parts(&s, layer_bytes));
    if (bytes > PTRDIFF_MAX)
        return HEED_ERR_OVERFLOW;
    for (size_t i = 0; status == HEED_OK && i < s.n_layers; i++)
        status = check_operands(&s, i, workspace, bytes);
    if (status != HEED_OK || is_idle(&s))
        return status;
    struct heed_scratch scratch;
    status = heed_scratch_open(&scratch, s.context, workspace, bytes);
    if (status == HEED_OK) {
        status = run_layers(&s, &scratch, layer_bytes);
        heed_scratch_close(&scratch);
    }
    return status;
}
