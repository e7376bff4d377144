# RUN: %python %s %heed_bin %t
"""Dims that only a weight's extents give, known when the file is opened: of parameters in scans, scans in scans, scans in loops whose turns have weights of
their own, and in loops whose turns are code of their own. Rows that such a loop stacks have them, outside of it, too. And a result that has the name of a
dim of a state."""
import pathlib
import sys

import numpy as np

import programs
import safetensors_file
from runs import expect, finish, run

bin, scratch = map(pathlib.Path, sys.argv[1:])
programs.start(str(bin / "heedc"), str(scratch))
rng = np.random.default_rng(0)
B, D, E = 2, 3, 4
CELL = """fn cell(x: [B, D]; at) {
  param w: f32[E, D] @ "{at}.w"
  return y[b, e] = sum(d) x[b,d] * w[e,d]
}
"""
STEP = """{
      row[b,d] = x[b,t,d]
      z = cell(row, at = "LAYER")
      s[b] = s[b] + sum(e) z[b,e]
      y[b,t,e] = z[b,e]
    }
"""
MODELS = {
    "scan": "model m(x: f32[B, N, D]) {\n  scan t in 0..N, s: f32[B] = 0.0 " + STEP.replace("LAYER", "a") + "  return y, s\n}\n",
    # the turns have weights of their own, and no extents in common with what they carry
    "loop": "model m(x: f32[B, N, D]; layers = 2) {\n  y[b:B] = 0.0\n  s = y\n  for l in 0..layers {\n    m = y\n    scan t in 0..N, s: f32[B] = s "
            + STEP.replace("LAYER", "layer.{l}").replace("y[b,t,e]", "r[b,t,e]") + "    y[b] = m[b] + sum(t, e) r[b,t,e]^2\n  }\n  return y, s\n}\n",
    # one code does not serve both turns: what was put outside of the loop for one goes with it
    "unrolled": "model m(x: f32[B, N, D]; layers = 2) {\n  s[b:B] = 0.0\n  v[b:B, i:1] = 1.0\n  for l in 0..layers {\n    v[b, i] = concat(i)(v[b, i], v[b, i])\n"
                "    scan t in 0..N, s: f32[B] = s " + STEP.replace("LAYER", "a") + "    v[b, i] = v[b, i] + sum(t, e) y[b,t,e]\n  }\n  return y[b] = sum(i) v[b, i], s\n}\n",
    "scan in scan": """model m(x: f32[B, N, D]) {
  scan t in 0..N, s: f32[B] = 0.0 {
    scan r in 0..3, p: f32[B] = 0.0 {
      row[b,d] = x[b,t,d]
      z = cell(row, at = "a")
      p[b] = p[b] + sum(e) z[b,e]
      q[r,b,e] = z[b,e]
    }
    s[b] = s[b] + p[b]
    y[b,t,e] = sum(r) q[r,b,e]
  }
  return y, s
}
"""}
WEIGHTS = {name: rng.standard_normal((E, D)).astype(np.float32) for name in ("a.w", "layer.0.w", "layer.1.w")}
file = f"{programs.folder}/weights.safetensors"
safetensors_file.write(file, WEIGHTS)
for name, source in MODELS.items():
    program = programs.compile(name.replace(" ", "-"), CELL + source)
    for N in (5, 1, 0):
        x = rng.standard_normal((B, N, D)).astype(np.float32)
        a, first, second = (np.einsum("bnd,ed->bne", x.astype(np.float64), w) for w in WEIGHTS.values())
        want = {"scan": (a, a.sum((1, 2))), "loop": (((first**2) + second**2).sum((1, 2)), (first + second).sum((1, 2))), "unrolled": (4 + 8 * a.sum((1, 2)), 2 * a.sum((1, 2))),
                "scan in scan": (3 * a, 3 * a.sum((1, 2)))}[name]
        programs.compare(program, dict(x=x), dict(zip("ys", want)), "--weights", file)

safetensors_file.write(file, {"layer.0.w": WEIGHTS["layer.0.w"], "layer.1.w": WEIGHTS["layer.1.w"][:, :2]})
done = programs.outputs(f"{programs.folder}/loop", dict(x=np.zeros((B, 5, D), np.float32)), "ys", "--weights", file)
expect(not isinstance(done, dict) and done.returncode == 1 and "axis 1" in done.stderr, f"an extent that differs: {done}")

state = scratch / "state.heed"
state.write_text("""model m {
  dim B = 2
  state past: f32[B, C]
  entry forward(x: f32[B, C]) {
    past[b, c] = 0.5 * past[b, c] + x[b, c]
    return C[b, c] = past[b, c]
  }
}
""")
done = run(str(bin / "heed-check"), str(state), "--draws=2")
expect(done.returncode == 0, f"a result of a dim's name: {done.stdout}{done.stderr}")
finish()
