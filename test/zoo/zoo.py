"""What the oracles of the zoo share: compile a model once, run the program on arrays, compare with float64 NumPy.

An oracle file states the paper's equation in NumPy and calls check(). It never reads the .heed file.
Tolerance: |x - ref| / max|ref| <= 1e-5 over each result (DESIGN.md, "Error of an element"), inputs in [-1, 1].
"""
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models")


def uniform(rng, *shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def softmax(s, live=None):
    """Softmax over the last axis in float64; rows without a live element are zeros."""
    s = s.astype(np.float64)
    if live is None:
        live = np.ones(s.shape, bool)
    live = np.broadcast_to(live, s.shape)
    m = np.max(np.where(live, s, -np.inf), axis=-1, keepdims=True, initial=-np.inf)
    e = np.where(live, np.exp(s - np.where(np.isfinite(m), m, 0)), 0)
    d = e.sum(-1, keepdims=True)
    return np.divide(e, d, out=np.zeros_like(e), where=d > 0)


def f64(*arrays):
    return [a.astype(np.float64) for a in arrays]


def linear(x, weights, at):
    return x @ weights[f"{at}.weight"].astype(np.float64).T + weights[f"{at}.bias"]


def layer_norm(x, weights, at, eps=1e-5):
    c = x - x.mean(-1, keepdims=True)
    return c / np.sqrt((c * c).mean(-1, keepdims=True) + eps) * weights[f"{at}.weight"] + weights[f"{at}.bias"]


def heads(x, count):
    """B x N x D to B x H x N x E."""
    b, n, d = x.shape
    return x.reshape(b, n, count, d // count).transpose(0, 2, 1, 3)


def merge(x):
    b, h, n, e = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b, n, h * e)


def multi_head(x, memory, weights, count, at="", live=None):
    """Section 3.2.2 of Vaswani et al. 2017: concat(head_1 .. head_H) W_o, projections named at + query, key, value, output."""
    q, k, v = (heads(linear(y, weights, at + n), count) for y, n in ((x, "query"), (memory, "key"), (memory, "value")))
    a = softmax(np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(q.shape[-1]), live)
    return linear(merge(np.einsum("bhij,bhje->bhie", a, v)), weights, at + "output")


def linear_weights(rng, at, out, into):
    """Scaled as initialised networks are, so that scores stay small: the error that f32 allows grows with them."""
    scale = np.float32(into**-0.5)
    return {f"{at}.weight": uniform(rng, out, into) * scale, f"{at}.bias": uniform(rng, out)}


def norm_weights(rng, at, size):
    return {f"{at}.weight": uniform(rng, size) + 1, f"{at}.bias": uniform(rng, size)}


def feed_forward(x, weights, at=""):
    """Vaswani et al. 2017, equation 2: max(0, x W1 + b1) W2 + b2, the matrices named at + up, down."""
    return linear(np.maximum(linear(x, weights, at + "up"), 0), weights, at + "down")


def attention_weights(rng, at, size):
    """What multi_head reads."""
    return {k: v for name in ("query", "key", "value", "output") for k, v in linear_weights(rng, at + name, size, size).items()}


def feed_forward_weights(rng, at, size, hidden):
    return linear_weights(rng, at + "up", hidden, size) | linear_weights(rng, at + "down", size, hidden)


def encoder_weights(rng, layers, size, hidden=64):
    """Of each layer `layer.{l}.`: multi_head, feed_forward, norm1 and norm2."""
    weights = {}
    for at in (f"layer.{l}." for l in range(layers)):
        weights |= attention_weights(rng, at, size) | feed_forward_weights(rng, at, size, hidden)
        weights |= norm_weights(rng, at + "norm1", size) | norm_weights(rng, at + "norm2", size)
    return weights


def check(model, oracle, cases, tolerance=1e-5):
    """Compiles models/<model>.heed and compares every case.

    cases: list of (inputs, weights); inputs: name -> array or number, weights: name -> array or None.
    oracle(inputs, weights) -> name -> float64 array.
    """
    compiler = sys.argv[1:]  # the compiler's command line, options included
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program")
        command = compiler + [os.path.join(MODELS, model + ".heed"), "-o", program]
        subprocess.run(command, check=True)
        for number, (inputs, weights) in enumerate(cases):
            compare(folder, program, oracle(inputs, weights), inputs, weights, f"{model}, case {number}", tolerance)
    print(f"{model}: {len(cases)} cases agree")


def compare(folder, program, expected, inputs, weights, what, tolerance):
    command = [program]
    for name, value in inputs.items():
        if isinstance(value, np.ndarray):
            path = os.path.join(folder, f"in-{name}.npy")
            np.save(path, value)
            command += [f"--{name}", path]
        else:
            command += [f"--{name}", str(value)]
    if weights:
        from safetensors.numpy import save_file  # which bench/ does not need to have for cases of other groups
        save_file(weights, os.path.join(folder, "w.safetensors"))
        command += ["--weights", os.path.join(folder, "w.safetensors")]
    for name in expected:
        command += ["--output", f"{name}={folder}/out-{name}.npy"]
    subprocess.run(command, check=True)
    for name, want in expected.items():
        got = np.load(f"{folder}/out-{name}.npy")
        assert got.shape == want.shape, f"{what}: {name} has shape {got.shape}, expected {want.shape}"
        assert np.array_equal(np.isnan(got), np.isnan(want)), f"{what}: {name} has NaN in other places than expected"
        if want.size:
            scale = np.nanmax(np.abs(want)) if np.isfinite(want).any() else 0
            error = np.nanmax(np.abs(got - want)) / (scale or 1)
            assert error <= tolerance, f"{what}: {name} differs by {error:.3g}, allowed {tolerance:g}"


# Models with states: programs would begin each call anew, so a library is called from Python.
_opened = {}


def calls(model, inputs, want, *, axis, dims, what, start={}, weights=None, tolerance=1e-5):
    """Calls the only entry of models/<model>.heed with each of `inputs` on one state of these dims, all zero but for `start`: the results, joined along `axis`,
    are those that are wanted for all calls as one."""
    os.environ["HEEDC"] = shutil.which(sys.argv[1])
    sys.path.insert(0, os.path.join(MODELS, "..", "python"))
    import heed

    key = model if weights is None else None
    m = _opened.get(key) or heed.compile(os.path.join(MODELS, model + ".heed"), weights=weights)
    if key:
        _opened[key] = m
    # Those that weights or the model say are no dims of the state.
    state = m.state(**{name: extent for name, extent in dims.items() if any(name in tensor.extents for tensor in m._library.states)})
    for name, value in start.items():
        state[name] = value
    got = np.concatenate([m(**one, state=state).copy() for one in inputs], axis=axis)
    assert got.shape == want.shape, f"{model}, {what}: shape {got.shape}, expected {want.shape}"
    error = np.abs(got - want).max() / (np.abs(want).max() or 1)
    assert error <= tolerance, f"{model}, {what}: differs by {error:.3g}, allowed {tolerance:g}"
    print(f"{model}, {what}: agrees")
