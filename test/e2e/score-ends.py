# RUN: %python %s %heed_bin %t
"""Scores at the ends of f32 against float64 NumPy, in each form of attention: of few queries, of tiles, as a row block and with stored weights.
A finite score is a score, however large: a row that holds nothing but the least float gives the mean of its values. A key of
score -inf is absent, whatever its value holds, and a row of nothing else is a masked one; a live NaN is seen in its row."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
LEAST, INF = np.finfo(np.float32).min, np.inf

# Where the scores come from: t is what a case draws.
MODELS = {
    "streaming": """
  s[i,j] = (sum(e) q[i,e] * k[j,e]) / sqrt(E) + t[i,j]
  p[i,j] = softmax(j) s[i,j]
  return o[i,f] = sum(j) p[i,j] * v[j,f]""",
    "streaming, a mask": """
  s[i,j] = (sum(e) q[i,e] * k[j,e]) / sqrt(E) + t[i,j]
  p[i,j] = softmax(j where j <= i + 40) s[i,j]
  return o[i,f] = sum(j) p[i,j] * v[j,f]""",
    "streaming, a sink": """
  s[i,j] = (sum(e) q[i,e] * k[j,e]) / sqrt(E) + t[i,j]
  p[i,j] = softmax(j; sink = c[i]) s[i,j]
  return o[i,f] = sum(j) p[i,j] * v[j,f]""",
    "row block": """
  s[i,j] = (sum(e) q[i,e] * k[j,e]) / sqrt(E) + t[i,j]
  p[i,j] = softmax(j) s[i,j]
  r[i] = sum(j) p[i,j]^2
  return o[i,f] = (sum(j) p[i,j] * v[j,f]) * (if r[i] >= 0 then 1 else r[i])""",
    "weights": """
  s[i,j] = (sum(e) q[i,e] * k[j,e]) / sqrt(E) + t[i,j]
  p[i,j] = softmax(j) s[i,j]
  return p, o[i,f] = sum(j) p[i,j] * v[j,f]""",
    "written out, no maximum": """
  s[i,j] = (sum(e) q[i,e] * k[j,e]) / sqrt(E) + t[i,j]
  w[i,j] = exp(s[i,j])
  return o[i,f] = (sum(j) w[i,j] * v[j,f]) / (sum(j) w[i,j])""",
    "keys are values": """
  p[i,j] = softmax(j) (sum(e) q[i,e] * k[j,e])
  return o[i,f] = sum(j) p[i,j] * k[j,f]""",
    "keys are values, a mask": """
  p[i,j] = softmax(j where j <= i + 40) (sum(e) q[i,e] * k[j,e])
  return o[i,f] = sum(j) p[i,j] * k[j,f]""",
    "written out": """
  s[i,j] = (sum(e) q[i,e] * k[j,e]) / sqrt(E) + t[i,j]
  m[i] = max(j) s[i,j]
  w[i,j] = exp(s[i,j] - m[i])
  return o[i,f] = (sum(j) w[i,j] * v[j,f]) / (sum(j) w[i,j])""",
}
HEAD = "model ends(q: f32[N, E], k: f32[M, E], v: f32[M, F], t: f32[N, M], c: f32[N]) {"


def compiled(name):
    source, program = folder / (name.replace(", ", "-").replace(" ", "-") + ".heed"), folder / name.replace(", ", "-").replace(" ", "-")
    source.write_text(HEAD + MODELS[name] + "\n}\n")
    programs = {}
    for backend in ("halide", "reference"):
        done = run(heedc, source, "--backend=" + backend, "-o", f"{program}-{backend}")
        expect(done.returncode == 0, f"{name}, {backend}: {done.stderr}")
        programs[backend] = f"{program}-{backend}"
    return programs


def result(program, arrays):
    flags = []
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        flags += ["--" + name, folder / f"{name}.npy"]
    outs = [folder / "p.npy", folder / "o.npy"] if "weights" in str(program) else [folder / "o.npy"]
    done = run(program, *flags, *[x for out in outs for x in ("--output", f"{out.stem}={out}" if len(outs) > 1 else out)])
    expect(done.returncode == 0, f"{program}: {done.stderr}")
    return np.load(outs[-1])


def want(name, q, k, v, t, c):
    """softmax as the language has it: a key of score -inf is absent, whatever its value holds."""
    with np.errstate(all="ignore"):
        q, k, v = (x.astype(np.float64) for x in (q, k, v))
        s = np.einsum("ie,je->ij", q, k)
        if "values" in name:
            v = k
        else:
            s = s / np.sqrt(q.shape[1]) + t
        s = s.astype(np.float32).astype(np.float64)
        N, M = s.shape
        live = s > -INF
        live |= np.isnan(s)
        if "mask" in name:
            live &= np.arange(M)[None, :] <= np.arange(N)[:, None] + 40
        out = np.zeros((N, v.shape[1]))
        for i in range(N):
            keys = np.flatnonzero(live[i])
            if len(keys) == 0:
                out[i] = np.nan if "written out" in name and M else 0
                continue
            top = s[i, keys].max()
            if "sink" in name:
                top = max(top, c[i])
            w = np.exp(s[i, keys] - top)
            l = w.sum() + (np.exp(c[i] - top) if "sink" in name else 0)
            out[i] = (w[:, None] * v[keys] / l).sum(0)
        return out


def same(got, expected):
    both = np.isnan(got) == np.isnan(expected)
    infinite = np.isinf(expected)
    finite = np.isfinite(expected)
    scale = np.abs(expected[finite]).max(initial=1e-30)
    return both.all() and (got[infinite] == expected[infinite]).all() and (np.abs(got - expected)[finite] <= 1e-5 * scale).all()


# The scores of a row: a few of them, by turns.
FINITE = [
    lambda M, rng: np.full(M, LEAST),
    lambda M, rng: rng.choice([LEAST, -3.0e38, -2.5e38], M),
    lambda M, rng: rng.choice([LEAST, -2.2e38], M),
    lambda M, rng: rng.choice([-LEAST, 3.0e38, LEAST, 0], M),
    lambda M, rng: rng.uniform(-3, 3, M),
    lambda M, rng: np.where(np.arange(M) == M - 1, 0, LEAST),
]


def check(name, programs, rows, sizes, rng, spoil=None, what=""):
    for N, M in sizes:
        E, F = 8, 5
        arrays = dict(q=np.zeros((N, E)), k=np.zeros((M, E)), v=rng.uniform(-1, 1, (M, F)),
                      t=np.stack([rows[i % len(rows)](M, rng) for i in range(N)]) if N else np.zeros((0, M)),
                      c=rng.choice([LEAST, 3.0e38, 0, -3.0e38], N))
        if spoil:
            spoil(arrays, rng)
        arrays = {key: array.astype(np.float32) for key, array in arrays.items()}
        expected = want(name, **arrays)
        for backend, program in programs.items():
            if "written out" in name and what and backend == "reference":
                continue  # 0 times NaN, and 0 / 0, as written: that such keys are absent is the compiler's licence
            got = result(program, arrays)
            wrong = [i for i in range(N) if not same(got[i], expected[i])]
            expect(not wrong, f"{name}, {backend}, {what}{(N, M)}: rows {wrong[:8]}: "
                              f"{[(got[i][:3], expected[i][:3]) for i in wrong[:2]]}")


INFINITE = FINITE + [
    lambda M, rng: np.full(M, -INF),
    lambda M, rng: np.where(rng.random(M) < 0.5, -INF, rng.uniform(-3, 3, M)),
    lambda M, rng: np.where(rng.random(M) < 0.5, -INF, LEAST),
    lambda M, rng: np.where(np.arange(M) == M // 2, np.nan, -1),
    lambda M, rng: np.where(np.arange(M) == 0, INF, 0),
]


def spoil(arrays, rng):
    """Values of keys that nobody sees, and of one that some do."""
    M = len(arrays["v"])
    for key in range(0, M, 3):
        arrays["t"][:, key] = -INF
        arrays["v"][key] = rng.choice([np.nan, INF, -INF, 1], arrays["v"].shape[1])
    arrays["v"][M // 2, 0] = np.nan


def spoil_keys(arrays, rng):
    """Keys of -inf: with queries above 0 their scores are -inf, with queries below 0 inf, which makes the row NaN."""
    arrays["q"] = rng.uniform(0.1, 1, arrays["q"].shape)
    arrays["q"][-1] *= -1
    arrays["k"] = rng.uniform(-1, 1, arrays["k"].shape)
    arrays["k"][::3] = -INF
    arrays["k"][1:, :][::7, 1] = -INF


SIZES = [(1, 1), (1, 200), (2, 65), (7, 70), (33, 64), (40, 131), (100, 200)]
rng = np.random.default_rng(13)
for name in MODELS:
    programs = compiled(name)
    if "values" in name:
        check(name, programs, FINITE, SIZES, rng, spoil_keys, "keys of -inf, ")
        continue
    finite = "no maximum" not in name  # exp without a maximum overflows as written
    rows = FINITE if finite else FINITE[4:]
    check(name, programs, rows, SIZES, rng)
    if "written out" == name:
        continue  # subtracts a maximum of -inf as written: NaN
    check(name, programs, rows + INFINITE[len(FINITE):], SIZES, rng, None, "scores of -inf, ")
    check(name, programs, rows + INFINITE[len(FINITE):], SIZES, rng, spoil, "values of NaN, ")


# Rows without a key, of other normalisers: a quotient of sums is 0 / 0 there, a sum of quotients a sum of nothing.
def empty_rows(name, weight, divide):
    total = f"(sum(j where j < i) {weight.format('s[i,j]')})"
    quotient = {"after": f"(sum(j where j < i) {weight.format('s[i,j]')} * v[j,f]) / {total}",
              "before": f"sum(j where j < i) {weight.format('s[i,j]')} / l[i] * v[j,f]"}[divide]
    MODELS[name] = f"""
  s[i,j] = (sum(e) q[i,e] * k[j,e]) / sqrt(E)
  l[i] = {total}
  return o[i,f] = {quotient}"""
    programs = compiled(name)
    for N, M in [(1, 1), (5, 3), (40, 70), (100, 60), (3, 0)]:
        arrays = dict(q=rng.uniform(0.1, 1, (N, 8)), k=rng.uniform(0.1, 1, (M, 8)), v=rng.uniform(-1, 1, (M, 5)), t=np.zeros((N, M)), c=np.zeros(N))
        arrays = {key: array.astype(np.float32) for key, array in arrays.items()}
        s = (arrays["q"].astype(np.float64) @ arrays["k"].T.astype(np.float64)) / np.sqrt(8)
        w = np.where(np.arange(M)[None, :] < np.arange(N)[:, None], {"relu": np.maximum(s, 0), "sigm": 1 / (1 + np.exp(-s)), "s[i,": s}[weight.format("s[i,j]")[:4]], 0)
        with np.errstate(invalid="ignore"):
            expected = (w @ arrays["v"]) / w.sum(1, keepdims=True)
        if divide == "before":
            expected = np.nan_to_num(expected)
        for backend, program in programs.items():
            got = result(program, arrays)
            wrong = [i for i in range(N) if not same(got[i], expected[i])]
            expect(not wrong, f"{name}, {backend}, {(N, M)}: rows {wrong[:8]}: {[(got[i][:3], expected[i][:3]) for i in wrong[:2]]}")


for weight in "relu({})", "sigmoid({})", "{}":
    for divide in "after", "before":
        empty_rows(f"{weight.strip('(){}') or 'identity'}, divided {divide}", weight, divide)


# A score of -0, from a product or from a sum of nothing, is a score: its key has weight 0 and is not absent, which a NaN in its value shows.
for weight in "relu(s[i,j])", "s[i,j]":
    name = f"scores of -0, {weight[:4].strip('([')}"
    MODELS[name] = f"""
  s[i,j] = sum(e) q[i,e] * k[j,e]
  return o[i,f] = sum(j where j < i) {weight} * v[j,f]"""
    programs = compiled(name)
    for N, M, E in [(5, 2, 1), (5, 2, 0), (70, 70, 1), (70, 70, 0), (2, 3, 1)]:
        arrays = dict(q=np.full((N, E), -0.0), k=np.ones((M, E)), v=np.ones((M, 3)), t=np.zeros((N, M)), c=np.zeros(N))
        arrays["v"][0] = np.nan
        arrays = {key: array.astype(np.float32) for key, array in arrays.items()}
        for backend, program in programs.items():
            if E == 0 and weight == "s[i,j]":
                continue  # a sum of no products: what multiplies it may be left out
            got = result(program, arrays)
            expect(np.all(got[:1] == 0) and np.isnan(got[1:]).all(), f"{name}, {backend}, {(N, M, E)}: {got[:, 0]}, expected 0, then NaN")
finish()
