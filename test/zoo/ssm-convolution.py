# RUN: %python %s heedc
"""Xiao and Zhu 2023, equations 164 and 165, Gu et al. 2022: z_t = z_(t-1) A + s_t B, o_t = z_t C + s_t D for a diagonal A, step by step. The
convolution with B A^n C (equations 180 to 184) is run beside it by FFT, in which the state does not appear: both agree."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    (s,) = f64(inputs["s"])
    A, B, C, D = f64(*(weights[k] for k in "ABCD"))
    n = s.shape[1]
    o, z = np.zeros((*s.shape[:2], C.shape[1])), np.zeros((s.shape[0], len(A)))
    for t in range(n):
        z = z * A + s[:, t] @ B
        o[:, t] = z @ C + s[:, t] @ D
    if n:
        kernel = np.array([(B * A**k) @ C for k in range(n)])
        spectra = np.einsum("bki,kio->bko", np.fft.rfft(s, 2 * n, axis=1), np.fft.rfft(kernel, 2 * n, axis=0))
        np.testing.assert_allclose(np.fft.irfft(spectra, 2 * n, axis=1)[:, :n] + s @ D, o, rtol=0, atol=1e-11)
    return {"o": o}


rng = np.random.default_rng(429)
cases = []
for b, n, i, e, o in [(2, 7, 3, 4, 5), (1, 1, 1, 1, 1), (3, 40, 20, 33, 9), (1, 300, 16, 64, 16), (2, 0, 3, 4, 2), (17, 131, 5, 6, 7)]:
    weights = {"A": uniform(rng, e), "B": uniform(rng, i, e), "C": uniform(rng, e, o), "D": uniform(rng, i, o)}
    cases.append((dict(s=uniform(rng, b, n, i)), weights))
# States that are gone at once (0^0 is 1), that stay, that change sign, and that decay by e^-80, whose powers underflow.
weights = {"A": np.float32([0, 1, -1, np.exp(-80), -0.5]), "B": uniform(rng, 3, 5), "C": uniform(rng, 5, 2), "D": uniform(rng, 3, 2)}
cases.append((dict(s=uniform(rng, 2, 135, 3)), weights))
check("recurrence/ssm-convolution", oracle, cases)
