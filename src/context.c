/* SPDX-License-Identifier: MIT
 * Contexts: which kernels, which threads, which memory.
 */
#include "internal.h"

#include <stdlib.h>

#define MOST_THREADS 65536

static void *default_allocate(void *state, size_t bytes)
{
    (void)state;
    return malloc(bytes);
}

static void default_release(void *state, void *memory)
{
    (void)state;
    free(memory);
}

static const heed_allocator default_allocator = {default_allocate, default_release, NULL};

static heed_status check_options(const heed_context_options *options)
{
    switch (options->executor) {
    case HEED_EXECUTOR_SERIAL:
    case HEED_EXECUTOR_OPENMP:
        break;
    case HEED_EXECUTOR_HOST:
        if (!options->host.run)
            return HEED_ERR_NULL;
        if (options->threads == 0)
            return HEED_ERR_VALUE;
        break;
    default:
        return HEED_ERR_ENUM;
    }
    if (options->threads > MOST_THREADS)
        return HEED_ERR_VALUE;
    if (!options->allocator.allocate != !options->allocator.release)
        return HEED_ERR_NULL;
    return HEED_OK;
}

static heed_status read_options(heed_context_options *options, const heed_context_options *given)
{
    const heed_context_options defaults = HEED_CONTEXT_OPTIONS_INIT;
    *options = defaults;
    heed_status status = given ? heed_struct_read(options, sizeof *options, sizeof *options, given) : HEED_OK;
    return status == HEED_OK ? check_options(options) : status;
}

heed_status heed_context_create_on(heed_context **context, const heed_context_options *options,
                                   const struct heed_kernels *kernels)
{
    heed_context_options read;
    heed_status status = read_options(&read, options);
    if (status != HEED_OK)
        return status;
    heed_allocator allocator = read.allocator.allocate ? read.allocator : default_allocator;
    heed_context *made = allocator.allocate(allocator.state, sizeof *made);
    if (!made)
        return HEED_ERR_MEMORY;
    bool serial = read.executor == HEED_EXECUTOR_SERIAL || (read.executor == HEED_EXECUTOR_OPENMP && !HAVE_OPENMP);
    *made = (heed_context){
        .kernels = kernels,
        .l2 = heed_l2_bytes(),
        .in_order = heed_in_order_bytes(),
        .wide_core = heed_core_is_wide(),
        .executor = read.executor,
        .threads = serial         ? 1
                   : read.threads ? read.threads
                                  : heed_default_threads(),
        .host = read.host,
        .allocator = allocator,
    };
    *context = made;
    return HEED_OK;
}

heed_status heed_context_create(heed_context **context, const heed_context_options *options)
{
    heed_context_options read;
    if (!context)
        return HEED_ERR_NULL;
    heed_status status = read_options(&read, options);
    const struct heed_kernels *kernels = NULL;
    if (status == HEED_OK)
        status = heed_level_select(read.level, &kernels);
    return status == HEED_OK ? heed_context_create_on(context, options, kernels) : status;
}

void heed_context_destroy(heed_context *context)
{
    if (context)
        context->allocator.release(context->allocator.state, context);
}

heed_status heed_context_resolve(const heed_context *context, struct heed_context *fallback,
                                 const struct heed_context **resolved)
{
    *resolved = context;
    if (context)
        return HEED_OK;
    *fallback = (struct heed_context){.l2 = heed_l2_bytes(),
                                      .in_order = heed_in_order_bytes(),
                                      .wide_core = heed_core_is_wide(),
                                      .executor = HEED_EXECUTOR_SERIAL,
                                      .threads = 1,
                                      .allocator = default_allocator};
    *resolved = fallback;
    return heed_level_select(NULL, &fallback->kernels);
}

const char *heed_context_level(const heed_context *context)
{
    struct heed_context fallback;
    const struct heed_context *c;
    return heed_context_resolve(context, &fallback, &c) == HEED_OK ? c->kernels->name : "";
}

size_t heed_context_threads(const heed_context *context)
{
    return context ? context->threads : 1;
}
