# RUN: %python %s %heed_bin/heedc %t
"""Convolutions with kernels as long as the sequence, or of more steps than a cache holds, of lengths around the blocks of their schedule, against NumPy: causal,
strictly so, over what comes behind, over pairs and over lags, several batches, channels that leave a rest."""
import sys

import numpy as np

import programs
from runs import finish

programs.start(*sys.argv[1:])
rng = np.random.default_rng(1624)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)


def toeplitz(k, n, strict=False, behind=False):
    """M[i, j, c] = k[i - j, c], or k[j - i, c], where that is a lag."""
    lag = np.subtract.outer(np.arange(n), np.arange(n)) * (-1 if behind else 1)
    inside = (lag >= strict) & (lag < len(k))
    return np.where(inside[..., None], k[np.clip(lag, 0, max(len(k) - 1, 0))], 0) if len(k) else np.zeros((n, n, k.shape[1]))


INPUTS = "x: f32[B, N, C], k: f32[N, C]"
for name, code, how in [
    ("pairs", "sum(j where j <= i) k[i - j, c] * x[b, j, c]", {}),
    ("lags", "sum(l:N where l <= i) k[l, c] * x[b, i - l, c]", {}),
    ("strict", "sum(j where j < i) k[i - j, c] * x[b, j, c]", dict(strict=True)),
    ("behind", "tanh(sum(j where j >= i) x[b, j, c] * k[j - i, c])", dict(behind=True))]:
    program = programs.compile(name, f"model m({INPUTS}) {{ return y[b, i:N, c] = {code} }}", "--explain=all", says="windows schedule")
    for n, b, c in (0, 1, 4), (1, 2, 16), (7, 1, 5), (63, 2, 3), (64, 1, 37), (65, 1, 16), (128, 2, 20), (129, 1, 33), (300, 2, 7), (641, 1, 18):
        x, k = uniform(b, n, c), uniform(n, c)
        y = np.einsum("ijc,bjc->bic", toeplitz(k.astype(np.float64), n, **how), x.astype(np.float64))
        programs.compare(program, dict(x=x, k=k), dict(y=np.tanh(y) if name == "behind" else y))

program = programs.compile("taps", "model m(x: f32[B, N, C], k: f32[100, C]) { return y[b, i:N, c] = sum(l where l <= i) k[l, c] * x[b, i - l, c] }")
for n in 1, 99, 100, 101, 230, 400:
    x, k = uniform(2, n, 21), uniform(100, 21)
    programs.compare(program, dict(x=x, k=k), dict(y=np.einsum("ijc,bjc->bic", toeplitz(k.astype(np.float64), n), x.astype(np.float64))))
# A NaN is seen from it on.
x, k = uniform(1, 300, 5), uniform(300, 5)
x[0, 130, 2] = np.nan
programs.compare(programs.folder + "/pairs", dict(x=x, k=k),
                 dict(y=np.stack([sum(k[i - j].astype(np.float64) * x[0, j] for j in range(i + 1)) for i in range(300)])[None]))
finish()
