# RUN: %python %s %heed_bin %heed_src %t %cc
# The program is linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
"""heed.hpp's states and generate.hpp: they compile without a warning as C++17 and C++20; logits, tokens, beams and what is planned are what NumPy and the runtime say;
mistakes are exceptions. With the address sanitizer of the program, nothing is left behind."""
import pathlib
import subprocess
import sys

import numpy as np

import safetensors_file
from generating import DECODER, V, decoder_logits, draw_weights, oracle
from runs import expect, finish, run
from sampling import beam_search

heedc, source = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder, cc = pathlib.Path(sys.argv[3]), sys.argv[4]
folder.mkdir(parents=True, exist_ok=True)
(folder / "decoder.heed").write_text(DECODER)
for kind, file in (("lib", "libdecoder.a"), ("header", "decoder.h")):
    subprocess.run([heedc, folder / "decoder.heed", "--emit=" + kind, "-o", folder / file], check=True)
weights = draw_weights(np.random.default_rng(1718), V)
safetensors_file.write(folder / "w.safetensors", weights)
logits_of, prompt = decoder_logits(weights), [3, 14, 15, 9, 26]
tokens = oracle(logits_of, prompt, 12)
ruled = oracle(logits_of, prompt, 12, stop=(tokens[2],), rules={"ngram": 2, "words": [tokens[:2], tokens[3:4]], "min_length": 8, "bos": [1], "eos": [50],
                                                                 "suppress": tokens[4:5], "begin": tokens[5:6]})
score, best = 0.0, beam_search(logits_of, prompt, 2, 6, (), 1.0)[0]
for k, token in enumerate(best):
    s = logits_of(prompt + best[:k])
    score += s[token] - s.max() - np.log(np.exp(s - s.max()).sum())
for standard in ("c++17", "c++20"):
    done = run(cc, "-x", "c++", f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsanitize=address,undefined", "-I", folder,
               "-I", source / "runtime", source / "test/e2e/Inputs/generate.cpp", "-x", "none", folder / "libdecoder.a", "-lstdc++", "-lm",
               "-lpthread", "-o", folder / "generate")
    expect(done.returncode == 0, f"{standard}: {done.stderr}")
    done = run(folder / "generate", folder / "w.safetensors", V, folder / "state.safetensors")
    expect(done.returncode == 0, f"{standard}: {done.returncode} {done.stderr}")
    lines = done.stdout.splitlines()
    expect(lines[0] == "length 0", f"{standard}: planning has changed the state: {lines[0]}")
    planned, buffers = map(int, lines[1].split()[1:])
    expect(0 < planned <= buffers, f"{standard}: planned {planned} bytes, found {buffers}")
    got, wanted = np.array([float(x) for x in lines[2:2 + V]]), logits_of(prompt)
    expect(np.abs(got - wanted).max() < 1e-4 * np.abs(wanted).max(), f"{standard}: {np.abs(got - wanted).max()}")
    rest = lines[2 + V:]
    words = lambda name, ids: " ".join([name, *map(str, ids)])
    stopped = tokens[:tokens.index(tokens[2]) + 1]
    wanted = ["length 5", *[f"token {t}" for t in tokens], words("all", tokens), words("all", tokens), words("all", stopped), words("rules", ruled), words("beams", best)]
    expect(rest[:len(wanted)] == wanted, f"{standard}: {rest[:len(wanted)]}, expected {wanted}")
    found = rest[len(wanted)].split()
    expect(found[0] == "score" and abs(float(found[1]) - score / 6) < 1e-4, f"{standard}: {found}, expected {score / 6}")
    for line, text in zip(rest[len(wanted) + 1:], ("argument: the state 'kc' needs dim 'C'", "range: state 'len': element 0 is 16 and cannot become 99", "file: none",
                                                   "argument: entry 'peek' has 1 inputs", "argument: ")):
        expect(line.startswith(text), f"{standard}: {line!r}, expected {text!r}")
    expect(len(rest) == len(wanted) + 6, f"{standard}: {rest}")
finish()
