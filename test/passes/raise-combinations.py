# Attention in drawn combinations of spellings: each must become one attention that keeps no tensor over pairs, with the numbers of its source.
# RUN: %python %s %heed_bin/heed-frontend-test heed-opt heed-check %t
"""Draws follow the seed that is printed when one fails. Some are also compared with the reference, on symbolic sizes."""
import random
import re
import subprocess
import sys

SEED, DRAWS, COMPARED = 20261121, 40, 6
SIZES = {"B": 2, "H": 4, "G": 2, "N": 5, "M": 7, "E": 6, "F": 3}


def draw(pick):
    """A model's text with {B} .. {F} for its sizes, and what it is made of. Long: one choice after the other, in the order of the text."""
    chosen = []

    def one(subject, *options):
        option = pick.choice(options)
        chosen.append(f"{subject} {option}")
        return option

    heads = one("heads", "equal", "repeated", "read by group", "merged", "first axis")
    inputs, lines = [], []
    q, k, v = "q[b,h,i,e]", "k[b,h,j,e]", "v[b,h,j,f]"
    if heads == "equal":
        inputs = ["q: f32[{B}, {H}, {N}, {E}]", "k: f32[{B}, {H}, {M}, {E}]", "v: f32[{B}, {H}, {M}, {F}]"]
    elif heads == "first axis":
        inputs = ["q: f32[{N}, {B}, {H}, {E}]", "k: f32[{M}, {B}, {H}, {E}]", "v: f32[{M}, {B}, {H}, {F}]"]
        q, k, v = "q[i,b,h,e]", "k[j,b,h,e]", "v[j,b,h,f]"
    elif heads == "merged":
        inputs = ["x: f32[{B}, {N}, 4*{E}]", "y: f32[{B}, {M}, 4*{E}]", "z: f32[{B}, {M}, 4*{F}]"]
        lines = ["q[b,h:4,i,e:{E}] = x[b,i,h*{E} + e]", "k[b,h:4,j,e:{E}] = y[b,j,h*{E} + e]", "v[b,h:4,j,f:{F}] = z[b,j,h*{F} + f]"]
    else:
        inputs = ["q: f32[{B}, {H}, {N}, {E}]", "k: f32[{B}, {G}, {M}, {E}]", "v: f32[{B}, {G}, {M}, {F}]"]
        if heads == "read by group":
            k, v = "k[b,h*{G}/{H},j,e]", "v[b,h*{G}/{H},j,f]"
        else:
            lines = ["dim R = {H} / {G}", "kx[b,g,r:R,j,e] = k[b,g,j,e]", "vx[b,g,r:R,j,f] = v[b,g,j,f]",
                     "kr[b,g*R + r,j,e] = kx[b,g,r,j,e]", "vr[b,g*R + r,j,f] = vx[b,g,r,j,f]"]
            k, v = "kr[b,h,j,e]", "vr[b,h,j,f]"
    h = "h:{H}" if heads == "read by group" else "h"
    if one("key", "as it lies", "transposed") == "transposed":
        lines.append(f"kt[b,{h},e,j] = {k}")
        k, h = "kt[b,h,e,j]", "h"
    scale = one("scale", "after", "inside", "on the query", "on both", "at run time")
    if scale == "on the query":
        lines.append(f"qs[b,h,i,e] = {q} * 0.25")
        q = "qs[b,h,i,e]"
    elif scale == "on both":
        half = "sqrt(sqrt({E}))"
        lines += [f"qs[b,h,i,e] = {q} / {half}", f"ks[b,{h},j,e] = {k} / {half}"]
        q, k = "qs[b,h,i,e]", "ks[b,h,j,e]"
    product = f"sum(e) {q} * {k}"
    lines.append("s[b,h,i,j] = " + {"inside": product + " / sqrt({E})", "after": f"({product}) / sqrt({{E}})",
                                    "at run time": f"({product}) * tau"}.get(scale, product))
    bias = one("bias", "none", "none", "a tensor", "a slope", "by offset", "in buckets")
    if bias == "a tensor":
        inputs.append("c: f32[4, {N}, {M}]")
        lines.append("s[b,h,i,j] = s[b,h,i,j] + c[h,i,j]")
    elif bias == "a slope":
        lines.append("s[b,h,i,j] = s[b,h,i,j] - 2 ^ (-8 * (h+1) / 4) * abs(i - j)")
    elif bias == "by offset":
        inputs.append("r: f32[{N} + {M}, 4]")
        lines.append("s[b,h,i,j] = s[b,h,i,j] + r[j - i + {N}, h]")
    elif bias == "in buckets":
        inputs.append("r: f32[5, 4]")
        lines.append("s[b,h,i,j] = s[b,h,i,j] + r[clamp(j - i, -2, 2) + 2, h]")
    if one("cap", "none", "none", "soft") == "soft":
        lines.append("s[b,h,i,j] = 3.0 * tanh(s[b,h,i,j] / 3.0)")
    normaliser = one("normaliser", "softmax", "written out", "divided after", "reciprocal")
    masks = ["none", "chosen", "added", "added over keys", "a table of bools", "an input"]
    mask = one("mask", *(masks + ["where", "where and chosen"] if normaliser == "softmax" else masks))
    where = " where j <= i + 2" if mask.startswith("where") else ""
    if mask.endswith("chosen"):
        lines.append("s[b,h,i,j] = if abs(i - j) < 4 then s[b,h,i,j] else -inf")
    elif mask == "added":
        lines += ["a[i:{N},j:{M}] = if j <= i + 1 then 0.0 else -inf", "s[b,h,i,j] = s[b,h,i,j] + a[i,j]"]
    elif mask == "added over keys":
        inputs.append("length: i32[{B}]")
        lines += ["a[b,j:{M}] = if j < length[b] then 0.0 else -inf", "s[b,h,i,j] = s[b,h,i,j] + a[b,j]"]
    elif mask == "a table of bools":
        lines += ["col[j:{M}] = j", "row[i:{N}] = i", "late[i,j] = col[j] > row[i] + 1",
                  "s[b,h,i,j] = if late[i,j] then -inf else s[b,h,i,j]"]
    elif mask == "an input":
        inputs.append("keep: bool[{B}, {M}]")
        lines.append("s[b,h,i,j] = if keep[b,j] then s[b,h,i,j] else -inf")
    last = f"sum(j) p[b,h,i,j] * {v}"
    if normaliser == "softmax":
        lines.append(f"p[b,h,i,j] = softmax(j{where}) s[b,h,i,j]")
    else:
        lines += ["m[b,h,i] = max(j) s[b,h,i,j]", "w[b,h,i,j] = exp(s[b,h,i,j] - m[b,h,i])", "l[b,h,i] = sum(j) w[b,h,i,j]"]
        if normaliser == "written out":
            lines.append("p[b,h,i,j] = w[b,h,i,j] / l[b,h,i]")
        elif normaliser == "reciprocal":
            lines += ["t[b,h,i] = 1.0 / l[b,h,i]", "p[b,h,i,j] = w[b,h,i,j] * t[b,h,i]"]
        else:
            last = f"(sum(j) w[b,h,i,j] * {v}) / l[b,h,i]"
    if one("result", "plain", "merged") == "plain":
        lines.append(f"return o[b,h,i,f] = {last}")
    else:
        lines += [f"o[b,h,i,f] = {last}", "return y[b,i,h*{F} + f] = o[b,h,i,f]"]
    tau = "; tau: f32" if scale == "at run time" else ""
    return "model m(" + ", ".join(inputs) + tau + ") {\n  " + "\n  ".join(lines) + "\n}\n", ", ".join(chosen)


def filled(text, sizes):
    return re.sub(r"\{(\w)\}", lambda name: str(sizes[name[1]]), text)


def main():
    frontend, opt, check, stem = sys.argv[1:5]
    pick, failures, compared = random.Random(SEED), [], 0
    for number in range(DRAWS):
        text, chosen = draw(pick)
        path = f"{stem}-{number}.heed"
        what = f"draw {number} of seed {SEED} ({chosen})"
        with open(path, "w") as f:
            f.write(filled(text, SIZES))
        ir = subprocess.run([frontend, path], capture_output=True, text=True)
        if ir.returncode:
            failures.append(f"{what}: front end: {ir.stderr[:300]}")
            continue
        for passes in (["--attn-raise-attention"], ["--attn-fuse-elementwise", "--canonicalize", "--cse", "--attn-raise-attention"]):
            out = subprocess.run([opt, *passes, "--remarks-filter=attn-raise.*"], input=ir.stdout, capture_output=True, text=True)
            body = re.sub(r"%arg\d+: \S+ \{.*", "", out.stdout)
            if out.returncode or body.count("attn.attention") != 1 or re.search(r"= (attn\.softmax|linalg\.generic).*5x7x", body):
                failures.append(f"{what}, {' '.join(passes)}: expected one attention and no tensor over pairs\n{text}{out.stderr[-500:]}")
        # A key that a condition masks is not read: a NaN that only it holds does not show, so these are not compared.
        if compared < COMPARED and ("mask none" in chosen or chosen.find("mask where,") >= 0):
            compared += 1
            with open(path, "w") as f:
                f.write(filled(text, {name: {"H": 4, "G": 2}.get(name, name) for name in SIZES}))
            run = subprocess.run([check, "--after=attn-raise-attention", path], capture_output=True, text=True)
            if run.returncode:
                failures.append(f"{what}: {(run.stdout + run.stderr)[:600]}\n{text}")
    sys.exit("\n".join(failures) if failures else 0)


main()
