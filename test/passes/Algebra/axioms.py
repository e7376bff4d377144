# What the algebra holds equal, by which axiom, and what it does not.
# RUN: %python %s %heed_bin %t %heed_src
"""Two results of one model are compared by the algebra that proves rewrites (passes/Algebra). Where it holds them equal,
it must name the axiom; where one thing is changed, it must not."""
import os
import re
import subprocess
import sys

tools, stem, root = sys.argv[1:4]
os.makedirs(stem, exist_ok=True)

HEAD = "q, k: f32[N, E], v: f32[N, F], w: f32[E], l: f32[N]; tau: f32"
SCORE = "s[i,j] = sum(e) q[i,e] * k[j,e]\n  "
# name, lines before, first and second result (axes i, f), an axiom that the proof names
EQUAL = [
    ("order", "", "sum(j) l[j] * (v[j,f] * l[i]) + v[i,f]", "v[i,f] + (sum(m) v[m,f] * l[m] * l[i])", ""),
    ("chain", SCORE, "sum(j) s[i,j] * v[j,f]", "sum(e) q[i,e] * (sum(j) k[j,e] * v[j,f])", "move-factor"),
    ("shifted", "", "sum(j) (l[i] + l[j]) * v[j,f]", "(l[i] * (sum(j) v[j,f])) + (sum(j) l[j] * v[j,f])", "distribute"),
    ("factor", "", "sum(j) l[j] * v[j,f] / l[i]", "(sum(j) l[j] * v[j,f]) / l[i]", "move-factor"),
    ("reciprocal", "", "v[i,f] / 50", "v[i,f] * 0.02", ""),
    ("squares", SCORE, "sum(j) s[i,j]^2 * v[j,f]", "sum(j, e, c:E) q[i,e] * k[j,e] * q[i,c] * k[j,c] * v[j,f]", "move-factor"),
    ("softmax", SCORE + "p[i,j] = softmax(j) s[i,j]\n  m[i] = max(j) s[i,j]\n  x[i,j] = exp(s[i,j] - m[i])\n  ",
     "sum(j) p[i,j] * v[j,f]", "sum(j) p[i,j] * v[j,f] * 1.0", "absent-element"),
    ("shift of scores", SCORE + "m[i] = max(j) s[i,j]\n  x[i,j] = exp(s[i,j] - m[i])\n  u[i,j] = exp(s[i,j])\n  ",
     "(sum(j) x[i,j] * v[j,f]) / (sum(j) x[i,j])", "(sum(j) u[i,j] * v[j,f]) / (sum(j) u[i,j])", "row-maximum"),
    ("a log-sum-exp", SCORE + "m[i] = max(j) s[i,j]\n  x[i,j] = exp(s[i,j] - m[i])\n  z[i] = m[i] + log(sum(j) x[i,j])\n  ",
     "sum(j) exp(s[i,j] - z[i]) * v[j,f]", "(sum(j) x[i,j] * v[j,f]) / (sum(j) x[i,j])", "log-sum-exp"),
    ("base", SCORE, "sum(j) exp2(s[i,j]) * v[j,f]", "sum(j) exp(s[i,j] * 0.6931472) * v[j,f]", "exp2"),
    ("mask", SCORE + "t[i,j] = if j <= i then s[i,j] else -inf\n  p[i,j] = softmax(j) t[i,j]\n  r[i,j] = softmax(j where j <= i) s[i,j]\n  ",
     "sum(j) p[i,j] * v[j,f]", "sum(j) r[i,j] * v[j,f]", "excluded-key"),
    ("a score under its mask", SCORE + "t[i,j] = sum(e where j <= i) q[i,e] * k[j,e]\n  p[i,j] = softmax(j where j <= i) t[i,j]\n  r[i,j] = softmax(j where j <= i) s[i,j]\n  ",
     "sum(j) p[i,j] * v[j,f]", "sum(j) r[i,j] * v[j,f]", "excluded-key"),
    ("a masked score times another number", SCORE + "t[i,j] = if j <= i then s[i,j] else -inf\n  ",
     "sum(j) (if j <= i then t[i,j] * l[i] else 0.0) * v[j,f]", "sum(j) (if j <= i then s[i,j] * l[i] else 0.0) * v[j,f]", ""),
    ("clamps", "", "v[clamp(clamp(i, 0, 3), 0, N - 1), f]", "v[clamp(i, 0, 3), f]", ""),
    ("the greatest of masked scores", SCORE, "max(j) (if j <= i then s[i,j] else -inf)", "max(j where j <= i) s[i,j]", ""),
    ("a logarithm of nothing", SCORE, "log(sum(j where false) exp(s[i,j]))", "-inf", ""),
    ("cases", "", "if i < 3 then v[i,f] else v[i,f]", "v[i,f]", ""),
]
# and what tells them apart
DIFFERENT = [
    ("a factor dropped", SCORE, "sum(j) s[i,j]^2 * v[j,f]", "sum(j) s[i,j] * v[j,f]"),
    ("a binder dropped", "", "sum(j, c:3) l[j] * v[j,f]", "sum(j) l[j] * v[j,f]"),
    ("an index renamed", "", "sum(j) l[j] * v[j,f]", "sum(j) l[i] * v[j,f]"),
    ("a bound moved", "", "sum(j where j <= i) v[j,f]", "sum(j where j < i) v[j,f]"),
    ("a condition negated", "", "sum(j where l[j] > 0.0) v[j,f]", "sum(j where not (l[j] > 0.0)) v[j,f]"),
    ("a tail left out", "", "sum(j) v[j,f]", "sum(j where j < N - 1) v[j,f]"),
    ("an empty sum divided", "", "sum(e) w[e] * v[i,f] / sqrt(E)", "(sum(e) w[e] * v[i,f]) / sqrt(E)"),
    ("an empty sum over a row's divisor", "", "sum(e) w[e] * v[i,f] / l[i]", "(sum(e) w[e] * v[i,f]) / l[i]"),
    ("a row without a key over a divisor", SCORE + "p[i,j] = softmax(j) s[i,j]\n  ", "sum(j) p[i,j] * v[j,f] / l[i]", "(sum(j) p[i,j] * v[j,f]) / l[i]"),
    ("a weight of 0 is no absence", "", "sum(j) (if j <= i then l[j] else 0.0) * v[j,f]", "sum(j where j <= i) l[j] * v[j,f]"),
    ("another row's maximum", SCORE + "p[i,j] = softmax(j) s[i,j]\n  r[i,j] = softmax(j where j < i) s[i,j]\n  ", "sum(j) p[i,j] * v[j,f]", "sum(j) r[i,j] * v[j,f]"),
    ("a score under another condition", SCORE + "t[i,j] = sum(e where j < i) q[i,e] * k[j,e]\n  p[i,j] = softmax(j where j <= i) t[i,j]\n  r[i,j] = softmax(j where j <= i) s[i,j]\n  ",
     "sum(j) p[i,j] * v[j,f]", "sum(j) r[i,j] * v[j,f]"),
    ("a masked score beyond its mask", SCORE + "t[i,j] = if j <= i then s[i,j] else -inf\n  ",
     "sum(j) (if j < i + 2 then t[i,j] * l[i] else 0.0) * v[j,f]", "sum(j) (if j < i + 2 then s[i,j] * l[i] else 0.0) * v[j,f]"),
    ("a rounding left out", "", "sum(j) f32(bf16(l[j])) * v[j,f]", "sum(j) l[j] * v[j,f]"),
    ("roots distribute over no sum", "", "sqrt(l[i] + v[i,f])", "sqrt(l[i]) + sqrt(v[i,f])"),
    ("a maximum of -inf", SCORE + "m[i] = max(j) s[i,j]\n  ", "m[i] + log(sum(j) exp(s[i,j] - m[i]))", "if m[i] == -inf then -inf else m[i] + log(sum(j) exp(s[i,j] - m[i]))"),
    ("a logarithm that is moved", SCORE, "log(sum(j) exp(s[i,j]))", "log(sum(j) exp(s[i,j] - l[i]))"),
    ("a logarithm of no exponentials", "", "exp(log(l[i]))", "l[i]"),
    ("a log-sum-exp of another row", SCORE + "g[i] = log(sum(j) exp(s[i,j]))\n  h[j] = log(sum(i) exp(s[i,j]))\n  ", "sum(j) exp(s[i,j] - g[i]) * v[j,f]", "sum(j) exp(s[i,j] - h[j]) * v[j,f]"),
    ("a row without a key", SCORE, "(sum(j where j < i) relu(s[i,j]) * v[j,f]) / (sum(j where j < i) relu(s[i,j]))",
     "if i == 0 then 0.0 else (sum(j where j < i) relu(s[i,j]) * v[j,f]) / (sum(j where j < i) relu(s[i,j]))"),
]


def proof(name, before, first, second):
    path = os.path.join(stem, name.replace(" ", "-") + ".heed")
    with open(path, "w") as file:
        file.write(f"model m({HEAD}) {{\n  {before}return y[i:N,f:F] = {first}, z[i:N,f:F] = {second}\n}}\n")
    ir = subprocess.run([os.path.join(tools, "heed-frontend-test"), path], capture_output=True, text=True)
    if ir.returncode:
        return "front end: " + ir.stderr
    return subprocess.run([os.path.join(tools, "heed-proof-test")], input=ir.stdout, capture_output=True, text=True).stdout


failures = []
for name, before, first, second, axiom in EQUAL:
    said = proof(name, before, first, second)
    if not said.startswith("m: equal by") or axiom not in said:
        failures.append(f"{name}: expected equal{' by ' + axiom if axiom else ''}, found {said}")
for name, before, first, second in DIFFERENT:
    said = proof(name, before, first, second)
    if not said.startswith("m: differs: "):
        failures.append(f"{name}: expected a difference, found {said}")
# What a user reads has every axiom and no other.
with open(os.path.join(root, "passes/Algebra/Axioms.cpp")) as code, open(os.path.join(root, "docs/language.md")) as text:
    named = re.findall(r'\{"([a-z0-9-]+)",\s*"', code.read())
    table = text.read().split("| axiom | statement |")[1].split("\n\n")[0]
    listed = re.findall(r"^\| ([a-z][a-z0-9-]*) \|", table, re.M)
if not named or named != listed:
    failures.append(f"Axioms.cpp has {named}, docs/language.md {listed}")
sys.exit("\n".join(failures) if failures else 0)
