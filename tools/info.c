/* SPDX-License-Identifier: MIT
 * heed-info: what this build of heed is, and what it uses on this machine. */
#include "config.h"

#include "caches.h"
#include "json_write.h"
#include "levels.h"
#include "program.h"

#include <heed.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No option has a letter, except those that every program has. */
enum { OPTION_JSON = 256 };

static const char help[] = "usage: heed-info [--json]\n"
                           "Prints the version, the build, the instruction set that heed uses and why not another,\n"
                           "the threads and the caches.\n"
                           "\n"
                           "  --json             print one JSON object\n"
                           "  --help, --version\n"
                           "\n"
                           "example: HEED_ISA=avx2 heed-info\n";

/* ---- caches -------------------------------------------------------------------------------- */

static const struct {
    const char *name, *key;
    unsigned level;
} caches[] = {{"L1 data cache", "l1d", 1}, {"L2 cache", "l2", 2}, {"L3 cache", "l3", 3}};
#define N_CACHES (sizeof caches / sizeof *caches)

/* ---- the page ------------------------------------------------------------------------------ */

/* Why a level is not the chosen one. */
static const char *state_of(const heed_level_info *info, const char *chosen)
{
    if (info->reason)
        return info->reason;
    if (strcmp(info->name, chosen) == 0)
        return "chosen";
    const char *named = getenv("HEED_ISA");
    return named && *named ? "usable, but HEED_ISA names another" : "usable, but not the best";
}

static void print_levels(const char *chosen)
{
    heed_level_info info;
    for (size_t i = 0; heed_level_query(i, &info) == HEED_OK; i++)
        printf("  %-12s %-8s %s\n", info.name, info.fused ? "fused" : "unfused", state_of(&info, chosen));
}

static void print_page(const char *chosen)
{
    printf("heed %s\n", heed_version());
    printf("compiler: %s\n", HEED_BUILD_COMPILER);
    printf("flags: %s\n", HEED_BUILD_CFLAGS);
    printf("OpenMP: %s\n", heed_has_openmp() ? "yes" : "no");
    printf("threads: %zu (CPUs online %ld; affinity and cgroup quota count)\n", heed_default_threads(),
           sysconf(_SC_NPROCESSORS_ONLN));
    printf("level: %s\n", chosen);
    print_levels(chosen);
    for (size_t i = 0; i < N_CACHES; i++) {
        size_t bytes = cache_bytes(caches[i].level);
        if (bytes)
            printf("%s: %zu KiB\n", caches[i].name, bytes / 1024);
        else
            printf("%s: unknown\n", caches[i].name);
    }
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void print_json_string(const char *name, const char *value, const char *end)
{
    printf("\"%s\":", name);
    if (value)
        json_write_string(stdout, value, strlen(value));
    else
        printf("null");
    printf("%s", end);
}

static const char *json_bool(bool value)
{
    return value ? "true" : "false";
}

static void print_json_levels(void)
{
    heed_level_info info;
    printf("\"levels\":[");
    for (size_t i = 0; heed_level_query(i, &info) == HEED_OK; i++) {
        printf("%s{", i ? "," : "");
        print_json_string("name", info.name, ",");
        printf("\"built\":%s,\"supported\":%s,", json_bool(info.built), json_bool(info.supported));
        printf("\"fused\":%s,", json_bool(info.fused));
        print_json_string("reason", info.reason, "}");
    }
    printf("],");
}

static void print_json(const char *chosen)
{
    putchar('{');
    print_json_string("version", heed_version(), ",");
    print_json_string("compiler", HEED_BUILD_COMPILER, ",");
    print_json_string("flags", HEED_BUILD_CFLAGS, ",");
    printf("\"openmp\":%s,\"threads\":%zu,", json_bool(heed_has_openmp()), heed_default_threads());
    print_json_string("level", chosen, ",");
    print_json_levels();
    printf("\"cache_kib\":{");
    for (size_t i = 0; i < N_CACHES; i++) {
        size_t bytes = cache_bytes(caches[i].level);
        printf("%s\"%s\":", i ? "," : "", caches[i].key);
        if (bytes)
            printf("%zu", bytes / 1024);
        else
            printf("null");
    }
    printf("}}\n");
}

/* ---- main ---------------------------------------------------------------------------------- */

static int print_info(bool json)
{
    const char *chosen = "";
    if (!level_check(NULL))
        return EXIT_FAILED;
    heed_level_default(&chosen);
    if (json)
        print_json(chosen);
    else
        print_page(chosen);
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, OPTION_JSON},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'V'},
                                            {NULL, 0, NULL, 0}};
    bool json = false;
    int option;
    while ((option = getopt_long(argc, argv, ":hV", options, NULL)) != -1) {
        switch (option) {
        case OPTION_JSON:
            json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return EXIT_DONE;
        case 'V':
            puts("heed-info " PACKAGE_VERSION);
            return EXIT_DONE;
        default:
            program_refuse_option(option, argv, options);
            return EXIT_USAGE;
        }
    }
    if (!program_has_no_arguments(argc, argv))
        return EXIT_USAGE;
    return print_info(json);
}

int main(int argc, char **argv)
{
    if (!program_start("heed-info"))
        return EXIT_FAILED;
    return program_end(run(argc, argv));
}
