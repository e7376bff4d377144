# RUN: %python %s heedc
# RUN: %python %s heedc --set=nu=3
"""Schlag et al. 2021, section 4.2: W_t = W_{t-1} + beta_t (v_t - W_{t-1} phi(k_t)) phi(k_t), o_t = W_t phi(q_t), beta_t = sigmoid(w x_t + b), phi of
section 5.3 (DPFP) divided by its sum, by a loop over steps. The same by one triangular system: u_t = beta_t (v_t - sum_{j < t} k_t.k_j u_j) is what
step t adds along its key, o_i = sum_{j <= i} q_i.k_j u_j."""
import sys

import numpy as np
from zoo import check, f64, linear, linear_weights, uniform

NU = next((int(a.split("=")[-1]) for a in sys.argv if "nu=" in a), 2)


def phi(x):
    r = np.maximum(np.concatenate([x, -x], -1), 0)
    y = np.concatenate([r * np.roll(r, -j, -1) for j in range(1, NU + 1)], -1)
    return y / y.sum(-1, keepdims=True)


def steps(q, k, v, beta):
    """One head; q and k are features."""
    w, o = np.zeros((v.shape[1], k.shape[1])), np.zeros(v.shape)
    for t in range(len(q)):
        w = w + beta[t] * np.outer(v[t] - w @ k[t], k[t])
        o[t] = w @ q[t]
    return o


def system(q, k, v, beta):
    u = np.linalg.solve(np.eye(len(k)) + beta[:, None] * np.tril(k @ k.T, -1), beta[:, None] * v)
    return np.tril(q @ k.T) @ u


def oracle(inputs, weights):
    q, k, v, x = f64(*(inputs[n] for n in ("q", "k", "v", "x")))
    q, k = phi(q), phi(k)
    beta = 1 / (1 + np.exp(-linear(x, weights, "beta"))).transpose(0, 2, 1)
    o = np.zeros(v.shape)
    for b, h in np.ndindex(*o.shape[:2]):
        o[b, h] = steps(q[b, h], k[b, h], v[b, h], beta[b, h])
        np.testing.assert_allclose(system(q[b, h], k[b, h], v[b, h], beta[b, h]), o[b, h], rtol=0, atol=1e-11)
    return {"o": o}


def case(b, h, n, e, f, d):
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f), x=uniform(rng, b, n, d))
    return inputs, linear_weights(rng, "beta", h, d)


rng = np.random.default_rng(334)
cases = [case(*sizes) for sizes in [(2, 3, 17, 5, 7, 6), (1, 2, 140, 8, 16, 24), (1, 1, 1, 8, 1, 1), (3, 2, 1, 4, 4, 2), (2, 2, 0, 4, 4, 3), (1, 1, 263, 9, 33, 5),
                                    (1, 1, 131, 2, 8, 8), (2, 2, 20, 1, 3, 4)]]
# Rates at their ends: head 0 writes with 0 or 1 by the sign of a channel, head 1 always with 1, head 2 never (e^-200).
inputs, weights = case(1, 3, 137, 8, 8, 4)
inputs["x"][0, :, 0] = np.where(rng.uniform(size=137) < 0.5, -1, 1)
weights["beta.weight"][:] = 0
weights["beta.weight"][0, 0] = 200
weights["beta.bias"][:] = 0, 200, -200
cases.append((inputs, weights))
check("linear/delta-rule", oracle, cases)
