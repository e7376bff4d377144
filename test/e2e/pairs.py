# RUN: %python %s %heed_bin %t
"""Sparse attention does work in proportion to its live pairs: what kernels compute is counted as they run (--count-pairs), what is live
is found by NumPy from the masks' equations. Of bands, blocks and data the live pairs are rounded to tiles of 16 x 16, so those of a dilation
that is data; of residues and tables they are not. SYSTEMS says how much more than these may be computed; where it is more than the aim
(1.3 of tiles, 1.5 of pairs) the figure is what there is today, which must not grow. Row blocks are not counted: not here is
random-attention, whose row block gathers the keys of its table and computes no others."""
import pathlib
import re
import subprocess
import sys

import numpy as np

from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
models = pathlib.Path(__file__).resolve().parent.parent.parent / "models" / "sparse"
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(15)
TILE = 16


def uniform(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def qkv(n, h=1, e=8, m=None):
    return dict(q=uniform(1, h, n, e), k=uniform(1, h, m or n, e), v=uniform(1, h, m or n, e))


def tiles(live):
    """Pairs in tiles of 16 x 16 that hold a live one."""
    *batch, n, m = live.shape
    padded = np.zeros((*batch, -(-n // TILE) * TILE, -(-m // TILE) * TILE), bool)
    padded[..., :n, :m] = live
    return TILE * TILE * padded.reshape(*batch, padded.shape[-2] // TILE, TILE, -1, TILE).any((-3, -1)).sum()


def places(n):
    return np.arange(n)[:, None], np.arange(n)[None, :]


def band():
    i, j = places(512)
    for window in 0, 9, 32:
        yield {}, qkv(512) | dict(window=window), abs(i - j) <= window


def block_local():
    i, j = places(512)
    yield {}, qkv(512), i // 16 == j // 16
    yield dict(block=24), qkv(500), np.equal(*(x // 24 for x in places(500)))


def image_1d():
    i, j = places(640)
    yield {}, qkv(640), (i // 16 * 16 - 24 <= j) & (j <= i)


def blockbert():
    i, j = places(768)
    pi = [[0, 1, 2], [1, 2, 0]]
    live = np.stack([j * 3 // 768 == np.take(pi[h], i * 3 // 768) for h in range(2)])
    yield {}, {name.upper(): x for name, x in qkv(768, 2).items()}, live


def spans():
    i, j = places(512)
    left = (np.arange(512) * 0.9 + rng.integers(-6, 7, 512)).astype(np.int32)
    right = (left + rng.integers(0, 24, 512)).astype(np.int32)
    yield {}, qkv(512) | dict(left=left[None], right=right[None]), (left[:, None] <= j) & (j <= right[:, None])


def global_tokens():
    n = 500
    internal = np.zeros((1, n), bool)
    internal[0, [100, 101, 350]] = True
    x = np.concatenate([np.ones(4, bool), internal[0]])
    weights = {f"{at}.{what}": uniform(16, 16) if what == "weight" else uniform(16)
               for at in ("query", "key", "value", "output") for what in ("weight", "bias")} | {"nodes": uniform(4, 16)}
    live = x[:, None] | x[None]
    yield {}, dict(x=uniform(1, n, 16), internal=internal, weights=weights), np.stack([live, live])


def luong():
    n, d = 320, 8
    weights = {"position.weight": uniform(4, d), "position.v": uniform(4), "attention.weight": uniform(d, d)}
    h = np.repeat(uniform(1, n // TILE, d), TILE, 1)  # neighbours look at one place
    u = np.tanh(h[0].astype(np.float64) @ weights["position.weight"].T)
    p = n / (1 + np.exp(-u @ weights["position.v"]))
    j = np.arange(n)[None]
    yield {}, dict(h=h, source=uniform(1, n, d), S=np.array([n], np.int32), weights=weights), abs(j - p[:, None]) <= 10


def generic():
    n = 512
    i, j = places(n)
    edges = np.zeros((1, n, n), bool)
    for at in range(0, n, 64):  # tiles of edges
        edges[0, at:at + 8, (at * 5) % n:(at * 5) % n + 8] = True
    live = ((abs(i - j) <= 2) | edges[0]) & (j < 480)
    yield {}, qkv(n) | dict(edges=edges, length=np.array([480], np.int32)), live


def strided():
    i, j = places(512)
    yield {}, qkv(512), (i - j) % 4 == 0


def dilated():
    i, j = places(1536)
    yield dict(window=32), qkv(1536), (abs(i - j) <= 96) & ((i - j) % 3 == 0)


def transformer_strided():
    i, j = places(1024)
    yield dict(stride=16), qkv(1024, 2), np.stack([(j <= i) & (i - 16 <= j), (j <= i) & ((i - j) % 16 == 0)])


def transformer_fixed():
    i, j = places(1024)
    yield {}, qkv(1024, 2), np.stack([(j <= i) & (j // 16 == i // 16), (j <= i) & (j % 16 >= 13)])


def mixed():
    n = 1024
    i, j = places(n)
    special = np.arange(n) < 2
    own = np.stack([abs(i - j) <= 32, (i - j) % 8 == 0])
    yield {}, qkv(n, 2) | dict(special=special[None], window=np.array([32, 0], np.int32)), own | special[:, None] | special[None]


def longformer():
    n = 1024
    i, j = places(n)
    dilation, globals_ = np.array([1, 2], np.int32), np.arange(n) < 2
    near = np.stack([(abs(i - j) <= 4 * d) & ((i - j) % d == 0) for d in dilation]) | globals_[None]
    x = qkv(n, 2)
    more = {name + "g": y for name, y in qkv(n, 2).items()}
    everywhere = np.stack([np.broadcast_to(globals_[:, None], (n, n))] * 2)
    yield {}, x | more | dict(**{"global": globals_[None]}, dilation=dilation), np.concatenate([near, everywhere])


def bigbird():
    n, block = 1024, 16
    i, j = (x // block for x in places(n))
    table = rng.integers(0, n // block, (n // block, 2)).astype(np.int32)
    chosen = (table[np.arange(n) // block][:, None, :] == (np.arange(n) // block)[None, :, None]).any(-1)
    yield dict(block=block), qkv(n) | dict(random=table), (abs(i - j) <= 1) | (i < 1) | (j < 1) | chosen


def axial():
    H, W, D = 32, 48, 16
    weights = {}
    for at in "row", "column":
        weights |= {f"layer.0.{at}.norm.weight": uniform(D), f"layer.0.{at}.norm.bias": uniform(D)}
        for name in "query", "key", "value", "output":
            weights |= {f"layer.0.{at}.{name}.weight": uniform(D, D), f"layer.0.{at}.{name}.bias": uniform(D)}
    rows, columns = np.ones((2 * H, W, W), bool), np.ones((2 * W, H, H), bool)
    yield {}, dict(x=uniform(1, H, W, D), weights=weights), (rows, columns)


def image_2d():
    H, W, hq, wq, hm, wm = 30, 40, 4, 6, 3, 4
    y, x = (one.ravel() for one in np.mgrid[:H, :W])
    r, c, y, x = y[None], x[None], y[:, None], x[:, None]
    top, left = y // hq * hq, x // wq * wq

    def turn(y, x):
        return (y // hq * -(-W // wq) + x // wq) * hq * wq + y % hq * wq + x % wq
    live = (top - hm <= r) & (r < top + hq) & (left - wm <= c) & (c < left + wq + wm) & (turn(r, c) <= turn(y, x))
    q, k, v = (uniform(1, 1, H, W, 8) for _ in range(3))
    yield {}, dict(q=q, k=k, v=v), live


def etc():
    G, N, E, L, radius = 16, 512, 8, 5, 16
    g_mask = np.ones((1, G, G + N), bool)
    l2g_mask, l2l_mask = rng.random((1, N, G)) < 0.9, rng.random((1, N, 2 * radius + 1)) < 0.9
    def label(*shape):
        return rng.integers(0, L, shape).astype(np.int32)
    inputs = dict(qg=uniform(1, 1, G, E), kg=uniform(1, 1, G, E), vg=uniform(1, 1, G, E), a=uniform(L, E),
                  g_label=label(1, G, G + N), g_mask=g_mask, l2g_label=label(1, N, G), l2g_mask=l2g_mask, l2l_mask=l2l_mask,
                  **{name + "l": uniform(1, 1, N, E) for name in "qkv"})
    i, j = places(N)
    long = np.zeros((N, G + N), bool)
    long[:, :G] = l2g_mask[0]
    long[:, G:] = (abs(j - i) <= radius) & l2l_mask[0][i, np.clip(j - i + radius, 0, 2 * radius)]
    yield dict(radius=radius), inputs, (g_mask[0], long)


# model: its cases, what is rounded, and what is allowed.
SYSTEMS = {
    "band-attention": (band, tiles, 1.3),
    "block-local-attention": (block_local, tiles, 1.3),
    "image-transformer-1d": (image_1d, tiles, 1.3),
    "blockbert": (blockbert, tiles, 1.3),
    "span-bounds-attention": (spans, tiles, 1.3),
    "global-attention": (global_tokens, tiles, 1.3),
    "luong-local": (luong, tiles, 1.3),
    "axial-transformer": (axial, tiles, 1.3),
    "sparse-generic": (generic, tiles, 1.3),
    "strided-attention": (strided, np.sum, 1.5),
    "dilated-attention": (dilated, np.sum, 1.5),
    "sparse-transformer-strided": (transformer_strided, np.sum, 1.5),
    "sparse-transformer-fixed": (transformer_fixed, np.sum, 1.5),
    "mixed-attention": (mixed, np.sum, 1.5),
    "longformer": (longformer, tiles, 1.3),
    "image-transformer-2d": (image_2d, tiles, 1.3),
    "etc-global-local": (etc, tiles, 1.3),
    "bigbird": (bigbird, np.sum, 1.3),
}


compiled = set()  # by this run


def counted(name, settings, inputs):
    """Pairs that the program computes."""
    program = folder / (name + "".join(f"-{key}{value}" for key, value in settings.items()))
    if program not in compiled:
        compiled.add(program)
        done = run(heedc, "--count-pairs", models / f"{name}.heed", "-o", program, *(f"--set={key}={value}" for key, value in settings.items()))
        expect(done.returncode == 0, f"{name}: {done.stderr}")
    command = [program, "--profile"]
    for key, value in inputs.items():
        if key == "weights":
            from safetensors.numpy import save_file
            save_file(value, folder / "w.safetensors")
            command += ["--weights", folder / "w.safetensors"]
        elif isinstance(value, np.ndarray):
            np.save(folder / f"{key}.npy", value)
            command += ["--" + key, folder / f"{key}.npy"]
        else:
            command += ["--" + key, value]
    done = run(*command)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    return sum(int(found) for found in re.findall(r"^\w+ +\d+ +[\d.]+ +[\d.]+% .* (\d+)$", done.stdout, re.M))


for name, (cases, measure, most) in SYSTEMS.items():
    if len(sys.argv) > 3 and name not in sys.argv[3:]:
        continue
    for settings, inputs, live in cases():
        wanted = sum(measure(one) for one in (live if isinstance(live, tuple) else (live,)))
        # Where the number of queries is known, fewer kernels are compiled.
        known = {"N": inputs["q"].shape[2]} if "q" in inputs and inputs["q"].ndim == 4 else {}
        found = counted(name, settings | known, inputs)
        print(f"{name} {settings or ''}: {found} pairs computed of {wanted}: {found / wanted:.2f}")
        expect(wanted <= found * 1.001 if measure is np.sum else found > 0, f"{name}: counts {found} pairs, fewer than the {wanted} that are live")
        expect(found <= most * wanted, f"{name}, {settings}: {found / wanted:.3f} times what is live, expected {most}")
finish()
