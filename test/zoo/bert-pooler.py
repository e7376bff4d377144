# RUN: %python %s heedc
"""Devlin et al. 2019: tanh(W h_[CLS] + b), of the first token alone; the others (NaN here) are not read."""
import numpy as np
from zoo import check, linear_weights, uniform


def oracle(inputs, weights):
    w, b = (weights[f"pooler.dense.{n}"].astype(np.float64) for n in ("weight", "bias"))
    return {"pooled": np.array([np.tanh(w @ h[0] + b) for h in inputs["hidden"].astype(np.float64)])}


rng = np.random.default_rng(108)
cases = []
for b, n, d in [(3, 5, 7), (1, 1, 1), (2, 140, 130), (1, 2, 768)]:
    hidden = uniform(rng, b, n, d)
    hidden[:, 1:] = np.nan
    cases.append((dict(hidden=hidden), linear_weights(rng, "pooler.dense", d, d)))
check("core/bert-pooler", oracle, cases)
