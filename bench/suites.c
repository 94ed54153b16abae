/* SPDX-License-Identifier: MIT
 * What is measured.
 */
#include "config.h"

#include "suites.h"

#include "diag.h"
#include "limits.h"
#include "memory.h"
#include "peers.h"
#include "timing.h"

#include <float.h>
#include <heed.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct suite suites[] = {
    {"peak", "the machine's own limits", SUITE_PEAK},
    {"matmul", "c = a b, nothing packed beforehand", SUITE_MATMUL},
    {"linear", "y = x w, weights packed beforehand where an implementation can", SUITE_LINEAR},
    {"gemv", "linear of a single row; peers use sgemv, or their packed form", SUITE_GEMV},
};

const struct suite *suites_at(size_t index)
{
    return index < sizeof suites / sizeof *suites ? &suites[index] : NULL;
}

impl_set suites_impl(const char *name)
{
    if (strcmp(name, "heed") == 0)
        return IMPL_HEED;
    for (size_t i = 0; i < N_PEERS; i++)
        if (strcmp(peers_at(i)->name, name) == 0)
            return IMPL_HEED << (i + 1);
    return 0;
}

/* ---- shapes -------------------------------------------------------------------------------- */

static const struct shape matmul_shapes[] = {
    {4, 4, 64},       {8, 8, 8},          {16, 16, 64},       {64, 64, 64},     {128, 128, 128}, {256, 256, 256},
    {512, 512, 512},  {1024, 1024, 1024}, {2048, 2048, 2048}, {128, 128, 64},   {128, 64, 128},  {512, 512, 64},
    {512, 64, 512},   {128, 384, 384},    {128, 1536, 384},   {128, 384, 1536}, {512, 768, 768}, {512, 3072, 768},
    {512, 768, 3072}, {512, 1024, 1024},  {512, 4096, 1024},
};

/* Columns and depth of the linear layers of common transformers. */
static const struct {
    size_t n, k;
} layers[] = {
    {384, 384}, {1536, 384}, {384, 1536}, {512, 512},   {2048, 512},  {512, 2048},
    {768, 768}, {3072, 768}, {768, 3072}, {1024, 1024}, {4096, 1024}, {4096, 4096},
};
#define N_LAYERS (sizeof layers / sizeof *layers)

static const size_t linear_rows[] = {1, 8, 32, 64, 128, 512};
#define N_LINEAR_ROWS (sizeof linear_rows / sizeof *linear_rows)

static size_t default_shape_count(enum suite_kind kind)
{
    if (kind == SUITE_MATMUL)
        return sizeof matmul_shapes / sizeof *matmul_shapes;
    return kind == SUITE_LINEAR ? N_LAYERS * N_LINEAR_ROWS : N_LAYERS;
}

static struct shape default_shape(enum suite_kind kind, size_t index)
{
    if (kind == SUITE_MATMUL)
        return matmul_shapes[index];
    size_t layer = index % N_LAYERS, m = kind == SUITE_LINEAR ? linear_rows[index / N_LAYERS] : 1;
    return (struct shape){m, layers[layer].n, layers[layer].k};
}

/* ---- a product and those that compute it ----------------------------------------------------- */

struct product {
    enum suite_kind kind;
    struct shape shape;
    float *a, *b, *c;
    float *expected; /* c of the first implementation */
    const heed_context *context;
    void *packed;
    const heed_weights *weights;
    heed_workspace workspace;
};

struct impl {
    const char *name;
    const struct peer *peer; /* NULL: heed */
    const struct product *product;
    float *packed; /* the peer's form of b, or NULL */
};

/* Uniform in [-1, 1), the same in every run. */
static void fill(float *values, size_t count)
{
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(int32_t)state * 0x1p-31f;
    }
}

static bool fits(const struct shape *s)
{
    double most = (double)PTRDIFF_MAX / 8.0, m = (double)s->m, n = (double)s->n + 16.0, k = (double)s->k;
    if (m * k < most && k * n < most && m * n < most)
        return true;
    diag_print("%zux%zux%zu: too large for this machine", s->m, s->n, s->k);
    return false;
}

static bool heed_failed(heed_status status)
{
    if (status != HEED_OK)
        diag_print("heed: %s", heed_status_string(status));
    return status != HEED_OK;
}

static bool prepare_heed(struct product *p)
{
    const struct shape *s = &p->shape;
    size_t bytes = 0;
    if (p->kind == SUITE_MATMUL) {
        if (heed_failed(
                heed_matmul_workspace(p->context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, s->m, s->n, s->k, &bytes)))
            return false;
        p->workspace = (heed_workspace){memory_aligned_array(bytes, 1), bytes};
        return p->workspace.memory != NULL;
    }
    if (heed_failed(heed_weights_bytes(HEED_TYPE_F32, s->k, s->n, &bytes)))
        return false;
    p->packed = memory_aligned_array(bytes, 1);
    return p->packed && !heed_failed(heed_weights_pack(p->context, HEED_TYPE_F32, HEED_LAYOUT_IN_OUT, s->k, s->n, p->b,
                                                       s->n, p->packed, bytes, &p->weights));
}

static bool prepare(struct product *p)
{
    const struct shape *s = &p->shape;
    p->a = memory_aligned_array(s->m * s->k, sizeof(float));
    p->b = memory_aligned_array(s->k * s->n, sizeof(float));
    p->c = memory_aligned_array(s->m * s->n, sizeof(float));
    p->expected = memory_aligned_array(s->m * s->n, sizeof(float));
    if (!p->a || !p->b || !p->c || !p->expected)
        return false;
    fill(p->a, s->m * s->k);
    fill(p->b, s->k * s->n);
    return prepare_heed(p);
}

static void release(struct product *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->expected);
    free(p->packed);
    free(p->workspace.memory);
}

static heed_status call_heed(const struct product *p)
{
    const struct shape *s = &p->shape;
    if (p->kind == SUITE_MATMUL)
        return heed_matmul(p->context, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, s->m, s->n, s->k, 1.0f, p->a, s->k, p->b,
                           s->n, 0.0f, p->c, s->n, &p->workspace);
    return heed_linear(p->context, s->m, p->a, s->k, p->weights, NULL, p->c, s->n);
}

static void call_peer(const struct impl *impl)
{
    const struct product *p = impl->product;
    int m = (int)p->shape.m, n = (int)p->shape.n, k = (int)p->shape.k;
    if (impl->packed)
        impl->peer->compute(PEERS_ROW_MAJOR, PEERS_NO_TRANSPOSE, PEERS_PACKED, m, n, k, p->a, k, impl->packed, n, 0.0f,
                            p->c, n);
    else if (p->kind == SUITE_GEMV)
        impl->peer->sgemv(PEERS_ROW_MAJOR, PEERS_TRANSPOSE, k, n, 1.0f, p->b, n, p->a, 1, 0.0f, p->c, 1);
    else
        impl->peer->sgemm(PEERS_ROW_MAJOR, PEERS_NO_TRANSPOSE, PEERS_NO_TRANSPOSE, m, n, k, 1.0f, p->a, k, p->b, n,
                          0.0f, p->c, n);
}

static double sample_heed(void *arg, size_t calls)
{
    const struct impl *impl = arg;
    double begin = timing_now();
    for (size_t i = 0; i < calls; i++)
        call_heed(impl->product);
    return timing_now() - begin;
}

static double sample_peer(void *arg, size_t calls)
{
    double begin = timing_now();
    for (size_t i = 0; i < calls; i++)
        call_peer(arg);
    return timing_now() - begin;
}

static bool pack_for_peer(struct impl *impl)
{
    const struct shape *s = &impl->product->shape;
    int m = (int)s->m, n = (int)s->n, k = (int)s->k;
    if (impl->product->kind == SUITE_MATMUL || !peer_can_pack(impl->peer))
        return true;
    impl->packed = memory_aligned_array(impl->peer->pack_bytes(PEERS_B, m, n, k), 1);
    if (!impl->packed)
        return false;
    impl->peer->pack(PEERS_ROW_MAJOR, PEERS_B, PEERS_NO_TRANSPOSE, m, n, k, 1.0f, impl->product->b, n, impl->packed);
    return true;
}

/* Two roundings of the same sums differ by at most twice the usual bound, with |a| |b| <= k. */
static bool agrees(const struct product *p)
{
    double k = (double)p->shape.k, bound = (k + 2.0) * k * (double)FLT_EPSILON;
    for (size_t i = 0; i < p->shape.m * p->shape.n; i++)
        if (!(fabs((double)p->c[i] - (double)p->expected[i]) <= bound))
            return false;
    return true;
}

/* What computes something else is not worth timing. */
static bool check_result(const struct impl *impl, bool first)
{
    const struct product *p = impl->product;
    size_t count = p->shape.m * p->shape.n;
    for (size_t i = 0; i < count; i++)
        p->c[i] = NAN;
    if (impl->peer)
        call_peer(impl);
    else if (heed_failed(call_heed(p)))
        return false;
    if (first)
        memcpy(p->expected, p->c, count * sizeof(float));
    if (agrees(p))
        return true;
    diag_print("%s: wrong result for %zux%zux%zu", impl->name, p->shape.m, p->shape.n, p->shape.k);
    return false;
}

/* ---- one shape ------------------------------------------------------------------------------- */

#define MOST_IMPLS (1 + N_PEERS)

/* What stays the same from shape to shape. */
struct setting {
    const struct plan *plan;
    const char *isa;
    size_t threads;
    impl_set impls;
    heed_context *context;
    const struct loops *loops;
};

static size_t choose_impls(const struct setting *setting, const struct product *product, struct impl *impls)
{
    size_t count = 0;
    if (setting->impls & IMPL_HEED)
        impls[count++] = (struct impl){"heed", NULL, product, NULL};
    for (size_t i = 0; i < N_PEERS; i++) {
        const struct peer *peer = peers_at(i);
        if (peer->file && setting->impls & (IMPL_HEED << (i + 1)))
            impls[count++] = (struct impl){peer->name, peer, product, NULL};
    }
    return count;
}

static bool ready(struct impl *impls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((impls[i].peer && !pack_for_peer(&impls[i])) || !check_result(&impls[i], i == 0))
            return false;
    return true;
}

static double flops_of(const struct shape *s)
{
    return 2.0 * (double)s->m * (double)s->n * (double)s->k;
}

/* Each operand moves at least once. */
static size_t bytes_of(const struct shape *s)
{
    return sizeof(float) * (s->m * s->k + s->k * s->n + s->m * s->n);
}

static bool report_impls(const struct setting *setting, const struct shape *s, const struct limit *limit,
                         const struct impl *impls, const struct timed *timed, size_t count, struct report *report)
{
    double work = limit->kind == LIMIT_FMA ? flops_of(s) : (double)bytes_of(s);
    for (size_t i = 0; i < count; i++) {
        const struct timed *t = &timed[i + 1];
        struct row row = {.suite = setting->plan->suite->name,
                          .isa = setting->isa,
                          .threads = setting->threads,
                          .impl = impls[i].name,
                          .seconds = t->seconds,
                          .rate = 1e-9 * work / t->seconds,
                          .unit = limit->unit,
                          .limit = limit->name,
                          .percent = 100.0 * t->ratio * work / limit_work(limit)};
        snprintf(row.shape, sizeof row.shape, "%zux%zux%zu", s->m, s->n, s->k);
        if (!report_add(report, &row))
            return false;
    }
    return true;
}

static bool time_impls(const struct setting *setting, const struct shape *s, struct impl *impls, size_t count,
                       struct report *report)
{
    struct limit limit;
    struct timed timed[1 + MOST_IMPLS];
    if (!limit_init_binding(&limit, setting->loops, setting->threads, flops_of(s), bytes_of(s)))
        return false;
    timed[0] = (struct timed){.sample = limit_sample, .arg = &limit};
    for (size_t i = 0; i < count; i++)
        timed[i + 1] = (struct timed){.sample = impls[i].peer ? sample_peer : sample_heed, .arg = &impls[i]};
    bool done = timing_interleave(timed, count + 1, setting->plan->seconds) &&
                report_impls(setting, s, &limit, impls, timed, count, report);
    limit_free(&limit);
    return done;
}

static bool run_shape(const struct setting *setting, const struct shape *s, struct report *report)
{
    struct product product = {.kind = setting->plan->suite->kind, .shape = *s, .context = setting->context};
    struct impl impls[MOST_IMPLS];
    size_t count = choose_impls(setting, &product, impls);
    if (count == 0)
        return true;
    bool done = fits(s) && prepare(&product) && ready(impls, count) && time_impls(setting, s, impls, count, report);
    for (size_t i = 0; i < count; i++)
        free(impls[i].packed);
    release(&product);
    return done;
}

static bool run_shapes(const struct setting *setting, struct report *report)
{
    const struct plan *plan = setting->plan;
    size_t count = plan->shapes ? plan->n_shapes : default_shape_count(plan->suite->kind);
    for (size_t i = 0; i < count; i++) {
        struct shape shape = plan->shapes ? plan->shapes[i] : default_shape(plan->suite->kind, i);
        if (!run_shape(setting, &shape, report))
            return false;
    }
    return true;
}

/* ---- peak ------------------------------------------------------------------------------------ */

/* A limit's share of itself is its median as a share of its best: how steady the machine is. */
static bool run_limit(const struct setting *setting, struct limit *limit, const char *what, struct report *report)
{
    struct timed timed = {.sample = limit_sample, .arg = limit};
    if (!timing_interleave(&timed, 1, setting->plan->seconds))
        return false;
    struct row row = {.suite = "peak",
                      .isa = setting->isa,
                      .threads = setting->threads,
                      .impl = "limit",
                      .seconds = timed.seconds,
                      .rate = 1e-9 * limit_work(limit) / timed.seconds,
                      .unit = limit->unit,
                      .limit = limit->name,
                      .percent = 100.0 * timed.fastest / timed.seconds};
    snprintf(row.shape, sizeof row.shape, "%s%s%s", what, limit->kind == LIMIT_FMA ? "" : "-",
             limit->kind == LIMIT_FMA ? "" : limit->name);
    return report_add(report, &row);
}

static bool run_memory(const struct setting *setting, enum limit_kind kind, enum limits_level level,
                       struct report *report)
{
    struct limit limit;
    bool done = limit_init_memory(&limit, kind, setting->loops, setting->threads,
                                  limits_level_working_set(level, setting->threads)) &&
                run_limit(setting, &limit, kind == LIMIT_READ ? "read" : "copy", report);
    limit_free(&limit);
    return done;
}

static bool run_peak(const struct setting *setting, struct report *report)
{
    struct limit fma;
    limit_init_fma(&fma, setting->loops, setting->threads);
    if (!run_limit(setting, &fma, "fma", report))
        return false;
    for (int level = LEVEL_L1; level < N_LEVELS; level++)
        if (!run_memory(setting, LIMIT_READ, (enum limits_level)level, report) ||
            !run_memory(setting, LIMIT_COPY, (enum limits_level)level, report))
            return false;
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool make_context(struct setting *setting)
{
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    options.level = setting->isa;
    options.threads = setting->threads;
    return !heed_failed(heed_context_create(&setting->context, &options));
}

static bool run_setting(struct setting *setting, struct report *report)
{
    const char *best = "";
    heed_level_default(&best);
    if (!setting->plan->peers_everywhere && strcmp(setting->isa, best) != 0)
        setting->impls &= IMPL_HEED;
    setting->loops = limits_loops(setting->isa);
    if (!setting->loops) {
        diag_print("%s: there is no loop for its limits", setting->isa);
        return false;
    }
    if (setting->plan->suite->kind == SUITE_PEAK)
        return run_peak(setting, report);
    for (size_t i = 0; i < N_PEERS; i++)
        if (peers_at(i)->file)
            peer_set_threads(peers_at(i), setting->threads);
    if (!make_context(setting))
        return false;
    bool done = run_shapes(setting, report);
    heed_context_destroy(setting->context);
    return done;
}

static void announce_peers(const struct plan *plan)
{
    if (plan->suite->kind == SUITE_PEAK)
        return;
    peers_open();
    for (size_t i = 0; i < N_PEERS; i++) {
        const struct peer *peer = peers_at(i);
        if (!(plan->impls & (IMPL_HEED << (i + 1))))
            continue;
        if (peer->file)
            report_comment("%s: %s, kernels for %s, %s packed form", peer->name, peer->file,
                           peer->kernels ? peer->kernels : "a CPU it does not name",
                           peer_can_pack(peer) ? "with" : "no");
        else
            report_comment("%s: not found", peer->name);
    }
}

bool suites_run(const struct plan *plan, struct report *report)
{
    announce_peers(plan);
    for (size_t i = 0; i < plan->n_isas; i++)
        for (size_t t = 0; t < plan->n_threads; t++) {
            struct setting setting = {
                .plan = plan, .isa = plan->isas[i], .threads = plan->threads[t], .impls = plan->impls};
            if (!run_setting(&setting, report))
                return false;
        }
    return true;
}
