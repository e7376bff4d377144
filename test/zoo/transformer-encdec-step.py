# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Vaswani et al. 2017, sections 3.1 to 3.5, sentence by sentence and without padding or caches: the sources once, then targets of several lengths in one call,
token by token, in sevens; logits of the last token. A source that is padding alone gives a cross-attention of zeros. Encoding again begins new targets."""
import numpy as np
from generating import oracle as greedy
from states import agree, check, compile
from zoo import attention_weights, feed_forward, feed_forward_weights, layer_norm, multi_head, norm_weights, uniform

rng = np.random.default_rng(332)
HEADS, LAYERS = 4, 2


def embed(tokens, table):
    n, d = len(tokens), table.shape[1]
    i = np.arange(n)[:, None] / 10000.0 ** (np.arange(0, d, 2) / d)
    return (np.sqrt(d) * table[tokens] + np.stack([np.sin(i), np.cos(i)], -1).reshape(n, d))[None]


def encoder(source, weights):
    x = embed(source, weights["embedding.weight"].astype(np.float64))
    for at in (f"encoder.{l}." for l in range(LAYERS)):
        x = layer_norm(x + multi_head(x, x, weights, HEADS, at + "self."), weights, at + "norm1")
        x = layer_norm(x + feed_forward(x, weights, at + "ffn."), weights, at + "norm2")
    return x


def decoder(target, memory, weights):
    table = weights["embedding.weight"].astype(np.float64)
    y = embed(target, table)
    for at in (f"decoder.{l}." for l in range(LAYERS)):
        y = layer_norm(y + multi_head(y, y, weights, HEADS, at + "self.", np.tri(len(target), dtype=bool)), weights, at + "norm1")
        y = layer_norm(y + multi_head(y, memory, weights, HEADS, at + "cross."), weights, at + "norm2")
        y = layer_norm(y + feed_forward(y, weights, at + "ffn."), weights, at + "norm3")
    return y[0] @ table.T


def draw(words, d):
    weights = {"embedding.weight": uniform(rng, words, d) * np.float32(d**-0.5)}
    for side, kinds in (("encoder", ("self",)), ("decoder", ("self", "cross"))):
        for at in (f"{side}.{l}." for l in range(LAYERS)):
            for kind in kinds:
                weights |= attention_weights(rng, f"{at}{kind}.", d)
            weights |= feed_forward_weights(rng, at + "ffn.", d, 64)
            for k in range(len(kinds) + 1):
                weights |= norm_weights(rng, f"{at}norm{k + 1}", d)
    return weights


for words, lengths, targets in [(11, [7, 3, 0], [23, 9, 5]), (23, [140], [70]), (3, [1, 2], [1, 0])]:
    weights, b = draw(words, 16), len(lengths)
    m = compile("decoding/transformer-encdec-step", weights)
    source = np.full((b, max(lengths)), -9, np.int32)
    for row, n in zip(source, lengths):
        row[:n] = rng.integers(0, words, n)
    memories = [encoder(row[:n], weights) for row, n in zip(source, lengths)]
    rows = [rng.integers(0, words, n).astype(np.int32) for n in targets]
    wants, what = [decoder(row, memory, weights) for row, memory in zip(rows, memories)], f"transformer-encdec-step, sources of {lengths}, targets of {targets}"
    length = np.array(lengths, np.int32)

    def encoded():
        state = m.state(B=b, C=max(targets), M=max(lengths))
        m["encode"](source, length, state=state)
        return state

    check(m, "decode", rows, wants, encoded, what, last=True)
    state = encoded()
    found = m["encode"](source, length, state=state)
    for got, memory, n in zip(found, memories, lengths):
        agree(got[None, :n], memory, what + ", encoder")
    start = [[words - 1]] * b
    room = m.state(B=b, C=10, M=max(lengths))
    m["encode"](source, length, state=room)
    made = np.reshape(m.generate(start, max_new=9, state=room), (b, -1))
    for got, memory in zip(made, memories):
        assert got.tolist() == greedy(lambda seen: decoder(np.array(seen), memory, weights)[-1], start[0], 9), f"{what}: generated {made}"
    m["decode"](np.zeros((b, 1), np.int32), np.ones(b, np.int32), state=state)
    again = m["encode"](source, length, state=state)
    assert np.array_equal(again, found) and not state["len"].any(), what + ": encoded again"
