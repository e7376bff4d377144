# RUN: %python %s heedc
"""Liu et al. 2018, section 4.2.4: keys and values through a convolution of width 3 and stride 3; a query sees the windows that have ended."""
import numpy as np
from zoo import check, heads, linear, linear_weights, merge, softmax, uniform


def conv(x, weights, at):
    w = weights[f"{at}.weight"].astype(np.float64)
    rows = [np.einsum("biu,oui->bo", x[:, start:start + 3].swapaxes(1, 2), w.swapaxes(1, 2)) for start in range(0, x.shape[1] - 2, 3)]
    return np.stack(rows, 1) + weights[f"{at}.bias"] if rows else x[:, :0]


def oracle(inputs, weights, count=2):
    x = inputs["x"].astype(np.float64)
    q = heads(linear(x, weights, "query"), count)
    k = heads(conv(linear(x, weights, "key"), weights, "compress_key"), count)
    v = heads(conv(linear(x, weights, "value"), weights, "compress_value"), count)
    out = np.zeros(q.shape)
    for i in range(q.shape[2]):
        seen = (i + 1) // 3
        s = np.einsum("bhe,bhce->bhc", q[:, :, i], k[:, :, :seen]) / np.sqrt(q.shape[-1])
        out[:, :, i] = np.einsum("bhc,bhce->bhe", softmax(s), v[:, :, :seen])
    return {"y": linear(merge(out), weights, "output")}


rng = np.random.default_rng(342)
cases = []
for b, n, d in [(2, 20, 8), (1, 421, 16), (1, 3, 4), (1, 2, 4), (1, 1, 4)]:
    weights = {}
    for name in ("query", "key", "value", "output"):
        weights |= linear_weights(rng, name, d, d)
    for name in ("compress_key", "compress_value"):
        weights |= {f"{name}.weight": uniform(rng, d, d, 3) * np.float32((3 * d) ** -0.5), f"{name}.bias": uniform(rng, d)}
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("memory-compression/memory-compressed-attention", oracle, cases)
