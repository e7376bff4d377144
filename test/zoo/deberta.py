# RUN: %python %s heedc
"""He et al. 2021, equations 2 to 4: A_ij = Qc_i Kc_j + Qc_i Kr_delta(i,j) + Kc_j Qr_delta(j,i), softmax(A / sqrt(3d)) Vc.

delta(i, j) is 0 for i - j <= -k, 2k - 1 for i - j >= k, and i - j + k between.
"""
import numpy as np
from zoo import check, heads, linear, linear_weights, merge, softmax, uniform

HEADS = 4


def delta(i, j, k):
    return 0 if i - j <= -k else 2 * k - 1 if i - j >= k else i - j + k


def oracle(inputs, weights):
    x = inputs["h"].astype(np.float64)
    n, table = x.shape[1], weights["rel_embeddings.weight"].astype(np.float64)
    q, k, v = (heads(linear(x, weights, "content." + name), HEADS) for name in ("query", "key", "value"))
    qr, kr = (heads(table[None] @ weights[f"pos_{name}.weight"].astype(np.float64).T, HEADS)[0] for name in ("query", "key"))
    s = q @ k.swapaxes(-1, -2)
    for i in range(n):
        for j in range(n):
            s[:, :, i, j] += (q[:, :, i] * kr[:, delta(i, j, len(table) // 2)]).sum(-1)
            s[:, :, i, j] += (k[:, :, j] * qr[:, delta(j, i, len(table) // 2)]).sum(-1)
    live = np.arange(n) < inputs["length"][:, None, None, None]
    return {"y": linear(merge(softmax(s / np.sqrt(3 * q.shape[-1]), live) @ v), weights, "output")}


rng = np.random.default_rng(108)
cases = []
for lengths, n, d, k in [([9, 4, 0], 9, 16, 3), ([140], 140, 8, 5), ([40, 33], 40, 32, 64), ([1], 1, 4, 1)]:
    weights = {"rel_embeddings.weight": uniform(rng, 2 * k, d)}
    for name in ("content.query", "content.key", "content.value", "output"):
        weights |= linear_weights(rng, name, d, d)
    for name in ("pos_query", "pos_key"):
        weights[name + ".weight"] = uniform(rng, d, d) * np.float32(d**-0.5)
    cases.append((dict(h=uniform(rng, len(lengths), n, d), length=np.array(lengths, np.int32)), weights))
check("position/deberta", oracle, cases)
