# RUN: %python %s heedc
"""Peng et al. 2024, section 4.2: ddlerp_p(a, b) = a + (b - a) (mu_p + tanh((a + (b - a) mu_x) A_p) B_p) of the word a and the one before it b; r, k,
v, g by matrices of their mixes, w = exp(-exp(w_0 + tanh(x_w A) B)); wkv_t = diag(u) k_t v_t + sum_{i < t} diag(w_(i+1) .. w_(t-1)) k_i v_i, here as
that sum with the recurrence beside it; (SiLU(g) LayerNorm(r wkv) of each head) W_o."""
import numpy as np
from zoo import check, uniform

EPS = 64e-5


def head(r, k, v, log, u):
    """log w N x E."""
    o, steps, S = np.zeros(v.shape), np.zeros(v.shape), np.zeros((k.shape[1], v.shape[1]))
    total = np.cumsum(log, 0)
    for t in range(len(r)):
        decay = np.exp(total[t] - log[t] - total[:t])  # of the words i < t: over i + 1 .. t - 1
        o[t] = np.sum(r[t] * u * k[t]) * v[t] + np.einsum("e,ie,ie,if->f", r[t], decay, k[:t], v[:t])
        steps[t] = r[t] @ (S + np.outer(u * k[t], v[t]))
        S = np.exp(log[t])[:, None] * S + np.outer(k[t], v[t])
    np.testing.assert_allclose(steps, o, rtol=0, atol=1e-10)
    return o


def oracle(inputs, weights):
    w = {k: a.astype(np.float64) for k, a in weights.items()}
    count, size = w["time_faaaa"].shape
    y = np.zeros(inputs["x"].shape)
    for b, x in enumerate(inputs["x"].astype(np.float64)):
        before = np.concatenate([np.zeros((1, x.shape[1])), x])[:-1]
        low = np.split(np.tanh((x + (before - x) * w["time_maa_x"][0]) @ w["time_maa_w1"]), 5, 1)
        mixes = {p: x + (before - x) * (w[f"time_maa_{p}"][0] + low[i] @ w["time_maa_w2"][i]) for i, p in enumerate("wkvrg")}
        r, k, v, g = (mixes[p] @ w[f"{at}.weight"].T for p, at in (("r", "receptance"), ("k", "key"), ("v", "value"), ("g", "gate")))
        log = -np.exp(w["time_decay"][0] + np.tanh(mixes["w"] @ w["time_decay_w1"]) @ w["time_decay_w2"])
        o = np.zeros(x.shape)
        for h in range(count):
            at = slice(h * size, h * size + size)
            s = head(r[:, at], k[:, at], v[:, at], log[:, at], w["time_faaaa"][h])
            c = s - s.mean(1, keepdims=True)
            o[:, at] = c / np.sqrt((c * c).mean(1, keepdims=True) + EPS) * w["ln_x.weight"][at] + w["ln_x.bias"][at]
        y[b] = (o * g / (1 + np.exp(-g))) @ w["output.weight"].T
    return {"y": y}


def weights(h, e, rank=5, decay=6):
    d = h * e
    matrix = lambda out, into: uniform(rng, out, into) * np.float32(max(into, 1) ** -0.5)
    # Receptances are like keys, so that no result is near 0: the norm would magnify its rounding.
    key = matrix(d, d) * 2
    w = {"key.weight": key, "receptance.weight": key + matrix(d, d) / 4} | {f"{at}.weight": matrix(d, d) for at in ("value", "gate", "output")}
    w |= {f"time_maa_{p}": np.abs(uniform(rng, 1, 1, d)) for p in "xwkvrg"}
    w |= {"time_maa_w1": matrix(d, 5 * rank), "time_maa_w2": uniform(rng, 5, rank, d) / 10}
    w |= {"time_decay_w1": matrix(d, decay), "time_decay_w2": uniform(rng, decay, d) / 4}
    # Decays of e^-1 to e^(-1/400), as the authors begin.
    w |= {"time_decay": np.tile(np.linspace(-6, 0, d, dtype=np.float32), (1, 1, 1)), "time_faaaa": uniform(rng, h, e) + 1}
    return w | {"ln_x.weight": uniform(rng, d) + 1, "ln_x.bias": uniform(rng, d)}


rng = np.random.default_rng(425)
cases = []
for b, n, h, e in [(2, 17, 3, 5), (1, 257, 2, 16), (1, 1, 1, 8), (3, 2, 2, 3), (2, 0, 2, 4), (2, 135, 1, 33)]:
    cases.append((dict(x=uniform(rng, b, n, h * e)), weights(h, e)))
# Channels that forget all (e^-400 and less) and nothing.
w = weights(2, 6)
w["time_decay"][0, 0] = np.resize([6, -100, -2], 12)
cases.append((dict(x=uniform(rng, 2, 140, 12)), w))
check("linear/rwkv6", oracle, cases)
