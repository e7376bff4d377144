# RUN: %python %s heedc
"""Chen et al. 2020, section 3.2, one sentence at a time: the cells' graphs as lists of (node, from, operation), convolutions as sums over rows of the
sequence that exist."""
import numpy as np
from zoo import check, linear, linear_weights, softmax, uniform

GRAPH = [(0, 0, "conv 3 1"), (0, 1, "mean"), (1, 0, "max"), (1, 1, "conv 3 2"), (1, 2, "skip")]
GRAPH += [(2, 1, "conv 5 1"), (2, 2, "conv 5 2"), (2, 3, "skip")]


def apply(x, name, w, at):
    rows = range(len(x))
    if name == "skip":
        return x
    if name in ("max", "mean"):
        return np.array([getattr(x[max(n - 1, 0) : n + 2], name)(0) for n in rows])
    _, width, step = name.split()
    y = np.zeros(x.shape) + w[at + ".bias"]
    for n in rows:
        for u in range(int(width)):
            m = n + (u - int(width) // 2) * int(step)
            if m in rows:
                y[n] += w[at + ".weight"][:, :, u].astype(np.float64) @ np.maximum(x[m], 0)
    return y


def oracle(inputs, w):
    out = []
    for ids in inputs["ids"]:
        x = y = w["embedding.weight"].astype(np.float64)[ids]
        for k in range(2):
            nodes = [x, y, 0, 0, 0]
            for j, i, name in GRAPH:
                nodes[2 + j] = nodes[2 + j] + apply(nodes[i], name, w, f"cell.{k}.{j}.{i}")
            a = softmax(w[f"cell.{k}.nodes"])
            x, y = y, sum(a[j] * nodes[2 + j] for j in range(3))
        out.append(linear(y.mean(0), w, "head"))
    return {"logits": np.array(out)}


rng = np.random.default_rng(620)
cases = []
for b, n, c in [(2, 13, 6), (1, 1, 3), (1, 139, 4), (1, 3, 5)]:
    w = {"embedding.weight": uniform(rng, 7, c)} | linear_weights(rng, "head", 3, c)
    for k in range(2):
        w |= {f"cell.{k}.nodes": uniform(rng, 3)}
        for j, i, name in GRAPH:
            if name.startswith("conv"):
                width = int(name.split()[1])
                at = f"cell.{k}.{j}.{i}"
                w |= {at + ".weight": uniform(rng, c, c, width) * np.float32((c * width) ** -0.5), at + ".bias": uniform(rng, c)}
    cases.append((dict(ids=rng.integers(0, 7, (b, n)).astype(np.int32)), w))
check("search-result/adabert", oracle, cases)
