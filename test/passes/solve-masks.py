# Ranges that attn-solve-masks derives, against brute force over all pairs, for many sizes and tiles.
# RUN: %python %s heed-opt
"""Each case is a mask in the op's own form and the same in Python. `reach` must hold every key that any query of the
tile sees, `full` only keys that all see; where the solver says `exact` and the mask is one comparison or a
conjunction of bounds on one side, both must be tight."""
import random
import re
import subprocess
import sys

TEMPLATE = """
func.func @f(%q: tensor<2x?x8xf32> {{attn.name = "q", attn.dims = ["2", "N", "8"]}},
             %k: tensor<2x?x8xf32> {{attn.name = "k", attn.dims = ["2", "M", "8"]}},
             %len: tensor<2xi32> {{attn.name = "len"}}, %doc: tensor<?xi32> {{attn.name = "doc"}}, %P: index {{attn.name = "P"}}) -> tensor<2x?x8xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %N = tensor.dim %q, %c1 : tensor<2x?x8xf32>
  %M = tensor.dim %k, %c1 : tensor<2x?x8xf32>
  %o = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1) sizes(%c2, %N, %M, %c8, %c8)
    term(%q, %k : tensor<2x?x8xf32>, tensor<2x?x8xf32>) maps [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d3)>]
    value(%k : tensor<2x?x8xf32>) maps [affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4)>]
    score (%b, %i, %j : index, %t : f32) {{ attn.yield %t : f32 }}
    where (%b, %i, %j) {{
{body}
    }}
    normalise(exp divide stabilise) : tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}}
"""

CAUSAL = """%d = arith.subi %M, %N : index
%x = arith.addi %i, %d : index
%c = arith.cmpi sle, %j, %x : index
"""
WINDOW = """%iw = arith.index_cast %i : index to i64
%jw = arith.index_cast %j : index to i64
%dw = arith.subi %iw, %jw : i64
%aw = math.absi %dw : i64
%w3 = arith.constant 3 : i64
%w = arith.cmpi sle, %aw, %w3 : i64
"""
YIELD = "attn.yield %{} : i1\n"

# name, body, predicate, tight
CASES = [
    ("causal", CAUSAL + YIELD.format("c"), lambda e: e.j <= e.i + (e.M - e.N), True),
    ("window", WINDOW + YIELD.format("w"), lambda e: abs(e.i - e.j) <= 3, True),
    ("causal-window", CAUSAL + WINDOW + "%a = arith.andi %c, %w : i1\n" + YIELD.format("a"),
     lambda e: e.j <= e.i + (e.M - e.N) and abs(e.i - e.j) <= 3, False),
    ("not-window", WINDOW + "%t = arith.constant true\n%a = arith.xori %w, %t : i1\n" + YIELD.format("a"),
     lambda e: not abs(e.i - e.j) <= 3, False),
    ("prefix", CAUSAL + "%p = arith.cmpi slt, %j, %P : index\n%a = arith.ori %c, %p : i1\n" + YIELD.format("a"),
     lambda e: e.j <= e.i + (e.M - e.N) or e.j < e.P, True),
    ("global-and-window", WINDOW + "%p = arith.cmpi slt, %j, %P : index\n%a = arith.ori %w, %p : i1\n" + YIELD.format("a"),
     lambda e: abs(e.i - e.j) <= 3 or e.j < e.P, True),
    ("blocks", "%x = arith.floordivsi %i, %c4 : index\n%y = arith.floordivsi %j, %c4 : index\n%a = arith.cmpi eq, %x, %y : index\n" + YIELD.format("a"),
     lambda e: e.i // 4 == e.j // 4, True),
    ("two-blocks", "%x = arith.floordivsi %i, %c4 : index\n%y = arith.floordivsi %j, %c3 : index\n%z = arith.muli %y, %c2 : index\n%a = arith.cmpi sle, %z, %x : index\n" + YIELD.format("a"),
     lambda e: e.j // 3 * 2 <= e.i // 4, True),
    ("distance-block", "%x = arith.subi %i, %j : index\n%y = arith.floordivsi %x, %c4 : index\n%a = arith.cmpi sle, %y, %c1 : index\n" + YIELD.format("a"),
     lambda e: (e.i - e.j) // 4 <= 1, True),
    ("dilated", WINDOW + "%x = arith.subi %i, %j : index\n%y = arith.floordivsi %x, %c2 : index\n%z = arith.muli %y, %c2 : index\n%r = arith.subi %x, %z : index\n%e = arith.cmpi eq, %r, %c0 : index\n%a = arith.andi %w, %e : i1\n" + YIELD.format("a"),
     lambda e: abs(e.i - e.j) <= 3 and (e.i - e.j) % 2 == 0, False),
    ("length", "%l = tensor.extract %len[%b] : tensor<2xi32>\n%j32 = arith.index_cast %j : index to i32\n%a = arith.cmpi slt, %j32, %l : i32\n" + YIELD.format("a"),
     lambda e: e.j < e.len[e.b0], True),
    ("queries", "%a = arith.cmpi slt, %i, %P : index\n" + YIELD.format("a"), lambda e: e.i < e.P, True),
    ("anti-causal-scaled", "%x = arith.muli %j, %c3 : index\n%y = arith.muli %i, %c2 : index\n%a = arith.cmpi sgt, %x, %y : index\n" + YIELD.format("a"),
     lambda e: e.j * 3 > e.i * 2, True),
    ("sum", "%x = arith.addi %i, %j : index\n%a = arith.cmpi slt, %x, %c7 : index\n" + YIELD.format("a"),
     lambda e: e.i + e.j < 7, True),
    ("either-of-three", CAUSAL.replace("%d", "%dd").replace("sle", "eq") + "%p = arith.cmpi slt, %j, %P : index\n%g = arith.subi %M, %c2 : index\n%h = arith.cmpi sge, %j, %g : index\n%a1 = arith.ori %c, %p : i1\n%a = arith.ori %a1, %h : i1\n" + YIELD.format("a"),
     lambda e: e.j == e.i + (e.M - e.N) or e.j < e.P or e.j >= e.M - 2, False),
    ("documents", "%x = tensor.extract %doc[%i] : tensor<?xi32>\n%y = tensor.extract %doc[%j] : tensor<?xi32>\n%s = arith.cmpi eq, %x, %y : i32\n%d = arith.subi %M, %N : index\n%x2 = arith.addi %i, %d : index\n%c = arith.cmpi sle, %j, %x2 : index\n%a = arith.andi %s, %c : i1\n" + YIELD.format("a"),
     lambda e: e.doc[e.i] == e.doc[e.j] and e.j <= e.i + (e.M - e.N), False),
    ("guarded", "%g = arith.cmpi slt, %j, %P : index\n%a = scf.if %g -> i1 {\n%y = tensor.extract %doc[%j] : tensor<?xi32>\n%z = arith.constant 1 : i32\n%s = arith.cmpi eq, %y, %z : i32\nscf.yield %s : i1\n} else {\n%f = arith.constant false\nscf.yield %f : i1\n}\n" + YIELD.format("a"),
     lambda e: e.j < e.P and e.doc[e.j] == 1, False),
]


class Env(dict):
    __getattr__ = dict.__getitem__


def strings(attribute, key):
    return re.findall(r'"([^"]*)"', re.search(key + r' = \[((?:"[^"]*"(?:, )?)*)\]', attribute).group(1))


def main():
    tool = sys.argv[1]
    rng = random.Random(7)
    bad = 0
    for name, body, predicate, tight in CASES:
        out = subprocess.run([tool, "--attn-solve-masks"], input=TEMPLATE.format(body=body), capture_output=True,
                             text=True)
        if out.returncode:
            sys.exit(f"{name}: heed-opt failed\n{out.stderr}")
        line = re.search(r"attn\.mask = \{.*", out.stdout).group(0)
        reach, full = (strings(line, k) for k in ("reach", "full"))
        unsolved = "exact = false" in line
        if unsolved != (name in ("dilated", "documents", "guarded")):
            sys.exit(f"{name}: exact is wrong: {line}")
        looseness = 0
        for trial in range(300):
            N, M = rng.randint(1, 18), rng.randint(1, 18)
            env = Env(N=N, M=M, P=rng.randint(-2, 20), len=[rng.randint(-1, 20), rng.randint(-1, 20)], b0=rng.randint(0, 1),
                      doc=sorted(rng.randint(0, 3) for _ in range(20)))
            i0 = rng.randint(0, N - 1)
            i1 = min(N - 1, i0 + rng.randint(0, 6))
            env.update(i0=i0, i1=i1, min=min, max=max, abs=abs)
            value = lambda text: eval(text, {}, env)
            pieces = [(value(reach[k]), value(reach[k + 1])) for k in range(0, len(reach), 2)]
            filled = [(value(full[k]), value(full[k + 1])) for k in range(0, len(full), 2)]
            for j in range(M):
                sees = [bool(predicate(Env(env, i=i, j=j))) for i in range(i0, i1 + 1)]
                inside = any(a <= j < b for a, b in pieces)
                whole = any(a <= j < b for a, b in filled)
                if any(sees) and not inside:
                    sys.exit(f"{name}: key {j} is seen but not reached: {dict(N=N, M=M, P=env.P, i0=i0, i1=i1)} {pieces}\n{line}")
                if whole and not all(sees):
                    sys.exit(f"{name}: key {j} is full but not seen by all: {dict(N=N, M=M, P=env.P, i0=i0, i1=i1)} {filled}\n{line}")
                looseness += inside and not any(sees)
                looseness += all(sees) and not whole
        if tight and looseness:
            sys.exit(f"{name}: {looseness} keys more partial than needed\n{line}")
        print(f"{name}: reach {reach} full {full} loose {looseness}")


main()
