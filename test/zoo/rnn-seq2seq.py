# RUN: %python %s heedc
"""Bahdanau et al. 2015, appendix A.2, sentence by sentence: encoder states h_j = [->h_j; <-h_j], s_0 = tanh(W <-h_1), e_ij = v tanh(W s_(i-1) + U
h_j), s_i = GRU(s_(i-1), [E y_(i-1); c_i]), t_i = max of pairs of U_o s_(i-1) + V_o E y_(i-1) + C_o c_i, p ~ exp(W_o t_i)."""
import numpy as np
from zoo import check, linear, linear_weights, softmax, uniform

sigmoid = lambda x: 1 / (1 + np.exp(-x))
E, ALIGN, PAIRS = 12, 10, 8


def gru(x, h, weights, at):
    wr, wz, wn = np.split(weights[f"{at}.weight_ih"].astype(np.float64), 3)
    ur, uz, un = np.split(weights[f"{at}.weight_hh"].astype(np.float64), 3)
    br, bz, bn = np.split(weights[f"{at}.bias"].astype(np.float64), 3)
    r, z = sigmoid(wr @ x + ur @ h + br), sigmoid(wz @ x + uz @ h + bz)
    return (1 - z) * h + z * np.tanh(wn @ x + un @ (r * h) + bn)


def oracle(inputs, weights):
    word, last = (weights[f"{n}.embedding"].astype(np.float64) for n in ("source", "target"))
    u = weights["align.key.weight"].astype(np.float64)
    logp = np.zeros((*inputs["target"].shape, len(last)))
    final = np.zeros((len(logp), E))
    for b, n in enumerate(inputs["length"]):
        x = word[inputs["source"][b, :n]]
        right, left, h, g = [], [], np.zeros(E), np.zeros(E)
        for i in range(n):
            h, g = gru(x[i], h, weights, "forward"), gru(x[n - 1 - i], g, weights, "backward")
            right.append(h)
            left.insert(0, g)
        states = np.concatenate([right, left], 1) if n else np.zeros((0, 2 * E))
        s = np.tanh(linear(g, weights, "start"))
        for t, y in enumerate(last[inputs["target"][b]]):
            e = np.array([weights["align.v"].astype(np.float64) @ np.tanh(linear(s, weights, "align.query") + u @ state) for state in states])
            c = softmax(e) @ states if n else np.zeros(2 * E)
            hidden = linear(np.concatenate([s, y, c]), weights, "output.hidden")
            s = gru(np.concatenate([y, c]), s, weights, "decoder")
            logits = linear(hidden.reshape(PAIRS, 2).max(1), weights, "output")
            logp[b, t] = logits - np.log(np.exp(logits).sum())
        final[b] = s
    return {"logp": logp, "last": final}


def gru_weights(rng, at, into):
    return {f"{at}.weight_ih": uniform(rng, 3 * E, into), f"{at}.weight_hh": uniform(rng, 3 * E, E) / np.float32(4), f"{at}.bias": uniform(rng, 3 * E)}


rng = np.random.default_rng(614)
cases = []
for lengths, n, t, d, v, u in [([5, 3, 0], 5, 4, 7, 11, 9), ([1], 1, 1, 1, 1, 2), ([33, 20], 40, 17, 9, 50, 70), ([140], 150, 9, 16, 30, 30),
                               ([0], 0, 3, 4, 5, 6), ([4], 4, 0, 4, 5, 6)]:
    weights = gru_weights(rng, "forward", d) | gru_weights(rng, "backward", d) | gru_weights(rng, "decoder", d + 2 * E)
    weights |= {"source.embedding": uniform(rng, v, d), "target.embedding": uniform(rng, u, d), "align.v": uniform(rng, ALIGN)}
    weights |= {"align.key.weight": uniform(rng, ALIGN, 2 * E)} | linear_weights(rng, "align.query", ALIGN, E) | linear_weights(rng, "start", E, E)
    weights |= linear_weights(rng, "output.hidden", 2 * PAIRS, 3 * E + d) | linear_weights(rng, "output", u, PAIRS)
    b = len(lengths)
    ids = lambda count, *shape: rng.integers(0, count, shape).astype(np.int32)
    cases.append((dict(source=ids(v, b, n), length=np.array(lengths, np.int32), target=ids(u, b, t)), weights))
check("recurrence/rnn-seq2seq", oracle, cases)
