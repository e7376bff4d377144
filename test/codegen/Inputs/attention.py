"""Attention kernels against float64: odd sizes, fully masked rows, NaN and infinities in live and in masked places."""
import sys

import numpy as np

from kernels import Kernels

name, causal = sys.argv[2], sys.argv[2] == "causal"
kernels = Kernels(sys.argv[1], sys.argv[3])
rng = np.random.default_rng(7)
E = 64


def reference(q, k, v):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    with np.errstate(all="ignore"):
        out = np.zeros_like(q)
        for h in range(q.shape[0]):
            for i in range(q.shape[1]):
                live = min(i + 1, k.shape[1]) if causal else k.shape[1]
                s = k[h, :live] @ q[h, i] / np.sqrt(E)
                if live == 0 or np.all(s == -np.inf):
                    continue
                w = np.exp(s - s.max())
                out[h, i] = (w / w.sum()) @ v[h, :live]
    return out


def run(q, k, v):
    guard = np.full(q.size + 512, 12345, np.float32)
    out = guard[256:256 + q.size].reshape(q.shape)
    kernels(name, [q, k, v], [out])
    assert (guard[:256] == 12345).all() and (guard[256 + q.size:] == 12345).all(), "wrote out of bounds"
    return out


def make(h, n, m, scale=1.0):
    q, k, v = (rng.uniform(-1, 1, (h, x, E)).astype(np.float32) for x in (n, m, m))
    return (q * np.float32(scale)), k, v


def check(what, out, ref, bound):
    assert (np.isnan(out) == np.isnan(ref)).all(), f"{what}: NaN in {np.isnan(out).sum()} places, expected {np.isnan(ref).sum()}"
    assert (np.isinf(ref) <= (out == ref)).all(), f"{what}: an infinity is missing"
    live = np.isfinite(ref)
    error = np.abs(out[live] - ref[live]).max(initial=0) / max(np.abs(ref[live]).max(initial=0), 1e-30)
    assert error <= bound, f"{what}: error {error:.2e}, expected at most {bound:.2e}"


for h, n, m in [(1, 1, 1), (2, 17, 50), (1, 50, 17), (1, 48, 128), (3, 49, 145), (2, 200, 300), (1, 777, 777)]:
    q, k, v = make(h, n, m)
    check(f"{h}x{n}x{m}", run(q, k, v), reference(q, k, v), 1e-5)

# Scores of any finite size.
for scale in [40, 1e4, 1e8, 1e30]:
    q, k, v = make(1, 60, 150, scale)
    ref = reference(q, k, v)
    s = np.abs(q.astype(np.float64)[0] @ k[0].T / 8).max()
    gap = 8 * 2.0 ** -24 * s
    if gap < 0.1:
        check(f"scale {scale}", run(q, k, v), ref, max(1e-5, gap))
    else:  # one key has all the weight, if its score leads by more than f32 can blur
        top = np.sort(q.astype(np.float64)[0] @ k[0].T / 8, axis=1)
        out = run(q, k, v)
        if not causal:
            clear = top[:, -1] - top[:, -2] > gap
            check(f"scale {scale}", out[:, clear], ref[:, clear], 1e-5)
        assert np.isfinite(out).all()

# NaN in a live score: its row and no other. A NaN with a payload is one too.
for bits in (0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7FFFFFFF):
    q, k, v = make(2, 60, 150)
    q.view(np.uint32)[1, 31, 5] = bits
    check(f"NaN {bits:x} in q", run(q, k, v), reference(q, k, v), 1e-5)
    q, k, v = make(1, 60, 150)
    k.view(np.uint32)[0, 40, 63] = bits
    check(f"NaN {bits:x} in k", run(q, k, v), reference(q, k, v), 1e-5)
    q, k, v = make(1, 60, 150)
    v.view(np.uint32)[0, 40, 0] = bits
    v.view(np.uint32)[0, 45, 17] = 0x7F800000
    check(f"NaN {bits:x} in v", run(q, k, v), reference(q, k, v), 1e-5)

# Scores of +inf make their row NaN, scores of -inf have no weight, and a row of them alone is empty.
q, k, v = make(1, 60, 150)
q = np.abs(q) + np.float32(0.1)
k[0, 20] = np.inf
check("+inf", run(q, k, v), reference(q, k, v), 1e-5)
k[0, 20] = -np.inf
k[0, 149] = -np.inf
check("-inf", run(q, k, v), reference(q, k, v), 1e-5)
k[:] = -np.inf
check("only -inf", run(q, k, v), np.zeros_like(q), 0)

# No key at all.
q, k, v = make(2, 30, 0)
check("no keys", run(q, k, v), np.zeros_like(q), 0)

# The check itself: it must see one wrong element, and a NaN too many.
q, k, v = make(1, 30, 40)
ref = reference(q, k, v)
for wrong in (ref[0, 3, 3] + 1e-3, np.nan):
    out = run(q, k, v).copy()
    out[0, 3, 3] = wrong
    try:
        check("corrupted", out, ref, 1e-5)
    except AssertionError:
        continue
    raise SystemExit("a corrupted element was not seen")
print("ok")
