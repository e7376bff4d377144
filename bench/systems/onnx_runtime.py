"""ONNX Runtime: MultiHeadAttention, GroupQueryAttention, Attention, and its fused graphs.

Attentions of the contrib operators take [B, N, H*E]: they get their inputs in that layout, and nothing is counted for it.
"""
import numpy as np
import onnxruntime as ort

import cases
from systems.onnx_models import CELLS, MICROSOFT, Graph, cell, encoder, gelu


class System:
    name = "onnxruntime"

    def __init__(self, threads):
        self.options = ort.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.options.log_severity_level = 4
        self.options.add_session_config_entry("session.set_denormal_as_zero", "1")

    def version(self):
        return ort.__version__

    def variants(self, case, inputs, weights):
        make = getattr(self, case["kind"], None)
        return make(case["params"], inputs, weights) if make else {}

    def session(self, model, inputs, result=lambda y, *_: y, share=()):
        """`share`: outputs that are written where an input lies (caches)."""
        session = ort.InferenceSession(model, self.options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        values = {name: ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(a)) for name, a in inputs.items()}
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        shared = dict(share)
        for output in session.get_outputs():
            if output.name in shared:
                binding.bind_ortvalue_output(output.name, values[shared[output.name]])
            else:
                binding.bind_output(output.name)
        session.run_with_iobinding(binding)
        for k, output in enumerate(session.get_outputs()):  # from now on into the same memory
            if output.name not in shared:
                binding.bind_ortvalue_output(output.name, binding.get_outputs()[k])

        def run():
            session.run_with_iobinding(binding)

        run.keep = values
        return run, lambda: result(*(y.numpy() for y in binding.get_outputs()))

    def attention(self, p, inputs, weights):
        if "relative" in p or p["N"] * p["M"] * p["H"] * p["B"] > 1 << 30:  # it would store all scores
            return {}
        if p["N"] == 1 and p["M"] > 1:  # it sees all keys
            return self.decode(p, inputs)
        found = {}
        plain = p["mask"] in ("full", "causal") and "cap" not in p and p["G"] == p["H"]
        if plain:
            found["MultiHeadAttention"] = lambda: self.multi_head(p, inputs)
        if p["mask"] in ("causal", "window") and "alibi" not in p:
            found["GroupQueryAttention"] = lambda: self.grouped(p, inputs)
        if "cap" not in p:
            found["Attention"] = lambda: self.standard(p, inputs)
        return found

    def decode(self, p, inputs):
        """Grouped view: the query heads of one key head are queries of one head, so that each key is read once."""
        rows = p["H"] // p["G"]
        one = {**inputs, "q": inputs["q"].reshape(p["B"], p["H"], 1, p["E"])}
        view = {**inputs, "q": inputs["q"].reshape(p["B"], p["G"], rows, p["E"])}
        grouped = {**p, "H": p["G"], "N": rows, "mask": "decode"}
        found = {"Attention, grouped view": lambda: self.standard(grouped, view),
                 "MultiHeadAttention, grouped view": lambda: self.multi_head(grouped, view),
                 "formula": lambda: self.formula(p, view),
                 "GroupQueryAttention": lambda: self.grouped_decode(p, inputs)}
        if rows > 1:
            found["Attention"] = lambda: self.standard({**p, "mask": "decode"}, one)
        return found

    def formula(self, p, inputs):
        """Its products and softmax, with the keys transposed beforehand."""
        g = Graph(21)
        arrays = {"q": inputs["q"], "kt": inputs["k"].swapaxes(-1, -2), "v": inputs["v"]}
        q, k, v = (g.input(x, a) for x, a in arrays.items())
        s = g.op("MatMul", g.op("Mul", q, g.constant(np.float32(p["E"]**-0.5))), k)
        return self.session(g.bytes(g.op("MatMul", g.op("Softmax", s, axis=-1), v)), arrays)

    def multi_head(self, p, inputs):
        """Packed for its own layout; the result is transposed only to be compared."""
        g = Graph()
        arrays = {x: flat(inputs[x]) for x in "qkv"}
        names = [g.input(x, a) for x, a in arrays.items()]
        y = g.op("MultiHeadAttention", *names, domain=MICROSOFT, num_heads=p["H"], unidirectional=int(p["mask"] == "causal"))
        return self.session(g.bytes(y), arrays, lambda y: heads(y, p))

    def grouped(self, p, inputs):
        g = Graph()
        arrays = {x: flat(inputs[x]) for x in "qkv"}
        names = [g.input(x, a) for x, a in arrays.items()]
        arrays["last"] = np.full(p["B"], p["M"] - 1, np.int32)
        lengths = [g.input("last", arrays["last"]), g.constant(np.array(p["M"], np.int32))]
        y, *_ = g.op("GroupQueryAttention", *names, "", "", *lengths, outputs=3, domain=MICROSOFT, num_heads=p["H"],
                     kv_num_heads=p["G"], local_window_size=p.get("window", -1))
        return self.session(g.bytes(y), arrays, lambda y: heads(y, p))

    def grouped_decode(self, p, inputs):
        """The last key is the new one; the cache is extended in place."""
        g = Graph()
        arrays = {"q": inputs["q"].reshape(p["B"], 1, -1), "k": flat(inputs["k"][:, :, -1:]), "v": flat(inputs["v"][:, :, -1:]),
                  "pk": inputs["k"], "pv": inputs["v"], "last": np.full(p["B"], p["M"] - 1, np.int32)}
        names = [g.input(x, a) for x, a in arrays.items()]
        y = g.op("GroupQueryAttention", *names, g.constant(np.array(p["M"], np.int32)), outputs=3, domain=MICROSOFT,
                 num_heads=p["H"], kv_num_heads=p["G"])
        return self.session(g.bytes(*y), arrays, share=(("result1", "pk"), ("result2", "pv")))

    def standard(self, p, inputs):
        g = Graph()
        arrays = {x: inputs[x] for x in "qkv"}
        names = [g.input(x, a) for x, a in arrays.items()]
        if p["mask"] not in ("full", "causal", "decode"):
            arrays["mask"] = cases.live(p)
            names.append(g.input("mask", arrays["mask"]))
        y = g.op("Attention", *names, is_causal=int(p["mask"] == "causal"))
        return self.session(g.bytes(y), arrays)

    def gemm(self, p, inputs, weights):
        def make():
            g = Graph(21)
            x = g.input("x", inputs["x"])
            y = g.op("MatMul", x, g.constant(weights["weight"].T))
            if "bias" in weights:
                y = g.op("Add", y, g.constant(weights["bias"]))
            if p["epilogue"].startswith("bias_gelu"):
                y = gelu(g, y, "tanh" if p["epilogue"].endswith("tanh") else "none")
            elif p["epilogue"] == "bias_residual":
                y = g.op("Add", y, g.input("r", inputs["r"]))
            elif p["epilogue"] == "swiglu":
                a = g.op("MatMul", x, g.constant(weights["gate"].T))
                y = g.op("Mul", g.op("Mul", a, g.op("Sigmoid", a)), y)
            return self.session(g.bytes(y), inputs)

        return {"MatMul": make}

    def single(self, kind, build, inputs):
        def make():
            g = Graph(21)
            return self.session(g.bytes(build(g, {name: g.input(name, a) for name, a in inputs.items()})), inputs)

        return {kind: make}

    def layer_norm(self, p, inputs, weights):
        return self.single("LayerNormalization", lambda g, x: g.op(
            "LayerNormalization", x["x"], g.constant(weights["norm.weight"]), g.constant(weights["norm.bias"]), epsilon=p["eps"]), inputs)

    def rms_norm(self, p, inputs, weights):
        return self.single("SimplifiedLayerNormalization", lambda g, x: g.op(
            "SimplifiedLayerNormalization", x["x"], g.constant(weights["norm.weight"]), epsilon=p["eps"], axis=-1), inputs)

    def softmax(self, p, inputs, weights):
        return self.single("Softmax", lambda g, x: g.op("Softmax", x["x"], axis=-1), inputs)

    def rotary(self, p, inputs, weights):
        positions = np.arange(inputs["x"].shape[2], dtype=np.int64)[None].repeat(inputs["x"].shape[0], 0)
        return self.single("RotaryEmbedding", lambda g, x: g.op(
            "RotaryEmbedding", x["x"], g.constant(positions), x["c"], x["s"], domain=MICROSOFT), inputs)

    def chain(self, p, inputs, weights):
        def build(g, x):
            a = g.op("Add", g.op("Mul", g.op("Mul", x["x"], g.op("Sigmoid", x["x"])), x["y"]), x["z"])
            return g.op("Add", g.op("Mul", g.op("Relu", a), g.constant(np.float32(0.5))), g.op("Tanh", x["z"]))

        return self.single("elementwise", build, inputs)

    def linear(self, p, inputs, weights):
        def build(g, x):
            one = g.constant(np.float32(1))
            q, k = (g.op("Add", g.op("Elu", x[name]), one) for name in "qk")
            state = g.op("MatMul", g.op("Transpose", k, perm=[0, 1, 3, 2]), x["v"])
            total = g.op("Transpose", g.op("ReduceSum", k, g.constant(np.array([2], np.int64)), keepdims=1), perm=[0, 1, 3, 2])
            return g.op("Div", g.op("MatMul", q, state), g.op("MatMul", q, total))

        return self.single("formula", build, inputs)

    def encoder(self, p, inputs, weights):
        ids = {"ids": inputs["ids"]}
        return {kind: lambda kind=kind: self.session(encoder(p, weights, inputs["ids"], kind), ids)
                for kind in ("Attention", "MultiHeadAttention")}

    def zoo(self, p, inputs, weights):
        """What PyTorch's exporter makes of its peer's equations; what that cannot say, or this cannot run, is named. LSTM and GRU are operators."""
        if p["key"] in CELLS:
            return {CELLS[p["key"]][0]: lambda: self.session(*cell(p["key"], inputs, weights))}

        def make():
            import io
            import torch
            module, arguments = zoo_torch.model(p, inputs, weights)
            file = io.BytesIO()
            with torch.no_grad():
                torch.onnx.export(module, tuple(arguments), input_names=list(inputs), dynamo=True, optimize=True).save(file)
            return self.session(file.getvalue(), inputs, (lambda *y: y) if p["all"] else lambda y, *_: y)

        from systems import zoo_torch
        return {"exported": make} if zoo_torch.ways(p["key"])[0] else {}


def flat(a):
    """[B, H, N, E] to [B, N, H*E]."""
    b, h, n, e = a.shape
    return np.ascontiguousarray(a.transpose(0, 2, 1, 3)).reshape(b, n, h * e)


def heads(y, p):
    return y.reshape(p["B"], p["N"], p["H"], -1).transpose(0, 2, 1, 3)
