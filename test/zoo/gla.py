# RUN: %python %s heedc
# RUN: %python %s heedc --set=heads=1 --set=tau=1
"""Yang et al. 2023, section 4.1's parallel form: o = ((Q . G) (K / G)^T, masked) V of each head with G_t = alpha_1 .. alpha_t, here as
sum_{j <= i} sum_e q_ie k_je exp(log G_ie - log G_je) v_j; alpha = sigmoid(x W1 W2 + b)^(1/tau); LayerNorm of each head, times swish(x W_r + b_r),
times W_O (section 4.4). The recurrence S_t = diag(alpha_t) S_(t-1) + k_t v_t is run beside it."""
import sys

import numpy as np
from zoo import check, heads, layer_norm, linear, linear_weights, merge, norm_weights, uniform

options = {a[6:].split("=")[0]: int(a.split("=")[-1]) for a in sys.argv if a.startswith("--set=")}
HEADS, TAU = options.get("heads", 4), options.get("tau", 16)


def head(q, k, v, log):
    o, steps, S, total = np.zeros(v.shape), np.zeros(v.shape), np.zeros((k.shape[1], v.shape[1])), np.cumsum(log, 0)
    for t in range(len(q)):
        scores = np.einsum("e,je,je->j", q[t], k[: t + 1], np.exp(total[t] - total[: t + 1]))
        o[t] = scores @ v[: t + 1]
        S = np.exp(log[t])[:, None] * S + np.outer(k[t], v[t])
        steps[t] = q[t] @ S
    np.testing.assert_allclose(steps, o, rtol=0, atol=1e-10)
    return o


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    dense = lambda y, at: y @ weights[f"{at}.weight"].astype(np.float64).T
    q, k, v = (heads(dense(x, at), HEADS) for at in ("query", "key", "value"))
    log = heads(-np.logaddexp(0, -linear(dense(x, "decay.0"), weights, "decay.1")) / TAU, HEADS)
    o = np.zeros(v.shape)
    for b, h in np.ndindex(*o.shape[:2]):
        o[b, h] = head(q[b, h], k[b, h], v[b, h], log[b, h])
    r = linear(x, weights, "gate")
    return {"y": dense(r / (1 + np.exp(-r)) * merge(layer_norm(o, weights, "norm")), "output")}


def weights(d):
    """Keys are like queries, so that no result is near 0: the norm would magnify its rounding."""
    matrix = lambda out, into: uniform(rng, out, into) * np.float32(into**-0.5)
    query = matrix(d // 2, d) * 2
    return {"query.weight": query, "key.weight": query + matrix(d // 2, d) / 4, "value.weight": matrix(d, d), "output.weight": matrix(d, d),
            "decay.0.weight": matrix(16, d), **linear_weights(rng, "decay.1", d // 2, 16), **linear_weights(rng, "gate", d, d),
            **norm_weights(rng, "norm", d // HEADS)}


rng = np.random.default_rng(423)
cases = []
for b, n, d in [(2, 17, 24), (1, 257, 32), (1, 1, 8), (3, 1, 16), (2, 0, 8), (2, 135, 40)]:
    cases.append((dict(x=uniform(rng, b, n, d)), weights(d)))
# Channels that forget all (e^-200 and less, at tau = 1), nothing, or all or nothing by the sign of x's first channel.
x, w = uniform(rng, 1, 140, 16), weights(16)
x[0, :, 0] = np.where(rng.uniform(size=140) < 0.3, -1, 1)
w["decay.0.weight"][:] = 0
w["decay.0.weight"][0, 0] = 1
w["decay.1.weight"][:] = 0
w["decay.1.weight"][::3, 0] = 200 * TAU
w["decay.1.bias"][:] = np.resize([0, -200 * TAU, 200 * TAU], 8)
cases.append((dict(x=x), w))
check("linear/gla", oracle, cases)
