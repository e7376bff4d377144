# RUN: %python %s %heed_bin %t
"""A key whose score is -inf because its products are is absent, whatever its value holds, in each form of a streaming attention.
Nothing is added to these scores, so kernels do not look for such keys: a row whose accumulators are NaN is computed again. Against
float64 NumPy, with keys of infinities and values of infinities and NaN; a live NaN is seen in its row, and 0 / 0 in one without a key."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)

SCORE = "sum(e) q[h,i,e] * k[h*G/H,j,e]"
MODELS = {
    "plain": "p[h,i,j] = softmax(j) s[h,i,j]",
    "causal": "p[h,i,j] = softmax(j where j <= i + (M - N)) s[h,i,j]",
    "window": "p[h,i,j] = softmax(j where j <= i and j > i - 70) s[h,i,j]",
    "sink": "p[h,i,j] = softmax(j; sink = c[h]) s[h,i,j]",
    "no-sum": "p[h,i,j] = exp(s[h,i,j])",
    "squares": "p[h,i,j] = softmax(j) s[h,i,j]\n  r[h,i,j] = p[h,i,j]^2",
}
SIZES = [(1, 1), (2, 33), (16, 65), (70, 150)]


def source(name):
    result = "sum(j) p[h,i,j] * v[h*G/H,j,f]"
    if name == "squares":
        result = "(sum(j) r[h,i,j] * v[h*G/H,j,f]) / (sum(j) r[h,i,j])"
    return f"""model m(q: f32[H, N, 8], k: f32[G, M, 8], v: f32[G, M, F], c: f32[H]) {{
  s[h,i,j] = {SCORE} / 3.0
  {MODELS[name]}
  return o[h,i,f] = {result}
}}
"""


def want(name, q, k, v, c):
    with np.errstate(all="ignore"):
        q, k, v, c = (x.astype(np.float64) for x in (q, k, v, c))
        (H, N, _), (G, M, F) = q.shape, v.shape
        out = np.zeros((H, N, F))
        i, j = np.arange(N)[:, None], np.arange(M)[None, :]
        seen = {"causal": j <= i + M - N, "window": (j <= i) & (j > i - 70)}.get(name, np.ones((N, M), bool))
        for h in range(H):
            g = h * G // H
            s = (q[h][:, None, :] * k[g][None, :, :]).sum(-1) / 3
            live = seen & ~(s == -np.inf)
            for n in range(N):
                keys = np.flatnonzero(live[n])
                if not len(keys):
                    out[h, n] = np.nan if name == "squares" else 0
                    continue
                if name == "no-sum":
                    w = np.exp(s[n, keys])
                else:
                    top = max(s[n, keys].max(), c[h] if name == "sink" else -np.inf)
                    w = np.exp(s[n, keys] - top)
                    w /= w.sum() + (np.exp(c[h] - top) if name == "sink" else 0)
                if name == "squares":
                    w = w**2 / (w**2).sum()
                out[h, n] = (w[:, None] * v[g][keys]).sum(0)
        return out


def same(got, expected):
    finite = np.isfinite(expected)
    scale = np.abs(expected[finite]).max(initial=1e-30)
    return (np.isnan(got) == np.isnan(expected)).all() and \
        (got[np.isinf(expected)] == expected[np.isinf(expected)]).all() and \
        (np.abs(got - expected)[finite] <= 1e-5 * scale).all()


rng = np.random.default_rng(13)
for name in MODELS:
    path = folder / f"{name}.heed"
    path.write_text(source(name))
    done = run(heedc, path, "-o", folder / name)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    for (N, M), H, G in ((size, *heads) for size in SIZES for heads in ((2, 2), (4, 1))):
        for spoilt in ("few", "many", "live"):
            q = rng.uniform(0.1, 1, (H, N, 8))
            k, v = rng.uniform(-1, 1, (G, M, 8)), rng.uniform(-1, 1, (G, M, 5))
            absent = rng.random((G, M)) < (0.6 if spoilt == "many" else 0.1)
            absent[:, 0] |= M > 1  # one at least
            k[absent] = np.where(rng.random((absent.sum(), 8)) < 0.4, -np.inf, k[absent])
            k[absent, 0] = -np.inf
            v[absent] = rng.choice([np.nan, np.inf, -np.inf, 1.0], (absent.sum(), 5))
            if spoilt == "many":  # which queries see a key differs: -inf for some of them, inf (a row of NaN) for none
                q[:, rng.random(N) < 0.3] = 0.0  # 0 * -inf: a live NaN
            if spoilt == "live" and M > 1:
                v[:, M // 2] = np.nan
            arrays = {key: x.astype(np.float32) for key, x in dict(q=q, k=k, v=v, c=rng.uniform(-1, 1, H)).items()}
            flags = []
            for key, array in arrays.items():
                np.save(folder / f"{key}.npy", array)
                flags += ["--" + key, folder / f"{key}.npy"]
            done = run(folder / name, *flags, "--output", folder / "o.npy")
            expect(done.returncode == 0, f"{name} {(N, M, H, G)}: {done.stderr}")
            got, expected = np.load(folder / "o.npy"), want(name, **arrays)
            wrong = [(h, i) for h in range(H) for i in range(N) if not same(got[h, i], expected[h, i])]
            expect(not wrong, f"{name}, {spoilt}, {(N, M, H, G)}: rows {wrong[:6]}: "
                              f"{[(got[at], expected[at]) for at in wrong[:2]]}")
finish()
