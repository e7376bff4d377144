# RUN: %python %s heedc
# RUN: %python %s heedc --set=kind=euler
# RUN: %python %s heedc --set=kind=hold
# RUN: %python %s heedc --set=kind=diagonal
"""Xiao and Zhu 2023, equations 166 to 179, Gu et al. 2022: z_t = z_(t-1) Ad + s_t Bd from dz/dt = z A + s B. Euler: Ad = 1 + delta A, Bd = delta B;
bilinear: Ad = (1 + delta/2 A)(1 - delta/2 A)^-1, Bd = delta B (1 - delta/2 A)^-1; zero-order hold: Ad = exp(delta A), Bd = B (Ad - 1) A^-1, here the
integral of B exp(u A) over 0 <= u <= delta, from Taylor's series of a short step that is doubled. Where A has an inverse, the hold is also the
formula with it. The error of one step falls by 4 (Euler) and by 8 (bilinear) as its length halves."""
import sys

import numpy as np
from zoo import check, f64, uniform

KIND = next((a.split("=")[-1] for a in sys.argv if "kind=" in a), "bilinear")


def series(A, delta):
    """exp(delta A), and the integral of exp(u A), by Taylor's series of a short step, which is doubled."""
    steps = 20
    h, one = delta / 2**steps, np.eye(len(A))
    whole = h * (one + h / 2 * A @ (one + h / 3 * A @ (one + h / 4 * A)))
    power = one + A @ whole
    for _ in range(steps):
        whole, power = whole + whole @ power, power @ power
    return power, whole


def discretise(A, B, delta, kind):
    one = np.eye(len(A))
    if kind == "euler":
        return one + delta * A, delta * B
    if kind == "bilinear":
        inverse = np.linalg.inv(one - delta / 2 * A)
        return (one + delta / 2 * A) @ inverse, delta * B @ inverse
    power, whole = series(A, delta)
    if len(A) and np.linalg.cond(A) < 1e3:
        np.testing.assert_allclose(B @ (power - one) @ np.linalg.inv(A), B @ whole, rtol=0, atol=1e-8)
    return power, B @ whole


def oracle(inputs, weights):
    z, s = f64(inputs["z"], inputs["s"])
    A, B = f64(weights["A"], weights["B"])
    delta = np.float64(np.float32(inputs["delta"]))
    if KIND == "diagonal":
        A = np.diag(A)
    for kind, order in (("euler", 2), ("bilinear", 3)):
        error = [np.abs(discretise(A, B, h, kind)[0] - series(A, h)[0]).max(initial=0) for h in (1e-4, 5e-5)]
        assert error[1] <= error[0] / 2**order * 1.1 + 1e-9, (kind, error)
    Ad, Bd = discretise(A, B, delta, "hold" if KIND == "diagonal" else KIND)
    return {"Ad": Ad, "Bd": Bd, "next": z @ Ad + s @ Bd}


def hippo(e):
    """HiPPO-LegS for row vectors: -sqrt(2n + 1) sqrt(2k + 1) for n > k, -(n + 1) for n = k, transposed."""
    n = np.arange(e)
    A = -np.sqrt((2 * n[:, None] + 1) * (2 * n + 1))
    return (np.tril(A, -1) - np.diag(n + 1.0)).T


rng = np.random.default_rng(430)
cases = []
for b, e, i, delta in [(2, 4, 3, 0.1), (1, 1, 1, 0.5), (3, 9, 5, 0.05), (2, 33, 2, 0.001), (1, 6, 4, 0.0), (0, 3, 2, 0.1), (2, 5, 0, 0.25)]:
    if KIND == "diagonal":
        A = -np.arange(1.0, e + 1) if e > 1 else np.zeros(1)
        A[:: max(e // 2, 1)] = [0, 1e-6, -200][: len(A[:: max(e // 2, 1)])]  # a state that only sums up, nearly so, one that is gone at once
    elif b == 2:
        A = hippo(e)
    else:
        A = uniform(rng, e, e) - uniform(rng, e, e).T  # no inverse: a row of zeros
        A = A - A.T
        A[0] = 0
    inputs = dict(z=uniform(rng, b, e), s=uniform(rng, b, i), delta=delta)
    cases.append((inputs, {"A": np.float32(A), "B": uniform(rng, i, e)}))
check("recurrence/ssm-discretisation", oracle, cases)
