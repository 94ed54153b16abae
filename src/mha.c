/* SPDX-License-Identifier: MIT
 * heed_mha: projections, norms and positions of heads, perhaps a cache, attention, output projection.
 */
#include "internal.h"

struct mha {
    const struct heed_context *context;
    heed_mha_weights w;
    heed_mha_args args;
    const float *memory; /* rows that keys and values come from */
    size_t ld_memory;
    struct heed_sequences queries;
    struct heed_kv_append keys; /* the rows that are projected, and the cache that gets them, if any */
    size_t seq_kv;              /* the most keys that a sequence of the batch attends to */
    size_t query_rows, key_rows;
    size_t query_dim, key_dim, concat_dim, value_cols; /* columns of the projections */
    bool lasting;                                      /* planned for all lengths that the cache may come to have */
    size_t scratch_parts;  /* bytes of q, k, v, concat and positions, and of the attention within */
    size_t attention_part; /* those of the latter */
};

static heed_status check_weights(struct mha *m)
{
    const heed_weights *all[] = {m->w.query, m->w.key, m->w.value, m->w.output};
    for (int i = 0; i < 4; i++) {
        heed_status status = heed_weights_check(all[i]);
        if (status == HEED_OK && heed_weights_gated(all[i]))
            status = HEED_ERR_VALUE;
        if (status != HEED_OK)
            return status;
    }
    m->query_dim = heed_times(m->w.n_heads, m->w.head_dim);
    m->key_dim = heed_times(m->w.n_kv_heads, m->w.head_dim);
    m->value_cols = heed_times(m->w.n_kv_heads, m->w.value_dim);
    m->concat_dim = heed_times(m->w.n_heads, m->w.value_dim);
    bool fits = heed_weights_out(m->w.query) == m->query_dim && heed_weights_out(m->w.key) == m->key_dim &&
                heed_weights_out(m->w.value) == m->value_cols && heed_weights_in(m->w.output) == m->concat_dim &&
                heed_weights_in(m->w.key) == heed_weights_in(m->w.value);
    return fits ? HEED_OK : HEED_ERR_SHAPE;
}

/* Rows before the first offset would be projected in vain. */
static bool starts_at_zero(const struct heed_sequences *s)
{
    return !s->offsets || s->offsets[0] == 0;
}

/* Keys that no query asks for need not be countable. */
static heed_status check_keys(struct mha *m)
{
    if (m->query_rows == 0 && !m->keys.cache && !m->keys.rows.offsets)
        return HEED_OK;
    return heed_sequences_check(&m->keys.rows, true, &m->key_rows);
}

/* A memory without offsets gives a cache no keys. */
static struct heed_kv_append new_keys(const heed_mha_args *args)
{
    struct heed_sequences rows = {args->batch, args->seq_q, args->offsets};
    if (args->memory) {
        bool some = !args->cache || args->memory_offsets;
        rows = (struct heed_sequences){args->batch, some ? args->seq_kv : 0, args->memory_offsets};
    }
    return (struct heed_kv_append){args->cache, rows, args->cache_sequences};
}

static heed_status describe(struct mha *m, const heed_context *context, struct heed_context *fallback,
                            const heed_mha_weights *weights, const heed_mha_args *args, bool lasting)
{
    const heed_mha_weights no_weights = HEED_MHA_WEIGHTS_INIT;
    const heed_mha_args no_args = HEED_MHA_ARGS_INIT;
    *m = (struct mha){.w = no_weights, .args = no_args, .lasting = lasting};
    heed_status status = heed_context_resolve(context, fallback, &m->context);
    if (status == HEED_OK && (!weights || !args))
        status = HEED_ERR_NULL;
    if (status == HEED_OK)
        status = heed_struct_read(&m->w, sizeof m->w, sizeof m->w, weights);
    if (status == HEED_OK)
        status = check_weights(m);
    if (status == HEED_OK)
        status = heed_struct_read(&m->args, sizeof m->args, sizeof m->args, args);
    if (status != HEED_OK)
        return status;
    bool self = m->args.memory == NULL;
    m->memory = self ? m->args.x : m->args.memory;
    m->ld_memory = self ? m->args.ldx : m->args.ld_memory;
    m->queries = (struct heed_sequences){m->args.batch, m->args.seq_q, m->args.offsets};
    m->keys = new_keys(&m->args);
    m->seq_kv = m->args.cache ? m->args.seq_kv : m->keys.rows.length;
    if (self && heed_weights_in(m->w.query) != heed_weights_in(m->w.key))
        return HEED_ERR_SHAPE;
    if (!heed_eps_is_valid(m->w.norm_eps) || (!self && m->args.rotary.dims > 0))
        return HEED_ERR_VALUE;
    status = heed_sequences_check(&m->queries, true, &m->query_rows);
    if (status == HEED_OK)
        status = check_keys(m);
    if (status == HEED_OK && (!starts_at_zero(&m->queries) || !starts_at_zero(&m->keys.rows)))
        status = HEED_ERR_INDEX;
    if (status == HEED_OK && m->keys.cache)
        status = heed_kv_append_check(&m->keys, m->lasting);
    return status;
}

/* The row of rotary's tables for the first token of a sequence. */
static size_t first_position(const struct mha *m, size_t b)
{
    return m->keys.cache ? m->keys.cache->length[heed_kv_append_target(&m->keys, b)] : 0;
}

static bool has_rotary(const struct mha *m)
{
    return m->args.rotary.dims > 0 && m->query_rows > 0;
}

/* Positions that are counted get ids in scratch, so their numbers have to be some. */
static heed_status check_positions(const struct mha *m)
{
    const heed_rotary_tables *tables = &m->args.rotary;
    if (m->args.position_ids)
        return heed_rotary_check_ids(tables, m->query_rows, m->args.position_ids);
    size_t end = tables->positions < (size_t)1 << 31 ? tables->positions : (size_t)1 << 31;
    for (size_t b = 0; b < m->queries.batch; b++)
        if (heed_plus(first_position(m, b), heed_sequence_length(&m->queries, b)) > end)
            return HEED_ERR_INDEX;
    return HEED_OK;
}

/* Without queries there is nothing to do but to append. */
static bool is_idle(const struct mha *m)
{
    return m->query_rows == 0 && !(m->keys.cache && m->key_rows > 0);
}

/* The projected rows, interleaved; NULL buffers serve the workspace query. */
static heed_attention_args attention_args(const struct mha *m, const float *q, const float *k, const float *v,
                                          float *out)
{
    heed_attention_args args = HEED_ATTENTION_ARGS_INIT;
    args.batch = m->args.batch;
    args.n_heads = m->w.n_heads;
    args.n_kv_heads = m->w.n_kv_heads;
    args.seq_q = m->queries.length;
    args.seq_kv = m->seq_kv;
    args.head_dim = m->w.head_dim;
    args.value_dim = m->w.value_dim;
    args.q = (heed_heads){q, m->queries.length * m->query_dim, m->w.head_dim, m->query_dim};
    args.k = (heed_heads){k, m->keys.rows.length * m->key_dim, m->w.head_dim, m->key_dim};
    args.v = (heed_heads){v, m->keys.rows.length * m->value_cols, m->w.value_dim, m->value_cols};
    args.out = (heed_heads_out){out, m->queries.length * m->concat_dim, m->w.value_dim, m->concat_dim};
    args.q_offsets = m->queries.offsets;
    args.cache = m->keys.cache;
    args.cache_sequences = m->keys.sequences;
    args.kv_offsets = m->keys.cache ? NULL : m->keys.rows.offsets;
    args.kv_lengths = m->args.kv_lengths;
    args.causal = m->args.causal;
    args.mask = m->args.mask;
    args.scale = m->args.scale;
    args.scale_value = m->args.scale_value;
    args.map = m->args.map;
    args.window_left = m->args.window_left;
    args.window_right = m->args.window_right;
    args.softcap = m->args.softcap;
    args.slopes = m->args.slopes;
    args.sinks = m->args.sinks;
    args.mean_map = m->args.mean_map;
    return args;
}

static size_t counted_positions(const struct mha *m)
{
    return has_rotary(m) && !m->args.position_ids ? m->query_rows : 0;
}

static heed_status find_scratch(struct mha *m)
{
    heed_attention_args args = attention_args(m, NULL, NULL, NULL, NULL);
    heed_status status =
        heed_attention_workspace_after(m->context, &args, &m->keys.rows, m->lasting, &m->attention_part);
    if (is_idle(m))
        return status;
    const size_t floats[] = {
        heed_times(m->query_rows, m->query_dim),
        heed_times(m->key_rows, m->key_dim),
        heed_times(m->key_rows, m->value_cols),
        heed_times(m->query_rows, m->concat_dim),
    };
    size_t parts = heed_scratch_part(counted_positions(m), sizeof(int32_t));
    for (int i = 0; i < 4; i++)
        parts = heed_plus(parts, heed_scratch_part(floats[i], sizeof(float)));
    m->scratch_parts = heed_plus(parts, heed_scratch_part(m->attention_part, 1));
    return status;
}

/* Everything but the operands' memory. */
static heed_status plan(struct mha *m, const heed_context *context, struct heed_context *fallback,
                        const heed_mha_weights *weights, const heed_mha_args *args, bool lasting)
{
    heed_status status = describe(m, context, fallback, weights, args, lasting);
    return status == HEED_OK ? find_scratch(m) : status;
}

heed_status heed_mha_plan(const heed_context *context, const heed_mha_weights *weights, const heed_mha_args *args,
                          bool lasting, size_t *bytes)
{
    struct heed_context fallback;
    struct mha m;
    heed_status status = plan(&m, context, &fallback, weights, args, lasting);
    return status == HEED_OK ? heed_workspace_answer(m.scratch_parts, bytes) : status;
}

heed_status heed_mha_workspace(const heed_context *context, const heed_mha_weights *weights, const heed_mha_args *args,
                               size_t *bytes)
{
    return heed_mha_plan(context, weights, args, true, bytes);
}

static void read_positions(struct heed_operands *operands, const struct mha *m)
{
    bool used = has_rotary(m);
    heed_read_rotary_tables(operands, &m->args.rotary, m->w.head_dim, used);
    heed_read_optional(operands, m->args.position_ids, sizeof(int32_t), used ? 1 : 0, m->query_rows, m->query_rows, 0);
    if (operands->status == HEED_OK && used)
        heed_fail(operands, check_positions(m));
}

static void read_shared(struct heed_operands *operands, const struct mha *m)
{
    size_t one = is_idle(m) ? 0 : 1, d_out = heed_weights_out(m->w.output);
    const heed_weights *all[] = {m->w.query, m->w.key, m->w.value, m->w.output};
    for (int i = 0; i < 4; i++)
        heed_read_weights(operands, all[i]);
    const struct {
        const float *data;
        size_t cols;
    } vectors[] = {
        {m->w.query_bias, m->query_dim}, {m->w.key_bias, m->key_dim},      {m->w.value_bias, m->value_cols},
        {m->w.output_bias, d_out},       {m->w.query_norm, m->w.head_dim}, {m->w.key_norm, m->w.head_dim},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        heed_read_optional(operands, vectors[i].data, sizeof(float), one, vectors[i].cols, vectors[i].cols, 0);
    heed_read_offsets(operands, &m->queries);
    heed_read_offsets(operands, &m->keys.rows);
    heed_read_optional(operands, m->args.kv_lengths, sizeof(size_t), 1, m->args.batch, m->args.batch, 0);
    if (m->query_rows > 0)
        heed_read_mask(operands, &m->args.mask, m->args.batch, m->w.n_heads, m->queries.length, m->seq_kv);
    heed_read_optional(operands, m->args.slopes, sizeof(float), 1, m->w.n_heads, m->w.n_heads, 0);
    heed_read_optional(operands, m->args.sinks, sizeof(float), 1, m->w.n_heads, m->w.n_heads, 0);
    read_positions(operands, m);
    if (m->keys.cache) {
        heed_read_optional(operands, m->keys.sequences, sizeof(size_t), 1, m->args.batch, m->args.batch, 0);
        heed_write(operands, m->keys.cache, 1, 1, m->keys.cache->bytes, m->keys.cache->bytes, 0);
    }
}

void heed_mha_read(struct heed_operands *operands, const heed_context *context, const heed_mha_weights *weights,
                   const heed_mha_args *args)
{
    struct heed_context fallback;
    struct mha m;
    heed_fail(operands, describe(&m, context, &fallback, weights, args, false));
    if (operands->status == HEED_OK)
        read_shared(operands, &m);
}

static void check_operands(struct heed_operands *operands, const struct mha *m)
{
    const heed_attention_args inner = attention_args(m, NULL, NULL, NULL, NULL);
    size_t d_out = heed_weights_out(m->w.output);
    read_shared(operands, m);
    heed_read(operands, m->args.x, sizeof(float), m->query_rows, heed_weights_in(m->w.query), m->args.ldx, 1);
    if (m->args.memory)
        heed_read(operands, m->memory, sizeof(float), m->key_rows, heed_weights_in(m->w.key), m->ld_memory, 0);
    heed_read_optional(operands, m->args.residual, sizeof(float), m->query_rows, d_out, m->args.ld_residual, 1);
    heed_write_maps(operands, &inner);
    heed_write(operands, m->args.y, sizeof(float), m->query_rows, d_out, m->args.ldy, 1);
}

static heed_status project(const struct mha *m, size_t rows, const float *x, size_t ldx, const heed_weights *weights,
                           const float *bias, float *y)
{
    heed_linear_options options = HEED_LINEAR_OPTIONS_INIT;
    options.bias = bias;
    return heed_linear(m->context, rows, x, ldx, weights, &options, y, heed_weights_out(weights));
}

/* The rows of rotary's tables, in scratch where they are counted. */
static const int32_t *find_positions(const struct mha *m, int32_t *scratch)
{
    if (counted_positions(m) == 0)
        return m->args.position_ids;
    for (size_t b = 0; b < m->queries.batch; b++) {
        size_t begin = heed_sequence_begin(&m->queries, b), n = heed_sequence_length(&m->queries, b);
        for (size_t i = 0; i < n; i++)
            scratch[begin + i] = (int32_t)(first_position(m, b) + i);
    }
    return scratch;
}

/* Norm and positions of projected heads, in place. */
static heed_status shape_heads(const struct mha *m, size_t rows, size_t n_heads, const float *norm,
                               const int32_t *positions, float *heads)
{
    heed_status status = HEED_OK;
    size_t head_dim = m->w.head_dim, row_stride = n_heads * head_dim;
    if (norm) {
        heed_rmsnorm_options options = HEED_RMSNORM_OPTIONS_INIT;
        options.scale = norm;
        options.eps = m->w.norm_eps;
        status = heed_rmsnorm(m->context, rows * n_heads, head_dim, heads, head_dim, &options, heads, head_dim);
    }
    if (status == HEED_OK && has_rotary(m)) {
        heed_rotary_args turn = HEED_ROTARY_ARGS_INIT;
        turn.tables = m->args.rotary;
        turn.batch = 1;
        turn.seq = rows;
        turn.n_heads = n_heads;
        turn.head_dim = head_dim;
        turn.ids = positions;
        turn.src = (heed_heads){heads, 0, head_dim, row_stride};
        turn.dst = (heed_heads_out){heads, 0, head_dim, row_stride};
        status = heed_rotary(m->context, &turn);
    }
    return status;
}

static heed_status run_mha(const struct mha *m, struct heed_scratch *scratch)
{
    float *q = heed_scratch_take(scratch, m->query_rows * m->query_dim, sizeof(float));
    float *k = heed_scratch_take(scratch, m->key_rows * m->key_dim, sizeof(float));
    float *v = heed_scratch_take(scratch, m->key_rows * m->value_cols, sizeof(float));
    float *concat = heed_scratch_take(scratch, m->query_rows * m->concat_dim, sizeof(float));
    int32_t *counted = heed_scratch_take(scratch, counted_positions(m), sizeof(int32_t));
    const heed_workspace inner = {heed_scratch_take(scratch, m->attention_part, 1), m->attention_part};
    const int32_t *positions = find_positions(m, counted);

    heed_status status = project(m, m->query_rows, m->args.x, m->args.ldx, m->w.query, m->w.query_bias, q);
    if (status == HEED_OK)
        status = shape_heads(m, m->query_rows, m->w.n_heads, m->w.query_norm, positions, q);
    if (status == HEED_OK)
        status = project(m, m->key_rows, m->memory, m->ld_memory, m->w.key, m->w.key_bias, k);
    if (status == HEED_OK)
        status = shape_heads(m, m->key_rows, m->w.n_kv_heads, m->w.key_norm, positions, k);
    if (status == HEED_OK)
        status = project(m, m->key_rows, m->memory, m->ld_memory, m->w.value, m->w.value_bias, v);
    heed_attention_args args = attention_args(m, q, k, v, concat);
    if (status == HEED_OK && m->keys.cache && m->key_rows > 0)
        heed_kv_append_run(m->context, &m->keys, m->key_rows, &args.k, &args.v);
    if (status == HEED_OK)
        status = heed_attention(m->context, &args, &inner);
    heed_linear_options output = HEED_LINEAR_OPTIONS_INIT;
    output.bias = m->w.output_bias;
    output.residual = m->args.residual;
    output.ld_residual = m->args.ld_residual;
    if (status == HEED_OK)
        status =
            heed_linear(m->context, m->query_rows, concat, m->concat_dim, m->w.output, &output, m->args.y, m->args.ldy);
    return status;
}

/* What has been planned, and checked. */
static heed_status open_and_run(const struct mha *m, const heed_workspace *workspace)
{
    struct heed_scratch scratch;
    size_t bytes = heed_scratch_total(m->scratch_parts);
    heed_status status = is_idle(m) ? HEED_OK : heed_scratch_open(&scratch, m->context, workspace, bytes);
    if (status != HEED_OK || is_idle(m))
        return status;
    status = run_mha(m, &scratch);
    heed_scratch_close(&scratch);
    return status;
}

heed_status heed_mha_run(const heed_context *context, const heed_mha_weights *weights, const heed_mha_args *args,
                         const heed_workspace *workspace)
{
    struct heed_context fallback;
    struct mha m;
    heed_status status = plan(&m, context, &fallback, weights, args, false);
    return status == HEED_OK ? open_and_run(&m, workspace) : status;
}

heed_status heed_mha(const heed_context *context, const heed_mha_weights *weights, const heed_mha_args *args,
                     const heed_workspace *workspace)
{
    struct heed_context fallback;
    struct mha m;
    struct heed_operands operands;
    heed_operands_begin(&operands, plan(&m, context, &fallback, weights, args, false));
    if (operands.status != HEED_OK)
        return operands.status;
    size_t bytes = heed_scratch_total(m.scratch_parts);
    if (bytes > PTRDIFF_MAX)
        return HEED_ERR_OVERFLOW;
    check_operands(&operands, &m);
    heed_status status = heed_operands_check(&operands, workspace, bytes);
    return status == HEED_OK ? open_and_run(&m, workspace) : status;
}
