"""Cases as ONNX graphs: for ONNX Runtime, with its own operators, and for OpenVINO, in the standard's."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int32): TensorProto.INT32, np.dtype(np.int64): TensorProto.INT64,
         np.dtype(np.bool_): TensorProto.BOOL}
MICROSOFT = "com.microsoft"


class Graph:
    """Grows node by node; every value has a name."""

    def __init__(self, opset=23):
        self.nodes, self.inputs, self.constants, self.opset = [], [], [], opset

    def input(self, name, array):
        self.inputs.append(helper.make_tensor_value_info(name, TYPES[array.dtype], array.shape))
        return name

    def constant(self, array, name=None):
        name = name or f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        names = [f"n{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def bytes(self, *outputs):
        """The serialised model; results are called result0, result1, ..."""
        named = [f"result{k}" for k in range(len(outputs))]
        names = dict(zip(outputs, named))
        for node in self.nodes:
            for values in (node.input, node.output):
                values[:] = [names.get(v, v) for v in values]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in named]
        graph = helper.make_graph(self.nodes, "case", self.inputs, results, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)])
        model.ir_version = 10
        return model.SerializeToString()


def gelu(g, x, approximate="none"):
    return g.op("Gelu", x, approximate=approximate)


def transposed(a):
    """[B, N, ..] to [N, B, ..], or back."""
    return np.ascontiguousarray(a.swapaxes(0, 1))


# Rows of the weights in ONNX's order, and the names of the matrices and of one bias or two.
CELLS = {"lstm": ("LSTM", (0, 3, 1, 2), "layer.0."), "lstm-step": ("LSTM", (0, 3, 1, 2), "layer.0."), "gru": ("GRU", (1, 0, 2), "gru."),
         "gru-behind": ("GRU", (1, 0, 2), "")}


def cell(key, inputs, weights):
    """(model, its inputs, what makes the case's results of its) of a layer in one operator, steps first."""
    kind, order, at = CELLS[key]

    def rows(name):
        parts = np.split(weights[at + name], len(order))
        if key == "gru":  # z is the share of the new: sigmoid(-x) is that of the old
            parts[1] = -parts[1]
        return np.concatenate([parts[k] for k in order])[None]

    g = Graph(21)
    first, second = ("bias_ih", "bias_hh") if key == "gru-behind" else ("bias", None)
    bias = rows(first)
    bias = np.concatenate([bias, rows(second) if second else np.zeros_like(bias)], 1)
    b, e = inputs["x"].shape[0], weights[at + "weight_hh"].shape[1]
    arrays = {"x": transposed(inputs["x"])} | {name: inputs[name].reshape(1, b, e) for name in ("h", "c") if name in inputs}
    names = [g.input(name, a) for name, a in arrays.items()]
    constants = [g.constant(a) for a in (rows("weight_ih"), rows("weight_hh"), bias)]
    more = {"linear_before_reset": int(key == "gru-behind")} if kind == "GRU" else {}
    outputs = g.op(kind, names[0], *constants, "", *names[1:], outputs=3 if kind == "LSTM" else 2, hidden_size=e, **more)
    return g.bytes(*outputs), arrays, lambda y, *last: (transposed(y[:, 0]), *last)


def encoder(p, weights, ids, fused=None):
    """BERT's encoder; `fused`: with ONNX Runtime's operators for norms and biases, and this one for attention."""
    g = Graph(21)
    w = {name.removeprefix("bert."): a for name, a in weights.items()}
    b, n = ids.shape
    eps, d, heads = p["eps"], p["D"], p["H"]

    def norm(x, at, skip=None):
        scale, shift = g.constant(w[at + ".weight"]), g.constant(w[at + ".bias"])
        if fused and skip:
            return g.op("SkipLayerNormalization", x, skip, scale, shift, domain=MICROSOFT, epsilon=eps)
        return g.op("LayerNormalization", g.op("Add", x, skip) if skip else x, scale, shift, epsilon=eps, axis=-1)

    def dense(x, at):
        return g.op("Add", g.op("MatMul", x, g.constant(w[at + ".weight"].T)), g.constant(w[at + ".bias"]))

    table = w["embeddings.position_embeddings.weight"][:n] + w["embeddings.token_type_embeddings.weight"][0]
    x = g.op("Gather", g.constant(w["embeddings.word_embeddings.weight"]), g.input("ids", ids))
    x = norm(g.op("Add", x, g.constant(table)), "embeddings.LayerNorm")
    shape = g.constant(np.array([b, n, heads, d // heads], np.int64))
    back = g.constant(np.array([b, n, d], np.int64))
    for layer in range(p["L"]):
        at = f"encoder.layer.{layer}."
        self_at = at + "attention.self."
        if fused == "MultiHeadAttention":
            parts = [g.op("MatMul", x, g.constant(w[self_at + k + ".weight"].T)) for k in ("query", "key", "value")]
            bias = np.concatenate([w[self_at + k + ".bias"] for k in ("query", "key", "value")])
            a = g.op("MultiHeadAttention", *parts, g.constant(bias), domain=MICROSOFT, num_heads=heads)
        elif fused == "Attention":
            packed = np.concatenate([w[self_at + k + ".weight"].T for k in ("query", "key", "value")], 1)
            bias = np.concatenate([w[self_at + k + ".bias"] for k in ("query", "key", "value")])
            a = g.op("Attention", x, g.constant(packed), g.constant(bias), domain=MICROSOFT, num_heads=heads)
        else:
            q, k, v = (g.op("Transpose", g.op("Reshape", dense(x, self_at + name), shape), perm=order)
                       for name, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])))
            s = g.op("Softmax", g.op("Mul", g.op("MatMul", q, k), g.constant(np.float32((d // heads)**-0.5))), axis=-1)
            a = g.op("Reshape", g.op("Transpose", g.op("MatMul", s, v), perm=[0, 2, 1, 3]), back)
        x = norm(dense(a, at + "attention.output.dense"), at + "attention.output.LayerNorm", x)
        up = at + "intermediate.dense"
        if fused:
            h = g.op("BiasGelu", g.op("MatMul", x, g.constant(w[up + ".weight"].T)), g.constant(w[up + ".bias"]), domain=MICROSOFT)
        else:
            h = gelu(g, dense(x, up))
        x = norm(dense(h, at + "output.dense"), at + "output.LayerNorm", x)
    return g.bytes(x)
