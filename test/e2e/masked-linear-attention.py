# RUN: %python %s %heed_bin/heedc %t
"""Causal linear attention over keys that fulfil more than a bound: a length, a mask, both. Against sums in NumPy, with NaN in what is masked, in queries that see
nothing and in decays; a cost that grows with the length."""
import sys

import numpy as np

import programs
from runs import finish

programs.start(*sys.argv[1:])
rng = np.random.default_rng(1627)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
LENGTHS = [0, 1, 2, 63, 64, 65, 200]
B, H, E, F = 2, 3, 5, 7


def pairs(q, k, v, keys, left=None, strict=False):
    """sum of left(i, j) (q_i . k_j) v_j over j <= i with keys[b, j]; q, k [B, H, N, E], v [B, H, N, F], left [B or 1, H or 1, N, N]. What is masked is not read."""
    n = q.shape[2]
    o = np.zeros((*q.shape[:3], v.shape[-1]))
    for b in range(q.shape[0]):
        for i in range(n):
            js = [j for j in range(i + 1 - strict) if keys[b, j]]
            if js:
                scores = np.einsum("he,hje->hj", q[b, :, i], k[b][:, js])
                scores = scores if left is None else scores * np.broadcast_to(left, (q.shape[0], q.shape[1], n, n))[b][:, i, js]
                o[b, :, i] = np.einsum("hj,hjf->hf", scores, v[b][:, js])
    return o


def given(n, mask, length=False):
    """Inputs with NaN where keys are masked, and in queries that see none."""
    q, k, v = uniform(B, H, n, E), uniform(B, H, n, E), uniform(B, H, n, F)
    sees = np.stack([np.logical_or.accumulate(mask[b]) for b in range(B)]) if n else mask
    for b in range(B):
        k[b][:, ~mask[b]] = v[b][:, ~mask[b]] = np.nan
        q[b][:, ~sees[b]] = np.nan
    return dict(q=q, k=k, v=v)


def lengths(n):
    length = np.array([0, rng.integers(0, n + 1)], np.int32)
    return dict(length=length), np.arange(n) < length[:, None]


def masks(n):
    ok = rng.uniform(size=(B, n)) < 0.5
    ok[0, :n // 2] = False
    return dict(ok=ok), ok


def check(name, model, mask, oracle, **more):
    program = programs.compile(name, model, "--explain=all", says="a sum over what comes before: a linear attention")
    slow = programs.compile(name + "-reference", model, "--backend=reference")
    for n in LENGTHS:
        extra, keys = mask(n)
        inputs = given(n, keys) | extra | {k: v(n) for k, v in more.items()}
        wide = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in inputs.items()}
        for target in [program, slow] if n < 70 else [program]:
            programs.compare(target, inputs, dict(o=oracle(keys, **wide)))


QKV = "q, k: f32[B, H, N, E], v: f32[B, H, N, F]"
check("lengths", f"model m({QKV}, length: i32[B]) {{ return o[b,h,i:N,f:F] = sum(j:N where j <= i and j < length[b]) (sum(e) q[b,h,i,e] * k[b,h,j,e]) * v[b,h,j,f] }}", lengths,
      lambda keys, q, k, v, length: pairs(q, k, v, keys))
check("masked", f"model m({QKV}, ok: bool[B, N]) {{ return o[b,h,i:N,f:F] = sum(j:N where ok[b,j] and j <= i) (sum(e) q[b,h,i,e] * k[b,h,j,e]) * v[b,h,j,f] }}", masks,
      lambda keys, q, k, v, ok: pairs(q, k, v, keys))
check("strict", f"model m({QKV}, ok: bool[B, N]) {{ return o[b,h,i:N,f:F] = 2 * sum(j:N where j < i and ok[b,j]) (sum(e) q[b,h,i,e] * k[b,h,j,e]) * v[b,h,j,f] }}", masks,
      lambda keys, q, k, v, ok: 2 * pairs(q, k, v, keys, strict=True))
check("normalised", f"""fn phi(x) = elu(x) + 1
model m({QKV}, ok: bool[B, N]) {{
  s[b,h,i,j:N] = sum(e) phi(q[b,h,i,e]) * phi(k[b,h,j,e])
  return o[b,h,i,f] = (sum(j where j <= i and ok[b,j]) s[b,h,i,j] * v[b,h,j,f]) / (1 + sum(j where j <= i and ok[b,j]) s[b,h,i,j])
}}""", masks, lambda keys, q, k, v, ok: (lambda q, k: pairs(q, k, v, keys) / (1 + pairs(q, k, np.ones_like(v[..., :1]), keys)))(
    *(np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))))
powers = lambda gamma, n: np.float64(gamma)[:, None, None] ** np.maximum(np.arange(n)[:, None] - np.arange(n), 0)
check("retention", f"""model m({QKV}, length: i32[B]; gamma: f32[H]) {{
  return o[b,h,i:N,f:F] = sum(j:N where j <= i and j < length[b]) gamma[h]^(i - j) * (sum(e) q[b,h,i,e] * k[b,h,j,e]) * v[b,h,j,f]
}}""", lengths, lambda keys, q, k, v, length, gamma: pairs(q, k, v, keys, powers(gamma, q.shape[2])), gamma=lambda n: np.float32([0.97, 0, 1]))
check("a-number", f"""model m({QKV}, ok: bool[B, N]) {{
  return o[b,h,i:N,f:F] = sum(j:N where j <= i and ok[b,j]) 0.99^(i - j) * (sum(e) q[b,h,i,e] * k[b,h,j,e]) * v[b,h,j,f]
}}""", masks, lambda keys, q, k, v, ok: pairs(q, k, v, keys, powers([0.99] * H, q.shape[2])))
check("gates", f"""model m({QKV}, ok: bool[B, N], g: f32[B, H, N]) {{
  c[b,h,i:N] = sum(j where j <= i) g[b,h,j]
  return o[b,h,i,f:F] = sum(j where j <= i and ok[b,j] and j < N - 1) exp(c[b,h,i] - c[b,h,j]) * (sum(e) q[b,h,i,e] * k[b,h,j,e]) * v[b,h,j,f]
}}""", lambda n: (lambda ok: (dict(ok=ok), ok & (np.arange(n) < n - 1)))(masks(n)[1]),
      lambda keys, q, k, v, ok, g: pairs(q, k, v, keys, np.exp(np.minimum(np.cumsum(g, -1)[..., :, None] - np.cumsum(g, -1)[..., None, :], 0))),
      g=lambda n: -np.abs(uniform(B, H, n)))

# Powers of a number that a call gives may be infinite: zeros before the first key would not stay zeros.
program = programs.compile("given", f"""model m({QKV}, ok: bool[B, N]; gamma: f32[H]) {{
  return o[b,h,i:N,f:F] = sum(j:N where j <= i and ok[b,j]) gamma[h]^(i - j) * (sum(e) q[b,h,i,e] * k[b,h,j,e]) * v[b,h,j,f]
}}""", "--explain=all")
extra, keys = masks(40)
inputs = given(40, keys) | extra | dict(gamma=np.float32([0.5, np.nan, np.inf]))
powers = np.stack([np.ones((40, 40))] * 3) * np.where(np.eye(40, dtype=bool), 1, np.float64([0.5, np.nan, np.inf])[:, None, None] ** np.maximum(np.arange(40)[:, None] - np.arange(40), 1))
with np.errstate(invalid="ignore"):
    expected = pairs(*(inputs[x].astype(np.float64) for x in "qkv"), keys, powers)
first = int(np.argmax(keys[0]))
got = programs.outputs(program, inputs, ["o"])["o"]
programs.expect(np.allclose(got[:, 0], expected[:, 0], atol=1e-4), "a decay of 0.5")
programs.expect(np.allclose(got[0, :, first], expected[0, :, first], atol=1e-5), f"the first key's own query, decayed by nothing: {got[0, :, first]}, {expected[0, :, first]}")
finish()
