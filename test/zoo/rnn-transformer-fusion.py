# RUN: %python %s heedc
# RUN: %python %s heedc --set=order=serial
"""Hao et al. 2019, section 3, sentence by sentence: h_rnn = [->h; <-h] of an LSTM over its real words, h_san of self-attention layers over the
embeddings or over h_rnn; g = sigmoid(W [h_rnn; h_san] + b), h = g h_rnn + (1 - g) h_san."""
import sys

import numpy as np
from zoo import attention_weights, check, f64, feed_forward, feed_forward_weights, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform

SERIAL = any("order=serial" in a for a in sys.argv)
sigmoid = lambda x: 1 / (1 + np.exp(-x))


def lstm(words, weights, at):
    w, u, bias = f64(*(weights[f"{at}.{n}"] for n in ("weight_ih", "weight_hh", "bias")))
    h = c = np.zeros(u.shape[1])
    rows = []
    for x in words:
        i, f, g, o = np.split(w @ x + u @ h + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        rows.append(h)
    return np.reshape(rows, (len(words), u.shape[1]))


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    r = np.zeros(x.shape)
    for b, n in enumerate(inputs["length"]):
        words = x[b, :n]
        r[b, :n] = np.concatenate([lstm(words, weights, "lstm.forward"), lstm(words[::-1], weights, "lstm.backward")[::-1]], 1)
    z = r if SERIAL else x
    live = (np.arange(x.shape[1]) < inputs["length"][:, None])[:, None, None]
    for at in ("layer.0", "layer.1"):
        z = layer_norm(z + multi_head(z, z, weights, 2, at + ".attention.", live), weights, at + ".norm1")
        z = layer_norm(z + feed_forward(z, weights, at + "."), weights, at + ".norm2")
    g = sigmoid(linear(np.concatenate([r, z], -1), weights, "gate"))
    return {"y": g * r + (1 - g) * z}


rng = np.random.default_rng(617)
cases = []
for lengths, n, d in [([7, 5, 0], 7, 10), ([1], 1, 8), ([2, 33], 33, 34), ([140], 150, 16), ([0, 0], 0, 6)]:
    e = d // 2
    weights = linear_weights(rng, "gate", d, 2 * d)
    for at in ("lstm.forward", "lstm.backward"):
        weights |= {f"{at}.weight_ih": uniform(rng, 4 * e, d), f"{at}.weight_hh": uniform(rng, 4 * e, e) / np.float32(e)}
        weights |= {f"{at}.bias": uniform(rng, 4 * e)}
    for at in ("layer.0", "layer.1"):
        weights |= attention_weights(rng, at + ".attention.", d) | feed_forward_weights(rng, at + ".", d, 32)
        weights |= norm_weights(rng, at + ".norm1", d) | norm_weights(rng, at + ".norm2", d)
    cases.append((dict(x=uniform(rng, len(lengths), n, d), length=np.array(lengths, np.int32)), weights))
check("conv-hybrid/rnn-transformer-fusion", oracle, cases)
