# RUN: %python %s %heed_bin/heedc %t
"""Reads of fewer than all elements of an axis, in each family of schedules, against float64 NumPy. What is left out holds NaN: it is not touched, or what it gives is not used."""
import sys

import numpy as np

import programs
from oracles import softmax
from programs import compare, compile
from runs import finish

programs.start(*sys.argv[1:3])
rng = np.random.default_rng(17)


def scores(q, k):
    return np.einsum("...ie,...je->...ij", q, k)


def sharpened(q, k, v):
    p = softmax(scores(q, k)) ** 2
    return p / p.sum(-1, keepdims=True) @ v


def grouped(q, k, v):
    return softmax(scores(q, k[np.arange(6) // 4])) @ v[np.arange(6) // 4]


def shifted(q, k, v, r):
    i, j = np.ogrid[:q.shape[1], :k.shape[1]]
    return softmax(scores(q, k) + np.einsum("hie,ije->hij", q, r[j - i + 40])) @ v


def biased(q, k, v, r, c):
    return softmax(scores(q, k) + r, live=c) @ v


def causal(q, k, v):
    i, j = np.ogrid[:q.shape[2], :k.shape[2]]
    return softmax(scores(q, k), live=j <= i + k.shape[2] - q.shape[2]) @ v


# With vectors of 8 two queries are a tile as soon as two rows.
FEW = "a query at a time" if "avx512f" in open("/proc/cpuinfo").read().split() else "streaming attention"
# name: (a schedule of it, inputs as (shape, what is read of it), body, oracle); shapes and parts in dims of the sizes
MODELS = {
    "tiles": ("streaming attention", dict(q=("N 4", "N 2"), k=("M 4", "M 2"), v=("M 8", "M 3")), """  s[i,j] = sum(e:2) q[i,e] * k[j,e]
  p[i,j] = softmax(j) s[i,j]
  return o[i,f:3] = sum(j) p[i,j] * v[j,f]""", lambda q, k, v: softmax(scores(q, k)) @ v),
    "causal": ("streaming attention", dict(q=("2 3 N 24", "2 3 N 19"), k=("2 3 M 40", "2 3 M 19"), v=("2 3 M 80", "2 3 M 33")), """  s[b,h,i,j] = sum(e:19) q[b,h,i,e] * k[b,h,j,e]
  p[b,h,i,j] = softmax(j where j <= i + (M - N)) s[b,h,i,j]
  return o[b,h,i,f:33] = sum(j) p[b,h,i,j] * v[b,h,j,f]""", causal),
    "axes": ("streaming attention", dict(q=("5 9 N", "3 7 N"), k=("5 300 N", "3 77 N"), v=("5 300 20", "3 77 20")), """  s[h:3,i:7,j:77] = sum(e) q[h,i,e] * k[h,j,e]
  p[h,i,j] = softmax(j) s[h,i,j]
  return o[h:3,i,f] = sum(j:77) p[h,i,j] * v[h,j,f]""", lambda q, k, v: softmax(scores(q, k)) @ v),
    "few": (FEW, dict(q=("8 3 64", "6 2 50"), k=("2 400 64", "2 333 50"), v=("2 400 64", "2 333 40")), """  s[h:6,i:2,j:333] = sum(e:50) q[h,i,e] * k[h/4,j,e]
  p[h,i,j] = softmax(j) s[h,i,j]
  return o[h,i,f:40] = sum(j:333) p[h,i,j] * v[h/4,j,f]""", grouped),
    "offsets": ("streaming attention", dict(q=("2 40 E", "2 33 E"), k=("2 50 E", "2 45 E"), v=("2 50 5", "2 45 3"), r=("120 E", "120 E")), """  s[h,i:33,j:45] = sum(e) q[h,i,e] * (k[h,j,e] + r[j - i + 40, e])
  p[h,i,j] = softmax(j) s[h,i,j]
  return o[h,i,f:3] = sum(j:45) p[h,i,j] * v[h,j,f]""", shifted),
    "biased": ("streaming attention", dict(q=("2 50 24", "2 37 19"), k=("2 60 40", "2 41 19"), v=("2 60 80", "2 41 33"), r=("3 50 60", "2 37 41"), c=("50 60", "37 41")),
               """  m[i:37,j:41] = c[i,j]
  s[h:2,i:37,j:41] = (sum(e:19) q[h,i,e] * k[h,j,e]) + r[h,i,j]
  p[h:2,i,j] = softmax(j where m[i,j]) s[h,i,j]
  return o[h,i,f:33] = sum(j:41) p[h,i,j] * v[h,j,f]""", biased),
    "sharpened": ("rows", dict(q=("N 24", "N 19"), k=("90 40", "71 19"), v=("90 80", "71 33")), """  s[i,j:71] = sum(e:19) q[i,e] * k[j,e]
  p[i,j] = softmax(j) s[i,j]
  t[i] = sum(j) p[i,j] * p[i,j]
  return o[i,f:33] = sum(j:71) p[i,j] * p[i,j] / t[i] * v[j,f]""", sharpened),
    "window": ("row block", dict(q=("N 6 7 8", "N 3 5 5"), k=("N 6 7 8", "N 4 7 5"), v=("N 6 7 20", "N 4 7 17")), """  s[b,y:3,x:5,u:4,t] = sum(e:5) q[b,y,x,e] * k[b,u,t,e]
  p[b,y,x,u,t] = softmax(u, t) s[b,y,x,u,t]
  return o[b,y,x,f:17] = sum(u:4, t) p[b,y,x,u,t] * v[b,u,t,f]""",
               lambda q, k, v: np.einsum("byxut,butf->byxf", softmax(np.einsum("byxe,bute->byxut", q, k), (-2, -1)), v)),
    "products": ("contraction", dict(x=("N 100", "N 77"), w=("60 100", "33 77"), z=("40 70", "21 22")), """  y[n,o:33] = sum(i:77) x[n,i] * w[o,i]
  return t[n,a:21] = sum(b:22) y[n,b] * z[a,b]""", lambda x, w, z: (x @ w.T)[:, :22] @ z.T),
    "linear": ("product", dict(q=("2 N 24", "2 N 19"), k=("2 M 40", "2 M 19"), v=("2 M 80", "2 M 33")), """  s[h,e:19,f:33] = sum(j) exp(k[h,j,e]) * v[h,j,f]
  return o[h,i,f] = sum(e:19) exp(q[h,i,e]) * s[h,e,f]""", lambda q, k, v: np.exp(q) @ (np.exp(k).swapaxes(-1, -2) @ v)),
    "norm": ("rows", dict(x=("N 100", "N 77"), g=("100", "55")), """  r[n] = sum(d:77) x[n,d]^2
  return y[n,d:55] = x[n,d] / sqrt(r[n] / 77 + 0.001) * g[d]""", lambda x, g: x[:, :55] / np.sqrt((x * x).mean(-1, keepdims=True) + 0.001) * g),
}

for name, (schedule, inputs, body, oracle) in MODELS.items():
    types = {key: "bool" if key == "c" else "f32" for key in inputs}
    source = "model m(" + ", ".join(f"{key}: {types[key]}[{', '.join(shape.split())}]" for key, (shape, _) in inputs.items()) + ") {\n" + body + "\n}\n"
    program = compile(name, source, "--explain=all", says=schedule)
    result = body.split("return ")[1][0]
    for sizes in dict(N=37, M=70, E=19), dict(N=1, M=1, E=1), dict(N=3, M=133, E=4):
        arrays, parts = {}, []
        for key, (shape, part) in inputs.items():
            shape, part = ([sizes.get(d) or int(d) for d in text.split()] for text in (shape, part))
            here = tuple(slice(n) for n in part)
            if types[key] == "bool":
                array = np.zeros(shape, bool)
                array[here] = rng.random(part) < 0.6
            else:
                array = np.full(shape, np.nan, np.float32)
                array[here] = rng.uniform(-1, 1, part)
            arrays[key] = array
            parts.append(array[here].astype(np.float64 if types[key] == "f32" else bool))
        compare(program, arrays, {result: oracle(*parts)})
finish()
