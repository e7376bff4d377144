# RUN: %python %s heedc
"""Bhojanapalli et al. 2020: heads of a size that is neither D/H nor a power of two, up to the length of the sequence and beyond it;
concat(head_1 .. head_H) W_o with one wide matrix each."""
import numpy as np
from zoo import check, f64, heads, merge, softmax, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    h, e, d = weights["query.weight"].shape
    wide = [w.reshape(h * e, d) for w in f64(*(weights[n + ".weight"] for n in ("query", "key", "value")))]
    q, k, v = (heads(x @ w.T, h) for w in wide)
    o = softmax(np.einsum("bhie,bhje->bhij", q, k) * e**-0.5) @ v
    return {"y": merge(o) @ weights["output.weight"].reshape(d, h * e).astype(np.float64).T}


rng = np.random.default_rng(302)
cases = []
for b, n, d, h, e in [(2, 9, 16, 4, 9), (1, 131, 8, 2, 37), (1, 12, 6, 3, 100), (2, 1, 4, 4, 1), (1, 5, 8, 3, 7)]:
    weights = {name + ".weight": uniform(rng, h, e, d) / np.float32(d**0.5) for name in ("query", "key", "value")}
    cases.append((dict(x=uniform(rng, b, n, d)), weights | {"output.weight": uniform(rng, d, h, e)}))
check("heads/fixed-head-size", oracle, cases)
