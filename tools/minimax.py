#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Minimax polynomials of arch/kernels/exp.inc, log.inc, tanh.inc and activation.inc, by Lawson's algorithm.

Prints, for each polynomial, its coefficients rounded to float and the weighted error of the rounded
polynomial. Coefficients are rounded one at a time, lowest power first, and the rest fitted again, so
that the later ones make up for the rounding. Lawson's algorithm (iteratively reweighted least
squares) is used because a constrained constant term makes the basis vanish at 0, where Remez
exchange breaks down. It needs numpy and mpmath.
"""
import argparse
import sys

argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
# After the arguments, so that --help needs no packages.
try:
    import numpy as np
    from mpmath import exp, log, mp, mpf, ncdf, pi, sqrt, tanh
except ImportError as error:
    sys.exit(f"minimax.py: {error}; see --help")

mp.prec = 120
GRID = 801


def lawson(target, weight, basis, rounds=3000):
    """Coefficients c minimising max |weight (target - basis c)| over the grid."""
    importance = np.full(len(target), 1.0 / len(target))
    best, best_error = None, np.inf
    for _ in range(rounds):
        root = np.sqrt(importance) * weight
        c, *_ = np.linalg.lstsq(basis * root[:, None], target * root, rcond=None)
        error = np.abs(weight * (target - basis @ c))
        if error.max() < best_error:
            best, best_error = c, error.max()
        importance *= error
        importance /= importance.sum()
    return best


def fit(name, note, f, weight, powers, lo, hi):
    xs = [lo + (hi - lo) * (1 - mp.cos(pi * (i + mpf(1) / 2) / GRID)) / 2 for i in range(GRID)]
    weights = np.array([float(weight(x)) for x in xs])
    rounded = []
    for i, _ in enumerate(powers):
        rest = np.array([float(f(x) - sum(mpf(float(c)) * x**p for c, p in zip(rounded, powers))) for x in xs])
        scale = float(max(abs(x) for x in xs))
        free = powers[i:]
        basis = np.array([[float(x / scale) ** p for p in free] for x in xs])
        c = lawson(rest, weights, basis)
        rounded.append(np.float32(c[0] / scale ** free[0]))
    worst = max(abs(weight(x) * (f(x) - sum(mpf(float(c)) * x**p for c, p in zip(rounded, powers)))) for x in xs)
    print(f"{name}: {note}")
    for c, p in zip(rounded, powers):
        print(f"    x^{p}: {float(c).hex()}  {c!r}")
    print(f"    largest weighted error {mp.nstr(worst, 4)} = 2^{mp.nstr(log(worst, 2), 5)}", flush=True)


half_ln2 = log(2) / 2
fit("exp", "exp(r) = 1 + r + ..., relative error, |r| <= ln(2)/2",
    lambda r: exp(r) - 1 - r, lambda r: exp(-r), [2, 3, 4, 5, 6], -half_ln2, half_ln2)
fit("exp2", "2^t = 1 + ..., relative error, |t| <= 1/2",
    lambda t: mpf(2) ** t - 1, lambda t: mpf(2) ** -t, [1, 2, 3, 4, 5], -mpf(1) / 2, mpf(1) / 2)
fit("power", "2^t = 1 + ..., relative error, |t| <= 1/2",
    lambda t: mpf(2) ** t - 1, lambda t: mpf(2) ** -t, [1, 2, 3, 4, 5, 6], -mpf(1) / 2, mpf(1) / 2)
# Degree 8 keeps the fit's share of the bound below a seventh and, unlike 9, falls beyond the interval,
# where Phi must go on to 0.
fit("gelu erf", "log2(Phi(-x)) = c0 + c1 x + ..., error in Phi, 0 <= x <= 5.5",
    lambda x: log(ncdf(-x), 2), lambda x: ncdf(-x) * log(2), list(range(9)), mpf(0), mpf("5.5"))
fit("reciprocal", "1 / (1 + e) = c0 + c1 e + ..., relative error, 0 <= e <= 1",
    lambda e: 1 / (1 + e), lambda e: 1 + e, list(range(4)), mpf(0), mpf(1))
fit("log", "log(1 + f) = f - f^2/2 + ..., relative error, sqrt(1/2) <= 1 + f <= sqrt(2)",
    lambda f: log(1 + f) - f + f * f / 2, lambda f: 1 / abs(log(1 + f)), list(range(3, 12)), sqrt(mpf(1) / 2) - 1, sqrt(2) - 1)
fit("tanh", "tanh(x) = x + ..., relative error, 0 <= x <= 5/8",
    lambda x: tanh(x) - x, lambda x: 1 / tanh(x), [3, 5, 7, 9, 11], mpf(0), mpf(5) / 8)
argument = 2 * sqrt(2 / pi) / log(2)
print("gelu tanh: 2 sqrt(2/pi) log2(e) =", float(np.float32(float(argument))).hex(), " times 0.044715 =",
      float(np.float32(float(argument * mpf("0.044715")))).hex())
