# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support %python %s %heed_bin/heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""A weight that is packed when the model is opened is not held twice: its pages of the mapped file are given back. A table of the same tensor, from which calls
gather, is read from the file, counts once, and both stay right."""
import os
import re
import sys
import tempfile

import numpy as np

os.environ["HEEDC"] = sys.argv[1]
import heed
import safetensors_file
from runs import expect, finish

SOURCE = """model tied(ids: i32[N]) {
  param table: f32[V, D] @ "embed"
  param head: f32[V, D] @ "head" | "embed"
  param own: f32[D, D] @ "own"
  x[n,d] = sum(c) table[ids[n],c] * own[d,c]
  return y[n,v] = sum(d) x[n,d] * head[v,d]
}"""
V, D = 6000, 1024


def resident(file):
    """Bytes of mappings of `file` that lie in memory."""
    with open("/proc/self/smaps") as maps:
        text = maps.read()
    parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", text, flags=re.M)
    return 1024 * sum(int(re.search(r"^Rss: +(\d+)", part, re.M)[1]) for part in parts if file in part.split("\n")[0])


rng = np.random.default_rng(3)
table, own = rng.uniform(-1, 1, (V, D)).astype(np.float32), rng.uniform(-1, 1, (D, D)).astype(np.float32)
with tempfile.TemporaryDirectory() as folder:
    source, weights = os.path.join(folder, "tied.heed"), os.path.join(folder, "tied.safetensors")
    with open(source, "w") as file:
        file.write(SOURCE)
    with open(weights, "wb") as file:
        file.write(safetensors_file.pack(*safetensors_file.header_and_data({"embed": table, "own": own})))
    model = heed.compile(source, weights=weights)
    memory, held = model.memory(), resident(weights)
    expect(memory.weights == table.nbytes + own.nbytes, f"expected {table.nbytes + own.nbytes} bytes of weights, found {memory.weights}")
    expect(memory.copies >= table.nbytes, f"expected packed copies of {table.nbytes} bytes at least, found {memory.copies}")
    # What is read while the file is opened, and parts of pages.
    expect(held < 0.05 * table.nbytes, f"expected a file whose pages are given back, found {held} bytes resident")
    model(np.arange(0, V, V // 100, dtype=np.int32))
    expect(resident(weights) >= held + 100 * 4096, f"expected 100 rows of the table among the {resident(weights)} bytes resident")
    for ids in [7], [V - 1, 0, 3, 3, 17]:
        wanted = (table[ids].astype(np.float64) @ own.T) @ table.T
        found = model(np.array(ids, np.int32))
        expect(np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max(), f"{ids}: {np.abs(found - wanted).max()}")
finish()
