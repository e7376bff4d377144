# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support %python %s %heed_bin/heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""States that do not start with zeros: opened and reset they hold what the model says, of every type and also in bf16; a call that fails leaves it, a file brings it back."""
import os
import sys
import tempfile

import numpy as np

os.environ["HEEDC"] = sys.argv[1]
import heed
from runs import expect, finish

scratch = tempfile.TemporaryDirectory()
path = os.path.join(scratch.name, "starts.heed")
with open(path, "w") as file:
    file.write("""model starts(; top = -inf) {
  state most: f32[B] = top, half: f16[B, C] = 1 / 3, brain: bf16[B] = 1 / 3, on: bool[C] = true, small: i8[C] = -7, len: i32 = 2 + 3, wide: i64[B] = 1099511627776, two, three: f32[C] = 2.5,
        zero: f32[C]
  entry step(x: f32[B, N], at: i32[K]; far: i32 = 0) -> f32[B], f32[K] {
    most[b] = max(most[b], max(n) x[b, n])
    three[at[k]] = 1.0
    two[c] = two[c] + 1
    len = len + 1
    return most, y[k] = zero[at[k] + far] + three[at[k]]
  }
}""")
B, C = 3, 4
WANTED = {"most": np.full(B, -np.inf, np.float32), "half": np.full((B, C), np.float16(1 / 3)), "on": np.ones(C, bool), "small": np.full(C, -7, np.int8),
          "len": np.int32(5), "wide": np.full(B, 2 ** 40, np.int64), "two": np.full(C, 2.5, np.float32), "three": np.full(C, 2.5, np.float32), "zero": np.zeros(C, np.float32)}
BRAIN = 0x3EAB  # 1/3 rounded to bf16


def holds(state, wanted, what):
    for name, value in wanted.items():
        expect(np.array_equal(state[name], value) and state[name].dtype == value.dtype, f"{what}: {name} is {state[name]}, expected {value}")


def step(x, at, **options):
    return m(np.asarray(x, np.float32), np.array(at, np.int32), state=state, **options)


m = heed.compile(path, backend="reference")
state = m.state(B=B, C=C)
holds(state, WANTED, "opened")
file = os.path.join(scratch.name, "state.safetensors")
state.save(file)
bits = open(file, "rb").read().count(np.full(B, BRAIN, np.uint16).tobytes())
expect(bits == 1, f"bf16: {bits}")
# A call that fails behind its changes has changed nothing.
try:
    step(np.zeros((B, 2)), [0, C - 1], far=1)
    expect(False, "no error")
except heed.RangeError:
    pass
holds(state, WANTED, "after a call that failed")
got = step([[-3, -2], [1, 0], [7, 8]], [1, 3])
expect(got.most.tolist() == [-2, 1, 8] and got.y.tolist() == [1, 1], f"{got}")
changed = {**WANTED, "most": np.array([-2, 1, 8], np.float32), "three": np.array([2.5, 1, 2.5, 1], np.float32), "two": np.full(C, 3.5, np.float32), "len": np.int32(6)}
holds(state, changed, "after a call")
state.reset()
holds(state, WANTED, "reset")
step(np.zeros((B, 1)), [0])
state.load(file)
holds(state, WANTED, "from a file")
# --set gives the constant; in bf16 it is rounded, as what a call writes is.
one = heed.compile(path, backend="reference", set={"top": 0.1}, options=["--state-type=bf16"])
other = one.state(B=B, C=C)
other.save(file)
expect(open(file, "rb").read().count(np.full(B, 0x3DCD, np.uint16).tobytes()) == 1, "0.1 in bf16")
finish()
