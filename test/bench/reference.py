# RUN: %python %s %heed_src
"""bench/reference.py: its float64 numbers against formulas written out pair by pair, and what counts as different."""
import math
import pathlib
import sys

import numpy as np

from runs import expect, finish

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "bench"))
import cases  # of bench/
import reference

random = np.random.default_rng(5)


def drawn(*shape):
    return random.standard_normal(shape).astype(np.float32)


def by_pairs(p, x):
    """Attention one pair at a time; the largest score."""
    q = x["q"].reshape(p["B"], p["H"], p["N"], p["E"]).astype(float)
    y, largest = np.zeros(q.shape), 0.0
    for b, h, i in np.ndindex(*q.shape[:3]):
        g, weights = h * p["G"] // p["H"], {}
        for j in range(p["M"]):
            seen = {"full": True, "decode": True, "causal": j <= i + p["M"] - p["N"], "window": j <= i and i - j < p.get("window", 0),
                    "global": abs(i - j) <= p.get("window", 0) or min(i, j) < p.get("globals", 0),
                    "documents": "document" in x and x["document"][i] == x["document"][j]}[p["mask"]]
            key, value = x["k"][b, g, j].astype(float), x["v"][b, g, j].astype(float)
            if "relative" in p:
                at = max(-p["relative"], min(p["relative"], j - i)) + p["relative"]
                key, value = key + x["ak"][at], value + x["av"][at]
            s = float(q[b, h, i] @ key) / math.sqrt(p["E"])
            if "cap" in p:
                s = p["cap"] * math.tanh(s / p["cap"]) - 2 ** (-8 * (h + 1) / p["H"]) * (i - j)
            if seen:
                weights[j], largest = (math.exp(s), value), max(largest, abs(s))
        total = sum(w for w, _ in weights.values())
        y[b, h, i] = sum(w * v for w, v in weights.values()) / total
    return y, largest


def attention(n, m=0, h=2, g=0, **more):
    p = {"B": 2, "H": h, "G": g or h, "N": n, "M": m or n, "E": 4, "mask": "full", **more}
    x = {"q": drawn(2, h, n, 4) if p["mask"] != "decode" else drawn(2, h, 4), "k": drawn(2, p["G"], p["M"], 4), "v": drawn(2, p["G"], p["M"], 4)}
    if p["mask"] == "documents":
        x["document"] = cases.document_ids(n, 3)
    if "relative" in p:
        x["ak"], x["av"] = drawn(2 * p["relative"] + 1, 4), drawn(2 * p["relative"] + 1, 4)
    found, largest = reference.answer("attention", p, x, {})
    wanted, most = by_pairs(p, x)
    expect(np.allclose(found.ravel(), wanted.ravel(), rtol=1e-12, atol=1e-12) and math.isclose(largest, most), f"attention {p}: {abs(found.ravel() - wanted.ravel()).max()}")


reference.BLOCK = 5  # rows in more than one block, and a rest
for n in (1, 5, 12):
    attention(n)
    attention(n, mask="causal")
attention(3, m=9, mask="causal")
attention(1, m=9, mask="decode", h=4, g=2)
attention(1, m=9, mask="causal", h=4, g=2)
attention(12, mask="window", window=4)
attention(12, mask="global", window=2, globals=3)
attention(12, mask="documents")
attention(12, mask="causal", cap=2.0)
attention(12, relative=3)

x, w, u, c = drawn(6, 8), drawn(5, 8), drawn(5, 8), drawn(5)
plain = x.astype(float) @ w.T.astype(float)
for epilogue, more, wanted in (("product", {}, plain), ("bias", {"bias": c}, plain + c),
                               ("bias_gelu", {"bias": c}, [[t * 0.5 * math.erfc(-t / math.sqrt(2)) for t in row] for row in plain + c]),
                               ("bias_gelu_tanh", {"bias": c}, [[t / (1 + math.exp(-2 * math.sqrt(2 / math.pi) * (t + 0.044715 * t**3))) for t in row] for row in plain + c]),
                               ("swiglu", {"gate": u}, plain * [[t / (1 + math.exp(-t)) for t in row] for row in x.astype(float) @ u.T.astype(float)])):
    found, _ = reference.answer("gemm", {"epilogue": epilogue}, {"x": x}, {"weight": w, **more})
    expect(np.allclose(found, wanted, rtol=1e-12, atol=1e-13), f"gemm {epilogue}")
r = drawn(6, 5)
found, _ = reference.answer("gemm", {"epilogue": "bias_residual"}, {"x": x, "r": r}, {"weight": w, "bias": c})
expect(np.allclose(found, plain + c + r.astype(float), rtol=1e-12), "gemm bias_residual")

wide = x.astype(float)
scale, shift = drawn(8), drawn(8)
held = {"norm.weight": scale, "norm.bias": shift}
for kind, wanted in (("layer_norm", [(row - row.mean()) / math.sqrt(row.var() + 0.1) * scale + shift for row in wide]),
                     ("rms_norm", [row / math.sqrt((row**2).mean() + 0.1) * scale for row in wide]), ("softmax", [np.exp(row) / np.exp(row).sum() for row in wide])):
    expect(np.allclose(reference.answer(kind, {"eps": 0.1}, {"x": x}, held)[0], wanted, rtol=1e-12), kind)
angle = random.standard_normal((6, 4))
found, _ = reference.answer("rotary", {}, {"x": drawn(1, 1, 6, 8) * 0 + x, "c": np.cos(angle), "s": np.sin(angle)}, {})
turned = (wide[:, :4] + 1j * wide[:, 4:]) * np.exp(1j * angle)
expect(np.allclose(found[0, 0], np.c_[turned.real, turned.imag], rtol=1e-12, atol=1e-13), "rotary")
a, b = drawn(6, 8), drawn(6, 8)
found, _ = reference.answer("chain", {}, {"x": x, "y": a, "z": b}, {})
expect(np.allclose(found, [[max(p / (1 + math.exp(-p)) * q + t, 0) / 2 + math.tanh(t) for p, q, t in zip(*rows)] for rows in zip(wide, a.astype(float), b.astype(float))]), "chain")
q, k, v = drawn(1, 2, 6, 4), drawn(1, 2, 6, 4), drawn(1, 2, 6, 4)
phi = np.vectorize(lambda t: t + 1 if t > 0 else math.exp(t))
scores = phi(q.astype(float)) @ phi(k.astype(float)).swapaxes(-1, -2)
expect(np.allclose(reference.answer("linear", {}, {"q": q, "k": k, "v": v}, {})[0], scores @ v / scores.sum(-1)[..., None], rtol=1e-12), "linear")

# The rule of errors, and a checker that fails on one element.
expect(reference.tolerance(1.0) == 1e-5 and math.isclose(reference.tolerance(100.0), 800 * 2.0**-24), "tolerance")
right = random.standard_normal((40, 50))
top = abs(right).max()
expect(reference.difference(right, right.astype(np.float32)) < 1e-7, "f32 of it")
for bad in (math.nan, math.inf, right[7, 3] + 1e-3 * top):
    wrong = right.astype(np.float32)
    wrong[7, 3] = bad
    found = reference.difference(right, wrong)
    expect(found > 9e-4 and (math.isfinite(bad) or found == math.inf), f"{bad}: {found}")
expect(reference.difference(right, right[:-1]) == math.inf and reference.difference(right, np.zeros((40, 50), np.int32)) == math.inf, "shape, type")
expect(set(c.kind for c in cases.cases()) <= set(reference.KINDS), "a case without a reference")
finish()
