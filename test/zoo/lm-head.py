# RUN: %python %s heedc
"""Xiao and Zhu 2023, equations 10 and 11: Pr = softmax(s W_o); its logarithm and its maximum. Scores of the last cases are exact
in f32 and so far apart that probabilities underflow."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    s, w = f64(inputs["s"], weights["output.weight"])
    o = np.einsum("bid,dv->biv", s, w)
    top = o.max(-1, keepdims=True)
    return {"p": softmax(o), "logp": o - top - np.log(np.exp(o - top).sum(-1, keepdims=True)), "best": o.argmax(-1)}


rng = np.random.default_rng(106)
cases = []
for b, n, d, v in [(2, 7, 5, 11), (1, 1, 1, 1), (1, 140, 12, 37), (2, 3, 33, 5003)]:
    cases.append((dict(s=uniform(rng, b, n, d)), {"output.weight": uniform(rng, d, v)}))
for b, n, d, v in [(1, 9, 6, 129), (2, 1, 6, 700)]:
    s = rng.integers(-8, 9, (b, n, d)).astype(np.float32)
    w = rng.integers(-64, 65, (d, v)).astype(np.float32) / 8
    w += np.arange(v, dtype=np.float32) / 1024  # no ties
    cases.append((dict(s=s), {"output.weight": w}))
check("core/lm-head", oracle, cases)
