"""Fuzzes each reader from a corpus of valid and truncated files, 60 seconds each (HEED_FUZZ_SECONDS changes that).

The drivers are built with sanitizers alone: `make asan`.
REQUIRES: fuzzer
RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin/../test/fuzz/bin %t
"""
import io
import json
import os
import subprocess
import sys

import numpy as np

import safetensors_file

drivers, folder = sys.argv[1:]
seconds = os.environ.get("HEED_FUZZ_SECONDS", "60")
random = np.random.default_rng(5)


def corpus(name):
    """Valid files of one reader."""
    if name == "npy":
        for code in ["f4", "f2", "f8", "i1", "i2", "i4", "i8", "u1", "b1", ">f4", "c8"]:
            for shape in [(), (3,), (2, 3), (0, 5)]:
                for order in "CF":
                    stream = io.BytesIO()
                    np.save(stream, np.asarray(random.integers(0, 9, shape).astype(code), order=order))
                    yield stream.getvalue()
    elif name == "npz":
        for save in [np.savez, np.savez_compressed]:
            for arrays in [{"a": np.ones(3, "f4")}, {"a": np.ones((2, 2)), "b": np.zeros(0, "i4")}, {}]:
                stream = io.BytesIO()
                save(stream, **arrays)
                yield stream.getvalue()
    elif name == "safetensors":
        for tensors in [{}, {"a": np.ones(3, "f4")}, {"a": np.ones((2, 3), "f2"), "\u00e9": np.zeros(0), "c": np.array(1)}]:
            header, data = safetensors_file.header_and_data(tensors)
            yield safetensors_file.pack(header, data)
            yield safetensors_file.pack({"__metadata__": {"k": "v", "n": [1.5e3, None, True]}, **header}, data)
    elif name == "generation":
        for config in [{}, {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0, "eos_token_id": [151645, 151643], "bos_token_id": 151643},
                       {"num_beams": 4, "length_penalty": 2.0, "decoder_start_token_id": 2, "eos_token_id": 2, "no_repeat_ngram_size": 3, "forced_bos_token_id": 0},
                       {"begin_suppress_tokens": [220, 50257], "suppress_tokens": [], "repetition_penalty": None, "early_stopping": "never", "min_length": 1}]:
            yield json.dumps(config).encode()
    else:
        for names in [{}, {"a": "1.safetensors"}, {"a": "1.safetensors", "\U0001f600": "2.safetensors"}, {"a": "../x"}]:
            yield json.dumps({"metadata": {"total_size": 1}, "weight_map": names}).encode()


running = []
for name in ["npy", "npz", "safetensors", "index", "generation"]:
    seeds = os.path.join(folder, name)
    os.makedirs(seeds)
    for k, content in enumerate(corpus(name)):
        for part, length in enumerate([len(content), len(content) // 2, max(len(content) - 1, 0)]):
            with open(os.path.join(seeds, f"{k}-{part}"), "wb") as file:
                file.write(content[:length])
    command = [os.path.join(drivers, "fuzz-" + name), "-max_total_time=" + seconds, "-max_len=4096", "-print_final_stats=1",
               f"-artifact_prefix={folder}/{name}-", seeds]
    log = open(os.path.join(folder, name + ".log"), "w+")
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    running.append((name, process, log))

failed = False
for name, process, log in running:
    code = process.wait()
    log.seek(0)
    text = log.read()
    print(name, "exit code", code)
    print("\n".join(text.splitlines()[-12:]))
    failed |= code != 0
sys.exit(failed)
