# RUN: %python %s heedc
"""Lahoti et al. 2025: complex states h_t = a_t exp(-i delta_t theta_t) (h_(t-1) + (1 - lambda_t) delta_t b_(t-1) x_(t-1)) + lambda_t delta_t b_t x_t of
each head, a_t = exp(delta_t A), b and c complex pairs; y_t = Re(conj(c_t) h_t), step by step. Run as pairs, too: y_t = sum_s Re(conj(c_t) b_s
prod_(s<w<=t) a_w exp(-i delta_w theta_w)) x_s (lambda_s delta_s + (1 - lambda_(s+1)) delta_(s+1) [s < t])."""
import numpy as np
from zoo import check, uniform


def head(x, b, c, theta, delta, lam, A):
    n, f = x.shape
    a = np.exp(delta * A)
    turn = a[:, None] * np.exp(-1j * delta[:, None] * theta)
    h, y = np.zeros((theta.shape[1], f), complex), np.zeros((n, f))
    for t in range(n):
        if t:
            h = h + (1 - lam[t]) * delta[t] * np.outer(b[t - 1], x[t - 1])
        h = turn[t][:, None] * h + lam[t] * delta[t] * np.outer(b[t], x[t])
        y[t] = (c[t].conj() @ h).real
    pairs = np.zeros((n, n))
    for t in range(n):
        left = np.ones(theta.shape[1], complex)
        for s in range(t, -1, -1):
            weight = lam[s] * delta[s] + ((1 - lam[s + 1]) * delta[s + 1] if s < t else 0)
            pairs[t, s] = (c[t].conj() * left * b[s]).real.sum() * weight
            left = left * turn[s]
    np.testing.assert_allclose(pairs @ x, y, rtol=0, atol=1e-9)
    # The state as the model has it, not turned: pairs of real and imaginary parts at the angle of the last step.
    back = h * np.exp(1j * (delta[:, None] * theta).sum(0))[:, None]
    return y, np.concatenate([back.real, back.imag])


def oracle(inputs, weights):
    i = {k: a.astype(np.float64) for k, a in inputs.items()}
    x, theta = i["x"], i["theta"]
    p = theta.shape[2]
    b, c = (i[k][..., :p] + 1j * i[k][..., p:] for k in "BC")
    y, S = np.zeros(x.shape), np.zeros((*x.shape[:2], 2 * p, x.shape[3]))
    for k in np.ndindex(x.shape[:2]):
        y[k], S[k] = head(x[k], b[k[0]], c[k[0]], theta[k[0]], i["delta"][k], i["lambda"][k], i["A"][k[1]])
    return {"y": y, "S": S}


rng = np.random.default_rng(431)
cases = []
for b, h, n, f, p in [(2, 3, 7, 5, 2), (1, 1, 1, 4, 1), (2, 2, 0, 3, 2), (1, 2, 131, 8, 4), (1, 3, 64, 16, 3), (2, 1, 65, 1, 5), (1, 2, 300, 17, 8), (1, 0, 9, 3, 2)]:
    cases.append((dict(x=uniform(rng, b, h, n, f), B=uniform(rng, b, n, 2 * p), C=uniform(rng, b, n, 2 * p), theta=uniform(rng, b, n, p),
                       delta=np.exp(uniform(rng, b, h, n) * 2 - 2), A=-np.exp(uniform(rng, h)), **{"lambda": (uniform(rng, b, h, n) + 1) / 2}), {}))
# Heads that keep all, that forget all but the step itself, and that decay by e^-200.
inputs, _ = cases[3]
for decay in (0, -np.inf, -200):
    inputs = dict(inputs, A=np.full(2, decay, np.float32), delta=np.ones_like(inputs["delta"]))
    cases.append((inputs, {}))
check("recurrence/mamba3", oracle, cases)
