/* SPDX-License-Identifier: MIT
 * Other libraries that multiply matrices, opened at run time where they are installed.
 */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#define N_PEERS 3

/* CblasRowMajor and the like, whose values all CBLAS libraries share. */
enum { PEERS_ROW_MAJOR = 101, PEERS_NO_TRANSPOSE = 111, PEERS_TRANSPOSE = 112, PEERS_PACKED = 151, PEERS_B = 162 };

struct peer {
    const char *name;
    const char *file;    /* that was opened; NULL: it is absent */
    const char *kernels; /* the CPU whose kernels it chose, NULL: it does not say */
    void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*sgemv)(int order, int transpose, int rows, int cols, float alpha, const float *a, int lda, const float *x,
                  int incx, float beta, float *y, int incy);
    void (*set_threads_int)(int threads);
    void (*set_threads_long)(ptrdiff_t threads);

    /* The packed form of b, which only MKL has; NULL elsewhere. */
    size_t (*pack_bytes)(int identifier, int m, int n, int k);
    void (*pack)(int order, int identifier, int transpose, int m, int n, int k, float alpha, const float *src, int ld,
                 float *dst);
    void (*compute)(int order, int transpose_a, int transpose_b, int m, int n, int k, const float *a, int lda,
                    const float *b, int ldb, float beta, float *c, int ldc);
};

/* Opens what there is, once. */
void peers_open(void);

/* Peer `index`, open or absent. */
const struct peer *peers_at(size_t index);

bool peer_can_pack(const struct peer *peer);
void peer_set_threads(const struct peer *peer, size_t threads);

#endif
