# RUN: %python %s heedc
"""Ainslie et al. 2023, section 2.2: multi-head attention whose keys and values are those of the head's group, here by copying each group's
projection to its heads. One group (multi-query) and one group per head (multi-head) are among the cases. Causal."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    x, wq, wk, wv, wo = f64(inputs["x"], *(weights[n + ".weight"] for n in ("query", "key", "value", "output")))
    heads, size = wq.shape[:2]
    wk, wv = (np.repeat(w, heads // len(w), axis=0) for w in (wk, wv))
    y = np.zeros(x.shape)
    for h in range(heads):
        a = softmax((x @ wq[h].T) @ (x @ wk[h].T).swapaxes(-1, -2) / np.sqrt(size), np.tri(x.shape[1], dtype=bool))
        y += a @ (x @ wv[h].T) @ wo[:, h].T
    return {"y": y}


rng = np.random.default_rng(301)
cases = []
for b, n, d, h, g, e in [(2, 9, 16, 4, 2, 4), (1, 131, 8, 6, 3, 5), (2, 7, 12, 3, 1, 4), (1, 20, 8, 3, 3, 3), (1, 1, 3, 1, 1, 1)]:
    weights = {"query.weight": uniform(rng, h, e, d), "key.weight": uniform(rng, g, e, d), "value.weight": uniform(rng, g, e, d)}
    weights = {name: w / np.float32(d**0.5) for name, w in weights.items()} | {"output.weight": uniform(rng, d, h, e)}
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("heads/gqa", oracle, cases)
