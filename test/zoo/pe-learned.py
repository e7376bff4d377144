# RUN: %python %s heedc
"""Gehring et al. 2017, Devlin et al. 2019: x_j + P[j + offset]; a position that the table lacks is an error."""
import os
import subprocess
import sys
import tempfile

import numpy as np
from zoo import MODELS, compare, uniform


def expected(x, table, offset):
    return {"y": np.array([[row + table[offset + j] for j, row in enumerate(sentence)] for sentence in x.astype(np.float64)])}


rng = np.random.default_rng(102)
with tempfile.TemporaryDirectory() as folder:
    program = os.path.join(folder, "program")
    subprocess.run(sys.argv[1:] + [os.path.join(MODELS, "position/pe-learned.heed"), "-o", program], check=True)
    for b, n, d, rows, offset in [(2, 140, 16, 150, 0), (1, 9, 5, 40, 31), (3, 1, 4, 1, 0), (1, 1, 7, 12, 11)]:
        x, table = uniform(rng, b, n, d), uniform(rng, rows, d)
        inputs, weights = dict(x=x, offset=offset), {"position_embeddings.weight": table}
        compare(folder, program, expected(x, table, offset), inputs, weights, f"offset {offset}", 1e-5)
        for outside in (rows - n + 1, -1):
            try:
                compare(folder, program, {}, dict(x=x, offset=outside), weights, "", 1e-5)
            except subprocess.CalledProcessError:
                continue
            raise AssertionError(f"offset {outside} of {n} rows in a table of {rows} was taken")
print("position/pe-learned: all cases agree")
