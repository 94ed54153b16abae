# SPDX-License-Identifier: MIT
"""BERT twice, from the same weights: as an ONNX graph in float32, and in numpy with float64."""
import json
import math
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

OPSET = 17


class Weights:
    """config.json and the tensors of model.safetensors."""

    def __init__(self, directory):
        with open(os.path.join(directory, "config.json"), encoding="utf-8") as file:
            self.config = json.load(file)
        tensors = load_file(os.path.join(directory, "model.safetensors"))
        self.tensors = {name.removeprefix("bert."): tensor.astype(np.float32)
                        for name, tensor in tensors.items() if tensor.dtype.kind == "f"}
        self.hidden = self.config["hidden_size"]
        self.heads = self.config["num_attention_heads"]
        self.layers = self.config["num_hidden_layers"]
        self.eps = self.config["layer_norm_eps"]
        if self.config["hidden_act"] != "gelu":
            raise SystemExit(f"reference: hidden_act {self.config['hidden_act']} is not written here")

    def pair(self, name):
        return self.tensors[name + ".weight"], self.tensors[name + ".bias"]


class Graph:
    """Nodes and constants of an ONNX graph; every method returns the name of its result."""

    def __init__(self):
        self.nodes, self.constants, self.count = [], [], 0

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        output = f"v{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def constant(self, values):
        self.count += 1
        name = f"c{self.count}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def linear(self, x, weight, bias):
        return self.op("Add", self.op("MatMul", x, self.constant(weight.T)), self.constant(bias))

    def norm(self, x, scale, shift, eps):
        return self.op("LayerNormalization", x, self.constant(scale), self.constant(shift), axis=-1, epsilon=eps)

    def gelu(self, x):
        erf = self.op("Erf", self.op("Div", x, self.constant(np.float32(math.sqrt(2.0)))))
        return self.op("Mul", self.op("Mul", x, self.constant(np.float32(0.5))),
                       self.op("Add", erf, self.constant(np.float32(1.0))))


def attention_graph(graph, weights, x, name):
    shape = graph.constant(np.array([0, weights.heads, weights.hidden // weights.heads], dtype=np.int64))

    def heads(part):
        return graph.op("Reshape", graph.linear(x, *weights.pair(f"{name}.self.{part}")), shape)

    query = graph.op("Transpose", heads("query"), perm=[1, 0, 2])
    key = graph.op("Transpose", heads("key"), perm=[1, 2, 0])
    value = graph.op("Transpose", heads("value"), perm=[1, 0, 2])
    scale = graph.constant(np.float32(1.0 / math.sqrt(weights.hidden // weights.heads)))
    attention = graph.op("Softmax", graph.op("Mul", graph.op("MatMul", query, key), scale), axis=-1)
    mixed = graph.op("Transpose", graph.op("MatMul", attention, value), perm=[1, 0, 2])
    joined = graph.op("Reshape", mixed, graph.constant(np.array([0, weights.hidden], dtype=np.int64)))
    return graph.linear(joined, *weights.pair(f"{name}.output.dense"))


def build_graph(weights):
    graph = Graph()
    tensors = weights.tensors
    words = graph.op("Gather", graph.constant(tensors["embeddings.word_embeddings.weight"]), "ids")
    places = graph.op("Gather", graph.constant(tensors["embeddings.position_embeddings.weight"]), "positions")
    types = graph.constant(tensors["embeddings.token_type_embeddings.weight"][0])
    x = graph.op("Add", graph.op("Add", words, types), places)
    x = graph.norm(x, *weights.pair("embeddings.LayerNorm"), weights.eps)
    for layer in range(weights.layers):
        name = f"encoder.layer.{layer}"
        mixed = attention_graph(graph, weights, x, f"{name}.attention")
        x = graph.norm(graph.op("Add", mixed, x), *weights.pair(f"{name}.attention.output.LayerNorm"), weights.eps)
        inner = graph.gelu(graph.linear(x, *weights.pair(f"{name}.intermediate.dense")))
        outer = graph.linear(inner, *weights.pair(f"{name}.output.dense"))
        x = graph.norm(graph.op("Add", outer, x), *weights.pair(f"{name}.output.LayerNorm"), weights.eps)
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["tokens"]) for name in ("ids", "positions")]
    output = helper.make_tensor_value_info(x, TensorProto.FLOAT, ["tokens", weights.hidden])
    model = helper.make_model(helper.make_graph(graph.nodes, "bert", inputs, [output], graph.constants),
                              opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model)
    return model


class OnnxBert:
    """The last hidden states by ONNX Runtime, in float32."""

    def __init__(self, weights):
        model = build_graph(weights)
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])

    def states(self, ids):
        feeds = {"ids": np.array(ids, dtype=np.int64), "positions": np.arange(len(ids), dtype=np.int64)}
        return self.session.run(None, feeds)[0]


class Float64Bert:
    """The last hidden states in float64, written down once more and independently of the graph."""

    erf = staticmethod(np.vectorize(math.erf, otypes=[np.float64]))

    def __init__(self, weights):
        self.weights = weights
        self.tensors = {name: tensor.astype(np.float64) for name, tensor in weights.tensors.items()}

    def linear(self, x, name):
        return x @ self.tensors[name + ".weight"].T + self.tensors[name + ".bias"]

    def norm(self, x, name):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        scale, shift = self.tensors[name + ".weight"], self.tensors[name + ".bias"]
        return centred / np.sqrt(variance + self.weights.eps) * scale + shift

    def attention(self, x, name):
        tokens, heads = len(x), self.weights.heads
        size = self.weights.hidden // heads
        query, key, value = (self.linear(x, f"{name}.self.{part}").reshape(tokens, heads, size).swapaxes(0, 1)
                             for part in ("query", "key", "value"))
        scores = query @ key.swapaxes(1, 2) / math.sqrt(size)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        return self.linear((weights @ value).swapaxes(0, 1).reshape(tokens, -1), f"{name}.output.dense")

    def layer(self, x, name):
        x = self.norm(x + self.attention(x, f"{name}.attention"), f"{name}.attention.output.LayerNorm")
        inner = self.linear(x, f"{name}.intermediate.dense")
        inner = 0.5 * inner * (1.0 + self.erf(inner / math.sqrt(2.0)))
        return self.norm(x + self.linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def states(self, ids):
        table = self.tensors
        x = (table["embeddings.word_embeddings.weight"][ids] + table["embeddings.token_type_embeddings.weight"][0]
             + table["embeddings.position_embeddings.weight"][: len(ids)])
        x = self.norm(x, "embeddings.LayerNorm")
        for layer in range(self.weights.layers):
            x = self.layer(x, f"encoder.layer.{layer}")
        return x


def sentence_embedding(states):
    """Mean over the tokens, then length 1."""
    mean = states.astype(np.float64).mean(axis=0)
    return mean / np.linalg.norm(mean)
