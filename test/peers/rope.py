# RUN: %peers %s heedc
"""x_transformers' rotary embedding: interleaved pairs, as in the paper (Llama's rotate halves). Its frequencies are computed in float32, those of the
test in float64 by its own formula."""
import numpy as np
import torch
from peers import compare, uniform
from torch.nn.functional import scaled_dot_product_attention
from x_transformers.x_transformers import RotaryEmbedding, apply_rotary_pos_emb

rotary = RotaryEmbedding(16)
single = rotary.inv_freq.clone()
rotary = rotary.double()
rotary.inv_freq = 10000.0 ** (-torch.arange(0, 16, 2).double() / 16)
assert torch.allclose(rotary.inv_freq, single.double(), rtol=1e-6)
rng = np.random.default_rng(13)
cases = [dict(q=uniform(rng, 2, h, n, 16), k=uniform(rng, 2, h, n, 16), v=uniform(rng, 2, h, n, 24)) for h, n in ((8, 33), (2, 1), (4, 130))]


def run(q, k, v):
    angles, _ = rotary(torch.arange(q.shape[2]))
    return {"o": scaled_dot_product_attention(apply_rotary_pos_emb(q, angles), apply_rotary_pos_emb(k, angles), v, is_causal=True)}


compare("position/rope", {}, cases, run)
