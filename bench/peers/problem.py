# SPDX-License-Identifier: MIT
"""The problems of heed-bench: shapes as text, and the operands that it makes too."""

import math
from dataclasses import dataclass, field

import numpy as np


def fill(count, seed):
    """Uniform in [-1, 1): x = 1664525 x + 1013904223 modulo 2^32, from seed on."""
    powers = np.cumprod(np.full(count, 1664525, dtype=np.uint32), dtype=np.uint32)
    sums = np.cumsum(np.concatenate(([np.uint32(1)], powers[:-1])), dtype=np.uint32)
    state = powers * np.uint32(seed) + sums * np.uint32(1013904223)
    return (state.view(np.int32).astype(np.float32) * np.float32(2.0**-31)).astype(np.float32)


class Blind(Exception):
    """A query sees no key at all: heed gives zeros, others NaN."""


@dataclass
class Problem:
    """One shape of a suite. operands are flat arrays of floats."""

    suite: str
    shape: str
    threads: int
    m: int = 0  # rows, or queries
    n: int = 0  # columns, or keys
    k: int = 0  # depth, or size of a head
    batch: int = 1
    heads: int = 1
    kv_heads: int = 1
    function: str = ""  # of rows
    transposed: tuple = (False, False)  # operands of matmul, as stored
    epilogue: str = ""  # of a linear layer
    causal: bool = False
    window: int = 0  # keys on either side, 0: all
    alibi: bool = False
    tensor: str = ""  # additive or boolean
    operands: list = field(default_factory=list)

    def __post_init__(self):
        if self.suite == "rows":
            self._parse_rows()
        elif self.suite in ("attention", "decode"):
            self._parse_attention()
        else:
            self._parse_product()
        self.operands = [fill(count, seed + 1) for seed, count in enumerate(self.counts())]

    def _parse_rows(self):
        self.function, sizes = self.shape.split(":")
        self.m, self.n = map(int, sizes.split("x"))

    def _parse_attention(self):
        sizes, *masks = self.shape.split("+")
        self.causal, self.alibi = "causal" in masks, "alibi" in masks
        for mask in masks:
            if mask.startswith("window"):
                self.window = int(mask.removeprefix("window"))
            elif mask in ("additive", "boolean"):
                self.tensor = mask
        batch, heads, *rest = sizes.split("x")
        self.batch = int(batch)
        self.heads, self.kv_heads = (int(h) for h in (heads.split("/") * 2)[:2])
        self.m, self.n, self.k = map(int, rest)

    def _parse_product(self):
        sizes, _, extra = self.shape.partition("+")
        self.m, self.n, self.k = map(int, sizes.split("x"))
        if self.suite == "matmul":
            self.transposed = tuple(letter == "t" for letter in extra or "nn")
        else:
            self.epilogue = extra

    def stored_shape(self, operand):
        """Of the operands of a product."""
        shape = [(self.m, self.k), (self.k, self.n)][operand]
        return shape[::-1] if self.transposed[operand] else shape

    def counts(self):
        """Floats of each operand."""
        if self.suite == "rows":
            size = self.m * self.n
            more = {"layernorm": [self.n, self.n], "rmsnorm": [self.n], "swiglu": [size]}
            more |= {"add-layernorm": [self.n, self.n, size], "add-rmsnorm": [self.n, 0, size]}
            return [size] + more.get(self.function, [])
        if self.suite in ("attention", "decode"):
            keys = self.batch * self.kv_heads * self.n * self.k
            masks = [self.m * self.n] if self.tensor else []
            return [self.batch * self.heads * self.m * self.k, keys, keys] + masks
        return [self.m * self.k, self.k * self.n] + ([self.n] if self.epilogue else [])

    def query_shape(self):
        """Of operand 0 and of the result of attention."""
        return (self.batch, self.m, self.heads, self.k)

    def key_shape(self):
        """Of operands 1 and 2 of attention."""
        if self.suite == "decode":
            return (self.batch, self.kv_heads, self.n, self.k)
        return (self.batch, self.n, self.kv_heads, self.k)

    def distance(self):
        """From every query, the last of which is the last token, to every key."""
        return np.arange(self.n)[None, :] - (np.arange(self.m)[:, None] + self.n - self.m)

    def visible(self):
        """Whether a query sees a key; None where all see all."""
        distance = self.distance()
        visible = np.ones((self.m, self.n), dtype=bool)
        if self.causal:
            visible &= distance <= 0
        if self.window:
            visible &= abs(distance) <= self.window
        if self.tensor == "boolean":
            own = distance == np.maximum(distance[:, :1], 0)
            visible &= (self.operands[3].reshape(self.m, self.n) >= -0.5) | own
        return None if visible.all() else visible

    def slopes(self):
        """Of ALiBi: powers for the power of two below, then every other one of twice that many."""
        below = 1 << (self.heads.bit_length() - 1)
        exponents = [8.0 * (i + 1) / below for i in range(below)]
        exponents += [4.0 * (2 * i + 1) / below for i in range(self.heads - below)]
        return np.exp2(-np.array(exponents)).astype(np.float32)

    def bias(self):
        """What is added to scores, for all heads or each; None for nothing."""
        bias = self.operands[3].reshape(1, self.m, self.n) if self.tensor == "additive" else np.float32(0)
        if self.alibi:
            bias = bias + self.slopes()[:, None, None] * self.distance().astype(np.float32)
        return bias if bias.ndim else None

    def mask(self):
        """All masks in one: None, booleans, or floats with -inf; or an error where a query sees nothing."""
        visible, bias = self.visible(), self.bias()
        if visible is not None and not visible.any(axis=1).all():
            raise Blind
        if bias is None:
            return visible if visible is None else visible[None]
        return bias if visible is None else np.where(visible, bias, np.float32(-np.inf))

    def scale(self):
        """Of the scores of attention."""
        return 1.0 / math.sqrt(self.k)
