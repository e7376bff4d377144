# RUN: %python %s %heed_bin/heedc %t types reductions
# RUN: %python %s %heed_bin/heedc %t softmaxes functions statics
# RUN: %python %s %heed_bin/heedc %t builtins library weights
# RUN: %python %s %heed_bin/heedc %t empty sums near powers
"""The rules of the language against NumPy: small models, each compiled once and run at sizes 0, 1, 7 and 64."""
import os
from math import erf

import numpy as np

from groups import f32, folder, group, rng, run_wanted
from programs import compare, compile, outputs
from runs import expect, expect_error
import safetensors_file


def ints(low, high, *shape, dtype=np.int32):
    return rng.integers(low, high, shape).astype(dtype)


def softmax(s, live, sink=None):
    """Over the last axis; rows without a live element are zeros."""
    s = np.where(live, s.astype(np.float64), -np.inf)
    e = np.where(live, np.exp(s - np.where(live, s, -1e9).max(-1, keepdims=True, initial=-1e9)), 0)
    total = e.sum(-1, keepdims=True)
    if sink is not None:
        with np.errstate(over="ignore"):
            total = total + np.exp(sink - np.where(live, s, -1e9).max(-1, keepdims=True, initial=-1e9))
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


@group
def types():
    program = compile("types", """
model m(x: f16[N], w: f32[N], ids: i32[N], keep: bool[N], c: i8[N], l: i64[N], z: bf16[N]) {
  a[i] = x[i] * w[i]
  b[i] = ids[i] * 0.5
  h[i] = f16(a[i] + b[i])
  count = sum(i) keep[i]
  s8 = sum(i) c[i]
  d8 = sum(i) c[i] * c[i]
  p8[i] = c[i] * c[i]
  m8 = mean(i) c[i]
  d[i] = if keep[i] then i32(a[i]) else 0
  e[i] = l[i] * ids[i]
  f[i] = keep[i] == (ids[i] > 0)
  g[i] = bool(c[i])
  narrow[i] = i8(l[i])
  q[i] = ids[i] // 3
  r[i] = ids[i] % 3
  t[i] = ids[i] // c[i]
  u[i] = w[i] % 0.7
  y[i] = z[i] + w[i]
  v[i] = -w[i]^2 + 2^-w[i]
  table[k:8] = 2 ^ -(k + 1)
  return a, b, h, count, s8, d8, p8, m8, d, e, f, g, narrow, q, r, t, u, y, v, table, n = N
}""")
    for n in (0, 1, 7, 64):
        x, w, ids = f32(n).astype(np.float16), f32(n), ints(-9, 9, n)
        keep, c, l = rng.uniform(size=n) < 0.5, ints(-128, 128, n, dtype=np.int8), ints(-1000, 1000, n, dtype=np.int64)
        z = np.round(f32(n) * 8) / 8  # exact in bf16
        a = x.astype(np.float64) * w
        b, wide = ids * 0.5, c.astype(np.int64)
        with np.errstate(all="ignore"):
            quotient = np.where(c == 0, 0, ids // np.where(c == 0, 1, wide))
        # NumPy has no bf16: its two bytes are those of an f32.
        inputs = dict(x=x, w=w, ids=ids, keep=keep, c=c, l=l, z=(z.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view("V2"))
        compare(program, inputs, dict(
            a=a, b=b, count=np.int32(keep.sum()), s8=np.int32(wide.sum()), d8=np.int32((wide * wide).sum()),
            p8=(wide * wide).astype(np.int8), m8=wide.mean() if n else 0.0, d=np.where(keep, np.trunc(a.astype(np.float32)), 0).astype(np.int32),
            e=l * ids, f=keep == (ids > 0), g=c != 0, narrow=l.astype(np.int8), q=ids // 3, r=ids % 3, t=quotient,
            u=w.astype(np.float64) % 0.7, y=z + w, v=-w.astype(np.float64) ** 2 + 2.0 ** -w, table=2.0 ** -np.arange(1, 9), n=np.int32(n)))
        compare(program, inputs, dict(h=(a + b).astype(np.float16)), tolerance=2e-3)
        inputs["z"] = z.astype(np.float32)
        expect_error(outputs(program, inputs, []), "expected element type bf16, found f32 (--convert rounds it)")
        compare(program, inputs, dict(y=z + w), "--convert")
    special = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 127.9, -128.9, 2.5, -0.5, 1e30], np.float32)
    program = compile("casts", """
model m(x: f32[N]) {
  return a[i] = i32(x[i]), b[i] = i8(x[i]), c[i] = round(x[i]), d[i] = sign(x[i]), e[i] = floor(x[i]), f[i] = bool(x[i])
}""")
    whole = np.nan_to_num(special.astype(np.float64), nan=0, posinf=1e30, neginf=-1e30)
    sign = np.where(np.isnan(special), np.nan, np.sign(special))
    compare(program, dict(x=special), dict(
        a=np.trunc(whole).clip(-2**31, 2**31 - 1).astype(np.int64).astype(np.int32), b=np.trunc(whole).clip(-128, 127).astype(np.int8),
        c=np.round(special), d=sign, e=np.floor(special), f=special != 0))


@group
def reductions():
    program = compile("reductions", """
model m(x: f32[N, M], b: f32[M], k: i32[N, M]) {
  a[i] = sum(j) x[i,j] * b[j] + 1
  c[i] = mean(j) x[i,j]
  d[i] = mean(j where b[j] > 0) x[i,j]
  e[i] = prod(j) x[i,j]
  f[i] = max(j) x[i,j]
  g[i] = min(j where j < i) x[i,j]
  h[i] = argmax(j) x[i,j]
  l[i] = argmax(j where b[j] > 0) k[i,j]
  n[i] = any(j) x[i,j] > 1
  o[i] = all(j) x[i,j] > -1
  p = sum(i, j) x[i,j]
  q[i] = max(j) k[i,j]
  r = argmax(i, j) k[i,j]
  u[i] = mean(j) k[i,j]
  v = max(i) sum(j) x[i,j]
  return a, c, d, e, f, g, h, l, n, o, p, q, r, u, v
}""")
    for n, m in ((0, 3), (3, 0), (1, 1), (7, 5), (5, 64)):
        x, b, k = f32(n, m), f32(m), ints(-3, 3, n, m)
        if m > 4:
            x[0, 3], x[1, 2] = np.nan, np.inf
        y, live = x.astype(np.float64), b > 0
        first = lambda z: np.array([int(np.argmax(row)) if row.size else -1 for row in z], np.int32)
        chosen = np.array([int(np.flatnonzero(live)[np.argmax(row[live])]) if live.any() else -1 for row in k], np.int32)
        below = np.arange(m)[None, :] < np.arange(n)[:, None]
        with np.errstate(all="ignore"):
            compare(program, dict(x=x, b=b, k=k), dict(
                a=y @ b + 1, c=y.mean(1) if m else np.zeros(n), d=y[:, live].mean(1) if live.any() else np.zeros(n),
                e=y.prod(1), f=y.max(1, initial=-np.inf), g=np.where(below, y, np.inf).min(1, initial=np.inf), h=first(x), l=chosen,
                n=(x > 1).any(1), o=(x > -1).all(1), p=y.sum(), q=k.max(1, initial=-2**31), r=np.int32(k.argmax() if k.size else -1),
                u=k.mean(1) if m else np.zeros(n), v=y.sum(1).max(initial=-np.inf)))



@group
def softmaxes():
    program = compile("softmaxes", """
model m(s: f32[H, N, M], t: f32[H], v: f32[H, M, F], len: i32[H]) {
  p[h,i,j] = softmax(j where j < len[h]; sink = t[h]) s[h,i,j]
  q[h,i,j] = log_softmax(j where j <= i) s[h,i,j]
  r[h,i,j] = softmax(i, j) s[h,i,j]
  o[h,i,f] = sum(j) p[h,i,j] * v[h,j,f]
  u[h,i,f] = sum(j) (softmax(j where j <= i) s[h,i,j]) * v[h,j,f]
  w[h,i,j] = 2 * softmax(j) (s[h,i,j] * 0.5) + 1
  return p, q, r, o, u, w
}""")
    for h, n, m, f in ((0, 1, 1, 1), (1, 0, 3, 2), (2, 3, 0, 2), (1, 1, 1, 1), (2, 7, 5, 3), (1, 5, 64, 7)):
        s, t, v, length = f32(h, n, m), f32(h), f32(h, m, f), ints(0, m + 1, h)
        live = np.broadcast_to(np.arange(m) < length[:, None, None], s.shape)
        causal = np.broadcast_to(np.arange(m)[None, :] <= np.arange(n)[:, None], s.shape)
        p = softmax(s, live, t.astype(np.float64)[:, None, None])
        with np.errstate(all="ignore"):
            logs = np.log(softmax(s, causal))
        # What lies behind the length is absent, whatever it holds.
        v[~np.broadcast_to((np.arange(m) < length[:, None])[:, :, None], v.shape)] = np.nan
        known = np.nan_to_num(v.astype(np.float64))
        inputs = dict(s=s, t=t, v=v, len=length)
        compare(program, inputs, dict(p=p, q=logs, r=softmax(s.reshape(h, n * m), True).reshape(s.shape),
                                      o=p @ known, w=2 * softmax(s * 0.5, True) + 1))
        compare(program, dict(inputs, v=known.astype(np.float32)), dict(u=softmax(s, causal) @ known))


@group
def functions():
    program = compile("functions", """
const widths = [[8, 16], [32, 0]]
fn normalise(x: [.., D], bias: [D] = none; eps = 1e-6, scale = true) {
  m[..] = mean(d) x[.., d]^2
  y[.., d] = x[.., d] / sqrt(m[..] + eps)
  if bias != none { y[.., d] = y[.., d] + bias[d] }
  if scale { y = y * 2 } else { y = y * 3 }
  return y, m
}
fn twice(x; k = 2) = x * k
model m(x: f32[B, D], b: f32[D]; cut: f32 = 0.5, reach: i32, flag: bool = true) {
  y, power = normalise(x, bias = b, eps = 1e-5)
  z, other = normalise(twice(x, k = B), scale = false)
  w, one = normalise(b)
  t[i, j] = twice(x[i, j]) + twice(i + j, k = 3) * widths[i % 2, j % 2]
  near[i, j] = if abs(i - j) <= reach and flag then x[i, j] else cut
  return y, power, z, w, one, t, near, cut = cut, reach = reach
}""")
    for n, d in ((0, 3), (3, 0), (1, 1), (7, 64)):
        x, b = f32(n, d), f32(d)
        y, c = x.astype(np.float64), b.astype(np.float64)
        mean = lambda a: (a * a).mean(-1) if d else np.zeros(a.shape[:-1])
        over = lambda a, eps: a / np.sqrt(mean(a) + eps)[..., None]
        i, j = np.arange(n)[:, None], np.arange(d)[None, :]
        table = np.array([[8, 16], [32, 0]])[i % 2, j % 2]
        compare(program, dict(x=x, b=b, reach=1), dict(
            y=(over(y, 1e-5) + c) * 2, power=mean(y), z=over(y * n, 1e-6) * 3, w=over(c, 1e-6) * 2, one=mean(c),
            t=y * 2 + (i + j) * 3 * table, near=np.where(np.abs(i - j) <= 1, y, 0.5), cut=0.5, reach=np.int32(1)))
        compare(program, dict(x=x, b=b, reach=0, cut=-2, flag="false"), dict(near=np.full((n, d), -2.0)))


@group
def statics():
    program = compile("statics", """
import "nn.heed"
model m(x: f32[N, D], c: f32[M, D], mask: f32[N] = none; L = 2, H = 2, kinds = [1, 0]) {
  dim E = D / H
  let hs: f32[L + 1, N, D]
  hs[0, n, d] = x[n, d]
  for l in 0..L {
    if kinds[l] == 1 { hs[l + 1, n, d] = hs[l, n, d] * 2 + l } else { hs[l + 1, n, d] = relu(hs[l, n, d]) }
  }
  y = x
  for l in 0..4 { y[n, d] = (sum(k) y[n, k]) * x[n, d] + l }
  joined[n:N + M, d] = concat(n)(x[n, d], c[n, d])
  heads[h:H, n, e:E] = x[n, h*E + e]
  merged[n, e*H + h] = heads[h, n, e]
  even[n:(N + 1)//2, d] = x[2*n, d]
  turned[n:N, d] = x[N - 1 - n, d]
  shifted[n:N, d] = if n > 0 then x[n - 1, d] else -1
  pad[n:N, d] = sum(u:3 where 0 <= n + u - 1 < N) x[n + u - 1, d]
  if mask != none { y[n, d] = y[n, d] * mask[n] }
  return hs, best[n, d] = max(l) hs[l, n, d], y, joined, heads, merged, even, turned, shifted, pad
}""", "--set", "mask=none")
    for n, d, m in ((0, 2, 3), (1, 2, 0), (7, 6, 1), (3, 0, 2), (64, 4, 5)):
        x, c = f32(n, d), f32(m, d)
        z = x.astype(np.float64)
        levels = [z, z * 2, np.maximum(z * 2, 0)]
        y = z
        for l in range(4):
            y = y.sum(1, keepdims=True) * z + l
        heads = z.reshape(n, 2, d // 2).transpose(1, 0, 2)
        before = np.concatenate([np.full((1, d), -1.0), z])[:n]
        zero = np.zeros((1, d))
        around = np.concatenate([zero, z, zero])
        compare(program, dict(x=x, c=c), dict(
            hs=np.stack(levels), best=np.max(levels, axis=0), y=y, joined=np.concatenate([z, c]), heads=heads,
            merged=heads.transpose(1, 2, 0).reshape(n, d), even=z[::2], turned=z[::-1], shifted=before,
            pad=around[:n] + around[1:n + 1] + around[2:n + 2]), tolerance=1e-4)
    expect_error(outputs(program, dict(x=f32(2, 3), c=f32(1, 3)), []), "D / 2 does not divide exactly: 1 is left over")
    program = compile("checks", """
model m(x: f32[N], ids: i32[M], k: f32[K]) {
  tail[n:N - 1] = x[n + 1]
  picked[j] = if j < M - 1 then x[ids[j]] else 0
  share[i:N] = x[i] * (i // (K - 3))
  return tail, picked, share
}""")
    good = dict(x=f32(5), ids=np.array([4, 0, 9], np.int32), k=f32(4))
    compare(program, good, dict(tail=good["x"][1:], picked=np.append(good["x"][[4, 0]], 0), share=good["x"] * np.arange(5.0)))
    for inputs, text in ((dict(good, x=f32(0)), "the range of 'n' is N - 1 = -1: it must not be negative"),
                         (dict(good, ids=np.array([4, 5, 0], np.int32)), "= 5 is out of range for x (axis 0): expected 0 <= index < 5"),
                         (dict(good, ids=np.array([-1, 1, 0], np.int32)), "= -1 is out of range for x (axis 0): expected 0 <= index < 5"),
                         (dict(good, k=f32(3)), "integer '//' by zero, expected K < 3 or 3 < K")):
        expect_error(outputs(program, inputs, []), text)
    # --unchecked drops the check of data, not those of sizes.
    program = compile("unchecked", open(os.path.join(folder, "checks.heed")).read(), "--unchecked")
    compare(program, good, dict(tail=good["x"][1:]))
    expect_error(outputs(program, dict(good, k=f32(3)), []), "integer '//' by zero")


@group
def builtins():
    program = compile("builtins", """
model m(x: f32[N], k: i32[N]) {
  return a = abs(x), b = exp(x), c = exp2(x), d = log(x), e = log2(x), f = log1p(x), g = expm1(x), h = sqrt(x),
    i = rsqrt(x), j = tanh(x), l = sigmoid(x), m = erf(x), n = relu(x), o = elu(x), p = silu(x), q = softplus(x),
    r = gelu(x), s = gelu_tanh(x), t = min(x, 1), u = max(x, 0), v = clamp(x, -1, 1), w = sign(k) + abs(k) + relu(k),
    z = clamp(k, -1, 2), sn = sin(x / 1e30), cs = cos(x / 1e30), tn = tan(x / 1e30)
}""")
    special = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 0, 30, -30, 20, -20, 1e-30], np.float32)
    for x in (f32(0), f32(1), f32(7), f32(64), special):
        k, y = ints(-5, 5, len(x)), x.astype(np.float64)
        with np.errstate(all="ignore"):
            sig = 1 / (1 + np.exp(-y))
            erfs = np.array([erf(v) for v in y])
            cube = np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3))
            one = lambda v: v.astype(np.float32).astype(np.float64)
            compare(program, dict(x=x, k=k), dict(
                a=np.abs(y), b=one(np.exp(y)), c=one(np.exp2(y)), d=np.log(y), e=np.log2(y), f=np.log1p(y), g=one(np.expm1(y)),
                h=np.sqrt(y), i=1 / np.sqrt(y), j=np.tanh(y), l=sig, m=erfs, n=np.where(np.isnan(y), y, np.maximum(y, 0)),
                o=np.where(y > 0, y, np.expm1(np.minimum(y, 0))), p=y * sig, q=np.maximum(y, 0) + np.log1p(np.exp(-np.abs(y))),
                r=y * 0.5 * (1 + np.array([erf(v) for v in y / np.sqrt(2)])), s=y * 0.5 * (1 + cube), t=np.minimum(y, 1), u=np.maximum(y, 0), v=np.clip(y, -1, 1),
                w=np.sign(k) + np.abs(k) + np.maximum(k, 0), z=k.clip(-1, 2), sn=np.sin(y / 1e30), cs=np.cos(y / 1e30),
                tn=np.tan(y / 1e30)))


@group
def library():
    program = compile("library", """
model m(x: f32[B, N, D], len: i32[B], mask: bool[B, N, N]; H = 2) {
  q = split_heads(x, H = H)
  a = attention(q, q, q)
  return a, b = attention(q, q, q, causal = true), c = attention(q, q, q, mask = mask),
    d = attention(q, q, q, mask = mask, causal = true), e = merge_heads(a), f = mean_pool(x, len), g = rotary(q),
    h = rotary_half(q), i = l2_normalize(x)
}""")
    for b, n, d in ((0, 1, 4), (1, 0, 4), (2, 1, 4), (2, 7, 12), (1, 64, 8)):
        x, mask, length = f32(b, n, d), rng.uniform(size=(b, n, n)) < 0.5, ints(0, n + 1, b)
        y = x.astype(np.float64)
        e = d // 2
        q = y.reshape(b, n, 2, e).transpose(0, 2, 1, 3)
        s = np.einsum("bhie,bhje->bhij", q, q) / np.sqrt(e)
        low = np.tril(np.ones((n, n), bool))
        see = lambda live: softmax(s, np.broadcast_to(live, s.shape)) @ q
        a = see(True)
        angle = np.arange(n)[:, None] * 10000.0 ** (-2 * np.arange(e // 2) / e)
        cos, sin = np.cos(angle), np.sin(angle)
        turned, half = np.empty_like(q), np.empty_like(q)
        for out, first, second in ((turned, slice(0, None, 2), slice(1, None, 2)), (half, slice(0, e // 2), slice(e // 2, None))):
            out[..., first] = q[..., first] * cos - q[..., second] * sin
            out[..., second] = q[..., first] * sin + q[..., second] * cos
        live = np.arange(n) < length[:, None]
        pooled = np.where(live[..., None], y, 0).sum(1) / np.maximum(length, 1)[:, None]
        norm = np.sqrt((y * y).sum(-1, keepdims=True))
        compare(program, dict(x=x, len=length, mask=mask), dict(
            a=a, b=see(low), c=see(mask[:, None]), d=see(mask[:, None] & low), e=a.transpose(0, 2, 1, 3).reshape(b, n, d),
            f=pooled, g=turned, h=half, i=y / np.maximum(norm, 1e-12)))


@group
def weights():
    path = os.path.join(folder, "w.safetensors")
    parts = {"fc.weight": f32(5, 6), "fc.bias": f32(5), "ln.gamma": f32(6), "ln.beta": f32(6), "rms.weight": f32(6),
             "word.weight": f32(9, 6), "half": f32(6).astype(np.float16), "count": ints(-9, 9, 6, dtype=np.int8)}
    safetensors_file.write(path, parts)
    program = compile("weights", """
model m(x: f32[N, I], ids: i32[N]) {
  param half: f32[I]
  param count: i8[I]
  param w: f32[O, I] @ "nothing" | "fc.weight"
  y = linear(x, O = O, at = "fc")
  return y, bare = linear(x, O = O, at = "fc", bias = false), a = layer_norm(x, at = "ln"), b = rms_norm(x, at = "rms"),
    c = embedding(ids, rows = 9, D = I, at = "word"), d[n, i] = x[n, i] * half[i] + count[i], e[n, o] = sum(i) x[n, i] * w[o, i]
}""", "--weights", path)
    wide = {name: part.astype(np.float64) for name, part in parts.items()}
    for n in (0, 1, 7, 64):
        x, ids = f32(n, 6), ints(0, 9, n)
        y = x.astype(np.float64)
        c = y - y.mean(-1, keepdims=True)
        flat = y @ wide["fc.weight"].T
        compare(program, dict(x=x, ids=ids), dict(
            y=flat + wide["fc.bias"], bare=flat, e=flat, a=c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * wide["ln.gamma"] + wide["ln.beta"],
            b=y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-6) * wide["rms.weight"], c=wide["word.weight"][ids],
            d=y * wide["half"] + wide["count"]), "--weights", path)


@group
def empty():
    # A sum over nothing is 0, by whatever its terms are divided: sqrt(E) is 0 here, and so are the norms n and l.
    program = compile("empty", """
model m(q: f32[N, E], k: f32[M, E], v: f32[M, F]) {
  s[i,j] = sum(e) q[i,e] * k[j,e] / sqrt(E)
  mu[i] = mean(j) s[i,j]
  d[i,j] = s[i,j] - mu[i]
  y[i,j] = d[i,j] / sqrt((mean(j) d[i,j]^2) + 1e-5)
  a[i,f] = sum(j) s[i,j] * v[j,f]
  b = sum(i) (sum(e) q[i,e] / E)
  n[i] = sqrt(sum(e) q[i,e]^2)
  l[j] = sqrt(sum(e) k[j,e]^2)
  c[i,f] = sum(j) (sum(e) q[i,e] * k[j,e] / (n[i] * l[j])) * v[j,f]
  o[i,f] = sum(j) (softmax(j) sum(e) q[i,e] * k[j,e] / (n[i] * l[j])) * v[j,f]
  p[i,f] = sum(j) (softmax(j where j <= i) s[i,j]) * v[j,f]
  return y, a, b, c, o, p
}""")
    for n, m, f, e in ((3, 5, 4, 0), (30, 50, 4, 0), (50, 2, 2, 0), (50, 0, 2, 0), (50, 0, 2, 3), (4, 5, 3, 2), (50, 40, 3, 2)):
        q, k, v = f32(n, e), f32(m, e), f32(m, f)
        x, z, w = (t.astype(np.float64) for t in (q, k, v))
        s = x @ z.T / np.sqrt(max(e, 1))
        d = s - (s.mean(1, keepdims=True) if m else 0)
        norm = lambda t: np.sqrt((t * t).sum(1)) if e else np.ones(len(t))
        c = x @ z.T / norm(x)[:, None] / norm(z)
        causal = np.arange(m)[None, :] <= np.arange(n)[:, None]
        compare(program, dict(q=q, k=k, v=v), dict(
            y=d / np.sqrt(((d * d).mean(1, keepdims=True) if m else 0) + 1e-5), a=s @ w, b=x.sum() / max(e, 1), c=c @ w,
            o=softmax(c, True) @ w, p=softmax(s, causal) @ w))


@group
def sums():
    # Results of one shape and type: their sums start from one zero, in memory of their own.
    for backend in "halide", "reference":
        program = compile("sums-" + backend, """
model m(c: i8[N], keep: bool[N], k: i32[N]) {
  count = sum(i) keep[i]
  s = sum(i) c[i]
  t = sum(i) k[i]
  d = sum(i) c[i] * c[i]
  return count, s, d, t
}""", "--backend=" + backend)
        for n in (0, 1, 7, 64):
            c, keep, k = ints(-128, 128, n, dtype=np.int8), rng.uniform(size=n) < 0.5, ints(-9, 9, n)
            wide = c.astype(np.int64)
            compare(program, dict(c=c, keep=keep, k=k), dict(
                count=np.int32(keep.sum()), s=np.int32(wide.sum()), d=np.int32((wide * wide).sum()), t=np.int32(k.sum())))


def close(program, inputs, expected, tolerance):
    """Every element by itself, not against the largest; signs of zeros too."""
    got = outputs(program, inputs, expected)
    if not isinstance(got, dict):
        return expect(False, got.stderr)
    for name, want in expected.items():
        have, want = got[name], want.astype(np.float32)
        finite = np.isfinite(want)
        with np.errstate(all="ignore"):
            error = np.abs(have.astype(np.float64) - want) / np.abs(want)
            # Results below the least normal number may be 0.
            error = np.where(np.abs(want) < 1.2e-38, np.abs(have) >= 1.3e-38, error)
        bad = np.where(finite & np.isfinite(have), error > tolerance, ~((have == want) | (np.isnan(have) & np.isnan(want))))
        bad |= ~np.isnan(want) & (np.signbit(have) != np.signbit(want))
        places = np.flatnonzero(bad)[:8]
        expect(not bad.any(), f"{program}: {name} at {places} of {[v[places] for v in inputs.values()]}: {have[places]}, "
               f"expected {want[places]}; largest error {error[finite].max(initial=0):.3g}")


@group
def near():
    program = compile("near", "model m(x: f32[N]) { return a = expm1(x), b = log1p(x), c = elu(x) }")
    with np.errstate(all="ignore"):
        x = np.concatenate([10.0 ** rng.uniform(-37, 1.9, 4000) * rng.choice([-1, 1], 4000), rng.uniform(-1, 1, 4000)]).astype(np.float32)
        edges = np.array([0.5, -0.5, 0, -0.0, 1e-38, -1e-38, np.nan, np.inf, -np.inf, -1, -2, 89, 90, -90, 3e38, -3e38], np.float32)
        for x in (x, edges, edges[:3], np.nextafter(edges, np.float32(0))):
            y = x.astype(np.float64)
            close(program, dict(x=x), dict(a=np.expm1(y), b=np.log1p(y)), 4e-7)
            y = y[y != 0]  # which zero the less of 0 and -0 is, is open
            close(program, dict(x=y.astype(np.float32)), dict(c=np.where(y > 0, y, np.expm1(y))), 4e-7)


@group
def powers():
    program = compile("powers", "model m(x: f32[N], y: f32[N]) { return p = x ^ y, q = x ^ 5, r = x ^ -2, s = x ^ 0.5, t = x ^ -3 }")
    special = [np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 5, -5, 1e30, -1e30, 16777217, 2.5, -2.5]
    grid = np.array(np.meshgrid(special, special), np.float32).reshape(2, -1)
    some = np.array([rng.uniform(0.01, 20, 2000), rng.uniform(-10, 10, 2000)], np.float32)
    for x, y in (grid, some, grid[:, :3]):
        wide, by = x.astype(np.float64), y.astype(np.float64)
        with np.errstate(all="ignore"):
            # The error is that of the logarithm, times the exponent.
            close(program, dict(x=x, y=y), dict(p=wide ** by, q=wide ** 5, r=wide ** -2.0, s=np.power(wide, np.full_like(wide, 0.5)),
                                                 t=wide ** -3.0), 1e-5)


run_wanted()
