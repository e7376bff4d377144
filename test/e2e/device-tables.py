# RUN: env HEED_TARGET=opencl %python %s %heed_bin/heedc %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
# REQUIRES: opencl
"""Tables that the processor computes for a device, against float64 NumPy: of every size, in a loop, one that another reads, one that is a result itself, one
that is kept since the model was opened, in memory that a device's kernel had before. A call brings each to the device once. device-tables-cuda.test has the same on CUDA."""
import os
import re
import sys

import numpy as np

import programs
from runs import expect, finish

programs.start(*sys.argv[1:])
rng = np.random.default_rng(31)
ON = "--target=" + os.environ["HEED_TARGET"]
SIZES = ((1, 1), (5, 8), (70, 64), (0, 3), (3, 0), (300, 33))


def draw(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def angles(N, E):
    return np.cos(np.arange(N)[:, None] * 10000.0 ** (-np.arange(E) / max(E, 1)))


program = programs.compile("angles", """model angles(x: f32[N, E]) {
  a[n: N, e: E] = cos(n * 10000 ^ (-e / E))
  return y[n, e] = x[n, e] * a[n, e], a
}""", ON, "--explain=all", says="of the processor")
for N, E in SIZES:
    x = draw(N, E)
    programs.compare(program, {"x": x}, {"y": x * angles(N, E), "a": angles(N, E)})
    programs.compare(program, {"x": x}, {"y": x * angles(N, E)})

# One that another reads, by rows.
program = programs.compile("chain", """model chain(x: f32[N]) {
  a[n: N, e: N] = cos(n * 10000 ^ (-e / N))
  m[n] = (max(e) a[n, e] * a[e, n]) % 0.3
  return y[n] = x[n] * m[n]
}""", ON, "--explain=all", says="rows schedule of the processor")
for N in 1, 9, 40:
    x, a = draw(N), angles(N, N).astype(np.float32)
    programs.compare(program, {"x": x}, {"y": x * ((a * a.T).max(1).astype(np.float64) % 0.3)})

# A table in each turn of a loop, between kernels of the device that write and read the same memory.
program = programs.compile("turns", """model turns(x: f32[N, E]) {
  h = x
  for l in 0..3 {
    a[n: N, e: E] = sin((n + l) * 100 ^ (-e / E))
    m[n] = max(e) h[n, e]
    h[n, e] = h[n, e] * a[n, e] + m[n]
  }
  return h
}""", ON)
for N, E in (5, 8), (70, 64):
    x = draw(N, E)
    h = x.astype(np.float64)
    for l in range(3):
        h = h * np.sin((np.arange(N)[:, None] + l) * 100.0 ** (-np.arange(E) / E)) + h.max(1, keepdims=True)
    programs.compare(program, {"x": x}, {"h": h})

# One of known sizes is made when the model is opened. Of those that are not, a call brings the table once, of 70 x 64 numbers, and the input.
program = programs.compile("kept", """model kept(x: f32[N, 16]) {
  slope[e: 16] = 2 ^ (-8 * (e + 1) / 16)
  return y[n, e] = x[n, e] * slope[e]
}""", ON)
x = draw(9, 16)
programs.compare(program, {"x": x}, {"y": x * 2.0 ** (-8 * (np.arange(16) + 1) / 16)})
np.save(f"{programs.folder}/x.npy", x := draw(70, 64))
said = programs.run(f"{programs.folder}/angles", "--x", f"{programs.folder}/x.npy", "--output", f"y={programs.folder}/y.npy", "--profile").stderr
found = re.search(r"copies to the device (\d+) \((\d+) bytes\), of results (\d+) \((\d+)\), to the host in between (\d+)", said)
expect(found and found.groups() == ("2", str(2 * x.nbytes), "1", str(x.nbytes), "0"), f"what is copied: {said}")
finish()
