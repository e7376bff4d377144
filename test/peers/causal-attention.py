# RUN: %peers %s heedc
"""torch.nn.functional.scaled_dot_product_attention, causal, with groups of query heads. Where there are more keys than queries, its is_causal takes
query i to be at place i; the model takes the queries to be the last ones, so they are equal where both are as many."""
import numpy as np
from peers import compare, uniform
from torch.nn.functional import scaled_dot_product_attention

rng = np.random.default_rng(7)
cases = [dict(q=uniform(rng, 2, h, n, 16), k=uniform(rng, 2, g, n, 16), v=uniform(rng, 2, g, n, 24)) for h, g, n in ((4, 2, 33), (2, 2, 1), (3, 1, 130))]
compare("core/causal-attention", {}, cases, lambda q, k, v: {"o": scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)})
