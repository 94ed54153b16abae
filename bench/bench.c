/* SPDX-License-Identifier: MIT
 * heed-bench: heed, its peers and the machine's limits, measured side by side.
 */
#include "config.h"

#include "diag.h"
#include "impl.h"
#include "levels.h"
#include "limits.h"
#include "memory.h"
#include "program.h"
#include "suites.h"

#include <errno.h>
#include <getopt.h>
#include <heed.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than CPUs have, and less than OpenMP runtimes crash at. */
#define THREADS_MAX 4096
#define RANDOM_MAX 100000
#define RANDOM_WORST 5

static const char help[] = "usage: heed-bench SUITE [OPTION]...\n"
                           "Measures heed and other libraries as a share of what the machine can do.\n"
                           "\n"
                           "suites, and their shapes:\n"
                           "  peak       the machine's limits: multiply-adds, bytes per second\n"
                           "  matmul     nothing packed beforehand: MxNxK[+FORM], rows, columns, depth\n"
                           "  linear     weights packed beforehand where one can: MxNxK[+EPILOGUE]\n"
                           "  gemv       linear of a single row: 1xNxK[+EPILOGUE]\n"
                           "  rows       softmax, normalisation, activations: FUNCTION:ROWSxCOLUMNS\n"
                           "  attention  beside heed's own unfused form: BxH[/G]xQxKxD[+MASK]...\n"
                           "  decode     few queries, many keys in a cache: BxH[/G]xQxKxD[+MASK]...\n"
                           "  layer      a whole layer of a transformer: MODEL:BxTxMxH[/G]xF\n"
                           "\n"
                           "  FORM       nt, tn or tt: which operand is stored transposed, a first\n"
                           "  EPILOGUE   bias, relu, gelu-erf, gelu-tanh or silu, all with a bias\n"
                           "  FUNCTION   softmax, log-softmax, layernorm, rmsnorm, add-layernorm or\n"
                           "             add-rmsnorm (of a sum, which is kept), relu, gelu-erf, gelu-tanh,\n"
                           "             silu or swiglu\n"
                           "  BxH[/G]xQxKxD  batch, heads, heads of keys, queries, keys, head size\n"
                           "  MASK       causal, windowN (keys on either side), alibi, additive or boolean\n"
                           "             (tensors)\n"
                           "  MODEL      bert, gpt2 or llama; BxTxMxH[/G]xF is batch, tokens, d_model,\n"
                           "             heads, heads of keys (of llama), d_ff\n"
                           "\n"
                           "  --shape SHAPE    instead of the suite's own shapes; may be repeated\n"
                           "  --random N       N random shapes instead, fewer where one comes twice\n"
                           "  --seed S         of the random shapes (default 1)\n"
                           "  --threads LIST   default: 1 and as many as there are CPUs\n"
                           "  --in-turn        the tasks of all threads one after the other: when the last\n"
                           "                   thread would be done if each had a CPU, without what a region\n"
                           "                   costs and what they take from one another. Limits are those\n"
                           "                   of one thread, and heed takes part alone\n"
                           "  --isa LIST       of heed and of the limits, or \"all\" (default: heed's choice)\n"
                           "  --impl LIST      of heed, unfused, build, openblas, blis, mkl, onednn,\n"
                           "                   xnnpack, torch and onnxruntime. Default: all that are\n"
                           "                   installed, others only with heed's default --isa: they choose\n"
                           "                   their own\n"
                           "  --library NAME=PATH  the shared library of build (another build of heed),\n"
                           "                   openblas, blis, mkl, onednn (version 3), xnnpack (of 2022)\n"
                           "  --loop LOOP      of heed's attention and decode: auto (default), heads, rows\n"
                           "                   or keys; heed chooses where the shape or the threads rule it\n"
                           "                   out\n"
                           "  --python PATH    an interpreter that has PyTorch or ONNX Runtime (with onnx\n"
                           "                   and numpy)\n"
                           "  --seconds T      for each shape (default 1), less once medians are steady\n"
                           "  --worst N        lists heed's N worst shapes against the limit and the best of\n"
                           "                   the others (default 0, with --random 5)\n"
                           "  --csv FILE       suite,shape,isa,threads,impl,seconds,rate,unit,limit,percent;\n"
                           "                   FILE appears when it is complete. - is standard output, where\n"
                           "                   rows come one by one, and the table goes to standard error\n"
                           "  -h, --help, -V, --version\n"
                           "\n"
                           "Without --library others are found as the dynamic linker finds them, so\n"
                           "LD_LIBRARY_PATH counts. Where one does not know the CPU, tell it, as in\n"
                           "OPENBLAS_CORETYPE=SkylakeX. HEED_BENCH_PEERS names the folder of serve.py, by\n"
                           "which --python's libraries run, where it is not that of the source tree.\n"
                           "example: heed-bench linear --shape 128x768x768+gelu-erf --csv linear.csv\n";

/* What the command line says; the arrays are the process's. */
struct options {
    struct plan plan;
    const char **shape_texts;
    size_t n_texts, text_capacity;
    struct shape *shapes;
    size_t n_shapes, shape_capacity;
    const char *paths[N_LIBRARIES_MOST];
    size_t *threads;
    size_t n_threads, thread_capacity;
    const char **isas;
    size_t n_isas, isa_capacity;
    size_t random, worst;
    bool worst_said;
    uint64_t seed;
    bool seeded;
    const char *loop; /* its name, if it was said */
    const char *csv;
};

/* ---- numbers and lists ---------------------------------------------------------------------- */

/* Digits up to `end`, which may be any character. */
static bool parse_count(const char *text, const char *end, unsigned long long most, unsigned long long *count)
{
    char *stop;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *count = strtoull(text, &stop, 10);
    return errno == 0 && stop == end && *count <= most;
}

static bool bad(const char *option, const char *value, const char *wanted)
{
    diag_print("%s %s: %s", option, value, wanted);
    return false;
}

/* Calls add for each part of the list between commas. */
static bool parse_list(struct options *o, const char *option, char *list,
                       bool (*add)(struct options *o, const char *option, const char *item))
{
    for (char *item = list, *comma; item; item = comma ? comma + 1 : NULL) {
        comma = strchr(item, ',');
        if (comma)
            *comma = '\0';
        if (!add(o, option, item))
            return false;
    }
    return true;
}

/* ---- options -------------------------------------------------------------------------------- */

/* What is named twice may be written in two ways, and random shapes may come twice. */
static bool append_shape(struct options *o, struct shape shape)
{
    for (size_t i = 0; i < o->n_shapes; i++)
        if (shape_same(&o->shapes[i], &shape))
            return true;
    struct shape *shapes = memory_grow(o->shapes, &o->shape_capacity, o->n_shapes + 1, sizeof *shapes);
    if (!shapes)
        return false;
    o->shapes = shapes;
    shapes[o->n_shapes++] = shape;
    return true;
}

/* What is named twice is measured once. */
static bool is_among(size_t n, const char *const *names, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* What it means depends on the suite, which may come later. */
static bool add_shape_text(struct options *o, const char *text)
{
    if (is_among(o->n_texts, o->shape_texts, text))
        return true;
    const char **texts = memory_grow(o->shape_texts, &o->text_capacity, o->n_texts + 1, sizeof *texts);
    if (!texts)
        return false;
    o->shape_texts = texts;
    texts[o->n_texts++] = text;
    return true;
}

static bool parse_shapes(struct options *o)
{
    for (size_t i = 0; i < o->n_texts; i++) {
        struct shape shape;
        if (!shape_parse(o->plan.suite->kind, o->shape_texts[i], &shape)) {
            diag_print("--shape %s: expected %s, each from 1 to 1000000000", o->shape_texts[i], o->plan.suite->form);
            return false;
        }
        if (!append_shape(o, shape))
            return false;
    }
    return true;
}

static bool add_threads(struct options *o, const char *option, const char *text)
{
    unsigned long long count;
    if (!parse_count(text, text + strlen(text), THREADS_MAX, &count) || count == 0)
        return bad(option, text, "expected numbers from 1 to 4096");
    for (size_t i = 0; i < o->n_threads; i++)
        if (o->threads[i] == count)
            return true;
    size_t *threads = memory_grow(o->threads, &o->thread_capacity, o->n_threads + 1, sizeof *threads);
    if (!threads)
        return false;
    o->threads = threads;
    threads[o->n_threads++] = (size_t)count;
    return true;
}

static bool append_isa(struct options *o, const char *name)
{
    if (is_among(o->n_isas, o->isas, name))
        return true;
    const char **isas = memory_grow(o->isas, &o->isa_capacity, o->n_isas + 1, sizeof *isas);
    if (!isas)
        return false;
    o->isas = isas;
    isas[o->n_isas++] = name;
    return true;
}

static bool add_all_isas(struct options *o)
{
    heed_level_info info;
    for (size_t i = 0; heed_level_query(i, &info) == HEED_OK; i++)
        if (!info.reason && !append_isa(o, info.name))
            return false;
    return true;
}

static bool add_isa(struct options *o, const char *option, const char *name)
{
    (void)option;
    if (strcmp(name, "all") == 0)
        return add_all_isas(o);
    return level_check(name) && append_isa(o, name);
}

static bool is_any(const struct library *library)
{
    (void)library;
    return true;
}

/* heed and its unfused form are what the program is linked with. */
static bool is_opened(const struct library *library)
{
    return library != &library_heed && library != &library_unfused && !library->python;
}

static bool no_library(const char *option, const char *name, bool (*is_one)(const struct library *library))
{
    char names[160] = "";
    for (size_t i = 0; library_at(i); i++)
        if (is_one(library_at(i)))
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "",
                     library_at(i)->name);
    diag_print("%s %s: expected one of %s", option, name, names);
    return false;
}

static bool add_impl(struct options *o, const char *option, const char *name)
{
    for (size_t i = 0; library_at(i); i++)
        if (strcmp(library_at(i)->name, name) == 0) {
            o->plan.impls |= IMPL_HEED << i;
            o->plan.named = true;
            return true;
        }
    return no_library(option, name, is_any);
}

static bool set_library(struct options *o, char *text)
{
    char *equals = strchr(text, '=');
    if (!equals || equals[1] == '\0')
        return bad("--library", text, "expected NAME=PATH");
    *equals = '\0';
    for (size_t i = 0; library_at(i); i++)
        if (is_opened(library_at(i)) && strcmp(library_at(i)->name, text) == 0) {
            o->paths[i] = equals + 1;
            return true;
        }
    return no_library("--library", text, is_opened);
}

static bool set_loop(struct options *o, const char *text)
{
    static const char *const loops[] = {
        [HEED_ATTENTION_LOOP_AUTO] = "auto",
        [HEED_ATTENTION_LOOP_HEADS] = "heads",
        [HEED_ATTENTION_LOOP_ROWS] = "rows",
        [HEED_ATTENTION_LOOP_KEYS] = "keys",
    };
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        if (strcmp(loops[i], text) == 0) {
            o->plan.loop = (heed_attention_loop)i;
            o->loop = loops[i];
            return true;
        }
    return bad("--loop", text, "expected auto, heads, rows or keys");
}

static bool set_python(struct options *o, const char *path)
{
    for (size_t i = 0; library_at(i); i++)
        if (library_at(i)->python)
            o->paths[i] = path;
    return true;
}

static bool set_seconds(struct options *o, const char *text)
{
    char *stop;
    errno = 0;
    double seconds = strtod(text, &stop);
    if (errno || stop == text || *stop || !(seconds > 0.0 && seconds <= 1e6))
        return bad("--seconds", text, "expected a number above 0, at most 1000000");
    o->plan.seconds = seconds;
    return true;
}

static bool set_random(struct options *o, const char *text)
{
    unsigned long long count;
    if (!parse_count(text, text + strlen(text), RANDOM_MAX, &count) || count == 0)
        return bad("--random", text, "expected a number from 1 to 100000");
    o->random = (size_t)count;
    return true;
}

static bool set_worst(struct options *o, const char *text)
{
    unsigned long long count;
    if (!parse_count(text, text + strlen(text), RANDOM_MAX, &count))
        return bad("--worst", text, "expected a number from 0 to 100000");
    o->worst = (size_t)count;
    o->worst_said = true;
    return true;
}

static bool set_seed(struct options *o, const char *text)
{
    unsigned long long seed;
    if (!parse_count(text, text + strlen(text), UINT64_MAX, &seed))
        return bad("--seed", text, "expected a number from 0 to 2^64 - 1");
    o->seed = seed;
    o->seeded = true;
    return true;
}

/* ---- what was not said ----------------------------------------------------------------------- */

static bool add_random_shapes(struct options *o)
{
    for (size_t i = 0; i < o->random; i++)
        if (!append_shape(o, shape_random(o->plan.suite->kind, &o->seed)))
            return false;
    return true;
}

static bool add_default_threads(struct options *o)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", heed_default_threads());
    return add_threads(o, "--threads", "1") &&
           (strcmp(text, "1") == 0 || !heed_has_openmp() || add_threads(o, "--threads", text));
}

static bool complete(struct options *o)
{
    const char *level = "";
    heed_level_default(&level);
    if ((o->n_threads == 0 && !add_default_threads(o)) || (o->n_isas == 0 && !append_isa(o, level)) ||
        !add_random_shapes(o))
        return false;
    if (o->plan.impls == 0)
        o->plan.impls = o->plan.in_turn ? IMPL_OWN : IMPL_ALL;
    o->plan.shapes = o->shapes;
    o->plan.n_shapes = o->n_shapes;
    o->plan.threads = o->threads;
    o->plan.n_threads = o->n_threads;
    o->plan.isas = o->isas;
    o->plan.paths = o->paths;
    o->plan.n_isas = o->n_isas;
    return true;
}

/* ---- the command line ------------------------------------------------------------------------ */

enum {
    OPTION_SHAPE = 256,
    OPTION_RANDOM,
    OPTION_SEED,
    OPTION_THREADS,
    OPTION_IN_TURN,
    OPTION_ISA,
    OPTION_IMPL,
    OPTION_LIBRARY,
    OPTION_LOOP,
    OPTION_PYTHON,
    OPTION_SECONDS,
    OPTION_WORST,
    OPTION_CSV
};

static const struct option long_options[] = {{"shape", required_argument, NULL, OPTION_SHAPE},
                                             {"random", required_argument, NULL, OPTION_RANDOM},
                                             {"seed", required_argument, NULL, OPTION_SEED},
                                             {"threads", required_argument, NULL, OPTION_THREADS},
                                             {"in-turn", no_argument, NULL, OPTION_IN_TURN},
                                             {"isa", required_argument, NULL, OPTION_ISA},
                                             {"impl", required_argument, NULL, OPTION_IMPL},
                                             {"library", required_argument, NULL, OPTION_LIBRARY},
                                             {"loop", required_argument, NULL, OPTION_LOOP},
                                             {"python", required_argument, NULL, OPTION_PYTHON},
                                             {"seconds", required_argument, NULL, OPTION_SECONDS},
                                             {"worst", required_argument, NULL, OPTION_WORST},
                                             {"csv", required_argument, NULL, OPTION_CSV},
                                             {"help", no_argument, NULL, 'h'},
                                             {"version", no_argument, NULL, 'V'},
                                             {NULL, 0, NULL, 0}};

static bool set_option(struct options *o, int option, char *value)
{
    switch (option) {
    case OPTION_SHAPE:
        return add_shape_text(o, value);
    case OPTION_RANDOM:
        return set_random(o, value);
    case OPTION_SEED:
        return set_seed(o, value);
    case OPTION_THREADS:
        return parse_list(o, "--threads", value, add_threads);
    case OPTION_IN_TURN:
        o->plan.in_turn = true;
        return true;
    case OPTION_ISA:
        return parse_list(o, "--isa", value, add_isa);
    case OPTION_IMPL:
        return parse_list(o, "--impl", value, add_impl);
    case OPTION_LIBRARY:
        return set_library(o, value);
    case OPTION_LOOP:
        return set_loop(o, value);
    case OPTION_PYTHON:
        return set_python(o, value);
    case OPTION_SECONDS:
        return set_seconds(o, value);
    case OPTION_WORST:
        return set_worst(o, value);
    default:
        o->csv = value;
        return true;
    }
}

static bool choose_suite(struct options *o, int argc, char **argv)
{
    if (argc == 0) {
        diag_print("no suite; see --help");
        return false;
    }
    if (argc > 1) {
        diag_print("%s: one suite at a time; see --help", argv[1]);
        return false;
    }
    o->plan.suite = suites_named(argv[0]);
    if (!o->plan.suite)
        diag_print("%s: no such suite; see --help", argv[0]);
    return o->plan.suite != NULL;
}

/* Threads that run, or whose tasks take turns. */
static bool check_threads(const struct options *o)
{
    if (o->plan.in_turn && o->plan.suite->kind == SUITE_PEAK) {
        diag_print("peak does not take --in-turn");
        return false;
    }
    if (o->plan.in_turn && o->plan.impls & ~IMPL_OWN) {
        diag_print("--in-turn is for heed and unfused alone");
        return false;
    }
    for (size_t t = 0; t < o->n_threads; t++)
        if (o->threads[t] > 1 && !o->plan.in_turn && !heed_has_openmp()) {
            diag_print("--threads %zu: this build has no OpenMP, so only 1 will do", o->threads[t]);
            return false;
        }
    return true;
}

/* Whether another build's place is known if it is to take part. */
static bool has_named_build(const struct options *o)
{
    size_t i = 0;
    while (library_at(i) != &library_build)
        i++;
    return !(o->plan.named && o->plan.impls & (IMPL_HEED << i)) || o->paths[i];
}

/* Options that do not go together. */
static bool check_together(const struct options *o)
{
    enum suite_kind kind = o->plan.suite->kind;
    if (o->csv && *o->csv == '\0') {
        diag_print("--csv: the name is empty");
        return false;
    }
    if (kind == SUITE_PEAK && (o->n_texts || o->random || o->plan.impls)) {
        diag_print("peak takes neither --shape, --random nor --impl");
        return false;
    }
    if (!has_named_build(o)) {
        diag_print("--impl build needs --library build=PATH");
        return false;
    }
    if (o->n_texts && o->random) {
        diag_print("--shape and --random do not go together");
        return false;
    }
    if (o->seeded && !o->random) {
        diag_print("--seed needs --random");
        return false;
    }
    if (o->loop && kind != SUITE_ATTENTION && kind != SUITE_DECODE) {
        diag_print("--loop is for attention and decode");
        return false;
    }
    return check_threads(o);
}

/* -1: go on. */
static int parse(struct options *o, int argc, char **argv)
{
    int option;
    while ((option = getopt_long(argc, argv, ":hV", long_options, NULL)) != -1) {
        switch (option) {
        case 'h':
            fputs(help, stdout);
            return EXIT_DONE;
        case 'V':
            puts("heed-bench " PACKAGE_VERSION);
            return EXIT_DONE;
        case ':':
        case '?':
            program_refuse_option(option, argv, long_options);
            return EXIT_USAGE;
        default:
            if (!set_option(o, option, optarg))
                return EXIT_USAGE;
        }
    }
    return choose_suite(o, argc - optind, argv + optind) && check_together(o) && parse_shapes(o) ? -1 : EXIT_USAGE;
}

static void announce(const struct options *o)
{
    report_comment("heed %s, %s: %s", heed_version(), o->plan.suite->name, o->plan.suite->description);
    report_comment("caches: L1 %zu KiB, L2 %zu KiB, L3 %zu KiB", limits_cache_bytes(LEVEL_L1) / 1024,
                   limits_cache_bytes(LEVEL_L2) / 1024, limits_cache_bytes(LEVEL_L3) / 1024);
    if (o->plan.in_turn)
        report_comment("tasks in turn on one thread; percent of what one thread can do");
    if (o->plan.loop != HEED_ATTENTION_LOOP_AUTO)
        report_comment("heed's attention loop: %s, where suite, shape and threads allow it", o->loop);
}

static int measure(struct options *o)
{
    struct report report;
    if (!level_check(NULL) || !complete(o) || !report_open(&report, o->csv))
        return EXIT_FAILED;
    announce(o);
    bool done = suites_run(&o->plan, &report);
    if (done) {
        size_t worst = o->worst_said ? o->worst : o->random ? RANDOM_WORST : 0;
        done = report_summary(&report, worst) && report_commit(&report);
    }
    report_free(&report);
    return done ? EXIT_DONE : EXIT_FAILED;
}

int main(int argc, char **argv)
{
    struct options o = {.plan = {.seconds = 1.0}, .seed = 1};
    if (!program_start("heed-bench"))
        return EXIT_FAILED;
    int status = parse(&o, argc, argv);
    if (status == -1)
        status = measure(&o);
    free(o.shape_texts);
    free(o.shapes);
    free(o.threads);
    free(o.isas);
    return program_end(status);
}
