# RUN: %python %s %heed_bin %S %t
"""--weights: sizes come from the file; a file that lacks a tensor, holds another shape or is cut off ends the compiler
with one error, exit code 1 and no output file."""
import pathlib
import shutil
import sys

import numpy as np

import safetensors_file
from runs import expect, finish, run

heedc, source = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]) / "Inputs/linear.heed"
folder = pathlib.Path(sys.argv[3])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
random = np.random.default_rng(5)
w, b = random.uniform(-1, 1, (6, 4)).astype(np.float32), random.uniform(-1, 1, 6).astype(np.float32)


def file(name, **tensors):
    path = folder / (name + ".safetensors")
    safetensors_file.write(path, {"layer." + key: value for key, value in tensors.items()})
    return path


def cut(name, count):
    path = folder / (name + ".safetensors")
    path.write_bytes(good.read_bytes()[:count])
    return path


good = file("good", weight=w, bias=b)
size = good.stat().st_size
header = 8 + int.from_bytes(good.read_bytes()[:8], "little")
expect(header + 4 * (24 + 6) == size, "the file is laid out as expected")

# The sizes are in the program, and its numbers are right with the same file.
done = run(heedc, source, "--weights", good, "--emit=header", "-o", folder / "lin.h")
expect(done.returncode == 0 and "y: f32[N, 6]" in (folder / "lin.h").read_text(), done.stderr)
# A dim of an input that a parameter names has the file's size, too: the weight is packed when the model is opened.
done = run(heedc, source, "--weights", good, "--emit=attn", "-o", folder / "lin.attn")
expect(done.returncode == 0 and "tensor<?x4xf32>" in (folder / "lin.attn").read_text(), done.stderr)
# So has a parameter whose name a function of the library composes.
composed = folder / "composed.heed"
composed.write_text('import "nn.heed"\nmodel m(x: f32[N, D]) {\n  return y = linear(x, O = 6, at = "layer")\n}\n')
done = run(heedc, composed, "--weights", good, "--explain=all", "-o", folder / "composed")
expect("computed once, when the model is opened: " in done.stdout + done.stderr, done.stdout + done.stderr)
done = run(heedc, source, "--weights", good, "-o", folder / "lin")
expect(done.returncode == 0, done.stderr)
x = random.uniform(-1, 1, (3, 4)).astype(np.float32)
np.save(folder / "x.npy", x)
done = run(folder / "lin", "--weights", good, "--x", folder / "x.npy", "--output", folder / "y.npy")
expect(done.returncode == 0, done.stderr)
if done.returncode == 0:
    got, want = np.load(folder / "y.npy"), 2 * (x.astype(np.float64) @ w.T) + b
    expect(got.shape == want.shape and np.abs(got - want).max() <= 1e-5, f"{got}, expected {want}")

# What a checkpoint has may choose, also in the turn of a layer.
chooses = folder / "chooses.heed"
chooses.write_text("""model m(x: f32[N]) {
  for l in 0..3 {
    if has("layer.bias") and not has("layer.{l}.bias") { x[n] = x[n] * 3 } else { x[n] = x[n] + 1 }
  }
  return y[n] = x[n]
}
""")
for weights, count in ((good, 3), (file("without", weight=w), 0), (file("one", bias=b, **{"1.bias": b}), 2)):
    done = run(heedc, chooses, "--weights", weights, "--emit=attn")
    found = done.stdout.count("arith.mulf") * (3 if "scf.for" in done.stdout else 1)
    expect(done.returncode == 0 and found == count, f"has, {weights}: {done.stderr}{done.stdout}")

BAD = [
    (file("missing", weight=w), "3:21: error: the weights have no 'layer.bias'"),
    (file("shape", weight=w, bias=b[:5]), "is 6, the weights' 'layer.bias' has 5"),
    (file("rank", weight=w[..., None], bias=b), "'w' has 2 axes, the weights' 'layer.weight' has 3"),
    (file("type", weight=w.astype(np.int32), bias=b), "2:3: error: the weights' 'layer.weight' is I32, expected 'f32'"),
    (cut("data", size - 1), "truncated"),
    (cut("no-data", header), "truncated"),
    (cut("header", header - 5), "truncated"),
    (cut("length", 5), "not a .safetensors file"),
    (cut("empty", 0), "empty"),
    (folder / "none.safetensors", "none.safetensors: cannot be opened"),
]
for path, text in BAD:
    for kind in ("exe", "lib", "obj", "attn"):
        out = folder / "out"
        done = run(heedc, source, "--weights", path, "--emit=" + kind, "-o", out)
        expect(done.returncode == 1 and text in done.stderr and done.stderr.count("error: ") == 1,
               f"{path.name}, {kind}: exit code {done.returncode}, expected {text!r}: {done.stderr}")
        left = [p.name for p in folder.iterdir() if p.name.startswith("out")]
        expect(not left, f"{path.name}, {kind}: {left} was left behind")
        for name in left:
            (folder / name).unlink()

# A parameter has the axes that `..` stands for.
dots = folder / "dots.heed"
dots.write_text("""model m(x: f32[2, 3, D]) {
  return y = scaled(x)
}
fn scaled(x: f32[.., D]) {
  param w: f32[K, .., D] @ "layer.w"
  return y[.., d] = x[.., d] * (sum(k) w[k, .., d])
}
""")
for shape, text in (((4, 2, 3, 5), ""), ((2, 3, 5), "'w' has 4 axes, the weights' 'layer.w' has 3"),
                    ((4, 3, 3, 5), "extent of 'w' (axis 1) is 2, the weights' 'layer.w' has 3")):
    done = run(heedc, dots, "--weights", file("dots", w=np.ones(shape, np.float32)), "--emit=attn", "-o", folder / "dots.attn")
    expect(text in done.stderr and done.returncode == (1 if text else 0), f"dots, {shape}: {done.stderr}")
expect("tensor<4x2x3x5xf32>" in (folder / "dots.attn").read_text(), (folder / "dots.attn").read_text())

# All turns of a loop are looked at. Other real types are converted when the model is opened; f64 only if it is asked for.
loop = folder / "loop.heed"
loop.write_text("""model deep(x: f32[N]) {
  y[i:N] = x[i]
  for l in 0..4 {
    param w: f32[3] @ "layer.{l}.w" | "old.{l}.w"
    y[i:N] = y[i] * sum(e) w[e]
  }
  return y
}
""")


def layers(**changes):
    path = folder / "layers.safetensors"
    tensors = {f"layer.{l}.w": np.ones(3, np.float16) for l in range(4)}
    tensors.update({"layer.2.w": value for value in changes.values()})
    if "old" in changes:
        tensors["old.2.w"] = tensors.pop("layer.2.w")
    safetensors_file.write(path, {name: value for name, value in tensors.items() if value is not None})
    return run(heedc, loop, "--weights", path, "--emit=header", "-o", folder / "out")


expect(layers().returncode == 0 and layers(old=w[0, :3]).returncode == 0, "f16 and f32 layers, another name")
for value, text in ((None, "4:23: error: the weights have no 'layer.2.w' or 'old.2.w'"),
                    (np.ones(4, np.float32), "4:18: error: extent of 'w' (axis 0) is 3, the weights' 'layer.2.w' has 4"),
                    (np.ones((3, 1), np.float32), "4:14: error: 'w' has 1 axis, the weights' 'layer.2.w' has 2"),
                    (np.ones(3, np.int8), "4:5: error: the weights' 'layer.2.w' is I8, expected 'f32'")):
    (folder / "out").unlink(missing_ok=True)
    done = layers(change=value)
    expect(done.returncode == 1 and text in done.stderr and not (folder / "out").exists(), f"{text!r}: {done.stderr}")
done = layers(change=np.ones(3))
expect(done.returncode == 0 and "warning: the weights' 'layer.2.w' is F64: opening them needs --convert" in done.stderr,
       f"f64: {done.stderr}")

# An axis that the file gives a number for may be cut into sizes of which a call gives one.
patches = folder / "patches.heed"
patches.write_text("model patches(x: f32[B, N, C]; P = 2) {\n  dim R = N / P\n  param e: f32[P * C, D] @ \"layer.e\"\n"
                   "  return y[b, r:R, d] = sum(u:P, c) x[b, r*P + u, c] * e[u*C + c, d]\n}\n")
e, x = random.uniform(-1, 1, (6, 4)).astype(np.float32), random.uniform(-1, 1, (1, 8, 3)).astype(np.float32)
cut_axis = file("patches", e=e)
done = run(heedc, patches, "--weights", cut_axis, "-o", folder / "pat")
expect(done.returncode == 0, f"patches: {done.stderr}")
np.save(folder / "x.npy", x)
done = run(folder / "pat", "--x", folder / "x.npy", "--weights", cut_axis, "--output", f"y={folder}/y.npy")
expect(done.returncode == 0 and np.allclose(np.load(folder / "y.npy"), x.reshape(1, 4, 6) @ e, atol=1e-6), f"patches: {done.stderr}")

# An output that exists stays as it is when compiling fails.
before = (folder / "lin").read_bytes()
run(heedc, source, "--weights", BAD[0][0], "-o", folder / "lin")
expect((folder / "lin").read_bytes() == before, "a failed compilation changed its output file")
finish()
