/* SPDX-License-Identifier: MIT
 * The list of implementations, and how shared libraries are opened.
 */
#include "config.h"

#include "impl.h"

#include <dlfcn.h>
#if HAVE_OPENMP
#include <omp.h>
#endif
#include <stdio.h>
#include <string.h>

static struct library *const all[] = {
    &library_heed, &library_unfused, &library_build,   &library_openblas, &library_blis,
    &library_mkl,  &library_onednn,  &library_xnnpack, &library_torch,    &library_onnxruntime,
};

struct library *library_at(size_t index)
{
    return index < sizeof all / sizeof *all ? all[index] : NULL;
}

void *library_dlopen(const char *path, const char *const *names, int flags, const char **file,
                     char about[LIBRARY_ABOUT])
{
    void *handle = NULL;
    if (path) {
        *file = path;
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
        if (!handle)
            snprintf(about, LIBRARY_ABOUT, "%s", dlerror());
        return handle;
    }
    for (; !handle && *names; names++) {
        *file = *names;
        handle = dlopen(*names, RTLD_NOW | RTLD_LOCAL | flags);
    }
    if (!handle)
        snprintf(about, LIBRARY_ABOUT, "not found");
    return handle;
}

bool library_load(const char *path, const char *const *names, bool (*look_up)(void *handle), const char *interface,
                  const char **file, char about[LIBRARY_ABOUT])
{
    void *handle = library_dlopen(path, names, 0, file, about);
    if (!handle)
        return false;
    if (look_up(handle))
        return true;
    snprintf(about, LIBRARY_ABOUT, "%s: has not the interface of %s", *file, interface);
    return false;
}

bool library_symbol(void *handle, const char *name, void *function, size_t size)
{
    void *symbol = dlsym(handle, name);
    memcpy(function, &symbol, size);
    return symbol != NULL;
}

/* Copies of one OpenMP, and OpenMPs of several makers, know nothing of one another's settings. */
bool library_shares_openmp(void *handle)
{
    bool shares = false;
#if HAVE_OPENMP
    int (*max_threads)(void), mine = omp_get_max_threads();
    if (LIBRARY_SYMBOL(handle, "omp_get_max_threads", max_threads)) {
        int other = max_threads() + 1;
        omp_set_num_threads(other);
        shares = max_threads() == other;
        omp_set_num_threads(mine);
    }
#else
    (void)handle;
#endif
    return shares;
}
