/* SPDX-License-Identifier: MIT
 * A linear layer with bias and GELU: the weights are packed once, then every call multiplies by them.
 *
 * cc linear.c $(pkg-config --cflags --libs heed) && ./a.out
 * 0.8413 -0.0455 1.9545
 */
#include <heed.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 1, IN = 2, OUT = 3 };

int main(void)
{
    /* [out][in], as PyTorch stores a linear layer. */
    const float w[OUT * IN] = {1, 0, -1, -1, 1, 1}, bias[OUT] = {0, 1, -1}, x[ROWS * IN] = {1, 2};
    float y[ROWS * OUT];
    size_t bytes = 0;
    const heed_weights *weights = NULL;
    heed_status status = heed_weights_bytes(HEED_TYPE_F32, IN, OUT, &bytes);
    void *memory = status == HEED_OK ? malloc(bytes) : NULL;
    if (status == HEED_OK && !memory)
        status = HEED_ERR_MEMORY;
    if (status == HEED_OK)
        status = heed_weights_pack(NULL, HEED_TYPE_F32, HEED_LAYOUT_OUT_IN, IN, OUT, w, IN, memory, bytes, &weights);

    heed_linear_options options = HEED_LINEAR_OPTIONS_INIT;
    options.bias = bias;
    options.activation = HEED_ACTIVATION_GELU_ERF;
    if (status == HEED_OK)
        status = heed_linear(NULL, ROWS, x, IN, weights, &options, y, OUT);
    if (status == HEED_OK)
        printf("%.4f %.4f %.4f\n", y[0], y[1], y[2]);
    else
        fprintf(stderr, "linear: %s\n", heed_status_string(status));
    free(memory);
    return status == HEED_OK ? 0 : 1;
}
