# RUN: %peers %s heedc
"""torch.nn.MultiheadAttention: as in the paper."""
import numpy as np
from peers import compare, drawn, in_thirds, uniform
from torch import nn

peer = drawn(nn.MultiheadAttention(32, 4, batch_first=True))
rng = np.random.default_rng(1)
compare("core/mha", in_thirds("", peer), [dict(x=uniform(rng, b, n, 32)) for b, n in ((2, 17), (1, 1), (1, 130))],
        lambda x: {"y": peer(x, x, x, need_weights=False)[0]})
