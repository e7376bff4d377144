# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin %heed_src %t
"""Sizes that are 0 when compiling: what is left gives the results that the same sizes give when the program runs."""
import os
import pathlib
import re
import sys

import numpy as np

from runs import expect, finish, run

heedc, models = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]) / "models"
os.chdir(sys.argv[3])
SIZES = dict(B=2, H=4, G=4, N=5, M=7, E=3, F=6, D=8)
EMPTY = {"core/causal-attention": "BHNMEF", "linear/linear-attention-bidir": "BHNEF", "heads/talking-heads": "E"}
random = np.random.default_rng(7)
for model, names in EMPTY.items():
    source = models / (model + ".heed")
    done = run(heedc, source, "-o", "any")
    expect(done.returncode == 0, done.stderr)
    inputs = re.findall(r"^  --(\w+) FILE +f32\[(.*?)\]", run("./any", "--help").stdout, re.M)
    for name in names:
        sizes = {**SIZES, name: 0, **({"G": 0} if name == "H" else {})}
        arguments = []
        for k, (tensor, dims) in enumerate(inputs):
            np.save(f"{k}.npy", random.uniform(-1, 1, [sizes.get(d, 4) for d in dims.split(", ")]).astype("f"))
            arguments += ["--" + tensor, f"{k}.npy"]
        done = run(heedc, source, "--set", f"{name}=0", "-o", "known")
        expect(done.returncode == 0, f"{model}, {name} = 0: {done.stderr}")
        results = []
        for program in ("any", "known") if done.returncode == 0 else ():
            done = run("./" + program, *arguments, "--output", "o.npy")
            expect(done.returncode == 0, f"{model}, {name} = 0: {program}: {done.stderr}")
            results.append(np.load("o.npy") if done.returncode == 0 else None)
        if len(results) == 2 and results[0] is not None and results[1] is not None:
            expect(results[0].shape == results[1].shape and np.allclose(*results, atol=1e-6, equal_nan=True),
                   f"{model}, {name} = 0: {results[1]}, expected {results[0]}")

# A part of a join that is computed and has extent 0: its read stands behind a condition that is never true.
pathlib.Path("joined.heed").write_text("""model joined(a: f32[B, 0], c: f32[B, 2]) {
  z[b, n:0] = 2 * a[b, n]
  return y[b, n:2] = concat(n)(z[b, n], c[b, n])
}
""")
done = run(heedc, "joined.heed", "-o", "joined")
expect(done.returncode == 0, done.stderr)
np.save("a.npy", np.zeros((3, 0), "f"))
np.save("c.npy", np.arange(6, dtype="f").reshape(3, 2))
done = run("./joined", "--a", "a.npy", "--c", "c.npy", "--output", "o.npy")
expect(done.returncode == 0 and np.array_equal(np.load("o.npy"), np.load("c.npy")), f"joined: {done.stderr}")

# Heads of width 0, of which there are as many as a call brings, side by side.
pathlib.Path("merged.heed").write_text("""model merged(k: f32[B, H, M, 0]) {
  return o[b, m, h*0 + f] = k[b, h, m, f]
}
""")
done = run(heedc, "merged.heed", "-o", "merged")
expect(done.returncode == 0, done.stderr)
np.save("k.npy", np.zeros((2, 3, 5, 0), "f"))
done = run("./merged", "--k", "k.npy", "--output", "o.npy")
expect(done.returncode == 0 and np.load("o.npy").shape == (2, 5, 0), f"merged: {done.stderr}")

# And the way back: an axis that is written H*0 is empty, whatever H is.
pathlib.Path("split.heed").write_text("""model split(q: f32[B, N, H*0], k: f32[B, H, M, 0]) {
  return s[b, h:H, n, m] = sum(e:0) q[b, n, h*0 + e] * k[b, h, m, e]
}
""")
done = run(heedc, "split.heed", "-o", "split")
expect(done.returncode == 0, done.stderr)
np.save("q.npy", np.zeros((2, 4, 0), "f"))
done = run("./split", "--q", "q.npy", "--k", "k.npy", "--output", "o.npy")
expect(done.returncode == 0 and np.array_equal(np.load("o.npy"), np.zeros((2, 3, 4, 5))), f"split: {done.stderr}")
np.save("q.npy", np.zeros((2, 4, 3), "f"))
done = run("./split", "--q", "q.npy", "--k", "k.npy", "--output", "o.npy")
expect(done.returncode == 1 and "extent of 'q' (axis 2)" in done.stderr, f"split, not empty: {done.stderr}")

# A causal sum of an empty batch that has steps enough for a linear attention.
pathlib.Path("causal.heed").write_text("""model causal(q, k, v: f32[B, N, 4]) {
  return o[b, i:N, f] = sum(j:N where j < i) (sum(e) q[b, i, e] * k[b, j, e]) * v[b, j, f]
}
""")
done = run(heedc, "causal.heed", "--set", "B=0", "--set", "N=65", "-o", "causal")
expect(done.returncode == 0, done.stderr)
np.save("empty.npy", np.zeros((0, 65, 4), "f"))
done = run("./causal", *(x for name in "qkv" for x in ("--" + name, "empty.npy")), "--output", "o.npy")
expect(done.returncode == 0 and np.load("o.npy").shape == (0, 65, 4), f"causal: {done.stderr}")
finish()
