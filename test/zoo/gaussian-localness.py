# RUN: %python %s heedc
"""Yang et al. 2018, section 3: softmax(Q K^T / sqrt(d) + G) V, G_ij = -(j - P_i)^2 / (2 sigma_i^2), sigma_i = D_i / 2,
P_i = I sigmoid(U_p^T tanh(W_p Q_i)), D_i = I sigmoid(U_d^T tanh(W_p Q_i)), I the sentence's length; each head by itself.
"""
import numpy as np
from zoo import check, f64, softmax, uniform


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def oracle(inputs, weights):
    q, k, v, wp, up, ud = f64(*(inputs[n] for n in ("q", "k", "v", "Wp", "Up", "Ud")))
    o = np.zeros(q.shape[:3] + v.shape[3:])
    n = q.shape[2]
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for i in range(n):
                hidden = np.tanh(wp[h] @ q[b, h, i])
                centre, width = n * sigmoid(up[h] @ hidden), n * sigmoid(ud[h] @ hidden)
                g = -((np.arange(n) - centre) ** 2) / (2 * (width / 2) ** 2)
                o[b, h, i] = softmax(k[b, h] @ q[b, h, i] / np.sqrt(q.shape[-1]) + g) @ v[b, h]
    return {"o": o}


rng = np.random.default_rng(207)
cases = []
for b, h, n, e, f, a in [(1, 2, 150, 8, 8, 4), (2, 3, 19, 16, 5, 16), (1, 1, 1, 4, 4, 1), (2, 1, 2, 4, 4, 3)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f))
    cases.append((inputs | dict(Wp=uniform(rng, h, a, e), Up=uniform(rng, h, a), Ud=uniform(rng, h, a)), None))
check("prior/gaussian-localness", oracle, cases)
