# RUN: %python %s heedc
# RUN: %python %s heedc --set=k=0
# RUN: %python %s heedc --set=k=2 --set=n=2
"""Press et al. 2020, section 5: the word s^k (sf)^{n-k} f^k read from left to right; k = 0 is the interleaved order. Causal, pre-norm."""
import sys

import numpy as np
from zoo import attention_weights, check, feed_forward, feed_forward_weights, layer_norm, multi_head, norm_weights, uniform

SETS = dict(a.removeprefix("--set=").split("=") for a in sys.argv if a.startswith("--set="))
N, K = int(SETS.get("n", 3)), int(SETS.get("k", 1))
WORD = "s" * K + "sf" * (N - K) + "f" * K


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    lower = np.tri(x.shape[1], dtype=bool)
    for number, letter in enumerate(WORD):
        at = f"sublayer.{number}."
        h = layer_norm(x, weights, at + "norm")
        x = x + (multi_head(h, h, weights, 4, at, lower) if letter == "s" else feed_forward(h, weights, at))
    return {"y": layer_norm(x, weights, "norm")}


rng = np.random.default_rng(409)
cases = []
for b, n, d in [(2, 9, 16), (1, 131, 8), (3, 1, 12)]:
    weights = norm_weights(rng, "norm", d)
    for number, letter in enumerate(WORD):
        at = f"sublayer.{number}."
        weights |= norm_weights(rng, at + "norm", d)
        weights |= attention_weights(rng, at, d) if letter == "s" else feed_forward_weights(rng, at, d, 64)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("norm-residual/sandwich-transformer", oracle, cases)
