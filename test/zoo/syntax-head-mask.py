# RUN: %python %s heedc
"""Figure 7(c) of Xiao and Zhu 2023 (LISA, Strubell et al. 2018): plain attention in heads S .. H-1, the pairs of M_h alone in the first S; a mask
of parents makes a head copy each word's parent."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    masks = inputs["M"]
    out = np.zeros(v.shape)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            live = masks[b, h] if h < masks.shape[1] else None
            out[b, h] = softmax(q[b, h] @ k[b, h].T / np.sqrt(q.shape[3]), live) @ v[b, h]
    return {"o": out}


rng = np.random.default_rng(104)
cases = []
for b, h, s, n, e, f in [(2, 4, 2, 13, 8, 5), (1, 3, 1, 140, 4, 4), (1, 1, 1, 1, 4, 4), (1, 2, 0, 6, 4, 4), (1, 2, 2, 9, 4, 3)]:
    masks = rng.random((b, s, n, n)) < 0.3
    if s > 0:
        masks[:, 0] = np.arange(n)[None, None, :] == rng.integers(0, n, (b, n, 1))  # one parent each
        masks[0, s - 1, n // 2] = False  # a row without a live key
    q, k, v = uniform(rng, b, h, n, e), uniform(rng, b, h, n, e), uniform(rng, b, h, n, f)
    expected = np.take_along_axis(v[0, 0], masks[0, 0].argmax(1)[:, None], 0) if s > 1 else None
    inputs = dict(q=q, k=k, v=v, M=masks)
    if expected is not None:
        assert np.allclose(oracle(inputs, None)["o"][0, 0], expected)
    cases.append((inputs, None))
check("syntax/syntax-head-mask", oracle, cases)
