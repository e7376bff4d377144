# RUN: %python %s heedc
"""Wang et al. 2020: f_w,j(pos) = r_w,j exp(i (omega_w,j pos + theta_w,j)), then a complex linear layer, in NumPy's complex
numbers."""
import numpy as np
from zoo import check, f64, uniform


def pairs(z):
    return np.stack([z.real, z.imag], -1)


def oracle(inputs, weights):
    r, omega, theta, u, v, c = f64(*(weights[n] for n in
                                     ("amplitude", "frequency", "phase", "linear.real.weight", "linear.imaginary.weight", "linear.bias")))
    z = np.array([[r[w] * np.exp(1j * (omega[w] * pos + theta[w])) for pos, w in enumerate(row)] for row in inputs["ids"]])
    return {"z": pairs(z), "y": pairs(z @ (u + 1j * v).T + (c[:, 0] + 1j * c[:, 1]))}


rng = np.random.default_rng(407)
cases = []
for b, n, words, d, o in [(2, 7, 11, 5, 6), (1, 1, 1, 1, 1), (1, 140, 30, 12, 9), (3, 20, 5, 8, 33)]:
    weights = {"amplitude": uniform(rng, words, d), "frequency": uniform(rng, words, d) / 8, "phase": uniform(rng, words, d) * np.float32(np.pi)}
    weights |= {f"linear.{n}.weight": uniform(rng, o, d) * np.float32(d**-0.5) for n in ("real", "imaginary")}
    weights |= {"linear.bias": uniform(rng, o, 2)}
    cases.append((dict(ids=rng.integers(0, words, (b, n)).astype(np.int32)), weights))
check("position/complex-embedding", oracle, cases)
