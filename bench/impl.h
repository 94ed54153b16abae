/* SPDX-License-Identifier: MIT
 * Those that compute problems: heed, and the libraries it is compared with.
 */
#ifndef BENCH_IMPL_H
#define BENCH_IMPL_H

#include <stdbool.h>
#include <stddef.h>

#include "problem.h"

struct library;

/* A library made ready for one problem. */
struct impl {
    const struct library *library;
    const struct problem *problem;
    void *state;
    bool (*call)(void *state);                 /* computes the result once; false after a message */
    double (*sample)(void *arg, size_t calls); /* arg: this impl; seconds of so many calls */
    bool (*fetch)(struct impl *impl);          /* brings the result to problem->out; NULL: call wrote it there */
    void (*close)(void *state);                /* or NULL */
};

enum outcome { OUTCOME_READY, OUTCOME_UNABLE, OUTCOME_FAILED };

#define LIBRARY_ABOUT 160

struct library {
    const char *name;

    /* Looks for it at path, NULL: where the system keeps it. about says what was found, or why nothing. */
    bool (*find)(struct library *library, const char *path, char about[LIBRARY_ABOUT]);
    void (*set_threads)(const struct library *library, size_t threads);

    /* Fills in state, call and close of impl, of which the rest is set. UNABLE where it does not compute
     * such problems; FAILED after a message. */
    enum outcome (*open)(const struct library *library, struct impl *impl);

    void (*end)(struct library *library); /* of the program, if it was found; or NULL */

    void *state;
    const void *pool; /* its threads, NULL: those of the OpenMP that heed uses too */
    bool found;
    bool products;   /* nothing but products */
    bool python;     /* path is that of the interpreter */
    bool only_named; /* it is no fair peer: only where it was asked for by name */
};

/* NULL past the last one; the first one is heed. */
struct library *library_at(size_t index);
#define N_LIBRARIES_MOST 16

extern struct library library_heed, library_unfused, library_build, library_openblas, library_blis, library_mkl,
    library_onednn, library_xnnpack, library_torch, library_onnxruntime;

/* Opens a shared library: path, or the first of the names, by dlopen with these flags, too. file is set to what was
 * opened. */
void *library_dlopen(const char *path, const char *const *names, int flags, const char **file,
                     char about[LIBRARY_ABOUT]);

/* The same of one that has an interface, which look_up tells and fills in. */
bool library_load(const char *path, const char *const *names, bool (*look_up)(void *handle), const char *interface,
                  const char **file, char about[LIBRARY_ABOUT]);

/* A function's address; ISO C does not convert the void * of dlsym. false if there is none. */
bool library_symbol(void *handle, const char *name, void *function, size_t size);
#define LIBRARY_SYMBOL(handle, name, function) library_symbol(handle, name, &(function), sizeof(function))
/* Whether the library's OpenMP is the one that heed and the limits use, so that both have one pool of threads. */
bool library_shares_openmp(void *handle);

#endif
