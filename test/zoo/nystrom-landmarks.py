# RUN: %python %s heedc
"""Xiong et al. 2021, equation 4 (landmarks are means of N/L neighbours), and the outer two factors of equation 13: softmax(Q K~') (softmax(Q~ K') V)."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, count=4):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    root = np.sqrt(q.shape[3])
    means = lambda x: np.stack([part.mean(2) for part in np.split(x, count, 2)], 2)
    z = softmax(means(q) @ k.swapaxes(-1, -2) / root) @ v
    return {"o": softmax(q @ means(k).swapaxes(-1, -2) / root) @ z}


rng = np.random.default_rng(704)
cases = []
for b, h, n, e, f in [(2, 3, 20, 8, 5), (1, 2, 300, 16, 16), (1, 1, 4, 4, 4)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
check("lowrank/nystrom-landmarks", oracle, cases)
