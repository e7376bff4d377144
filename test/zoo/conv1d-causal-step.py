# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""van den Oord et al. 2016: y_i = sum over t of W_t x_(i - K + 1 + t), zeros before the first row; the whole sequence in one call, one for each row, in parts;
a window longer than a part, one tap."""
import numpy as np
from oracles import parts
from zoo import calls, uniform

rng = np.random.default_rng(221)
for b, n, c, f, k in [(2, 19, 8, 6, 3), (1, 40, 5, 7, 4), (1, 9, 4, 4, 11), (2, 6, 3, 5, 1)]:
    x, w, bias = uniform(rng, b, n, c), uniform(rng, f, c, k), uniform(rng, f)
    padded = np.concatenate([np.zeros((b, k - 1, c)), x], axis=1)
    want = sum(np.einsum("bnc,fc->bnf", padded[:, t : t + n], w[:, :, t].astype(np.float64)) for t in range(k)) + bias
    for sizes in (n,), (1,), (3, 2):
        calls("conv-hybrid/conv1d-causal-step", [dict(x=x[:, a:z].copy()) for a, z in parts(n, sizes)], want, axis=1, dims=dict(B=b, P=k - 1, C=c),
              weights={"weight": w, "bias": bias}, what=f"calls of {sizes}, {k} taps")
