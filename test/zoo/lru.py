# RUN: %python %s heedc
# RUN: %python %s heedc --set=trained=true
"""Orvieto et al. 2023, section 3: x_k = l x_(k-1) + g (B u_k), y_k = Re(C x_k) + D u_k with l = exp(-exp(nu) + i exp(theta)) and g = sqrt(1 - |l|^2), or g
trained. By steps, and as a sum over all earlier ones: both agree."""
import sys

import numpy as np
from zoo import check, f64, uniform

TRAINED = any("trained=true" in a for a in sys.argv)


def oracle(inputs, weights):
    u = inputs["u"].astype(np.float64)
    x = start = inputs["xr"] + 1j * inputs["xi"].astype(np.float64)
    nu, theta, D = f64(*(weights[n] for n in ("nu_log", "theta_log", "D")))
    B, C = (weights[f"{n}_re"] + 1j * weights[f"{n}_im"].astype(np.float64) for n in "BC")
    l = np.exp(-np.exp(nu) + 1j * np.exp(theta))
    g = np.exp(weights["gamma_log"].astype(np.float64)) if TRAINED else np.sqrt(-np.expm1(-2 * np.exp(nu)))
    if not TRAINED:
        assert np.allclose(g * g, 1 - np.abs(l) ** 2, rtol=0, atol=1e-14)
    y = np.zeros(u.shape)
    for k in range(u.shape[1]):
        x = l * x + g * (u[:, k] @ B.T)
        y[:, k] = (x @ C.T).real + D * u[:, k]
        whole = l ** (k + 1) * start + sum(l ** (k - j) * g * (u[:, j] @ B.T) for j in range(k + 1))
        assert np.allclose(x, whole, rtol=0, atol=1e-11)
    return {"y": y, "last_re": x.real, "last_im": x.imag}


rng = np.random.default_rng(411)
cases = []
for b, n, h, e in [(2, 7, 3, 5), (1, 1, 1, 1), (3, 40, 17, 33), (1, 200, 8, 16), (2, 0, 3, 4), (5, 135, 6, 7)]:
    # |l| between 0.5 and 0.95, phases up to pi / 2.
    nu = np.log(-np.log(rng.uniform(0.5, 0.95, e))).astype(np.float32)
    theta = np.log(rng.uniform(0.01, np.pi / 2, e)).astype(np.float32)
    if e > 4:
        nu[:3], theta[3] = [np.log(200), 10, -100], -100  # |l| = e^-200, 0 and 1; a real one
        theta[2] = -100  # no phase: what it forgets nothing of, it does not turn
    weights = {"nu_log": nu, "theta_log": theta, "D": uniform(rng, h)}
    weights |= {f"B_{p}": uniform(rng, e, h) / np.float32(np.sqrt(2 * h)) for p in ("re", "im")}
    weights |= {f"C_{p}": uniform(rng, h, e) / np.float32(np.sqrt(e)) for p in ("re", "im")}
    if TRAINED:
        weights["gamma_log"] = uniform(rng, e) - 1
    cases.append((dict(u=uniform(rng, b, n, h), xr=uniform(rng, b, e), xi=uniform(rng, b, e)), weights))
check("recurrence/lru", oracle, cases)
