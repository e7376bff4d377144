"""PyTorch: its own kernels (MKL, oneDNN behind them), and what torch.compile makes."""
import math

import numpy as np
import torch
import torch._inductor.config
import torch.nn.functional as F

import cases


def tensors(arrays):
    return {name: torch.from_numpy(a).clone() for name, a in arrays.items()}


def compiled(function, tuned=False):
    """torch.compile with constant shapes; weights are constants that it may pack (oneDNN, MKL). `tuned`: it tries its ways of products."""
    torch._inductor.config.freezing = True
    torch._inductor.config.cpp.enable_kernel_profile = False
    return torch.compile(function, dynamic=False, mode="max-autotune" if tuned else None)


class System:
    name = "pytorch"

    def __init__(self, threads):
        torch.set_flush_denormal(True)  # before its threads begin: they inherit it
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        torch.set_float32_matmul_precision("highest")

    def version(self):
        mkl = "with MKL" if torch.backends.mkl.is_available() else "without MKL"
        onednn = "oneDNN" if torch.backends.mkldnn.is_available() else "no oneDNN"
        return f"{torch.__version__}, {mkl} and {onednn}"

    def variants(self, case, inputs, weights):
        make = getattr(self, case["kind"], None)
        if not make:
            return {}
        torch._dynamo.reset()  # what it compiled for the cases before
        found = make(case["params"], inputs, weights)
        return {name: lambda function=function: self.timed(function()) for name, function in found.items()}

    def timed(self, run):
        kept = {}

        def once():
            kept["y"] = run()

        return once, lambda: tuple(y.numpy() for y in kept["y"]) if isinstance(kept["y"], tuple) else kept["y"].numpy()

    # Each gives name -> function that gives what is timed.

    def attention(self, p, inputs, weights):
        if "relative" in p:
            return self.shaw(p, inputs)
        t = tensors(inputs)
        q, k, v = t["q"], t["k"], t["v"]
        if p["N"] == 1 and p["M"] > 1:  # it sees all keys
            return self.decode(p, q.reshape(p["B"], p["H"], 1, p["E"]), k, v)
        grouped = p["G"] != p["H"]
        found = {}
        if p["mask"] in ("full", "causal") and "cap" not in p:
            causal = p["mask"] == "causal" and p["N"] > 1
            found["sdpa"] = lambda: lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)
        elif "cap" not in p and p["N"] <= 8192:
            mask = torch.from_numpy(cases.live(p))
            found["sdpa, mask"] = lambda: lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        if p["mask"] == "documents":
            found["sdpa per document"] = lambda: self.per_document(p, q, k, v, t["document"])
        if p["mask"] != "full" and p["N"] >= 1024:
            found["FlexAttention"] = lambda: self.flex(p, q, k, v, t)
        return found

    def decode(self, p, q, k, v):
        """The query heads of one key head as queries of one head: each key is read once."""
        group = q.view(p["B"], p["G"], p["H"] // p["G"], p["E"])
        scale = p["E"]**-0.5
        found = {"sdpa, grouped view": lambda: lambda: F.scaled_dot_product_attention(group, k, v),
                 "formula": lambda: lambda: torch.softmax((group * scale) @ k.transpose(-1, -2), -1) @ v}
        if p["G"] != p["H"]:
            found["sdpa"] = lambda: lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return found

    def per_document(self, p, q, k, v, document):
        cuts = [0, *(1 + torch.nonzero(document[1:] != document[:-1])[:, 0]).tolist(), p["N"]]

        def run():
            y = torch.empty_like(q)
            for a, b in zip(cuts, cuts[1:]):
                y[:, :, a:b] = F.scaled_dot_product_attention(q[:, :, a:b], k[:, :, a:b], v[:, :, a:b])
            return y

        return run

    def flex(self, p, q, k, v, t):
        """The block table is made before anything is timed."""
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        score, cap, heads = None, p.get("cap"), p["H"]
        if cap:
            slopes = 2.0**(-8 * (torch.arange(heads) + 1) / heads)

            def score(s, b, h, i, j):
                return cap * torch.tanh(s / cap) - slopes[h] * (i - j)

        window = p.get("window")
        if p["mask"] == "causal":
            def keep(b, h, i, j):
                return j <= i
        elif p["mask"] == "window":
            def keep(b, h, i, j):
                return (j <= i) & (i - j < window)
        elif p["mask"] == "global":
            def keep(b, h, i, j):
                return ((i - j).abs() <= window) | (i < p["globals"]) | (j < p["globals"])
        else:
            document = t["document"]

            def keep(b, h, i, j):
                return document[i] == document[j]
        block = create_block_mask(keep, None, None, p["N"], p["M"], device="cpu")
        run = compiled(flex_attention)
        return lambda: run(q, k, v, score_mod=score, block_mask=block, enable_gqa=p["G"] != p["H"])

    def shaw(self, p, inputs):
        t, r = tensors(inputs), p["relative"]
        n = torch.arange(p["N"])
        rows = (n[None, :] - n[:, None]).clamp(-r, r) + r

        def formula(q, k, v, ak, av):
            terms = torch.gather(q @ ak.T, -1, rows.expand(p["B"], p["H"], -1, -1))
            w = torch.softmax((q @ k.transpose(-1, -2) + terms) / math.sqrt(p["E"]), -1)
            # Weights of one clipped offset belong together.
            sums = torch.zeros(*w.shape[:3], 2 * r + 1).scatter_add_(-1, rows.expand_as(w), w)
            return w @ v + sums @ av

        arguments = [t[x] for x in ("q", "k", "v", "ak", "av")]
        return self.three(formula, *arguments)

    def later(self, function, *arguments):
        return lambda: function(*arguments)

    def gemm(self, p, inputs, weights):
        t, w = tensors(inputs), tensors(weights)
        x, weight, bias = t["x"], w["weight"], w.get("bias")

        def plain(x):
            y = F.linear(x, weight, bias)
            if p["epilogue"].startswith("bias_gelu"):
                return F.gelu(y, approximate="tanh" if p["epilogue"].endswith("tanh") else "none")
            if p["epilogue"] == "bias_residual":
                return y + t["r"]
            return F.silu(F.linear(x, w["gate"])) * y if p["epilogue"] == "swiglu" else y

        return {"eager": lambda: lambda: plain(x), "compiled": lambda: self.compiled_layer(p, x, t, w, False),
                "max-autotune": lambda: self.compiled_layer(p, x, t, w, True)}

    def compiled_layer(self, p, x, t, w, tuned):
        class Layer(torch.nn.Module):

            def __init__(self):
                super().__init__()
                for name, array in w.items():
                    self.register_buffer(name, array)

            def forward(self, x, r=None):
                y = F.linear(x, self.weight, getattr(self, "bias", None))
                if p["epilogue"].startswith("bias_gelu"):
                    return F.gelu(y, approximate="tanh" if p["epilogue"].endswith("tanh") else "none")
                if p["epilogue"] == "bias_residual":
                    return y + r
                return F.silu(F.linear(x, self.gate)) * y if p["epilogue"] == "swiglu" else y

        arguments = (x, t["r"]) if "r" in t else (x,)
        return self.later(compiled(Layer().eval(), tuned), *arguments)

    def both(self, function, *arguments):
        return {"eager": lambda: self.later(function, *arguments), "compiled": lambda: self.later(compiled(function), *arguments)}

    def three(self, function, *arguments):
        """Where there are products to choose ways for."""
        return {**self.both(function, *arguments), "max-autotune": lambda: self.later(compiled(function, tuned=True), *arguments)}

    def layer_norm(self, p, inputs, weights):
        t, w = tensors(inputs), tensors(weights)
        g, b = w["norm.weight"], w["norm.bias"]
        return self.both(lambda x, g, b: F.layer_norm(x, g.shape, g, b, p["eps"]), t["x"], g, b)

    def rms_norm(self, p, inputs, weights):
        t, w = tensors(inputs), tensors(weights)
        return self.both(lambda x, g: F.rms_norm(x, g.shape, g, p["eps"]), t["x"], w["norm.weight"])

    def softmax(self, p, inputs, weights):
        return self.both(lambda x: torch.softmax(x, -1), tensors(inputs)["x"])

    def rotary(self, p, inputs, weights):
        def turn(x, c, s):
            a, b = x.chunk(2, -1)
            return torch.cat((a * c - b * s, b * c + a * s), -1)

        t = tensors(inputs)
        return self.both(turn, t["x"], t["c"], t["s"])

    def chain(self, p, inputs, weights):
        t = tensors(inputs)
        return self.both(lambda x, y, z: torch.relu(F.silu(x) * y + z) * 0.5 + torch.tanh(z), t["x"], t["y"], t["z"])

    def linear(self, p, inputs, weights):
        def formula(q, k, v):
            q, k = F.elu(q) + 1, F.elu(k) + 1
            return (q @ (k.transpose(-1, -2) @ v)) / (q @ k.sum(-2)[..., None])

        t = tensors(inputs)
        return self.three(formula, t["q"], t["k"], t["v"])

    def encoder(self, p, inputs, weights):
        from systems.encoder_torch import Encoder
        model = Encoder(p, tensors(weights)).eval()
        ids = torch.from_numpy(inputs["ids"].astype(np.int64))
        return self.three(model, ids)

    def zoo(self, p, inputs, weights):
        """Without max-autotune: of so many systems it would take longer than all measuring."""
        from systems import zoo_torch
        found, (plain, more) = {}, zoo_torch.ways(p["key"])
        if plain:
            module, arguments = zoo_torch.model(p, inputs, weights)
            found = self.both(module, *arguments)
        return {**found, **(more(tensors(inputs), tensors(weights), p["sets"]) if more else {})}
