# RUN: %python %s heedc
"""Sun et al. 2023, equation 5, the parallel form: ((Q Theta) (K conj(Theta))^T . D) V with Theta_n = e^(i n theta) on pairs as complex numbers and
D_nm = gamma^(n - m) for n >= m, scores over sqrt(E) (section 2.2); then equation 8: each head normalised, times swish(X W_G), times W_O. The
recurrence (equation 6) and the chunks (equation 7) are run beside it."""
import numpy as np
from zoo import check, f64, heads, merge, uniform

EPS = 1e-6


def turn(x):
    """B x H x N x E reals to B x H x N x E/2 complex numbers."""
    n, e = x.shape[-2:]
    return (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * np.arange(n)[:, None] * 10000.0 ** (-np.arange(0, e, 2) / e))


def steps(q, k, v, gamma):
    """One head."""
    s, o = np.zeros((k.shape[1], v.shape[1]), complex), np.zeros(v.shape)
    for t in range(len(q)):
        s = gamma * s + np.outer(k[t].conj(), v[t])
        o[t] = (q[t] @ s).real
    return o


def chunks(q, k, v, gamma, size):
    s, o = np.zeros((k.shape[1], v.shape[1]), complex), np.zeros(v.shape)
    for c in range(0, len(q), size):
        rows = slice(c, c + size)
        j = np.arange(len(q[rows]))
        inner = np.tri(len(j)) * gamma ** np.maximum(j[:, None] - j, 0) * (q[rows] @ k[rows].conj().T).real
        o[rows] = inner @ v[rows] + gamma ** (j[:, None] + 1) * (q[rows] @ s).real
        s = gamma ** len(j) * s + k[rows].conj().T @ (v[rows] * gamma ** (len(j) - 1 - j)[:, None])
    return o


def oracle(inputs, weights):
    x, gamma = f64(inputs["x"], inputs["gamma"])
    h = len(gamma)
    dense = lambda y, at: y @ weights[f"{at}.weight"].astype(np.float64).T
    q, k, v = (heads(dense(x, at), h) for at in ("query", "key", "value"))
    e = q.shape[-1]
    q, k = turn(q), turn(k) / np.sqrt(e)
    i = np.arange(x.shape[1])
    mask = np.tri(len(i)) * gamma[:, None, None] ** np.maximum(i[:, None] - i, 0)
    o = (q @ k.conj().swapaxes(-1, -2)).real * mask @ v
    for b, g in np.ndindex(*o.shape[:2]):
        np.testing.assert_allclose(steps(q[b, g], k[b, g], v[b, g], gamma[g]), o[b, g], rtol=0, atol=1e-11)
        np.testing.assert_allclose(chunks(q[b, g], k[b, g], v[b, g], gamma[g], 16), o[b, g], rtol=0, atol=1e-11)
    variance = o.var(-1, keepdims=True)
    y = merge((o - o.mean(-1, keepdims=True)) / np.sqrt(variance + EPS))
    gate = dense(x, "gate")
    return {"y": dense(gate / (1 + np.exp(-gate)) * y, "output")}


def weights(d):
    """Keys are like queries, so that no row of scores is near 0: the norm would magnify its rounding."""
    matrix = lambda out, into: uniform(rng, out, into) * np.float32(into**-0.5)
    query = matrix(d, d) * 2
    return {"query.weight": query, "key.weight": query + matrix(d, d) / 4, "value.weight": matrix(2 * d, d), "gate.weight": matrix(2 * d, d),
            "output.weight": matrix(d, 2 * d)}


scales = lambda h: 1 - 2.0 ** (-5 - np.arange(h))  # the paper's
rng = np.random.default_rng(335)
cases = []
for b, n, d, gamma in [
    (2, 17, 24, scales(3)),
    (1, 257, 32, scales(4)),
    (1, 1, 8, scales(1)),
    (3, 1, 12, scales(2)),
    (2, 0, 8, scales(2)),
    (1, 133, 14, scales(1)),
    (2, 135, 40, [0, np.exp(-200), np.exp(-80), 1, 0.5]),
]:
    cases.append((dict(x=uniform(rng, b, n, d), gamma=np.float32(gamma)), weights(d)))
check("linear/retnet", oracle, cases)
