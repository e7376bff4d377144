# RUN: %python %s heedc
# RUN: %python %s heedc --set=heads=1
# RUN: %python %s heedc --set=heads=6
"""Fu et al. 2022, section 3.1: of each head, O = Q . SSM_diag(SSM_shift(K) V^T), an outer product of the channels of keys and values in each step,
one diagonal layer over all of them; then W_O. Here both layers are convolutions: the shift's kernel is its C, the diagonal one's 2 Re(sum_s C_s B_s
L_s^t) with L = (1 + delta A/2) / (1 - delta A/2), B = delta / (1 - delta A/2). The recurrence of the diagonal layer is run beside it."""
import sys

import numpy as np
from zoo import check, linear, linear_weights, uniform

HEADS = next((int(a.split("=")[-1]) for a in sys.argv if "heads=" in a), 2)


def convolve(x, kernel):
    """x: N x channels .., kernel: N or more x channels .."""
    return np.array([sum(kernel[j] * x[t - j] for j in range(min(t + 1, len(kernel)))) for t in range(len(x))]).reshape(x.shape)


def diagonal(x, L, BC, D):
    """x: N x E x E, one layer for all of them."""
    n = len(x)
    kernel = 2 * (BC * L ** np.arange(n)[:, None]).sum(1).real
    toeplitz = np.where(np.tri(n, dtype=bool), kernel[np.maximum(np.subtract.outer(np.arange(n), np.arange(n)), 0)], 0) if n else np.zeros((0, 0))
    y = np.einsum("tj,jab->tab", toeplitz, x) + D * x
    z, steps = np.zeros((*x.shape[1:], len(L)), complex), np.zeros(x.shape)
    for t in range(n):
        z = L * z + x[t, :, :, None]
        steps[t] = 2 * (z @ BC).real + D * x[t]
    np.testing.assert_allclose(steps, y, rtol=0, atol=1e-10)
    return y


def oracle(inputs, weights):
    w = {k: a.astype(np.float64) for k, a in weights.items()}
    dt = np.exp(w["diag.log_dt"])[:, None]
    A = -np.exp(w["diag.log_A_real"]) + 1j * w["diag.A_imag"]
    L = (1 + dt * A / 2) / (1 - dt * A / 2)
    BC = dt / (1 - dt * A / 2) * (w["diag.C"][..., 0] + 1j * w["diag.C"][..., 1])
    y = np.zeros(inputs["u"].shape)
    for b, u in enumerate(inputs["u"].astype(np.float64)):
        n, e = len(u), u.shape[1] // HEADS
        q, k, v = (linear(u, weights, f"{p}_proj") for p in "qkv")
        k = convolve(k, w["shift.C"].T) + w["shift.D"] * k
        o = np.zeros(u.shape)
        for h in range(HEADS):
            at = slice(h * e, h * e + e)
            kv = diagonal(k[:, at, None] * v[:, None, at], L[h], BC[h], w["diag.D"][h])
            o[:, at] = np.einsum("ti,tij->tj", q[:, at], kv)
        y[b] = linear(o, weights, "output")
    return {"y": y}


def weights(d, r, s):
    w = {k: a for at in ("q_proj", "k_proj", "v_proj", "output") for k, a in linear_weights(rng, at, d, d).items()}
    # The diagonal layer begins as S4D-Lin, A_n = -1/2 + i pi n, with steps of 0.01 to 0.1.
    w |= {"diag.log_dt": rng.uniform(np.log(0.01), np.log(0.1), HEADS).astype(np.float32)}
    w |= {"diag.log_A_real": np.full((HEADS, s), np.log(0.5), np.float32), "diag.A_imag": np.float32(np.pi * np.tile(np.arange(s), (HEADS, 1)))}
    return w | {"shift.C": uniform(rng, d, r), "shift.D": uniform(rng, d), "diag.C": uniform(rng, HEADS, s, 2), "diag.D": uniform(rng, HEADS)}


rng = np.random.default_rng(431)
cases = []
for b, n, d, r, s in [(2, 7, 12, 4, 3), (1, 1, 6, 2, 1), (3, 40, 18, 64, 9), (1, 200, 6, 5, 16), (2, 0, 6, 3, 4), (2, 135, 12, 1, 5)]:
    cases.append((dict(u=uniform(rng, b, n, d)), weights(d, r, s)))
# States that lose nothing, nearly all, and that turn by half a circle a step (A delta far beyond the bilinear rule's accuracy).
w = weights(6, 3, 3)
w["diag.log_dt"][:] = np.log(0.5)
w["diag.log_A_real"][:] = np.log([1e-30, 4, 1e-2])
w["diag.A_imag"][:] = 0, 1, 1e4
cases.append((dict(u=uniform(rng, 2, 60, 6)), w))
check("recurrence/h3", oracle, cases)
