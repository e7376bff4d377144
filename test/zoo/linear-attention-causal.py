# RUN: %python %s heedc
"""Katharopoulos et al. 2020, equation 9, the masked quadratic form: o_i = sum_{j <= i} phi(q_i).phi(k_j) v_j / sum_{j <= i} phi(q_i).phi(k_j)
with phi = elu + 1. The recurrence of equations 16 to 20 is run beside it, step by step."""
import numpy as np
from zoo import check, f64, uniform


def phi(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def steps(q, k, v):
    """One head; q and k are features."""
    s, z, o = np.zeros((k.shape[1], v.shape[1])), np.zeros(k.shape[1]), np.zeros(v.shape)
    for t in range(len(q)):
        s = s + np.outer(k[t], v[t])
        z = z + k[t]
        o[t] = q[t] @ s / (q[t] @ z)
    return o


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    q, k = phi(q), phi(k)
    a = q @ k.swapaxes(-1, -2) * np.tri(q.shape[2])
    o = a @ v / a.sum(-1, keepdims=True)
    for b, h in np.ndindex(*o.shape[:2]):
        np.testing.assert_allclose(steps(q[b, h], k[b, h], v[b, h]), o[b, h], rtol=0, atol=1e-12)
    return {"o": o}


rng = np.random.default_rng(330)
cases = []
for b, h, n, e, f in [(2, 3, 17, 5, 7), (1, 2, 257, 16, 16), (1, 1, 1, 1, 1), (3, 1, 1, 8, 4), (1, 2, 131, 33, 9), (2, 2, 0, 4, 4), (1, 1, 1000, 64, 64)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
# Keys whose features are tiny, beside ordinary ones: what is summed spans many magnitudes.
q, k, v = (uniform(rng, 1, 2, 140, 8) for _ in range(3))
cases.append((dict(q=q * 4, k=k * 8, v=v), None))
check("linear/linear-attention-causal", oracle, cases)
