# RUN: %python %s heedc
"""Zhang et al. 2018, equations 1 to 3: g_t = FFN(mean of y_1 .. y_t), i, f = sigmoid(W [y_t; g_t]), h_t = LN(y_t + i y_t + f g_t). The mean as a
running sum over a count (the decoder's form), and as a masked matrix (the form of training): both agree."""
import numpy as np
from zoo import check, feed_forward, feed_forward_weights, layer_norm, linear, linear_weights, norm_weights, uniform


def oracle(inputs, weights):
    y = inputs["y"].astype(np.float64)
    _, n, d = y.shape
    average, total = np.zeros(y.shape), np.zeros(y[:, 0].shape) if n else None
    for t in range(n):
        total = total + y[:, t]
        average[:, t] = total / (t + 1)
    mask = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    assert np.allclose(average, np.einsum("ij,bjd->bid", mask, y), rtol=0, atol=1e-12)
    g = feed_forward(average, weights, "average.")
    gate = 1 / (1 + np.exp(-linear(np.concatenate([y, g], -1), weights, "gate")))
    return {"h": layer_norm(y + gate[..., :d] * y + gate[..., d:] * g, weights, "norm"), "average": average}


rng = np.random.default_rng(406)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 5), (3, 40, 33), (1, 300, 16), (2, 0, 4)]:
    weights = feed_forward_weights(rng, "average.", d, 32) | linear_weights(rng, "gate", 2 * d, 2 * d) | norm_weights(rng, "norm", d)
    cases.append((dict(y=uniform(rng, b, n, d)), weights))
check("recurrence/aan", oracle, cases)
