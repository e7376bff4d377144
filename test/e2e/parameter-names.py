# RUN: %python %s %heed_bin %t
"""Numbers in a parameter's name are arithmetic over the loops around it. The weights hold the arrays that some turn reads and no
others; against float64 NumPy, compiled with the file and without, by both backends."""
import pathlib
import shutil
import sys

import numpy as np

import safetensors_file
from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
# The matrix is packed when the model is opened, the rows are read in every call.
BODY = """{
  y[n, d] = x[n, d]
  for l in 0..3 {
    param a: f32[1] @ "a.{l}.{l % 2}"
    for k in 0..2 {
      param w: f32[4, 4] @ "w.FIRST"
      param b: f32[4] @ "b.SECOND"
      y[n, d] = a[0] * b[d] + sum(e) y[n, e] * w[d, e]
    }
  }
  return y
}
"""
# Odd ones alone; every one, twice; one for two turns; the last two turns share theirs; one of each pair; down to none.
NAMES = {"{2*l + 1}": lambda l, k: 2 * l + 1, "{2*l + k}": lambda l, k: 2 * l + k, "{l // 2}": lambda l, k: l // 2,
         "{min(l, 1)}": lambda l, k: min(l, 1), "{4*l + 2*k}": lambda l, k: 4 * l + 2 * k, "{2 - l}": lambda l, k: 2 - l,
         "{l * l}": lambda l, k: l * l, "7": lambda l, k: 7}
random = np.random.default_rng(3)
draw = lambda *shape: random.uniform(-0.6, 0.6, shape).astype(np.float32)
x = draw(5, 4)
np.save(folder / "x.npy", x)
for number, (first, second) in enumerate(zip(NAMES, [*NAMES][1:] + [*NAMES][:1])):
    turns = [(l, k) for l in range(3) for k in range(2)]
    weights = {f"a.{l}.{l % 2}": draw(1) for l in range(3)}
    weights |= {f"w.{n}": draw(4, 4) for n in {NAMES[first](*turn) for turn in turns}}
    weights |= {f"b.{n}": draw(4) for n in {NAMES[second](*turn) for turn in turns}}
    file, model = folder / f"{number}.safetensors", folder / f"{number}.heed"
    safetensors_file.write(file, weights)
    model.write_text("model m(x: f32[N, 4]) " + BODY.replace("FIRST", first).replace("SECOND", second))
    want = x.astype(np.float64)
    for l, k in turns:
        want = weights[f"a.{l}.{l % 2}"] * weights[f"b.{NAMES[second](l, k)}"].astype(np.float64) \
            + want @ weights[f"w.{NAMES[first](l, k)}"].astype(np.float64).T
    for options in ([], ["--weights", file], ["--backend=reference", "-O0"]):
        done = run(heedc, model, *options, "-o", folder / "m")
        expect(done.returncode == 0, f"{first}, {second}, {options}: {done.stderr}")
        done = run(folder / "m", "--x", folder / "x.npy", "--weights", file, "--output", folder / "y.npy")
        expect(done.returncode == 0, f"{first}, {second}, {options}: {done.stderr}")
        error = np.abs(np.load(folder / "y.npy") - want).max()
        expect(error <= 1e-6, f"{first}, {second}, {options}: largest difference {error:.1e}")
    # One that some turn reads is missing.
    gone = f"w.{NAMES[first](2, 1)}"
    safetensors_file.write(file, {name: array for name, array in weights.items() if name != gone})
    done = run(heedc, model, "--weights", file, "-o", folder / "none")
    expect(done.returncode == 1 and f"the weights have no '{gone}'" in done.stderr, f"{first}: {done.stderr}")
    done = run(folder / "m", "--x", folder / "x.npy", "--weights", file, "--output", folder / "y.npy")
    expect(done.returncode == 1 and f"'{gone}'" in done.stderr, f"{first}: {done.stderr}")

# A number beyond what any model has is refused before memory is.
(folder / "many.heed").write_text('model m(x: f32[N]) {\n  y[n] = x[n]\n  for l in 0..2000000000 {\n    param w: f32[1] @ "w.{l}"\n'
                                  "    y[n] = y[n] * w[0]\n  }\n  return y\n}\n")
done = run(heedc, folder / "many.heed", "-o", folder / "many")
expect(done.returncode == 1 and "4:5: error: the loops around this parameter have more than 1048576 turns" in done.stderr, done.stderr)
finish()
