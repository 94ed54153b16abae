/* SPDX-License-Identifier: MIT
 * Packed weights: a header of one cache line, then panels of 16 columns.
 */
#include "reading.h"

#include <string.h>

#define WEIGHTS_MAGIC 0x64656568u
#define WEIGHTS_VERSION 1u

/* A file of a 64-bit machine may hold more than a 32-bit one can count. */
static bool fits_size(uint32_t high)
{
    return high == 0 || sizeof(size_t) > sizeof high;
}

size_t heed_weights_in(const heed_weights *weights)
{
    return heed_header_in(weights);
}

size_t heed_weights_out(const heed_weights *weights)
{
    return heed_header_out(weights);
}

int heed_weights_gated(const heed_weights *weights)
{
    return weights->gated != 0;
}

static heed_status packed_bytes(heed_type type, size_t in, size_t out, size_t matrices, size_t *bytes)
{
    if (!bytes)
        return HEED_ERR_NULL;
    if (type != HEED_TYPE_F32)
        return HEED_ERR_ENUM;
    size_t panels = heed_times(heed_times(heed_times(in, heed_pad(out)), matrices), sizeof(float));
    size_t total = heed_plus(panels, sizeof(struct heed_weights));
    if (total > PTRDIFF_MAX)
        return HEED_ERR_OVERFLOW;
    *bytes = total;
    return HEED_OK;
}

heed_status heed_weights_bytes(heed_type type, size_t in, size_t out, size_t *bytes)
{
    return packed_bytes(type, in, out, 1, bytes);
}

heed_status heed_weights_gated_bytes(heed_type type, size_t in, size_t out, size_t *bytes)
{
    return packed_bytes(type, in, out, 2, bytes);
}

/* What the header promises; the type has been checked. */
static heed_status held_bytes(const heed_weights *w, size_t *bytes)
{
    return packed_bytes(HEED_TYPE_F32, heed_weights_in(w), heed_weights_out(w), w->gated ? 2 : 1, bytes);
}

heed_status heed_weights_check(const heed_weights *weights)
{
    if (!weights)
        return HEED_ERR_NULL;
    if ((uintptr_t)weights % 4 != 0)
        return HEED_ERR_ALIGNMENT;
    const uint32_t *r = weights->reserved;
    uint32_t wrong = (weights->magic ^ WEIGHTS_MAGIC) | (weights->version ^ WEIGHTS_VERSION) |
                     (weights->type ^ HEED_TYPE_F32) | (weights->panel ^ HEED_PANEL) | (weights->gated & ~1u);
    wrong |= r[0] | r[1] | r[2] | r[3] | r[4] | r[5] | r[6]; /* a loop takes a tenth of a small product */
    bool fits = fits_size(weights->in_high) && fits_size(weights->out_high);
    return wrong == 0 && fits ? HEED_OK : HEED_ERR_FORMAT;
}

void heed_read_weights(struct heed_operands *operands, const heed_weights *weights)
{
    size_t bytes = 0;
    heed_fail(operands, held_bytes(weights, &bytes));
    heed_read(operands, weights, 4, 1, bytes / 4, bytes / 4, 0);
}

heed_status heed_weights_open(const void *memory, size_t bytes, const heed_weights **weights)
{
    size_t needed;
    if (!memory || !weights)
        return HEED_ERR_NULL;
    if ((uintptr_t)memory % 4 != 0)
        return HEED_ERR_ALIGNMENT;
    const heed_weights *w = memory;
    if (bytes < sizeof *w || heed_weights_check(w) != HEED_OK)
        return HEED_ERR_FORMAT;
    if (held_bytes(w, &needed) != HEED_OK || needed > bytes)
        return HEED_ERR_FORMAT;
    *weights = w;
    return HEED_OK;
}

struct source {
    const float *data;
    size_t ld;
};

struct pack_job {
    const struct heed_kernels *kernels;
    bool transposed;
    enum heed_pack_prefetch prefetch;
    size_t in, out, matrices, panels_at_once;
    struct source src[2];
    float *panels;
};

/* Panels of a matrix that lies as [in][out] for a task, of which a row of it then has a run: 1.04 to 1.5 times as fast
 * as one panel. Where `in` is a multiple of 64 their lines share a set of L1, which keeps eight. */
#define PANELS_AT_ONCE 4
#define LEAST_TASKS_PER_WORKER 4

/* Those of two matrices alternate, and of a transposed one a panel is rows of its own. */
static size_t panels_at_once(const struct heed_context *context, const struct pack_job *job)
{
    size_t workers = heed_workers(context), tasks = heed_ceil_div(job->out, HEED_PANEL * PANELS_AT_ONCE);
    bool shares = workers == 1 || tasks >= LEAST_TASKS_PER_WORKER * workers;
    return job->transposed || job->matrices > 1 || !shares ? 1 : PANELS_AT_ONCE;
}

/* Some panels, of each matrix by turns. */
static void pack_panels(void *arg, size_t index, size_t worker)
{
    const struct pack_job *job = arg;
    const struct source *src = &job->src[index % job->matrices];
    size_t most = job->panels_at_once * HEED_PANEL, j = index / job->matrices * most;
    size_t n = job->out - j < most ? job->out - j : most;
    (void)worker;
    job->kernels->pack(job->transposed, job->prefetch, n, job->in, src->data + (job->transposed ? j * src->ld : j),
                       src->ld, job->panels + index * most * job->in);
}

static heed_status pack_matrices(const heed_context *context, heed_type type, heed_weight_layout layout, size_t in,
                                 size_t out, size_t matrices, const struct source src[2], void *memory, size_t bytes,
                                 const heed_weights **weights)
{
    struct heed_context fallback;
    const struct heed_context *c;
    heed_status status = heed_context_resolve(context, &fallback, &c);
    size_t needed = 0;
    if (status == HEED_OK)
        status = packed_bytes(type, in, out, matrices, &needed);
    struct heed_operands operands;
    heed_operands_begin(&operands, status);
    heed_require(&operands, layout == HEED_LAYOUT_IN_OUT || layout == HEED_LAYOUT_OUT_IN, HEED_ERR_ENUM);
    bool transposed = layout == HEED_LAYOUT_OUT_IN;
    for (size_t s = 0; s < matrices; s++)
        heed_read(&operands, src[s].data, sizeof *src[s].data, transposed ? out : in, transposed ? in : out, src[s].ld,
                  0);
    heed_require(&operands, bytes >= needed, HEED_ERR_WORKSPACE);
    heed_write(&operands, memory, 4, 1, needed / 4, needed / 4, 0);
    heed_require(&operands, weights != NULL, HEED_ERR_NULL);
    status = heed_operands_check(&operands, NULL, 0);
    if (status != HEED_OK)
        return status;

    heed_weights *w = memory;
    *w = (heed_weights){
        .magic = WEIGHTS_MAGIC,
        .version = WEIGHTS_VERSION,
        .type = HEED_TYPE_F32,
        .panel = HEED_PANEL,
        .in_low = (uint32_t)in,
        .in_high = (uint32_t)((uint64_t)in >> 32),
        .out_low = (uint32_t)out,
        .out_high = (uint32_t)((uint64_t)out >> 32),
        .gated = matrices == 2,
    };
    struct pack_job job = {.kernels = c->kernels,
                           .transposed = transposed,
                           .prefetch = heed_pack_prefetch(c, out, in),
                           .in = in,
                           .out = out,
                           .matrices = matrices,
                           .src = {src[0], src[matrices - 1]},
                           .panels = (float *)(void *)(w + 1)};
    job.panels_at_once = panels_at_once(c, &job);
    size_t parts = heed_ceil_div(out, HEED_PANEL * job.panels_at_once);
    if (in > 0)
        heed_run(c, parts * matrices, (double)in * (double)out, pack_panels, &job);
    *weights = w;
    return HEED_OK;
}

heed_status heed_weights_pack(const heed_context *context, heed_type type, heed_weight_layout layout, size_t in,
                              size_t out, const float *src, size_t ld, void *memory, size_t bytes,
                              const heed_weights **weights)
{
    const struct source one[2] = {{src, ld}, {NULL, 0}};
    return pack_matrices(context, type, layout, in, out, 1, one, memory, bytes, weights);
}

heed_status heed_weights_pack_gated(const heed_context *context, heed_type type, heed_weight_layout layout, size_t in,
                                    size_t out, const float *gate, size_t ld_gate, const float *up, size_t ld_up,
                                    void *memory, size_t bytes, const heed_weights **weights)
{
    const struct source two[2] = {{gate, ld_gate}, {up, ld_up}};
    return pack_matrices(context, type, layout, in, out, 2, two, memory, bytes, weights);
}
