# RUN: %python %s heedc
"""Ying et al. 2021, equations 5 to 9, on drawn undirected graphs: shortest paths by breadth-first search, of their edges the first P.

h = x + z_in[deg] + z_out[deg]; A_ij = q_i k_j / sqrt(d) + b_phi(i,j) + mean_n x_(e_n) w_n; h' = MHA(LN(h)) + h; h = FFN(LN(h')) + h'.
"""
import math
from collections import deque

import numpy as np
from zoo import check, f64, heads, layer_norm, linear, linear_weights, merge, norm_weights, softmax, uniform


def shortest_paths(n, edges):
    """paths[i][j]: numbers of the edges from i to j, None where there is no path."""
    paths = []
    for start in range(n):
        found, queue = {start: []}, deque([start])
        while queue:
            at = queue.popleft()
            for number, (a, c) in enumerate(edges):
                to = c if at == a else a if at == c else None
                if to is not None and to not in found:
                    found[to] = found[at] + [number]
                    queue.append(to)
        paths.append([found.get(end) for end in range(n)])
    return paths


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def oracle(inputs, weights):
    x, edge = f64(inputs["x"], inputs["edge"])
    zin, zout, spatial, w = f64(*(weights[n + ".weight"] for n in ("in_degree", "out_degree", "spatial", "edge")))
    n, reach = x.shape[1], len(w)
    bias = np.zeros((len(x), 4, n, n))
    for g, i, j in np.ndindex(len(x), n, n):
        distance = inputs["spd"][g, i, j]
        row = 0 if distance < 0 else min(distance + 1, len(spatial) - 1)
        bias[g, :, i, j] = spatial[row]
        on_path = inputs["path"][g, i, j][: min(max(distance, 0), reach)]
        if len(on_path):
            bias[g, :, i, j] += sum(w[place] @ edge[g, number] for place, number in enumerate(on_path)) / len(on_path)
    live = np.arange(n) < inputs["count"][:, None, None, None]
    h = x + zin[inputs["indegree"]] + zout[inputs["outdegree"]]
    for at in ("layer.0.", "layer.1."):
        y = layer_norm(h, weights, at + "norm1")
        q, k, v = (heads(linear(y, weights, at + name), 4) for name in ("query", "key", "value"))
        p = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + bias, live)
        h = h + linear(merge(p @ v), weights, at + "output")
        h = h + linear(gelu(linear(layer_norm(h, weights, at + "norm2"), weights, at + "up")), weights, at + "down")
    return {"y": h}


rng = np.random.default_rng(215)
cases = []
for counts, n, d, reach, rows in [([7, 3, 0], 8, 16, 3, 5), ([1], 1, 4, 2, 3), ([130], 132, 8, 4, 7)]:
    b, most, features = len(counts), max(1, max(counts)), 3
    spd, path = np.full((b, n, n), -1, np.int32), np.full((b, n, n, reach), -1, np.int32)
    degree = np.zeros((b, n), np.int32)
    for g, count in enumerate(counts):
        # A chain with a gap, so that some pairs have no path, and a chord.
        edges = [(i, i + 1) for i in range(count - 1) if i != count - 3] + ([(0, 3)] if count > 5 else [])
        for a, c in edges:
            degree[g, a] += 1
            degree[g, c] += 1
        for i, row in enumerate(shortest_paths(count, edges)):
            for j, numbers in enumerate(row):
                if numbers is not None:
                    spd[g, i, j] = len(numbers)
                    path[g, i, j, : len(numbers)] = numbers[:reach]
    inputs = dict(x=uniform(rng, b, n, d), indegree=degree, outdegree=degree.copy(), count=np.array(counts, np.int32), spd=spd, path=path)
    inputs["edge"] = uniform(rng, b, most, features)
    weights = {"in_degree.weight": uniform(rng, 4, d), "out_degree.weight": uniform(rng, 4, d)}
    weights |= {"spatial.weight": uniform(rng, rows, 4), "edge.weight": uniform(rng, reach, 4, features)}
    for at in ("layer.0.", "layer.1."):
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, at + name, d, d)
        weights |= linear_weights(rng, at + "up", 64, d) | linear_weights(rng, at + "down", d, 64)
        weights |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    cases.append((inputs, weights))
check("prior/graphormer", oracle, cases)
