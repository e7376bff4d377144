# RUN: %peers %s heedc
"""x_transformers.ScaleNorm. The package multiplies by sqrt(D) beside its learned number g; the paper starts its g there. eps is another, too: it
matters to rows shorter than that only."""
import numpy as np
from peers import array, compare, drawn, uniform
from x_transformers.x_transformers import ScaleNorm

peer = drawn(ScaleNorm(40))
rng = np.random.default_rng(6)
weights = {"scale": array(peer.g.detach() * 40**0.5).reshape(())}
compare("norm-residual/scalenorm", weights, [dict(x=uniform(rng, 2, n, 40)) for n in (1, 33)], lambda x: {"y": peer(x)})
