# RUN: %python %s %heed_bin %t
"""Attention whose queries go to several pipelines, each some of them: any number of queries, more and fewer keys, queries that are
as many as keys, results that are written with heads merged; against float64 NumPy."""
import pathlib
import sys

import numpy as np

from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
MODELS = {
    "cross": """model cross(q: f32[H, N, 20], k: f32[H, M, 20], v: f32[H, M, 24]) {
  s[h, i, j] = sum(e) q[h, i, e] * k[h, j, e] / 4
  p[h, i, j] = softmax(j) s[h, i, j]
  return o[h, i, f] = sum(j) p[h, i, j] * v[h, j, f]
}""",
    "self": """model self(q: f32[N, H, 20], k: f32[N, H, 20], v: f32[N, H, 24]) {
  s[h, i, j] = sum(e) q[i, h, e] * k[j, h, e] / 4
  p[h, i, j] = softmax(j) s[h, i, j]
  o[h, i, f] = sum(j) p[h, i, j] * v[j, h, f]
  return m[i, h, f] = o[h, i, f]
}""",
}


def oracle(q, k, v, heads):
    q, k, v = (np.moveaxis(a.astype(np.float64), heads, 0) for a in (q, k, v))
    s = q @ k.swapaxes(1, 2) / 4
    p = np.exp(s - s.max(-1, keepdims=True))
    return np.moveaxis(p / p.sum(-1, keepdims=True) @ v, 0, heads)


random = np.random.default_rng(4)
for name, text in MODELS.items():
    (folder / f"{name}.heed").write_text(text)
    for target in ("host", "x86-64-v3"):
        program = folder / f"{name}-{target}"
        made = run(heedc, folder / f"{name}.heed", f"--target={target}", "-o", program)
        expect(made.returncode == 0, made.stderr)
        for number, n in enumerate((0, 1, 2, 3, 8, 9, 15, 16, 17, 18, 24, 25, 31, 32, 33, 40, 48, 49, 64, 65, 81, 99, 129, 513, 530)):
            m = n if name == "self" else (70, 1, 200)[number % 3]
            shape = (lambda x, e: (2, x, e)) if name == "cross" else (lambda x, e: (x, 2, e))
            arrays = {"q": shape(n, 20), "k": shape(m, 20), "v": shape(m, 24)}
            command = [program, f"--threads={1 + number % 2 * 2}", "--output", folder / "o.npy"]
            for key, size in arrays.items():
                arrays[key] = random.uniform(-1, 1, size).astype(np.float32)
                np.save(folder / f"{key}.npy", arrays[key])
                command += ["--" + key, folder / f"{key}.npy"]
            done = run(*command)
            expect(done.returncode == 0, f"{name} {target} {n}: {done.stderr}")
            if done.returncode == 0 and n > 0:
                found, wanted = np.load(folder / "o.npy"), oracle(**arrays, heads=0 if name == "cross" else 1)
                expect(found.shape == wanted.shape and np.abs(found - wanted).max() < 1e-5, f"{name} {target} {n} x {m}: differs")
finish()
