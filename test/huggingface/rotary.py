# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support:%heed_src/test/huggingface %python %s %heed_bin/heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Rotary positions of every type far from the start, where the last bit of a frequency shows: lib/rope.heed against transformers' own tables.
`rotary.py --make`, with torch and transformers, writes expected/rotary.npz."""
import json
import os
import pathlib
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).parent
EXPECTED = HERE / "expected" / "rotary.npz"
STARTS, N, R = (0, 3000, 30000, 120000), 3, 80
SHAPE = dict(hidden_size=320, num_attention_heads=4, max_position_embeddings=131072)
DIVISORS = dict(short_factor=[1 + 0.01 * t for t in range(R // 2)], long_factor=[1 + 0.3 * t for t in range(R // 2)])
# A config's rotary entries, and by how much an angle may be off for each position: one rounding more or less of a frequency where the library's formula is
# evaluated in another order (yarn), or the base depends on the call (dynamic).
CASES = {
    "default": (dict(rope_theta=10000.0), 0),
    "new": (dict(rope_parameters=dict(rope_type="default", rope_theta=500000.0)), 0),
    "linear": (dict(rope_theta=10000.0, rope_scaling=dict(type="linear", factor=3.0)), 0),
    "dynamic": (dict(rope_theta=10000.0, max_position_embeddings=4096, rope_scaling=dict(type="dynamic", factor=2.0)), 1.2e-7),
    "llama3": (dict(rope_theta=500000.0, rope_scaling=dict(rope_type="llama3", factor=32.0, high_freq_factor=4.0, low_freq_factor=1.0,
                                                           original_max_position_embeddings=8192)), 0),
    "yarn": (dict(rope_theta=1000000.0, rope_scaling=dict(rope_type="yarn", factor=3.2, original_max_position_embeddings=32768)), 6e-8),
    "longrope": (dict(rope_theta=10000.0, original_max_position_embeddings=4096, rope_scaling=dict(type="longrope", **DIVISORS)), 0),
}
MODEL = f"""import "{HERE.parent.parent}/frontend/HuggingFace/lib/rope.heed"
config "config.json", max_position_embeddings = 2048
model tables(start: i32[B]) {{
  position[b, n:{N}] = start[b] + n
  reach[b] = start[b] + {N}
  cosine, sine = rotary(position, reach, R = {R}, context = max_position_embeddings)
  return cosine, sine
}}
"""


def make():
    import copy
    import torch
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
    arrays = {}
    for name, (entries, _) in CASES.items():
        config = LlamaConfig(**{**SHAPE, **copy.deepcopy(entries)})
        found = [LlamaRotaryEmbedding(config)(torch.zeros(1), torch.arange(start, start + N)[None]) for start in STARTS]
        for k, kind in enumerate(("cosine", "sine")):
            arrays[f"{name}.{kind}"] = torch.cat([tables[k] for tables in found])[..., :R // 2].numpy()
    np.savez_compressed(EXPECTED, **arrays)


def main():
    os.environ["HEEDC"] = sys.argv[1]
    import heed
    from runs import expect, finish
    expected = np.load(EXPECTED)
    for name, (entries, slack) in CASES.items():
        with tempfile.TemporaryDirectory() as scratch:
            pathlib.Path(scratch, "config.json").write_text(json.dumps({**SHAPE, **entries}))
            path = pathlib.Path(scratch, "tables.heed")
            path.write_text(MODEL)
            found = heed.compile(path, model_dir=scratch)(start=np.array(STARTS, np.int32))
        for kind, table in zip(("cosine", "sine"), found):
            off = np.abs(table - expected[f"{name}.{kind}"]).max(axis=(1, 2))
            limit = 3e-7 + slack * np.array(STARTS)
            expect(bool((off <= limit).all()), f"{name}, {kind}: off by {off} at {STARTS}, expected at most {limit}")
    finish()


make() if sys.argv[1] == "--make" else main()
