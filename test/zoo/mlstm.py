# RUN: %python %s heedc
# RUN: %python %s heedc --set=forget=exp
# RUN: %python %s heedc --set=heads=1
"""Beck et al. 2024, appendix A, the parallel form: S = (Q K^T / sqrt(d)) . D with log D_ij = ~i_j + sum of log f_l over j < l <= i for j <= i, h = S
V over max(|row sum of S|, 1), times sigmoid(~o), of each head; f = sigmoid(~f) or exp(~f). Without the stabiliser, but that of a row e^(its largest
log D) is taken out of D and of 1. The recurrence C_t = f C_(t-1) + i k v is run beside it, where it does not overflow."""
import sys

import numpy as np
from zoo import check, heads, linear, linear_weights, merge, uniform

EXP = any("forget=exp" in a for a in sys.argv)
HEADS = next((int(a.split("=")[-1]) for a in sys.argv if "heads=" in a), 4)


def head(q, k, v, i, log):
    total = np.cumsum(log)
    D = np.where(np.tri(len(q), dtype=bool), total[:, None] - total + i, -np.inf)
    top = D.max(1, keepdims=True, initial=-np.inf)
    S = q @ k.T / np.sqrt(q.shape[1]) * np.exp(D - top)
    h = S @ v / np.maximum(np.abs(S.sum(1, keepdims=True)), np.exp(-top))
    if np.abs(D[np.isfinite(D)]).max(initial=0) < 300:
        C, n, steps = np.zeros((k.shape[1], v.shape[1])), np.zeros(k.shape[1]), np.zeros(v.shape)
        for t in range(len(q)):
            C = np.exp(log[t]) * C + np.exp(i[t]) * np.outer(k[t], v[t]) / np.sqrt(q.shape[1])
            n = np.exp(log[t]) * n + np.exp(i[t]) * k[t] / np.sqrt(q.shape[1])
            steps[t] = q[t] @ C / max(abs(q[t] @ n), 1)
        np.testing.assert_allclose(steps, h, rtol=0, atol=1e-9)
    return h


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    q, k, v = (heads(linear(x, weights, at), HEADS) for at in ("query", "key", "value"))
    i, f, o = (linear(x, weights, at) for at in ("input_gate", "forget_gate", "output_gate"))
    log = f if EXP else -np.logaddexp(0, -f)
    y = np.zeros(v.shape)
    for b, h in np.ndindex(*y.shape[:2]):
        y[b, h] = head(q[b, h], k[b, h], v[b, h], i[b, :, h], log[b, :, h])
    return {"h": merge(y) / (1 + np.exp(-o))}


def weights(d):
    w = {}
    for at in ("query", "key", "value", "input_gate", "forget_gate", "output_gate"):
        w |= linear_weights(rng, at, HEADS if at in ("input_gate", "forget_gate") else d, d)
    # Keys are like queries, so that no normaliser is near 0.
    w["key.weight"] = w["query.weight"] + w["key.weight"] / 4
    w["key.bias"] = w["query.bias"] + w["key.bias"] / 4
    w["forget_gate.bias"] += 0 if EXP else 3  # the authors begin with 3 to 6
    return w


rng = np.random.default_rng(427)
cases = []
for b, n, d in [(2, 17, 12), (1, 257, 32), (1, 1, 4), (3, 1, 8), (2, 0, 8), (2, 135, 20)]:
    cases.append((dict(x=uniform(rng, b, n, d)), weights(d)))
# Gates that overflow f32 or vanish; words that replace all before them, by the sign of x's first channel. Sums of their logarithms are exact: f32
# rounds log D by 1e-7 of its size.
x, w = uniform(rng, 2, 140, 8), weights(8)
x[:, :, 0] = np.where(rng.uniform(size=(2, 140)) < 0.2, 1, -1)
w["input_gate.weight"][:] = w["forget_gate.weight"][:] = 0
w["input_gate.weight"][0, 0] = 200
w["input_gate.bias"][:] = np.resize([100, 100, -100, 90], HEADS)
w["forget_gate.bias"][:] = np.resize([90, -90, 90, -90], HEADS)
cases.append((dict(x=x), w))
check("recurrence/mlstm", oracle, cases)
