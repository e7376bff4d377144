# RUN: rm -rf %t && mkdir %t && %python %s %heed_bin/heedc %t
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Weights that were packed once and saved: programs and libraries that open the file have the same bits as from the checkpoint, without it, and count all of it as
read in place; a tensor that several parameters read stands in it once. Another compilation, another target, is refused."""
import multiprocessing
import os
import sys

import numpy as np

os.environ["HEEDC"] = sys.argv[1]
import heed
import programs
import safetensors_file
from generating import DECODER, V, decoder_logits, draw_weights, oracle
from runs import expect, expect_error, fails, finish, run

programs.start(*sys.argv[1:])
os.chdir(programs.folder)
rng = np.random.default_rng(11)
TIED = """model tied(ids: i32[N]) {
  param table: f32[V, D] @ "embed"
  param head: f32[V, D] @ "head" | "embed"
  param own: f32[L, D, D] @ "own"
  param gain: f32[D] @ "gain"
  x[n,d] = table[ids[n],d] * exp(gain[d])
  for l in 0..L { x[n,d] = x[n,d] + sum(c) x[n,c] * own[l,d,c] }
  return y[n,v] = sum(d) x[n,d] * head[v,d]
}"""
ROWS, WIDTH, LAYERS = 700, 96, 3


def drawn(kind):
    """Of f32, bf16 or f16; bf16 as its 16 bits."""
    arrays = {"embed": (ROWS, WIDTH), "own": (LAYERS, WIDTH, WIDTH), "gain": (WIDTH,)}
    arrays = {name: rng.standard_normal(shape).astype(np.float32) / 8 for name, shape in arrays.items()}
    if kind == "f16":
        return {name: a.astype(np.float16) for name, a in arrays.items()}
    return arrays


def library(name, source, *options):
    with open(name + ".heed", "w") as file:
        file.write(source)
    done = run(programs.heedc, name + ".heed", "--emit=shared", "-o", name + ".so", *options)
    expect(done.returncode == 0, done.stderr)
    return name + ".so"


def child(model, ids, want, queue):
    queue.put(np.array_equal(model(ids), want))


# Of sizes that heedc reads from the checkpoint, panels are packed; of unknown ones the weights are copied to the file as they are.
for kind, options in ("f32", True), ("f16", True), ("f32", False):
    arrays, what = drawn(kind), f"{kind}, {'known' if options else 'unknown'} sizes"
    safetensors_file.write("tied.safetensors", arrays)
    path = library("tied", TIED, *(["--weights=tied.safetensors"] if options else []))
    model = heed.load(path, weights="tied.safetensors")
    model.save_packed("tied.packed")
    held, size = model.memory(), os.path.getsize("tied.packed")
    expect(size < held.weights + held.copies + 10000, f"{what}: a file of {size} bytes of {held}")
    calls = [np.array(ids, np.int32) for ids in ([3], [5, 0, ROWS - 1], rng.integers(0, ROWS, 70))]
    wanted = [model(ids) for ids in calls]
    exact = arrays["embed"].astype(np.float64)[calls[1]] * np.exp(arrays["gain"].astype(np.float64))
    for layer in arrays["own"].astype(np.float64):
        exact = exact + exact @ layer.T
    exact = exact @ arrays["embed"].astype(np.float64).T
    expect(np.abs(wanted[1] - exact).max() < 1e-5 * np.abs(exact).max(), f"{what}: numbers")
    model.close()
    os.rename("tied.safetensors", "away.safetensors")
    packed = heed.load(path, packed="tied.packed", threads=2)
    for ids, want in zip(calls, wanted):
        expect(np.array_equal(packed(ids), want), f"{what}: not the same bits")
    use = packed.memory()
    expect(use.copies == 0 and size - 10000 < use.weights <= size, f"{what}: {use} of {size} bytes")
    queue = multiprocessing.get_context("fork").Queue()
    process = multiprocessing.get_context("fork").Process(target=child, args=(packed, calls[1], wanted[1], queue))
    process.start()
    expect(queue.get(timeout=60), f"{what}: in a child of fork")
    process.join()
    packed.save_packed("again.packed")
    expect(open("again.packed", "rb").read() == open("tied.packed", "rb").read(), f"{what}: saved from the file itself")
    # The same compilation again has the same key, another has not.
    again = library("again", TIED, *(["--weights=away.safetensors"] if options else []))
    expect(np.array_equal(heed.load(again, packed="tied.packed")(calls[1]), wanted[1]), f"{what}: compiled again")
    other = library("other", TIED.replace("exp(gain[d])", "exp(2 * gain[d])"), *(["--weights=away.safetensors"] if options else []))
    fails(heed.RunError, "packed for another compilation of 'tied'", lambda other=other: heed.load(other, packed="tied.packed"))
    fails(heed.RunError, "or other weights, found both", lambda path=path: heed.load(path, packed="tied.packed", weights="away.safetensors"))
    fails(heed.RunError, "cannot be written", lambda packed=packed: packed.save_packed("no/such/folder"))
fails(heed.RunError, "packed weights of another model than 'decoder'",
      lambda: heed.load(library("decoder", DECODER), packed="tied.packed"))

# A program that generates: settings come from the checkpoint's folder still, weights from the file.
weights, prompt = draw_weights(rng, V), [3, 14, 15, 9, 26]
logits_of = decoder_logits(weights)
os.mkdir("folder")
safetensors_file.write("folder/model.safetensors", weights)
decoder = programs.compile("decoder", DECODER, "--weights=folder/model.safetensors")
done = run(decoder, "--weights", "folder", "--save-packed", "decoder.packed")
expect(done.returncode == 0, f"--save-packed: {done.stderr}")
os.remove("folder/model.safetensors")
plain = oracle(logits_of, prompt, 12)
ask = [decoder, "--packed", "decoder.packed", "--generate", "12", "--ids", ",".join(map(str, prompt))]
expect(run(*ask).stdout.split() == [str(token) for token in plain], "tokens of a packed file")
with open("folder/generation_config.json", "w") as file:
    file.write('{"eos_token_id": %d}' % plain[4])
stopped = [str(token) for token in oracle(logits_of, prompt, 12, stop=(plain[4],))]
expect(run(*ask, "--weights", "folder").stdout.split() == stopped, "settings of the folder")

# Two targets: packed for the one that ran.
safetensors_file.write("tied.safetensors", drawn("f32"))
two = programs.compile("two", TIED, "--target=x86-64-v2,x86-64-v3", "--weights=tied.safetensors")
np.save("ids.npy", np.arange(5))
for name, other in ("x86-64-v2", "x86-64-v3"), ("x86-64-v3", "x86-64-v2"):
    own = {**os.environ, "HEED_TARGET": name}
    done = run(two, "--weights", "tied.safetensors", "--save-packed", "two.packed", env=own)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    results = []
    for source in ("--weights", "tied.safetensors"), ("--packed", "two.packed"):
        expect(run(two, *source, "--ids", "ids.npy", "--output", "y.npy", env=own).returncode == 0, f"{name} {source}")
        results.append(np.load("y.npy"))
    expect(np.array_equal(*results), f"{name}: not the same bits")
    expect_error(run(two, "--packed", "two.packed", "--ids", "ids.npy", env={**os.environ, "HEED_TARGET": other}),
                 f"packed for the target {name}, but the code that runs here is for {other}", name)
finish()
