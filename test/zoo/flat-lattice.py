# RUN: %python %s heedc --set=longest=160
"""Li et al. 2020, equations 3 to 11: A*_ij = q_i k_j + q_i W_kR R_ij + u k_j + v W_kR R_ij, R_ij = ReLU(W_r (p_hh + p_th + p_ht + p_tt)), + the
concatenation, p_d[2k] = sin(d / 10000^(2k/D)), p_d[2k+1] = cos. Characters have head = tail, matched words follow them."""
import numpy as np
from zoo import attention_weights, check, f64, linear, softmax, uniform

HEADS = 4


def sinusoid(t, d):
    angles = t / 10000 ** (np.arange(0, d, 2) / d)
    return np.stack([np.sin(angles), np.cos(angles)], 1).reshape(-1)


def oracle(inputs, weights):
    x, head, tail = inputs["x"].astype(np.float64), inputs["head"], inputs["tail"]
    wr, wkr, u, v = f64(*(weights[n] for n in ("relative.weight", "relative.key.weight", "u", "v")))
    q, k, w = (linear(x, weights, "attention." + n) for n in ("query", "key", "value"))
    b, n, d = x.shape
    o = np.zeros(x.shape)
    for r in range(b):
        real = inputs["length"][r]
        for i in range(n):
            R = np.zeros((real, d))
            for j in range(real):
                pairs = [(head[r, i], head[r, j]), (tail[r, i], head[r, j]), (head[r, i], tail[r, j]), (tail[r, i], tail[r, j])]
                R[j] = wr @ np.concatenate([sinusoid(int(one) - int(other), d) for one, other in pairs])
            R = np.maximum(R, 0) @ wkr.T
            for h, part in enumerate(np.split(np.arange(d), HEADS)):
                A = k[r, :real, part].T @ (q[r, i, part] + u[h]) + R[:, part] @ (q[r, i, part] + v[h])
                o[r, i, part] = softmax(A) @ w[r, :real, part].T if real else 0
    return {"y": linear(o, weights, "attention.output")}


rng = np.random.default_rng(411)
cases = []
for lengths, n, d in [([11, 6, 0], 11, 8), ([133], 133, 4), ([1], 1, 4), ([20], 24, 16)]:
    chars = max(n * 2 // 3, 1)
    head = np.tile(np.arange(n), (len(lengths), 1))
    head[:, chars:] = rng.integers(0, chars, (len(lengths), n - chars))
    tail = head.copy()
    tail[:, chars:] += rng.integers(1, 5, (len(lengths), n - chars))
    weights = attention_weights(rng, "attention.", d)
    weights |= {"relative.weight": uniform(rng, d, 4 * d) * np.float32((4 * d)**-0.5), "relative.key.weight": uniform(rng, d, d) * np.float32(d**-0.5),
                "u": uniform(rng, HEADS, d // HEADS), "v": uniform(rng, HEADS, d // HEADS)}
    inputs = dict(x=uniform(rng, len(lengths), n, d), head=head.astype(np.int32), tail=tail.astype(np.int32), length=np.array(lengths, np.int32))
    cases.append((inputs, weights))
check("score/flat-lattice", oracle, cases)
