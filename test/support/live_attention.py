"""Attention in float64 whose live pairs are a matrix."""
import numpy as np


def oracle(q, k, v, live, weight="softmax"):
    """[B, H, N, E], [B, G, M, E], [B, G, M, F], and which pairs are live: [B, N, M]."""
    q, k, v = (np.asarray(a, np.float64) for a in (q, k, v))
    k, v = (a.repeat(q.shape[1] // a.shape[1], 1) for a in (k, v))
    s = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    out = np.zeros(s.shape[:3] + v.shape[3:])
    for b, h, i in np.ndindex(out.shape[:3]):
        of = live[b, i]
        x = s[b, h, i, of]
        p = np.exp(x - x.max(initial=-np.inf)) if weight == "softmax" else np.maximum(x, 0) if weight == "relu" else 1 / (1 + np.exp(-x))
        p = p if weight != "softmax" or not p.size else p / p.sum()
        out[b, h, i] = p @ v[b, h, of]
    return out.astype(np.float32)
