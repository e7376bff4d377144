# RUN: %python %s heedc
"""Wang et al. 2020, section 3.1: encoder layers of 4 and 2 heads and 64 and 48 hidden units, decoder layers of 2 and 4 heads (4 and 2
across) and 32 and 64, 16 wide inside; the first decoder layer attends to both encoder layers' outputs, the second to the last. Sentences
without their padding."""
import numpy as np
from zoo import check, layer_norm, linear, linear_weights, norm_weights, softmax, uniform


def attend(x, y, weights, at, heads, live=None):
    q, k, v = (np.split(linear(z, weights, f"{at}.{name}"), heads, 1) for z, name in ((x, "query"), (y, "key"), (y, "value")))
    return linear(np.hstack([softmax(a @ b.T / np.sqrt(16 / heads), live) @ c for a, b, c in zip(q, k, v)]), weights, at + ".output")


def ffn(x, weights, at):
    return linear(np.maximum(linear(x, weights, at + ".up"), 0), weights, at + ".down")


def oracle(inputs, weights):
    out = []
    for x, length, y in zip(inputs["x"].astype(np.float64), inputs["length"], inputs["y"].astype(np.float64)):
        x, states = x[:length], []
        for at, heads in (("encoder.0", 4), ("encoder.1", 2)):
            x = layer_norm(x + attend(x, x, weights, at + ".self", heads), weights, at + ".norm1")
            x = layer_norm(x + ffn(x, weights, at + ".ffn"), weights, at + ".norm2")
            states.append(x)
        for at, heads, cross, memory in (("decoder.0", 2, 4, np.concatenate(states)), ("decoder.1", 4, 2, states[1])):
            y = layer_norm(y + attend(y, y, weights, at + ".self", heads, np.tri(len(y), dtype=bool)), weights, at + ".norm1")
            y = layer_norm(y + attend(y, memory, weights, at + ".cross", cross), weights, at + ".norm2")
            y = layer_norm(y + ffn(y, weights, at + ".ffn"), weights, at + ".norm3")
        out.append(y)
    return {"y": np.stack(out)}


def draw(rng, c, d):
    weights = {}
    for side, own, kinds, hidden in (("encoder", c, ("self",), (64, 48)), ("decoder", d, ("self", "cross"), (32, 64))):
        for l in range(2):
            at = f"{side}.{l}"
            for kind in kinds:
                other = c if kind == "cross" else own
                for name, into in (("query", own), ("key", other), ("value", other)):
                    weights |= linear_weights(rng, f"{at}.{kind}.{name}", 16, into)
                weights |= linear_weights(rng, f"{at}.{kind}.output", own, 16)
            weights |= linear_weights(rng, at + ".ffn.up", hidden[l], own) | linear_weights(rng, at + ".ffn.down", own, hidden[l])
            for k in range(3):
                weights |= norm_weights(rng, f"{at}.norm{k + 1}", own)
    return weights


rng = np.random.default_rng(527)
cases = []
for lengths, m, n, c, d in [([9, 4], 9, 7, 12, 10), ([70], 75, 133, 8, 6), ([131], 131, 3, 8, 8), ([1], 1, 1, 5, 6), ([0, 3], 4, 5, 6, 7)]:
    b = len(lengths)
    cases.append((dict(x=uniform(rng, b, m, c), length=np.array(lengths, np.int32), y=uniform(rng, b, n, d)), draw(rng, c, d)))
check("search-result/hat", oracle, cases)
