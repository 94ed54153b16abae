/* SPDX-License-Identifier: MIT
 * The CBLAS libraries: OpenBLAS, BLIS and MKL.
 */
#include "config.h"

#include "impl.h"

#include "memory.h"
#include "timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CblasRowMajor and the like, whose values all CBLAS libraries share; the last two are MKL's. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112, PACKED = 151, MATRIX_B = 162 };

/* MKL_THREADING_GNU: the OpenMP that this program uses as well, so that no second pool of threads
 * disturbs the first. */
enum { MKL_GNU_THREADS = 3 };

/* What openblas_get_parallel says. */
enum { OPENBLAS_OPENMP = 2 };

struct blas {
    const char *const *files;
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

static struct blas openblas = {
    .files = (const char *const[]){"libopenblas.so.0", "libopenblas.so", "libopenblas.dylib", NULL}};
static struct blas blis = {.files = (const char *const[]){"libblis.so.5", "libblis.so.4", "libblis.so.3", "libblis.so",
                                                          "libblis.dylib", NULL}};
static struct blas mkl = {
    .files = (const char *const[]){"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so", NULL}};

/* ---- looking for it ------------------------------------------------------------------------- */

/* PyPI's build of OpenBLAS has a prefix before every name. */
static bool look_up(void *handle, const char *name, void *function, size_t size)
{
    char prefixed[64];
    snprintf(prefixed, sizeof prefixed, "scipy_%s", name);
    return library_symbol(handle, name, function, size) || library_symbol(handle, prefixed, function, size);
}
#define LOOK_UP(handle, name, function) look_up(handle, name, &(function), sizeof(function))

static bool look_up_products(struct blas *blas, void *handle)
{
    LOOK_UP(handle, "cblas_sgemm_pack_get_size", blas->pack_bytes);
    LOOK_UP(handle, "cblas_sgemm_pack", blas->pack);
    LOOK_UP(handle, "cblas_sgemm_compute", blas->compute);
    return LOOK_UP(handle, "cblas_sgemm", blas->sgemm) && LOOK_UP(handle, "cblas_sgemv", blas->sgemv);
}

/* Whether threads are those of the OpenMP that this program uses as well. */
static bool look_up_threads(struct blas *blas, void *handle)
{
    int (*set_layer)(int layer), (*openblas_kind)(void);
    LOOK_UP(handle, "openblas_set_num_threads", blas->set_threads_int);
    LOOK_UP(handle, "bli_thread_set_num_threads", blas->set_threads_long);
    if (LOOK_UP(handle, "MKL_Set_Threading_Layer", set_layer)) {
        set_layer(MKL_GNU_THREADS);
        LOOK_UP(handle, "MKL_Set_Num_Threads", blas->set_threads_int);
        return true;
    }
    return library_shares_openmp(handle) &&
           (!LOOK_UP(handle, "openblas_get_parallel", openblas_kind) || openblas_kind() == OPENBLAS_OPENMP);
}

/* A library older than the CPU may fall back to kernels that are far from its best. */
static const char *look_up_kernels(void *handle)
{
    char *(*openblas_name)(void);
    int (*blis_id)(void);
    char *(*blis_name)(int id);
    if (LOOK_UP(handle, "openblas_get_corename", openblas_name))
        return openblas_name();
    if (LOOK_UP(handle, "bli_arch_query_id", blis_id) && LOOK_UP(handle, "bli_arch_string", blis_name))
        return blis_name(blis_id());
    return "a CPU it does not name";
}

static bool can_pack(const struct blas *blas)
{
    return blas->pack_bytes && blas->pack && blas->compute;
}

static bool find(struct library *library, const char *path, char about[LIBRARY_ABOUT])
{
    struct blas *blas = library->state;
    const char *file;
    void *handle = library_dlopen(path, blas->files, 0, &file, about);
    if (!handle)
        return false;
    if (!look_up_products(blas, handle)) {
        snprintf(about, LIBRARY_ABOUT, "%s: has no cblas_sgemm and cblas_sgemv", file);
        return false;
    }
    library->pool = look_up_threads(blas, handle) ? NULL : library;
    const char *kernels = look_up_kernels(handle);
    library->only_named = strcmp(kernels, "generic") == 0;
    snprintf(about, LIBRARY_ABOUT, "%s, kernels for %s, %s packed form%s%s", file, kernels,
             can_pack(blas) ? "with" : "no", library->pool ? ", threads of its own" : "",
             library->only_named ? "; no fair peer, so only if named by --impl" : "");
    return true;
}

static void set_threads(const struct library *library, size_t threads)
{
    const struct blas *blas = library->state;
    if (blas->set_threads_int)
        blas->set_threads_int((int)threads);
    if (blas->set_threads_long)
        blas->set_threads_long((ptrdiff_t)threads);
}

/* ---- products ------------------------------------------------------------------------------- */

struct product {
    const struct blas *blas;
    const struct problem *problem;
    int m, n, k;
    const float *b;
    float *copy, *packed; /* of b: the library's own, and its form of it; or NULL */
};

static bool call_sgemm(void *state)
{
    const struct product *p = state;
    bool ta = p->problem->shape.transposed_a, tb = p->problem->shape.transposed_b;
    p->blas->sgemm(ROW_MAJOR, ta ? TRANSPOSE : NO_TRANSPOSE, tb ? TRANSPOSE : NO_TRANSPOSE, p->m, p->n, p->k, 1.0f,
                   p->problem->operand[0], ta ? p->m : p->k, p->b, tb ? p->k : p->n, 0.0f, p->problem->out, p->n);
    return true;
}

/* A single row by b, or a by a single column. */
static bool call_sgemv(void *state)
{
    const struct product *p = state;
    const struct shape *s = &p->problem->shape;
    const float *a = p->problem->operand[0];
    bool row = p->m == 1, turned = row ? !s->transposed_b : s->transposed_a;
    int length = row ? p->n : p->m, cols = turned ? length : p->k;
    p->blas->sgemv(ROW_MAJOR, turned ? TRANSPOSE : NO_TRANSPOSE, turned ? p->k : length, cols, 1.0f, row ? p->b : a,
                   cols, row ? a : p->b, 1, 0.0f, p->problem->out, 1);
    return true;
}

static bool call_packed(void *state)
{
    const struct product *p = state;
    p->blas->compute(ROW_MAJOR, NO_TRANSPOSE, PACKED, p->m, p->n, p->k, p->problem->operand[0], p->k, p->packed, p->n,
                     0.0f, p->problem->out, p->n);
    return true;
}

static bool pack(struct product *p)
{
    p->packed = memory_aligned_array(p->blas->pack_bytes(MATRIX_B, p->m, p->n, p->k), 1);
    if (p->packed)
        p->blas->pack(ROW_MAJOR, MATRIX_B, NO_TRANSPOSE, p->m, p->n, p->k, 1.0f, p->b, p->n, p->packed);
    return p->packed != NULL;
}

/* Libraries that read the same weights would keep them in the caches for one another. */
static bool copy(struct product *p)
{
    size_t count = p->problem->operand_count[1];
    p->copy = memory_aligned_array(count, sizeof *p->copy);
    if (p->copy)
        memcpy(p->copy, p->b, count * sizeof *p->copy);
    p->b = p->copy;
    return p->copy != NULL;
}

typedef bool form(void *state);

/* How long a form is tried, and how often at least. */
#define TRIAL_SECONDS 5e-3
#define TRIALS 3

static double best_of_trials(form *call, struct product *p)
{
    double best = INFINITY, begin = timing_now();
    call(p); /* makes what later calls find */
    for (int i = 0; i < TRIALS || timing_now() - begin < TRIAL_SECONDS; i++) {
        double before = timing_now();
        call(p);
        double seconds = timing_now() - before;
        best = seconds < best ? seconds : best;
    }
    return best;
}

/* A library is measured by what serves its users best. */
static form *fastest_form(struct product *p)
{
    form *const others[] = {p->m == 1 || p->n == 1 ? call_sgemv : NULL, p->packed ? call_packed : NULL};
    form *fastest = call_sgemm;
    double best = others[0] || others[1] ? best_of_trials(fastest, p) : 0.0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        double seconds = others[i] ? best_of_trials(others[i], p) : INFINITY;
        if (seconds < best) {
            best = seconds;
            fastest = others[i];
        }
    }
    return fastest;
}

static void close_product(void *state)
{
    struct product *p = state;
    free(p->copy);
    free(p->packed);
    free(p);
}

static enum outcome open_product(const struct library *library, struct impl *impl)
{
    const struct problem *problem = impl->problem;
    const struct shape *s = &problem->shape;
    if (s->epilogue != EPILOGUE_NONE)
        return OUTCOME_UNABLE;
    struct product *p = memory_array(1, sizeof *p);
    if (!p)
        return OUTCOME_FAILED;
    *p = (struct product){library->state, problem, (int)s->m, (int)s->n, (int)s->k, problem->operand[1], NULL, NULL};
    impl->state = p;
    impl->close = close_product;
    if (problem->suite->kind != SUITE_MATMUL && (!copy(p) || (can_pack(p->blas) && !pack(p))))
        return OUTCOME_FAILED;
    impl->call = fastest_form(p);
    return OUTCOME_READY;
}

struct library library_openblas = {.name = "openblas",
                                   .find = find,
                                   .set_threads = set_threads,
                                   .open = open_product,
                                   .products = true,
                                   .state = &openblas};
struct library library_blis = {
    .name = "blis", .find = find, .set_threads = set_threads, .open = open_product, .products = true, .state = &blis};
struct library library_mkl = {
    .name = "mkl", .find = find, .set_threads = set_threads, .open = open_product, .products = true, .state = &mkl};
