# RUN: env HEED_TARGET=opencl %python %s %heed_bin/heedc %heed_src %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
# REQUIRES: opencl
"""What a call copies to a device and back, as --profile says: inputs once there, results once back, and nothing to the host between kernels, in an
attention, in an encoder of two layers and, but for the positions that it writes to, in a step of a decoder. The numbers against NumPy. device-traffic-cuda.test has the same on CUDA."""
import math
import os
import pathlib
import re
import sys

import numpy as np

import programs
import safetensors_file
from runs import expect, finish, run

programs.start(sys.argv[1], sys.argv[3])
source = pathlib.Path(sys.argv[2])
rng = np.random.default_rng(19)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
ON = (f"--target={os.environ['HEED_TARGET']}",)
LINE = re.compile(r"(\d+) calls, copies to the device (\d+) \((\d+) bytes\), of results (\d+) \((\d+)\), to the host in between (\d+) \((\d+)\)")


def call(program, arrays, name, *options):
    """The result of that name and the numbers of the line: calls, then copies and bytes to the device, of results, in between."""
    command = [program, "--profile", "--output", f"{name}={program}.npy", *options]
    for key, value in arrays.items():
        np.save(f"{program}.{key}.npy", value)
        command += ["--" + key, f"{program}.{key}.npy"]
    done = run(*command)
    found = LINE.search(done.stderr)
    expect(done.returncode == 0 and found, f"{program}: {done.stderr}")
    return np.load(f"{program}.npy"), [int(number) for number in found.groups()]


def near(got, want, what):
    expect(got.shape == want.shape and np.abs(got - want).max() <= 1e-5 * np.abs(want).max(), f"{what}: the numbers")


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def bytes_of(*arrays):
    return sum(array.nbytes for array in arrays)


program = programs.compile("attention", (source / "models/core/causal-attention.heed").read_text(), *ON)
q, k, v = uniform(1, 2, 33, 8), uniform(1, 2, 33, 8), uniform(1, 2, 33, 8)
o, traffic = call(program, {"q": q, "k": k, "v": v}, "o")
scores = np.einsum("bhie,bhje->bhij", q.astype(np.float64), k) / np.sqrt(8)
near(o, np.einsum("bhij,bhjf->bhif", softmax(np.where(np.tri(33, dtype=bool), scores, -np.inf)), v), "attention")
expect(traffic == [1, 3, bytes_of(q, k, v), 1, o.nbytes, 0, 0], f"attention: {traffic}")
# One array for all three is one copy there.
o, traffic = call(program, {"q": q, "k": q, "v": q}, "o")
expect(traffic[5:] == [0, 0], f"attention of one array: {traffic}")

ENCODER = """import "nn.heed"
model encoder(x: f32[B, N, 16]) {
  for l in 0..2 {
    q = linear(x, O = 16, at = "layer.{l}.q")
    k = linear(x, O = 16, at = "layer.{l}.k")
    v = linear(x, O = 16, at = "layer.{l}.v")
    s[b,h:2,i,j] = (sum(e:8) q[b,i,h*8+e] * k[b,j,h*8+e]) / sqrt(8)
    p[b,h,i,j] = softmax(j) s[b,h,i,j]
    o[b,i,h:2,e:8] = sum(j) p[b,h,i,j] * v[b,j,h*8+e]
    m[b,i,h*8+e] = o[b,i,h,e]
    x = layer_norm(x + m, at = "layer.{l}.norm1")
    x = layer_norm(x + linear(gelu(linear(x, O = 24, at = "layer.{l}.up")), O = 16, at = "layer.{l}.down"), at = "layer.{l}.norm2")
  }
  return x
}"""
weights = {}
for l in range(2):
    for name, outputs, inputs in (("q", 16, 16), ("k", 16, 16), ("v", 16, 16), ("up", 24, 16), ("down", 16, 24)):
        weights |= {f"layer.{l}.{name}.weight": uniform(outputs, inputs) / 4, f"layer.{l}.{name}.bias": uniform(outputs)}
    for name in ("norm1", "norm2"):
        weights |= {f"layer.{l}.{name}.weight": uniform(16), f"layer.{l}.{name}.bias": uniform(16)}
program = programs.compile("encoder", ENCODER, *ON)
safetensors_file.write(program + ".safetensors", weights)
x = uniform(3, 11, 16)
y, traffic = call(program, {"x": x}, "x", "--weights", program + ".safetensors")
expect(traffic[0] == 1 and traffic[3:] == [1, y.nbytes, 0, 0], f"encoder: {traffic}")
# Weights that init packs are there once for that, and what it has packed stays.
expect(traffic[2] <= x.nbytes + 2 * bytes_of(*weights.values()), f"encoder: {traffic}")


def encoder(x):
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    x = x.astype(np.float64)
    for l in range(2):
        linear = lambda a, name: a @ w[f"layer.{l}.{name}.weight"].T + w[f"layer.{l}.{name}.bias"]
        heads = lambda a: a.reshape(*a.shape[:2], 2, 8)
        centred = lambda a: a - a.mean(-1, keepdims=True)
        norm = lambda a, name: (centred(a) / np.sqrt((centred(a)**2).mean(-1, keepdims=True) + 1e-5) * w[f"layer.{l}.{name}.weight"]
                                + w[f"layer.{l}.{name}.bias"])
        q, k, v = (heads(linear(x, name)) for name in "qkv")
        m = np.einsum("bhij,bjhe->bihe", softmax(np.einsum("bihe,bjhe->bhij", q, k) / np.sqrt(8)), v).reshape(x.shape)
        x = norm(x + m, "norm1")
        up = linear(x, "up")
        erf = np.vectorize(math.erf)
        x = norm(x + linear(up * 0.5 * (1 + erf(up / np.sqrt(2))), "down"), "norm2")
    return x


near(y, encoder(x), "encoder")
# Later calls bring their input alone.
done = run(program, "--bench", "4", "--x", f"{program}.x.npy", "--weights", program + ".safetensors")
calls, copies, bytes_there, results, _, between, _ = map(int, LINE.search(done.stderr).groups())
expect(calls >= 5 and copies == traffic[1] + calls - 1 and bytes_there == traffic[2] + (calls - 1) * x.nbytes and results == calls and between == 0,
       f"encoder, several calls: {done.stderr}")

DECODER = """model decoder(; L = 2, H = 2) {
  state kc, vc: f32[L, B, H, C, E], len: i32[B]
  param wq, wk, wv, wo: f32[L, D, D]
  entry forward(x: f32[B, N, D]) {
    dim E = D / H
    for l in 0..L {
      q[b,n,d] = sum(c) x[b,n,c] * wq[l,c,d]
      k[b,n,d] = sum(c) x[b,n,c] * wk[l,c,d]
      v[b,n,d] = sum(c) x[b,n,c] * wv[l,c,d]
      kc[l,b,h,len[b] + n,e] = k[b,n,h*E + e]
      vc[l,b,h,len[b] + n,e] = v[b,n,h*E + e]
      s[b,h,i,j:C] = (sum(e) q[b,i,h*E+e] * kc[l,b,h,j,e]) / sqrt(E)
      p[b,h,i,j] = softmax(j where j <= len[b] + i) s[b,h,i,j]
      o[b,i,h,e] = sum(j) p[b,h,i,j] * vc[l,b,h,j,e]
      m[b,n,h*E+e] = o[b,n,h,e]
      x[b,n,d] = x[b,n,d] + sum(c) m[b,n,c] * wo[l,c,d]
    }
    len[b] = len[b] + N
    return x
  }
}"""
program = programs.compile("decoder", DECODER, *ON)
weights = {name: uniform(2, 8, 8) for name in ("wq", "wk", "wv", "wo")}
safetensors_file.write(program + ".safetensors", weights)
x = uniform(2, 6, 8)
options = ("--weights", program + ".safetensors", "--dim", "C=9", "--dim", "E=4", "--state-out", program + ".state")
# The positions of its rows are read on the host: of each row, and what they are computed from.
positions = lambda n: [3, 2 * (n + 2) * 8]
state_bytes = 2 * 2 * 2 * 2 * 9 * 4 * 4 + 2 * 4
first, traffic = call(program, {"x": x[:, :5]}, "x", *options)
expect(traffic == [1, 8, bytes_of(*weights.values()) + state_bytes + 5 * 64, 1, 5 * 64] + positions(5), f"a prompt: {traffic}")
step, traffic = call(program, {"x": x[:, 5:]}, "x", *options, "--state-in", program + ".state")
expect(traffic == [1, 8, bytes_of(*weights.values()) + state_bytes + 64, 1, 64] + positions(1), f"a step: {traffic}")


def decoder(x):
    w, x = {name: value.astype(np.float64) for name, value in weights.items()}, x.astype(np.float64)
    for l in range(2):
        q, k, v = ((x @ w[name][l]).reshape(2, 6, 2, 4) for name in ("wq", "wk", "wv"))
        scores = np.where(np.tri(6, dtype=bool), np.einsum("bihe,bjhe->bhij", q, k) / 2, -np.inf)
        x = x + np.einsum("bhij,bjhe->bihe", softmax(scores), v).reshape(2, 6, 8) @ w["wo"][l]
    return x


near(np.concatenate([first, step], 1), decoder(x), "decoder")
finish()
