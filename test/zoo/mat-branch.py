# RUN: %python %s heedc
# RUN: %python %s heedc --set=branches=1
"""Fan et al. 2020, equation 3: x + (1 / N_a) sum_a MHA_a(x). The oracle has one attention with N_a H heads, whose output matrices stand side by side and
are divided by N_a. One branch is the Transformer."""
import sys
import numpy as np
from zoo import attention_weights, check, feed_forward, feed_forward_weights, heads, layer_norm, linear, merge, norm_weights, softmax, uniform

BRANCHES, HEADS, HIDDEN = 1 if "--set=branches=1" in sys.argv else 3, 2, 32


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for at in ("layer.0.", "layer.1."):
        joined = {}
        for name in ("query", "key", "value", "output"):
            parts = [f"{at}branch.{a}.{name}" for a in range(BRANCHES)]
            if name == "output":
                joined["output.weight"] = np.hstack([weights[p + ".weight"] for p in parts]) / np.float64(BRANCHES)
                joined["output.bias"] = sum(weights[p + ".bias"].astype(np.float64) for p in parts) / BRANCHES
            else:
                joined |= {f"{name}.{kind}": np.concatenate([weights[f"{p}.{kind}"] for p in parts]) for kind in ("weight", "bias")}
        q, k, v = (heads(linear(x, joined, name), BRANCHES * HEADS) for name in ("query", "key", "value"))
        a = softmax(q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])) @ v
        x = layer_norm(x + linear(merge(a), joined, "output"), weights, at + "norm1")
        x = layer_norm(x + feed_forward(x, weights, at), weights, at + "norm2")
    return {"y": x}


rng = np.random.default_rng(423)
cases = []
for b, n, d in [(2, 9, 16), (1, 135, 8), (3, 1, 4), (1, 40, 10)]:
    weights = {}
    for at in ("layer.0.", "layer.1."):
        for a in range(BRANCHES):
            weights |= attention_weights(rng, f"{at}branch.{a}.", d)
        weights |= feed_forward_weights(rng, at, d, HIDDEN) | norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("heads/mat-branch", oracle, cases)
