# RUN: %python %s heedc
# RUN: %python %s heedc --set=map=exp
# RUN: %python %s heedc --set=map=relu
"""Lin et al. 2022, equation 14: z_i = sum_j sim(q_i, k_j) v_j / sum_j sim(q_i, k_j). By the kernels themselves: (q . k)^2 for the outer
product; sum_e exp(q_e + k_e) for exp; the ReLU's by its features."""
import sys

import numpy as np
from zoo import check, f64, uniform

MAP = next((a.split("=")[-1] for a in sys.argv if "map=" in a), "square")


def similarity(q, k):
    if MAP == "square":
        return (q @ k.swapaxes(-1, -2)) ** 2
    if MAP == "exp":
        return np.exp(q[..., :, None, :] + k[..., None, :, :]).sum(-1)
    return np.einsum("bhie,bhje->bhij", np.maximum(q, 0) + 0.001, np.maximum(k, 0) + 0.001)


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    a = similarity(q, k)
    return {"o": a / a.sum(-1, keepdims=True) @ v}


rng = np.random.default_rng(321)
cases = []
for b, h, n, m, e, f in [(2, 3, 17, 23, 6, 5), (1, 1, 150, 140, 8, 8), (1, 1, 1, 1, 4, 4)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), v=uniform(rng, b, h, m, f)), None))
check("linear/kernel-attention-generic", oracle, cases)
