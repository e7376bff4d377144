# RUN: %python %s %heed_bin/heedc %t
"""Attention over several query, key and value dims and many batch dims, in several layouts, and rows of many dims, against float64 NumPy.

A kernel computes its funcs inside of fused loops, and its schedule promises that each is one point there. Where libHalide takes a coordinate for a range, results land beside their places: each
model is compiled once as it is, for its numbers, and once with its promises checked as it runs."""
import sys

import numpy as np

import programs
from oracles import softmax
from programs import compare, compile
from runs import finish

programs.start(*sys.argv[1:3])
rng = np.random.default_rng(5)


def attention(score, axes, product, live=lambda s: True):
    def oracle(q, k, v):
        s = np.einsum(score, q, k)
        return np.einsum(product, softmax(s, axes, live(s)), v)
    return oracle


def near(s):
    """Keys before the query in reading order, at most two steps away."""
    y, x, u, t = np.ogrid[tuple(slice(n) for n in s.shape[3:])]
    return (abs(y - u) + abs(x - t) <= 2) & ((u < y) | ((u == y) & (t <= x)))


def sharpened(q, k, v):
    p = softmax(np.einsum("zabghie,zabghje->zabghij", q, k), -1) ** 2
    with np.errstate(invalid="ignore"):
        return np.einsum("zabghij,zabghjf->zabghif", p / p.sum(-1, keepdims=True), v)


# name: (shapes, body, the schedule, oracle, sizes of the dims in turn)
MODELS = {
    "windows": (dict(q="B H M N 2 2 E", k="B H M N 2 2 E", v="B H M N 2 2 F"), """  s[b,h,m,n,y,x,u,t] = sum(e) q[b,h,m,n,y,x,e] * k[b,h,m,n,u,t,e]
  p[b,h,m,n,y,x,u,t] = softmax(u, t) s[b,h,m,n,y,x,u,t]
  return o[b,h,m,n,y,x,f] = sum(u, t) p[b,h,m,n,y,x,u,t] * v[b,h,m,n,u,t,f]""", "row block",
                attention("bhmnyxe,bhmnute->bhmnyxut", (-2, -1), "bhmnyxut,bhmnutf->bhmnyxf"),
                dict(B=[2, 1, 1], H=[3, 1, 2], M=[2, 3, 1], N=[3, 2, 0], E=[5, 1, 4], F=[17, 1, 3])),
    "own": (dict(q="B G C H 4 4 E"), """  s[b,g,c,h,u,v,m,n] = sum(e) q[b,g,c,h,u,v,e] * q[b,g,c,h,m,n,e]
  p[b,g,c,h,u,v,m,n] = softmax(m, n) s[b,g,c,h,u,v,m,n]
  return o[b,g,u,c,v,h,e] = sum(m, n) p[b,g,c,h,u,v,m,n] * q[b,g,c,h,m,n,e]""", "row block",
            lambda q: np.einsum("bgchuvmn,bgchmne->bgucvhe", softmax(np.einsum("bgchuve,bgchmne->bgchuvmn", q, q), (-2, -1)), q),
            dict(B=[2, 1], G=[2, 1], C=[3, 1], H=[2, 1], E=[19, 1])),
    "masked": (dict(q="B M N Y X E", k="B M N Y X E", v="B M N Y X F"), """  s[b,m,n,y,x,u,t] = sum(e) q[b,m,n,y,x,e] * k[b,m,n,u,t,e]
  p[b,m,n,y,x,u,t] = softmax(u, t where abs(y - u) + abs(x - t) <= 2 and (u < y or (u == y and t <= x))) s[b,m,n,y,x,u,t]
  return o[b,m,n,y,x,f] = sum(u, t) p[b,m,n,y,x,u,t] * v[b,m,n,u,t,f]""", "row block",
               attention("bmnyxe,bmnute->bmnyxut", (-2, -1), "bmnyxut,bmnutf->bmnyxf", near),
               dict(B=[2, 1, 1], M=[3, 1, 2], N=[2, 1, 3], Y=[3, 1, 33], X=[5, 1, 2], E=[7, 1, 4], F=[3, 1, 18])),
    "layout": (dict(q="B M Y N X H E", k="B M U N T H E", v="B M U N T H F"), """  s[b,h,m,n,y,x,u,t] = sum(e) q[b,m,y,n,x,h,e] * k[b,m,u,n,t,h,e]
  p[b,h,m,n,y,x,u,t] = softmax(u, t) s[b,h,m,n,y,x,u,t]
  return o[b,m,y,n,x,h,f] = sum(u, t) p[b,h,m,n,y,x,u,t] * v[b,m,u,n,t,h,f]""", "row block",
               attention("bmynxhe,bmunthe->bhmnyxut", (-2, -1), "bhmnyxut,bmunthf->bmynxhf"),
               dict(B=[2, 1], M=[2, 3], Y=[3, 1], N=[3, 2], X=[5, 18], U=[2, 1], T=[7, 33], H=[3, 2], E=[4, 17], F=[5, 1])),
    "solid": (dict(q="B X Y Z E", k="B U V W E", v="B U V W F G"), """  s[b,x,y,z,u,r,w] = sum(e) q[b,x,y,z,e] * k[b,u,r,w,e]
  p[b,x,y,z,u,r,w] = softmax(u, r, w) s[b,x,y,z,u,r,w]
  return o[b,g,z,y,f,x] = sum(u, r, w) p[b,x,y,z,u,r,w] * v[b,u,r,w,f,g]""", "row block",
              attention("bxyze,burwe->bxyzurw", (-3, -2, -1), "bxyzurw,burwfg->bgzyfx"),
              dict(B=[2, 1], X=[17, 2], Y=[3, 1], Z=[2, 5], U=[2, 1], V=[3, 1], W=[5, 1], E=[6, 1], F=[3, 2], G=[2, 17])),
    "sharpened": (dict(q="Z A B G H N E", k="Z A B G H M E", v="Z A B G H M F"), """  s[z,a,b,g,h,i,j] = sum(e) q[z,a,b,g,h,i,e] * k[z,a,b,g,h,j,e]
  p[z,a,b,g,h,i,j] = softmax(j) s[z,a,b,g,h,i,j]
  r[z,a,b,g,h,i] = sum(j) p[z,a,b,g,h,i,j] * p[z,a,b,g,h,i,j]
  return o[z,a,b,g,h,i,f] = sum(j) p[z,a,b,g,h,i,j] * p[z,a,b,g,h,i,j] / r[z,a,b,g,h,i] * v[z,a,b,g,h,j,f]""", "row block", sharpened,
                  dict(Z=[2, 1], A=[2, 3], B=[3, 2], G=[2, 1], H=[2, 3], N=[5, 18], M=[7, 3], E=[4, 1], F=[3, 1])),
    "streamed": (dict(q="Z A B G H N E", k="Z A B G H M E", v="Z A B G H M F"), """  s[z,a,b,g,h,i,j] = sum(e) q[z,a,b,g,h,i,e] * k[z,a,b,g,h,j,e]
  p[z,a,b,g,h,i,j] = softmax(j) s[z,a,b,g,h,i,j]
  return o[z,a,b,g,h,i,f] = sum(j) p[z,a,b,g,h,i,j] * v[z,a,b,g,h,j,f]""", "streaming attention",
                 attention("zabghie,zabghje->zabghij", -1, "zabghij,zabghjf->zabghif"),
                 dict(Z=[2, 1], A=[2, 3], B=[3, 2], G=[2, 1], H=[2, 3], N=[5, 70], M=[7, 130], E=[4, 16], F=[3, 5])),
    "rows": (dict(x="A B H N M"), "  return y[a,b,h,n,m] = softmax(m) x[a,b,h,n,m]", "rows", lambda x: softmax(x, -1),
             dict(A=[2, 1, 1], B=[3, 1, 2], H=[2, 1, 3], N=[9, 1, 0], M=[70, 1, 5])),
}

for name, (shapes, body, schedule, oracle, sizes) in MODELS.items():
    source = "model m(" + ", ".join(f"{key}: f32[{', '.join(dims.split())}]" for key, dims in shapes.items()) + ") {\n" + body + "\n}\n"
    result = body.split("return ")[1][0]
    for path, options in ((name, []), (f"{name}-promises", ["--check-promises"])):
        program = compile(path, source, "--explain=all", *options, says=f"has the {schedule} schedule")
        for draw in zip(*sizes.values()):
            extents = dict(zip(sizes, draw))
            arrays = {key: rng.uniform(-1, 1, [extents.get(d) if d in extents else int(d) for d in dims.split()]).astype(np.float32) for key, dims in shapes.items()}
            want = oracle(*(array.astype(np.float64) for array in arrays.values()))
            # Three threads: tasks of two loops in each other.
            compare(program, arrays, {result: want}, "--threads=3")
finish()
