# RUN: %python %s %heed_bin/heedc %t
"""`look_back` of a pipeline: with it LLVM finds the sums and numbers of a step that unrolled turns read again, and each is added up once. Of a delta
rule's step, whose sums over 64 numbers are in four parts, what each turn would add is left to registers; the numbers are tested by heed-check."""
import os
import re
import sys

from runs import expect, finish, run

heedc, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
source, schedule = os.path.join(folder, "delta.heed"), os.path.join(folder, "delta.mlir")
with open(source, "w") as file:
    file.write("""model delta(q, k: f32[H, N, 64], v: f32[H, N, 64], a: f32[H, N]) {
  scan t in 0..N, S: f32[H, 64, 64] = 0 {
    S[h, e, f] = a[h, t] * S[h, e, f]
    d[h, f] = v[h, t, f] - (sum(e) k[h, t, e] * S[h, e, f])
    S[h, e, f] = S[h, e, f] + k[h, t, e] * d[h, f]
    o[h, t, f] = sum(e) q[h, t, e] * S[h, e, f]
  }
  return o
}
""")
done = run(heedc, source, "--set", "N=512", "--target=x86-64-v4", "--emit=halide", "-o", schedule)
text = open(schedule).read() if done.returncode == 0 else ""
expect(text.count("look_back = 400") == 1, f"one pipeline looks back: {done.stderr}")


def additions(text, name):
    path = os.path.join(folder, name + ".mlir")
    with open(path, "w") as file:
        file.write(text)
    done = run(heedc, path, "--no-cache", "--emit=asm", "-o", path + ".s")
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    return len(re.findall(r"^\tv(?:add|sub)ps\t.*%zmm", open(path + ".s").read(), re.M)) if done.returncode == 0 else 0


far, near = additions(text, "far"), additions(re.sub(r"look_back = 400", "look_back = 100", text), "near")
expect(0 < far < near / 2, f"sums of vectors with 400 instructions and with 100: {far}, {near}")
# What a user has LLVM do besides stays.
os.environ["HL_LLVM_ARGS"] = "-disable-licm-promotion"
expect(additions(text, "beside") > 0, "beside other arguments")
finish()
