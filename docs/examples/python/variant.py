"""A variant of attention from its equations to a measured function: write it, check it, look at it, time it.

    pip install ./python
    python docs/examples/python/variant.py
"""
import time

import numpy as np

import heed

# 1. The equations. A window of keys as in Longformer, slopes as in ALiBi, scores capped as in Gemma 2.
SOURCE = """
# Windowed, causal attention with linear biases and capped scores.
model variant(q: f32[B, H, N, E], k: f32[B, G, N, E], v: f32[B, G, N, E]; window = 256, cap = 50.0) {
  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b, h*G/H, j, e] / sqrt(E)
  s[b,h,i,j] = cap * tanh(s[b,h,i,j] / cap) - 2 ^ (-8 * (h + 1) / H) * (i - j)
  p[b,h,i,j] = softmax(j where j <= i and i - j < window) s[b,h,i,j]
  return o[b,h,i,e] = sum(j) p[b,h,i,j] * v[b, h*G/H, j, e]
}
"""
variant = heed.compile(SOURCE, set={"window": 128})
print(variant)

# 2. The numbers: against the definition, computed in f64 without any of the compiler's passes, and against NumPy.
reference = heed.compile(SOURCE, set={"window": 128}, backend="reference")


def numpy_variant(q, k, v, window=128, cap=50.0):
    heads, length = q.shape[1], q.shape[2]
    group = np.arange(heads) * k.shape[1] // heads
    i, j = np.indices((length, length))
    slopes = 2.0 ** (-8 * (np.arange(heads) + 1) / heads)
    s = np.einsum("bhie,bhje->bhij", q, k[:, group]) / np.sqrt(q.shape[-1])
    s = cap * np.tanh(s / cap) - slopes[:, None, None] * (i - j)
    s = np.where((j <= i) & (i - j < window), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bhij,bhje->bhie", p / p.sum(-1, keepdims=True), v[:, group])


def draw(batch, heads, groups, length, size):
    random = np.random.default_rng(0)
    return [random.standard_normal((batch, h, length, size)).astype(np.float32) for h in (heads, groups, groups)]


for shape in ((1, 4, 2, 1, 16), (2, 4, 4, 37, 16), (1, 8, 2, 300, 32)):
    q, k, v = draw(*shape)
    o = variant(q, k, v)
    wanted = numpy_variant(*(a.astype(np.float64) for a in (q, k, v)))
    for name, other in (("the reference", reference(q, k, v)), ("NumPy", wanted)):
        error = np.abs(o - other).max() / np.abs(other).max()
        print(f"{shape}: differs from {name} by {error:.1e}")
        assert error < 1e-5

# 3. What was made of it.
print(variant.explain())

# 4. The time. A bound call looks at its arrays once.
q, k, v = draw(1, 8, 2, 1024, 64)
call = variant.bind(q, k, v)


def seconds(function, runs=5):
    function()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


print(f"N = 1024, 8 heads of 64: Heed {1e3 * seconds(call):.2f} ms, NumPy {1e3 * seconds(lambda: numpy_variant(q, k, v), 2):.2f} ms")
print(variant.profile(q, k, v))
