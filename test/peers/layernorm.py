# RUN: %peers %s heedc
"""torch.nn.LayerNorm. eps stands inside of the root, as the model has it by default; the paper has none."""
import numpy as np
from peers import compare, drawn, layer, uniform
from torch import nn

peer = drawn(nn.LayerNorm(40))
rng = np.random.default_rng(4)
weights = {name.lstrip("."): x for name, x in layer("", peer).items()}
compare("norm-residual/layernorm", weights, [dict(h=uniform(rng, 2, n, 40)) for n in (1, 33)], lambda h: {"y": peer(h)})
