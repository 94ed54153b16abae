/* SPDX-License-Identifier: MIT
 * The shared library is loaded, used on several threads and unloaded, again and again: libgomp's idle
 * workers must not lose their code. usage: test_unload [LIBRARY]
 */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "heed.h"

enum { ROUNDS = 20, ROWS = 512, COLS = 512 };

static float x[ROWS * COLS];

/* dlsym gives void *, which ISO C does not convert to a function. */
#define LOOK_UP(function, library, name)                                                                               \
    do {                                                                                                               \
        void *symbol = dlsym(library, name);                                                                           \
        memcpy(&(function), &symbol, sizeof(function));                                                                \
    } while (0)

static const char *use(void *library)
{
    heed_status (*create)(heed_context **, const heed_context_options *);
    void (*destroy)(heed_context *);
    heed_status (*softmax)(const heed_context *, size_t, size_t, const float *, size_t, float *, size_t);
    LOOK_UP(create, library, "heed_context_create");
    LOOK_UP(destroy, library, "heed_context_destroy");
    LOOK_UP(softmax, library, "heed_softmax");
    if (!create || !destroy || !softmax)
        return "a symbol is missing";
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    heed_context *context = NULL;
    options.threads = 4;
    if (create(&context, &options) != HEED_OK)
        return "no context";
    heed_status status = softmax(context, ROWS, COLS, x, COLS, x, COLS);
    destroy(context);
    return status == HEED_OK ? NULL : "softmax failed";
}

static const char *load_and_unload(const char *path)
{
    for (int round = 0; round < ROUNDS; round++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            return dlerror();
        const char *error = use(library);
        dlclose(library);
        if (error)
            return error;
        usleep(1000);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "./.libs/libheed.so";
    printf("1..1\n");
    if (access(path, R_OK) != 0) {
        printf("ok 1 - loading and unloading # SKIP there is no shared library %s\n", path);
        return 0;
    }
    const char *error = load_and_unload(path);
    if (error)
        printf("# %s\n", error);
    printf("%sok 1 - %d rounds of loading, using and unloading\n", error ? "not " : "", ROUNDS);
    return error != NULL;
}
