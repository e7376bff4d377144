# RUN: %python %s heedc
# RUN: %python %s heedc --set=layers=1 --set=decoder_layers=1 --set=heads=1
"""Chen et al. 2018, section 4, sentence by sentence: LSTM cells whose gates i, f, g, o are each LN(W x + U h), h = sigmoid(o) c; encoder layers of
both directions, a residual from the third on, a projection; a decoder whose bottom layer reads [y; c'], whose heads score v . tanh(W s + U h_j), and
whose other layers and softmax read [s; c]."""
import sys

import numpy as np
from zoo import check, f64, linear, linear_weights, softmax, uniform

option = lambda name, default: next((int(a.split("=")[-1]) for a in sys.argv if f"{name}=" in a and not f"_{name}=" in a), default)
LAYERS, DECODER, HEADS, E = option("layers", 3), option("decoder_layers", 3), option("heads", 2), 12
sigmoid = lambda x: 1 / (1 + np.exp(-x))


def cell(x, state, weights, at):
    h, c = state
    w, u, gain, bias = f64(*(weights[f"{at}.{n}"] for n in ("weight_ih", "weight_hh", "norm.weight", "norm.bias")))
    a = (w @ x + u @ h).reshape(4, E)
    i, f, g, o = (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5) * gain + bias
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * c, c


def lstm(words, weights, at):
    state, rows = (np.zeros(E), np.zeros(E)), []
    for x in words:
        state = cell(x, state, weights, at)
        rows.append(state[0])
    return np.array(rows)


def encode(x, weights):
    for l in range(LAYERS):
        y = np.concatenate([lstm(x, weights, f"encoder.{l}.forward"), lstm(x[::-1], weights, f"encoder.{l}.backward")[::-1]], 1)
        x = x + y if l >= 2 else y
    return linear(x, weights, "projection")


def attend(s, k, values, weights):
    q, context = linear(s, weights, "attention.query"), np.zeros(E)
    for h, v in enumerate(weights["attention.v"].astype(np.float64)):
        at = slice(h * E // HEADS, (h + 1) * E // HEADS)
        p = softmax(np.array([v @ np.tanh(q[at] + key[at]) for key in k]))
        context[at] = p @ values[:, at]
    return context


def oracle(inputs, weights):
    word, previous = (weights[f"{n}.embedding"].astype(np.float64) for n in ("source", "target"))
    logp = np.zeros((*inputs["target"].shape, len(previous)))
    for b, n in enumerate(inputs["length"]):
        if n:
            rows = encode(word[inputs["source"][b, :n]], weights)
            k, v = linear(rows, weights, "attention.key"), linear(rows, weights, "attention.value")
        states, context = [(np.zeros(E), np.zeros(E))] * DECODER, np.zeros(E)
        for t, y in enumerate(previous[inputs["target"][b]]):
            states[0] = cell(np.concatenate([y, context]), states[0], weights, "decoder.0")
            s = states[0][0]
            context = attend(s, k, v, weights) if n else np.zeros(E)
            for l in range(1, DECODER):
                states[l] = cell(np.concatenate([s, context]), states[l], weights, f"decoder.{l}")
                s = states[l][0] + (s if l >= 2 else 0)
            logits = linear(np.concatenate([s, context]), weights, "softmax")
            logp[b, t] = logits - np.log(np.exp(logits).sum())
    return {"logp": logp}


def cell_weights(rng, at, into):
    return {f"{at}.weight_ih": uniform(rng, 4 * E, into), f"{at}.weight_hh": uniform(rng, 4 * E, E) / np.float32(4),
            f"{at}.norm.weight": uniform(rng, 4, E) + 1, f"{at}.norm.bias": uniform(rng, 4, E)}


rng = np.random.default_rng(618)
cases = []
for lengths, n, t, d, v, u in [([5, 3, 0], 5, 4, 7, 11, 9), ([1], 1, 1, 1, 1, 2), ([33, 20], 40, 17, 9, 50, 70), ([140], 150, 9, 16, 30, 30),
                               ([0], 0, 3, 4, 5, 6), ([4], 4, 0, 4, 5, 6)]:
    weights = {"source.embedding": uniform(rng, v, d), "target.embedding": uniform(rng, u, d), "attention.v": uniform(rng, HEADS, E // HEADS)}
    for l in range(LAYERS):
        weights |= cell_weights(rng, f"encoder.{l}.forward", 2 * E if l else d) | cell_weights(rng, f"encoder.{l}.backward", 2 * E if l else d)
    for l in range(DECODER):
        weights |= cell_weights(rng, f"decoder.{l}", 2 * E if l else d + E)
    weights |= linear_weights(rng, "projection", E, 2 * E) | linear_weights(rng, "softmax", u, 2 * E)
    for name in ("query", "key", "value"):
        weights |= linear_weights(rng, f"attention.{name}", E, E)
    b = len(lengths)
    ids = lambda count, *shape: rng.integers(0, count, shape).astype(np.int32)
    cases.append((dict(source=ids(v, b, n), length=np.array(lengths, np.int32), target=ids(u, b, t)), weights))
check("conv-hybrid/rnmt-plus", oracle, cases)
