# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support:%heed_src/test/huggingface %python %s %heed_bin/heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Activations by name: lib/activation.heed against transformers' ACT2FN. `activation.py --make`, with torch and transformers, writes expected/activation.npz."""
import os
import pathlib
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).parent
EXPECTED = HERE / "expected" / "activation.npz"
NAMES = ("gelu gelu_10 gelu_accurate gelu_fast gelu_new gelu_python gelu_python_tanh gelu_pytorch_tanh hardswish laplace leaky_relu linear mish quick_gelu relu relu2 "
         "relu6 sigmoid silu sqrtsoftplus swish tanh").split()
POINTS = np.concatenate([np.linspace(-15, 15, 121), [-200, 200, 1e-4, -1e-4]]).astype(np.float32)
MODEL = f"""import "{HERE.parent.parent}/frontend/HuggingFace/lib/activation.heed"
model table(x: f32[N]) {{
  return {", ".join(f'y_{name} = activation(x, kind = "{name}")' for name in NAMES)}
}}
"""


def make():
    import torch
    from transformers.activations import ACT2FN
    np.savez_compressed(EXPECTED, **{name: ACT2FN[name](torch.tensor(POINTS).double()).numpy() for name in NAMES})


def main():
    os.environ["HEEDC"] = sys.argv[1]
    import heed
    from runs import expect, finish
    expected = np.load(EXPECTED)
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch, "table.heed")
        path.write_text(MODEL)
        results = heed.compile(path)(x=POINTS)
    for name, found in zip(NAMES, results):
        # Two roundings of a result, and one of the factor that x is multiplied with (1 + erf is rounded before).
        over = np.abs(found - expected[name]) - 2.4e-7 * np.abs(expected[name]) - 1.2e-7 * np.abs(POINTS)
        expect(bool((over <= 1e-7).all()), f"{name}: {over.max()} more off than expected at {POINTS[over.argmax()]}")
    finish()


make() if sys.argv[1] == "--make" else main()
