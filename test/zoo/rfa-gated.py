# RUN: %python %s heedc
"""Peng et al. 2021, section 3.2: S_t = g_t S_{t-1} + (1 - g_t) phi(k_t) v_t, z_t likewise without v_t, o_t = phi(q_t) S_t / phi(q_t).z_t, with
g_t = sigmoid(w x_t + b) and phi(x) = [sin w x, cos w x] / sqrt(R) of x / |x|. phi(q) phi(k) is the mean of cos(w (q - k)), and key j weighs
(1 - g_j) g_{j+1} .. g_i at step i: the oracle is that quadratic form, the recurrence is run beside it."""
import numpy as np
from zoo import check, f64, linear, linear_weights, uniform


def steps(q, k, v, g, omega):
    """One head; q and k of length 1."""
    phi = lambda x: np.concatenate([np.sin(omega @ x), np.cos(omega @ x)]) / np.sqrt(len(omega))
    s, z, o = np.zeros((2 * len(omega), v.shape[1])), np.zeros(2 * len(omega)), np.zeros(v.shape)
    for t in range(len(q)):
        s = g[t] * s + (1 - g[t]) * np.outer(phi(k[t]), v[t])
        z = g[t] * z + (1 - g[t]) * phi(k[t])
        o[t] = phi(q[t]) @ s / (phi(q[t]) @ z)
    return o


def oracle(inputs, weights):
    q, k, v, x = f64(*(inputs[n] for n in ("q", "k", "v", "x")))
    omega = weights["omega"].astype(np.float64)
    q, k = (y / np.linalg.norm(y, axis=-1, keepdims=True) for y in (q, k))
    g = 1 / (1 + np.exp(-linear(x, weights, "gate"))).transpose(0, 2, 1)
    n = q.shape[2]
    w = np.zeros((*g.shape, n))
    for i in range(n):
        for j in range(i + 1):
            w[:, :, i, j] = (1 - g[:, :, j]) * g[:, :, j + 1 : i + 1].prod(-1)
    a = w * np.cos((q[..., :, None, :] - k[..., None, :, :]) @ omega.T).mean(-1)
    assert (a.sum(-1) > 0.1 * w.sum(-1)).all()  # no denominator near 0
    o = a @ v / a.sum(-1, keepdims=True)
    for b, h in np.ndindex(*o.shape[:2]):
        np.testing.assert_allclose(steps(q[b, h], k[b, h], v[b, h], g[b, h], omega), o[b, h], rtol=0, atol=1e-11)
    return {"o": o}


def case(b, h, n, e, f, d, r):
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f), x=uniform(rng, b, n, d))
    weights = {"omega": rng.standard_normal((r, e)).astype(np.float32) / 2} | linear_weights(rng, "gate", h, d)
    return inputs, weights


rng = np.random.default_rng(332)
cases = [case(*sizes) for sizes in [(2, 3, 17, 8, 5, 6, 12), (1, 2, 140, 8, 16, 24, 16), (1, 1, 1, 4, 4, 1, 3), (3, 2, 1, 4, 1, 2, 5), (2, 2, 0, 4, 4, 3, 4),
                                    (1, 1, 133, 5, 9, 7, 17)]]
# Gates at their ends: head 0 takes g = 0 or 1 by the sign of a channel (a step keeps the state or replaces it; e^-200 is the other's share), head 1
# always replaces it, head 2 forgets slowly.
inputs, weights = case(1, 3, 137, 8, 8, 4, 16)
inputs["x"][0, :, 0] = np.where(rng.uniform(size=137) < 0.3, -1, 1)
inputs["x"][0, 0, 0] = -1
weights["gate.weight"][:] = 0
weights["gate.weight"][0, 0] = 200
weights["gate.bias"][:] = 0, -200, 4
cases.append((inputs, weights))
check("linear/rfa-gated", oracle, cases)
