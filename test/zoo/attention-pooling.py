# RUN: %python %s heedc
"""Liu and Lapata 2019, equations 9 to 13: a^z_j = W_a^z x_j, b^z_j = W_b^z x_j, head^z = sum_j softmax_j(a^z) b^z_j, y = LN(W_c [head^1 .. head^Z]).
Padding holds NaN; a paragraph of padding alone has zeros for its heads."""
import numpy as np
from zoo import check, f64, layer_norm, norm_weights, softmax, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    wa, wb, wc = f64(*(weights[n + ".weight"] for n in ("query", "value", "output")))
    blocks = np.split(wb, len(wa))
    y = np.zeros((len(x), x.shape[2]))
    for b, length in enumerate(inputs["length"]):
        tokens = x[b, :length]
        y[b] = wc @ np.concatenate([softmax(tokens @ a) @ tokens @ w.T for a, w in zip(wa, blocks)])
    return {"y": layer_norm(y, weights, "norm")}


rng = np.random.default_rng(417)
cases = []
for lengths, n, d in [([9, 4, 0, 1], 9, 16), ([300, 170], 300, 8), ([1], 1, 4), ([30], 40, 20)]:
    x = uniform(rng, len(lengths), n, d)
    for b, length in enumerate(lengths):
        x[b, length:] = np.nan
    weights = {"query.weight": uniform(rng, 4, d) * np.float32(d**-0.5)} | norm_weights(rng, "norm", d)
    weights |= {n + ".weight": uniform(rng, d, d) * np.float32(d**-0.5) for n in ("value", "output")}
    cases.append((dict(x=x, length=np.array(lengths, np.int32)), weights))
check("memory-compression/attention-pooling", oracle, cases)
