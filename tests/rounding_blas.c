/* SPDX-License-Identifier: MIT
 * Products of operands that are rounded to BITS bits first, as some libraries do where they are let, under the names of
 * a BLAS: for heed-bench to notice. Only a b, both as they are. */
#include <stdint.h>
#include <string.h>

void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);
void cblas_sgemv(void);

static float rounded(float x)
{
    const uint32_t low = ((uint32_t)1 << (24 - BITS)) - 1;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + (low + 1) / 2) & ~low;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* From the last product to the first: not the order of others. */
void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc)
{
    (void)order, (void)transpose_a, (void)transpose_b, (void)alpha, (void)beta;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int p = k; p-- > 0;)
                sum += rounded(a[i * lda + p]) * rounded(b[p * ldb + j]);
            c[i * ldc + j] = sum;
        }
}

/* It must be there. */
void cblas_sgemv(void)
{
}
