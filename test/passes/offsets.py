# RUN: %python %s %t
"""Tables over the offset between key and query, in terms (that meet queries, or keys) and values, against float64 NumPy: both directions, ends, masks, NaN where no query looks."""
import sys

import numpy as np
from kernels import Model
from runs import expect, finish

folder = sys.argv[1]
rng = np.random.default_rng(5)
SOURCE = """#q = affine_map<(h, i, j, e, f)[s] -> (h, i, e)>
#k = affine_map<(h, i, j, e, f)[s] -> (h, j, e)>
#v = affine_map<(h, i, j, e, f)[s] -> (h, j, f)>
#a = affine_map<(h, i, j, e, f)[s] -> (OFFSET, e)>
#b = affine_map<(h, i, j, e, f)[s] -> (h, f, OFFSET)>
func.func @attention(%q: tensor<?x?x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>, %a: tensor<?x?xf32>, %b: tensor<?x?x?xf32>, %s: index) -> tensor<?x?x?xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %h = tensor.dim %q, %c0 : tensor<?x?x?xf32>
  %n = tensor.dim %q, %c1 : tensor<?x?x?xf32>
  %m = tensor.dim %k, %c1 : tensor<?x?x?xf32>
  %e = tensor.dim %q, %c2 : tensor<?x?x?xf32>
  %f = tensor.dim %v, %c2 : tensor<?x?x?xf32>
  %o = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1) sizes(%h, %n, %m, %e, %f) symbols(%s)
    term(%q, %k : tensor<?x?x?xf32>, tensor<?x?x?xf32>) maps [#q, #k]
    term(%SIDE, %a : tensor<?x?x?xf32>, tensor<?x?xf32>) maps [#SIDE, #a]
    value(%v : tensor<?x?x?xf32>) maps [#v]
    value(%b : tensor<?x?x?xf32>) maps [#b]
    score (%l, %i, %j : index, %t, %u : f32) {
      %x = arith.addf %t, %u : f32
      attn.yield %x : f32
    }
    WHERE
    normalise(NORMALISE) : tensor<?x?x?xf32>
  return %o : tensor<?x?x?xf32>
}"""
CAUSAL = """where (%l, %i, %j) {
      %c = arith.cmpi sle, %j, %i : index
      attn.yield %c : i1
    }"""


def draw(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def oracle(q, k, v, a, b, start, sign, causal, softmax, side):
    q, k, v, a, b = (x.astype(np.float64) for x in (q, k, v, a, b))
    n, m, rows = q.shape[1], k.shape[1], a.shape[0]
    at = np.clip(sign * (np.arange(m)[None] - np.arange(n)[:, None]) + start, 0, rows - 1)
    s = np.einsum("hie,hje->hij", q, k) + (np.einsum("hie,ije->hij", q, a[at]) if side == "q" else np.einsum("hje,ije->hij", k, a[at]))
    w = np.exp(s - s.max(-1, keepdims=True, initial=-np.inf)) if softmax else s
    if causal:
        live = np.arange(m)[None] <= np.arange(n)[:, None]
        w = np.where(live, w, 0)
        b = np.nan_to_num(b, nan=0)  # only keys that no query sees have NaN
        v = np.nan_to_num(v, nan=0)
    if softmax:
        w /= w.sum(-1, keepdims=True)
    return np.einsum("hij,hjf->hif", w, v) + np.einsum("hij,hfij->hif", w, b[:, :, at])


def compare(model, what, sign, causal, softmax, side, sizes, rows, start, poison=False):
    h, n, m, e, f = sizes
    q, k, v, a, b = draw(h, n, e), draw(h, m, e), draw(h, m, f), draw(rows, e), draw(h, f, rows)
    if poison:  # offsets of keys behind the query, and their values
        behind = np.arange(rows) > start if sign > 0 else np.arange(rows) < start
        b[:, :, behind] = np.nan
        v[:, n:] = np.nan
    expected = oracle(q, k, v, a, b, start, sign, causal, softmax, side)
    found = model(q, k, v, a, b, np.int64(start))
    error = np.abs(found - expected).max(initial=0) / max(np.abs(expected).max(initial=0), 1e-30)
    expect(found.shape == expected.shape and error < 1e-5, f"{what} {sizes} {rows} rows from {start}: error {error}")


CASES = [(1, False, True, "q"), (-1, True, True, "q"), (1, True, False, "q"), (-1, False, True, "k"), (1, True, True, "k")]
for number, (sign, causal, softmax, side) in enumerate(CASES):
    text = SOURCE.replace("SIDE", side).replace("OFFSET", "j - i + s" if sign > 0 else "i - j + s").replace("WHERE", CAUSAL if causal else "")
    text = text.replace("NORMALISE", "exp divide stabilise" if softmax else "identity")
    model = Model(text, f"{folder}/{number}", checks=False,
                  passes=("--attn-choose-algorithm", "--attn-form-kernels", "--attn-stream-attention", "--attn-to-halide", "--cse"))
    # Rows for some offsets near 0, for one, for all, for far ones alone.
    for rows, start in [(9, 4), (1, 0), (2000, 1000), (40, 120), (40, -80)]:
        for sizes in [(2, 300, 290, 8, 5), (1, 50, 700, 3, 17), (1, 1, 9, 4, 4), (1, 6, 0, 4, 4)]:
            compare(model, number, sign, causal, softmax, side, sizes, rows, start)
    if causal:
        compare(model, "NaN", sign, causal, softmax, side, (1, 200, 290, 8, 5), 33, 16, poison=True)
        compare(model, "NaN", sign, causal, softmax, side, (1, 200, 290, 8, 5), 900, 450, poison=True)
finish()
