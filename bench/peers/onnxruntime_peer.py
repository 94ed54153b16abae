# SPDX-License-Identifier: MIT
"""ONNX Runtime: a model of one or two nodes, with weights as constants so that it packs them."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from problem import Blind

VERSION = f"ONNX Runtime {onnxruntime.__version__}"

CONTRIB = "com.microsoft"
ERROR_ONLY = 3


class Graph:
    """A model that grows node by node."""

    def __init__(self):
        self.nodes, self.inputs, self.constants, self.feeds = [], [], [], {}
        self.updated = {}  # output: the input whose memory it shares

    def input(self, name, values):
        kind = TensorProto.INT32 if values.dtype == np.int32 else TensorProto.FLOAT
        self.inputs.append(helper.make_tensor_value_info(name, kind, values.shape))
        self.feeds[name] = values
        return name

    def constant(self, name, values):
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def node(self, kind, inputs, domain="", updated=None, extra=(), **attributes):
        name = f"t{len(self.nodes)}"
        self.updated |= updated or {}
        outputs = [name, *(updated or {}), *extra]
        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return name

    def model(self, shapes):
        results = list(shapes.items()) + [(name, self.feeds[old].shape) for name, old in self.updated.items()]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in results]
        graph = helper.make_graph(self.nodes, "bench", self.inputs, results, self.constants)
        imports = [helper.make_opsetid("", 20), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=9).SerializeToString()


class Task:
    """A session whose operands and result stay where they are."""

    def __init__(self, graph, output, shape, threads, others=None):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = ERROR_ONLY
        self._session = onnxruntime.InferenceSession(
            graph.model({output: shape, **(others or {})}), options, providers=["CPUExecutionProvider"]
        )
        self._binding = self._session.io_binding()
        feeds = {name: onnxruntime.OrtValue.ortvalue_from_numpy(values) for name, values in graph.feeds.items()}
        for name, value in feeds.items():
            self._binding.bind_ortvalue_input(name, value)
        for name, old in graph.updated.items():
            self._binding.bind_ortvalue_output(name, feeds[old])
        for name, size in (others or {}).items():
            other = onnxruntime.OrtValue.ortvalue_from_shape_and_type(size, np.float32)
            self._binding.bind_ortvalue_output(name, other)
        self._out = onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, np.float32)
        self._binding.bind_ortvalue_output(output, self._out)

    def call(self):
        self._session.run_with_iobinding(self._binding)

    def result(self):
        return self._out.numpy().reshape(-1)


def activate(graph, function, x):
    if function == "relu":
        return graph.node("Relu", [x])
    if function == "gelu-erf":
        return graph.node("Gelu", [x])
    if function == "gelu-tanh":
        return graph.node("Gelu", [x], approximate="tanh")
    if function == "silu":
        return graph.node("QuickGelu", [x], CONTRIB, alpha=1.0)
    return x


def product(p):
    graph = Graph()
    a = graph.input("a", p.operands[0].reshape(p.stored_shape(0)))
    b = p.operands[1].reshape(p.stored_shape(1))
    b = graph.input("b", b) if p.suite == "matmul" else graph.constant("b", b)
    if any(p.transposed):
        y = graph.node("Gemm", [a, b], transA=int(p.transposed[0]), transB=int(p.transposed[1]))
    else:
        y = graph.node("MatMul", [a, b])
    if p.epilogue:
        y = graph.node("Add", [y, graph.constant("bias", p.operands[2])])
        y = activate(graph, p.epilogue, y)
    return Task(graph, y, [p.m, p.n], p.threads)


def add_norm(p, graph, x):
    """The norm of a sum, and the sum."""
    inputs = [x, graph.input("residual", p.operands[3].reshape(p.m, p.n)), graph.constant("scale", p.operands[1])]
    kind = "SkipSimplifiedLayerNormalization"
    if p.function == "add-layernorm":
        inputs.append(graph.constant("shift", p.operands[2]))
        kind = "SkipLayerNormalization"
    y = graph.node(kind, inputs, CONTRIB, extra=["", "", "sum"], epsilon=1e-5)
    return Task(graph, y, [p.m, p.n], p.threads, {"sum": [p.m, p.n]})


def rows(p):
    graph = Graph()
    x = graph.input("x", p.operands[0].reshape(p.m, p.n))
    if p.function == "softmax":
        y = graph.node("Softmax", [x], axis=-1)
    elif p.function == "log-softmax":
        y = graph.node("LogSoftmax", [x], axis=-1)
    elif p.function == "layernorm":
        scale, shift = graph.constant("scale", p.operands[1]), graph.constant("shift", p.operands[2])
        y = graph.node("LayerNormalization", [x, scale, shift], axis=-1, epsilon=1e-5)
    elif p.function == "rmsnorm":
        scale = graph.constant("scale", p.operands[1])
        y = graph.node("SimplifiedLayerNormalization", [x, scale], axis=-1, epsilon=1e-5)
    elif p.function in ("add-layernorm", "add-rmsnorm"):
        return add_norm(p, graph, x)
    elif p.function == "swiglu":
        up = graph.input("up", p.operands[1].reshape(p.m, p.n))
        y = graph.node("Mul", [activate(graph, "silu", x), up])
    else:
        y = activate(graph, p.function, x)
    return Task(graph, y, [p.m, p.n], p.threads) if y != x else None


def bias_of(graph, mask):
    """A mask as what is added to scores, or no input."""
    if mask is None:
        return ""
    floats = np.where(mask, np.float32(0), np.float32(-np.inf)) if mask.dtype == bool else mask
    return graph.input("mask", np.ascontiguousarray(floats[None]))


def grouped_attention(p, graph, q, k, v, past=("", ""), updated=None):
    lengths = graph.constant("lengths", np.full(p.batch, p.n - 1, dtype=np.int32))
    total = graph.constant("total", np.array(p.n, dtype=np.int32))
    options = {"num_heads": p.heads, "kv_num_heads": p.kv_heads}
    inputs = [q, k, v, *past, lengths, total]
    if p.window:
        options["local_window_size"] = p.window + 1
    if p.alibi or p.tensor:
        inputs += ["", "", "", bias_of(graph, p.mask())]
    return graph.node("GroupQueryAttention", inputs, CONTRIB, updated, **options)


def grouped_step(p, graph, q):
    """A step of a decoder: the last keys are appended to the others, in the memory that holds them all."""
    new, past = [], []
    for i, name in ((1, "k"), (2, "v")):
        keys = p.operands[i].reshape(p.key_shape())
        last = keys[:, :, p.n - p.m :].transpose(0, 2, 1, 3).reshape(p.batch, p.m, p.kv_heads * p.k)
        new.append(graph.input(name, np.ascontiguousarray(last)))
        past.append(graph.input("past_" + name, keys))
    return grouped_attention(p, graph, q, *new, past, {"present_k": past[0], "present_v": past[1]})


def multi_head_attention(p, graph, q, k, v):
    square = p.shape.endswith("+causal") and p.m == p.n
    mask = "" if square else bias_of(graph, p.mask())
    inputs = [q, k, v] + (["", "", mask] if mask else [])
    return graph.node("MultiHeadAttention", inputs, CONTRIB, num_heads=p.heads, unidirectional=int(square))


def attention(p):
    """MultiHeadAttention; GroupQueryAttention, which is causal only, where heads share keys."""
    grouped, decode = p.heads != p.kv_heads, p.suite == "decode"
    if grouped and decode and p.m > 1 and not (p.causal and p.batch == 1 and p.m <= p.n):
        return None
    if grouped and not decode and not (p.causal and p.m == p.n):
        return None
    graph = Graph()
    q = graph.input("q", p.operands[0].reshape(p.batch, p.m, p.heads * p.k))
    if grouped and decode:
        y = grouped_step(p, graph, q)
    else:
        keys = p.key_shape() if decode else (p.batch, p.n, p.kv_heads * p.k)
        k, v = (graph.input(name, p.operands[i].reshape(keys)) for i, name in ((1, "k"), (2, "v")))
        y = (grouped_attention if grouped else multi_head_attention)(p, graph, q, k, v)
    return Task(graph, y, [p.batch, p.m, p.heads * p.k], p.threads)


def multiply(p, graph, x, *names):
    """By matrices side by side, without their biases."""
    return graph.node("MatMul", [x, graph.constant("+".join(names), np.hstack([p.matrices[name] for name in names]))])


def vector(p, graph, name):
    return graph.constant("vector_" + name, p.vectors[name])


def skip_norm(p, graph, x, residual, number, bias):
    """The norm of x + residual + bias, and that sum."""
    total = f"sum{number}"
    inputs = [x, residual, vector(p, graph, f"scale{number}")]
    if p.model == "llama":
        kind = "SkipSimplifiedLayerNormalization"
    else:
        inputs += [vector(p, graph, f"shift{number}"), vector(p, graph, bias)]
        kind = "SkipLayerNormalization"
    return graph.node(kind, inputs, CONTRIB, extra=["", "", total], epsilon=1e-5), total


def fused_attention(p, graph, x):
    names = ("query", "key", "value")
    weights = graph.constant("attention", np.hstack([p.matrices[name] for name in names]))
    bias = graph.constant("attention_bias", np.concatenate([p.vectors[name] for name in names]))
    return graph.node("Attention", [x, weights, bias], CONTRIB, num_heads=p.heads, unidirectional=int(p.causal))


def rotary_attention(p, graph, x):
    packed = multiply(p, graph, x, "query", "key", "value")
    lengths = graph.constant("lengths", np.full(p.batch, p.m - 1, dtype=np.int32))
    total = graph.constant("total", np.array(p.m, dtype=np.int32))
    tables = [graph.constant(name, table) for name, table in zip(("cosine", "sine"), p.rotary())]
    inputs = [packed, "", "", "", "", lengths, total, *tables]
    heads = {"num_heads": p.heads, "kv_num_heads": p.kv_heads}
    return graph.node("GroupQueryAttention", inputs, CONTRIB, extra=["present_k", "present_v"], do_rotary=1, **heads)


def feed_forward(p, graph, x):
    """Without the last bias."""
    if p.model == "llama":
        gate = graph.node("QuickGelu", [multiply(p, graph, x, "gate")], CONTRIB, alpha=1.0)
        hidden = graph.node("Mul", [gate, multiply(p, graph, x, "up")])
    else:
        kind = "BiasGelu" if p.model == "bert" else "FastGelu"
        hidden = graph.node(kind, [multiply(p, graph, x, "up"), vector(p, graph, "up")], CONTRIB)
    return multiply(p, graph, hidden, "down")


def layer(p):
    """With the operators that ONNX Runtime's own optimizer makes of such layers."""
    if p.model == "llama" and p.head_dim() % 16 != 0:  # of its rotary positions
        return None
    graph = Graph()
    shape = [p.batch, p.m, p.k]
    x = graph.input("x", p.operands[0].reshape(shape))
    if p.model == "bert":
        attended = multiply(p, graph, fused_attention(p, graph, x), "output")
        normal, _ = skip_norm(p, graph, attended, x, 1, "output")
        y, _ = skip_norm(p, graph, feed_forward(p, graph, normal), normal, 2, "down")
        return Task(graph, y, shape, p.threads)
    scale = vector(p, graph, "scale1")
    if p.model == "gpt2":
        inputs = [x, scale, vector(p, graph, "shift1")]
        attended = fused_attention(p, graph, graph.node("LayerNormalization", inputs, axis=-1, epsilon=1e-5))
    else:
        inputs = [x, scale]
        attended = rotary_attention(p, graph, graph.node("SimplifiedLayerNormalization", inputs, axis=-1, epsilon=1e-5))
    normal, total = skip_norm(p, graph, multiply(p, graph, attended, "output"), x, 2, "output")
    y = feed_forward(p, graph, normal)
    if p.model == "gpt2":
        y = graph.node("Add", [y, vector(p, graph, "down")])
    return Task(graph, graph.node("Add", [y, total]), shape, p.threads)


def prepare(problem):
    """A task, or None where ONNX Runtime has no such operator."""
    if problem.suite == "layer":
        return layer(problem)
    if problem.suite == "rows":
        return rows(problem)
    if problem.suite in ("attention", "decode"):
        try:
            return attention(problem)
        except Blind:
            return None
    return product(problem)
