# RUN: %python %s heedc
# RUN: %python %s heedc --set=window=1 --set=layers=1
# RUN: %python %s heedc --set=window=50
"""Wang et al. 2019, section 2, word by word: h_t = GRU over x_(t-M+1) .. x_t alone from a state of zeros, where words before the first are zeros;
then causal attention, then a feed-forward network, each as x + F(LN(x))."""
import sys

import numpy as np
from zoo import attention_weights, check, feed_forward, feed_forward_weights, layer_norm, multi_head, norm_weights, uniform

option = lambda name, default: next((int(a.split("=")[-1]) for a in sys.argv if f"{name}=" in a), default)
LAYERS, WINDOW = option("layers", 2), option("window", 5)
sigmoid = lambda x: 1 / (1 + np.exp(-x))


def gru(words, weights, at):
    """Rows of a batch: B x M x D to B x D."""
    wr, wz, wn = np.split(weights[f"{at}.weight_ih"].astype(np.float64), 3)
    ur, uz, un = np.split(weights[f"{at}.weight_hh"].astype(np.float64), 3)
    br, bz, bn = np.split(weights[f"{at}.bias"].astype(np.float64), 3)
    h = np.zeros((len(words), words.shape[2]))
    for x in words.swapaxes(0, 1):
        r, z = sigmoid(x @ wr.T + h @ ur.T + br), sigmoid(x @ wz.T + h @ uz.T + bz)
        h = (1 - z) * h + z * np.tanh(x @ wn.T + (r * h) @ un.T + bn)
    return h


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    n = x.shape[1]
    for at in (f"layer.{l}" for l in range(LAYERS)):
        y = np.pad(layer_norm(x, weights, at + ".norm1"), ((0, 0), (WINDOW - 1, 0), (0, 0)))
        local = np.zeros(x.shape)
        for t in range(n):
            local[:, t] = gru(y[:, t : t + WINDOW], weights, at + ".rnn")
        x = x + local
        y = layer_norm(x, weights, at + ".norm2")
        x = x + multi_head(y, y, weights, 2, at + ".attention.", np.tri(n, dtype=bool))
        x = x + feed_forward(layer_norm(x, weights, at + ".norm3"), weights, at + ".ffn.")
    return {"x": x}


rng = np.random.default_rng(615)
cases = []
for b, n, d in [(2, 7, 10), (1, 1, 4), (1, 140, 16), (2, 0, 6), (3, 3, 34)]:
    weights = {}
    for at in (f"layer.{l}" for l in range(LAYERS)):
        weights |= {f"{at}.rnn.{n}": uniform(rng, 3 * d, d) / np.float32(d**0.5) for n in ("weight_ih", "weight_hh")} | {f"{at}.rnn.bias": uniform(rng, 3 * d)}
        weights |= attention_weights(rng, at + ".attention.", d) | feed_forward_weights(rng, at + ".ffn.", d, 32)
        for norm in ("norm1", "norm2", "norm3"):
            weights |= norm_weights(rng, f"{at}.{norm}", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("position/r-transformer", oracle, cases)
