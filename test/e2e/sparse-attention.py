# RUN: %python %s %heed_bin %t
"""Attention whose weights have a threshold, sparsemax and entmax 1.5, against float64 NumPy, which sorts: masks, rows without a key,
-inf, NaN and large scores, ties, one key and many, weights as a result, one query, several key dims. Both backends."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import thresholds
from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(5)
ROW = "its normaliser finds a threshold in the whole row"


def weights(name, s, where):
    """Of rows of scores, and which keys are present."""
    s = np.where(where, s, -np.inf)
    live = s != -np.inf
    p = np.zeros(s.shape)
    for row in np.ndindex(s.shape[:-1]):
        if not live[row].any():
            continue
        if np.isnan(s[row][live[row]]).any() or s[row].max() == np.inf:
            p[row][live[row]] = np.nan
            continue
        p[row][live[row]] = thresholds.weights(name, s[row][live[row]])
    return p, live


def attend(name, q, k, v, where, scale=1.0):
    with np.errstate(all="ignore"):
        s = np.einsum("hie,hje->hij", q.astype(np.float64), k.astype(np.float64)) * scale
        p, live = weights(name, s, np.broadcast_to(where, s.shape))
        o = np.where(live[..., None], p[..., None] * v[:, None].astype(np.float64), 0).sum(2)
    return o, p


HEAD = "model m(q: f32[H, N, E], k: f32[H, M, E], v: f32[H, M, F]"
SCORE = "  s[h,i,j] = sum(e) q[h,i,e] * k[h,j,e]\n"
PRODUCT = "return o[h,i,f] = sum(j) p[h,i,j] * v[h,j,f]\n}\n"
FORMS = {
    "full": HEAD + ") {\n" + SCORE + "  p = NAME(s)\n  " + PRODUCT,
    "causal": HEAD + ") {\n" + SCORE + "  p[h,i,j] = NAME(j where j <= i + (M - N)) s[h,i,j]\n  " + PRODUCT,
    "masked": HEAD + ", keep: bool[N, M]) {\n" + SCORE + "  p[h,i,j] = NAME(j) (if keep[i,j] then s[h,i,j] else -inf)\n  " + PRODUCT,
    "weights": HEAD + ") {\n" + SCORE + "  p[h,i,j] = NAME(j where j != i) s[h,i,j]\n  return p = p, o[h,i,f] = sum(j) p[h,i,j] * v[h,j,f]\n}\n",
    "factor": HEAD + ", g: f32[M]) {\n" + SCORE + "  p = NAME(s)\n  return o[h,i,f] = sum(j) p[h,i,j] * g[j] * v[h,j,f]\n}\n",
    "decode": "model m(q: f32[H, E], k: f32[H, M, E], v: f32[H, M, F]) {\n  s[h,j] = sum(e) q[h,e] * k[h,j,e]\n"
              "  p = NAME(s)\n  return o[h,f] = sum(j) p[h,j] * v[h,j,f]\n}\n",
    "grid": "model m(q: f32[H, N, E], k: f32[H, A, B, E], v: f32[H, A, B, F]) {\n  s[h,i,x,y] = sum(e) q[h,i,e] * k[h,x,y,e]\n"
            "  p[h,i,x,y] = NAME(x, y) s[h,i,x,y]\n  return o[h,i,f] = sum(x, y) p[h,i,x,y] * v[h,x,y,f]\n}\n",
}
# H, N, M, E, F
SIZES = [(2, 5, 7, 8, 3), (1, 1, 1, 4, 5), (3, 33, 40, 16, 16), (1, 3, 2500, 8, 4), (2, 1, 301, 64, 64), (1, 4, 0, 2, 2)]


def cases(H, N, M, E, F):
    """Queries, keys, values, and a mask that has rows of nothing."""
    q, k, v = (rng.normal(size=shape).astype(np.float32) for shape in ((H, N, E), (H, M, E), (H, M, F)))
    keep = rng.random((N, M)) < 0.4
    keep[N // 2] = False
    yield "plain", q, k, v, keep
    yield "ties", np.zeros_like(q), k, v, keep
    exact = rng.integers(-3, 4, q.shape).astype(np.float32), rng.integers(-3, 4, k.shape).astype(np.float32)
    yield "large", exact[0] * 100, exact[1] * 100, v, keep
    if M > 1:
        bad, worse, value = q.copy(), k.copy(), v.copy()
        bad[0, 0] = np.nan  # one row
        yield "NaN query", bad, k, v, keep
        worse[0, M // 2] = np.nan  # a key of the rows that see it
        value[0, M // 2] = np.nan
        yield "NaN key", q, worse, value, keep


for name in thresholds.NORMALISERS:
    for form, text in FORMS.items():
        if name == "entmax15" and form in ("masked", "factor", "decode"):
            continue  # the same mechanism
        source = folder / f"{name}-{form}.heed"
        source.write_text(text.replace("NAME", name))
        for backend in "halide", "reference":
            program = source.with_suffix("." + backend)
            done = run(heedc, source, "--backend=" + backend, "-o", program, *(["--explain"] if backend == "halide" else []))
            expect(done.returncode == 0, f"{name}, {form}, {backend}: {done.stderr}")
            if backend == "halide" and form not in ("weights", "decode"):
                expect("attention, row-block: all scores of a tile of queries at once: " + ROW in done.stderr, f"{name}, {form}: {done.stderr}")
            if backend == "halide" and form == "decode":
                expect("the scores are stored: " + ROW in done.stderr, f"{name}, {form}: {done.stderr}")
            for H, N, M, E, F in SIZES:
                if form == "decode" and N != 1 or form == "grid" and M % 2:
                    continue
                for what, q, k, v, keep in cases(H, N, M, E, F):
                    where, inputs, factor = np.ones((N, M), bool), dict(q=q, k=k, v=v), 1
                    if form == "causal":
                        where = np.arange(M) <= np.arange(N)[:, None] + M - N
                    elif form == "masked":
                        where = inputs["keep"] = keep
                    elif form == "weights":
                        where = np.arange(M) != np.arange(N)[:, None]
                    elif form == "factor":
                        factor = inputs["g"] = rng.normal(size=M).astype(np.float32)
                    elif form == "decode":
                        inputs["q"] = q[:, 0]
                    elif form == "grid":
                        inputs["k"], inputs["v"] = k.reshape(H, 2, M // 2, E), v.reshape(H, 2, M // 2, F)
                    command = [program]
                    for key, value in inputs.items():
                        np.save(folder / f"{key}.npy", value)
                        command += ["--" + key, folder / f"{key}.npy"]
                    for output in "op" if form == "weights" else "o":
                        command += ["--output", f"{output}={folder / output}.npy"]
                    at = f"{name}, {form}, {backend}, {what}, {(H, N, M, E, F)}"
                    done = run(*command)
                    expect(done.returncode == 0, f"{at}: {done.stderr}")
                    if done.returncode:
                        continue
                    o, p = attend(name, q, k, (v.swapaxes(1, 2) * factor).swapaxes(1, 2), where)
                    exact = {"o": o[:, 0] if form == "decode" else o, "p": p}
                    for output in "op" if form == "weights" else "o":
                        got, want = np.load(folder / f"{output}.npy"), exact[output]
                        bound = 1e-5 * max(1, np.abs(want[np.isfinite(want)]).max(initial=0))
                        wrong = (np.isnan(got) != np.isnan(want)) | (np.abs(got - want) > bound)
                        expect(not wrong.any(), f"{at}, {output}: {np.argwhere(wrong)[:3].tolist()}: {got[wrong][:3]}, expected {want[wrong][:3]}")
finish()
