# RUN: %peers %s heedc
"""torch.nn.TransformerEncoderLayer, post-norm: as in the paper."""
import numpy as np
from peers import compare, drawn, in_thirds, layers, uniform
from torch import nn

peer = drawn(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True))
weights = in_thirds("attention.", peer.self_attn) | layers({"norm1": peer.norm1, "norm2": peer.norm2, "ffn.up": peer.linear1, "ffn.down": peer.linear2})
rng = np.random.default_rng(2)
compare("core/encoder-layer", weights, [dict(x=uniform(rng, b, n, 32)) for b, n in ((2, 17), (1, 1), (1, 130))], lambda x: {"y": peer(x)})
