# RUN: %python %s heedc
# RUN: %python %s heedc --set=blocks=1
"""Peng et al. 2023, section 3: r, k, v = W (mu x_t + (1 - mu) x_(t-1)); wkv_t = (sum_{i < t} e^(-(t-1-i) w + k_i) v_i + e^(u + k_t) v_t) / (the same
without v); W_o (sigmoid(r) wkv). Channel mix: sigmoid(r) (W_v max(k, 0)^2). Both on x normalised, added to x. Here wkv is that quotient of sums, a
softmax over the exponents; the recurrence of numerator and denominator is run beside it, where it does not overflow."""
import sys

import numpy as np
from zoo import check, layer_norm, norm_weights, softmax, uniform

BLOCKS = next((int(a.split("=")[-1]) for a in sys.argv if "blocks=" in a), 2)
sigmoid = lambda x: np.exp(-np.logaddexp(0, -x))


def wkv(k, v, w, u):
    """k, v: N x D; w, u: D."""
    n = len(k)
    o, steps, num, den = np.zeros(k.shape), np.zeros(k.shape), np.zeros(k.shape[1]), np.zeros(k.shape[1])
    small = np.abs(k).max(initial=0) + np.abs(u).max(initial=0) < 300
    for t in range(n):
        exponents = np.concatenate([k[:t] - np.arange(t - 1, -1, -1)[:, None] * w, [u + k[t]]])
        o[t] = (softmax(exponents.T) * v[: t + 1].T).sum(1)
        if small:
            steps[t] = (num + np.exp(u + k[t]) * v[t]) / (den + np.exp(u + k[t]))
            num, den = np.exp(-w) * num + np.exp(k[t]) * v[t], np.exp(-w) * den + np.exp(k[t])
    if small:
        np.testing.assert_allclose(steps, o, rtol=0, atol=1e-11)
    return o


def mixed(x, weights, mix, at):
    mu = weights[mix][0, 0].astype(np.float64)
    before = np.concatenate([np.zeros((1, x.shape[1])), x])[:-1]
    return (mu * x + (1 - mu) * before) @ weights[f"{at}.weight"].astype(np.float64).T


def oracle(inputs, weights):
    y = np.zeros(inputs["x"].shape)
    for b, x in enumerate(inputs["x"].astype(np.float64)):
        x = layer_norm(x, weights, "blocks.0.ln0")
        for l in range(BLOCKS):
            at, z = f"blocks.{l}.att", layer_norm(x, weights, f"blocks.{l}.ln1")
            r, k, v = (mixed(z, weights, f"{at}.time_mix_{p}", f"{at}.{name}") for p, name in (("r", "receptance"), ("k", "key"), ("v", "value")))
            w, u = np.exp(weights[f"{at}.time_decay"].astype(np.float64)), weights[f"{at}.time_first"].astype(np.float64)
            x = x + (sigmoid(r) * wkv(k, v, w, u)) @ weights[f"{at}.output.weight"].astype(np.float64).T
            at, z = f"blocks.{l}.ffn", layer_norm(x, weights, f"blocks.{l}.ln2")
            r, k = (mixed(z, weights, f"{at}.time_mix_{p}", f"{at}.{name}") for p, name in (("r", "receptance"), ("k", "key")))
            x = x + sigmoid(r) * (np.maximum(k, 0) ** 2 @ weights[f"{at}.value.weight"].astype(np.float64).T)
        y[b] = x
    return {"y": y}


def weights(d):
    matrix = lambda out, into: uniform(rng, out, into) * np.float32(into**-0.5)
    w = norm_weights(rng, "blocks.0.ln0", d)
    for l in range(BLOCKS):
        at = f"blocks.{l}."
        w |= norm_weights(rng, at + "ln1", d) | norm_weights(rng, at + "ln2", d)
        w |= {f"{at}att.{name}.weight": matrix(d, d) for name in ("receptance", "key", "value", "output")}
        w |= {f"{at}ffn.receptance.weight": matrix(d, d), f"{at}ffn.key.weight": matrix(4 * d, d), f"{at}ffn.value.weight": matrix(d, 4 * d)}
        w |= {f"{at}{part}.time_mix_{p}": np.abs(uniform(rng, 1, 1, d)) for part, ps in (("att", "rkv"), ("ffn", "rk")) for p in ps}
        # Decays of e^(-1/150) to e^-20, as the authors begin.
        w |= {f"{at}att.time_decay": np.linspace(-5, 3, d, dtype=np.float32), f"{at}att.time_first": uniform(rng, d)}
    return w


rng = np.random.default_rng(428)
cases = []
for b, n, d in [(2, 17, 12), (1, 200, 16), (1, 1, 1), (3, 2, 5), (2, 0, 4), (5, 135, 7)]:
    cases.append((dict(x=uniform(rng, b, n, d)), weights(d)))
# Keys whose exponentials overflow f32 or vanish, bonuses likewise; channels that forget nothing, or all but the word before.
w = weights(9)
for l in range(BLOCKS):
    w[f"blocks.{l}.att.key.weight"] *= 100
    w[f"blocks.{l}.att.time_first"][:] = np.repeat([0, 150, -150], 3)
    w[f"blocks.{l}.att.time_decay"][:] = np.resize([-100, 6, -1], 9)
cases.append((dict(x=uniform(rng, 2, 140, 9)), w))
check("linear/rwkv", oracle, cases)
