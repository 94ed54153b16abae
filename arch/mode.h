/* SPDX-License-Identifier: MIT
 * How this CPU rounds and what it does with subnormals, which every thread has of its own.
 */
#ifndef HEED_MODE_H
#define HEED_MODE_H

#include <stdint.h>

/* Takes the mode, of another thread perhaps, and returns the one before. */
uint32_t heed_mode_take(uint32_t mode);

uint32_t heed_mode(void);

#endif
