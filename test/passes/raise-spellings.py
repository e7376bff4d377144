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
]
LEFT = [
    ("weights-returned", HEAD + SCORE + "  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n  return o[b,h,i,f] = sum(j) p[b,h,i,j] * v[b,h,j,f], p\n}\n", "the weights are read elsewhere too"),
    ("scores-given", "(s: f32[N, M], v: f32[M, F]) {\n  p[i,j] = softmax(j) s[i,j]\n  return o[i,f] = sum(j) p[i,j] * v[j,f]\n}\n", "no contraction of queries with keys in the score"),
    ("heads-mix", "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F], w: f32[H, H]) {\n" + SCORE + "  p[b,h,i,j] = softmax(j) s[b,h,i,j]\n  r[b,h,i,j] = sum(g) w[h,g] * p[b,g,i,j]\n  return o[b,h,i,f] = sum(j) r[b,h,i,j] * v[b,h,j,f]\n}\n", "heads mix"),
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
