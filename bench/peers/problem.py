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
    model: str = ""  # of a layer: bert, gpt2 or llama; m tokens, d_model k, d_ff n
    operands: list = field(default_factory=list)

    def __post_init__(self):
        if self.suite == "rows":
            self._parse_rows()
        elif self.suite in ("attention", "decode"):
            self._parse_attention()
        elif self.suite == "layer":
            self._parse_layer()
        else:
            self._parse_product()
        self.operands = [fill(count, seed + 1) for seed, count in enumerate(self.counts())]
        if self.suite == "layer":
            self._cut_layer()

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

    def _parse_layer(self):
        self.model, sizes = self.shape.split(":")
        batch, tokens, d_model, heads, d_ff = sizes.split("x")
        self.batch, self.m, self.k, self.n = int(batch), int(tokens), int(d_model), int(d_ff)
        self.heads, self.kv_heads = (int(h) for h in (heads.split("/") * 2)[:2])
        self.causal = self.model != "bert"

    def matrix_shapes(self):
        """[in][out] of the matrices of a layer, in the order of operand 1."""
        shared = self.kv_heads * self.head_dim()
        shapes = {"query": (self.k, self.k), "key": (self.k, shared), "value": (self.k, shared)}
        shapes |= {"output": (self.k, self.k), "up": (self.k, self.n), "down": (self.n, self.k)}
        return shapes | ({"gate": (self.k, self.n)} if self.model == "llama" else {})

    def vector_sizes(self):
        """Of operand 2 of a layer."""
        if self.model == "llama":
            return {"scale1": self.k, "scale2": self.k}
        biases = {name: shape[1] for name, shape in self.matrix_shapes().items()}
        return biases | {"scale1": self.k, "scale2": self.k, "shift1": self.k, "shift2": self.k}

    def _cut_layer(self):
        """Matrices, scaled to keep variances, and vectors by name."""
        self.matrices, self.vectors, first = {}, {}, 0
        for name, (rows, cols) in self.matrix_shapes().items():
            matrix = self.operands[1][first : first + rows * cols].reshape(rows, cols)
            self.matrices[name] = matrix * np.float32(math.sqrt(3.0 / rows))
            first += rows * cols
        first = 0
        for name, size in self.vector_sizes().items():
            self.vectors[name] = self.operands[2][first : first + size]
            first += size

    def head_dim(self):
        """Of a layer."""
        return self.k // self.heads

    def rotary(self):
        """Cosines and sines [tokens][head_dim / 2] of Llama's positions."""
        half = self.head_dim() // 2
        angles = np.arange(self.m)[:, None] * 10000.0 ** (-np.arange(half) / half)
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

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
        if self.suite == "layer":
            matrices = sum(rows * cols for rows, cols in self.matrix_shapes().values())
            return [self.batch * self.m * self.k, matrices, sum(self.vector_sizes().values())]
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
