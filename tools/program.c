/* SPDX-License-Identifier: MIT
 * What every program does first, and how it ends. */
#include "config.h"

#include "diag.h"
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The next file that is opened would get the number of a closed standard descriptor, and what is meant
 * for standard output would go there. /dev/null is opened in its place so that neither reading standard
 * input nor writing standard output is possible: both fail as they do on a closed descriptor. */
static bool hold_standard_descriptors(void)
{
    static const int modes[] = {[STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_WRONLY};
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++) {
        if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", modes[descriptor]) < 0) {
            diag_print("/dev/null: %s", strerror(errno));
            return false;
        }
    }
    return true;
}

bool program_start(const char *name)
{
    diag_set_program(name);
    /* Writing fails in both cases, and that has its message. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    return hold_standard_descriptors();
}

static bool is_value_of(int value, const struct option *options)
{
    for (; options->name; options++)
        if (options->val == value)
            return true;
    return false;
}

void program_refuse_option(int option, char **argv, const struct option *long_options)
{
    /* optind has passed a word that holds one long option, but not one with further letters. */
    const char *word = argv[optind - 1];
    if (option == ':')
        diag_print("%s: needs an argument; see --help", word);
    else if (is_value_of(optopt, long_options))
        diag_print("%s: takes no argument; see --help", word);
    else if (optopt)
        diag_print("-%c: no such option; see --help", optopt);
    else
        diag_print("%s: no such option, or an abbreviation of several; see --help", word);
}

bool program_has_no_arguments(int argc, char **argv)
{
    if (optind < argc)
        diag_print("%s: takes no argument; see --help", argv[optind]);
    return optind == argc;
}

int program_end(int status)
{
    if (status == EXIT_DONE && (fflush(stdout) != 0 || ferror(stdout))) {
        diag_print("standard output: %s", strerror(errno));
        return EXIT_FAILED;
    }
    return status;
}
