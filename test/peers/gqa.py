# RUN: %peers %s heedc
"""x_transformers.Attention with fewer key heads than query heads: without biases, as in the paper. In the package query head h
reads key head h mod G, in the paper the heads of a group lie together: they are put in that order."""
import numpy as np
from peers import array, compare, drawn, uniform
from x_transformers.x_transformers import Attention

peer = drawn(Attention(32, dim_head=8, heads=4, kv_heads=2, causal=True))
rng = np.random.default_rng(11)
together = [0, 2, 1, 3]
weights = {f"{name}.weight": array(getattr(peer, f"to_{name[0]}").weight.reshape(-1, 8, 32)) for name in ("query", "key", "value")}
weights["query.weight"] = weights["query.weight"][together]
weights["output.weight"] = array(peer.to_out.weight.reshape(32, 4, 8)[:, together])
compare("heads/gqa", weights, [dict(x=uniform(rng, b, n, 32)) for b, n in ((2, 33), (1, 1), (1, 130))], lambda x: {"y": peer(x)[0] if isinstance(peer(x), tuple) else peer(x)})
