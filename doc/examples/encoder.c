/* SPDX-License-Identifier: MIT
 * One encoder layer, as BERT has it, over two sequences of unequal length: weights packed into one piece of memory, a
 * context for all CPUs, a workspace that is asked for once.
 *
 * cc encoder.c $(pkg-config --cflags --libs heed) && ./a.out
 * 7 tokens of 16 numbers: a token comes out alike alone and in the batch
 */
#include <heed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D_MODEL = 16, HEADS = 2, D_FF = 32, TOKENS = 7, FIRST = 3 };

static const size_t offsets[] = {0, FIRST, TOKENS};

/* In a program these are read from a file. */
static float weight(void)
{
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 16777216.0f - 0.5f;
}

/* Packs a matrix of [out][in] into *memory, which moves on past it. NULL if that fails. */
static const heed_weights *pack(size_t in, size_t out, unsigned char **memory, size_t *left)
{
    float w[D_FF * D_FF];
    size_t bytes = 0;
    const heed_weights *packed = NULL;
    for (size_t i = 0; i < in * out; i++)
        w[i] = weight();
    if (heed_weights_bytes(HEED_TYPE_F32, in, out, &bytes) != HEED_OK || bytes > *left ||
        heed_weights_pack(NULL, HEED_TYPE_F32, HEED_LAYOUT_OUT_IN, in, out, w, in, *memory, bytes, &packed) != HEED_OK)
        return NULL;
    *memory += bytes;
    *left -= bytes;
    return packed;
}

/* The layer over the sequences from offsets[0] on, which begin at x. */
static heed_status run(const heed_context *context, const heed_encoder_layer *layer, size_t batch,
                       const size_t *offsets_from_0, const float *x, float *y)
{
    heed_encoder_args args = HEED_ENCODER_ARGS_INIT;
    args.batch = batch;
    args.seq = TOKENS; /* no less than the longest */
    args.offsets = offsets_from_0;
    args.x = x;
    args.y = y;
    args.ldx = args.ldy = D_MODEL;
    size_t bytes = 0;
    heed_status status = heed_encoder_workspace(context, 1, layer, &args, &bytes);
    void *memory = malloc(bytes > 0 ? bytes : 1);
    const heed_workspace workspace = {memory, bytes};
    if (status == HEED_OK)
        status = memory ? heed_encoder(context, 1, layer, &args, &workspace) : HEED_ERR_MEMORY;
    free(memory);
    return status;
}

int main(void)
{
    heed_context *context = NULL;
    heed_status status = heed_context_create(&context, NULL);
    size_t left = 65536;
    unsigned char *memory = malloc(left), *next = memory;
    if (status == HEED_OK && !memory)
        status = HEED_ERR_MEMORY;
    if (status != HEED_OK) {
        fprintf(stderr, "encoder: %s\n", heed_status_string(status));
        return 1;
    }
    heed_mha_weights attention = HEED_MHA_WEIGHTS_INIT;
    attention.n_heads = attention.n_kv_heads = HEADS;
    attention.head_dim = attention.value_dim = D_MODEL / HEADS;
    attention.query = pack(D_MODEL, D_MODEL, &next, &left);
    attention.key = pack(D_MODEL, D_MODEL, &next, &left);
    attention.value = pack(D_MODEL, D_MODEL, &next, &left);
    attention.output = pack(D_MODEL, D_MODEL, &next, &left);
    heed_ffn_weights ffn = HEED_FFN_WEIGHTS_INIT;
    ffn.up = pack(D_MODEL, D_FF, &next, &left);
    ffn.down = pack(D_FF, D_MODEL, &next, &left);
    ffn.activation = HEED_ACTIVATION_GELU_ERF;
    heed_encoder_layer layer = HEED_ENCODER_LAYER_INIT; /* norms after the parts, without factors */
    layer.attention = &attention;
    layer.ffn = &ffn;

    float x[TOKENS * D_MODEL], both[TOKENS * D_MODEL], alone[TOKENS * D_MODEL];
    for (size_t i = 0; i < TOKENS * D_MODEL; i++)
        x[i] = weight();
    const size_t second[] = {0, TOKENS - FIRST};
    status = run(context, &layer, 2, offsets, x, both);
    if (status == HEED_OK)
        status = run(context, &layer, 1, second, x + FIRST * D_MODEL, alone);
    heed_context_destroy(context);
    free(memory);
    if (status != HEED_OK) {
        fprintf(stderr, "encoder: %s\n", heed_status_string(status));
        return 1;
    }
    int alike = memcmp(both + FIRST * D_MODEL, alone, (TOKENS - FIRST) * D_MODEL * sizeof *x) == 0;
    printf("%d tokens of %d numbers: a token comes out %s alone and in the batch\n", TOKENS, D_MODEL,
           alike ? "alike" : "otherwise");
    return alike ? 0 : 1;
}
