# RUN: %python %s %heed_bin/heedc %t
"""Decays that are the same in each step, near 1, 0, negative, tiny and none: over thousands of steps nothing adds up, as it would if the powers of a decay were
products, whose rounding is the same in each chunk. Of heads and of channels, against NumPy in float64 step by step."""
import sys

import numpy as np

import programs
from runs import expect, finish

programs.start(*sys.argv[1:])
rng = np.random.default_rng(1625)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
DECAYS = np.float32([1 - 2.0**-12, 1 - 2.0**-11 / 3, 0.3, 0, 1, -0.999, np.exp(-200.0), 1 - 2.0**-9 * 0.77])
SOURCE = """model m(q, k: f32[H, N, E], v: f32[H, N, F]; g: f32[%s]) {
  scan t in 0..N, S: f32[H, E, F] = 0 {
    S[h,e,f] = g[%s] * S[h,e,f] + k[h,t,e] * v[h,t,f]
    o[h,t,f] = sum(e) q[h,t,e] * S[h,e,f]
  }
  return o, S
}"""
for name, shape, at in ("heads", "H", "h"), ("channels", "H, E", "h,e"):
    program = programs.compile(name, SOURCE % (shape, at), "--explain=all", says="chunked")
    for n in 70, 8192:
        e = 12
        q, k, v = uniform(8, n, e), uniform(8, n, e), uniform(8, n, 9)
        g = DECAYS if name == "heads" else np.stack([np.roll(DECAYS, c)[:8] for c in range(e)], 1)
        decay = (g[:, None, None] if name == "heads" else g[..., None]).astype(np.float64)
        S, o = np.zeros((8, e, 9)), np.zeros((8, n, 9))
        for t in range(n):
            S = decay * S + k[:, t, :, None].astype(np.float64) * v[:, t, None, :]
            o[:, t] = np.einsum("he,hef->hf", q[:, t].astype(np.float64), S)
        found = programs.outputs(program, dict(q=q, k=k, v=v, g=g), ["o", "S"])
        for result, want in dict(o=o, S=S).items():
            bound = 2e-6 if name == "heads" else 5e-6
            for head in range(8):
                error = np.abs(found[result][head] - want[head]).max() / np.abs(want[head]).max()
                expect(error < bound, f"{name}, {n} steps, {result} of head {head}: off by {error:.2g} of the largest element, expected {bound:.2g} at most")
finish()
