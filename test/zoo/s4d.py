# RUN: %python %s heedc
"""Gu et al. 2022, "On the Parameterization and Initialization of Diagonal State Space Models", section 3: z_t = L z_(t-1) + B s_t, o_t = 2 Re(C z_t) + D s_t
with L = exp(dt A), B = (L - 1) / A. By steps, and as the convolution with the Vandermonde kernel K_t = 2 Re(sum of C_n B_n L_n^t): both agree."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    s = inputs["s"].astype(np.float64)
    log_dt, real, imag, C, D = f64(*(weights[n] for n in ("log_dt", "log_A_real", "A_imag", "C", "D")))
    A = -np.exp(real) + 1j * imag
    C = C[..., 0] + 1j * C[..., 1]
    L = np.exp(np.exp(log_dt)[:, None] * A)
    B = (L - 1) / A
    n = s.shape[1]
    o, z = np.zeros(s.shape), np.zeros((s.shape[0], *A.shape), complex)
    for t in range(n):
        z = L * z + B * s[:, t, :, None]
        o[:, t] = 2 * (C * z).sum(-1).real + D * s[:, t]
    K = 2 * np.einsum("de,det->dt", C * B, L[..., None] ** np.arange(n)).real
    for t in range(n):
        assert np.allclose(o[:, t], np.einsum("dj,bjd->bd", K[:, t::-1][:, : t + 1], s[:, : t + 1]) + D * s[:, t], rtol=0, atol=1e-11)
    return {"o": o}


rng = np.random.default_rng(410)
cases = []
for b, n, d, e in [(2, 7, 3, 4), (1, 1, 1, 1), (3, 40, 17, 9), (1, 200, 8, 32), (2, 0, 3, 4), (5, 135, 6, 5)]:
    # The initialisation S4D-Lin: A_n = -1/2 + i pi n; steps of 0.01 to 0.1.
    weights = {"log_dt": rng.uniform(np.log(0.01), np.log(0.1), d).astype(np.float32), "log_A_real": np.full((d, e), np.log(0.5), np.float32),
               "A_imag": np.tile(np.pi * np.arange(e), (d, 1)).astype(np.float32), "C": uniform(rng, d, e, 2), "D": uniform(rng, d)}
    cases.append((dict(s=uniform(rng, b, n, d)), weights))
# States that lose nothing, all but e^-200, and everything.
weights = {"log_dt": np.log(np.full(3, 0.5)).astype(np.float32), "log_A_real": np.log([[1e-30, 400, 1e6]] * 3).astype(np.float32),
           "A_imag": uniform(rng, 3, 3) + 2, "C": uniform(rng, 3, 3, 2), "D": uniform(rng, 3)}
cases.append((dict(s=uniform(rng, 2, 30, 3)), weights))
check("recurrence/s4d", oracle, cases)
