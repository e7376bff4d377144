# RUN: %python %s heedc
"""Xiao and Zhu 2023, equations 53 and 60: alpha Softmax(S) V + (1 - alpha) Softmax(S + M) V, each row in numbers of its own."""
import numpy as np
from zoo import check, f64, uniform


def average(scores, v):
    """Softmax of one row times v; a row of -inf alone gives zeros."""
    if not np.isfinite(scores).any():
        return np.zeros(v.shape[1])
    w = np.exp(scores - scores.max())
    return w[w > 0] @ v[w > 0] / w.sum()


def oracle(inputs, weights):
    q, k, v, mask = f64(inputs["q"], inputs["k"], inputs["v"], inputs["M"])
    alpha = inputs.get("alpha", 0.5)
    out = np.zeros(v.shape)
    for b, h, i in np.ndindex(*q.shape[:3]):
        row = np.array([q[b, h, i] @ key for key in k[b, h]]) / np.sqrt(q.shape[3])
        out[b, h, i] = alpha * average(row, v[b, h]) + (1 - alpha) * average(row + mask[b, i], v[b, h])
    return {"o": out}


rng = np.random.default_rng(103)
cases = []
shapes = [(2, 3, 11, 8, 5, {}), (1, 2, 137, 4, 4, {"alpha": 0.25}), (1, 1, 1, 4, 4, {})]
for b, h, n, e, f, given in shapes + [(1, 1, 7, 4, 4, {"alpha": alpha}) for alpha in (0.0, 1.0)]:
    q, k, v = uniform(rng, b, h, n, e), uniform(rng, b, h, n, e), uniform(rng, b, h, n, f)
    mask = np.where(rng.random((b, n, n)) < 0.4, -np.inf, uniform(rng, b, n, n)).astype(np.float32)
    mask[0, n // 2] = -np.inf  # a word without any relation
    cases.append((dict(q=q, k=k, v=v, M=mask) | given, None))
check("syntax/syntax-branch-mix", oracle, cases)
