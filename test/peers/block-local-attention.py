# RUN: %peers %s heedc
"""local_attention.LocalAttention that looks neither back nor forward, without its rotary positions. The keys with which it pads the last
window count unless there is a mask of those that are real; the model cuts the window."""
import numpy as np
import torch
from local_attention import LocalAttention
from peers import compare, uniform

peer = LocalAttention(16, look_backward=0, look_forward=0, autopad=True, use_rotary_pos_emb=False).double()
rng = np.random.default_rng(14)
cases = [dict(q=uniform(rng, 2, 3, n, 8), k=uniform(rng, 2, 3, n, 8), v=uniform(rng, 2, 3, n, 8)) for n in (64, 50, 1)]
compare("sparse/block-local-attention", {}, cases, lambda q, k, v: {"o": peer(q, k, v, mask=torch.ones(q.shape[0], q.shape[2], dtype=torch.bool))})
