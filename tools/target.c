/* SPDX-License-Identifier: MIT
 * Where output goes: standard output, or a file that appears only when it is complete. */
#include "config.h"

#include "diag.h"
#include "memory.h"
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* SIGBUS comes where a mapped file of weights is cut short meanwhile. */
static const int ending_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGBUS, SIGTERM, SIGXCPU};
#define N_ENDING_SIGNALS (sizeof ending_signals / sizeof *ending_signals)

/* What the signal handler unlinks. It changes only while the signals are blocked. */
static char *volatile unfinished;

static void remove_and_end(int number)
{
    if (unfinished)
        unlink(unfinished);
    /* The default ends the process as the signal would have. SA_RESETHAND would have it do so before this
     * where two threads get a SIGBUS. */
    signal(number, SIG_DFL);
    raise(number);
}

static void block_signals(sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < N_ENDING_SIGNALS; i++)
        sigaddset(&set, ending_signals[i]);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

static void catch_signals(void)
{
    for (size_t i = 0; i < N_ENDING_SIGNALS; i++) {
        struct sigaction action = {0}, before;
        action.sa_handler = remove_and_end;
        /* A signal that was ignored, as under nohup, stays ignored. */
        if (sigaction(ending_signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(ending_signals[i], &action, NULL);
    }
}

static void set_unfinished(char *path)
{
    sigset_t before;
    block_signals(&before);
    unfinished = path;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The mode that fopen would have given, or that the file had which is replaced. */
static mode_t mode_of(const struct stat *replaced)
{
    if (replaced)
        return replaced->st_mode & 0777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* For mkstemp: in the directory of path, and short, since that of the file may be as long as names can be. NULL after a
 * message. */
static char *temporary_name(const char *path)
{
    static const char name[] = "heed.XXXXXX";
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    char *temporary = memory_array(length + sizeof name, 1);
    if (!temporary)
        return NULL;
    memcpy(temporary, path, length);
    memcpy(temporary + length, name, sizeof name);
    return temporary;
}

static bool make_temporary(struct target *target, const struct stat *replaced)
{
    target->temporary = temporary_name(target->path);
    if (!target->temporary)
        return false;
    catch_signals();
    sigset_t before;
    block_signals(&before);
    int descriptor = mkstemp(target->temporary);
    if (descriptor >= 0)
        unfinished = target->temporary;
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (descriptor < 0) {
        diag_print("%s: %s%s", target->name, replaced ? "no file can be made beside it: " : "", strerror(error));
        free(target->temporary);
        target->temporary = NULL;
        return false;
    }
    target->stream = fchmod(descriptor, mode_of(replaced)) == 0 ? fdopen(descriptor, "wb") : NULL;
    if (!target->stream) {
        diag_print("%s: %s", target->name, strerror(errno));
        close(descriptor);
    }
    return target->stream != NULL;
}

static bool open_in_place(struct target *target, const char *path)
{
    target->stream = fopen(path, "wb");
    if (!target->stream)
        diag_print("%s: %s", path, strerror(errno));
    return target->stream != NULL;
}

/* Descriptors that a process may have been given, of which more are not looked for. */
#define MOST_DESCRIPTORS 256

/* The descriptor by which we were given a regular file to write to, under its own name or one such as /dev/stdout or
 * /dev/fd/3: if it were replaced, what else goes there would be lost. -1 if there is none. */
static int given_descriptor(const struct stat *file)
{
    for (int given = STDOUT_FILENO; S_ISREG(file->st_mode) && given < MOST_DESCRIPTORS; given++) {
        struct stat status;
        int flags = fcntl(given, F_GETFL);
        if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && fstat(given, &status) == 0 &&
            status.st_dev == file->st_dev && status.st_ino == file->st_ino)
            return given;
    }
    return -1;
}

static bool write_to_stdout(struct target *target)
{
    target->stream = stdout;
    return true;
}

/* Goes on from where the descriptor stands, as >&3 does. */
static bool open_descriptor(struct target *target, int given)
{
    if (given == STDOUT_FILENO)
        return write_to_stdout(target);
    int descriptor = dup(given);
    target->stream = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
    if (target->stream)
        return true;
    diag_print("%s: %s", target->name, strerror(errno));
    if (descriptor >= 0)
        close(descriptor);
    return false;
}

bool target_open(struct target *target, const char *path)
{
    *target = (struct target){.name = path ? path : "standard output"};
    if (!path)
        return write_to_stdout(target);
    if (*path == '\0') {
        diag_print("the name of the output file is empty");
        return false;
    }
    struct stat status, link;
    bool exists = stat(path, &status) == 0;
    int error = errno;
    if (!exists && lstat(path, &link) == 0) {
        diag_print("%s: is a symbolic link that leads nowhere", path);
        return false;
    }
    /* As where the name is too long, which the temporary one would hide until the end. */
    if (!exists && error != ENOENT) {
        diag_print("%s: %s", path, strerror(error));
        return false;
    }
    int given = exists ? given_descriptor(&status) : -1;
    if (given >= 0)
        return open_descriptor(target, given);
    if (exists && !S_ISREG(status.st_mode))
        return open_in_place(target, path);
    if (exists && access(path, W_OK) != 0) {
        diag_print("%s: %s", path, strerror(errno));
        return false;
    }
    /* The file behind a symbolic link is replaced, not the link. */
    target->path = exists ? realpath(path, NULL) : memory_string(path, strlen(path));
    if (!target->path) {
        if (exists)
            diag_print("%s: %s", path, strerror(errno));
        return false;
    }
    if (make_temporary(target, exists ? &status : NULL))
        return true;
    target_abandon(target);
    return false;
}

static bool failed(const struct target *target)
{
    diag_print("%s: %s", target->name, strerror(errno));
    return false;
}

bool target_check(struct target *target)
{
    if (!ferror(target->stream) && fflush(target->stream) == 0)
        return true;
    return failed(target);
}

bool target_commit(struct target *target)
{
    if (!target_check(target)) {
        target_abandon(target);
        return false;
    }
    FILE *stream = target->stream;
    target->stream = NULL;
    if (fclose(stream) != 0 || (target->temporary && rename(target->temporary, target->path) != 0)) {
        failed(target);
        target_abandon(target);
        return false;
    }
    set_unfinished(NULL);
    free(target->temporary);
    free(target->path);
    *target = (struct target){0};
    return true;
}

void target_abandon(struct target *target)
{
    if (target->stream && target->stream != stdout)
        fclose(target->stream);
    if (target->temporary)
        unlink(target->temporary);
    set_unfinished(NULL);
    free(target->temporary);
    free(target->path);
    *target = (struct target){0};
}
