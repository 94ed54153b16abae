/* SPDX-License-Identifier: MIT
 * heed's own layer.
 */
#include "config.h"

#include "layer.h"

#include "memory.h"
#include "own.h"

#include <stdlib.h>

struct own_layer {
    const struct problem *problem;
    void *packed[N_LAYER_MATRICES];
    float *cosine, *sine;
    heed_mha_weights attention;
    heed_ffn_weights ffn;
    heed_encoder_layer layer;
    heed_encoder_args args;
    heed_workspace workspace;
};

static bool pack(struct own_layer *own, enum layer_matrix matrix, const heed_weights **weights)
{
    const struct problem *p = own->problem;
    struct layer_size size = layer_size(&p->shape, matrix);
    return own_pack(p->context, size.in, size.out, layer_matrix(p, matrix), &own->packed[matrix], weights);
}

static bool pack_up(struct own_layer *own)
{
    const struct problem *p = own->problem;
    if (!layer_matrix(p, LAYER_GATE))
        return pack(own, LAYER_UP, &own->ffn.up);
    struct layer_size size = layer_size(&p->shape, LAYER_UP);
    size_t bytes = 0;
    if (!own_done(heed_weights_gated_bytes(HEED_TYPE_F32, size.in, size.out, &bytes)))
        return false;
    void *memory = own->packed[LAYER_UP] = memory_aligned_array(bytes, 1);
    return memory && own_done(heed_weights_pack_gated(p->context, HEED_TYPE_F32, HEED_LAYOUT_IN_OUT, size.in, size.out,
                                                      layer_matrix(p, LAYER_GATE), size.out, layer_matrix(p, LAYER_UP),
                                                      size.out, memory, bytes, &own->ffn.up));
}

static bool make_weights(struct own_layer *own)
{
    const struct problem *p = own->problem;
    heed_mha_weights *a = &own->attention;
    a->n_heads = p->shape.heads;
    a->n_kv_heads = p->shape.kv_heads;
    a->head_dim = a->value_dim = layer_head_dim(&p->shape);
    a->query_bias = layer_bias(p, LAYER_QUERY);
    a->key_bias = layer_bias(p, LAYER_KEY);
    a->value_bias = layer_bias(p, LAYER_VALUE);
    a->output_bias = layer_bias(p, LAYER_OUTPUT);
    own->ffn.up_bias = layer_bias(p, LAYER_UP);
    own->ffn.down_bias = layer_bias(p, LAYER_DOWN);
    own->ffn.activation = p->shape.layer == LAYER_BERT   ? HEED_ACTIVATION_GELU_ERF
                          : p->shape.layer == LAYER_GPT2 ? HEED_ACTIVATION_GELU_TANH
                                                         : HEED_ACTIVATION_SILU;
    return pack(own, LAYER_QUERY, &a->query) && pack(own, LAYER_KEY, &a->key) && pack(own, LAYER_VALUE, &a->value) &&
           pack(own, LAYER_OUTPUT, &a->output) && pack_up(own) && pack(own, LAYER_DOWN, &own->ffn.down);
}

static bool make_rotary(struct own_layer *own)
{
    const struct problem *p = own->problem;
    size_t dims = layer_head_dim(&p->shape), half = dims / 2, m = p->shape.m;
    heed_rotary_options options = HEED_ROTARY_OPTIONS_INIT;
    options.base = LAYER_ROTARY_BASE;
    own->cosine = memory_aligned_array(m * half, sizeof *own->cosine);
    own->sine = memory_aligned_array(m * half, sizeof *own->sine);
    own->layer.rotary = (heed_rotary_tables){HEED_ROTARY_HALVES, dims, own->cosine, own->sine, half, half, m};
    return own->cosine && own->sine &&
           own_done(heed_rotary_table(p->context, m, NULL, 0, dims, &options, own->cosine, half, own->sine, half));
}

static bool make_layer(struct own_layer *own)
{
    const struct problem *p = own->problem;
    const struct shape *s = &p->shape;
    heed_encoder_layer *l = &own->layer;
    l->attention = &own->attention;
    l->ffn = &own->ffn;
    l->order = s->layer == LAYER_BERT ? HEED_NORM_POST : HEED_NORM_PRE;
    l->norm = s->layer == LAYER_LLAMA ? HEED_NORM_RMSNORM : HEED_NORM_LAYERNORM;
    l->norm1_scale = layer_norm_scale(p, 0);
    l->norm1_shift = layer_norm_shift(p, 0);
    l->norm2_scale = layer_norm_scale(p, 1);
    l->norm2_shift = layer_norm_shift(p, 1);
    l->eps = LAYER_EPS;
    own->args.batch = s->batch;
    own->args.seq = s->m;
    own->args.causal = s->causal ? HEED_CAUSAL_TOP_LEFT : HEED_CAUSAL_NONE;
    own->args.x = p->operand[0];
    own->args.y = p->out;
    own->args.ldx = own->args.ldy = s->k;
    return make_weights(own) && (s->layer != LAYER_LLAMA || make_rotary(own));
}

struct own_layer *own_layer_open(const struct problem *problem)
{
    const heed_mha_weights attention = HEED_MHA_WEIGHTS_INIT;
    const heed_ffn_weights ffn = HEED_FFN_WEIGHTS_INIT;
    const heed_encoder_layer layer = HEED_ENCODER_LAYER_INIT;
    const heed_encoder_args args = HEED_ENCODER_ARGS_INIT;
    struct own_layer *own = memory_array(1, sizeof *own);
    if (!own)
        return NULL;
    *own = (struct own_layer){.problem = problem, .attention = attention, .ffn = ffn, .layer = layer, .args = args};
    size_t bytes = 0;
    if (make_layer(own) && own_done(heed_encoder_workspace(problem->context, 1, &own->layer, &own->args, &bytes))) {
        own->workspace = (heed_workspace){memory_aligned_array(bytes, 1), bytes};
        if (own->workspace.memory)
            return own;
    }
    own_layer_close(own);
    return NULL;
}

bool own_layer_call(void *layer)
{
    const struct own_layer *own = layer;
    return own_done(heed_encoder(own->problem->context, 1, &own->layer, &own->args, &own->workspace));
}

void own_layer_close(void *layer)
{
    struct own_layer *own = layer;
    for (int i = 0; i < N_LAYER_MATRICES; i++)
        free(own->packed[i]);
    free(own->cosine);
    free(own->sine);
    free(own->workspace.memory);
    free(own);
}
