# RUN: %python %s heedc
"""Dai et al. 2019, section 3.3: A_ij = q_i k_j + q_i r_(i-j) + u k_j + v r_(i-j), r_t = W_kR R_t, R_t sinusoids of the distance t.

Positions count from the memory's first row, so that query i stands at i + (M - N).
"""
import numpy as np
from zoo import check, f64, softmax, uniform


def sinusoids(t, d):
    angles = t / 10000 ** (np.arange(0, d, 2) / d)
    return np.concatenate([np.sin(angles), np.cos(angles)])


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["value"])
    wkr, u, vb = f64(weights["r_net.weight"], weights["r_w_bias"], weights["r_r_bias"])
    n, m = q.shape[2], k.shape[2]
    r = [wkr @ sinusoids(t, wkr.shape[-1]) for t in range(m)]  # H x E each
    s, live = np.zeros(q.shape[:3] + (m,)), np.zeros((n, m), bool)
    for i in range(n):
        for j in range(i + (m - n) + 1):
            far = r[i + (m - n) - j]
            terms = q[:, :, i] * k[:, :, j] + q[:, :, i] * far + u * k[:, :, j] + vb * far
            s[:, :, i, j], live[i, j] = terms.sum(-1), True
    return {"o": softmax(s / np.sqrt(q.shape[-1]), live) @ v}


rng = np.random.default_rng(107)
cases = []
for b, h, n, m, e, f in [(1, 2, 135, 135, 4, 8), (1, 1, 17, 150, 8, 4), (2, 3, 5, 12, 16, 16), (1, 1, 1, 1, 4, 4), (1, 2, 1, 9, 4, 4)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), value=uniform(rng, b, h, m, f))
    weights = {"r_net.weight": uniform(rng, h, e, 32) * np.float32(32**-0.5), "r_w_bias": uniform(rng, h, e), "r_r_bias": uniform(rng, h, e)}
    cases.append((inputs, weights))
check("position/txl-relative", oracle, cases)
