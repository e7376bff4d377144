# RUN: %python %s heedc
"""Pilault et al. 2021, section 3.1: Attention = softmax(M(z_i) + Q K' / sqrt(d)) V, M(z) = diag(A'_1 .. A'_m), A'_j = A_j gamma(z) + beta(z). The whole M
for all positions is put together from its blocks and cut to the sentence. Two sentences of one task, blocks of one position, a padded sentence."""
import numpy as np
from zoo import attention_weights, check, f64, heads, linear, merge, softmax, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    n = x.shape[1]
    A, Z, wg, wb, bg, bb = f64(*(weights[name] for name in (
        "conditional.blocks", "task.weight", "conditional.gamma.weight", "conditional.beta.weight", "conditional.gamma.bias", "conditional.beta.bias")))
    m, size, _ = A.shape
    q, k, v = (heads(linear(x, weights, "attention." + name), 4) for name in ("query", "key", "value"))
    o = np.zeros(q.shape)
    for b, length in enumerate(inputs["length"]):
        z, M = Z[inputs["task"][b]], np.zeros((m * size, m * size))
        for j in range(m):
            block = slice(j * size, (j + 1) * size)
            M[block, block] = A[j] * (wg @ z + bg) + (wb @ z + bb)
        s = q[b] @ k[b].swapaxes(1, 2) / np.sqrt(q.shape[3]) + M[:n, :n]
        o[b] = softmax(s[:, :, :length]) @ v[b, :, :length]
    return {"y": linear(merge(o), weights, "attention.output")}


rng = np.random.default_rng(420)
cases = []
for lengths, n, d, m, size, k, dz in [([9, 4, 0, 9], 9, 16, 3, 4, 3, 5), ([140], 140, 8, 10, 15, 2, 4),
                                      ([1], 1, 4, 1, 1, 1, 1), ([20, 7], 20, 12, 20, 1, 4, 3)]:
    weights = attention_weights(rng, "attention.", d) | {"conditional.blocks": uniform(rng, m, size, size), "task.weight": uniform(rng, k, dz)}
    for name in ("gamma", "beta"):
        weights |= {f"conditional.{name}.weight": uniform(rng, size, size, dz) * np.float32(dz**-0.5),
                    f"conditional.{name}.bias": uniform(rng, size, size)}
    task = np.minimum(rng.integers(0, k, len(lengths)), k - 1).astype(np.int32)
    task[-1] = task[0]
    cases.append((dict(x=uniform(rng, len(lengths), n, d), task=task, length=np.array(lengths, np.int32)), weights))
check("prior/camtl", oracle, cases)
