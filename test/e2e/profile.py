# RUN: %python %s %heed_bin %t
"""--profile: for each kernel its time, GFLOP/s, GB/s and share of a limit that is measured; the operations are those of the
equations. No time is asserted."""
import pathlib
import re
import shutil
import sys

import numpy as np

from runs import expect, finish, run

# A product, and one that is causal attention; the sizes are known in the call only.
MODELS = {
    "product": ("model product(x: f32[N, I], w: f32[I, O]) { return y[n, o] = sum(i) x[n, i] * w[i, o] }",
                {"x": (300, 500), "w": (500, 400)}, 2 * 300 * 500 * 400),
    "attention": ("""model attention(q: f32[N, E], k: f32[M, E], v: f32[M, F]) {
  s[i, j] = sum(e) q[i, e] * k[j, e]
  p[i, j] = softmax(j) s[i, j]
  return o[i, f] = sum(j) p[i, j] * v[j, f]
}""", {"q": (512, 64), "k": (600, 64), "v": (600, 48)}, 512 * 600 * (2 * 64 + 3 + 2 * 48)),
}
heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
random = np.random.default_rng(2)
for name, (text, shapes, flops) in MODELS.items():
    (folder / (name + ".heed")).write_text(text)
    done = run(heedc, folder / (name + ".heed"), "-o", folder / name)
    expect(done.returncode == 0, done.stderr)
    command = [folder / name, "--bench=3", "--profile"]
    for key, shape in shapes.items():
        np.save(folder / f"{key}.npy", random.uniform(-1, 1, shape).astype(np.float32))
        command += ["--" + key, folder / f"{key}.npy"]
    done = run(*command)
    expect(done.returncode == 0, done.stderr)
    limits = re.search(r"limits, measured now with \d+ threads: ([\d.]+) GFLOP/s .*, ([\d.]+) GB/s", done.stdout)
    expect(limits and float(limits[1]) > 0 and float(limits[2]) > 0, f"{name}: no limits in {done.stdout}")
    memory = re.search(r"memory: ([\d.]+) MB at most in this process; 0.0 MB of weights, 0.0 MB of packed copies, ([\d.]+) MB of buffers",
                       done.stdout)
    arrays = 4e-6 * sum(a * b for a, b in shapes.values())
    expect(memory and arrays < float(memory[1]) < 100 and float(memory[2]) < float(memory[1]), f"{name}: memory in {done.stdout}")
    rows = re.findall(r"^(\w+) +(\d+) +([\d.]+) +([\d.]+)% +([\d.]+) +([\d.]+) +([\d.]+)%$", done.stdout, re.M)
    expect(len(rows) == 1, f"{name}: expected one kernel with all numbers, found {done.stdout}")
    for _, calls, ms, _, gflops, _, _ in rows:
        # What is printed is rounded to a tenth.
        found, slack = float(gflops) * 1e6 * float(ms) / int(calls), 1e6 * float(ms) / int(calls) * 0.06
        expect(int(calls) == 3, f"{name}: {calls} calls")
        expect(abs(found - flops) <= slack + 0.002 * flops, f"{name}: {found:.4g} operations a call, expected {flops}")
finish()
