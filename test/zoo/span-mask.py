# RUN: %python %s heedc
"""Lin et al. 2022, section 4.6.2: a_ij = m(i - j) e^{s_ij} / sum_k m(i - k) e^{s_ik}, here as the softmax of s + log m. Masks that fall to
0 within the sequence, at once (only the key itself), and never; all ones is vanilla attention."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v, m = f64(inputs["q"], inputs["k"], inputs["v"], inputs["m"])
    n = q.shape[2]
    table = np.zeros((len(m), max(n, m.shape[1])))
    table[:, :m.shape[1]] = m
    weight = table[:, np.abs(np.arange(n)[:, None] - np.arange(n))]
    s = np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(q.shape[-1]) + np.log(np.where(weight > 0, weight, 1))
    return {"o": softmax(s, weight > 0) @ v}


rng = np.random.default_rng(304)
cases = []
for b, h, n, e, f, r, kind in [(2, 2, 9, 8, 6, 4, "ramp"), (1, 3, 150, 4, 4, 20, "ramp"), (1, 2, 150, 4, 5, 140, "steps"), (1, 2, 7, 4, 4, 1, "ones"),
                               (2, 2, 11, 4, 4, 30, "ones"), (1, 1, 1, 1, 1, 1, "ones")]:
    m = np.sort(rng.uniform(0.01, 1, (h, r)), axis=-1)[:, ::-1].copy()
    m[:, 0] = 1
    if kind == "ones":
        m[:] = 1
    elif kind == "steps":  # the span of each head ends within the table
        m[np.arange(r)[None, :] > 3 + 17 * np.arange(h)[:, None]] = 0
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f), m=m.astype(np.float32))
    cases.append((inputs, None))
check("heads/span-mask", oracle, cases)
