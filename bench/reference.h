/* SPDX-License-Identifier: MIT
 * Some elements of a result, computed in double.
 */
#ifndef BENCH_REFERENCE_H
#define BENCH_REFERENCE_H

#include <stdbool.h>

#include "problem.h"

/* Whether a few dozen elements of out are what float arithmetic in any order makes of them, and not one of fewer bits.
 */
bool reference_agrees(const struct problem *problem);

/* The same of all elements of one token of a layer (reference_layer.c). */
bool reference_layer_agrees(const struct problem *problem);

double reference_silu(double x);
double reference_gelu_erf(double x);
double reference_gelu_tanh(double x);

#endif
