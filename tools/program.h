/* SPDX-License-Identifier: MIT
 * What every program does first, and how it ends. */
#ifndef TOOLS_PROGRAM_H
#define TOOLS_PROGRAM_H

#include <getopt.h>
#include <stdbool.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* To be called before anything is opened: names the program in its messages, lets writes to a closed
 * pipe or past the limit on the size of files fail instead of ending the process, and keeps closed
 * standard descriptors from being reused. false after a message. */
bool program_start(const char *name);

/* Says what is wrong where getopt_long has returned option, '?' or, as the short options begin with a
 * colon, ':'. A value of long_options is the letter of a short option, too, or none. */
void program_refuse_option(int option, char **argv, const struct option *long_options);

/* false after a message, where there is an argument behind the options. */
bool program_has_no_arguments(int argc, char **argv);

/* The status to end with: that one, unless standard output has failed of a program that was done, of which it says so.
 */
int program_end(int status);

#endif
