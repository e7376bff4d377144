# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Xiao and Zhu 2023, section 6.2: a query sees the last W tokens of the whole sequence, whatever their slots are; calls of one token, of three, of as many as
the ring has room for; a ring longer than the sequence."""
import numpy as np
from oracles import parts
from zoo import calls, softmax, uniform

W = 8
rng = np.random.default_rng(330)
for b, h, n, e, f, longest in [(2, 2, 45, 8, 6, 5), (1, 3, 30, 5, 5, 30)]:
    q, k, v = uniform(rng, b, h, n, e), uniform(rng, b, h, n, e), uniform(rng, b, h, n, f)
    i, j = np.arange(n)[:, None], np.arange(n)
    p = softmax(np.einsum("bhie,bhje->bhij", q.astype(np.float64), k) / np.sqrt(e), (j <= i) & (j > i - W))
    want = np.einsum("bhij,bhjf->bhif", p, v)
    for sizes in (1,), (3,), (longest, 1):
        made = [{name: x[:, :, a:z].copy() for name, x in zip("qkv", (q, k, v))} for a, z in parts(n, sizes)]
        calls("decoding/window-kv-cache", made, want, axis=2, dims=dict(B=b, H=h, C=W + longest - 1, E=e, F=f), what=f"calls of {sizes}")
