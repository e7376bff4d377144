# RUN: %python %s heedc
"""Xiao and Zhu 2023, equations 160 and 161, in the quadratic form with the mask a^(i - j): o_i = sum_{j <= i} (1 - a) a^(i - j) phi(q_i).phi(k_j) v_j
over the same sum without v_j, phi = elu + 1. The recurrence is run beside it, step by step."""
import numpy as np
from zoo import check, f64, uniform


def phi(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def steps(q, k, v, a):
    """One head; q and k are features."""
    s, z, o = np.zeros((k.shape[1], v.shape[1])), np.zeros(k.shape[1]), np.zeros(v.shape)
    for t in range(len(q)):
        s = a * s + (1 - a) * np.outer(k[t], v[t])
        z = a * z + (1 - a) * k[t]
        o[t] = q[t] @ s / (q[t] @ z)
    return o


def oracle(inputs, weights):
    q, k, v, a = f64(*(inputs[n] for n in ("q", "k", "v", "decay")))
    q, k = phi(q), phi(k)
    i = np.arange(q.shape[2])
    mask = np.tri(len(i)) * a[:, None, None] ** np.maximum(i[:, None] - i, 0)
    with np.errstate(invalid="ignore"):  # 0 / 0 where a is 1
        w = (1 - a)[:, None, None] * mask * (q @ k.swapaxes(-1, -2))
        o = w @ v / w.sum(-1, keepdims=True)
        for b, h in np.ndindex(*o.shape[:2]):
            np.testing.assert_allclose(steps(q[b, h], k[b, h], v[b, h], a[h]), o[b, h], rtol=0, atol=1e-12)
    return {"o": o}


rng = np.random.default_rng(331)
cases = []
for b, n, e, f, decay in [
    (2, 17, 5, 7, [0.9, 0.5, 0.99]),
    (1, 257, 16, 16, [0.999, 0.3]),
    (1, 1, 1, 1, [0.75]),
    (3, 1, 8, 4, [0.5]),
    (2, 0, 4, 4, [0.9, 0.1]),
    (2, 135, 6, 9, [0, np.exp(-200), np.exp(-80), 1e-3]),  # e^-200 is 0 in f32; powers of e^-80 underflow
    (1, 133, 8, 8, [1, 1 - 2**-10, 1, 0]),  # with a = 1 nothing is ever written: NaN
    (1, 700, 64, 33, [1 - 2**-5, 1 - 2**-12]),
]:
    h = len(decay)
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f), decay=np.float32(decay)), None))
check("linear/decayed-linear-attention", oracle, cases)
