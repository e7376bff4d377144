# What attn-solve-masks says of tiles and blocks, against brute force over all pairs.
# RUN: %python %s heed-opt
"""Each case is a mask in the op's own form and the same in Python: chosen ones, and random ones from a grammar (affine
comparisons, floor divisions, reads by i and by j, truth values, reals with NaN, guarded reads, and/or/not). For random
sizes, data, tiles of queries and blocks of keys: a block that has a live pair is reached, and a block that is called full
has no masked pair. Where the case says `tight`, the converse holds too."""
import math
import random
import re
import subprocess
import sys

FUNCTION = """
func.func @f{number}(%q: tensor<2x?x8xf32> {{attn.name = "q", attn.dims = ["2", "N", "8"]}},
             %k: tensor<2x?x8xf32> {{attn.name = "k", attn.dims = ["2", "M", "8"]}},
             %len: tensor<2xi32> {{attn.name = "len"}}, %doc: tensor<?xi32> {{attn.name = "doc"}},
             %reach: tensor<2x?xi64> {{attn.name = "reach"}}, %flag: tensor<?xi1> {{attn.name = "flag"}},
             %time: tensor<?xf32> {{attn.name = "time"}}, %P: index {{attn.name = "P"}},
             %W: i32 {{attn.name = "W"}}) -> tensor<2x?x8xf32> {{
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
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


class Value:
    """An SSA value with its type, and the same in Python."""

    def __init__(self, name, kind, text):
        self.name, self.kind, self.text = name, kind, text


class Body:
    """Writes the ops of a `where`."""

    def __init__(self):
        self.lines, self.count = [], 0
        self.i, self.j, self.b = Value("%i", "index", "i"), Value("%j", "index", "j"), Value("%b", "index", "b0")
        self.N, self.M, self.P = Value("%N", "index", "N"), Value("%M", "index", "M"), Value("%P", "index", "P")
        self.W = Value("%W", "i32", "W")

    def op(self, line, kind, text):
        self.count += 1
        self.lines.append(f"%v{self.count} = {line}")
        return Value(f"%v{self.count}", kind, text)

    def const(self, value, kind="index"):
        return self.op(f"arith.constant {value} : {kind}", kind, f"({value})")

    def wide(self, x):
        if x.kind == "i64":
            return x
        cast = "index_cast" if x.kind == "index" else "extsi"
        return self.op(f"arith.{cast} {x.name} : {x.kind} to i64", "i64", x.text)

    def binary(self, name, x, y, sign):
        if x.kind != y.kind:
            x, y = self.wide(x), self.wide(y)
        text = f"{sign}({x.text}, {y.text})" if sign.isalpha() else f"({x.text} {sign} {y.text})"
        return self.op(f"arith.{name} {x.name}, {y.name} : {x.kind}", x.kind, text)

    def add(self, x, y):
        return self.binary("addi", x, y, "+")

    def sub(self, x, y):
        return self.binary("subi", x, y, "-")

    def mul(self, x, y):
        return self.binary("muli", x, y, "*")

    def floordiv(self, x, y):
        y = self.const(y, x.kind) if isinstance(y, int) else y
        return self.binary("floordivsi", x, y, "//")

    def mod(self, x, y):
        if not isinstance(y, int):  # 0 by 0, as the language says
            y = self.wide(y)
            zero, one = self.const(0, "i64"), self.const(1, "i64")
            none = self.cmp("eq", y, zero)
            safe = self.op(f"arith.select {none.name}, {one.name}, {y.name} : i64", "i64", f"(1 if {none.text} else {y.text})")
            rest = self.mod_by(x, safe)
            return self.op(f"arith.select {none.name}, {zero.name}, {rest.name} : i64", "i64", f"(0 if {none.text} else {rest.text})")
        return self.mod_by(x, self.const(y, x.kind))

    def mod_by(self, x, y):
        return self.sub(x, self.mul(self.floordiv(x, y), y))

    def abs(self, x):
        x = self.wide(x)
        return self.op(f"math.absi {x.name} : i64", "i64", f"abs({x.text})")

    SIGNS = {"eq": "==", "ne": "!=", "slt": "<", "sle": "<=", "sgt": ">", "sge": ">="}

    def cmp(self, sign, x, y):
        if isinstance(y, int):
            y = self.const(y, x.kind)
        if x.kind != y.kind:
            x, y = self.wide(x), self.wide(y)
        return self.op(f"arith.cmpi {sign}, {x.name}, {y.name} : {x.kind}", "i1", f"({x.text} {self.SIGNS[sign]} {y.text})")

    def cmpf(self, sign, x, y):
        text = {"olt": "({0} < {1})", "ole": "({0} <= {1})", "oeq": "({0} == {1})", "une": "({0} != {1})",
                "uge": "(not {0} < {1})"}[sign].format(x.text, y.text)
        return self.op(f"arith.cmpf {sign}, {x.name}, {y.name} : f32", "i1", text)

    def both(self, x, y):
        return self.op(f"arith.andi {x.name}, {y.name} : i1", "i1", f"({x.text} and {y.text})")

    def either(self, x, y):
        return self.op(f"arith.ori {x.name}, {y.name} : i1", "i1", f"({x.text} or {y.text})")

    def same(self, x, y):
        return self.op(f"arith.cmpi eq, {x.name}, {y.name} : i1", "i1", f"({x.text} == {y.text})")

    def negate(self, x):
        true = self.op("arith.constant true", "i1", "True")
        return self.op(f"arith.xori {x.name}, {true.name} : i1", "i1", f"(not {x.text})")

    def read(self, tensor, kind, at):
        shape = "x".join("?" if k or tensor != "len" else "2" for k in range(len(at))) if tensor != "reach" else "2x?"
        places, text = ", ".join(x.name for x in at), "[" + ", ".join(x.text for x in at) + "]"
        return self.op(f"tensor.extract %{tensor}[{places}] : tensor<{shape}x{kind}>", kind, tensor + text)

    def doc(self, x):
        return self.read("doc", "i32", [x])

    def length(self):
        return self.read("len", "i32", [self.b])

    def flag(self, x):
        return self.read("flag", "i1", [x])

    def time(self, x):
        return self.read("time", "f32", [x])

    def reach(self, x):
        return self.read("reach", "i64", [self.b, x])

    def guarded(self, condition, inner):
        before, self.lines = self.lines, []
        x = inner()
        lines, self.lines = self.lines, before
        return self.op(f"scf.if {condition.name} -> i1 {{\n" + "\n".join(lines) + f"\nscf.yield {x.name} : i1\n}} else {{\n"
                       "%no = arith.constant false\nscf.yield %no : i1\n}", "i1", f"({condition.text} and {x.text})")

    # Masks that papers have.
    def causal(self):
        return self.cmp("sle", self.j, self.add(self.i, self.sub(self.M, self.N)))

    def window(self, width=3):
        return self.cmp("sle", self.abs(self.sub(self.wide(self.i), self.wide(self.j))), width)

    def prefix(self):
        return self.cmp("slt", self.j, self.P)

    def documents(self):
        return self.cmp("eq", self.doc(self.i), self.doc(self.j))


# name, mask, may the data be unsorted, tight, whether some condition is left to the evaluation per element
def chosen():
    yield "causal", lambda m: m.causal(), False, True, False
    yield "window", lambda m: m.window(), False, True, False
    yield "window of a run-time width", lambda m: m.window(m.W), False, True, False
    yield "causal window", lambda m: m.both(m.causal(), m.window()), False, True, False
    yield "causal window of a run-time width", lambda m: m.both(m.causal(), m.window(m.W)), False, True, False
    yield "window in a prefix", lambda m: m.both(m.window(), m.prefix()), False, True, False
    yield "prefix", lambda m: m.either(m.causal(), m.prefix()), False, True, False
    yield "length", lambda m: m.cmp("slt", m.j, m.length()), False, True, False
    yield "lengths of both", lambda m: m.both(m.cmp("slt", m.j, m.length()), m.cmp("slt", m.i, m.length())), False, True, False
    yield "blocks", lambda m: m.cmp("eq", m.floordiv(m.i, 4), m.floordiv(m.j, 4)), False, True, False
    yield "blocks of two sizes", lambda m: m.cmp("sle", m.mul(m.floordiv(m.j, 3), m.const(2)), m.floordiv(m.i, 4)), False, True, False
    yield "scaled", lambda m: m.cmp("sgt", m.mul(m.j, m.const(3)), m.mul(m.i, m.const(2))), False, True, False
    yield "queries", lambda m: m.cmp("slt", m.i, m.P), False, True, False
    yield "sum", lambda m: m.cmp("slt", m.add(m.i, m.j), 7), False, True, False
    yield "documents", lambda m: m.documents(), False, True, False
    yield "unsorted documents", lambda m: m.documents(), True, False, False
    yield "causal documents", lambda m: m.both(m.documents(), m.causal()), True, False, False
    yield "not a window", lambda m: m.negate(m.window()), False, False, False
    yield "global keys", lambda m: m.flag(m.j), True, True, False
    yield "global queries", lambda m: m.flag(m.i), True, True, False
    yield "global tokens and a window", lambda m: m.either(m.window(), m.either(m.flag(m.i), m.flag(m.j))), True, False, False
    yield "short spans", lambda m: m.cmp("slt", m.j, m.doc(m.i)), True, True, False
    yield "spans", lambda m: m.cmp("slt", m.wide(m.j), m.reach(m.i)), True, True, False
    yield "keys of a span", lambda m: m.cmp("sle", m.reach(m.j), m.wide(m.i)), True, True, False
    yield "strided keys", lambda m: m.cmp("eq", m.mod(m.j, 4), 0), False, True, False
    yield "dilated", lambda m: m.both(m.window(6), m.cmp("eq", m.mod(m.sub(m.i, m.j), 2), 0)), False, False, False
    yield "strided", lambda m: m.cmp("eq", m.mod(m.sub(m.i, m.j), 5), 0), False, True, False
    yield "strided by data", lambda m: m.cmp("eq", m.mod(m.sub(m.wide(m.i), m.wide(m.j)), m.W), 0), False, True, False
    yield "earlier times", lambda m: m.cmpf("ole", m.time(m.j), m.time(m.i)), True, False, False
    yield "guarded", lambda m: m.guarded(m.prefix(), lambda: m.cmp("eq", m.doc(m.j), 1)), True, False, False
    yield "five pieces", lambda m: m.either(m.either(m.negate(m.window(1)), m.prefix()), m.either(m.negate(m.window(2)), m.cmp("eq", m.j, m.P))), False, False, False


def drawn(m, rng, depth):
    """A random condition."""
    if depth and rng.random() < 0.8:
        what = rng.choice(["both", "both", "either", "either", "negate", "guarded"])
        if what == "negate":
            return m.negate(drawn(m, rng, depth - 1))
        if what == "guarded":
            return m.guarded(m.prefix(), lambda: drawn(m, rng, depth - 1))
        return getattr(m, what)(drawn(m, rng, depth - 1), drawn(m, rng, depth - 1))
    sign = rng.choice(list(m.SIGNS))
    sides = [m.i, m.j] if rng.random() < 0.5 else [m.j, m.i]
    what = rng.randrange(14)
    if what == 0:
        return m.causal()
    if what == 1:
        return m.window(rng.choice([0, 2, 5, m.W]))
    if what == 2:
        parts = [m.mul(x, m.const(rng.choice([1, 2, 3]))) for x in sides]
        return m.cmp(sign, parts[0], m.add(parts[1], m.const(rng.randint(-5, 5))))
    if what == 3:
        return m.cmp(sign, m.floordiv(sides[0], rng.randint(2, 5)), m.floordiv(m.add(sides[1], m.P), rng.randint(2, 5)))
    if what == 4:
        return m.cmp(sign, m.mod(m.wide(rng.choice([m.i, m.j, m.sub(m.i, m.j)])), rng.choice([2, 3, 4, m.W])), rng.randint(0, 2))
    if what == 5:
        return m.cmp(sign, m.doc(m.i), m.doc(m.j))
    if what == 6:
        return m.cmp(sign, m.doc(rng.choice(sides)), rng.randint(0, 3))
    if what == 7:
        return m.cmp(sign, m.abs(m.sub(m.wide(m.doc(m.i)), m.wide(m.doc(m.j)))), rng.randint(0, 2))
    if what == 8:
        return m.flag(rng.choice(sides))
    if what == 9:
        return m.same(m.flag(m.i), m.flag(m.j))
    if what == 10:
        return m.cmpf(rng.choice(["olt", "ole", "oeq", "une", "uge"]), m.time(sides[0]), m.time(sides[1]))
    if what == 11:
        return m.cmp(sign, m.wide(sides[0]), m.reach(sides[1]))
    if what == 12:
        return m.cmp(sign, sides[0], m.length())
    return m.cmp(sign, m.add(m.wide(m.doc(sides[0])), m.wide(sides[1])), m.wide(m.P))


def cases(rng):
    yield from chosen()
    for number in range(150):
        yield f"random {number}", lambda m: drawn(m, rng, 3), True, False, None


def pieces_of(attribute, key):
    """The pieces of a union: low, high and a test, compiled."""
    text = re.search(key + r' = \[((?:\[(?:"[^"]*"(?:, )?)*\](?:, )?)*)\]', attribute).group(1)
    pieces = [re.findall(r'"([^"]*)"', piece) for piece in re.findall(r'\[((?:"[^"]*"(?:, )?)*)\]', text)]
    return [[compile(part, part, "eval") for part in (p + ["True"])[:3]] for p in pieces]


# As kernels do it: NaN is passed over, of nothing but NaN there is no number.
def least(*values):
    return min((x for x in (values if len(values) > 1 else values[0]) if x == x), default=math.inf)


def greatest(*values):
    return max((x for x in (values if len(values) > 1 else values[0]) if x == x), default=-math.inf)


def draw(rng, unsorted):
    """Sizes and data."""
    N, M = rng.randint(1, 18), rng.randint(1, 18)
    env = dict(N=N, M=M, P=rng.randint(-2, 20), W=rng.choice([-1, 0, 2, 4, 2**31 - 1]), len=[rng.choice([-1, 0, 3, 9, 20, 2**31 - 1]) for _ in range(2)],
               b0=rng.randint(0, 1), doc=[rng.choice([-1, 0, 1, 2, 3]) for _ in range(20)],
               reach={(b, x): rng.choice([-2**63, -5, 2**63 - 1] + list(range(18))) for b in range(2) for x in range(20)},
               flag=[rng.random() < rng.choice([0.1, 0.9]) for _ in range(20)],
               time=[rng.choice([0.0, 1.0, 2.5, math.inf, -math.inf, math.nan]) for _ in range(20)],
               min=least, max=greatest, isnan=math.isnan)
    if not unsorted:
        env["doc"].sort()
    env["i0"] = rng.randint(0, N - 1)
    env["i1"] = min(N - 1, env["i0"] + rng.randint(0, 6))
    env["j0"] = rng.randint(0, M - 1)
    env["j1"] = min(M - 1, env["j0"] + rng.choice([0, 0, 1, 3, 6]))
    env["tile"] = range(env["i0"], env["i1"] + 1)
    env["block"] = range(env["j0"], env["j1"] + 1)
    return env


def main():
    rng = random.Random(7)
    todo, module = [], ""
    for number, (name, mask, unsorted, tight, unsolved) in enumerate(cases(rng)):
        body = Body()
        seen = mask(body)
        body.lines.append(f"attn.yield {seen.name} : i1")
        module += FUNCTION.format(number=number, body="\n".join(body.lines))
        todo.append((name, seen.text, unsorted, tight, unsolved))
    out = subprocess.run([sys.argv[1], "--attn-solve-masks"], input=module, capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"heed-opt failed\n{out.stderr}")
    lines = re.findall(r"attn\.mask = \{.*", out.stdout)
    assert len(lines) == len(todo)
    solved = 0
    for (name, text, unsorted, tight, unsolved), line in zip(todo, lines):
        predicate = compile(text, text, "eval")
        reach, full = pieces_of(line, "reach"), pieces_of(line, "full")
        exact = "exact = true" in line
        solved += exact
        if unsolved is not None and exact == unsolved:
            sys.exit(f"{name}: exact is wrong: {line}")
        loose = counted = 0
        for trial in range(250 if unsolved is not None else 80):
            env = draw(rng, unsorted)
            j0, j1 = env["j0"], env["j1"]
            truth = [bool(eval(predicate, dict(env, i=i, j=j))) for i in env["tile"] for j in env["block"]]
            value = lambda code: eval(code, env)
            reached = any(value(low) < value(high) and value(low) <= j1 and j0 < value(high) and value(test) for low, high, test in reach)
            filled = any(value(low) <= j0 and j1 < value(high) and value(test) for low, high, test in full)
            where = f"{name}: {text}\n{line}\n{ {k: v for k, v in env.items() if not callable(v) and k[0] != '_'} }"
            if any(truth) and not reached:
                sys.exit(f"a live pair in an empty block: {where}")
            if filled and not all(truth):
                sys.exit(f"a masked pair in a full block: {where}")
            if tight and (reached != any(truth) or filled != all(truth)):
                sys.exit(f"not tight (reached {reached}, live {any(truth)}, full {filled}, all {all(truth)}): {where}")
            counted += 1
            loose += reached != any(truth) or filled != all(truth)
        print(f"{name}: {'exact' if exact else 'partly per element'}, {loose} of {counted} loose")
    print(f"{solved} of {len(todo)} solved")


main()
