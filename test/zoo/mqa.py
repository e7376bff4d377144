# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Shazeer 2019, section 3: o_hi = softmax(q_hi . k_j over j <= i) v_j with one k and one v for all heads, y = sum over h of o_h W_o (the root of E,
which that paper leaves to the weights, stands under the scores). Prompts of several lengths, in one call, token by token, in sevens."""
import numpy as np
from states import check, compile
from zoo import softmax, uniform

rng = np.random.default_rng(162)


def oracle(x, weights):
    x = x.astype(np.float64)
    wq, wk, wv, wo = (weights[f"{name}.weight"].astype(np.float64) for name in ("query", "key", "value", "output"))
    y = np.zeros(x.shape)
    for i in range(len(x)):
        k, v = x[: i + 1] @ wk.T, x[: i + 1] @ wv.T
        for h in range(len(wq)):
            y[i] += wo[:, h] @ (softmax((k @ (wq[h] @ x[i]))[None] / np.sqrt(k.shape[1]))[0] @ v)
    return y


for lengths, h, e, f, d in [([23, 9, 0], 4, 8, 6, 16), ([70], 3, 5, 7, 11), ([1, 1], 1, 1, 1, 4), ([130, 131], 2, 16, 16, 8)]:
    weights = {"query.weight": uniform(rng, h, e, d), "key.weight": uniform(rng, e, d), "value.weight": uniform(rng, f, d), "output.weight": uniform(rng, d, h, f)}
    rows = [uniform(rng, n, d) for n in lengths]
    m = compile("heads/mqa", weights)
    check(m, "forward", rows, [oracle(row, weights) for row in rows], lambda: m.state(B=len(rows), C=max(lengths)), f"mqa, rows of {lengths}, {h} heads")
