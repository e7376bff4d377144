# RUN: %python %s heedc
# RUN: %python %s heedc --set=cycles=3
"""Guo et al. 2019, algorithm 1: of each sentence, word by word, h_i = LN(ReLU(MultiAtt(h_i, [h_(i-1); h_i; h_(i+1); e_i; s]))) in a ring, then s =
LN(ReLU(MultiAtt(s, [s; h_1 .. h_n]))), from h = e and s = mean of e."""
import sys

import numpy as np
from zoo import attention_weights, check, layer_norm, multi_head, norm_weights, uniform

CYCLES = next((int(a.split("=")[-1]) for a in sys.argv if "cycles=" in a), 2)


def oracle(inputs, weights):
    x = inputs["e"].astype(np.float64)
    y, relay = np.zeros(x.shape), np.zeros((x.shape[0], x.shape[2]))

    def update(row, rows, at):
        a = multi_head(row[None, None], np.array(rows)[None], weights, 2, at + ".")[0, 0]
        return layer_norm(np.maximum(a, 0), weights, at + ".norm")

    for b, n in enumerate(inputs["length"]):
        e = x[b, :n]
        h, s = list(e), e.mean(0) if n else np.zeros(x.shape[2])
        for t in range(CYCLES):
            h = [update(h[i], [h[i - 1], h[i], h[(i + 1) % n], e[i], s], f"cycle.{t}.satellite") for i in range(n)]
            s = update(s, [s] + h, f"cycle.{t}.relay")
        y[b, :n], relay[b] = np.reshape(h, (n, x.shape[2])), s
    return {"h": y, "s": relay}


rng = np.random.default_rng(601)
cases = []
for lengths, n, d in [([7, 5, 1], 7, 10), ([1], 1, 8), ([0, 2, 9], 9, 34), ([150], 150, 16), ([0, 0], 3, 6)]:
    weights = {}
    for at in (f"cycle.{t}.{part}" for t in range(CYCLES) for part in ("satellite", "relay")):
        weights |= attention_weights(rng, at + ".", d) | norm_weights(rng, at + ".norm", d)
    cases.append((dict(e=uniform(rng, len(lengths), n, d), length=np.array(lengths, np.int32)), weights))
check("sparse/star-transformer", oracle, cases)
