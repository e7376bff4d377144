# RUN: %python %s heedc
"""Kim et al. 2021, algorithms 1 to 4, in Python's integers with shifts, row by row: every digit must agree. Multipliers and constants are computed
here from the scales of a layer that was quantised; beside the layer in real numbers the result must differ by the error of int8, not by nothing and
not by much."""
import math

import numpy as np
from zoo import check, heads, merge, softmax, uniform

HEADS, HIDDEN = 4, 64
SX, SQ, SV, SZ, SU, SG = (t / 127 for t in (2.0, 2.0, 2.0, 4.0, 4.0, 4.0))  # scales of input, queries and keys, values, norms, FFN
ints = lambda a: np.vectorize(int, otypes=[object])(a)  # of any size


def clip(q):
    return np.clip(q, -127, 127)


def scaled(q, m):
    return (q * int(m) + (1 << 23)) >> 24


def linear(x, w, at):
    return x @ ints(w[at + ".weight"]).T + ints(w[at + ".bias"])


def linear8(x, w, at):
    return clip(scaled(linear(x, w, at), w[at + ".m"]))


def weights_of(scores, c):
    """Algorithm 2, one row."""
    out = []
    for s in scores:
        d = max(s - max(scores), -30 * c[0])
        z = -d // c[0]
        out.append(((d + z * c[0] + c[1]) ** 2 + c[2]) >> min(z, 30))
    return [min((q << 7) // sum(out), 127) for q in out]


def gelu(q, c, m):
    """Algorithm 1."""
    part = (min(abs(q), c[0]) + c[1]) ** 2 + c[2]
    erf = part if q > 0 else -part if q < 0 else 0
    return clip(scaled(q * (erf + c[3]), m))


def norm(h, w, at):
    """Algorithm 3."""
    rows = []
    for row in h.reshape(-1, h.shape[-1]):
        d = len(row)
        mean = (2 * sum(row) + d) // (2 * d)
        root = math.isqrt(sum((t - mean) ** 2 for t in row))
        factor = (1 << 31) // root if root else 0
        rows.append([clip(scaled((t - mean) * factor >> 19, m) + int(b)) for t, m, b in zip(row, w[at + ".m"], w[at + ".bias"])])
    return np.array(rows, object).reshape(h.shape)


def add_norm(x, r, w, at):
    m = w[at + ".add.m"]
    return norm(scaled(x, m[0]) + scaled(r, m[1]), w, at)


def layer(x, w):
    q, k, v = (heads(linear8(x, w, "attention." + n), HEADS) for n in ("query", "key", "value"))
    c = [int(t) for t in w["softmax.constants"]]
    s = q @ k.swapaxes(2, 3)
    P = np.array([weights_of(list(row), c) for row in s.reshape(-1, s.shape[-1])], object).reshape(s.shape)
    o = merge(clip(scaled(P @ v, w["attention.m"])))
    z = add_norm(x, linear(o, w, "attention.output"), w, "norm1")
    c, m = [int(t) for t in w["gelu.constants"]], w["gelu.m"]
    f = np.array([gelu(t, c, m) for t in linear8(z, w, "ffn.up").reshape(-1)], object).reshape(*z.shape[:2], HIDDEN)
    return add_norm(z, linear(f, w, "ffn.down"), w, "norm2")


def real_layer(x, real):
    """The same layer on real numbers."""
    dense = lambda x, at: x @ real[at][0].T + real[at][1]
    standard = lambda h, at: (h - h.mean(-1, keepdims=True)) / h.std(-1, keepdims=True) * real[at][0] + real[at][1]
    q, k, v = (heads(dense(x, "attention." + n), HEADS) for n in ("query", "key", "value"))
    o = merge(softmax(q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1])) @ v)
    z = standard(x + dense(o, "attention.output"), "norm1")
    u = dense(z, "ffn.up")
    return standard(z + dense(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, "ffn.down"), "norm2")


def oracle(inputs, w):
    y = layer(ints(inputs["x"]), w).astype(np.float64)
    if inputs["x"].any() and id(w) in REAL:
        error = np.abs(y * SZ - real_layer(inputs["x"] * SX, REAL[id(w)])).mean()
        assert 1e-4 < error < 0.15, error
    return {"y": y}


def draw(rng, d):
    """Integers of the checkpoint, and the real layer that they stand for."""
    w, real, m24 = {}, {}, lambda t: np.array(round(t * 2**24), np.int32)

    def dense(at, out, into, scale, to=None):
        weight = rng.uniform(-1, 1, (out, into)) * into**-0.5
        step = np.abs(weight).max() / 127
        bias = np.rint(rng.uniform(-0.2, 0.2, out) / (scale * step))
        w.update({at + ".weight": np.rint(weight / step).astype(np.int8), at + ".bias": bias.astype(np.int32)})
        real[at] = np.rint(weight / step) * step, bias * scale * step
        if to:
            w[at + ".m"] = m24(scale * step / to)
        return scale * step

    def norm(at, residual, sublayer):
        g, b = rng.uniform(0.5, 1.5, d), np.rint(rng.uniform(-0.3, 0.3, d) / SZ)
        w.update({at + ".m": np.rint(g * np.sqrt(d) / SZ * 2**12).astype(np.int32), at + ".bias": b.astype(np.int32)})
        w[at + ".add.m"] = np.array([m24(16), m24(sublayer / (residual / 16))], np.int32)
        real[at] = g, b * SZ

    for name, to in (("query", SQ), ("key", SQ), ("value", SV)):
        dense("attention." + name, d, d, SX, to)
    s = SQ * SQ / np.sqrt(d / HEADS)
    w["softmax.constants"] = np.array([math.log(2) // s, 1.353 // s, 0.344 // (0.3585 * s * s)], np.int32)
    w["attention.m"] = m24(1 / 128)
    norm("norm1", SX, dense("attention.output", d, d, SV))
    dense("ffn.up", HIDDEN, d, SZ, SU)
    t = SU / math.sqrt(2)
    erf = -0.2888 * t * t
    w["gelu.constants"] = np.array([1.769 // t, -1.769 // t, 1 // erf, 1 // erf], np.int32)
    w["gelu.m"] = m24(SU * erf / 2 / SG)
    norm("norm2", SZ, dense("ffn.down", d, HIDDEN, SG))
    REAL[id(w)] = real
    return w


REAL = {}
rng = np.random.default_rng(623)
cases = []
for b, n, d in [(2, 7, 16), (1, 1, 8), (1, 133, 8), (1, 3, 12)]:
    x = rng.integers(-127, 128, (b, n, d)).astype(np.int8)
    if d == 12:
        x[:] = 0  # rows that do not vary
    cases.append((dict(x=x), draw(rng, d)))
check("quantization/integer-only-transformer", oracle, cases, tolerance=0)
