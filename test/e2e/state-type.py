# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support %python %s %heed_bin/heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""--state-type: states that a model declares f32 are bf16 or f16 in memory. What a call writes there is rounded, once; what it reads is widened, and computed with in
f32: a cache in layers, whose updates stay in place, a mean that is assigned whole, a recurrence's state, a state that a loop assigns, a snapshot of a state that
changes later. Whole prompts, single tokens and chunks, both backends, against float64 NumPy that rounds where the state is written."""
import os
import sys

import numpy as np

os.environ["HEEDC"] = sys.argv[1]
import heed
from oracles import parts, softmax
from runs import expect, finish

rng = np.random.default_rng(1602)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
L, H, B, C, D, N = 3, 2, 2, 21, 8, 20
E = D // H
SOURCE = """model layers(; L = 3, H = 2) {
  state kc, vc: f32[L, B, H, C, E], len: i32[B], mean, power, last: f32[B, D]
  param wk, wv: f32[L, D, D]
  entry forward(x: f32[B, N, D]) {
    dim E = D / H
    old = mean
    for l in 0..L {
      k[b,n,d] = sum(c) x[b,n,c] * wk[l,c,d]
      v[b,n,d] = sum(c) x[b,n,c] * wv[l,c,d]
      kc[l,b,h,len[b] + n,e] = k[b,n,h*E + e]
      vc[l,b,h,len[b] + n,e] = v[b,n,h*E + e]
      s[b,h,i,j:C] = (sum(e) x[b,i,h*E+e] * kc[l,b,h,j,e]) / sqrt(E)
      p[b,h,i,j] = softmax(j where j <= len[b] + i) s[b,h,i,j]
      o[b,i,h,e] = sum(j) p[b,h,i,j] * vc[l,b,h,j,e]
      m[b,n,h*E+e] = o[b,n,h,e]
      x[b,n,d] = x[b,n,d] + m[b,n,d]
    }
    len[b] = len[b] + N
    scan t in 0..N, s: f32[B, D] = last {
      s[b,d] = 0.5 * s[b,d] + x[b,t,d]
      rows[b,t,d] = s[b,d]
    }
    last = s
    for l in 0..L { power[b,d] = 0.5 * power[b,d] + mean[b,d] }
    mean[b,d] = 0.5 * mean[b,d] + sum(n) x[b,n,d]
    norm[b] = sum(d) mean[b,d] * mean[b,d]
    return x, rows, old, norm
  }
}"""


def bf16(a):
    bits = np.asarray(a, np.float32).view(np.uint32)
    return (((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) << 16).view(np.float32).astype(np.float64)


ROUND = {"bf16": bf16, "f16": lambda a: a.astype(np.float16).astype(np.float64), "f32": lambda a: a.astype(np.float32).astype(np.float64)}


class Model:
    """The model in float64, with states that are rounded when they are written."""

    def __init__(self, wk, wv, hold):
        self.wk, self.wv, self.hold, self.len = wk.astype(np.float64), wv.astype(np.float64), hold, 0
        self.kc, self.vc = np.zeros((L, B, H, C, E)), np.zeros((L, B, H, C, E))
        self.mean, self.power, self.last = (np.zeros((B, D)) for _ in range(3))

    def __call__(self, x):
        x, n = x.astype(np.float64), x.shape[1]
        heads = lambda a: a.reshape(B, n, H, E).transpose(0, 2, 1, 3)
        old, at = self.mean, self.len
        for l in range(L):
            self.kc[l, :, :, at:at + n] = self.hold(heads(x @ self.wk[l]))
            self.vc[l, :, :, at:at + n] = self.hold(heads(x @ self.wv[l]))
            s = heads(x) @ self.kc[l].transpose(0, 1, 3, 2) / np.sqrt(E)
            p = softmax(s, live=np.arange(C)[None, :] <= at + np.arange(n)[:, None])
            x = x + (p @ self.vc[l]).transpose(0, 2, 1, 3).reshape(B, n, D)
        self.len += n
        rows, s = [], self.last
        for t in range(n):
            s = 0.5 * s + x[:, t]
            rows.append(s)
        self.last = self.hold(s)
        for _ in range(L):
            self.power = 0.5 * self.power + self.mean
        self.power = self.hold(self.power)
        # Assigned whole it is what its line gives until the call ends.
        mean = 0.5 * self.mean + x.sum(1)
        self.mean = self.hold(mean)
        return x, np.array(rows).transpose(1, 0, 2), old, (mean**2).sum(-1)


def near(found, wanted, what, tolerance):
    error = np.abs(np.asarray(found, np.float64) - wanted).max(initial=0) / max(1, np.abs(wanted).max(initial=0))
    expect(np.shape(found) == np.shape(wanted) and error <= tolerance, f"{what}: {error:.1e}")


wk, wv, x = uniform(L, D, D) / 2, uniform(L, D, D) / 2, uniform(B, N, D)
weights = {"wk": wk, "wv": wv}
bytes_ = {}
for type, hold in ROUND.items():
    for backend in (None, "reference"):
        m = heed.compile(SOURCE, weights=weights, backend=backend, options=[f"--state-type={type}"])
        for sizes in [N], [1], [7]:
            state, oracle, what = m.state(B=B, C=C, E=E), Model(wk, wv, hold), f"{type}, {backend}, calls of {sizes[0]}"
            # A number between two of 16 bits may go to either.
            tolerance = {"f32": 1e-5, "f16": 2e-3, "bf16": 2e-2}[type]
            for begin, end in parts(N, sizes):
                piece = np.ascontiguousarray(x[:, begin:end])
                for name, found, wanted in zip(("x", "rows", "old", "norm"), m(piece, state=state), oracle(piece)):
                    near(found, wanted, f"{what}, {begin}..{end}: {name}", tolerance)
            # NumPy has no bf16.
            for name in ("kc", "vc", "mean", "power", "last") if type != "bf16" else ():
                found = state[name]
                expect(found.dtype == (np.float16 if type == "f16" else np.float32), f"{what}: {name} is {found.dtype}")
                near(found, getattr(oracle, name), f"{what}: {name}", tolerance)
            bytes_[type] = state.nbytes
# Updates by what a scan and a softmax leave, of a state that was assigned before, in a loop; a snapshot.
UPDATES = """model updates(; L = 2) {
  state kc: f32[C, D], all: f32[L, C, D], len: i32, s0: f32[D]
  entry scanned(x: f32[N, D]) {
    scan t in 0..N, s: f32[D] = s0 {
      s[d] = 0.5 * s[d] + x[t, d]
      rows[t, d] = s[d]
    }
    kc[len + n, d] = rows[n, d]
    len = len + N
    s0 = s
    return y[d] = sum(c) kc[c, d]
  }
  entry chosen(x: f32[N, D]) {
    p[n, d] = softmax(d) x[n, d]
    kc[len + n, d] = p[n, d]
    for l in 0..L { all[l, len + n, d] = kc[n, d] where n < 3 }
    return p
  }
  entry taken(x: f32[N, D]) {
    before = kc
    kc = all[0]
    kc[len + n, d] = x[n, d]
    return before, after = kc
  }
  entry doubled(x: f32[C, D]) {
    kc = x
    for l in 0..L { kc[l + 1, d] = 2 * kc[l, d] }
    return after[c, d] = kc[c, d]
  }
}"""
C, D, N = 11, 5, 4
half = ROUND["f16"]
for backend in None, "reference":
    m = heed.compile(UPDATES, backend=backend, options=["--state-type=f16"])
    state = m.state(C=C, D=D)
    kc, all_, s = np.zeros((C, D)), np.zeros((L - 1, C, D)), np.zeros(D)
    x = uniform(3, N, D)
    y = m["scanned"](x[0], state=state)
    for t in range(N):
        s = 0.5 * s + x[0, t].astype(np.float64)
        kc[t] = half(s)
    near(y, kc.sum(0), f"{backend}: a scan's rows", 1e-6)
    near(state["kc"], kc, f"{backend}: a scan's rows are there", 1e-3)
    p = m["chosen"](x[1], state=state)
    near(p, softmax(x[1].astype(np.float64)), f"{backend}: a softmax", 1e-6)
    kc[N:2 * N] = half(np.asarray(p, np.float64))
    all_[:, N:N + 3] = kc[:3]
    near(state["kc"], kc, f"{backend}: a softmax is there", 1e-3)
    near(state["all"], all_, f"{backend}: in a loop", 1e-3)
    before, after = m["taken"](x[2], state=state)
    near(before, kc, f"{backend}: a snapshot", 1e-3)
    kc = all_[0].copy()
    kc[N:2 * N] = half(x[2])
    near(after, kc, f"{backend}: assigned and updated", 1e-3)
    near(state["kc"], kc, f"{backend}: assigned and updated, there", 1e-3)
    z = uniform(C, D)
    after = m["doubled"](z, state=state)
    kc = z.astype(np.float64)
    kc[1], kc[2] = 2 * kc[0], 4 * kc[0]
    near(after, kc, f"{backend}: updated in a loop after it was assigned", 2e-3)
    expect(state["kc"].dtype == np.float16, f"{state['kc'].dtype}")
expect(2 * bytes_["bf16"] < 1.2 * bytes_["f32"] and bytes_["bf16"] == bytes_["f16"], f"bytes of a state: {bytes_}")
finish()
