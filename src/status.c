/* SPDX-License-Identifier: MIT
 * Version and status strings.
 */
#include "internal.h"

const char *heed_version(void)
{
    return PACKAGE_VERSION;
}

const char *heed_status_string(heed_status status)
{
    switch (status) {
    case HEED_OK:
        return "success";
    case HEED_ERR_NULL:
        return "a pointer is NULL where elements are expected";
    case HEED_ERR_STRIDE:
        return "a stride is smaller than its row, or lets outputs collide";
    case HEED_ERR_OVERFLOW:
        return "sizes do not fit the address space";
    case HEED_ERR_ENUM:
        return "a value is outside its enumeration";
    case HEED_ERR_VALUE:
        return "a number is outside its range";
    case HEED_ERR_OVERLAP:
        return "an output overlaps another operand";
    case HEED_ERR_ALIGNMENT:
        return "a pointer is not aligned to its element";
    case HEED_ERR_SHAPE:
        return "sizes do not fit each other";
    case HEED_ERR_INDEX:
        return "an id is outside its table, or offsets decrease";
    case HEED_ERR_STRUCT:
        return "struct_size is wrong, or a field of a newer version is set";
    case HEED_ERR_FORMAT:
        return "the memory holds no packed weights of this version and byte order";
    case HEED_ERR_WORKSPACE:
        return "too few bytes in the memory given: a workspace, packed weights or a cache";
    case HEED_ERR_MEMORY:
        return "out of memory";
    case HEED_ERR_LEVEL_UNKNOWN:
        return "no level has that name";
    case HEED_ERR_LEVEL_UNSUPPORTED:
        return "the level is not built in, or this CPU cannot run it";
    }
    return "unknown status";
}
