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
finish()
