# RUN: %peers %s heedc
"""torch.nn.RMSNorm with the eps of Llama; the paper has none."""
import numpy as np
from peers import array, compare, drawn, uniform
from torch import nn

peer = drawn(nn.RMSNorm(40, eps=1e-6))
rng = np.random.default_rng(5)
compare("norm-residual/rmsnorm", {"weight": array(peer.weight)}, [dict(x=uniform(rng, 2, n, 40)) for n in (1, 33)], lambda x: {"y": peer(x)})
