# RUN: %python %s %heed_bin %heed_src %t
"""Scores that are known to be small need no maximum: a call that finds them bounded takes the bounded form, any other the safe one, and both are
right. Sizes that fill neither a tile nor a block, masks with empty rows, sinks, two terms, a soft cap; values of any size; NaN and infinity
at any place choose the safe form. Against float64 NumPy."""
import pathlib
import shutil
import sys

import numpy as np

from runs import expect, finish, run

binaries, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[3])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
rng = np.random.default_rng(7)

# Name: more arguments, the score and the mask.
ARGUMENTS = "q: f32[H, N, E], k: f32[H, M, E], v: f32[H, M, F]"
MODELS = {
    "full": ("", "sum(e) q[h,i,e] * k[h,j,e] / sqrt(E)", ""),
    "capped": ("", "30 * tanh((sum(e) q[h,i,e] * k[h,j,e]) / 30)", ""),
    "terms": (", r: f32[H, N, E], s: f32[H, M, E]", "(sum(e) q[h,i,e] * k[h,j,e]) / 8 + (sum(e) r[h,i,e] * s[h,j,e]) / 16", "j <= i"),
    "sink": (", t: f32[H]", "sum(e) q[h,i,e] * k[h,j,e] / sqrt(E)", "j <= i - 40"),
}


def text(name):
    more, score, where = MODELS[name]
    within = "j" + (f" where {where}" if where else "") + ("; sink = t[h]" if name == "sink" else "")
    return f"""model attention({ARGUMENTS}{more}) {{
  s[h,i,j] = {score}
  p[h,i,j] = softmax({within}) s[h,i,j]
  return o[h,i,f] = sum(j) p[h,i,j] * v[h,j,f]
}}
"""


def oracle(name, x):
    q, k, v = (x[key].astype(np.float64) for key in "qkv")
    dots = np.einsum("hie,hje->hij", q, k)
    s = dots / np.sqrt(q.shape[-1])
    if name == "capped":
        s = 30 * np.tanh(dots / 30)
    elif name == "terms":
        s = dots / 8 + np.einsum("hie,hje->hij", x["r"].astype(np.float64), x["s"].astype(np.float64)) / 16
    i, j = np.arange(s.shape[1])[:, None], np.arange(s.shape[2])[None]
    live = {"sink": j <= i - 40, "terms": j <= i}.get(name, np.broadcast_to(True, s.shape[1:]))
    live = live & ~np.isneginf(s)
    s = np.where(live, s, -np.inf)
    sink = x["t"].astype(np.float64)[:, None, None] if name == "sink" else np.full((s.shape[0], 1, 1), -np.inf)
    top = np.maximum(np.max(s, axis=-1, keepdims=True), sink)
    top = np.where(np.isneginf(top), 0, top)
    w = np.exp(s - top)
    o = np.stack([np.stack([w[h, r][live[h, r]] @ v[h][live[h, r]] for r in range(s.shape[1])]) for h in range(s.shape[0])]) \
        if not np.isfinite(v).all() else w @ v
    total = w.sum(-1, keepdims=True) + np.exp(sink - top)
    return np.where(live.any(-1, keepdims=True), o / np.where(total == 0, 1, total), 0)


def check(name, what, x, is_bounded, tolerance=1e-5):
    command = [folder / name, "--output", folder / "o.npy"]
    if is_bounded is not None:  # it takes a while
        command.append("--profile")
    for key, array in x.items():
        np.save(folder / f"{key}.npy", array)
        command += [f"--{key}", folder / f"{key}.npy"]
    done = run(*command)
    expect(done.returncode == 0, f"{name}, {what}: {done.stderr}")
    taken = any("_bounded" in line and "_bound " not in line for line in (done.stdout + done.stderr).splitlines())
    expect(is_bounded in (taken, None), f"{name}, {what}: bounded {taken}, expected {is_bounded}\n{done.stdout}{done.stderr}")
    found = np.load(folder / "o.npy").astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = oracle(name, x)
        scale = np.abs(np.where(np.isfinite(wanted), wanted, 0)).max(axis=(-2, -1), keepdims=True)
        same = (np.isnan(found) & np.isnan(wanted)) | (found == wanted) | (np.abs(found - wanted) <= tolerance * scale)
    expect(same.all(), f"{name}, {what}: {(~same).sum()} of {same.size} differ, first at {np.argwhere(~same)[:1]}: "
                       f"{found[~same][:1]}, expected {wanted[~same][:1]}")


def draw(name, n=701, m=653, e=40, f=24, size=1.0):
    x = {key: (rng.standard_normal((2, *shape)) * size).astype(np.float32) for key, shape in (("q", (n, e)), ("k", (m, e)))}
    x["v"] = rng.standard_normal((2, m, f)).astype(np.float32)
    if name == "terms":
        x["r"], x["s"] = x["q"][..., ::-1].copy(), x["k"] * np.float32(0.5)
    if name == "sink":
        x["t"] = np.array([3, -20], np.float32)
    return x


for name in MODELS:
    (folder / f"{name}.heed").write_text(text(name))
    # Known sizes: else there is no bounded form.
    done = run(binaries / "heedc", folder / f"{name}.heed", "--set", "N=701", "--set", "M=653", "-o", folder / name)
    expect(done.returncode == 0, done.stderr)
    check(name, "small", draw(name), True)
    check(name, "large", draw(name, size=6), name == "capped", 4e-5)
    for tensor in ("q", "k", "v"):
        for value in (np.nan, np.inf):
            if name == "terms":
                continue
            x = draw(name)
            x[tensor][1, -1, -1] = value
            check(name, f"{value} in {tensor}", x, False if name == "full" else None)

# Scores at the ends of the range: all of a row near the bound, above or below.
for sign in (1, -1):
    x = draw("full")
    x["q"][:] = 0
    x["k"][:] = 0
    x["q"][..., 3] = 5
    x["k"][..., 3] = sign * 5.9 * 40 ** 0.5
    x["k"][:, ::2, 3] *= -1
    x["k"][:, 17, 3] = sign * 37
    check("full", f"scores of {sign * 29}", x, True)
    check("full", "a row at one end", x | {"k": np.full_like(x["k"], 0) + np.float32(sign * 5.8)}, True)
# Values of any size: of the least as much is left as without a bound, of the largest nothing overflows.
for size in (1e-30, 1e-37, 1e4, 1e30, 1e35):
    x = draw("full")
    x["v"] = np.clip(x["v"], -1, 1) * np.float32(size)
    check("full", f"values of {size}", x, size <= 1e4)
    x["v"][:, ::2] = np.float32(1e-30)
    x["v"] = np.abs(x["v"])
    check("full", f"values of {size} and 1e-30", x, None)
finish()
