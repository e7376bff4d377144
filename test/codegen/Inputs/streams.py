"""The pipeline of streams.mlir on arrays below and above its bound, at every alignment of floats, with walls around them."""
import sys

import numpy as np

from kernels import Kernels

kernels = Kernels(sys.argv[1], sys.argv[2])
rng = np.random.default_rng(3)
for m, n in [(3, 5), (7, 100), (10, 100), (10, 101), (64, 128), (33, 257)]:
    x = rng.uniform(-1, 1, (m, n)).astype(np.float32)
    memory = np.empty(m * n + 64, np.float32)
    start = -memory.ctypes.data // 4 % 16
    for offset in range(16):
        memory[:] = 7
        y = memory[start + offset:][:m * n].reshape(m, n)
        kernels("twice", [x], [y])
        np.testing.assert_array_equal(y, 2 * x)
        assert (memory == 7).sum() == 64, f"written beside {m} x {n} at {offset}"
