# RUN: %python %s %heed_bin %t
"""Queries and keys over several dims, in one streaming kernel each, against float64 NumPy and against the reference backend."""
import pathlib
import subprocess
import sys

import numpy as np

from runs import expect, finish

tools, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(29)


def grid(*sizes):
    """Index arrays of queries (y, x, ..) and keys (u, v, ..): sizes of both, those of queries first."""
    return np.meshgrid(*(np.arange(n) for n in sizes), indexing="ij", sparse=True)


def attend(s, live, v, rank):
    """s: scores [.., queries, keys] with `rank` key dims; v: [.., keys, f] with 1s for the query dims. A key that is absent contributes nothing."""
    keys = tuple(range(s.ndim - rank, s.ndim))
    s = np.where(live, s, -np.inf)
    top = s.max(keys, keepdims=True, initial=-np.inf)
    w = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = w.sum(keys, keepdims=True)
    p = np.where(total > 0, w / np.where(total > 0, total, 1), 0)
    return (p[..., None] * v).sum(tuple(k for k in keys))


def raster(q, k, v):
    """A pixel sees itself and those before it."""
    y, x, u, w = grid(*q.shape[1:3], *k.shape[1:3])
    s = np.einsum("byxe,buve->byxuv", q, k)
    return attend(s, u * q.shape[2] + w <= y * q.shape[2] + x, v[:, None, None], 2)


def box(q, k, v):
    y, x, u, w = grid(*q.shape[1:3], *k.shape[1:3])
    return attend(np.einsum("byxe,buve->byxuv", q, k), (abs(y - u) <= 2) & (abs(x - w) <= 3), v[:, None, None], 2)


def blocks(q, k, v):
    y, x, u, w = grid(*q.shape[1:3], *k.shape[1:3])
    return attend(np.einsum("byxe,buve->byxuv", q, k), (y // 3 == u // 3) & (x // 5 == w // 5), v[:, None, None], 2)


def volume(q, k, v):
    t, y, x, r, u, w = grid(*q.shape[:3], *k.shape[:3])
    s = np.einsum("tyxe,ruve->tyxruv", q, k)
    return attend(s, (r <= t) & (abs(y - u) <= 1) & (abs(x - w) <= 2), v[None, None, None], 3)


def apart(q, k, v):
    """[B, R, U, S, V, E]: windows in rows and columns, each with queries and keys of its own."""
    s = np.einsum("bruswe,brisje->brsuwij", q, k)
    o = attend(s, True, v.transpose(0, 1, 3, 2, 4, 5)[:, :, :, None, None], 2)
    return o.transpose(0, 1, 3, 2, 4, 5)


def biased(q, k, v, row, column, table):
    """Numbers and features by the offset of rows and of columns; rows' offsets end at 3."""
    y, x, u, w = grid(*q.shape[1:3], *k.shape[1:3])
    s = np.einsum("byxe,buve->byxuv", q, k) + row[np.clip(u - y, -3, 3) + 3] + column[w - x + q.shape[2] - 1]
    turned = np.einsum("byxe,yxue->byxu", q, table[(y - u + k.shape[1] - 1)[..., 0] + 0 * x[..., 0]])
    return attend(s + turned[..., None], u <= y + 1, v[:, None, None], 2)


def tall(q, k, v):
    """Keys and queries whose axes are longer than their dims."""
    y, x, u, w = grid(v.shape[0], v.shape[1], v.shape[0], v.shape[1])
    q, k = q[: v.shape[0], : v.shape[1]], k[: v.shape[0], : v.shape[1]]
    return attend(np.einsum("yxe,uve->yxuv", q, k), (x + y >= w) & (u >= 0), v[None, None], 2)


def pooled(q, k, v):
    """One query that is none of a dim, and values over two dims."""
    w = np.exp(np.einsum("e,uve->uv", q, k))
    return np.einsum("uv,uvfg->fg", w / max(w.sum(), 1e-300), v)


def rowwise(q, k, v):
    """All queries of a row are one; a mask that they don't share."""
    y, x, u, w = grid(*q.shape[:1], 6, *k.shape[:2])
    s = np.einsum("ye,uve->yuv", q, k)[:, None]
    return attend(s, w <= x + y, v[None, None], 2)


MODELS = {
    raster: """model raster(q: f32[B, Y, X, E], k: f32[B, Y, X, E], v: f32[B, Y, X, F]) {
  s[b,y,x,u,w] = sum(e) q[b,y,x,e] * k[b,u,w,e]
  p[b,y,x,u:Y,w:X] = softmax(u, w where u*X + w <= y*X + x) s[b,y,x,u,w]
  return o[b,y,x,f] = sum(u, w) p[b,y,x,u,w] * v[b,u,w,f]
}""",
    box: """model box(q: f32[B, Y, X, E], k: f32[B, U, V, E], v: f32[B, U, V, F]) {
  s[b,y,x,u,w] = sum(e) q[b,y,x,e] * k[b,u,w,e]
  p[b,y,x,u,w] = softmax(u, w where abs(y - u) <= 2 and abs(x - w) <= 3) s[b,y,x,u,w]
  return o[b,y,x,f] = sum(u, w) p[b,y,x,u,w] * v[b,u,w,f]
}""",
    blocks: """model blocks(q: f32[B, Y, X, E], k: f32[B, U, V, E], v: f32[B, U, V, F]) {
  s[b,y,x,u,w] = sum(e) q[b,y,x,e] * k[b,u,w,e]
  p[b,y,x,u,w] = softmax(u, w where y // 3 == u // 3 and x // 5 == w // 5) s[b,y,x,u,w]
  return o[b,y,x,f] = sum(u, w) p[b,y,x,u,w] * v[b,u,w,f]
}""",
    volume: """model volume(q: f32[T, Y, X, E], k: f32[R, U, V, E], v: f32[R, U, V, F]) {
  s[t,y,x,r,u,w] = sum(e) q[t,y,x,e] * k[r,u,w,e]
  p[t,y,x,r,u,w] = softmax(r, u, w where r <= t and abs(y - u) <= 1 and abs(x - w) <= 2) s[t,y,x,r,u,w]
  return o[t,y,x,f] = sum(r, u, w) p[t,y,x,r,u,w] * v[r,u,w,f]
}""",
    apart: """model apart(q: f32[B, R, U, S, V, E], k: f32[B, R, I, S, J, E], v: f32[B, R, I, S, J, F]) {
  s[b,r,t:S,u,w,i,j] = sum(e) q[b,r,u,t,w,e] * k[b,r,i,t,j,e]
  p[b,r,t,u,w,i,j] = softmax(i, j) s[b,r,t,u,w,i,j]
  return o[b,r,u,t,w,f] = sum(i, j) p[b,r,t,u,w,i,j] * v[b,r,i,t,j,f]
}""",
    biased: """model biased(q: f32[B, Y, X, E], k: f32[B, U, V, E], v: f32[B, U, V, F], row: f32[7], column: f32[X + V - 1], table: f32[Y + U - 1, E]) {
  s[b,y,x,u,w] = (sum(e) q[b,y,x,e] * k[b,u,w,e]) + row[min(max(u - y, -3), 3) + 3] + column[w - x + X - 1] +
    (sum(e) q[b,y,x,e] * table[y - u + U - 1, e])
  p[b,y,x,u,w] = softmax(u, w where u <= y + 1) s[b,y,x,u,w]
  return o[b,y,x,f] = sum(u, w) p[b,y,x,u,w] * v[b,u,w,f]
}""",
    tall: """model tall(q: f32[Y + 1, X + 2, E], k: f32[Y + 2, X + 1, E], v: f32[Y, X, F]) {
  s[y:Y,x:X,u:Y,w:X] = sum(e) q[y,x,e] * k[u,w,e]
  p[y,x,u,w] = softmax(u, w where x + y >= w) s[y,x,u,w]
  return o[y,x,f] = sum(u, w) p[y,x,u,w] * v[u,w,f]
}""",
    pooled: """model pooled(q: f32[E], k: f32[U, V, E], v: f32[U, V, F, G]) {
  s[u,w] = sum(e) q[e] * k[u,w,e]
  p[u,w] = softmax(u, w) s[u,w]
  return o[f,g] = sum(u, w) p[u,w] * v[u,w,f,g]
}""",
    rowwise: """model rowwise(q: f32[Y, E], k: f32[U, V, E], v: f32[U, V, F]) {
  s[y,x:6,u,w] = sum(e) q[y,e] * k[u,w,e]
  p[y,x,u,w] = softmax(u, w where w <= x + y) s[y,x,u,w]
  return o[y,x,f] = sum(u, w) p[y,x,u,w] * v[u,w,f]
}""",
}


def draw(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


# Sizes of queries, and of keys: more than two tiles, 1, 0 in each place, no multiples of anything.
GRIDS = [((7, 9), (7, 9)), ((1, 1), (1, 1)), ((13, 17), (11, 19)), ((3, 40), (3, 40)), ((1, 70), (70, 1)), ((5, 4), (0, 3)), ((5, 4), (3, 0)), ((0, 4), (5, 4)),
         ((4, 0), (5, 4))]


def arrays(oracle):
    for (y, x), (u, v) in GRIDS:
        if oracle is raster:
            yield dict(q=draw(2, y, x, 9), k=draw(2, y, x, 9), v=draw(2, y, x, 5))
        elif oracle is volume:
            yield dict(q=draw(3, y, x, 9), k=draw(4, u, v, 9), v=draw(4, u, v, 5))
        elif oracle is apart:
            yield dict(q=draw(2, 3, y, 2, x, 9), k=draw(2, 3, u, 2, v, 9), v=draw(2, 3, u, 2, v, 5))
        elif oracle is biased:
            if min(y, x, u, v) > 0:
                yield dict(q=draw(2, y, x, 9), k=draw(2, u, v, 9), v=draw(2, u, v, 5), row=draw(7), column=draw(x + v - 1), table=draw(y + u - 1, 9))
        elif oracle is tall:
            yield dict(q=draw(y + 1, x + 2, 9), k=draw(y + 2, x + 1, 9), v=draw(y, x, 5))
        elif oracle is pooled:
            yield dict(q=draw(9), k=draw(u, v, 9), v=draw(u, v, 5, 3))
        elif oracle is rowwise:
            yield dict(q=draw(y, 9), k=draw(u, v, 9), v=draw(u, v, 5))
        else:
            yield dict(q=draw(2, y, x, 9), k=draw(2, u, v, 9), v=draw(2, u, v, 5))


for oracle, text in MODELS.items():
    name = oracle.__name__
    source, program = folder / f"{name}.heed", folder / name
    source.write_text(text)
    done = subprocess.run([tools / "heedc", source, "--explain=all", "-o", program], capture_output=True, text=True)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    said = done.stdout + done.stderr
    expect("attn-join-dims: one dim instead of" in said and "one pass over the keys" in said and "all scores of a tile" not in said, f"{name} does not stream: {said}")
    for given in arrays(oracle):
        inputs = []
        for key, array in given.items():
            np.save(folder / f"{key}.npy", array)
            inputs += ["--" + key, folder / f"{key}.npy"]
        want = oracle(**{key: array.astype(np.float64) for key, array in given.items()})
        run = subprocess.run([program, *inputs, "--output", folder / "o.npy"], capture_output=True, text=True)
        what = f"{name} {[a.shape for a in given.values()]}"
        expect(run.returncode == 0, f"{what}: {run.stderr}")
        if run.returncode == 0:
            got = np.load(folder / "o.npy")
            scale = np.abs(want).max(initial=1e-30)
            expect(got.shape == want.shape and bool((np.abs(got - want) <= 1e-5 * scale).all()), f"{what}: {np.abs(got - want).max(initial=0)} of {scale}")
    done = subprocess.run([tools / "heed-check", "--draws=1", source], capture_output=True, text=True)
    expect(done.returncode == 0, f"{name}: {done.stdout}{done.stderr}")
finish()
