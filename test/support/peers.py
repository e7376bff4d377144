"""What the peers share: modules of packages whose weights are drawn, given to a compiled model by its names, and whose results are compared.

A test builds a package's module and says by which names the model has its weights. Modules compute in float64 from weights that are float32,
so that what is compared is the mathematics. Tolerance and comparison: test/zoo/zoo.py.
"""
import importlib.util
import pathlib
import sys

import numpy as np
import torch

# By its file: test/zoo on the path would hide packages that are named as systems are.
spec = importlib.util.spec_from_file_location("zoo", pathlib.Path(__file__).parent.parent / "zoo/zoo.py")
zoo = importlib.util.module_from_spec(spec)
spec.loader.exec_module(zoo)
uniform = zoo.uniform

torch.manual_seed(0)


def drawn(module, seed=0):
    """`module` with every weight drawn, also those that begin as 0 or 1, and in float64; dropout is off."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in module.named_parameters():
            x = torch.rand(p.shape, generator=generator) * 2 - 1
            p.copy_(x * p.shape[-1] ** -0.5 if p.ndim > 1 else x + (1 if "norm" in name.lower() and name.endswith("weight") else 0))
    return module.double().eval()


def array(tensor):
    return np.ascontiguousarray(tensor.detach().numpy().astype(np.float32))


def tensor(x):
    """Floats as float64, integers as what embeddings take."""
    return torch.from_numpy(x.astype(np.float64 if x.dtype == np.float32 else np.int64))


def layer(at, module):
    """A linear layer or norm."""
    return {f"{at}.{name}": array(p) for name, p in module.named_parameters(recurse=False)}


def layers(pairs):
    """Of a dict name -> module."""
    return {key: value for at, module in pairs.items() for key, value in layer(at, module).items()}


def in_thirds(at, module, query="query", key="key", value="value"):
    """torch.nn.MultiheadAttention: one matrix for queries, keys and values."""
    weights = layer(at + "output", module.out_proj)
    for name, w, b in zip((query, key, value), module.in_proj_weight.chunk(3), module.in_proj_bias.chunk(3)):
        weights |= {f"{at}{name}.weight": array(w), f"{at}{name}.bias": array(b)}
    return weights


def before(module, run):
    """What `module` is given while run() runs."""
    seen = []
    hook = module.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        run()
    hook.remove()
    return seen[0]


def heads(x, count):
    return x.reshape(*x.shape[:2], count, -1).transpose(1, 2)


def merged(o):
    """B x H x N x E to B x N x D."""
    return o.transpose(1, 2).flatten(2)


def compare(model, weights, cases, peer, tolerance=1e-5, options=()):
    """`cases`: inputs by the model's names; peer(**tensors) gives the results by name."""
    def oracle(inputs, _):
        with torch.no_grad():
            found = peer(**{name: tensor(x) if isinstance(x, np.ndarray) else x for name, x in inputs.items()})
        return {name: x.numpy().astype(np.float64) for name, x in found.items()}
    sys.argv += options
    zoo.check(model, oracle, [(inputs, weights or None) for inputs in cases], tolerance)
