# RUN: %python %s heedc
# RUN: %python %s heedc --set=kind=max
# RUN: %python %s heedc --set=kind=dynamic
"""Xiao and Zhu 2023, equations 131 and 132: softmax(Q K'^T / sqrt(d) + M) V', K' and V' of windows of 4 rows (the last what is left): their
mean, their maximum, or a sum by softmax weights, whose logits are linear in the first row of the window (Wu et al. 2019)."""
import sys

import numpy as np
from zoo import check, f64, softmax, uniform

KIND = next((a.split("=")[-1] for a in sys.argv if "kind=" in a), "mean")


def pool(x, weight):
    rows = []
    for start in range(0, x.shape[2], 4):
        part = x[:, :, start:start + 4]
        if KIND == "mean":
            rows.append(part.mean(2))
        elif KIND == "max":
            rows.append(part.max(2))
        else:
            logits = np.einsum("hue,bhe->bhu", weight, part[:, :, 0])[..., :part.shape[2]]
            rows.append(np.einsum("bhu,bhue->bhe", softmax(logits), part))
    return np.stack(rows, 2)


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    k, v = pool(k, (weights or {}).get("key.weight")), pool(v, (weights or {}).get("value.weight"))
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return {"o": softmax(s, inputs["mask"][:, None]) @ v}


rng = np.random.default_rng(341)
cases = []
for b, h, n, m, e, f, density in [(2, 2, 17, 23, 8, 5, 0.6), (1, 1, 140, 541, 8, 8, 0.5), (1, 1, 1, 1, 4, 4, 1), (1, 1, 5, 8, 4, 4, 0)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), v=uniform(rng, b, h, m, f), mask=rng.random((b, n, -(-m // 4))) < density)
    weights = {"key.weight": uniform(rng, h, 4, e), "value.weight": uniform(rng, h, 4, f)} if KIND == "dynamic" else None
    cases.append((inputs, weights))
check("memory-compression/kv-pooling", oracle, cases)
