# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Touvron et al. 2023, section 2.2, over the whole text and without a cache: x + Att(norm(x)), x + (silu(n W_gate) * n W_up) W_down with n = norm(x), RMSNorm;
complex pairs of queries and keys turn by the angle position * 10000^(-2t/E); H query heads share G key heads (grouped), or have their own."""
import numpy as np
from states import check_language_model, compile
from zoo import linear_weights, softmax, uniform

rng = np.random.default_rng(309)
LAYERS, HEADS, HIDDEN, WORDS = 2, 4, 64, 37


def norm(x, g):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g


def turn(x):
    """N x H x E."""
    e = x.shape[-1]
    z = x[..., 0::2] + 1j * x[..., 1::2]
    z = z * np.exp(1j * np.arange(len(x))[:, None, None] * 10000.0 ** (-np.arange(0, e, 2) / e))
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def oracle(tokens, weights):
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    x, n = w["tokens.weight"][tokens], len(tokens)
    for at in (f"layer.{l}." for l in range(LAYERS)):
        a = norm(x, w[at + "norm1.weight"])
        q, k, v = ((a @ w[f"{at}self.{name}.weight"].T).reshape(n, len(w[f"{at}self.{name}.weight"]) // E, E) for name in ("query", "key", "value"))
        q, k, share = turn(q), turn(k), HEADS // k.shape[1]
        o = [softmax(q[:, h] @ k[:, h // share].T / np.sqrt(E), np.tri(n, dtype=bool)) @ v[:, h // share] for h in range(HEADS)]
        x = x + np.concatenate(o, 1) @ w[at + "self.output.weight"].T
        a = norm(x, w[at + "norm2.weight"])
        gate = a @ w[at + "ffn.gate.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * (a @ w[at + "ffn.up.weight"].T)) @ w[at + "ffn.down.weight"].T
    return norm(x, w["norm.weight"]) @ w["output.weight"].T


def draw(d, groups):
    matrix = lambda out, into: linear_weights(rng, "", out, into)[".weight"]
    weights = {"tokens.weight": uniform(rng, WORDS, d), "output.weight": matrix(WORDS, d), "norm.weight": uniform(rng, d) + 1}
    for at in (f"layer.{l}." for l in range(LAYERS)):
        sizes = {"self.query": (HEADS * E, d), "self.key": (groups * E, d), "self.value": (groups * E, d), "self.output": (d, HEADS * E),
                 "ffn.gate": (HIDDEN, d), "ffn.up": (HIDDEN, d), "ffn.down": (d, HIDDEN)}
        weights |= {f"{at}{name}.weight": matrix(*size) for name, size in sizes.items()}
        weights |= {f"{at}norm{k}.weight": uniform(rng, d) + 1 for k in (1, 2)}
    return weights


for lengths, groups, E in [([23, 9, 0], 2, 4), ([131, 1], 4, 6), ([40], 1, 8)]:
    weights = draw(HEADS * E, groups)
    m = compile("whole-model/llama", weights, kv_heads=groups, E=E, context=140)
    rows = [rng.integers(0, WORDS, n).astype(np.int32) for n in lengths]
    check_language_model(m, rows, lambda tokens: oracle(tokens, weights), f"llama, rows of {lengths}, {groups} key heads")
