# RUN: %python %s %heed_bin/heedc %t
"""A model of several entries over the same parameters, run by the program's --entry; both backends against NumPy. Constants and statements outside of the
entries are those of each, dims are an entry's own."""
import os
import sys

import numpy as np

import programs
import safetensors_file
from runs import expect, expect_error, finish, run

programs.start(*sys.argv[1:])
rng = np.random.default_rng(17)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)

SOURCE = """model two(; M = 2) {
  param w: f32[D, F]
  const half = 1 / 2
  turned[f, d] = w[d, f]
  entry up(x: f32[B, N, D]) -> f32[B, N, F] {
    return y[b,n,f] = M * sum(d) x[b,n,d] * w[d,f]
  }
  entry scores(q: f32[N, D], k: f32[B, D]; scale: f32 = 0.5) {
    a[n,f] = sum(d) q[n,d] * turned[f,d]
    c[b,f] = sum(d) k[b,d] * w[d,f]
    s[i,j] = scale * half * sum(f) a[i,f] * c[j,f]
    return p[i,j] = softmax(j) s[i,j], a
  }
  entry down(y: f32[N, F]) { return x[n,d] = sum(f) y[n,f] * turned[f,d] }
}"""
w = uniform(33, 20)
weights = os.path.join(programs.folder, "w.safetensors")
for name, options in ("fast", ()), ("reference", ("--backend=reference",)), ("tripled", ("--set", "M=3")):
    program = programs.compile(name, SOURCE, *options)
    safetensors_file.write(weights, {"w": w})
    on = lambda entry: ("--weights", weights, "--entry", entry)
    x, q, k, y = uniform(2, 5, 33), uniform(7, 33), uniform(3, 33), uniform(4, 20)
    programs.compare(program, {"x": x}, {"y": (3 if name == "tripled" else 2) * (x @ w)}, *on("up"), tolerance=1e-5)
    programs.compare(program, {"x": x}, {"y": (3 if name == "tripled" else 2) * (x @ w)}, "--weights", weights, tolerance=1e-5)
    for scale in None, 3.0:
        s = np.exp((scale or 0.5) * 0.5 * (q @ w) @ (k @ w).T)
        inputs = {"q": q, "k": k} | ({"scale": scale} if scale else {})
        programs.compare(program, inputs, {"p": s / s.sum(-1, keepdims=True), "a": q @ w}, *on("scores"), tolerance=1e-5)
    programs.compare(program, {"y": y}, {"x": y @ w.T}, *on("down"), tolerance=1e-5)
    expect_error(run(program, "--weights", weights, "--entry", "sideways"), "there is no entry 'sideways'", name)
    expect_error(programs.outputs(program, {"q": q}, [], *on("up")), "q", name)
    # Dims are an entry's own: its input says F, and the parameter differs.
    done = programs.outputs(program, {"y": uniform(4, 21)}, ["x"], *on("down"))
    expect(not isinstance(done, dict) and "extent of 'w' (axis 1) is 20, expected F = 21" in done.stderr, f"{name}: {done}")
# C's own name, of a model and of an entry.
for name, source in ("main", "model main(x: f32[N]) { return y[n] = 2 * x[n] }"), ("entry", "model m { entry main(x: f32[N]) { return y[n] = 2 * x[n] } }"):
    x = uniform(3)
    programs.compare(programs.compile(name, source), {"x": x}, {"y": 2 * x})
# A dim that must be 0.
program = programs.compile("nothing", "model m(x: f32[P, N]) { dim P = 0  \n return y[p, n] = x[p, n] }")
programs.compare(program, {"x": np.zeros((0, 3), np.float32)}, {"y": np.zeros((0, 3))})
expect_error(programs.outputs(program, {"x": uniform(1, 3)}, ["y"]), "dim 'P' is 1, expected 0", "a dim of 0")
finish()
