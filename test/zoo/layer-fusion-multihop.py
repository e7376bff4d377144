# RUN: %python %s heedc
"""Lin et al. 2017, equations 6 and 7, with a word's L states in the place of a sentence: A = softmax(W_2^T tanh(W_1^T H^T)), hops x L, M = A H, and
an FFN of the hops joined (Xiao and Zhu's book, 15-36). One hop, and more hops than layers; zero weights: the average of the layers."""
import numpy as np
from layers import encoder_layer, layer_weights
from zoo import check, linear, linear_weights, uniform


def oracle(inputs, weights):
    states = [inputs["x"].astype(np.float64)]
    for l in range(3):
        states.append(encoder_layer(states[-1], weights, f"layer.{l}"))
    g = np.empty(states[0].shape)
    for word in np.ndindex(*g.shape[:2]):
        H = np.stack([s[word] for s in states[1:]])
        A = np.exp(weights["fusion.W2"].T.astype(np.float64) @ np.tanh(weights["fusion.W1"].T.astype(np.float64) @ H.T))
        M = A / A.sum(1, keepdims=True) @ H
        g[word] = linear(np.maximum(linear(M.ravel(), weights, "fusion.up"), 0), weights, "fusion.down")
    return {"g": g}


rng = np.random.default_rng(512)
cases = []
for b, n, d, a, hops, scale in [(2, 7, 12, 5, 4, 1), (1, 1, 4, 3, 2, 1), (1, 150, 8, 6, 1, 1), (1, 5, 8, 4, 3, 0)]:
    weights = {k: w for l in range(3) for k, w in layer_weights(rng, f"layer.{l}", d).items()}
    weights |= linear_weights(rng, "fusion.up", 64, hops * d) | linear_weights(rng, "fusion.down", d, 64)
    weights |= {"fusion.W1": uniform(rng, d, a) * np.float32(scale * d**-0.5), "fusion.W2": uniform(rng, a, hops)}
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("depth/layer-fusion-multihop", oracle, cases)
