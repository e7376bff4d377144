# RUN: %python %s %heed_bin/heedc %t
"""A program of a model with states: dims by --dim or of its inputs, the state by --state-in and --state-out. A prompt and then tokens one by one, each a run of
its own, give what one run gives; --bench begins each run with the same state."""
import os
import sys

import numpy as np

import programs
import safetensors_file
from runs import expect, expect_error, finish, run

programs.start(*sys.argv[1:])
rng = np.random.default_rng(1702)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)

SOURCE = """model cached(; H = 2, E = 4) {
  state kc, vc: f32[B, H, C, E], len: i32[B]
  entry forward(q: f32[B, N, H, E], k: f32[B, N, H, E], v: f32[B, N, H, E]) -> f32[B, N, H, E] {
    kc[b, h, len[b] + n, e] = k[b, n, h, e]
    vc[b, h, len[b] + n, e] = v[b, n, h, e]
    s[b, h, i, j:C] = (sum(e) q[b, i, h, e] * kc[b, h, j, e]) / sqrt(E)
    p[b, h, i, j] = softmax(j where j <= len[b] + i) s[b, h, i, j]
    o[b, i, h, e] = sum(j) p[b, h, i, j] * vc[b, h, j, e]
    len[b] = len[b] + N
    return o
  }
}"""
program = programs.compile("cached", SOURCE)
q, k, v = (uniform(2, 9, 2, 4) for _ in range(3))
part = lambda a, z: {"q": q[:, a:z].copy(), "k": k[:, a:z].copy(), "v": v[:, a:z].copy()}
state = program + ".state"
whole = programs.outputs(program, part(0, 9), ["o"], "--dim", "C=9")["o"]
scores = np.einsum("bihe,bjhe->bhij", q.astype(np.float64), k) / 2
scores[..., ~np.tri(9, dtype=bool)] = -np.inf
weights = np.exp(scores - scores.max(-1, keepdims=True))
want = np.einsum("bhij,bjhe->bihe", weights / weights.sum(-1, keepdims=True), v)
expect(np.allclose(whole, want, atol=1e-5, rtol=0), "one run")
got = [programs.outputs(program, part(0, 5), ["o"], "--dim=C=9", "--state-out", state)["o"]]
for n in range(5, 9):
    got.append(programs.outputs(program, part(n, n + 1), ["o"], "--dim", "C=9", f"--state-in={state}", f"--state-out={state}")["o"])
expect(np.allclose(np.concatenate(got, axis=1), want, atol=1e-5, rtol=0), "a prompt, and tokens one by one")
bench = programs.outputs(program, part(0, 4), [], "--dim", "C=9", "--bench", "5", "--json")
expect(isinstance(bench, dict), f"--bench: {bench}")
for options, text in [((), "the state 'kc' needs dim 'C' (--dim C=N)"), (("--dim", "C=9", "--dim", "D=2"), "no state has a dim 'D'"), (("--dim", "C"), "expected NAME=N"),
                      (("--dim", "C=x"), "--dim"), (("--dim", "C=8"), "(len[b]+n)[0] = 8 is out of range for kc (axis 2)"), (("--dim", "B=3", "--dim", "C=9"), "extent of 'kc' (axis 0) is 3"),
                      (("--dim", "C=9", "--state-in", program), "cached"), (("--dim", "C=10", "--state-in", state), "expected shape [2, 2, 10, 4], found [2, 2, 9, 4]"),
                      (("--dim", "C=9", "--state-in", state), "is out of range for kc"), (("--dim", "C=9", "--state-out", "/nowhere/x"), "/nowhere/x: cannot be written")]:
    arrays = [option for name in "qkv" for option in ("--" + name, f"{program}.{name}.npy")]
    programs.outputs(program, part(0, 9), ["o"], "--dim", "C=9")
    expect_error(run(program, *arrays, *options), text, str(options))
said = run(program, "--help").stdout
expect("state:\n  kc                       f32[B, 2, C, 4]\n" in said and "--state-in FILE" in said, said)
# A dim that a parameter has is known; given otherwise it is an error that names both.
counting = programs.compile("counting", """model counting {
  param word: f32[V, D]
  state counts: f32[V], kept: f32[B, D]
  entry count(ids: i32[B, N]) {
    kept[b, d] = kept[b, d] + (sum(n) word[ids[b, n], d])
    counts[v] = counts[v] + 1
    return all[b, v] = counts[v] + (sum(d) kept[b, d] * word[v, d])
  }
}""")
safetensors_file.write(counting + ".safetensors", {"word": np.ones((5, 3), np.float32)})
np.save(counting + ".npy", np.zeros((2, 2), np.int32))
count = [counting, "--weights", counting + ".safetensors", "--ids", counting + ".npy"]
for options in ((), ("--dim", "V=5")):
    done = run(*count, *options)
    expect(done.returncode == 0 and done.stdout.startswith("all: f32[2, 5] 7 7"), f"{options}: {done.stdout} {done.stderr}")
expect_error(run(*count, "--dim", "V=7"), "dim 'V' of the state 'counts' is given as 7, and is 5 in the parameters", "a dim given twice")
plain = programs.compile("plain", "model plain(x: f32[N]) { return y[n] = x[n] }")
np.save(plain + ".npy", uniform(3))
expect_error(run(plain, "--x", plain + ".npy", "--state-out", state), "the model has no state", "no state")
finish()
