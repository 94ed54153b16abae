/* SPDX-License-Identifier: MIT
 * A program that answers requests over pipes.
 */
#include "config.h"

#include "coprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Neither end is kept by programs that are started later. */
static bool make_pipe(int ends[2])
{
    if (pipe(ends) != 0)
        return false;
    for (int i = 0; i < 2; i++)
        if (fcntl(ends[i], F_SETFD, FD_CLOEXEC) != 0)
            return false;
    return true;
}

/* 0, or the number of an error. */
static int spawn(pid_t *id, char *const argv[], int in, int out)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (!error)
        error = posix_spawnp(id, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

bool coprocess_start(struct coprocess *process, char *const argv[])
{
    int requests[2] = {-1, -1}, answers[2] = {-1, -1};
    pid_t id = 0;
    *process = (struct coprocess){0};
    int error = make_pipe(requests) && make_pipe(answers) ? spawn(&id, argv, requests[0], answers[1]) : errno;
    close(requests[0]);
    close(answers[1]);
    if (error) {
        close(requests[1]);
        close(answers[0]);
        errno = error;
        return false;
    }
    process->id = (long)id;
    process->to = fdopen(requests[1], "w");
    process->from = fdopen(answers[0], "r");
    return process->to && process->from;
}

bool coprocess_hear(struct coprocess *process, char *line, size_t size)
{
    if (!fgets(line, (int)size, process->from))
        return false;
    size_t length = strcspn(line, "\n");
    bool whole = line[length] == '\n';
    line[length] = '\0';
    return whole;
}

bool coprocess_say(struct coprocess *process, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(process->to, format, arguments);
    va_end(arguments);
    putc('\n', process->to);
    return fflush(process->to) == 0;
}

void coprocess_end(struct coprocess *process)
{
    if (process->to)
        fclose(process->to);
    if (process->from)
        fclose(process->from);
    if (process->id > 0)
        while (waitpid((pid_t)process->id, NULL, 0) < 0 && errno == EINTR) {
        }
    *process = (struct coprocess){0};
}
