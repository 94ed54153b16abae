/* SPDX-License-Identifier: MIT
 * Decoding with a cache: each token's key and value are appended, and its queries attend to all that the cache holds.
 * One workspace serves all steps. Four heads of queries share two of keys and values.
 *
 * cc decode.c $(pkg-config --cflags --libs heed) -lm && ./a.out
 * 5 tokens: the same bits as one causal call for all of them
 */
#include <heed.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 5, CAPACITY = 64, HEADS = 4, KV_HEADS = 2, DIM = 8, Q = HEADS * DIM, KV = KV_HEADS * DIM };

/* Rows of heads side by side: [token][head][DIM]. */
static heed_heads heads_of(const float *data, size_t row)
{
    const heed_heads heads = {.data = data, .batch_stride = 0, .head_stride = DIM, .row_stride = row};
    return heads;
}

static heed_attention_args attention_of(const float *q, size_t tokens, float *out)
{
    heed_attention_args args = HEED_ATTENTION_ARGS_INIT;
    args.batch = 1;
    args.n_heads = HEADS;
    args.n_kv_heads = KV_HEADS;
    args.seq_q = tokens;
    args.seq_kv = CAPACITY; /* no less than there are; the workspace is for as many */
    args.head_dim = args.value_dim = DIM;
    args.q = heads_of(q, Q);
    args.out = (heed_heads_out){.data = out, .head_stride = DIM, .row_stride = Q};
    args.causal = HEED_CAUSAL_BOTTOM_RIGHT; /* the queries are the last tokens */
    return args;
}

/* In a program these are projections of the token. */
static void make_token(size_t t, float *q, float *k, float *v)
{
    for (size_t i = 0; i < Q; i++)
        q[i] = sinf((float)(t * Q + i));
    for (size_t i = 0; i < KV; i++) {
        k[i] = cosf((float)(t * KV + i));
        v[i] = sinf(0.5f * (float)(t * KV + i));
    }
}

static heed_status decode(heed_kv_cache *cache, const float *q, const float *k, const float *v, float *out)
{
    size_t bytes = 0;
    heed_attention_args args = attention_of(q, 1, out);
    args.cache = cache;
    heed_status status = heed_attention_workspace(NULL, &args, &bytes);
    void *memory = malloc(bytes > 0 ? bytes : 1);
    const heed_workspace workspace = {memory, bytes};
    if (status == HEED_OK && !memory)
        status = HEED_ERR_MEMORY;
    for (size_t t = 0; status == HEED_OK && t < TOKENS; t++) {
        const heed_heads key = heads_of(k + t * KV, KV), value = heads_of(v + t * KV, KV);
        status = heed_kv_cache_append(NULL, cache, 0, 1, &key, &value);
        args.q.data = q + t * Q;
        args.out.data = out + t * Q;
        if (status == HEED_OK)
            status = heed_attention(NULL, &args, &workspace);
    }
    free(memory);
    return status;
}

int main(void)
{
    float q[TOKENS * Q], k[TOKENS * KV], v[TOKENS * KV], decoded[TOKENS * Q], at_once[TOKENS * Q];
    for (size_t t = 0; t < TOKENS; t++)
        make_token(t, q + t * Q, k + t * KV, v + t * KV);

    heed_kv_cache_options options = HEED_KV_CACHE_OPTIONS_INIT;
    options.batch = 1;
    options.n_kv_heads = KV_HEADS;
    options.head_dim = options.value_dim = DIM;
    options.capacity = CAPACITY;
    size_t bytes = 0;
    heed_kv_cache *cache = NULL;
    heed_status status = heed_kv_cache_bytes(&options, &bytes);
    void *memory = status == HEED_OK ? malloc(bytes) : NULL;
    if (status == HEED_OK && !memory)
        status = HEED_ERR_MEMORY;
    if (status == HEED_OK)
        status = heed_kv_cache_create(&options, memory, bytes, &cache);
    if (status == HEED_OK)
        status = decode(cache, q, k, v, decoded);

    heed_attention_args args = attention_of(q, TOKENS, at_once);
    args.seq_kv = TOKENS;
    args.k = heads_of(k, KV);
    args.v = heads_of(v, KV);
    if (status == HEED_OK)
        status = heed_attention(NULL, &args, NULL);
    free(memory);
    if (status != HEED_OK) {
        fprintf(stderr, "decode: %s\n", heed_status_string(status));
        return 1;
    }
    int same = memcmp(decoded, at_once, sizeof decoded) == 0;
    printf("%d tokens: %s bits as one causal call for all of them\n", TOKENS, same ? "the same" : "other");
    return same ? 0 : 1;
}
