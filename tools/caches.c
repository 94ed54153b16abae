/* SPDX-License-Identifier: MIT
 * The sizes of the caches, as the system says them. */
#include "config.h"

#include "caches.h"

#include <stdio.h>
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

static long bytes_from_sysfs(unsigned level)
{
    /* The cache of instructions comes between. */
    unsigned index = level == 1 ? 0 : level;
    char path[80];
    long kib = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/size", index);
    FILE *stream = fopen(path, "r");
    if (!stream)
        return 0;
    if (fscanf(stream, "%ldK", &kib) != 1)
        kib = 0;
    fclose(stream);
    return kib * 1024;
}

/* The kernel knows which CPUs share a cache; sysconf may add up those of the whole socket. */
size_t cache_bytes(unsigned level)
{
    long bytes = bytes_from_sysfs(level);
    if (bytes <= 0)
        bytes = bytes_from_sysconf(level);
    return bytes > 0 ? (size_t)bytes : 0;
}
