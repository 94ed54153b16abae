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
    epilogue: str = ""  # of a linear layer
    causal: bool = False
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
        sizes, _, suffix = self.shape.partition("+")
        self.causal = suffix == "causal"
        batch, heads, *rest = sizes.split("x")
        self.batch = int(batch)
        self.heads, self.kv_heads = (int(h) for h in (heads.split("/") * 2)[:2])
        self.m, self.n, self.k = map(int, rest)

    def _parse_product(self):
        sizes, _, self.epilogue = self.shape.partition("+")
        self.m, self.n, self.k = map(int, sizes.split("x"))

    def counts(self):
        """Floats of each operand."""
        if self.suite == "rows":
            size = self.m * self.n
            more = {"layernorm": [self.n, self.n], "rmsnorm": [self.n], "swiglu": [size]}
            return [size] + more.get(self.function, [])
        if self.suite in ("attention", "decode"):
            keys = self.batch * self.kv_heads * self.n * self.k
            return [self.batch * self.heads * self.m * self.k, keys, keys]
        return [self.m * self.k, self.k * self.n] + ([self.n] if self.epilogue else [])

    def query_shape(self):
        """Of operand 0 and of the result of attention."""
        return (self.batch, self.m, self.heads, self.k)

    def key_shape(self):
        """Of operands 1 and 2 of attention."""
        if self.suite == "decode":
            return (self.batch, self.kv_heads, self.n, self.k)
        return (self.batch, self.n, self.kv_heads, self.k)

    def scale(self):
        """Of the scores of attention."""
        return 1.0 / math.sqrt(self.k)
