# RUN: %python %s heedc
"""A soft cap (Gemma 2) and one sink logit per head in the denominator (gpt-oss), in a causal window of 128, grouped heads."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, window=128, cap=50.0):
    q, k, v, sink = f64(inputs["q"], inputs["k"], inputs["v"], inputs["sink"])
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    n = q.shape[2]
    s = cap * np.tanh(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) / cap)
    with_sink = np.concatenate([s, np.broadcast_to(sink[None, :, None, None], s.shape[:3] + (1,))], -1)
    distance = np.arange(n)[:, None] - np.arange(n)
    live = np.concatenate([(distance >= 0) & (distance < window), np.ones((n, 1), bool)], -1)
    return {"o": softmax(with_sink, live)[..., :-1] @ v}


rng = np.random.default_rng(15)
cases = []
for b, h, g, n, e, f in [(1, 4, 2, 300, 16, 16), (2, 2, 2, 33, 8, 4), (1, 1, 1, 1, 4, 4)]:
    inputs = dict(q=uniform(rng, b, h, n, e) * 8, k=uniform(rng, b, g, n, e) * 8, v=uniform(rng, b, g, n, f))
    cases.append((inputs | dict(sink=uniform(rng, h) * 3), None))
check("score/cap-and-sinks", oracle, cases, tolerance=2e-5)
