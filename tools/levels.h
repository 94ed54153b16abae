/* SPDX-License-Identifier: MIT
 * Why an instruction-set level cannot be used. */
#ifndef TOOLS_LEVELS_H
#define TOOLS_LEVELS_H

#include <stdbool.h>

/* Whether the named level, or the default one if name is NULL, can be used; says why if not. */
bool level_check(const char *name);

#endif
