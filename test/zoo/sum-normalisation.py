# RUN: %python %s heedc
"""Schlag et al. 2021, section 4.2: W_t = W_{t-1} + v_t phi(k_t), o_t = W_t phi(q_t), with phi(x) = elu(x) + 1 divided by the sum of its components.
The oracle is the quadratic form, sum_{j <= i} phi(q_i).phi(k_j) v_j; the recurrence is run beside it."""
import numpy as np
from zoo import check, f64, uniform


def phi(x):
    y = np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    return y / y.sum(-1, keepdims=True)


def steps(q, k, v):
    """One head; q and k are features."""
    w, o = np.zeros((v.shape[1], k.shape[1])), np.zeros(v.shape)
    for t in range(len(q)):
        w = w + np.outer(v[t], k[t])
        o[t] = w @ q[t]
    return o


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    q, k = phi(q), phi(k)
    o = q @ k.swapaxes(-1, -2) * np.tri(q.shape[2]) @ v
    for b, h in np.ndindex(*o.shape[:2]):
        np.testing.assert_allclose(steps(q[b, h], k[b, h], v[b, h]), o[b, h], rtol=0, atol=1e-12)
    return {"o": o}


rng = np.random.default_rng(333)
cases = []
for b, h, n, e, f in [(2, 3, 17, 5, 7), (1, 2, 257, 16, 16), (1, 1, 1, 1, 1), (3, 1, 1, 8, 4), (1, 2, 131, 33, 9), (2, 2, 0, 4, 4), (1, 1, 600, 64, 64)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
# Features from e^-8 to 9: a sum is of one component at times.
q, k, v = (uniform(rng, 1, 2, 140, 8) for _ in range(3))
cases.append((dict(q=q * 8, k=k * 8, v=v), None))
check("linear/sum-normalisation", oracle, cases)
