/* SPDX-License-Identifier: MIT
 * Another build of heed, to compare two call by call.
 */
#include "config.h"

#include "impl.h"
#include "own.h"

#include <dlfcn.h>
#include <stdio.h>

static struct own_functions functions;

#define LOOK_UP(name) &&LIBRARY_SYMBOL(handle, "heed_" #name, functions.name)
static bool look_up(void *handle)
{
    return handle OWN_FUNCTIONS(LOOK_UP);
}

/* Its functions call one another, not those of the heed that the program is linked with. Sanitizers refuse it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#define IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define IS_SANITIZED 0
#endif
#if defined(RTLD_DEEPBIND) && !IS_SANITIZED
#define ITSELF RTLD_DEEPBIND
#else
#define ITSELF 0
#endif

static bool find(struct library *library, const char *path, char about[LIBRARY_ABOUT])
{
    const char *(*version)(void), *file;
    void *handle = path ? library_dlopen(path, NULL, ITSELF, &file, about) : NULL;
    if (!handle)
        return false;
    if (!look_up(handle) || !LIBRARY_SYMBOL(handle, "heed_version", version)) {
        snprintf(about, LIBRARY_ABOUT, "%s: has not the interface of heed", path);
        return false;
    }
    library->state = &functions;
    library->pool = library_shares_openmp(handle) ? NULL : library;
    snprintf(about, LIBRARY_ABOUT, "%s, heed %s%s", path, version(), library->pool ? ", threads of its own" : "");
    return true;
}

struct library library_build = {.name = "build", .find = find, .set_threads = own_set_threads, .open = own_open};
