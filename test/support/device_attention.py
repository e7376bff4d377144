"""Causal attention as programs for devices run it, against float64 NumPy: sizes of 0, 1 and odd ones, NaN in keys that are masked and in one that is
not, scores of -inf."""
import os

import numpy as np

from runs import expect, run

random = np.random.default_rng(3)
#: B, H, G, N, M, E, F.
SIZES = ((1, 2, 1, 5, 5, 8, 8), (2, 4, 2, 33, 65, 17, 9), (1, 1, 1, 1, 1, 1, 1), (1, 2, 1, 0, 4, 8, 8), (1, 2, 1, 4, 0, 8, 8),
         (1, 2, 1, 9, 3, 8, 8), (1, 2, 2, 4, 4, 0, 8), (1, 2, 2, 4, 4, 8, 0), (0, 2, 2, 4, 4, 8, 8), (1, 3, 3, 131, 131, 64, 64))


def oracle(q, k, v):
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    (B, H, N, E), (_, G, M, F) = q.shape, v.shape
    live = np.arange(M) <= np.arange(N)[:, None] + (M - N)
    out = np.zeros((B, H, N, F))
    for b, h, i in np.ndindex(B, H, N):
        keys, values = k[b, h * G // H][live[i]], v[b, h * G // H][live[i]]
        s = keys @ q[b, h, i] / np.sqrt(max(E, 1))
        keys = s != -np.inf
        p = np.exp(s[keys] - s[keys].max(initial=-np.inf))
        if len(p):
            out[b, h, i] = (p / p.sum()) @ values[keys]
    return out


def draw(B, H, G, N, M, E, F):
    return {name: random.uniform(-1, 1, shape).astype(np.float32)
            for name, shape in (("q", (B, H, N, E)), ("k", (B, G, M, E)), ("v", (B, G, M, F)))}


def call(program, arrays, *options, **env):
    """Runs it; the result is o.npy beside the program."""
    folder = program.parent
    (folder / "o.npy").unlink(missing_ok=True)
    arguments = ["--output", folder / "o.npy", *options]
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        arguments += ["--" + name, folder / f"{name}.npy"]
    done = run(program, *arguments, env={**os.environ, **env})
    expect("not given back" not in done.stderr, done.stderr)  # CUDA's driver of the tests says so
    return done


def check(program, arrays, what, **env):
    """What it gives, or None where it fails."""
    done = call(program, arrays, **env)
    expect(done.returncode == 0, f"{what}: {done.stderr}")
    if done.returncode:
        return None
    got, want = np.load(program.parent / "o.npy"), oracle(**arrays)
    expect(got.shape == want.shape and np.array_equal(np.isnan(got), np.isnan(want)), f"{what}: NaN")
    largest = np.nanmax(np.abs(want), initial=0)
    expect(np.nanmax(np.abs(got - want), initial=0) <= 1e-5 * largest, f"{what}: the numbers")
    return got


def check_all(program, **env):
    for sizes in SIZES:
        check(program, draw(*sizes), sizes, **env)
    arrays = draw(1, 2, 2, 40, 40, 16, 16)
    same = check(program, arrays, "again", **env)
    expect(np.array_equal(check(program, arrays, "again", **env), same), "the same bits from run to run")
    for where in "kv":
        holes = {name: array.copy() for name, array in arrays.items()}
        holes[where][0, 1, 33] = np.nan
        check(program, holes, f"NaN in {where}", **env)
    arrays["k"][0, 0, 7] = -np.inf
    arrays["q"][0, 0] = np.abs(arrays["q"][0, 0])
    check(program, arrays, "scores of -inf", **env)
