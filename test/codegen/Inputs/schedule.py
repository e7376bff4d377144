"""The pipelines of schedule.mlir against NumPy."""
import sys

import numpy as np

from kernels import Kernels

kernels = Kernels(sys.argv[1], sys.argv[2])
rng = np.random.default_rng(3)
for m, n in [(1, 1), (5, 3), (13, 29), (40, 40), (33, 64)]:
    x = rng.uniform(-1, 1, (m, n)).astype(np.float32)
    out = np.zeros(m, np.float32)
    kernels("sums", [x], [out])
    mask = np.arange(n)[None, :] <= np.arange(m)[:, None]
    np.testing.assert_allclose(out, (x.astype(np.float64) ** 2 * mask).sum(1), rtol=1e-5)
    mirror, best, at = np.zeros(m, np.float32), np.zeros(m, np.float32), np.zeros(m, np.int32)
    kernels("more", [x], [mirror, best, at])
    np.testing.assert_allclose(mirror, x.astype(np.float64).sum(1)[::-1], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(best, x.max(1))
    np.testing.assert_array_equal(at, x.argmax(1))
    double, total = np.zeros((m, n), np.float32), np.zeros((m, n), np.float32)
    kernels("places", [x], [double, total])
    square = np.pad(x.astype(np.float64) ** 2, ((0, 0), (1, 1)))
    y = square[:, :-2] + square[:, 1:-1] + square[:, 2:]
    np.testing.assert_allclose(double, 2 * y, rtol=1e-5)
    np.testing.assert_allclose(total, np.cumsum(y, 0), rtol=1e-5)
    odd = np.zeros(2 * n, np.float32)
    kernels("parity", [x[0]], [odd])
    np.testing.assert_allclose(odd, np.where(np.arange(2 * n) % 2, x[0].astype(np.float64).sum(), 0), rtol=1e-5, atol=1e-6)
