# RUN: %python %s heedc
"""You et al. 2020: head h weighs position j by the normal density around i + offset_h of deviation sigma, normalised over the sentence."""
import numpy as np
from zoo import check, heads, linear, linear_weights, merge, uniform


def oracle(inputs, weights):
    x, offset, sigma = inputs["x"].astype(np.float64), inputs["offset"], inputs.get("sigma", 1)
    n, v = x.shape[1], heads(linear(x, weights, "value"), len(offset))
    o = np.zeros_like(v)
    for h, shift in enumerate(offset):
        for i in range(n):
            a = np.exp(-((np.arange(n) - i - shift) ** 2) / (2 * sigma**2))
            o[:, h, i] = np.einsum("j,bje->be", a / a.sum(), v[:, h])
    return {"y": linear(merge(o), weights, "output")}


rng = np.random.default_rng(216)
cases = []
for b, n, d, offset, sigma in [(2, 9, 16, [-1, 1, 0, 2], None), (1, 150, 8, [-1, 1], 2.5), (1, 1, 4, [1], None), (2, 33, 12, [0, -5, 7], 40.0)]:
    weights = linear_weights(rng, "value", d, d) | linear_weights(rng, "output", d, d)
    inputs = dict(x=uniform(rng, b, n, d), offset=np.array(offset, np.int32)) | ({} if sigma is None else dict(sigma=sigma))
    cases.append((inputs, weights))
check("prior/hardcoded-gaussian", oracle, cases)
