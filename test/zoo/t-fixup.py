# RUN: %python %s heedc
"""Huang et al. 2020, section 3.2: x + F(x) in all of an encoder and decoder and no norm, weights scaled as the paper's for L = 2. Sentences without
their padding; one of padding alone gives the decoder a cross-attention of the output's bias."""
import numpy as np
from layers import attention_weights, ffn, ffn_weights
from zoo import check, multi_head, uniform


def oracle(inputs, weights):
    out = []
    for x, length, y in zip(inputs["x"].astype(np.float64), inputs["length"], inputs["y"].astype(np.float64)):
        x, y = x[None, :length], y[None]
        for l in range(2):
            x = x + multi_head(x, x, weights, 4, f"encoder.{l}.self.")
            x = x + ffn(x, weights, f"encoder.{l}.ffn")
        for l in range(2):
            y = y + multi_head(y, y, weights, 4, f"decoder.{l}.self.", np.tri(y.shape[1], dtype=bool))
            y = y + multi_head(y, x, weights, 4, f"decoder.{l}.cross.")
            y = y + ffn(y, weights, f"decoder.{l}.ffn")
        out.append(y[0])
    return {"y": np.stack(out)}


def draw(rng, d):
    weights = {}
    for side, scale, kinds in (("encoder", 0.67 * 2**-0.25, ("self",)), ("decoder", 18**-0.25, ("self", "cross"))):
        for l in range(2):
            part = ffn_weights(rng, f"{side}.{l}.ffn", d)
            for kind in kinds:
                part |= attention_weights(rng, f"{side}.{l}.{kind}", d)
            weights |= {k: w * np.float32(scale) if k.endswith("weight") else w for k, w in part.items()}
    return weights


rng = np.random.default_rng(505)
cases = []
for lengths, m, n, d in [([9, 4], 9, 7, 16), ([140], 140, 3, 8), ([20], 22, 133, 8), ([1], 1, 1, 12), ([0, 3], 5, 4, 8)]:
    b = len(lengths)
    cases.append((dict(x=uniform(rng, b, m, d), length=np.array(lengths, np.int32), y=uniform(rng, b, n, d)), draw(rng, d)))
check("norm-residual/t-fixup", oracle, cases)
