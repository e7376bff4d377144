# RUN: %python %s heedc
"""Xiao and Zhu 2023, equation 123: query i attends the keys left_i .. right_i; bounds outside the sequence are cut, an empty span gives zeros."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    out = np.zeros(q.shape[:3] + v.shape[3:])
    for b in range(q.shape[0]):
        for i in range(q.shape[2]):
            part = slice(max(0, inputs["left"][b, i]), max(0, inputs["right"][b, i] + 1))
            s = np.einsum("he,hje->hj", q[b, :, i], k[b, :, part]) / np.sqrt(q.shape[-1])
            out[b, :, i] = np.einsum("hj,hjf->hf", softmax(s), v[b, :, part])
    return {"o": out}


rng = np.random.default_rng(312)
cases = []
for b, h, n, m, e, f, width in [(2, 2, 17, 23, 8, 5, 6), (1, 1, 140, 150, 8, 8, 40), (1, 1, 1, 1, 4, 4, 0), (2, 1, 9, 5, 4, 4, 100)]:
    left = rng.integers(-3, m + 3, (b, n)).astype(np.int32)
    right = (left + rng.integers(-2, width + 1, (b, n))).astype(np.int32)
    q, k, v = uniform(rng, b, h, n, e), uniform(rng, b, h, m, e), uniform(rng, b, h, m, f)
    cases.append((dict(q=q, k=k, v=v, left=left, right=right), None))
check("sparse/span-bounds-attention", oracle, cases)
