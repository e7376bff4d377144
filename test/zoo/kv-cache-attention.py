# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Xiao and Zhu 2023, section 6.1: with a cache, o_i = softmax(q_i K_(<=i)^T / sqrt(E)) V_(<=i) for all tokens so far: causal attention over the whole sequence,
in one call, one for each token, chunks of 7; rows that begin with caches of several lengths; grouped heads."""
import numpy as np
from oracles import parts
from zoo import calls, softmax, uniform

rng = np.random.default_rng(329)
for b, h, g, n, e, f, first in [(2, 4, 2, 23, 8, 6, [0, 0]), (3, 2, 2, 40, 5, 7, [0, 9, 3]), (1, 6, 1, 70, 16, 16, [0])]:
    total = n + max(first)
    q, k, v = uniform(rng, b, h, n, e), uniform(rng, b, g, total, e), uniform(rng, b, g, total, f)
    want = np.zeros((b, h, n, f))
    for bb, hh, i in np.ndindex(b, h, n):
        live = first[bb] + i + 1
        scores = q[bb, hh, i].astype(np.float64) @ k[bb, hh * g // h, :live].T.astype(np.float64) / np.sqrt(e)
        want[bb, hh, i] = softmax(scores[None])[0] @ v[bb, hh * g // h, :live]
    new = lambda a, z: [np.stack([x[bb, :, first[bb] + a : first[bb] + z] for bb in range(b)]) for x in (k, v)]
    start = {"len": np.array(first, np.int32), "kc": np.zeros((b, g, total, e), np.float32), "vc": np.zeros((b, g, total, f), np.float32)}
    for bb in range(b):
        start["kc"][bb, :, : first[bb]], start["vc"][bb, :, : first[bb]] = k[bb, :, : first[bb]], v[bb, :, : first[bb]]
    for sizes in (n,), (1,), (7,):
        made = [dict(zip("qkv", [q[:, :, a:z].copy(), *new(a, z)])) for a, z in parts(n, sizes)]
        calls("decoding/kv-cache-attention", made, want, axis=2, start=start, dims=dict(B=b, G=g, C=total, E=e, F=f), what=f"calls of {sizes}")
