# RUN: %python %s %heed_bin %t
"""What depends on weights alone is computed when the model is opened: panels of every layer's matrices, a matrix that is
computed from another, a table. Rows from none to more than a tile, against float64 NumPy; twice with one handle's worth
of threads, so that nothing of a call is left in what is kept."""
import pathlib
import shutil
import sys
from math import erf

import numpy as np

import safetensors_file
from runs import expect, finish, run

MODEL = """import "nn.heed"
model layers(x: f32[N, 24]) {
  param t: f32[24, 50] @ "head"
  for l in 0..3 {
    x = x + linear(gelu(linear(x, O = 50, at = "layer.{l}.up")), O = 24, at = "layer.{l}.down")
  }
  u[i, o] = exp(t[i, o])
  s[o: 50] = 2 ^ (-(o + 1) / 7)
  return y[n, o] = s[o] * (sum(i) x[n, i] * u[i, o])
}
"""
heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
(folder / "layers.heed").write_text(MODEL)
done = run(heedc, folder / "layers.heed", "--explain=all", "-o", folder / "layers")
expect(done.returncode == 0, done.stderr)
hoisted = [line for line in done.stderr.splitlines() if "attn-hoist-" in line]
# Up, down and head: panels of 64, 32 and 64 columns at most; the head's exponential before.
expect(sum("in 3 instances" in line for line in hoisted) == 2, hoisted)
expect(any("4800 bytes" in line for line in hoisted), hoisted)

random = np.random.default_rng(11)
draw = lambda *shape: random.uniform(-0.5, 0.5, shape).astype(np.float32)
weights = {"head": draw(24, 50)}
for l in range(3):
    weights |= {f"layer.{l}.up.weight": draw(50, 24), f"layer.{l}.up.bias": draw(50),
                f"layer.{l}.down.weight": draw(24, 50), f"layer.{l}.down.bias": draw(24)}
safetensors_file.write(folder / "w.safetensors", weights)


def oracle(x):
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    x = x.astype(np.float64)
    for l in range(3):
        h = x @ w[f"layer.{l}.up.weight"].T + w[f"layer.{l}.up.bias"]
        h = 0.5 * h * (1 + np.vectorize(erf, otypes=[float])(h / np.sqrt(2)))
        x = x + h @ w[f"layer.{l}.down.weight"].T + w[f"layer.{l}.down.bias"]
    return x @ np.exp(w["head"]) * 2 ** (-(np.arange(50) + 1) / 7)


for rows in (0, *range(1, 18), 63, 64, 65, 130):
    x = draw(rows, 24)
    np.save(folder / "x.npy", x)
    done = run(folder / "layers", "--weights", folder / "w.safetensors", "--x", folder / "x.npy", "--bench=2", "--output",
               folder / "y.npy")
    expect(done.returncode == 0, f"{rows} rows: {done.stderr}")
    if done.returncode:
        continue
    got, want = np.load(folder / "y.npy"), oracle(x)
    error = np.abs(got - want).max(initial=0) / np.abs(want).max(initial=1e-30) if got.shape == want.shape else np.inf
    expect(error <= 1e-5, f"{rows} rows: {got.shape}, error {error:.1e}")
finish()
