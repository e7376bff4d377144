# RUN: %python %s %heed_bin/heedc %t
# Python is no sanitized program, so it could not load the runtime.
# UNSUPPORTED: asan
"""No kernel reads or writes beyond its arrays: each begins or ends at a page that is not mapped. Sums over windows, whose copies are as long
as whole vectors; sizes that end within a vector. A read beyond ends this program by a signal."""
import ctypes
import mmap
import pathlib
import subprocess
import sys

import numpy as np

from capi import Library, buffers
from runs import expect, finish

heedc, folder = sys.argv[1], pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(19)
libc = ctypes.CDLL(None, use_errno=True)
GUARD = 1 << 20  # more than what any tile reads too far
mapped = []


def guarded(array, at_end):
    """A copy of the array, whose end (or beginning) is that of the memory."""
    pages = -(-max(array.nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, pages + 2 * GUARD)
    mapped.append(memory)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for start in base, base + GUARD + pages:
        assert libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(GUARD), 0) == 0
    first = GUARD + (pages - array.nbytes if at_end else 0)
    copy = np.frombuffer(memory, array.dtype, array.size, first).reshape(array.shape)
    copy[...] = array
    return copy


def taps(w, x, rows):
    """y[b, i, c] = sum_t w[c, t] x[b, i + t, c]"""
    return sum(w[:, t] * x[:, t:t + rows] for t in range(w.shape[1]))


# name: (inputs as shapes in N and C, the model's body, oracle)
MODELS = {
    "shifted": (("1 N C", "C 5"), "(x: f32[B, N, C], w: f32[C, 5]) { return y[b, i:N-4, c:C-1] = sum(t:5) w[c,t] * x[b, i + t, c + 1] }",
                lambda x, w: taps(w[:-1], x[..., 1:], x.shape[1] - 4)),
    "columns": (("1 N C", "3"), "(x: f32[B, N, C], w: f32[K]) { return y[b, i:N, c:C-K+1] = sum(t) w[t] * x[b, i, c + t] }",
                lambda x, w: sum(w[t] * x[:, :, t:x.shape[2] - 2 + t] for t in range(3))),
    "padded": (("1 N C", "C 5"), "(x: f32[B, N, C], w: f32[C, 5]) { return y[b, i:N, c] = sum(t:5 where 0 <= i + t - 2 < N) w[c,t] * x[b, i + t - 2, c] }",
               lambda x, w: taps(w, np.pad(x, ((0, 0), (2, 2), (0, 0))), x.shape[1])),
    "largest": (("1 N C", "C 5"), "(x: f32[B, N, C], w: f32[C, 5]) { return y[b, i:N-4, c:C-1] = max(t:5) (w[c,t] * x[b, i + t, c + 1]) }",
                lambda x, w: np.max([w[:-1, t] * x[:, t:t + x.shape[1] - 4, 1:] for t in range(5)], 0)),
    "backwards": (("1 N C", "C 5"), "(x: f32[B, N, C], w: f32[C, 5]) { return y[b, i:N-4, c:C-1] = sum(t:5) w[c,t] * x[b, N - 1 - i - t, C - 1 - c] }",
                  lambda x, w: taps(w[:-1], x[:, ::-1, :0:-1], x.shape[1] - 4)),
    "strided": (("1 N C", "C 3"), "(x: f32[B, N, C], w: f32[C, 3]) { return y[b, i:(N-1)//2, c:C-1] = sum(t:3) w[c,t] * x[b, 2*i + t, c + 1] }",
                lambda x, w: sum(w[:-1, t] * x[:, t:t + 2 * ((x.shape[1] - 1) // 2):2, 1:] for t in range(3))),
    "long": (("1 N C", "N C"), "(x: f32[B, N, C], k: f32[N, C]) { return y[b, i:N, c] = sum(j where j <= i) k[i - j, c] * x[b, j, c] }",
             lambda x, k: np.stack([sum(k[i - j] * x[:, j] for j in range(i + 1)) for i in range(x.shape[1])], 1)),
    "along": (("C N",), "(x: f32[C, N]) { return y[c, i:N] = sum(j where j <= i) x[c, j] }", lambda x: np.cumsum(x, 1)),
    "behind": (("C N",), "(x: f32[C, N]) { return y[c, i:N] = max(j where j >= i) x[c, j] }",
               lambda x: np.maximum.accumulate(x[:, ::-1], 1)[:, ::-1]),
    "next": (("N C",), "(x: f32[N, C]) { return y[i:N, c] = sum(j:N where j < i) x[j + 1, c] }", lambda x: np.cumsum(x, 0) - x[:1]),
    "best": (("N C",), "(x: f32[N, C]) { at[i:N, c] = argmax(j:N where j > i) x[j - 1, c]\n return y[i, c] = at[i, c] * 1.0 }",
             lambda x: np.stack([i + 1 + x[i:-1].argmax(0) if i + 1 < len(x) else np.full(x.shape[1], -1) for i in range(len(x))])),
    "over": (("N C",), "(x: f32[N, C]) { return y[i:N, c] = sum(j where j < i) x[j, c] }", lambda x: np.cumsum(x, 0) - x),
    "summed": (("C N",), "(x: f32[C, N]) { top[c, i:N] = max(j where j <= i) x[c, j]\n"
               " return y[c, i] = log(sum(j where j <= i) exp(x[c, j] - top[c, i])) + top[c, i] }",
               lambda x: np.logaddexp.accumulate(x, 1)),
}
for name, (shapes, body, oracle) in MODELS.items():
    source, library = folder / f"{name}.heed", folder / f"lib{name}.so"
    source.write_text(f"model {name}{body}\n")
    subprocess.run([heedc, source, "--emit=shared", "--prefix=m", "-o", library], check=True)
    model = Library(library, "m")
    expect(model.status == 0, f"{name}: heed_open")
    for n, c in (5, 18), (9, 19), (13, 32), (37, 2), (41, 65):
        arrays = [rng.uniform(-1, 1, [int(size) if size.isdigit() else {"N": n, "C": c}[size] for size in shape.split()]).astype(np.float32)
                  for shape in shapes]
        if min(arrays[0].shape) < 3 and name == "columns":
            continue
        wanted = oracle(*(a.astype(np.float64) for a in arrays))
        for at_end in True, False:
            given, result = [guarded(a, at_end) for a in arrays], guarded(np.zeros(wanted.shape, np.float32), at_end)
            status = model.run(buffers(*given), buffers(result))
            expect(status == 0, f"{name}, N = {n}, C = {c}: {model.error()}")
            expect(np.allclose(result, wanted, atol=1e-5), f"{name}, N = {n}, C = {c}: off by {abs(result - wanted).max()}")
finish()
