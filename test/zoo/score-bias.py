# RUN: %python %s heedc
"""Lin et al. 2022, section 4.5: softmax(w1 Q K^T / sqrt(d) + w2 M) V, M for all or each of the sentences and heads. A prior of -inf is a mask."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v, prior = f64(inputs["q"], inputs["k"], inputs["v"], inputs["prior"])
    prior = np.repeat(np.repeat(prior, len(q) // len(prior), 0), q.shape[1] // prior.shape[1], 1)
    s = inputs.get("w1", 1) * (q @ k.swapaxes(-1, -2)) / np.sqrt(q.shape[-1]) + inputs.get("w2", 1) * prior
    return {"o": softmax(s, s > -np.inf) @ v}


rng = np.random.default_rng(204)
cases = []
for b, h, n, m, e, f, c, g in [(2, 4, 9, 13, 8, 4, 2, 4), (2, 4, 9, 13, 8, 4, 1, 2), (1, 2, 150, 135, 8, 8, 1, 1), (3, 2, 33, 33, 16, 5, 3, 1), (1, 1, 1, 1, 4, 4, 1, 1)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), v=uniform(rng, b, h, m, f), prior=3 * uniform(rng, c, g, n, m))
    cases.append((inputs, None))
    cases.append((inputs | dict(w1=0.25, w2=1.5), None))
    masked = np.where(uniform(rng, c, g, n, m) < 0, np.float32(-np.inf), inputs["prior"])
    masked[:, :, 0] = -np.inf
    cases.append((inputs | dict(prior=masked, w2=0.5), None))
check("prior/score-bias", oracle, cases)
