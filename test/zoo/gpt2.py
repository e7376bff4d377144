# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Radford et al. 2019, section 2.3, over the whole text and without a cache: learned positions, x + Att(LN(x)), x + FFN(LN(x)), a last LN, logits by the table of
tokens. GELU in the tanh form. `forward` gives the last token's, `scores` all of them."""
import numpy as np
from decoders import HEADS, LAYERS, draw
from states import check_language_model, compile
from zoo import layer_norm, linear, multi_head, norm_weights

rng = np.random.default_rng(314)


def oracle(tokens, weights):
    table = weights["tokens.weight"].astype(np.float64)
    x = (table[tokens] + weights["positions.weight"][: len(tokens)])[None]
    for at in LAYERS:
        n = layer_norm(x, weights, at + "norm1")
        x = x + multi_head(n, n, weights, HEADS, at + "self.", np.tri(len(tokens), dtype=bool))
        u = linear(layer_norm(x, weights, at + "norm2"), weights, at + "ffn.up")
        x = x + linear(0.5 * u * (1 + np.tanh(np.sqrt(2 / np.pi) * (u + 0.044715 * u**3))), weights, at + "ffn.down")
    return (layer_norm(x, weights, "norm") @ table.T)[0]


for lengths, words, d in [([23, 9, 0], 11, 16), ([131, 1], 57, 16)]:
    weights = draw(rng, words, 140, d) | norm_weights(rng, "norm", d)
    m = compile("whole-model/gpt2", weights)
    rows = [rng.integers(0, words, n).astype(np.int32) for n in lengths]
    check_language_model(m, rows, lambda tokens: oracle(tokens, weights), f"gpt2, rows of {lengths}")
