# RUN: %python %s heedc
"""Locatello et al. 2020, algorithm 1, without its GRU: attn = softmax(k q^T / sqrt(D), over slots) + eps; mean of v by attn."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(*(inputs[n] for n in ("q", "k", "v")))
    attn = softmax(np.einsum("bne,bse->bns", k, q) / np.sqrt(q.shape[-1])) + 1e-8
    return {"u": np.einsum("bns,bnf->bsf", attn / attn.sum(1, keepdims=True), v)}


rng = np.random.default_rng(25)
cases = []
for b, s, n, e, f in [(1, 7, 40, 8, 8), (2, 3, 100, 4, 6), (1, 1, 1, 1, 1), (2, 17, 33, 16, 5)]:
    cases.append((dict(q=uniform(rng, b, s, e), k=uniform(rng, b, n, e), v=uniform(rng, b, n, f)), None))
check("memory-compression/slot-attention", oracle, cases)
