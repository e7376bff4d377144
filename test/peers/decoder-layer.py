# RUN: %peers %s heedc
"""torch.nn.TransformerDecoderLayer, post-norm: as in the paper. Masks are tensors there: one of pairs, and one of the memory's padding."""
import numpy as np
import torch
from peers import compare, drawn, in_thirds, layers, uniform
from torch import nn

peer = drawn(nn.TransformerDecoderLayer(32, 4, 64, batch_first=True))
weights = in_thirds("self.", peer.self_attn) | in_thirds("cross.", peer.multihead_attn)
weights |= layers({"norm1": peer.norm1, "norm2": peer.norm2, "norm3": peer.norm3, "ffn.up": peer.linear1, "ffn.down": peer.linear2})


def run(s, h, length):
    n, m = s.shape[1], h.shape[1]
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    return {"y": peer(s, h, tgt_mask=later, memory_key_padding_mask=torch.arange(m)[None, :] >= length[:, None])}


rng = np.random.default_rng(3)
compare("core/decoder-layer", weights, [dict(s=uniform(rng, b, n, 32), h=uniform(rng, b, m, 32), length=np.array(length, np.int32))
                                        for b, n, m, length in ((2, 17, 23, [5, 23]), (1, 1, 1, [1]), (1, 70, 90, [64]))], run)
