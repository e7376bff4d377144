# RUN: %python %s heedc
"""So et al. 2019, figure 3, with what the authors' code adds (zeros that fill the narrower branch, a norm between the decoder's dense layers).
Sentences without their padding; convolutions as sums over shifted copies of a padded sequence."""
import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform

HEADS = 2


def shifted(x, back, size):
    """size copies of x (N x C): copy u holds row n + u - back, zeros outside."""
    padded = np.pad(x, ((back, size), (0, 0)))
    return [padded[u : u + len(x)] for u in range(size)]


def separable(x, w, at, back):
    taps = w[at + ".depthwise.weight"].astype(np.float64)
    return linear(sum(copy * taps[:, u] for u, copy in enumerate(shifted(x, back, taps.shape[1]))), w, at + ".pointwise")


def fill(x, width):
    return np.pad(x, ((0, 0), (0, width - x.shape[1])))


def relu(x):
    return np.maximum(x, 0)


def attend(x, memory, w, at, count, causal=False):
    return multi_head(x[None], memory[None], w, count, at + ".", np.tri(len(x), dtype=bool) if causal else None)[0]


def encoder(x, w, at):
    d = x.shape[1]
    m = layer_norm(x, w, at + "glu.norm")
    x = x + linear(m, w, at + "glu.value") / (1 + np.exp(-linear(m, w, at + "glu.gate")))
    m = layer_norm(x, w, at + "conv.norm1")
    kernel = w[at + "conv.right.weight"].astype(np.float64)
    right = relu(sum(copy @ kernel[:, :, u].T for u, copy in enumerate(shifted(m, 1, 3))) + w[at + "conv.right.bias"])
    m = layer_norm(relu(linear(m, w, at + "conv.left")) + fill(right, 4 * d), w, at + "conv.norm2")
    x = x + fill(separable(m, w, at + "conv.separable", 4), d)
    m = layer_norm(x, w, at + "self.norm")
    x = x + attend(m, m, w, at + "self", HEADS)
    return x + linear(relu(linear(layer_norm(x, w, at + "ffn.norm"), w, at + "ffn.up")), w, at + "ffn.down")


def decoder(y, memory, w, at):
    d = y.shape[1]
    m = layer_norm(y, w, at + "first.norm")
    y = y + attend(m, m, w, at + "first.self", 2 * HEADS, True) + attend(m, memory, w, at + "first.cross", HEADS)
    m = layer_norm(y, w, at + "conv.norm1")
    m = relu(separable(m, w, at + "conv.left", 10)) + fill(separable(m, w, at + "conv.right", 6), 2 * d)
    y = y + separable(layer_norm(m, w, at + "conv.norm2"), w, at + "conv.separable", 6)
    m = layer_norm(y, w, at + "self.norm")
    y = y + attend(m, m, w, at + "self", HEADS, True)
    y = y + attend(layer_norm(y, w, at + "cross.norm"), memory, w, at + "cross", HEADS)
    f = linear(layer_norm(y, w, at + "ffn.norm1"), w, at + "ffn.up")
    return y + linear(layer_norm(f / (1 + np.exp(-f)), w, at + "ffn.norm2"), w, at + "ffn.down")


def oracle(inputs, weights):
    out = []
    for x, length, y in zip(inputs["x"].astype(np.float64), inputs["length"], inputs["y"].astype(np.float64)):
        x = x[:length]
        for l in range(2):
            x = encoder(x, weights, f"encoder.{l}.")
        x = layer_norm(x, weights, "encoder.norm")
        for l in range(2):
            y = decoder(y, x, weights, f"decoder.{l}.")
        out.append(layer_norm(y, weights, "decoder.norm"))
    return {"z": np.stack(out)}


def separable_weights(rng, at, size, out, into):
    return {at + ".depthwise.weight": uniform(rng, into, size) * np.float32(size**-0.5)} | linear_weights(rng, at + ".pointwise", out, into)


def draw(rng, d):
    w = norm_weights(rng, "encoder.norm", d) | norm_weights(rng, "decoder.norm", d)
    for l in range(2):
        at, to = f"encoder.{l}.", f"decoder.{l}."
        for name in ("glu.norm", "conv.norm1", "self.norm", "ffn.norm"):
            w |= norm_weights(rng, at + name, d)
        for name in ("first.norm", "conv.norm1", "self.norm", "cross.norm", "ffn.norm1"):
            w |= norm_weights(rng, to + name, d)
        w |= norm_weights(rng, at + "conv.norm2", 4 * d) | norm_weights(rng, to + "conv.norm2", 2 * d) | norm_weights(rng, to + "ffn.norm2", 4 * d)
        for name in (at + "self", to + "first.self", to + "first.cross", to + "self", to + "cross"):
            for part in ("query", "key", "value", "output"):
                w |= linear_weights(rng, f"{name}.{part}", d, d)
        w |= linear_weights(rng, at + "glu.value", d, d) | linear_weights(rng, at + "glu.gate", d, d) | linear_weights(rng, at + "conv.left", 4 * d, d)
        w |= {at + "conv.right.weight": uniform(rng, d // 2, d, 3) * np.float32((3 * d) ** -0.5), at + "conv.right.bias": uniform(rng, d // 2)}
        w |= separable_weights(rng, at + "conv.separable", 9, d // 2, 4 * d) | separable_weights(rng, to + "conv.left", 11, 2 * d, d)
        w |= separable_weights(rng, to + "conv.right", 7, d // 2, d) | separable_weights(rng, to + "conv.separable", 7, d, 2 * d)
        for name in (at, to):
            w |= linear_weights(rng, name + "ffn.up", 4 * d, d) | linear_weights(rng, name + "ffn.down", d, 4 * d)
    return w


rng = np.random.default_rng(161)
cases = []
for lengths, n, t, d in [([13, 6, 0], 13, 9, 8), ([131], 140, 133, 8), ([1], 1, 1, 4)]:
    b = len(lengths)
    cases.append((dict(x=uniform(rng, b, n, d), length=np.array(lengths, np.int32), y=uniform(rng, b, t, d)), draw(rng, d)))
check("search-result/evolved-transformer", oracle, cases)
