# RUN: %python %s heedc
# RUN: %python %s heedc --set=D=3
"""Luong et al. 2015, equations 9 and 10: a_t(s) = align(h_t, h_s) exp(-(s - p_t)^2 / (2 sigma^2)), p_t = S sigmoid(v' tanh(W h_t)), sigma = D / 2, s in
[p_t - D, p_t + D]. Source rows outside the sentence hold NaN; a source may be empty. The window may hold the whole source."""
import sys
import numpy as np
from zoo import check, f64, softmax, uniform

D = 3 if "--set=D=3" in sys.argv else 10


def oracle(inputs, weights):
    h, source = f64(inputs["h"], inputs["source"])
    wp, vp, wa = f64(*(weights[n] for n in ("position.weight", "position.v", "attention.weight")))
    out = np.zeros(h.shape)
    for b, length in enumerate(inputs["S"]):
        for t, state in enumerate(h[b]):
            center = length / (1 + np.exp(-vp @ np.tanh(wp @ state)))
            low, high = max(int(np.ceil(center - D)), 0), min(int(np.floor(center + D)), length - 1)
            if low > high:
                continue
            window = source[b, low:high + 1]
            weight = softmax(window @ (wa.T @ state)) * np.exp(-2 * ((np.arange(low, high + 1) - center) / D) ** 2)
            out[b, t] = weight @ window
    return {"context": out}


rng = np.random.default_rng(413)
cases = []
for lengths, n, m, c, a in [([30, 4, 0], 7, 30, 6, 5), ([170], 140, 170, 8, 4), ([1], 1, 1, 4, 2), ([400], 9, 400, 16, 8)]:
    source = uniform(rng, len(lengths), m, c)
    for b, length in enumerate(lengths):
        source[b, length:] = np.nan
    weights = {"position.weight": uniform(rng, a, c), "position.v": uniform(rng, a) * 2, "attention.weight": uniform(rng, c, c) * np.float32(c**-0.5)}
    cases.append((dict(h=uniform(rng, len(lengths), n, c), source=source, S=np.array(lengths, np.int32)), weights))
# The centre, up to 400, is rounded to f32; a weight moves by at most 1 / (sigma sqrt(e)) times as much.
check("sparse/luong-local", oracle, cases, tolerance=1e-5 + 400 * 2**-23 / (D / 2 * np.sqrt(np.e)))
