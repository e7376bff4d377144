# RUN: %python %s %t
"""Every normaliser of attn.attention, streamed and by row blocks, against float64 NumPy: odd sizes, 1 and 0, masked rows, infinities, NaN."""
import sys

import numpy as np
from kernels import Model

folder = sys.argv[1]
rng = np.random.default_rng(3)
failures = 0

CAUSAL = """where (%h, %i, %j) {
      %d = arith.subi %m, %n : index
      %x = arith.addi %i, %d : index
      %c = arith.cmpi sle, %j, %x : index
      attn.yield %c : i1
    }"""
GATE = """weight (%h, %i, %j : index, %w : f32) {
      %x = tensor.extract %g[%j] : tensor<?xf32>
      %y = arith.mulf %w, %x : f32
      attn.yield %y : f32
    }"""


PLANS = {"streaming": "", "row block": "{attn.plan = #attn.plan<row_block>}",
         "bounded": "{attn.plan = #attn.plan<streaming, [<tiles, queries = 32, block = 64, piece = PIECE>, <bounded, queries = 32, block = 64, piece = PIECE>]>}"}


def source(normalise, algorithm, where, weight, lse):
    return """#q = affine_map<(h, i, j, e, f) -> (h, i, e)>
#k = affine_map<(h, i, j, e, f) -> (h, j, e)>
#v = affine_map<(h, i, j, e, f) -> (h, j, f)>
func.func @attention(%q: tensor<?x?x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>, %g: tensor<?xf32>) -> RESULTS attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x?xf32>
  %n = tensor.dim %q, %c1 : tensor<?x?x?xf32>
  %m = tensor.dim %k, %c1 : tensor<?x?x?xf32>
  %e = tensor.dim %q, %c2 : tensor<?x?x?xf32>
  %f = tensor.dim %v, %c2 : tensor<?x?x?xf32>
  %oLSE = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1) sizes(%b, %n, %m, %e, %f)
    term(%q, %k : tensor<?x?x?xf32>, tensor<?x?x?xf32>) maps [#q, #k]
    value(%v : tensor<?x?x?xf32>) maps [#v]
    score (%h, %i, %j : index, %t : f32) { attn.yield %t : f32 }
    WHERE
    WEIGHT
    normalise(NORMALISE) ALGORITHM : tensor<?x?x?xf32>TYPE
  return %oLSE : RESULTS
}""".replace("WHERE", where).replace("WEIGHT", weight).replace("NORMALISE", normalise).replace("ALGORITHM", PLANS[algorithm]).replace("PIECE", "32" if where else "64").replace(
        "TYPE", ", lse tensor<?x?xf32>" if lse else "").replace("return %oLSE : RESULTS", "return %o, %l : tensor<?x?x?xf32>, tensor<?x?xf32>" if lse else "return %o : tensor<?x?x?xf32>").replace(
        "RESULTS", "(tensor<?x?x?xf32>, tensor<?x?xf32>)" if lse else "tensor<?x?x?xf32>").replace("%oLSE", "%o, %l" if lse else "%o")


def oracle(q, k, v, g, normalise, masked, gated):
    q, k, v, g = (a.astype(np.float64) for a in (q, k, v, g))
    n, m = q.shape[1], k.shape[1]
    live = np.ones((n, m), bool) if not masked else np.arange(m)[None] <= np.arange(n)[:, None] + m - n
    with np.errstate(all="ignore"):
        s = np.where(live, np.einsum("hie,hje->hij", q, k), 0)
        name = normalise.split()[0]
        top = np.zeros(s.shape[:2] + (1,))
        if name == "exp":
            s = np.where(live, s, -np.inf)
            best = np.where(np.isnan(s), -np.inf, s).max(-1, keepdims=True, initial=-np.inf)
            empty = np.isneginf(best) & ~np.isnan(s).any(-1, keepdims=True)
            if "stabilise" in normalise:
                top = np.where(np.isneginf(best), 0, best)
        else:
            empty = np.broadcast_to(~live.any(-1), s.shape[:2])[..., None]
        w = {"exp": np.exp(s - top), "sigmoid": 1 / (1 + np.exp(-s)), "relu": np.maximum(s, 0), "identity": s}[name]
        w = np.where(live & ~empty, w, 0)
        total = w.sum(-1, keepdims=True)
        lse = (top + np.log(total))[..., 0]
        if "divide" in normalise:
            w = np.where(live & ~empty, w / total, 0)
        if gated:
            w = np.where(live & ~empty, w * g, 0)
        counts = np.broadcast_to(live, w.shape) & ~empty
        o = np.einsum("hij,hijf->hif", w, np.where(counts[..., None], v[:, None], 0))
    return o, lse


def check(what, found, expected, tolerance, least=1e-30):
    global failures
    scale = max(np.abs(expected[np.isfinite(expected)]).max(initial=0), least)
    with np.errstate(invalid="ignore"):
        same = (np.isnan(found) & np.isnan(expected)) | (found == expected) | (np.abs(found - expected) <= tolerance * scale)
    if found.shape != expected.shape or not same.all():
        failures += 1
        print(f"{what}: {(~same).sum()} of {same.size} elements differ, first at {np.argwhere(~same)[:1]}")


def draw(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


#        H  N    M    E   F
SIZES = [(1, 1, 1, 1, 1), (2, 7, 9, 8, 5), (1, 50, 33, 1, 17), (1, 33, 150, 16, 1), (1, 130, 130, 9, 33), (1, 3, 0, 4, 4),
         (3, 2, 700, 20, 19), (1, 1, 2500, 64, 48), (2, 515, 530, 20, 19),  # the last one takes the bounded form, where there is one
         (1, 100, 9000, 40, 24)]  # the last one is more than L2 holds: two tiles a task; few queries have a pipeline of their own, whose tasks are parts of the keys
FORMS = [("exp divide stabilise", False), ("exp divide stabilise", True), ("exp", False), ("sigmoid", False), ("sigmoid divide", True),
         ("relu divide", False), ("identity", True), ("exp divide stabilise", False)]
WHOLE = (4, 7)  # without a mask
for algorithm in PLANS:
    for number, (normalise, gated) in enumerate(FORMS):
        if algorithm == "row block" and number in (0, 2, 4, 5, 7) or algorithm == "bounded" and number not in (0, 7):
            continue
        masked = number not in WHOLE
        lse = algorithm != "row block" and normalise == "exp divide stabilise"
        text = source(normalise, algorithm, CAUSAL if masked else "", GATE if gated else "", lse)
        # A row-wise schedule rounds as a whole: Halide's own checks are for tiles that stay inside.
        model = Model(text, f"{folder}/{algorithm.replace(' ', '-')}{number}", checks=False,
                      passes=("--attn-choose-algorithm", "--attn-form-kernels", "--attn-stream-attention", "--attn-to-halide", "--cse"))

        def compare(what, q, k, v, g, tolerance=1e-5):
            o, l = oracle(q, k, v, g, normalise, masked, gated)
            found = model(q, k, v, g)
            check(f"{algorithm} {normalise} {gated} {what}", found[0] if lse else found, o, tolerance)
            if lse:
                check(f"{algorithm} {normalise} {gated} {what} lse", found[1], l, tolerance, 1)  # a sum of two logarithms

        for h, n, m, e, f in SIZES:
            # A sum of numbers of any sign may be near 0, and what is divided by it anything.
            q, k = draw(h, n, e), draw(h, m, e)
            compare((h, n, m, e, f), q, k, draw(h, m, f), draw(m), 1e-4 if normalise == "relu divide" else 1e-5)
        q, k, v, g = draw(1, 20, 8), draw(1, 20, 8), draw(1, 20, 8), draw(20)
        if normalise == "exp divide stabilise":
            compare("scores of 1e4", q * 1e4, k, v, g, 1e-2)
            compare("scores of 1e7", q * 1e7, k, v, g, 1.0)
        q[0, 3, 0] = np.nan  # one row
        v[0, 15, 1] = np.nan  # one column of the rows that see the key
        k[0, 19, 0] = np.inf  # the last row's score; no other row sees it
        compare("with NaN and infinity", q, k, v, g)
sys.exit(failures != 0)
