# RUN: %python %s heedc
"""Lin et al. 2022, section 4.1.1.1: global rows attend all, all others the global rows alone. Learned rows stand before the sequence."""
import numpy as np
from zoo import check, heads, linear, linear_weights, merge, softmax, uniform


def oracle(inputs, weights, count=2):
    nodes = weights["nodes"].astype(np.float64)
    out = []
    for x, internal in zip(inputs["x"], inputs["internal"]):
        y = np.concatenate([nodes, x])[None]
        marked = set(range(len(nodes))) | {len(nodes) + i for i in np.flatnonzero(internal)}
        live = np.array([[i in marked or j in marked for j in range(y.shape[1])] for i in range(y.shape[1])])
        q, k, v = (heads(linear(y, weights, name), count) for name in ("query", "key", "value"))
        a = softmax(np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(q.shape[-1]), live)
        out.append(linear(merge(a @ v), weights, "output")[0])
    return {"z": np.array(out)}


rng = np.random.default_rng(305)
cases = []
for b, n, d, nodes, density in [(2, 21, 8, 3, 0.1), (1, 150, 16, 2, 0.02), (2, 6, 4, 1, 0), (1, 1, 4, 1, 1)]:
    weights = {"nodes": uniform(rng, nodes, d)}
    for name in ("query", "key", "value", "output"):
        weights |= linear_weights(rng, name, d, d)
    cases.append((dict(x=uniform(rng, b, n, d), internal=rng.random((b, n)) < density), weights))
check("sparse/global-attention", oracle, cases)
