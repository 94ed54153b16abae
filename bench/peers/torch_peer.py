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


def onednn_linear(p, x, weight, bias):
    """Weights in oneDNN's layout, the activation fused."""
    packed = torch.ops.mkldnn._reorder_linear_weight(weight.to_mkldnn(), p.m)
    activation, algorithm = FUSED[p.epilogue]
    return lambda: torch.ops.mkldnn._linear_pointwise(x, packed, bias, activation, [], algorithm)


def mkl_linear(p, x, weight, bias):
    """Weights in MKL's layout."""
    packed = torch.ops.mkl._mkl_reorder_linear_weight(weight.to_mkldnn(), p.m)
    activation = ACTIVATIONS.get(p.epilogue, lambda y: y)
    return lambda: activation(torch.ops.mkl._mkl_linear(x, packed, weight, bias, p.m))


def plain_linear(p, x, weight, bias):
    activation = ACTIVATIONS.get(p.epilogue, lambda y: y)
    return lambda: activation(functional.linear(x, weight, bias))


def linear(p):
    x, weight = tensor(p, 0, p.m, p.k), tensor(p, 1, p.k, p.n).t().contiguous()
    bias = tensor(p, 2, p.n) if p.epilogue else None
    calls = []
    for make in (plain_linear, onednn_linear, mkl_linear):
        try:
            call = make(p, x, weight, bias)
            call()
        except (AttributeError, RuntimeError):  # this build has not that form
            continue
        calls.append(call)
    return Task(fastest(calls))


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


SUITES = {
    "matmul": matmul,
    "linear": linear,
    "gemv": linear,
    "rows": rows,
    "attention": attention,
    "decode": attention,
}


def prepare(problem):
    """A task, or None where PyTorch has no such operator."""
    torch.set_num_threads(problem.threads)
    try:
        return SUITES[problem.suite](problem)
    except Blind:
        return None
