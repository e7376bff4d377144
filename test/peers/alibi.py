# RUN: %peers %s heedc
"""x_transformers.AlibiPositionalBias, added to the scores of torch's attention. Its slopes are the paper's for a power of two of heads; beyond that it
follows the authors' code, the model the formula."""
import numpy as np
import torch
from peers import compare, uniform
from torch.nn.functional import scaled_dot_product_attention
from x_transformers.x_transformers import AlibiPositionalBias

rng = np.random.default_rng(12)
cases = [dict(q=uniform(rng, 2, h, n, 16), k=uniform(rng, 2, h, n, 16), v=uniform(rng, 2, h, n, 24)) for h, n in ((8, 33), (2, 1), (4, 130))]


def run(q, k, v):
    n = q.shape[2]
    bias = AlibiPositionalBias(q.shape[1]).double()(n, n)
    return {"o": scaled_dot_product_attention(q, k, v, attn_mask=bias.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf))}


compare("position/alibi", {}, cases, run)
