/* SPDX-License-Identifier: MIT
 * heed_ffn: two linear layers with the hidden rows in scratch.
 */
#include "internal.h"

static heed_status read_weights(heed_ffn_weights *known, const heed_ffn_weights *given)
{
    const heed_ffn_weights defaults = HEED_FFN_WEIGHTS_INIT;
    *known = defaults;
    if (!given)
        return HEED_ERR_NULL;
    heed_status status = heed_struct_read(known, sizeof *known, sizeof *known, given);
    if (status == HEED_OK)
        status = heed_weights_check(known->up);
    if (status == HEED_OK)
        status = heed_weights_check(known->down);
    if (status == HEED_OK)
        status = heed_activation_check(known->activation);
    if (status == HEED_OK && heed_weights_out(known->up) != heed_weights_in(known->down))
        status = HEED_ERR_SHAPE;
    if (status == HEED_OK && heed_weights_gated(known->down))
        status = HEED_ERR_VALUE;
    if (status == HEED_OK && known->gate_bias && !heed_weights_gated(known->up))
        status = HEED_ERR_VALUE;
    return status;
}

heed_status heed_ffn_workspace(const heed_context *context, const heed_ffn_weights *weights, size_t m, size_t *bytes)
{
    struct heed_context fallback;
    const struct heed_context *c;
    heed_ffn_weights w;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    if (status == HEED_OK)
        status = read_weights(&w, weights);
    if (status != HEED_OK)
        return status;
    return heed_workspace_answer(heed_scratch_part(heed_times(m, heed_weights_out(w.up)), sizeof(float)), bytes);
}

void heed_ffn_read(struct heed_operands *operands, const heed_ffn_weights *weights, size_t rows)
{
    heed_ffn_weights w;
    heed_fail(operands, read_weights(&w, weights));
    if (operands->status != HEED_OK)
        return;
    size_t one = rows ? 1 : 0, hidden = heed_weights_out(w.up), out = heed_weights_out(w.down);
    heed_read_weights(operands, w.up);
    heed_read_weights(operands, w.down);
    heed_read_optional(operands, w.up_bias, sizeof(float), one, hidden, hidden, 0);
    heed_read_optional(operands, w.gate_bias, sizeof(float), one, hidden, hidden, 0);
    heed_read_optional(operands, w.down_bias, sizeof(float), one, out, out, 0);
}

heed_status heed_ffn(const heed_context *context, const heed_ffn_weights *weights, size_t m, const float *x, size_t ldx,
                     const float *residual, size_t ld_residual, float *y, size_t ldy, const heed_workspace *workspace)
{
    struct heed_context fallback;
    const struct heed_context *c;
    heed_ffn_weights w;
    size_t bytes = 0;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    if (status == HEED_OK)
        status = read_weights(&w, weights);
    if (status == HEED_OK)
        status = heed_ffn_workspace(context, weights, m, &bytes);
    if (status != HEED_OK)
        return status;

    size_t in = heed_weights_in(w.up), hidden = heed_weights_out(w.up), out = heed_weights_out(w.down);
    struct heed_operands operands;
    heed_operands_begin(&operands, HEED_OK);
    heed_ffn_read(&operands, weights, m);
    heed_read(&operands, x, sizeof *x, m, in, ldx, 1);
    heed_read_optional(&operands, residual, sizeof(float), m, out, ld_residual, 1);
    heed_write(&operands, y, sizeof *y, m, out, ldy, 1);
    status = heed_operands_check(&operands, workspace, bytes);
    struct heed_scratch scratch;
    if (status == HEED_OK)
        status = heed_scratch_open(&scratch, c, workspace, bytes);
    if (status != HEED_OK)
        return status;

    float *rows = heed_scratch_take(&scratch, m * hidden, sizeof(float));
    heed_linear_options up = HEED_LINEAR_OPTIONS_INIT, down = HEED_LINEAR_OPTIONS_INIT;
    up.bias = heed_weights_gated(w.up) ? w.gate_bias : w.up_bias;
    up.up_bias = heed_weights_gated(w.up) ? w.up_bias : NULL;
    up.activation = w.activation;
    status = heed_linear(c, m, x, ldx, w.up, &up, rows, hidden);
    down.bias = w.down_bias;
    down.residual = residual;
    down.ld_residual = ld_residual;
    if (status == HEED_OK)
        status = heed_linear(c, m, rows, hidden, w.down, &down, y, ldy);
    heed_scratch_close(&scratch);
    return status;
}
