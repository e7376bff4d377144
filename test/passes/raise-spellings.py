# One attention, however it is spelled: every source below must be raised, or left alone for the reason given.
# RUN: %python %s %heed_bin/heed-frontend-test heed-opt %t
"""Sources in the language, so that the IR is the front end's own."""
import re
import subprocess
import sys

HEAD = "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F]) {\n"
SCORE = "  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b,h,j,e] / sqrt(E)\n"
VALUE = "  return o[b,h,i,f] = sum(j) p[b,h,i,j] * v[b,h,j,f]\n}\n"
LENGTH = "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F], length: i32[B]) {\n"

SINK = "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F], t: f32[H]) {\n"
GROUPS = "(q: f32[B, H, N, E], k: f32[B, G, M, E], v: f32[B, G, M, F]) {\n"

# name, source after `model m`, what the op must show
RAISED = [
    ("scale-after", HEAD + SCORE + "  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n" + VALUE, "normalise(exp divide stabilise)"),
    ("scale-on-q", HEAD + "  r[b,h,i,e] = q[b,h,i,e] * 0.125\n  s[b,h,i,j] = sum(e) r[b,h,i,e] * k[b,h,j,e]\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n" + VALUE, "normalise(exp divide stabilise)"),
    ("where", LENGTH + SCORE + "  p[b,h,i,j] = softmax(j where j < length[b] and j <= i) s[b,h,i,j]\n" + VALUE, "where ("),
    ("additive-mask", LENGTH + SCORE + "  t[b,h,i,j] = s[b,h,i,j] + (if j < length[b] then 0.0 else -inf)\n  p[b,h,i,j] = softmax(j) t[b,h,i,j]\n" + VALUE, "where ("),
    ("select-mask", HEAD + SCORE + "  t[b,h,i,j] = if j <= i then s[b,h,i,j] else -inf\n  p[b,h,i,j] = softmax(j) t[b,h,i,j]\n" + VALUE, "where ("),
    ("soft-cap", HEAD + SCORE + "  t[b,h,i,j] = 50.0 * tanh(s[b,h,i,j] / 50.0)\n  p[b,h,i,j] = softmax(j) t[b,h,i,j]\n" + VALUE, "math.tanh"),
    ("bias", "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F], c: f32[H, N, M]) {\n" + SCORE + "  p[b,h,i,j] = softmax(j) (s[b,h,i,j] + c[h,i,j])\n" + VALUE, "tensor.extract"),
    ("written-out", HEAD + SCORE + "  m[b,h,i] = max(j) s[b,h,i,j]\n  w[b,h,i,j] = exp(s[b,h,i,j] - m[b,h,i])\n  l[b,h,i] = sum(j) w[b,h,i,j]\n  p[b,h,i,j] = w[b,h,i,j] / l[b,h,i]\n" + VALUE, "normalise(exp divide stabilise)"),
    ("divided-after", HEAD + SCORE + "  m[b,h,i] = max(j) s[b,h,i,j]\n  w[b,h,i,j] = exp(s[b,h,i,j] - m[b,h,i])\n  l[b,h,i] = sum(j) w[b,h,i,j]\n  return o[b,h,i,f] = (sum(j) w[b,h,i,j] * v[b,h,j,f]) / l[b,h,i]\n}\n", "normalise(exp divide stabilise)"),
    ("transposed-key", "(q: f32[B, H, N, E], k: f32[B, H, E, M], v: f32[B, H, M, F]) {\n  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b,h,e,j]\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n" + VALUE, "normalise(exp divide stabilise)"),
    ("sigmoid", HEAD + SCORE + "  p[b,h,i,j] = sigmoid(s[b,h,i,j])\n" + VALUE, "normalise(sigmoid"),
    ("two-terms", "(q, a: f32[B, H, N, E], k, c: f32[B, H, M, E], v: f32[B, H, M, F]) {\n  s[b,h,i,j] = (sum(e) q[b,h,i,e] * k[b,h,j,e]) + (sum(e) a[b,h,i,e] * c[b,h,j,e])\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n" + VALUE, "normalise(exp divide stabilise)"),
    ("factor-after", HEAD + SCORE + "  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n  r[b,h,i,j] = p[b,h,i,j] * f32(1 + i)\n  return o[b,h,i,f] = sum(j) r[b,h,i,j] * v[b,h,j,f]\n}\n", "weight ("),
    ("additive-attention", "(q: f32[B, N, E], k: f32[B, M, E], u: f32[E], v: f32[B, M, F]) {\n  s[b,i,j] = sum(e) u[e] * tanh(q[b,i,e] + k[b,j,e])\n  p[b,i,j] = softmax(j) s[b,i,j]\n  return o[b,i,f] = sum(j) p[b,i,j] * v[b,j,f]\n}\n", "math.tanh"),
    ("exp-over-sum", HEAD + SCORE + "  w[b,h,i,j] = exp(s[b,h,i,j])\n  return o[b,h,i,f] = (sum(j) w[b,h,i,j] * v[b,h,j,f]) / (sum(j) w[b,h,i,j])\n}\n", "normalise(exp divide)"),
    ("exp2", HEAD + SCORE + "  t[b,h,i,j] = s[b,h,i,j] * 1.4426950408889634\n  m[b,h,i] = max(j) t[b,h,i,j]\n  w[b,h,i,j] = exp2(t[b,h,i,j] - m[b,h,i])\n  l[b,h,i] = sum(j) w[b,h,i,j]\n  p[b,h,i,j] = w[b,h,i,j] / l[b,h,i]\n" + VALUE, "normalise(exp divide stabilise)"),
    ("reciprocal", HEAD + SCORE + "  m[b,h,i] = max(j) s[b,h,i,j]\n  w[b,h,i,j] = exp(s[b,h,i,j] - m[b,h,i])\n  r[b,h,i] = 1.0 / (sum(j) w[b,h,i,j])\n  p[b,h,i,j] = w[b,h,i,j] * r[b,h,i]\n" + VALUE, "normalise(exp divide stabilise)"),
    ("written-out-masked", HEAD + SCORE + "  t[b,h,i,j] = if j <= i then s[b,h,i,j] else -inf\n  m[b,h,i] = max(j) t[b,h,i,j]\n  w[b,h,i,j] = exp(t[b,h,i,j] - m[b,h,i])\n  l[b,h,i] = sum(j) w[b,h,i,j]\n  p[b,h,i,j] = w[b,h,i,j] / l[b,h,i]\n" + VALUE, "empty("),
    ("written-out-where", HEAD + SCORE + "  m[b,h,i] = max(j where j <= i) s[b,h,i,j]\n  l[b,h,i] = sum(j where j <= i) exp(s[b,h,i,j] - m[b,h,i])\n  return o[b,h,i,f] = (sum(j where j <= i) exp(s[b,h,i,j] - m[b,h,i]) * v[b,h,j,f]) / l[b,h,i]\n}\n", "where ("),
    ("sink", SINK + SCORE + "  p[b,h,i,j] = softmax(j where j <= i; sink = t[h]) s[b,h,i,j]\n" + VALUE, "sink("),
    ("sink-written-out", SINK + SCORE + "  m[b,h,i] = max(max(j) s[b,h,i,j], t[h])\n  w[b,h,i,j] = exp(s[b,h,i,j] - m[b,h,i])\n  l[b,h,i] = (sum(j) w[b,h,i,j]) + exp(t[h] - m[b,h,i])\n  p[b,h,i,j] = w[b,h,i,j] / l[b,h,i]\n" + VALUE, "sink("),
    ("one-more", HEAD + SCORE + "  l[b,h,i] = 1.0 + (sum(j) exp(s[b,h,i,j]))\n  p[b,h,i,j] = exp(s[b,h,i,j]) / l[b,h,i]\n" + VALUE, "sink("),
    ("scale-root-of-root", HEAD + "  r[b,h,i,e] = q[b,h,i,e] / sqrt(sqrt(E))\n  t[b,h,j,e] = k[b,h,j,e] / sqrt(sqrt(E))\n  s[b,h,i,j] = sum(e) r[b,h,i,e] * t[b,h,j,e]\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n" + VALUE, "normalise(exp divide stabilise)"),
    ("scale-after-mask", HEAD + "  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b,h,j,e]\n  t[b,h,i,j] = (if j <= i then s[b,h,i,j] else -inf) / sqrt(E)\n  p[b,h,i,j] = softmax(j) t[b,h,i,j]\n" + VALUE, "where ("),
    ("run-time-scale", "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F]; tau: f32) {\n  s[b,h,i,j] = (sum(e) q[b,h,i,e] * k[b,h,j,e]) / tau\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n" + VALUE, "normalise(exp divide stabilise)"),
    ("additive-mask-table", HEAD + SCORE + "  a[i:N,j:M] = if j <= i then 0.0 else -inf\n  t[b,h,i,j] = s[b,h,i,j] + a[i,j]\n  p[b,h,i,j] = softmax(j) t[b,h,i,j]\n" + VALUE, "where ("),
    ("mask-input", "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F], mask: bool[B, N, M]) {\n" + SCORE + "  t[b,h,i,j] = if mask[b,i,j] then -inf else s[b,h,i,j]\n  p[b,h,i,j] = softmax(j) t[b,h,i,j]\n" + VALUE, "where ("),
    ("triangle-of-bools", HEAD + SCORE + "  row[i:N] = i\n  col[j:M] = j\n  low[i,j] = col[j] <= row[i]\n  t[b,h,i,j] = if low[i,j] then s[b,h,i,j] else -inf\n  p[b,h,i,j] = softmax(j) t[b,h,i,j]\n" + VALUE, "where ("),
    ("finite-fill", HEAD + SCORE + "  t[b,h,i,j] = if j <= i then s[b,h,i,j] else -1e9\n  p[b,h,i,j] = softmax(j) t[b,h,i,j]\n" + VALUE, "-1.000000e+09"),
    ("transposed-key-op", HEAD + "  t[b,h,e,j] = k[b,h,j,e]\n  s[b,h,i,j] = sum(e) q[b,h,i,e] * t[b,h,e,j]\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n" + VALUE, "(d0, d1, d3, d4)"),
    ("grouped-heads", GROUPS + "  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b,h*G/H,j,e]\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n  return o[b,h,i,f] = sum(j) p[b,h,i,j] * v[b,h*G/H,j,f]\n}\n", "floordiv"),
    ("repeated-heads", GROUPS + "  dim R = H / G\n  x[b,g,r:R,j,e] = k[b,g,j,e]\n  y[b,g,r:R,j,f] = v[b,g,j,f]\n  kr[b, g*R + r, j, e] = x[b,g,r,j,e]\n  vr[b, g*R + r, j, f] = y[b,g,r,j,f]\n  s[b,h,i,j] = sum(e) q[b,h,i,e] * kr[b,h,j,e]\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n  return o[b,h,i,f] = sum(j) p[b,h,i,j] * vr[b,h,j,f]\n}\n", "floordiv"),
    ("heads-in-the-batch", HEAD + "  x[b*H + h, i, e] = q[b,h,i,e]\n  y[b*H + h, j, e] = k[b,h,j,e]\n  z[b*H + h, j, f] = v[b,h,j,f]\n  s[g,i,j] = (sum(e) x[g,i,e] * y[g,j,e]) / sqrt(E)\n  p[g,i,j] = softmax(j) s[g,i,j]\n  o[g,i,f] = sum(j) p[g,i,j] * z[g,j,f]\n  return r[b:B,h:H,i,f] = o[b*H + h, i, f]\n}\n", "batch = 1"),
    ("scores-reshaped", "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F], a: f32[B, N, M]) {\n" + SCORE + "  t[b,h,i,j] = s[b,h,i,j] + a[b,i,j]\n  x[b*H + h, i, j] = t[b,h,i,j]\n  y[b*H + h, j, f] = v[b,h,j,f]\n  p[g,i,j] = softmax(j) x[g,i,j]\n  return o[g,i,f] = sum(j) p[g,i,j] * y[g,j,f]\n}\n", "batch = 1"),
    ("fused-projection", "(x: f32[B, N, D]; heads = 2) {\n  dim E = D / 6\n  s[b,h:heads,i:N,j:N] = sum(e:E) x[b,i,h*E + e] * x[b,j,heads*E + h*E + e] / sqrt(E)\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n  o[b,h,i,e:E] = sum(j) p[b,h,i,j] * x[b,j,2*heads*E + h*E + e]\n  return y[b,i,h*E + e] = o[b,h,i,e]\n}\n", "result_map"),
    ("sequence-first", "(q: f32[N, B, H, E], k: f32[M, B, H, E], v: f32[M, B, H, F]) {\n  s[b,h,i,j] = sum(e) q[i,b,h,e] * k[j,b,h,e] / sqrt(E)\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n  return o[i,b,h,f] = sum(j) p[b,h,i,j] * v[j,b,h,f]\n}\n", "(d2, d0, d1, d4)"),
    ("query-and-key-shifted", "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F], u, w: f32[H, E]) {\n  s[b,h,i,j] = sum(e) (q[b,h,i,e] + u[h,e]) * (k[b,h,j,e] + w[h,e])\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n" + VALUE, "normalise(exp divide stabilise)"),
    ("relative-term", "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F], r: f32[N+M, E]) {\n  s[b,h,i,j] = sum(e) q[b,h,i,e] * (k[b,h,j,e] + r[j - i + N, e])\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n" + VALUE, "d3 - d2 + s0"),
    ("two-relative-terms", "(q: f32[B, H, N, E], k: f32[B, H, N, E], v: f32[B, H, N, F], x, y: f32[H, 2*R, E]) {\n  a[b,h,i,j] = sum(e) q[b,h,i,e] * k[b,h,j,e]\n  c[b,h,i,j:N] = sum(e) q[b,h,i,e] * x[h, clamp(i - j + R, 0, 2*R - 1), e]\n  d[b,h,i:N,j] = sum(e) k[b,h,j,e] * y[h, clamp(j - i + R, 0, 2*R - 1), e]\n  s[b,h,i,j] = (a[b,h,i,j] + c[b,h,i,j] + d[b,h,i,j]) / sqrt(3*E)\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n" + VALUE, "normalise(exp divide stabilise)"),
    ("scores-of-sides", "(x: f32[N, H], y: f32[M, H], v: f32[M, H, F], keep: bool[N, M]) {\n  t[h,i,j] = x[i,h] + y[j,h]\n  s[h,i,j] = max(t[h,i,j], 0.2 * t[h,i,j])\n  p[h,i,j] = softmax(j where keep[i,j]) s[h,i,j]\n  return o[i,h,f] = sum(j) p[h,i,j] * v[j,h,f]\n}\n", "maximumf"),
    ("cosine", HEAD + "  x[b,h,i] = sqrt(sum(e) q[b,h,i,e]^2)\n  y[b,h,j] = sqrt(sum(e) k[b,h,j,e]^2)\n  s[b,h,i,j] = (sum(e) q[b,h,i,e] * k[b,h,j,e]) / (x[b,h,i] * y[b,h,j])\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n" + VALUE, "normalise(exp divide stabilise)"),
    ("distance", HEAD + "  s[b,h,i,j] = -(sum(e) (q[b,h,i,e] - k[b,h,j,e])^2)\n  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n" + VALUE, "normalise(exp divide stabilise)"),
    ("relu-squared", HEAD + SCORE + "  p[b,h,i,j] = max(s[b,h,i,j], 0.0)^2\n" + VALUE, "normalise(identity)"),
    ("sigmoid-written-out", HEAD + SCORE + "  p[b,h,i,j] = 1.0 / (1.0 + exp(-s[b,h,i,j]))\n" + VALUE, "normalise(sigmoid"),
    ("f16", "(q: f16[B, H, N, E], k: f16[B, H, M, E], v: f16[B, H, M, F]) {\n" + SCORE + "  t[b,h,i,j] = softmax(j) f32(s[b,h,i,j])\n  p[b,h,i,j] = f16(t[b,h,i,j])\n" + VALUE, "arith.truncf"),
    ("two-key-dims", "(q: f32[B, Y, X, E], k: f32[B, Z, W, E], v: f32[B, Z, W, F]) {\n  s[b,y,x,z,w] = sum(e) q[b,y,x,e] * k[b,z,w,e]\n  p[b,y,x,z,w] = softmax(z, w) s[b,y,x,z,w]\n  return o[b,y,x,f] = sum(z, w) p[b,y,x,z,w] * v[b,z,w,f]\n}\n", "key = 2"),
    ("one-query", "(q: f32[B, H, E], k: f32[B, H, M, E], v: f32[B, H, M, F], length: i32[B]) {\n  s[b,h,j] = sum(e) q[b,h,e] * k[b,h,j,e] / sqrt(E)\n  p[b,h,j] = softmax(j where j < length[b]) s[b,h,j]\n  return o[b,h,f] = sum(j) p[b,h,j] * v[b,h,j,f]\n}\n", "query = 0"),
    ("everything", "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F], c: f32[H, N, M], t: f32[H]) {\n" + SCORE + "  x[b,h,i,j] = 30.0 * tanh((s[b,h,i,j] + c[h,i,j]) / 30.0)\n  y[b,h,i,j] = if abs(i - j) < 5 then x[b,h,i,j] else -inf\n  p[b,h,i,j] = softmax(j where j <= i; sink = t[h]) y[b,h,i,j]\n" + VALUE, "sink("),
]
# Keys of all heads, as many as queries: no feed-forward layer, nor where a normaliser runs over them.
SHARED = "(q: f32[H, N, E], k: f32[%(m)s, E], v: f32[%(m)s, F]) {\n  s[h,i,j] = sum(e) q[h,i,e] * k[j,e]\n  p[h,i,j] = %(p)s\n  return o[h,i,f] = sum(j) p[h,i,j] * v[j,f]\n}\n"
RAISED += [
    ("shared-keys", SHARED % dict(m="N", p="max(s[h,i,j], 0.0)"), "normalise(relu)"),
    ("one-head", "(q: f32[N, E], k: f32[M, E], v: f32[M, F]) {\n  s[i,j] = sum(e) q[i,e] * k[j,e]\n  return o[i,f] = sum(j) max(s[i,j], 0.0) * v[j,f]\n}\n", "normalise(relu)"),
    ("one-head-of-itself", "(q: f32[N, E], k: f32[N, E], v: f32[F, N]) {\n  s[i,j] = sum(e) q[i,e] * k[j,e]\n  return o[i,f] = sum(j) max(s[i,j], 0.0) * v[f,j]\n}\n", "normalise(relu)"),
    ("shared-keys-softmax", SHARED % dict(m="M", p="softmax(j) s[h,i,j]"), "normalise(exp divide"),
]
# A mask of numbers that is summed with the exponentials, before or behind them, of keys under a condition, and beside a factor that is not.
MASKED = "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F], w: f32[H, N, M], g: f32[B, M]) {\n" + SCORE
RAISED += [
    ("soft-mask", MASKED + "  x[b,h,i,j] = w[h,i,j] * exp(s[b,h,i,j])\n  return o[b,h,i,f] = (sum(j) x[b,h,i,j] * v[b,h,j,f]) / (sum(j) x[b,h,i,j])\n}\n", "normalise(identity divide)"),
    ("soft-mask-behind", MASKED + "  l[b,h,i] = sum(j) w[h,i,j] * exp(s[b,h,i,j])\n  return o[b,h,i,f] = (sum(j) exp(s[b,h,i,j]) * v[b,h,j,f] * w[h,i,j]) / l[b,h,i]\n}\n", "normalise(identity divide)"),
    ("soft-mask-below", MASKED + "  x[b,h,i,j] = exp(s[b,h,i,j]) / w[h,i,j]\n  l[b,h,i] = sum(j) x[b,h,i,j]\n  p[b,h,i,j] = x[b,h,i,j] / l[b,h,i]\n" + VALUE, "normalise(identity divide)"),
    ("soft-mask-where", MASKED + "  x[b,h,i,j] = w[h,i,j] * exp(s[b,h,i,j])\n  return o[b,h,i,f] = (sum(j where j < i) x[b,h,i,j] * v[b,h,j,f]) / (sum(j where j < i) x[b,h,i,j])\n}\n", "empty("),
    ("soft-mask-where-by-element", MASKED + "  x[b,h,i,j] = w[h,i,j] * exp(s[b,h,i,j])\n  l[b,h,i] = sum(j where j < i) x[b,h,i,j]\n  return o[b,h,i,f] = sum(j where j < i) x[b,h,i,j] / l[b,h,i] * v[b,h,j,f]\n}\n", "normalise(identity divide)"),
    ("soft-mask-and-gate", MASKED + "  l[b,h,i] = sum(j) w[h,i,j] * exp(s[b,h,i,j])\n  p[b,h,i,j] = w[h,i,j] * exp(s[b,h,i,j]) * g[b,j] / l[b,h,i]\n" + VALUE, "weight ("),
    ("gate-not-summed", MASKED + "  l[b,h,i] = sum(j) exp(s[b,h,i,j])\n  p[b,h,i,j] = w[h,i,j] * exp(s[b,h,i,j]) / l[b,h,i]\n" + VALUE, "normalise(exp divide)"),
    ("soft-mask-of-relu", MASKED + "  l[b,h,i] = sum(j) relu(s[b,h,i,j])\n  p[b,h,i,j] = w[h,i,j] * relu(s[b,h,i,j]) / l[b,h,i]\n" + VALUE, "normalise(relu divide)"),
]
LEFT = [
    ("weights-returned", HEAD + SCORE + "  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n  return o[b,h,i,f] = sum(j) p[b,h,i,j] * v[b,h,j,f], p\n}\n", "the weights are read elsewhere too"),
    ("scores-given", "(s: f32[N, M], v: f32[M, F]) {\n  p[i,j] = softmax(j) s[i,j]\n  return o[i,f] = sum(j) p[i,j] * v[j,f]\n}\n", "no contraction of queries with keys in the score"),
    ("heads-mix", "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F], w: f32[H, H]) {\n" + SCORE + "  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n  r[b,h,i,j] = sum(g) w[h,g] * p[b,g,i,j]\n  return o[b,h,i,f] = sum(j) r[b,h,i,j] * v[b,h,j,f]\n}\n", "heads mix"),
    ("other-maximum-beside-the-sink", HEAD + SCORE + "  m[b,h,i] = max(j) s[b,h,i,j]\n  w[b,h,i,j] = exp(s[b,h,i,j] - m[b,h,i])\n  l[b,h,i] = (sum(j) w[b,h,i,j]) + exp(-m[b,h,i])\n  p[b,h,i,j] = w[b,h,i,j] / l[b,h,i]\n" + VALUE, "subtracts another maximum"),
    ("condition-after-the-division", HEAD + SCORE + "  m[b,h,i] = max(j where j <= i) s[b,h,i,j]\n  l[b,h,i] = sum(j where j <= i) exp(s[b,h,i,j] - m[b,h,i])\n  return o[b,h,i,f] = sum(j where j <= i) exp(s[b,h,i,j] - m[b,h,i]) / l[b,h,i] * v[b,h,j,f]\n}\n", "divided before a sum that has a condition"),
    # A weight of 0 is no absence: a NaN in a value that it is multiplied with shows.
    ("weight-of-0", HEAD + SCORE + "  w[b,h,i,j] = if j <= i then exp(s[b,h,i,j]) else 0.0\n  p[b,h,i,j] = w[b,h,i,j] / (sum(j) w[b,h,i,j])\n" + VALUE, "it cannot be proven equal: "),
    ("feed-forward", "(x: f32[N, D]) {\n  param a: f32[K, D] @ \"a\"\n  param c: f32[K, D] @ \"c\"\n  h[n,k] = sum(d) x[n,d] * a[k,d]\n  return y[n,d] = sum(k) max(h[n,k], 0.0) * c[k,d]\n}\n", "a feed-forward layer"),
    ("values-projected", "(x: f32[N, D]) {\n  param w: f32[F, D] @ \"w\"\n  param c: f32[F] @ \"c\"\n  v[j,f] = (sum(d) x[j,d] * w[f,d]) + c[f]\n  a[i,j] = sum(d) x[i,d] * x[j,d]\n  return o[i,f] = sum(j) a[i,j] * v[j,f]\n}\n", "its queries are parameters"),
    ("feed-forward-of-inputs", "(x: f32[B, N, D], a: f32[K, D], c: f32[D, K]) {\n  h[b,n,k] = sum(d) x[b,n,d] * a[k,d]\n  return y[b,n,d] = sum(k) max(h[b,n,k], 0.0) * c[d,k]\n}\n", "all rows share its keys"),
    ("feed-forward-of-one-batch", "(x: f32[N, D], a: f32[K, D], c: f32[D, K]) {\n  h[n,k] = sum(d) x[n,d] * a[k,d]\n  return y[n,d] = sum(k) max(h[n,k], 0.0) * c[d,k]\n}\n", "all rows share its keys"),
]


def main():
    frontend, opt, stem = sys.argv[1:4]
    failures = []
    for name, source, wanted in RAISED + LEFT:
        path = f"{stem}-{name}.heed"
        with open(path, "w") as f:
            f.write("model m" + source)
        ir = subprocess.run([frontend, path], capture_output=True, text=True)
        if ir.returncode:
            failures.append(f"{name}: front end: {ir.stderr[:300]}")
            continue
        for passes in (["--attn-raise-attention"], ["--attn-fuse-elementwise", "--attn-raise-attention"]):
            out = subprocess.run([opt, *passes, "--remarks-filter=attn-raise.*"], input=ir.stdout, capture_output=True,
                                 text=True)
            what = f"{name} after {' '.join(passes)}"
            if out.returncode:
                failures.append(f"{what}: {out.stderr[:300]}")
            elif (name, source, wanted) in RAISED:
                if out.stdout.count("attn.attention") != 1 or "attn.softmax" in out.stdout or wanted not in out.stdout:
                    failures.append(f"{what}: expected one attention with '{wanted}'\n{out.stderr[:400]}")
            elif "attn.attention" in out.stdout or wanted not in out.stderr:
                failures.append(f"{what}: expected to be left alone because '{wanted}'\n{out.stderr[:400]}")
    sys.exit("\n".join(failures) if failures else 0)


main()
