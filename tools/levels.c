/* SPDX-License-Identifier: MIT
 * Why an instruction-set level cannot be used. */
#include "config.h"

#include "diag.h"
#include "levels.h"

#include <heed.h>
#include <stdlib.h>
#include <string.h>

/* The reason that the library gives for a level, or that it has none of that name. */
static const char *reason_of(const char *name)
{
    heed_level_info info;
    for (size_t i = 0; heed_level_query(i, &info) == HEED_OK; i++)
        if (strcmp(info.name, name) == 0)
            return info.reason;
    return heed_status_string(HEED_ERR_LEVEL_UNKNOWN);
}

static bool check_default(void)
{
    const char *name = "", *requested = getenv("HEED_ISA");
    heed_status status = heed_level_default(&name);
    if (!status)
        return true;
    const char *reason = reason_of(requested ? requested : name);
    diag_print("HEED_ISA=%s: %s", requested ? requested : name, reason ? reason : heed_status_string(status));
    return false;
}

bool level_check(const char *name)
{
    if (!name)
        return check_default();
    const char *reason = reason_of(name);
    if (reason)
        diag_print("--isa %s: %s", name, reason);
    return !reason;
}
