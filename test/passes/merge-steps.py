# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support %python %s %heed_bin/heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Steps of states, each one kernel, against float64 NumPy: sums over the old state and over the new one, along rows and along columns, a normaliser, keys that heads
share, two factors of rank one; sizes known and not, odd, below a vector, 1 and 0; NaN and infinite numbers in a state and in a gate of 0; arrays between walls. In
sequences the step is the body of a loop; a state of the model's own is replaced."""
import os
import sys

import numpy as np

os.environ["HEEDC"] = sys.argv[1]
import heed
from guarded import guarded
from runs import expect, finish

rng = np.random.default_rng(16)
HEAD = "model m(q, k, a, b, g: f32[B, H, E], v: f32[B, H, F], beta: f32[B, H], S: f32[B, H, {}], z: f32[B, H, E]) {{\n"
COLUMNS, ROWS = HEAD.format("E, F"), HEAD.format("F, E")
END = "return o, S, z\n}"
MODELS = {
    "retention": COLUMNS + """S[n,h,e,f] = beta[n,h] * S[n,h,e,f] + k[n,h,e] * v[n,h,f]
    o[n,h,f] = sum(e) q[n,h,e] * S[n,h,e,f]\n""" + END,
    "normalised": COLUMNS + """S[n,h,e,f] = exp(g[n,h,e]) * S[n,h,e,f] + k[n,h,e] * v[n,h,f]
    z[n,h,e] = exp(g[n,h,e]) * z[n,h,e] + k[n,h,e]
    o[n,h,f] = (sum(e) q[n,h,e] * S[n,h,e,f]) / max(0.5, sum(e) q[n,h,e] * z[n,h,e])\n""" + END,
    "gated-delta": COLUMNS + """S[n,h,e,f] = exp(beta[n,h]) * S[n,h,e,f]
    d[n,h,f] = v[n,h,f] - (sum(e) k[n,h,e] * S[n,h,e,f])
    S[n,h,e,f] = S[n,h,e,f] + k[n,h,e] * d[n,h,f]
    o[n,h,f] = sum(e) q[n,h,e] * S[n,h,e,f]\n""" + END,
    "rank-one-rows": ROWS + """d[n,h,f] = sum(e) S[n,h,f,e] * a[n,h,e]
    S[n,h,f,e] = S[n,h,f,e] * g[n,h,e] - d[n,h,f] * b[n,h,e] + v[n,h,f] * k[n,h,e]
    o[n,h,f] = sum(e) S[n,h,f,e] * q[n,h,e]\n""" + END,
    "two-factors": COLUMNS + """d[n,h,f] = sum(e) S[n,h,e,f] * a[n,h,e]
    c[n,h,f] = sum(e) S[n,h,e,f] * b[n,h,e]
    S[n,h,e,f] = S[n,h,e,f] * g[n,h,e] - d[n,h,f] * b[n,h,e] + c[n,h,f] * k[n,h,e]
    o[n,h,f] = (sum(e) S[n,h,e,f] * q[n,h,e]) + v[n,h,f]\n""" + END,
    "shared-keys": ROWS + """S[n,h,f,e] = exp(-beta[n,h]) * S[n,h,f,e] + v[n,h,f] * k[n,0,e]
    o[n,h,f] = (sum(e) S[n,h,f,e] * q[n,0,e]) * silu(v[n,h,f])\n""" + END,
}


def oracle(name, q, k, a, b, g, v, beta, S, z):
    q, k, a, b, g, v, beta, S, z = (x.astype(np.float64) for x in (q, k, a, b, g, v, beta, S, z))
    outer, over = lambda x, y: x[..., :, None] * y[..., None, :], lambda x, s: (x[..., :, None] * s).sum(-2)
    one = beta[..., None, None]
    if name == "retention":
        S = one * S + outer(k, v)
    elif name == "normalised":
        S, z = np.exp(g)[..., None] * S + outer(k, v), np.exp(g) * z + k
        return over(q, S) / np.maximum(0.5, (q * z).sum(-1))[..., None], S, z
    elif name == "gated-delta":
        S = np.exp(one) * S
        S = S + outer(k, v - over(k, S))
    elif name == "rank-one-rows":
        S = S * g[..., None, :] - outer((S * a[..., None, :]).sum(-1), b) + outer(v, k)
        return (S * q[..., None, :]).sum(-1), S, z
    elif name == "two-factors":
        S = S * g[..., None] - outer(b, over(a, S)) + outer(k, over(b, S))
        return over(q, S) + v, S, z
    else:
        S = np.exp(-one) * S + outer(v, k[:, :1])
        return (S * q[:, :1, None, :]).sum(-1) * v / (1 + np.exp(-v)), S, z
    return over(q, S), S, z


def inputs(name, B, H, E, F, spoiled):
    uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
    q, k, a, b, g, v, beta, z = (uniform(B, H, n) for n in (E, E, E, E, E, F, 1, E))
    S = uniform(B, H, *((F, E) if MODELS[name].startswith(ROWS) else (E, F)))
    if spoiled and S.size:
        S[0, 0, 0, 0], S[-1, -1, -1, -1] = np.inf, np.nan
        beta[0, 0], g[..., :1] = 0, 0
    return q, k, a, b, g, v, beta[..., 0], S, z


def compare(got, wanted, what):
    for name, x, y in zip("oSz", got, wanted):
        live = np.isfinite(y)
        same = np.array_equal(np.isnan(x), np.isnan(y)) and np.array_equal(x[np.isinf(y)], y[np.isinf(y)])
        error = np.abs(x[live] - y[live]).max(initial=0) if same else np.inf
        expect(error <= 3e-6 * max(1, np.abs(y[live]).max(initial=0)), f"{what}: {name} is off by {error}")


SIZES = [(2, 3, 48, 64), (1, 1, 17, 33), (2, 2, 1, 1), (3, 1, 16, 7), (1, 2, 5, 16), (0, 2, 4, 4), (2, 0, 4, 4), (1, 2, 0, 20), (1, 2, 20, 0)]
KNOWN = [(64, 128), (17, 33), (16, 16), (1100, 32), (32, 1100), (8, 20)]
for name, text in MODELS.items():
    def check(model, B, H, E, F, what):
        for spoiled in False, True:
            given = inputs(name, B, H, E, F, spoiled)
            with np.errstate(all="ignore"):
                wanted = oracle(name, *given)
            for at_end in False, True:
                placed = [guarded(x, at_end) for x in given]
                outs = [guarded(np.full(x.shape, 7, np.float32), at_end) for x in wanted]
                model(*placed, out=outs)
                compare(outs, wanted, f"{name} {what} {B, H, E, F}{' spoiled' if spoiled else ''}")

    model = heed.compile(text, threads=2)
    for size in SIZES:
        check(model, *size, "any size")
    for E, F in KNOWN:
        check(heed.compile(text, set={"E": E, "F": F}, threads=2), 2, 3, E, F, "known")

# A sequence, whose body is a step, and a state that lives on.
LOOP = """model m(r, w, k, a, b: f32[B, N, H, E], v: f32[B, N, H, F], S: f32[B, H, F, E]) {
  scan t in 0..N, S: f32[B, H, F, E] = S {
    d[n,h,f] = sum(e) S[n,h,f,e] * a[n,t,h,e]
    S[n,h,f,e] = S[n,h,f,e] * w[n,t,h,e] - d[n,h,f] * b[n,t,h,e] + v[n,t,h,f] * k[n,t,h,e]
    o[n,t,h,f] = sum(e) S[n,h,f,e] * r[n,t,h,e]
  }
  return o, S
}"""
STATE = """model m {
  state S: f32[B, H, F, E]
  entry step(r, w, k, a, b: f32[B, 1, H, E], v: f32[B, 1, H, F]) -> f32[B, 1, H, F] {
    d[n,h,f] = sum(e) S[n,h,f,e] * a[n,0,h,e]
    S[n,h,f,e] = S[n,h,f,e] * w[n,0,h,e] - d[n,h,f] * b[n,0,h,e] + v[n,0,h,f] * k[n,0,h,e]
    return o[n,t:1,h,f] = sum(e) S[n,h,f,e] * r[n,0,h,e]
  }
}"""
B, N, H, E, F = 2, 6, 3, 64, 32
r, w, k, a, b, v = (rng.uniform(-1, 1, (B, N, H, n)).astype(np.float32) for n in (E, E, E, E, E, F))
a, b = 0.2 * a, 0.2 * b
S, rows = np.zeros((B, H, F, E)), []
for t in range(N):
    part = [x[:, t].astype(np.float64) for x in (r, k, a, b, w, v)]
    o, S, _ = oracle("rank-one-rows", *part, np.zeros((B, H)), S, np.zeros(1))
    rows.append(o)
rows = np.stack(rows, 1)
for sets in {}, {"E": E, "F": F, "H": H}:
    got = heed.compile(LOOP, set=sets)(r, w, k, a, b, v, np.zeros((B, H, F, E), np.float32))
    compare(got, (rows, S), f"sequence {sets}")
    model = heed.compile(STATE, set=sets)
    state = model.state(**{name: n for name, n in dict(B=B, H=H, E=E, F=F).items() if name not in sets})
    got = [model["step"](*(x[:, t:t + 1] for x in (r, w, k, a, b, v)), state=state).copy() for t in range(N)]
    compare((np.concatenate(got, 1), state["S"]), (rows, S), f"state {sets}")
finish()
