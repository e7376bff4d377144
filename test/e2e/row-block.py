# RUN: %python %s %heed_bin %t
"""Row-wise functions of scores between two products, in one kernel without a buffer of scores, against float64 NumPy."""
import pathlib
import subprocess
import sys

import numpy as np

from runs import expect, finish

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(11)


def scores(q, k):
    with np.errstate(all="ignore"):  # each term is divided: a sum of none is 0
        return np.einsum("bhie,bhje->bhij", q / np.sqrt(q.shape[-1]), k)


def softmax(s, live=True):
    with np.errstate(all="ignore"):
        s = np.where(live, s, -np.inf)
        top = np.where(np.isnan(s), -np.inf, s).max(-1, keepdims=True, initial=-np.inf)
        w = np.exp(s - np.where(np.isneginf(top), 0, top))
        return np.where(live & (w.sum(-1, keepdims=True) != 0), w / w.sum(-1, keepdims=True), 0)


def causal(s):
    return np.arange(s.shape[3])[None] <= np.arange(s.shape[2])[:, None] + s.shape[3] - s.shape[2]


def product(p, v, live=True):
    """A key that is absent contributes nothing, whatever v holds there."""
    live = np.broadcast_to(live, p.shape)
    return np.einsum("bhij,bhijf->bhif", p, np.where(live[..., None], v[:, :, None], 0))


def renormalised(q, k, v):
    p = softmax(scores(q, k)) ** 2
    return {"o": product(p / p.sum(-1, keepdims=True), v)}


def normed(q, k, v):
    c = scores(q, k)
    with np.errstate(all="ignore"):
        c = c - c.mean(-1, keepdims=True)
        c = c / np.sqrt((c * c).mean(-1, keepdims=True) + 0.01)
    return {"o": product(softmax(c), v)}


def stored(q, k, v):
    s = scores(q, k)
    p = softmax(s, causal(s))
    return {"o": product(p, v, causal(s)), "p": p}


def talking(q, k, v, pl, pw):
    l = np.einsum("baij,ah->bhij", scores(q, k), pl)
    u = np.einsum("bhij,hc->bcij", softmax(l, causal(l)), pw)
    return {"o": product(u, v, causal(l))}


def chosen(q, k):
    """A row of which only some keys are asked for, in the first rows none: its tile begins where its queries do all the same."""
    s = scores(q, k)
    return {"o": np.where(np.arange(s.shape[3])[None] <= np.arange(s.shape[2])[:, None] - 2, 2 * softmax(s), 0)}


def mixed(q, k, v, g):
    """Two distributions with masks of their own, which do not stream together: a key is absent where both leave it out."""
    s = scores(q, k)
    i, j = np.arange(s.shape[2])[:, None], np.arange(s.shape[3])[None]
    p, r = softmax(s, j <= i), softmax(g, j <= i + 2)
    return {"o": product(0.25 * p - 1.5 * r, v, j <= i + 2)}


HEAD = "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F]) {\n  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b,h,j,e] / sqrt(E)\n"
MODELS = {
    renormalised: "model m" + HEAD + """  p[b,h,i,j] = softmax(j) s[b,h,i,j]
  t[b,h,i] = sum(j) p[b,h,i,j] * p[b,h,i,j]
  w[b,h,i,j] = p[b,h,i,j] * p[b,h,i,j] / t[b,h,i]
  return o[b,h,i,f] = sum(j) w[b,h,i,j] * v[b,h,j,f]
}""",
    normed: "model m" + HEAD + """  t[b,h,i] = (sum(j) s[b,h,i,j]) / M
  c[b,h,i,j] = s[b,h,i,j] - t[b,h,i]
  u[b,h,i] = (sum(j) c[b,h,i,j] * c[b,h,i,j]) / M
  p[b,h,i,j] = softmax(j) (c[b,h,i,j] / sqrt(u[b,h,i] + 0.01))
  return o[b,h,i,f] = sum(j) p[b,h,i,j] * v[b,h,j,f]
}""",
    stored: "model m" + HEAD + """  p[b,h,i,j] = softmax(j where j <= i + (M - N)) s[b,h,i,j]
  o[b,h,i,f] = sum(j) p[b,h,i,j] * v[b,h,j,f]
  return o, p
}""",
    talking: """model m(q: f32[B, A, N, E], k: f32[B, A, M, E], v: f32[B, C, M, F], pl: f32[A, H], pw: f32[H, C]) {
  s[b,a,i,j] = sum(e) q[b,a,i,e] * k[b,a,j,e] / sqrt(E)
  l[b,h,i,j] = sum(a) s[b,a,i,j] * pl[a,h]
  p[b,h,i,j] = softmax(j where j <= i + (M - N)) l[b,h,i,j]
  u[b,c,i,j] = sum(h) p[b,h,i,j] * pw[h,c]
  return o[b,c,i,f] = sum(j) u[b,c,i,j] * v[b,c,j,f]
}""",
    mixed: "model m" + HEAD.replace(") {", ", g: f32[N, M]) {") + """  p[b,h,i,j] = softmax(j where j <= i) s[b,h,i,j]
  r[i,j] = softmax(j where j <= i + 2) g[i,j]
  return o[b,h,i,f] = sum(j) (0.25 * p[b,h,i,j] - 1.5 * r[i,j]) * v[b,h,j,f]
}""",
    chosen: """model m(q: f32[B, H, N, E], k: f32[B, H, M, E]) {
  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b,h,j,e] / sqrt(E)
  p[b,h,i,j] = softmax(j) s[b,h,i,j]
  return o[b,h,i,j:M] = if j <= i - 2 then 2 * p[b,h,i,j] else 0.0
}""",
}
#         B  H  N   M   E   F
SIZES = [(1, 2, 7, 9, 8, 5), (1, 1, 1, 1, 1, 1), (2, 3, 33, 50, 16, 17), (1, 2, 50, 33, 5, 20), (1, 1, 16, 64, 64, 64), (1, 1, 3, 0, 4, 4),
         (1, 2, 0, 3, 4, 4), (1, 1, 3, 4, 0, 2)]
# Sizes that are known: tiles of two vectors of queries, and weights that are computed once for several tiles of values.
WIDE = {"B": 1, "H": 2, "N": 150, "M": 67, "E": 9, "F": 41}

# Keys beyond the first cache: their products with values are sums of blocks, and of the keys that are left.
LONG = WIDE | {"M": 533}
KNOWN = [(mixed, WIDE), (mixed, LONG), (mixed, WIDE | {"M": 544}), (talking, WIDE), (talking, LONG), (talking, LONG | {"H": 7}), (renormalised, LONG), (stored, LONG)]

for oracle, text, known in [(*model, {}) for model in MODELS.items()] + [
        (oracle, MODELS[oracle], sizes | ({"A": sizes["H"], "C": sizes["H"]} if oracle is talking else {})) for oracle, sizes in KNOWN]:
    name = "-".join([oracle.__name__, *(str(known[dim]) for dim in "HM" if known)])
    source, program = folder / f"{name}.heed", folder / name
    source.write_text(text)
    done = subprocess.run([heedc, source, *(f"--set={dim}={size}" for dim, size in known.items()), "--explain=all", "-o", program], capture_output=True, text=True)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    expect("has the row block schedule" in done.stdout + done.stderr, f"{name} is no row block: {done.stdout}{done.stderr}")

    def compare(what, arrays, tolerance=1e-5):
        arrays = {key: array for key, array in arrays.items() if key + ":" in text}
        inputs = []
        for key, array in arrays.items():
            np.save(folder / f"{key}.npy", array.astype(np.float32))
            inputs += ["--" + key, folder / f"{key}.npy"]
        wanted = oracle(**{key: array.astype(np.float64) for key, array in arrays.items()})
        outputs = [x for key in wanted for x in ("--output", f"{key}={folder / key}.out.npy")]
        run = subprocess.run([program, *inputs, *outputs], capture_output=True, text=True)
        expect(run.returncode == 0, f"{name} {what}: {run.stderr}")
        for key, want in wanted.items() if run.returncode == 0 else ():
            got = np.load(folder / f"{key}.out.npy")
            scale = max(np.abs(want[np.isfinite(want)]).max(initial=0), 1e-30)
            with np.errstate(invalid="ignore"):
                same = (np.isnan(got) & np.isnan(want)) | (np.abs(got - want) <= tolerance * scale)
            expect(got.shape == want.shape and same.all(), f"{name} {what}: {key}: {(~same).sum()} of {same.size} elements differ")

    def draw(*shape):
        return rng.uniform(-1, 1, shape).astype(np.float32)

    for b, h, n, m, e, f in [[known[dim] for dim in WIDE]] if known else SIZES:
        if e == 0 and oracle is normed:  # its mean is another kernel
            continue
        arrays = {"q": draw(b, h, n, e), "k": draw(b, h, m, e), "v": draw(b, h, m, f)}
        if oracle is talking:
            arrays |= {"pl": draw(h, h), "pw": draw(h, h)}
        if oracle is mixed:
            arrays |= {"g": draw(n, m)}
        compare((b, h, n, m, e, f), arrays)
    # NaN and infinities stay in the rows that see them; large scores.
    b, h, n, m, e, f = [known[dim] for dim in WIDE] if known else (1, 1, 20, 20, 8, 8)
    arrays = {"q": draw(b, h, n, e), "k": draw(b, h, m, e), "v": draw(b, h, m, f)}
    if oracle is talking:
        arrays |= {"pl": np.eye(h), "pw": np.eye(h)}
    if oracle is mixed:
        arrays |= {"g": draw(n, m)}
    compare("scores of 1e4", arrays | {"q": arrays["q"] * 1e4}, 1e-2)
    odd = {key: array.copy() for key, array in arrays.items()}
    odd["q"][0, 0, 3, 0] = np.nan
    if oracle is not talking:  # there v meets sums of weights, which are 0 and not absent
        odd["v"][0, 0, 15, 1] = np.nan
    compare("with NaN", odd)
finish()
