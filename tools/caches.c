/* SPDX-License-Identifier: MIT
 * The sizes of the caches, as the system says them. */
#include "config.h"

#include "caches.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static long bytes_from_sysconf(unsigned level)
{
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    static const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
    return sysconf(names[level - 1]);
#else
    (void)level;
    return 0;
#endif
}

/* What the first CPU's cache number `index` says of itself; false: there is none, or it does not say. */
static bool read_sysfs(unsigned index, const char *name, const char *format, void *value)
{
    char path[80];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/%s", index, name);
    FILE *stream = fopen(path, "r");
    if (!stream)
        return false;
    bool read = fscanf(stream, format, value) == 1;
    fclose(stream);
    return read;
}

/* Of the cache of this level that holds data; those of instructions lie between them, on some CPUs at two levels. */
static long bytes_from_sysfs(unsigned level)
{
    unsigned found;
    char type[16];
    long kib;
    for (unsigned index = 0; read_sysfs(index, "level", "%u", &found); index++)
        if (found == level && read_sysfs(index, "type", "%15s", type) && strcmp(type, "Instruction") != 0 &&
            read_sysfs(index, "size", "%ldK", &kib))
            return kib * 1024;
    return 0;
}

/* The kernel knows which CPUs share a cache; sysconf may add up those of the whole socket. */
size_t cache_bytes(unsigned level)
{
    long bytes = bytes_from_sysfs(level);
    if (bytes <= 0)
        bytes = bytes_from_sysconf(level);
    return bytes > 0 ? (size_t)bytes : 0;
}
