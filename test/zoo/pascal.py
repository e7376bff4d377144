# RUN: %python %s heedc
"""Bugliarello and Okazaki 2020, section 3: N = S * D with D_ij = f_N(j | p_i, sigma^2), softmax(N) V, row by row. A root that is its own
parent, parents between two words, parents behind the sentence's end, a density that is 0 in f32 for all words (a uniform row). Padding:
NaN in the values."""
import numpy as np
from trees import draw
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v, p = f64(inputs["q"], inputs["k"], inputs["v"], inputs["p"])
    variance = inputs.get("variance", 1.0)
    out = np.zeros(v.shape)
    for b, h, i in np.ndindex(*q.shape[:3]):
        m = inputs["length"][b]
        if m:
            density = np.array([np.exp(-((j - p[b, i]) ** 2) / (2 * variance)) for j in range(m)]) / np.sqrt(2 * np.pi * variance)
            out[b, h, i] = softmax(density * (k[b, h, :m] @ q[b, h, i]) / np.sqrt(q.shape[3])) @ v[b, h, :m]
    return {"o": out}


rng = np.random.default_rng(524)
cases = []
for lengths, h, n, e, f, given in [
    ([13, 6], 3, 13, 8, 5, {}),
    ([140], 2, 140, 4, 4, {"variance": 4.0}),
    ([1], 1, 1, 4, 4, {}),
    ([0, 4], 1, 5, 4, 3, {"variance": 0.5}),
    ([7], 2, 7, 4, 4, {"variance": 1e-3}),
]:
    b = len(lengths)
    q, k, v = (uniform(rng, b, h, n, size) for size in (e, e, f))
    p = np.zeros((b, n), np.float32)
    for s, m in enumerate(lengths):
        parent = draw(rng, n)
        p[s] = np.where(parent < 0, np.arange(n), parent) + rng.integers(0, 3, n) / 2
        k[s, :, m:], v[s, :, m:] = 100, np.nan
    cases.append((dict(q=q, k=k, v=v, p=p, length=np.array(lengths, np.int32)) | given, None))
check("syntax/pascal", oracle, cases)
