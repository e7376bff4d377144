# RUN: %python %s %heed_bin %t
"""Masks that depend on data, and unions, against float64 NumPy: sorted and unsorted documents, ids of -1, empty documents,
global tokens, spans, times with NaN, widths per head; and masks of pairs, which are evaluated for each tile before. Masked keys and values hold NaN: a key that is visited without need
is seen at once where it shows, and one that is skipped wrongly is missed. Sizes are on both sides of a tile and a block."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)

MODEL = """
model masked(q: f32[B, H, N, E], k, v: f32[B, H, M, E], {inputs}) {{
  s[b,h,i,j] = {score}
  p[b,h,i,j] = softmax(j where {where}) s[b,h,i,j]
  return o[b,h,i,e] = sum(j) p[b,h,i,j] * v[b,h,j,e]
}}
"""
DOT = "sum(e) q[b,h,i,e] * k[b,h,j,e] / sqrt(E)"


def documents(rng, B, n, kinds):
    ids = rng.choice(kinds, (B, n))
    return ids.astype(np.int32)


def case(name, inputs, where, draw, live, score=DOT, bias=None, square=False, evaluated=False):
    return dict(name=name, inputs=inputs, where=where, draw=draw, live=live, score=score, bias=bias, square=square, evaluated=evaluated)


def ids(sort, kinds=(-1, 0, 1, 2, 5, 9), n="N", m="M"):
    def draw(rng, B, H, N, M):
        a, b = documents(rng, B, N, kinds), documents(rng, B, M, kinds)
        return dict(dq=np.sort(a) if sort else a, dk=np.sort(b) if sort else b)
    return draw


def same(i, j, x):
    return x["dq"][:, None, :, None] == x["dk"][:, None, None, :]


def flags(rng, B, N, share):
    return rng.random((B, N)) < share


def longformer(rng, B, H, N, M):
    g = flags(rng, B, N, 0.01)
    g[:, :1] = True
    return dict(g=g, w=rng.integers(0, 9, H).astype(np.int32))


def times(rng, B, H, N, M):
    t = np.sort(rng.uniform(0, 10, (B, N)).astype(np.float32), -1)
    t[rng.random(t.shape) < 0.02] = np.nan
    return dict(t=t)


def pairs(rng, B, N, M):
    """Few of them, among these corners of tiles."""
    keep = rng.random((B, N, M)) < 0.002
    keep[:, 15::32, 15::64] = True
    keep[:, 16::64, 31::32] = True
    keep[:, -1:, -1:] = True
    return keep


CASES = [
    case("sorted documents", "dq: i32[B, N], dk: i32[B, M]", "dq[b,i] == dk[b,j]", ids(True), same),
    case("unsorted documents, causal", "dq: i32[B, N], dk: i32[B, M]", "dq[b,i] == dk[b,j] and j <= i + (M - N)", ids(False),
         lambda i, j, x: same(i, j, x) & (j <= i + x["M"] - x["N"])),
    case("documents, a negative id sees nothing", "dq: i32[B, N], dk: i32[B, M]", "dq[b,i] == dk[b,j] and dq[b,i] >= 0", ids(True, (-1, -1, 3, 4)),
         lambda i, j, x: same(i, j, x) & (x["dq"] >= 0)[:, None, :, None]),
    case("window per head, slope, documents, soft cap", "doc: i32[N], width: i32[H], slope: f32[H]",
         "abs(i - j) <= width[h] and doc[i] == doc[j]",
         lambda rng, B, H, N, M: dict(doc=np.sort(rng.integers(0, 7, N)).astype(np.int32), width=rng.choice([3, 70, 2**31 - 1, -1], H).astype(np.int32),
                                      slope=rng.uniform(0, 0.1, H).astype(np.float32)),
         lambda i, j, x: (abs(i - j) <= x["width"][:, None, None].astype(np.int64)) & (x["doc"][:, None] == x["doc"][None, :]),
         score="5.0 * tanh((" + DOT + ") / 5.0) - slope[h] * abs(i - j)",
         bias=lambda s, i, j, x: 5 * np.tanh(s / 5) - x["slope"].astype(np.float64)[:, None, None] * abs(i - j), square=True),
    case("global tokens, window", "g: bool[B, N], w: i32[H]", "abs(i - j) <= w[h] or g[b,i] or g[b,j]", longformer,
         lambda i, j, x: (abs(i - j) <= x["w"][:, None, None]) | x["g"][:, None, :, None] | x["g"][:, None, None, :], square=True),
    case("global tokens, dilated window", "g: bool[B, N], w: i32[H]", "(abs(i - j) <= 6 * w[h] and (i - j) % w[h] == 0) or g[b,j]", longformer,
         lambda i, j, x: ((abs(i - j) <= 6 * x["w"][:, None, None]) & ((i - j) % np.maximum(x["w"], 1)[:, None, None] == 0)) | x["g"][:, None, None, :],
         square=True),
    case("prefix and window", "c: i32[B]", "j < c[b] or (j <= i and i - j < 20)",
         lambda rng, B, H, N, M: dict(c=rng.choice([0, 3, 150, 2**31 - 1, -5], B).astype(np.int32)),
         lambda i, j, x: (j < x["c"][:, None, None, None]) | ((j <= i) & (i - j < 20))),
    case("spans", "lo: i32[B, N], hi: i32[B, N]", "lo[b,i] <= j and j < hi[b,i]",
         lambda rng, B, H, N, M: dict(lo=rng.integers(-3, M + 3, (B, N)).astype(np.int32), hi=rng.integers(-3, M + 3, (B, N)).astype(np.int32)),
         lambda i, j, x: (x["lo"][:, None, :, None] <= j) & (j < x["hi"][:, None, :, None])),
    case("earlier times", "t: f32[B, N]", "t[b,j] <= t[b,i] and t[b,i] - t[b,j] < 2.0", times,
         lambda i, j, x: (x["t"][:, None, None, :] <= x["t"][:, None, :, None]) & (x["t"][:, None, :, None] - x["t"][:, None, None, :] < np.float32(2)),
         square=True),
    case("few pairs", "keep: bool[B, N, M]", "keep[b,i,j]", lambda rng, B, H, N, M: dict(keep=pairs(rng, B, N, M)),
         lambda i, j, x: x["keep"][:, None], evaluated=True),
    case("pairs of a head or window, padding", "keep: bool[H, N, M], c: i32[B]", "(abs(i - j) <= 2 or keep[h,i,j]) and j < c[b]",
         lambda rng, B, H, N, M: dict(keep=pairs(rng, H, N, M), c=rng.choice([0, 3, 150, 2**31 - 1], B).astype(np.int32)),
         lambda i, j, x: ((abs(i - j) <= 2) | x["keep"]) & (j < x["c"][:, None, None, None]), evaluated=True),
    case("blocks of a table", "t: i32[N, 2], g: bool[B, M]", "t[i//5*5, 0] == j//5 or t[i//5*5, 1] == j//5 or g[b,j]",
         lambda rng, B, H, N, M: dict(t=rng.integers(-1, M // 5 + 2, (N, 2)).astype(np.int32), g=flags(rng, B, M, 0.01)),
         lambda i, j, x: (x["t"][i // 5 * 5] == (j // 5)[..., None]).any(-1) | x["g"][:, None, None, :]),
    case("residues or global tokens", "gq: bool[B, N], gk: bool[B, M]", "gq[b,i] or gk[b,j] or (i - j) % 5 == 0",
         lambda rng, B, H, N, M: dict(gq=flags(rng, B, N, 0.01), gk=flags(rng, B, M, 0.01)),
         lambda i, j, x: x["gq"][:, None, :, None] | x["gk"][:, None, None, :] | ((i - j) % 5 == 0)),
    case("residues of some keys", "keep: bool[B, M]", "i % 4 == j % 4 and keep[b,j]", lambda rng, B, H, N, M: dict(keep=flags(rng, B, M, 0.7)),
         lambda i, j, x: (i % 4 == j % 4) & x["keep"][:, None, None, :]),
    case("window or residues, by head", "c: i32[B]", "j < c[b] and (if h % 2 == 0 then abs(i - j) <= 9 or i % 8 == j % 8 else j % 8 == 7)",
         lambda rng, B, H, N, M: dict(c=rng.choice([30, 150, 2**31 - 1], B).astype(np.int32)),
         lambda i, j, x: (j < x["c"][:, None, None, None]) & np.where((np.arange(x["H"]) % 2 == 0)[:, None, None], (abs(i - j) <= 9) | (i % 8 == j % 8), j % 8 == 7)),
    case("products of positions", "c: i32[B]", "i * j % 97 == c[b]", lambda rng, B, H, N, M: dict(c=rng.integers(0, 97, B).astype(np.int32)),
         lambda i, j, x: i * j % 97 == x["c"][:, None, None, None], evaluated=True),
]


def check(number, case, rng):
    source, program = folder / f"m{number}.heed", folder / f"m{number}"
    source.write_text(MODEL.format(**case))
    done = run(heedc, source, "--explain=all", "-o", program)
    said = done.stdout + done.stderr
    expect(done.returncode == 0 and "raised to one attention" in said and "streaming attention schedule" in said
           and ("evaluated per element" in said) == ("the mask is evaluated before" in said) == case["evaluated"], f"{case['name']}: {said}")
    if done.returncode:
        return
    sizes = [(1, 2, 300, 300, 8), (2, 1, 49, 47, 5), (1, 1, 1, 1, 4), (2, 3, 0, 5, 4), (1, 2, 100, 500, 8), (1, 1, 500, 100, 8), (1, 1, 5, 0, 4)]
    for B, H, N, M, E in sizes:
        if case["square"]:
            M = N
        q, k, v = (rng.uniform(-1, 1, (B, H, n, E)).astype(np.float32) for n in (N, M, M))
        data = case["draw"](rng, B, H, N, M)
        i, j = np.arange(N)[:, None], np.arange(M)[None, :]
        live = np.broadcast_to(case["live"](i, j, dict(data, H=H, N=N, M=M)), (B, H, N, M))
        # Keys that nobody sees hold NaN.
        unseen = ~live.any(axis=2)
        k[unseen], v[unseen] = np.nan, np.nan
        s = np.einsum("bhie,bhje->bhij", q.astype(np.float64), np.nan_to_num(k).astype(np.float64)) / np.sqrt(E)
        if case["bias"]:
            s = case["bias"](s, i, j, data)
        s = np.where(live, s, -np.inf)
        top = s.max(axis=-1, keepdims=True, initial=-np.inf)
        p = np.where(live, np.exp(s - np.where(np.isfinite(top), top, 0)), 0)
        total = p.sum(axis=-1, keepdims=True)
        want = np.einsum("bhij,bhje->bhie", p / np.where(total == 0, 1, total), np.nan_to_num(v))
        flags = []
        for name, array in dict(q=q, k=k, v=v, **data).items():
            np.save(folder / f"{name}.npy", array)
            flags += ["--" + name, folder / f"{name}.npy"]
        done = run(program, *flags, "--output", folder / "o.npy")
        expect(done.returncode == 0, f"{case['name']} {(B, H, N, M, E)}: {done.stderr}")
        if done.returncode:
            continue
        got = np.load(folder / "o.npy")
        error = np.abs(got - want).max(initial=0) / max(np.abs(want).max(initial=0), 1e-30)
        expect(error <= 1e-5, f"{case['name']} {(B, H, N, M, E)}: error {error:.2e}")
        print(f"{case['name']} {(B, H, N, M, E)}: {live.mean() if live.size else 0:.2f} live, error {error:.1e}")


def empty_rows():
    """A row without a live key is 0, whatever its sink and the gates of its keys are; the same NaN shows in a row with keys."""
    source, program = folder / "sink.heed", folder / "sink"
    source.write_text("""
model m(q: f32[B, H, N, E], k, v: f32[B, H, M, E], length: i32[B], gate: f32[B, M], sink: f32[H]) {
  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b,h,j,e]
  p[b,h,i,j] = softmax(j where j < length[b]; sink = sink[h]) s[b,h,i,j]
  return o[b,h,i,e] = sum(j) p[b,h,i,j] * gate[b,j] * v[b,h,j,e]
}
""")
    done = run(heedc, source, "--explain=all", "-o", program)
    expect(done.returncode == 0 and "streaming attention schedule" in done.stdout + done.stderr, f"sink: {done.stderr}")
    B, H, N, M, E = 3, 3, 5, 60, 4
    data = {name: np.ones(shape, np.float32) for name, shape in dict(q=(B, H, N, E), k=(B, H, M, E), v=(B, H, M, E), gate=(B, M)).items()}
    data["length"], data["sink"] = np.array([0, M, 1], np.int32), np.array([np.nan, np.inf, 4], np.float32)
    data["gate"][0], data["gate"][2, 1:] = np.nan, np.nan
    flags = []
    for name, array in data.items():
        np.save(folder / f"{name}.npy", array)
        flags += ["--" + name, folder / f"{name}.npy"]
    done = run(program, *flags, "--output", folder / "o.npy")
    expect(done.returncode == 0, f"sink: {done.stderr}")
    got = np.load(folder / "o.npy")
    expect((got[0] == 0).all(), f"sink: an empty row holds {got[0].ravel()[:8]}")
    expect(np.isnan(got[1:, :2]).all(), "sink: a sink of NaN or inf does not show")
    expect(np.allclose(got[1, 2], M / (M + 1)) and np.allclose(got[2, 2], 0.5), f"sink: {got[1:, 2, 0, 0]}")


empty_rows()
rng = np.random.default_rng(5)
for number, each in enumerate(CASES):
    check(number, each, rng)
finish()
