# RUN: %python %s heedc
"""Ahmed et al. 2017, equations 3 to 6: BranchedAttention = sum_i alpha_i FFN_i(head_i W_i^O kappa_i), sum alpha = sum kappa = 1, then LN(x + .); branch
after branch. One branch may have all the weight."""
import numpy as np
from zoo import check, f64, layer_norm, linear, linear_weights, norm_weights, softmax, uniform

HEADS = 4


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for at in ("layer.0.", "layer.1."):
        wo, kappa, alpha, w1, w2, b1, b2 = f64(*(weights[at + name] for name in (
            "output.weight", "kappa", "alpha", "up.weight", "down.weight", "up.bias", "down.bias")))
        q, k, v = (np.split(linear(x, weights, at + name), HEADS, -1) for name in ("query", "key", "value"))
        total = np.zeros(x.shape)
        for i in range(HEADS):
            head = softmax(q[i] @ k[i].swapaxes(1, 2) / np.sqrt(q[i].shape[2])) @ v[i]
            bar = head @ wo[i].T * kappa[i]
            total += alpha[i] * (np.maximum(bar @ w1[i].T + b1[i], 0) @ w2[i].T + b2[i])
        x = layer_norm(x + total, weights, at + "norm")
    return {"y": x}


rng = np.random.default_rng(422)
cases = []
for b, n, d, a in [(2, 9, 16, 5), (1, 135, 8, 8), (3, 1, 4, 3), (1, 40, 12, 33)]:
    weights = {}
    for at in ("layer.0.", "layer.1."):
        simplex = rng.dirichlet(np.ones(HEADS), 2).astype(np.float32) if d != 12 else np.eye(HEADS, dtype=np.float32)[[2, 2]]
        weights |= {at + "kappa": simplex[0], at + "alpha": simplex[1], at + "output.weight": uniform(rng, HEADS, d, d // HEADS)}
        weights |= {at + "up.weight": uniform(rng, HEADS, a, d) * np.float32(d**-0.5), at + "down.weight": uniform(rng, HEADS, d, a) * np.float32(a**-0.5),
                    at + "up.bias": uniform(rng, HEADS, a), at + "down.bias": uniform(rng, HEADS, d)} | norm_weights(rng, at + "norm", d)
        for name in ("query", "key", "value"):
            weights |= linear_weights(rng, at + name, d, d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("heads/weighted-transformer", oracle, cases)
