"""Weights of test checkpoints: drawn from a tensor's name, so that they need not be stored. NumPy alone, the same numbers everywhere."""
import hashlib
import json
import os
import re
import sys

import numpy as np

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "support"))
import safetensors_file

# The first rule whose pattern occurs in the name: centre and half width of a uniform distribution; "fan": sqrt(3) * gain / sqrt(inputs) is the half width,
# for products whose results vary by `gain`. Scores then vary by some units, and no softmax is flat.
RULES = [
    (r"(?i)(norm|ln)[^.]*\.(weight|gamma)$", 1.0, 0.3),
    (r"(?i)embe[^.]*\.weight$|wte|wpe|^shared\.|\.shared\.|relative_attention_bias", 0.0, 0.9),
    (r"(?i)(bias|beta)$", 0.0, 0.3),
    (r"", 0.0, "fan"),
]
GAIN = 1.5


def uniform(seed, shape):
    """Numbers of [-1, 1) with 24 bits each, which a text seeds."""
    key = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "little")
    bits = np.random.Philox(key=key).random_raw(int(np.prod(shape)))
    return ((bits >> np.uint64(40)).astype(np.float32) / np.float32(2**23) - 1).reshape(shape)


def integers(seed, low, high, shape):
    """Integers of [low, high)."""
    return (low + np.floor((uniform(seed, shape).astype(np.float64) + 1) / 2 * (high - low))).astype(np.int32)


def tensor(seed, name, shape, rules=()):
    """A tensor of the checkpoint; a case's own rules come before the general ones."""
    for pattern, centre, width in [*rules, *RULES]:
        if re.search(pattern, name):
            break
    if width == "fan":
        width = GAIN * np.sqrt(3 / max(np.prod(shape[1:]), 1))
    return np.float32(centre) + np.float32(width) * uniform(f"{seed}/{name}", shape)


def narrow(array, kind):
    """Numbers as bf16's bits, which lack the lower half of float32's, or as f16."""
    return (array.view(np.uint32) >> 16).astype(np.uint16) if kind == "bf16" else array.astype(np.float16)


def wide(array, kind):
    return (array.astype(np.uint32) << 16).view(np.float32) if kind == "bf16" else array.astype(np.float32)


def tensors(case):
    """All tensors of a case (what case.json holds), by their names. A test may want numbers that are `rounded` to bf16 or f16."""
    drawn = {name: tensor(case["seed"], name, shape, case["rules"]) for name, shape in case["tensors"].items()}
    kind = case.get("rounded")
    return {name: wide(narrow(array, kind), kind) for name, array in drawn.items()} if kind else drawn


def write_file(path, tensors, stored=None):
    """A .safetensors file; `stored`: in bf16 or f16."""
    if stored:
        tensors = {name: narrow(array, stored) for name, array in tensors.items()}
    safetensors_file.write(path, tensors, {name: "BF16" for name in tensors} if stored == "bf16" else {}, metadata={"format": "pt"})


def resized(case, config, changes, **fields):
    """A case and its config with changes, of extents: a tensor that has one of the config's old ones has the new one. `fields` are the case's."""
    extents = {config[name]: extent for name, extent in changes.items()}
    shapes = {name: [extents.get(extent, extent) for extent in shape] for name, shape in case["tensors"].items()}
    return {**case, **fields, "tensors": shapes}, {**config, **changes}


def write(folder, case, config):
    """Writes the checkpoint folder of a case: config.json, and one .safetensors file or several with an index. Returns what heedc takes as --weights."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file, indent=2)
    drawn, shards = tensors(case), case["shards"]
    if shards == 1:
        path = os.path.join(folder, "model.safetensors")
        write_file(path, drawn, case.get("stored"))
        return path
    names, where = sorted(drawn), {}
    for k in range(shards):
        part = f"model-{k + 1:05}-of-{shards:05}.safetensors"
        where.update({name: part for name in names[k::shards]})
        write_file(os.path.join(folder, part), {name: drawn[name] for name in names[k::shards]}, case.get("stored"))
    path = os.path.join(folder, "model.safetensors.index.json")
    with open(path, "w") as file:
        json.dump({"metadata": {"total_size": sum(array.nbytes for array in drawn.values())}, "weight_map": where}, file)
    return path
