# REQUIRES: heed-opt
# RUN: %python %s %t
"""Row kernels against NumPy, at sizes around and below one vector, with walls around every array."""
import sys
import warnings

import numpy as np

from guarded import GuardedModel
from runs import expect, finish

warnings.simplefilter("ignore")  # means of nothing
rng = np.random.default_rng(3)
folder = sys.argv[1]


COUNT = "%i = arith.index_cast %D : index to i64\n    %n = arith.sitofp %i : i64 to f32\n    "


def model(width, ops):
    """A function of x[N,D] with the row [N] and full shapes' helpers; `ops` gives the body and the returned value."""
    d = "?" if width is None else str(width)
    full, row = f"tensor<?x{d}xf32>", "tensor<?xf32>"
    sizes = "%N, %D" if width is None else "%N"
    lines, count = [], [0]

    def generic(result, inputs, body, reduce=None):
        count[0] += 1
        out, init = f"%v{count[0]}", "%e" if result == full else "%r"
        if reduce is not None:
            init = f"%i{count[0]}"
            lines.append(f"  {init} = linalg.fill ins({reduce} : f32) outs(%r : {row}) -> {row}")
        maps = ["#full" if t == full else "#row" for _, t in inputs] + ["#full" if result == full else "#row"]
        args = ", ".join([f"%a{k}: f32" for k in range(len(inputs))] + ["%o: f32"])
        kinds = '"parallel", "reduction"' if reduce is not None else '"parallel", "parallel"'
        lines.append(f"""  {out} = linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = [{kinds}]}}
      ins({", ".join(v for v, _ in inputs)} : {", ".join(t for _, t in inputs)}) outs({init} : {result}) {{
  ^bb0({args}):
    {body}
    linalg.yield %y : f32
  }} -> {result}""")
        return out, result

    value = ops(generic, ("%x", full), full, row, lines)
    body = "\n".join(lines)
    return f"""
#full = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @m(%x: {full}) -> {value[1]} attributes {{attn.model}} {{
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %eps = arith.constant 1.0e-5 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %N = tensor.dim %x, %c0 : {full}
  %D = tensor.dim %x, %c1 : {full}
  %e = tensor.empty({sizes}) : {full}
  %r = tensor.empty(%N) : {row}
{body}
  return {value[0]} : {value[1]}
}}"""


def layer_norm(generic, x, full, row, lines):
    mean = generic(row, [x], "%y = arith.addf %o, %a0 : f32", "%zero")
    square = COUNT + "%m = arith.divf %a1, %n : f32\n    %d = arith.subf %a0, %m : f32\n    "
    var = generic(row, [x, mean], square + "%s = arith.mulf %d, %d : f32\n    %y = arith.addf %o, %s : f32", "%zero")
    return generic(full, [x, mean, var], square + """%v = arith.divf %a2, %n : f32
    %w = arith.addf %v, %eps : f32
    %q = math.sqrt %w : f32
    %y = arith.divf %d, %q : f32""")


def rms_norm(generic, x, full, row, lines):
    var = generic(row, [x], "%s = arith.mulf %a0, %a0 : f32\n    %y = arith.addf %o, %s : f32", "%zero")
    return generic(full, [x, var], COUNT + """%v = arith.divf %a1, %n : f32
    %w = arith.addf %v, %eps : f32
    %q = math.sqrt %w : f32
    %y = arith.divf %a0, %q : f32""")


def softmax(generic, x, full, row, lines):
    live = full.replace("f32", "i1")
    lines.append(f"  %p, %live = attn.softmax %x axes([1]) : {full}, {live}")
    return "%p", full


def highest(generic, x, full, row, lines):
    return generic(row, [x], "%y = arith.maximumf %o, %a0 : f32", "%low")


# The mean over the first axis: lanes are what stays.
POOL = """
func.func @m(%x: tensor<?x?xf32>) -> tensor<?xf32> attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %D = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%D) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(d, n) -> (n, d)>, affine_map<(d, n) -> (d)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = arith.addf %o, %a : f32
    linalg.yield %y : f32
  } -> tensor<?xf32>
  return %p : tensor<?xf32>
}"""


def check(name, text, widths, reference):
    kernels = GuardedModel(text, f"{folder}/{name}", checks=False)
    for n in (0, 1, 2, 7, 9, 33):
        for d in widths:
            x = rng.uniform(-3, 3, (n, d)).astype(np.float32)
            if name.startswith("highest") and n > 1 and d > 1:
                x[1, d // 2] = np.nan
            with np.errstate(all="ignore"):
                wanted = reference(x.astype(np.float64))
            for out in kernels.both(x):
                expect(np.array_equal(np.isnan(out), np.isnan(wanted)), f"{name} {x.shape}: NaN elsewhere")
                error = np.nanmax(np.abs(out - wanted), initial=0) if np.isfinite(wanted).any() else 0
                expect(error < 2e-5, f"{name} {x.shape}: error {error}")


def exp_sum(x):
    e = np.exp(x - x.max(1, keepdims=True, initial=-np.inf))
    return e / e.sum(1, keepdims=True)


ORACLES = [(layer_norm, lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)),
           (rms_norm, lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5)),
           (softmax, exp_sum), (highest, lambda x: x.max(1, initial=-np.inf))]
for ops, oracle in ORACLES:
    check(ops.__name__ + "-dynamic", model(None, ops), (0, 1, 3, 15, 16, 17, 64, 100), oracle)
    for width in (3, 100, 384):
        check(f"{ops.__name__}-{width}", model(width, ops), (width,), oracle)
check("pool", POOL, (0, 1, 3, 16, 17, 100), lambda x: x.sum(0))
finish()
