# RUN: %python %s heedc
"""Ke et al. 2021, section 3: (x_i W^Q)(x_j W^K) / sqrt(2d) + reset((p_i U^Q)(p_j U^K) / sqrt(2d) + b_(j-i)).

reset puts theta1 into the row of [CLS] and theta2 into the rest of its column.
"""
import numpy as np
from zoo import check, heads, linear, linear_weights, merge, softmax, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    n, d = x.shape[1:]
    q, k, v = (heads(linear(x, weights, "content." + name), 4) for name in ("query", "key", "value"))
    p = weights["position"].astype(np.float64)
    uq, uk = (p @ weights[f"position.{name}.weight"].astype(np.float64).T for name in ("query", "key"))
    bias, e = weights["relative_bias"].astype(np.float64), d // 4
    position = np.zeros((4, n, n))
    for h in range(4):
        for i in range(n):
            for j in range(n):
                v_ij = uq[i, h * e : (h + 1) * e] @ uk[j, h * e : (h + 1) * e] / np.sqrt(2 * e) + bias[h, j - i + len(p) - 1]
                position[h, i, j] = weights["theta1"][h] if i == 0 else weights["theta2"][h] if j == 0 else v_ij
    s = q @ k.swapaxes(-1, -2) / np.sqrt(2 * e) + position
    return {"y": linear(merge(softmax(s) @ v), weights, "output")}


rng = np.random.default_rng(109)
cases = []
for b, n, d, t in [(2, 9, 16, 12), (1, 135, 8, 135), (2, 33, 32, 64), (1, 1, 4, 1), (1, 2, 4, 7)]:
    weights = {"position": uniform(rng, t, d), "relative_bias": uniform(rng, 4, 2 * t - 1), "theta1": uniform(rng, 4), "theta2": uniform(rng, 4)}
    for name in ("content.query", "content.key", "content.value", "output"):
        weights |= linear_weights(rng, name, d, d)
    for name in ("position.query", "position.key"):
        weights[name + ".weight"] = uniform(rng, d, d) * np.float32(d**-0.5)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("position/tupe", oracle, cases)
