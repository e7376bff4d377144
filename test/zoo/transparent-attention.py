# RUN: %python %s heedc
"""Bapna et al. 2018: z_j = sum_i s_ij h_i over the embedding and the three encoder layers, s_ij = exp(w_ij) / sum_k exp(w_kj); decoder
layer j (of two) attends z_j."""
import numpy as np
from layers import attention_weights, encoder_layer, ffn, ffn_weights, layer_weights
from zoo import check, f64, layer_norm, multi_head, norm_weights, uniform


def oracle(inputs, weights):
    x, y = f64(inputs["x"], inputs["y"])
    states = [x]
    for l in range(3):
        states.append(encoder_layer(states[-1], weights, f"encoder.{l}"))
    e = np.exp(weights["mix"].astype(np.float64))
    past = np.tri(y.shape[1], dtype=bool)
    for j in range(2):
        at = f"decoder.{j}"
        z = sum(e[i, j] * h for i, h in enumerate(states)) / e[:, j].sum()
        y = layer_norm(y + multi_head(y, y, weights, 4, f"{at}.self.", past), weights, f"{at}.norm1")
        y = layer_norm(y + multi_head(y, z, weights, 4, f"{at}.cross."), weights, f"{at}.norm2")
        y = layer_norm(y + ffn(y, weights, f"{at}.ffn"), weights, f"{at}.norm3")
    return {"y": y}


rng = np.random.default_rng(304)
cases = []
for b, m, n, d in [(2, 7, 5, 12), (1, 1, 1, 4), (1, 20, 140, 8), (1, 140, 3, 8)]:
    weights = {k: w for l in range(3) for k, w in layer_weights(rng, f"encoder.{l}", d).items()}
    for j in range(2):
        weights |= attention_weights(rng, f"decoder.{j}.self", d) | attention_weights(rng, f"decoder.{j}.cross", d)
        weights |= ffn_weights(rng, f"decoder.{j}.ffn", d)
        for k in (1, 2, 3):
            weights |= norm_weights(rng, f"decoder.{j}.norm{k}", d)
    weights["mix"] = uniform(rng, 4, 2) * 2
    cases.append((dict(x=uniform(rng, b, m, d), y=uniform(rng, b, n, d)), weights))
check("depth/transparent-attention", oracle, cases)
