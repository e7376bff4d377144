# RUN: %python %s %heed_bin %t
"""Products of few rows with matrices that are inputs of the call, which nothing packs: rows around a tile and around what is few, columns that fill no tile, sums
around a vector, long and empty, batches, several such sums in a kernel, 16-bit matrices, extents known when compiling, for three widths of vectors. Against float64
NumPy; each element's error is bounded by the size of its own terms."""
import pathlib
import shutil
import sys

import numpy as np

from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
rng = np.random.default_rng(7)


def dot(x, w):
    return x.astype("f8") @ np.swapaxes(w, -1, -2).astype("f8")


def silu(x):
    return x / (1 + np.exp(-x))


# name: (inputs, body, oracle)
MODELS = {
    "plain": (dict(x="N D", w="O D"), "return y[n,o] = sum(d) x[n,d] * w[o,d]", lambda x, w: dot(x, w)),
    "heads": (dict(x="B N D", w="H O D"), "return y[b,h,n,o] = sum(d) x[b,n,d] * w[h,o,d]", lambda x, w: dot(x[:, None], w[None])),
    "batched": (dict(x="B N D", w="B O D"), "return y[b,n,o] = sum(d) x[b,n,d] * w[b,o,d]", dot),
    "bias": (dict(x="N D", w="O D", c="O", r="N O"), "y[n,o] = sum(d) x[n,d] * w[o,d]\n  return z[n,o] = max(y[n,o] + c[o], 0.0) + r[n,o]",
             lambda x, w, c, r: np.maximum(dot(x, w) + c, 0) + r),
    # Elements that are asked for alone move neither the tile nor its neighbours.
    "chosen": (dict(x="N D", w="O D"), "y[n,o] = sum(d) x[n,d] * w[o,d]\n  return z[n,o:O] = if o >= 2 then y[n,o] * 2.0 else 0.0",
               lambda x, w: dot(x, w) * 2 * (np.arange(len(w)) >= 2)),
    "half": (dict(x="N D", w="f16 O D"), "return y[n,o] = sum(d) x[n,d] * f32(w[o,d])", dot),
    "bfloat": (dict(x="N D", w="bf16 O D"), "return y[n,o] = sum(d) x[n,d] * f32(w[o,d])", dot),
    "scaled": (dict(x="N D", w="O D"), "return y[n,o] = sum(d) x[n,d] * w[o,d] * 3.0 / (D + 1)", lambda x, w: dot(x, w) * 3 / (x.shape[1] + 1)),
    "gated": (dict(x="B N D", u="O D", g="O D"), "return y[b,n,o] = (sum(d) x[b,n,d] * u[o,d]) * silu(sum(d) x[b,n,d] * g[o,d])", lambda x, u, g: dot(x, u) * silu(dot(x, g))),
    "layer": (dict(x="B N D", u="O D", g="O D", w="D O"),
              "h[b,n,o] = (sum(d) x[b,n,d] * u[o,d]) * silu(sum(d) x[b,n,d] * g[o,d])\n  return y[b,n,d] = x[b,n,d] + sum(o) h[b,n,o] * w[d,o]",
              lambda x, u, g, w: x + dot(dot(x, u) * silu(dot(x, g)), w)),
}
SIZES = [dict(B=2, H=3, N=n, O=o, D=d) for n, o, d in (
    (1, 1, 1), (1, 4, 16), (2, 5, 17), (3, 33, 15), (4, 32, 33), (5, 31, 64), (7, 3, 250), (8, 36, 1040), (63, 40, 48), (64, 9, 31), (65, 9, 31), (100, 50, 20),
    (0, 4, 16), (3, 0, 16), (3, 5, 0))]
LONG = dict(B=1, H=1, N=3, O=5, D=40003)


def given(kind, dims, size):
    values = rng.standard_normal([size[d] for d in dims]).astype("f4")
    if kind == "f16":
        return values.astype("f2")
    return (values.view("u4") & 0xffff0000).view("f4") if kind == "bf16" else values


def check(name, program, size):
    inputs, _, oracle = MODELS[name]
    arrays, options = {}, []
    for key, text in inputs.items():
        *kind, dims = text.rsplit("16 ", 1)
        arrays[key] = given(kind[0] + "16" if kind else "f32", dims.split(), size)
        np.save(folder / f"{key}.npy", arrays[key])
        options += [f"--{key}", folder / f"{key}.npy"]
    done = run(program, *options, "--output", folder / "y.npy", "--threads", "2", "--convert")
    expect(done.returncode == 0, f"{name} {size}: {done.stderr}")
    if done.returncode:
        return
    found, wanted = np.load(folder / "y.npy"), oracle(*arrays.values())
    with np.errstate(all="ignore"):
        terms = oracle(*(np.abs(a) for a in arrays.values()))
    bound = 2.0 ** -24 * (24 + size["D"] / 16) * (np.abs(terms) + 1)
    worst = (np.abs(found - wanted) / bound).max(initial=0)
    expect(found.shape == wanted.shape and worst <= 1, f"{name} {size}: {worst:.3g} of the bound, shape {found.shape}")


def declared(inputs, size=None):
    return ", ".join(
        f"{key}: {'f32' if '16 ' not in text else text.split()[0]}[{', '.join(str(size[d]) if size else d for d in text.rsplit('16 ', 1)[-1].split())}]" for key, text in inputs.items())


for name, (inputs, body, oracle) in MODELS.items():
    source = folder / f"{name}.heed"
    source.write_text(f"model m({declared(inputs)}) {{\n  {body}\n}}\n")
    for target in ("host", "x86-64-v3", "x86-64-v2"):
        if target != "host" and name not in ("bias", "layer"):
            continue
        program = folder / f"{name}-{target}"
        done = run(heedc, source, f"--target={target}", "-o", program, "--explain=all")
        expect(done.returncode == 0, f"{name}: {done.stderr}")
        sums = dict(gated=2, layer=3).get(name, 1)
        expect(done.stderr.count("dot products schedule") == sums, f"{name}: expected {sums} kernels of dot products\n{done.stderr}")
        for size in SIZES:
            check(name, program, size)
    if name in ("plain", "bias", "half"):
        check(name, folder / f"{name}-host", LONG)

# Extents that are known choose it without a branch, and long sums alone.
for size, chosen in ((dict(N=3, O=9, D=70), True), (dict(N=1, O=70, D=40000), True), (dict(N=3, O=9, D=8), False), (dict(N=65, O=9, D=1000), False)):
    source = folder / "known.heed"
    source.write_text(f"model m({declared(MODELS['bias'][0], size)}) {{\n  {MODELS['bias'][1]}\n}}\n")
    done = run(heedc, source, "-o", folder / "known", "--explain=all")
    expect(done.returncode == 0 and ("dot products schedule" in done.stderr) == chosen, f"known {size}: {done.stderr}")
    check("bias", folder / "known", size)

finish()
