/* SPDX-License-Identifier: MIT
 * XNNPACK: its softmax, on one thread. The interface is that of 2022, which Debian 12 has.
 */
#include "config.h"

#include "impl.h"

#include "diag.h"

#include <stdint.h>
#include <stdio.h>

/* xnn_status_success. Operators and thread pools are opaque. */
enum { SUCCESS = 0 };

static struct {
    int (*initialize)(const void *allocator);
    int (*create_softmax)(size_t cols, size_t ld_src, size_t ld_dst, uint32_t flags, void **softmax);
    int (*setup_softmax)(void *softmax, size_t rows, const float *src, float *dst, void *threads);
    int (*run)(void *operator_, void *threads);
    int (*destroy)(void *operator_);
} xnn;

/* From 2023 on a shape is given by a function of its own, and the others take other arguments. */
static bool look_up(void *handle)
{
    void (*later)(void);
    return LIBRARY_SYMBOL(handle, "xnn_initialize", xnn.initialize) &&
           LIBRARY_SYMBOL(handle, "xnn_create_softmax_nc_f32", xnn.create_softmax) &&
           LIBRARY_SYMBOL(handle, "xnn_setup_softmax_nc_f32", xnn.setup_softmax) &&
           LIBRARY_SYMBOL(handle, "xnn_run_operator", xnn.run) &&
           LIBRARY_SYMBOL(handle, "xnn_delete_operator", xnn.destroy) &&
           !LIBRARY_SYMBOL(handle, "xnn_reshape_softmax_nc_f32", later);
}

static bool find(struct library *library, const char *path, char about[LIBRARY_ABOUT])
{
    static const char *const files[] = {"libXNNPACK.so.0", "libXNNPACK.so", NULL};
    const char *file;
    (void)library;
    if (!library_load(path, files, look_up, "XNNPACK of 2022", &file, about))
        return false;
    if (xnn.initialize(NULL) != SUCCESS) {
        snprintf(about, LIBRARY_ABOUT, "%s: does not start", file);
        return false;
    }
    snprintf(about, LIBRARY_ABOUT, "%s, softmax on one thread", file);
    return true;
}

static void set_threads(const struct library *library, size_t threads)
{
    (void)library;
    (void)threads;
}

static bool good(int status, const char *what)
{
    if (status != SUCCESS)
        diag_print("xnnpack: %s: status %d", what, status);
    return status == SUCCESS;
}

static bool call(void *state)
{
    return good(xnn.run(state, NULL), "softmax");
}

static void close_softmax(void *state)
{
    xnn.destroy(state);
}

static enum outcome open_softmax(const struct library *library, struct impl *impl)
{
    const struct problem *p = impl->problem;
    (void)library;
    if (p->suite->kind != SUITE_ROWS || p->shape.function != ROW_SOFTMAX || p->threads > 1)
        return OUTCOME_UNABLE;
    if (!good(xnn.create_softmax(p->shape.n, p->shape.n, p->shape.n, 0, &impl->state), "creating softmax"))
        return OUTCOME_FAILED;
    impl->call = call;
    impl->close = close_softmax;
    bool ready = good(xnn.setup_softmax(impl->state, p->shape.m, p->operand[0], p->out, NULL), "setting softmax up");
    return ready ? OUTCOME_READY : OUTCOME_FAILED;
}

struct library library_xnnpack = {.name = "xnnpack", .find = find, .set_threads = set_threads, .open = open_softmax};
