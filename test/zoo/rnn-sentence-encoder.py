# RUN: %python %s heedc
"""Xiao and Zhu 2023, section 5.8; Sutskever et al. 2014: a sentence as the last state of an LSTM over its word embeddings, or as r of its states."""
import numpy as np
from zoo import check, f64, uniform

E = 16
sigmoid = lambda x: 1 / (1 + np.exp(-x))


def oracle(inputs, weights):
    word, w, u, bias = f64(*(weights[n] for n in ("embedding.weight", "encoder.weight_ih", "encoder.weight_hh", "encoder.bias")))
    ids, chosen = inputs["ids"], inputs["chosen"]
    vector, vectors = np.zeros((len(ids), E)), np.zeros((*chosen.shape, E))
    for b, length in enumerate(inputs["length"]):
        h = c = np.zeros(E)
        states = []
        for t in range(length):
            i, f, g, o = np.split(w @ word[ids[b, t]] + u @ h + bias, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            states.append(h)
        vector[b] = h
        for r, t in enumerate(chosen[b]):
            vectors[b, r] = states[min(t, length - 1)] if length else 0
    return {"vector": vector, "vectors": vectors}


rng = np.random.default_rng(405)
cases = []
for lengths, n, r, v, d in [([5, 3], 5, 3, 11, 4), ([1], 1, 1, 1, 1), ([0, 9, 4], 9, 4, 50, 33), ([150, 20], 150, 7, 30, 16), ([3], 3, 0, 5, 3)]:
    weights = {"embedding.weight": uniform(rng, v, d), "encoder.weight_ih": uniform(rng, 4 * E, d),
               "encoder.weight_hh": uniform(rng, 4 * E, E) / np.float32(E), "encoder.bias": uniform(rng, 4 * E)}
    b = len(lengths)
    ids, chosen = (rng.integers(0, size, (b, count)).astype(np.int32) for size, count in ((v, n), (n, r)))
    cases.append((dict(ids=ids, length=np.array(lengths, np.int32), chosen=chosen), weights))
check("recurrence/rnn-sentence-encoder", oracle, cases)
