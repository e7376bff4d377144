"""parts.mlir against NumPy, with walls around every array."""
import sys

import numpy as np

from guarded import GuardedModel
from runs import expect, finish

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
text = text[text.index("func.func"):text.rindex("}")]  # for this machine
rng = np.random.default_rng(5)
for t in (5, 20, 32):
    model = GuardedModel(text.replace("x20x", f"x{t}x").replace("constant 20", f"constant {t}"), f"{sys.argv[2]}/{t}", checks=False)
    for b, n in ((1, 1), (2, 9), (3, 300), (0, 4), (1, 0)):
        x, c = rng.uniform(-1, 1, (b, n, 2 * t)).astype(np.float32), rng.uniform(-1, 1, (n, t)).astype(np.float32)
        want = np.concatenate([x[..., :t] - x[..., t:] * c, x[..., t:] + x[..., :t] * c], -1)
        for got in model.both(x, c):
            expect(got.shape == want.shape and np.abs(got - want).max(initial=0) < 1e-6, f"t = {t}, {b} x {n}")
finish()
