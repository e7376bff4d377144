# RUN: %python %s %heed_bin %t
"""Keys and values that are joined of parts (null keys, memory, latents, before or behind those of a sequence) are read where they lie: no
array of all of them is made, and the numbers are those of the joined arrays. Against float64 NumPy on the concatenation: parts of no row,
of one, of less and more than a block; all queries of a call in each form; masks over the joined index, with and without tables; parts that
heads or sentences share; other types in storage; NaN and infinity in rows that a mask hides or shows; scores of any size."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(17)

# Name: parts of keys and values with their shapes (S0.. are their rows), the mask, and what NumPy makes of it.
SEQUENCE = "B, G, S{0}, 8"
everything = lambda i, j, cuts, length: np.ones(np.broadcast(i, j).shape, bool)
MODELS = {
    # The state begins with the rest of one part; a part of no memory has no batch.
    "null": ([("f32", "S0, 8"), ("f32", SEQUENCE)], None, everything),
    "one": ([("f32", "1, 8"), ("f32", SEQUENCE)], None, everything),
    "behind": ([("f32", SEQUENCE), ("f32", "G, S1, 8")], "j < length[b] or j >= S0",
               lambda i, j, cuts, length: (j < length) | (j >= cuts[1])),
    "causal": ([("f32", "G, S0, 8"), ("f32", SEQUENCE)], "j - S0 <= i", lambda i, j, cuts, length: j - cuts[1] <= i),
    "window": ([("f32", "G, S0, 8"), ("f32", SEQUENCE)], "j < S0 or (j - S0 <= i and j - S0 > i - 20)",
               lambda i, j, cuts, length: (j < cuts[1]) | ((j - cuts[1] <= i) & (j - cuts[1] > i - 20))),
    "half": ([("f16", "G, S0, 8"), ("f16", SEQUENCE), ("f32", "B, S2, 8")], None, everything),
    "brain": ([("bf16", "G, S0, 8"), ("bf16", SEQUENCE)], None, everything),
    "three": ([("i8", "G, 2, 8"), ("f32", SEQUENCE), ("f32", "S2, 8")], "j < length[b] or j >= 2 + S1",
              lambda i, j, cuts, length: (j < length) | (j >= cuts[2])),
}
SIZES = [(0, 5, 3), (1, 1, 0), (3, 0, 2), (0, 0, 0), (1, 64, 1), (1, 63, 64), (5, 130, 70), (70, 65, 5), (64, 200, 64), (129, 3, 1)]
QUERIES = [1, 3, 16, 35, 130]


def source(name):
    parts, where, _ = MODELS[name]
    inputs, reads = [], {"k": [], "v": []}
    for number, (type, shape) in enumerate(parts):
        shape = shape.format(number)
        index = ", ".join({"B": "b", "H": "h", "G": "g", "8": "e"}.get(d, "j") for d in shape.split(", "))
        inputs.append(f"k{number}, v{number}: {type}[{shape}]")
        for kind in reads:
            read = f"{kind}{number}[{index}]"
            reads[kind].append(f"f32({read})" if type == "i8" else read)
    rows = " + ".join(shape.format(n).split(", ")[-2] for n, (_, shape) in enumerate(parts))
    joined = "\n".join(f"  {kind}[b:B, g:G, j:{rows}, e:8] = concat(j)({', '.join(all)})" for kind, all in reads.items())
    return f"""model m(q: f32[B, H, N, 8], {', '.join(inputs)}, length: i32[B]) {{
{joined}
  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b,h*G/H,j,e] / 3.0
  p[b,h,i,j] = softmax(j{' where ' + where if where else ''}) s[b,h,i,j]
  return o[b,h,i,e] = sum(j) p[b,h,i,j] * v[b,h*G/H,j,e]
}}
"""


def want(name, q, k, v, length, cuts):
    seen = MODELS[name][2]
    q = q.astype(np.float64)
    B, H, N, _ = q.shape
    G, M = k.shape[1:3]
    out = np.zeros_like(q)
    i, j = np.arange(N)[:, None], np.arange(M)[None, :]
    with np.errstate(all="ignore"):
        for b in range(B):
            live = np.broadcast_to(seen(i, j, cuts, length[b]), (N, M))
            for h in range(H):
                g = h * G // H
                s = (q[b, h][:, None, :] * k[b, g][None, :, :]).sum(-1) / 3
                for n in range(N):
                    keys = np.flatnonzero(live[n] & ~(s[n] == -np.inf))
                    if len(keys):
                        w = np.exp(s[n, keys] - s[n, keys].max())
                        out[b, h, n] = (w[:, None] * v[b, g][keys]).sum(0) / w.sum()
    return out


def bfloat(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


def part(type, shape, dims):
    x = rng.normal(size=[dims.get(d) or int(d) if dims.get(d) != 0 else 0 for d in shape.split(", ")])
    if type == "i8":
        return rng.integers(-3, 4, x.shape).astype(np.int8)
    return x.astype(np.float16) if type == "f16" else bfloat(x) if type == "bf16" else x.astype(np.float32)


def joined(parts, shapes, dims):
    """The parts as [B, G, rows, 8] side by side."""
    rows = []
    for x, shape in zip(parts, shapes):
        names = shape.split(", ")
        x = np.asarray(x, np.float64)
        for axis, name in enumerate(("B", "G")):
            if name not in names:
                x = np.expand_dims(x, axis)
        rows.append(np.broadcast_to(x, (dims["B"], dims["G"], *x.shape[2:])))
    return np.concatenate(rows, 2)


def check(name, program, dims, spoil=None, scale=1.0):
    shapes = [shape.format(n) for n, (_, shape) in enumerate(MODELS[name][0])]
    types = [type for type, _ in MODELS[name][0]]
    k, v = ([part(t, s, dims) for t, s in zip(types, shapes)] for _ in "kv")
    q = (scale * rng.normal(size=(dims["B"], dims["H"], dims["N"], 8))).astype(np.float32)
    rows = [x.shape[-2] for x in k]
    cuts = np.cumsum([0] + rows)
    length = rng.integers(0, rows[0] + 1, dims["B"]).astype(np.int32)
    if spoil:
        spoil(k, v, length)
    command = [program, "--q", folder / "q.npy", "--length", folder / "length.npy", "--output", folder / "o.npy", "--convert"]
    np.save(folder / "q.npy", q)
    np.save(folder / "length.npy", length)
    for kind, all in (("k", k), ("v", v)):
        for n, x in enumerate(all):
            np.save(folder / f"{kind}{n}.npy", x)
            command += [f"--{kind}{n}", folder / f"{kind}{n}.npy"]
    done = run(*command)
    expect(done.returncode == 0, f"{name} {dims}: {done.stderr}")
    if done.returncode:
        return
    got = np.load(folder / "o.npy")
    expected = want(name, q, joined(k, shapes, dims), joined(v, shapes, dims), length, cuts)
    finite = np.isfinite(expected)
    expect((np.isfinite(got) == finite).all(), f"{name} {dims}: NaN and infinity stand elsewhere")
    # The error that a float score of this size leaves.
    largest = 1.0
    if finite.any() and got.size:
        keys = joined(k, shapes, dims)
        norm = np.sqrt(np.nanmax(np.where(np.isfinite(keys), keys, 0) ** 2, initial=0) * 8)
        largest = float(np.sqrt((q.astype(np.float64) ** 2).sum(-1)).max() * norm / 3)
        error = np.abs(got[finite] - expected[finite]).max() / max(1e-30, np.abs(expected[finite]).max())
        expect(error < max(1e-5, 8 * 2**-24 * largest), f"{name} {dims}: error {error}")


def hidden(k, v, length):
    """What the mask hides holds anything."""
    length[:] = np.minimum(length, k[0].shape[-2] // 2)
    for x in k[0], v[0]:
        for b, n in enumerate(length):
            x[b, :, n:] = [np.nan, np.inf, -np.inf, 1e38][b % 4]


def infinite(k, v, length):
    """Keys of a score of -inf or +-inf; a value of NaN in a live row."""
    if k[0].shape[-2]:
        k[0][..., 0, :] = -np.inf
        v[0][..., 0, :] = np.nan
    if v[1].shape[-2]:
        v[1][..., -1, 3] = np.nan


for name in MODELS:
    path = folder / f"{name}.heed"
    path.write_text(source(name))
    done = run(heedc, path, "--explain", "-o", folder / name)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    if done.returncode:
        continue
    expect("m: 1 kernel, 1 of 1 attention fused, nothing stored between kernels" in done.stdout + done.stderr,
           f"{name}: keys or values are copied: {done.stdout} {done.stderr}")
    for number, sizes in enumerate(SIZES):
        for n in QUERIES if number < 7 else QUERIES[number % 2::2]:
            H, G, B = [(1, 1, 1), (4, 2, 2), (3, 3, 1), (4, 1, 3)][(number + n) % 4]
            check(name, folder / name, dict(zip(("S0", "S1", "S2"), sizes), B=B, H=H, G=G, N=n))
    check(name, folder / name, dict(S0=5, S1=70, S2=3, B=2, H=4, G=2, N=40), scale=1e4)
for n in QUERIES:
    dims = dict(S0=40, S1=5, S2=3, B=3, H=4, G=2, N=n)
    check("behind", folder / "behind", dims, hidden)
    for name in "null", "causal":
        check(name, folder / name, dims, infinite)
finish()
