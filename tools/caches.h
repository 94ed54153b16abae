/* SPDX-License-Identifier: MIT
 * The sizes of the caches, as the system says them. */
#ifndef TOOLS_CACHES_H
#define TOOLS_CACHES_H

#include <stddef.h>

/* Bytes of the cache of a level from 1 to 3, of level 1 that of data; 0 where the system does not say. */
size_t cache_bytes(unsigned level);

#endif
