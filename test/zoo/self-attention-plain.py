# RUN: %python %s heedc
"""Xiao and Zhu 2023, equations 17 and 18: c_i = sum_j alpha_ij h_j, alpha_ij = exp(h_i h_j / sqrt d) / sum_k exp(h_i h_k / sqrt d)."""
import numpy as np
from zoo import check, uniform


def oracle(inputs, weights):
    h = inputs["h"].astype(np.float64)
    b, n, d = h.shape
    out = np.zeros(h.shape)
    for bb in range(b):
        for i in range(n):
            a = np.exp(h[bb] @ h[bb, i] / d**0.5)
            out[bb, i] = (a[:, None] * h[bb]).sum(0) / a.sum()
    return {"c": out}


rng = np.random.default_rng(103)
cases = [(dict(h=uniform(rng, *shape)), None) for shape in [(2, 7, 5), (1, 1, 1), (3, 1, 8), (1, 150, 16), (1, 33, 64)]]
check("core/self-attention-plain", oracle, cases)
