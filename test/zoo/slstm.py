# RUN: %python %s heedc
# RUN: %python %s heedc --set=forget=exp
"""Beck et al. 2024, section 2.2: c_t = f c_(t-1) + i z, n_t = f n_(t-1) + i, h_t = o c_t / n_t; i = exp(~i), f = exp(~f) or sigmoid(~f), z =
tanh(~z), o = sigmoid(~o) with ~ = W x_t + R h_(t-1) + b, R of each head. Without the stabiliser: h_t / o is the mean of all z so far, with weights
i_j f_(j+1) .. f_t, taken by their logarithms."""
import sys

import numpy as np
from zoo import check, uniform

EXP = any("forget=exp" in a for a in sys.argv)
sigmoid = lambda x: np.exp(-np.logaddexp(0, -x))


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    W, R, bias = (weights[k].astype(np.float64) for k in ("input", "recurrent", "bias"))
    h, e = R.shape[1:3]
    y = np.zeros((*x.shape[:2], h, e))
    for b in range(len(x)):
        logs, zs, last = np.zeros((0, h, e)), np.zeros((0, h, e)), np.zeros((h, e))
        for t in range(x.shape[1]):
            i, f, z, o = np.einsum("phed,d->phe", W, x[b, t]) + np.einsum("phek,hk->phe", R, last) + bias
            logs = np.concatenate([logs + (f if EXP else -np.logaddexp(0, -f)), i[None]])
            zs = np.concatenate([zs, np.tanh(z)[None]])
            share = np.exp(logs - logs.max(0))
            last = y[b, t] = sigmoid(o) * (share * zs).sum(0) / share.sum(0)
    return {"y": y.reshape(*x.shape[:2], h * e)}


rng = np.random.default_rng(426)
cases = []
for b, n, d, h, e in [(2, 7, 5, 3, 4), (1, 1, 1, 1, 1), (3, 40, 17, 2, 9), (1, 200, 16, 1, 16), (2, 0, 3, 2, 4), (5, 135, 6, 3, 7)]:
    W, R = uniform(rng, 4, h, e, d) / np.float32(d**0.5), uniform(rng, 4, h, e, e) / np.float32(e)
    cases.append((dict(x=uniform(rng, b, n, d)), {"input": W, "recurrent": R, "bias": uniform(rng, 4, h, e)}))
# Gates that overflow f32 (e^100 and e^300) or vanish; words that replace all before them, by the sign of x's first channel.
x, W, bias = uniform(rng, 2, 70, 3), uniform(rng, 4, 2, 8, 3), uniform(rng, 4, 2, 8)
x[:, :, 0] = np.where(rng.uniform(size=(2, 70)) < 0.2, 1, -1)
W[:2] = 0
W[0, :, ::2, 0] = 200
bias[0, 0], bias[0, 1] = 100, -100
bias[1, :, :4], bias[1, :, 4:] = 90, -90
cases.append((dict(x=x), {"input": W, "recurrent": uniform(rng, 4, 2, 8, 8) / 8 * np.float32([0, 0, 1, 1])[:, None, None, None], "bias": bias}))
check("recurrence/slstm", oracle, cases)
