# RUN: %python %s heedc
"""Zhang et al. 2021, section 3: level 1 attends within 3 positions; level 2 projects its output again and attends the means of 5 rows, 4 apart,
within 2 pooled rows of its own; the sum of both levels is projected."""
import numpy as np
from zoo import check, heads, linear, linear_weights, merge, softmax, uniform


def attend(q, k, v, keys):
    out = np.zeros(q.shape)
    for i in range(q.shape[2]):
        chosen = [c for c in keys(i) if 0 <= c < k.shape[2]]
        s = np.einsum("bhe,bhce->bhc", q[:, :, i], k[:, :, chosen]) / np.sqrt(q.shape[-1])
        out[:, :, i] = np.einsum("bhc,bhce->bhe", softmax(s), v[:, :, chosen])
    return out


def pool(x):
    return np.stack([x[:, :, start:start + 5].mean(2) for start in range(0, x.shape[2], 4)], 2)


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    q, k, v = (heads(linear(x, weights, "first." + name), 2) for name in ("query", "key", "value"))
    y = merge(attend(q, k, v, lambda i: range(i - 3, i + 4)))
    q, k, v = (heads(linear(y, weights, "second." + name), 2) for name in ("query", "key", "value"))
    z = merge(attend(q, pool(k), pool(v), lambda i: range(i // 4 - 2, i // 4 + 3)))
    return {"z": linear(y + z, weights, "output")}


rng = np.random.default_rng(345)
cases = []
for b, n, d in [(2, 30, 8), (1, 421, 8), (1, 4, 4), (1, 1, 4)]:
    weights = linear_weights(rng, "output", d, d)
    for name in ("query", "key", "value"):
        weights |= linear_weights(rng, "first." + name, d, d) | linear_weights(rng, "second." + name, d, d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("memory-compression/poolingformer", oracle, cases)
