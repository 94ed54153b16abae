/* SPDX-License-Identifier: MIT
 * How many CPUs this process may use: its affinity mask, cut by the quotas of its control groups.
 */
#include "internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if HAVE_SCHED_GETAFFINITY
#include <sched.h>
#endif

#define PATH_LENGTH 4096

#if HAVE_SCHED_GETAFFINITY && defined(CPU_ALLOC)
/* More than any kernel is built for. */
#define MOST_CPUS 1048576

/* CPUs of the affinity, whose set has room for so many; negative if the kernel's own is larger. */
static long count_cpus(size_t room)
{
    size_t bytes = CPU_ALLOC_SIZE(room);
    cpu_set_t *set = CPU_ALLOC(room);
    if (!set)
        return 0;
    int error = sched_getaffinity(0, bytes, set) == 0 ? 0 : errno;
    long count = error == 0 ? CPU_COUNT_S(bytes, set) : error == EINVAL ? -1 : 0;
    CPU_FREE(set);
    return count;
}

/* The kernel refuses a smaller set than its own, and does not say how large that is. */
static size_t allowed_cpus(void)
{
    long count = -1;
    for (size_t room = CPU_SETSIZE; count < 0 && room <= MOST_CPUS; room *= 2)
        count = count_cpus(room);
    return count > 0 ? (size_t)count : 0;
}
#elif HAVE_SCHED_GETAFFINITY
static size_t allowed_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 0;
}
#else
static size_t allowed_cpus(void)
{
    return 0;
}
#endif

static size_t affinity_cpus(void)
{
    size_t allowed = allowed_cpus();
    if (allowed > 0)
        return allowed;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (size_t)online : 1;
}

/* The first line of a file, without its newline. */
static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool ok = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (ok)
        line[strcspn(line, "\n")] = '\0';
    return ok;
}

/* directory + name, if that fits. */
static bool join(char *path, const char *directory, const char *name)
{
    size_t head = strlen(directory), tail = strlen(name);
    if (head + tail >= PATH_LENGTH)
        return false;
    memcpy(path, directory, head);
    memcpy(path + head, name, tail + 1);
    return true;
}

static size_t quota_cpus(double quota, double period)
{
    if (!(quota > 0.0 && period > 0.0))
        return SIZE_MAX;
    double cpus = quota / period;
    return cpus <= 1.0 ? 1 : (size_t)cpus + ((double)(size_t)cpus < cpus);
}

/* cpu.max of version 2 ("QUOTA PERIOD" or "max PERIOD"), or the two files of version 1. */
static size_t directory_quota(const char *directory)
{
    char path[PATH_LENGTH], quota[64], period[64];
    if (join(path, directory, "/cpu.max") && read_line(path, quota, sizeof quota)) {
        char *rest;
        double q = strtod(quota, &rest);
        return rest == quota ? SIZE_MAX : quota_cpus(q, strtod(rest, NULL));
    }
    if (join(path, directory, "/cpu.cfs_quota_us") && read_line(path, quota, sizeof quota) &&
        join(path, directory, "/cpu.cfs_period_us") && read_line(path, period, sizeof period))
        return quota_cpus(strtod(quota, NULL), strtod(period, NULL));
    return SIZE_MAX;
}

/* The least quota of a group and of all groups above it. */
static size_t tree_quota(const char *mount, const char *group)
{
    char directory[PATH_LENGTH];
    size_t least = SIZE_MAX, root = strlen(mount);
    if (!join(directory, mount, group))
        return least;
    for (;;) {
        size_t quota = directory_quota(directory);
        least = quota < least ? quota : least;
        char *slash = strrchr(directory, '/');
        if (!slash || (size_t)(slash - directory) < root)
            return least;
        *slash = '\0';
    }
}

/* Whether a comma-separated list has the word "cpu"; "cpuset" and "cpuacct" are others. */
static bool names_cpu(const char *controllers)
{
    for (const char *word = controllers; word; word = strchr(word, ',')) {
        word += *word == ',';
        if (strncmp(word, "cpu", 3) == 0 && (word[3] == ',' || word[3] == '\0'))
            return true;
    }
    return false;
}

/* /proc/self/cgroup has lines "ID:CONTROLLERS:GROUP"; version 2 has no controllers there. */
static size_t cgroup_cpus(void)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return SIZE_MAX;
    char line[PATH_LENGTH];
    size_t least = SIZE_MAX;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        size_t quota = SIZE_MAX;
        if (*controllers == '\0')
            quota = tree_quota("/sys/fs/cgroup", group);
        else if (names_cpu(controllers))
            quota = tree_quota("/sys/fs/cgroup/cpu", group);
        least = quota < least ? quota : least;
    }
    fclose(file);
    return least;
}

size_t heed_default_threads(void)
{
    size_t cpus = affinity_cpus(), quota = cgroup_cpus();
    return cpus < quota ? cpus : quota;
}
