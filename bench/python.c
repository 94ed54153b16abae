/* SPDX-License-Identifier: MIT
 * Python libraries: peers/serve.py computes with one of them in a process of its own, call by call.
 */
#include "config.h"

#include "impl.h"

#include "coprocess.h"
#include "diag.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 256

static struct coprocess torch, onnxruntime;

/* A request and its answer; false after a message. */
static bool ask(const struct library *library, const char *request, char answer[LINE])
{
    struct coprocess *process = library->state;
    if (!coprocess_say(process, "%s", request) || !coprocess_hear(process, answer, LINE)) {
        diag_print("%s: its process has ended", library->name);
        return false;
    }
    if (strncmp(answer, "error ", 6) != 0)
        return true;
    diag_print("%s: %s", library->name, answer + 6);
    return false;
}

/* ---- looking for it ------------------------------------------------------------------------- */

static const char *peers_directory(void)
{
    const char *directory = getenv("HEED_BENCH_PEERS");
    return directory && *directory ? directory : BENCH_PEERS;
}

/* Starts the interpreter at path. */
static bool find(struct library *library, const char *path, char about[LIBRARY_ABOUT])
{
    char script[4096], line[LINE], python[4096], name[32];
    if (!path) {
        snprintf(about, LIBRARY_ABOUT, "needs --python");
        return false;
    }
    snprintf(script, sizeof script, "%s/serve.py", peers_directory());
    snprintf(python, sizeof python, "%s", path);
    snprintf(name, sizeof name, "%s", library->name);
    /* -B: the script's directory may be a source tree. */
    char dont_write[] = "-B", *const argv[] = {python, dont_write, script, name, NULL};
    if (!coprocess_start(library->state, argv)) {
        snprintf(about, LIBRARY_ABOUT, "%s: %s", path, strerror(errno));
        return false;
    }
    bool heard = coprocess_hear(library->state, line, sizeof line);
    if (heard && strncmp(line, "hello ", 6) == 0) {
        snprintf(about, LIBRARY_ABOUT, "%.*s, by calls from Python", LIBRARY_ABOUT - 32, line + 6);
        return true;
    }
    snprintf(about, LIBRARY_ABOUT, "%.*s", LIBRARY_ABOUT - 1, heard ? line : "its process has ended");
    coprocess_end(library->state);
    return false;
}

/* Every problem says how many. */
static void set_threads(const struct library *library, size_t threads)
{
    (void)library;
    (void)threads;
}

static void end(struct library *library)
{
    coprocess_end(library->state);
}

/* ---- problems ------------------------------------------------------------------------------- */

static double sample(void *arg, size_t calls)
{
    const struct impl *impl = arg;
    char request[LINE], answer[LINE];
    snprintf(request, sizeof request, "run %zu", calls);
    if (!ask(impl->library, request, answer))
        return -1.0;
    double seconds = strtod(answer, NULL);
    return seconds > 0.0 ? seconds : 1e-9;
}

static bool call(void *state)
{
    char answer[LINE];
    return ask(state, "run 1", answer);
}

static bool fetch(struct impl *impl)
{
    struct coprocess *process = impl->library->state;
    const struct problem *p = impl->problem;
    char answer[LINE];
    if (!ask(impl->library, "result", answer))
        return false;
    if (strtoull(answer, NULL, 10) == p->out_count &&
        fread(p->out, sizeof *p->out, p->out_count, process->from) == p->out_count)
        return true;
    diag_print("%s: its result is not of the right size", impl->library->name);
    return false;
}

static void close_problem(void *state)
{
    char answer[LINE];
    ask(state, "close", answer);
}

static enum outcome open_problem(const struct library *library, struct impl *impl)
{
    const struct problem *p = impl->problem;
    char request[LINE], answer[LINE];
    snprintf(request, sizeof request, "open %s %s %zu", p->suite->name, p->text, p->threads);
    if (!ask(library, request, answer))
        return OUTCOME_FAILED;
    if (strcmp(answer, "ready") != 0)
        return OUTCOME_UNABLE;
    impl->state = library == &library_torch ? &library_torch : &library_onnxruntime;
    impl->call = call;
    impl->sample = sample;
    impl->fetch = fetch;
    impl->close = close_problem;
    return OUTCOME_READY;
}

struct library library_torch = {.name = "torch",
                                .find = find,
                                .set_threads = set_threads,
                                .open = open_problem,
                                .end = end,
                                .state = &torch,
                                .pool = &torch,
                                .python = true};
struct library library_onnxruntime = {.name = "onnxruntime",
                                      .find = find,
                                      .set_threads = set_threads,
                                      .open = open_problem,
                                      .end = end,
                                      .state = &onnxruntime,
                                      .pool = &onnxruntime,
                                      .python = true};
