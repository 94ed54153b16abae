# SPDX-License-Identifier: MIT
"""PyTorch: operators with a given result where they have that form, and every packed form of weights."""

import time

import numpy as np
import torch
from torch.nn import functional

from problem import Blind

VERSION = f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"

aten = torch.ops.aten
torch.set_grad_enabled(False)


class Task:
    """call computes once; the result is what it returned last, or out."""

    def __init__(self, call, out=None, arrange=lambda result: result):
        self._result = out
        self._arrange = arrange
        self.call = call if out is not None else self._keep(call)

    def _keep(self, call):
        def keep():
            self._result = call()

        return keep

    def result(self):
        return np.ascontiguousarray(self._arrange(self._result).numpy()).reshape(-1)


def tensor(problem, operand, *shape):
    return torch.from_numpy(problem.operands[operand]).reshape(shape)


def fastest(calls):
    """The one of them that takes least time."""

    def seconds(call):
        call()
        begin, count = time.perf_counter(), 0
        while count < 3 or time.perf_counter() - begin < 0.01:
            call()
            count += 1
        return (time.perf_counter() - begin) / count

    return min(calls, key=seconds)


def matmul(p):
    a, b = (tensor(p, i, *p.stored_shape(i)) for i in range(2))
    a, b = (x.t() if transposed else x for x, transposed in zip((a, b), p.transposed))
    out = torch.empty(p.m, p.n)
    return Task(lambda: torch.mm(a, b, out=out), out)


ACTIVATIONS = {
    "relu": functional.relu,
    "gelu-erf": functional.gelu,
    "gelu-tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
}
FUSED = {"": ("none", ""), "bias": ("none", ""), "relu": ("relu", ""), "silu": ("swish", "")}
FUSED |= {"gelu-erf": ("gelu", "none"), "gelu-tanh": ("gelu", "tanh")}


def onednn_linear(weight, bias, epilogue, rows):
    """Weights in oneDNN's layout, the activation fused."""
    packed = torch.ops.mkldnn._reorder_linear_weight(weight.to_mkldnn(), rows)
    activation, algorithm = FUSED[epilogue]
    return lambda x: torch.ops.mkldnn._linear_pointwise(x, packed, bias, activation, [], algorithm)


def mkl_linear(weight, bias, epilogue, rows):
    """Weights in MKL's layout."""
    packed = torch.ops.mkl._mkl_reorder_linear_weight(weight.to_mkldnn(), rows)
    activation = ACTIVATIONS.get(epilogue, lambda y: y)
    return lambda x: activation(torch.ops.mkl._mkl_linear(x, packed, weight, bias, rows))


def plain_linear(weight, bias, epilogue, _rows):
    activation = ACTIVATIONS.get(epilogue, lambda y: y)
    return lambda x: activation(functional.linear(x, weight, bias))


LINEARS = (plain_linear, onednn_linear, mkl_linear)


def fastest_of(forms, call_with):
    """The fastest call of those forms of a linear layer that this build has."""
    calls = []
    for form in forms:
        try:
            call = call_with(form)
            call()
        except (AttributeError, RuntimeError):
            continue
        calls.append(call)
    return fastest(calls)


def linear(p):
    x, weight = tensor(p, 0, p.m, p.k), tensor(p, 1, p.k, p.n).t().contiguous()
    bias = tensor(p, 2, p.n) if p.epilogue else None

    def call_with(form):
        layer = form(weight, bias, p.epilogue, p.m)
        return lambda: layer(x)

    return Task(fastest_of(LINEARS, call_with))


def swiglu(p, x, out):
    up, gate = tensor(p, 1, p.m, p.n), torch.empty(p.m, p.n)

    def call():
        aten.silu.out(x, out=gate)
        torch.mul(gate, up, out=out)

    return call


def layernorm(p, x, out):
    scale, shift = tensor(p, 1, p.n), tensor(p, 2, p.n)
    mean, deviation = torch.empty(p.m, 1), torch.empty(p.m, 1)
    return lambda: aten.native_layer_norm.out(
        x, [p.n], scale, shift, 1e-5, out0=out, out1=mean, out2=deviation
    )


def rmsnorm(p, x, _out):
    """Has no form that takes its result: each is a new one."""
    scale = tensor(p, 1, p.n)
    return lambda: functional.rms_norm(x, [p.n], scale, 1e-5)


def of_sum(norm):
    """The norm of x and a residual, whose sum is kept."""

    def make(p, x, out):
        residual, total = tensor(p, 3, p.m, p.n), torch.empty(p.m, p.n)
        call = norm(p, total, out)

        def add_and_call():
            torch.add(x, residual, out=total)
            return call()

        return add_and_call

    return make


def rows(p):
    x, out = tensor(p, 0, p.m, p.n), torch.empty(p.m, p.n)
    calls = {
        "softmax": lambda: torch.softmax(x, -1, out=out),
        "log-softmax": lambda: aten._log_softmax.out(x, -1, False, out=out),
        "relu": lambda: aten.clamp_min.out(x, 0, out=out),
        "gelu-erf": lambda: aten.gelu.out(x, approximate="none", out=out),
        "gelu-tanh": lambda: aten.gelu.out(x, approximate="tanh", out=out),
        "silu": lambda: aten.silu.out(x, out=out),
    }
    makers = {"layernorm": layernorm, "rmsnorm": rmsnorm, "swiglu": swiglu}
    makers |= {"add-" + name: of_sum(makers[name]) for name in ("layernorm", "rmsnorm")}
    if p.function in makers:
        return Task(makers[p.function](p, x, out), None if p.function.endswith("rmsnorm") else out)
    return Task(calls[p.function], out) if p.function in calls else None


def attention(p):
    square = p.shape.endswith("+causal") and p.m == p.n
    mask = None if square else p.mask()
    if mask is not None:
        mask = torch.from_numpy(np.ascontiguousarray(mask))[None]
    q = tensor(p, 0, *p.query_shape()).transpose(1, 2)
    k, v = (tensor(p, i, *p.key_shape()) for i in (1, 2))
    if p.suite == "attention":
        k, v = k.transpose(1, 2), v.transpose(1, 2)
    grouped = p.heads != p.kv_heads

    def call():
        return functional.scaled_dot_product_attention(q, k, v, mask, is_causal=square, enable_gqa=grouped)

    return Task(call, arrange=lambda out: out.transpose(1, 2))


class Layer:
    """A whole layer of small operators, its linear layers of one form."""

    def __init__(self, p, form):
        self.p = p
        matrices = {name: np.ascontiguousarray(matrix.T) for name, matrix in p.matrices.items()}
        biases = p.vectors if p.model != "llama" else {}
        join = ("query", "key", "value")
        matrices["attention"] = np.vstack([matrices.pop(name) for name in join])
        if biases:
            biases = biases | {"attention": np.concatenate([biases[name] for name in join])}
        epilogues = {"up": {"bert": "gelu-erf", "gpt2": "gelu-tanh", "llama": ""}[p.model]}
        epilogues |= {"gate": "silu"}
        self.linear = {}
        for name, matrix in matrices.items():
            bias = torch.from_numpy(biases[name]) if biases else None
            rows = p.batch * p.m
            self.linear[name] = form(torch.from_numpy(matrix), bias, epilogues.get(name, ""), rows)
        self.vectors = {name: torch.from_numpy(vector) for name, vector in p.vectors.items()}
        if p.model == "llama":
            self.cosine, self.sine = (torch.from_numpy(np.hstack([t, t])) for t in p.rotary())

    def norm(self, x, number):
        scale = self.vectors[f"scale{number}"]
        if self.p.model == "llama":
            return functional.rms_norm(x, [self.p.k], scale, 1e-5)
        return functional.layer_norm(x, [self.p.k], scale, self.vectors[f"shift{number}"], 1e-5)

    def rotate(self, x):
        """By halves, as transformers' Llama does."""
        low, high = x.chunk(2, -1)
        return x * self.cosine + torch.cat((-high, low), -1) * self.sine

    def attention(self, x):
        p = self.p
        sizes = [heads * p.head_dim() for heads in (p.heads, p.kv_heads, p.kv_heads)]
        parts = self.linear["attention"](x).view(p.batch, p.m, -1).split(sizes, -1)
        q, k, v = (part.unflatten(-1, (-1, p.head_dim())).transpose(1, 2) for part in parts)
        if p.model == "llama":
            q, k = self.rotate(q), self.rotate(k)
        grouped = p.heads != p.kv_heads
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=p.causal, enable_gqa=grouped)
        return self.linear["output"](out.transpose(1, 2).reshape(p.batch * p.m, p.k))

    def feed_forward(self, x):
        up = self.linear["up"](x)
        return self.linear["down"](self.linear["gate"](x) * up if self.p.model == "llama" else up)

    def __call__(self, x):
        if self.p.model == "bert":
            x = self.norm(x + self.attention(x), 1)
            return self.norm(x + self.feed_forward(x), 2)
        x = x + self.attention(self.norm(x, 1))
        return x + self.feed_forward(self.norm(x, 2))


def fused_layer(p):
    """The one operator that TransformerEncoderLayer takes where it may: BERT's layer."""
    weights = {name: torch.from_numpy(np.ascontiguousarray(matrix.T)) for name, matrix in p.matrices.items()}
    vectors = {name: torch.from_numpy(vector) for name, vector in p.vectors.items()}
    join = ("query", "key", "value")
    x = tensor(p, 0, p.batch, p.m, p.k)
    attention = [torch.cat([weights[name] for name in join]), torch.cat([vectors[name] for name in join])]
    attention += [weights["output"], vectors["output"]]
    norms = [vectors[name] for name in ("scale1", "shift1", "scale2", "shift2")]
    ffn = [weights["up"], vectors["up"], weights["down"], vectors["down"]]
    return lambda: torch._transformer_encoder_layer_fwd(
        x, p.k, p.heads, *attention, True, False, 1e-5, *norms, *ffn, None, None
    )


def layer(p):
    """One operator where there is one, or several, whichever takes less time."""
    x = tensor(p, 0, p.batch * p.m, p.k)

    def call_with(form):
        if form is fused_layer:
            return fused_layer(p)
        whole = Layer(p, form)
        return lambda: whole(x)

    return Task(fastest_of(LINEARS + ((fused_layer,) if p.model == "bert" else ()), call_with))


SUITES = {
    "matmul": matmul,
    "linear": linear,
    "gemv": linear,
    "rows": rows,
    "attention": attention,
    "decode": attention,
    "layer": layer,
}


def prepare(problem):
    """A task, or None where PyTorch has no such operator."""
    torch.set_num_threads(problem.threads)
    try:
        return SUITES[problem.suite](problem)
    except Blind:
        return None
