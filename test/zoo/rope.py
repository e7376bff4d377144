# RUN: %python %s heedc
"""Su et al. 2021, equation 34, as complex numbers: the pair (2t, 2t+1) is multiplied by exp(i n theta_t)."""
import numpy as np
from zoo import check, f64, softmax, uniform


def turn(x):
    n, e = x.shape[-2:]
    angle = np.arange(n)[:, None] * 10000.0 ** (-np.arange(0, e, 2) / e)
    z = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    n = q.shape[2]
    return {"o": softmax(turn(q) @ turn(k).swapaxes(-1, -2) / np.sqrt(q.shape[-1]), np.tri(n, dtype=bool)) @ v}


rng = np.random.default_rng(10)
cases = []
for b, h, n, e, f in [(1, 1, 1, 2, 2), (2, 2, 33, 8, 8), (1, 1, 1000, 64, 64)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
check("position/rope", oracle, cases)
