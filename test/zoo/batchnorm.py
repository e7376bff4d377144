# RUN: %python %s heedc
"""Ioffe and Szegedy 2015, algorithm 2: gamma (x - E[x]) / sqrt(Var[x] + eps) + beta with stored moments, folded into the linear layer
behind it here: W' = W diag(gamma / sqrt(Var + eps)), c' = c + W (beta - gamma E / sqrt(Var + eps))."""
import numpy as np
from zoo import check, f64, linear_weights, uniform


def oracle(inputs, weights, eps=1e-5):
    x, w, c = f64(inputs["x"], weights["linear.weight"], weights["linear.bias"])
    gamma, beta, mean, var = f64(*(weights["norm." + n] for n in ("weight", "bias", "running_mean", "running_var")))
    slope = gamma / np.sqrt(var + eps)
    return {"y": x @ (w * slope).T + (c + w @ (beta - mean * slope))}


rng = np.random.default_rng(414)
cases = []
for b, n, d, o in [(2, 9, 17, 5), (1, 131, 8, 8), (2, 1, 1, 3), (1, 0, 4, 4)]:
    weights = linear_weights(rng, "linear", o, d) | {"norm.weight": uniform(rng, d), "norm.bias": uniform(rng, d)}
    weights |= {"norm.running_mean": uniform(rng, d), "norm.running_var": uniform(rng, d) ** 2}
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("norm-residual/batchnorm", oracle, cases)
