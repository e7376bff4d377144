# RUN: rm -rf %t && mkdir -p %t && env PYTHONPATH=%heed_src/test/support:%heed_src/test/huggingface %python %s %heed_bin/heedc %t
"""Programs of checkpoint folders generate what transformers does (generated.json, which make_generated.py writes): two rows at a time, and with the
settings of the folder's generation_config.json: beams with stop ids, forced and suppressed tokens, n-grams, bad words, lengths."""
import json
import os
import pathlib
import sys

import numpy as np

import weights
from runs import expect, finish, run

heedc, scratch = sys.argv[1:]
HERE = pathlib.Path(__file__).parent
os.chdir(scratch)


def tokens_of(done):
    expect(done.returncode == 0, f"{done.args}: {done.stderr}")
    return [[int(token) for token in line.split()] for line in done.stdout.splitlines()]


def check(architecture, rows):
    folder, arrays = HERE / "expected" / architecture / "default", np.load(HERE / "expected" / architecture / "default" / "expected.npz")
    weights.write(architecture, *(json.loads((folder / file).read_text()) for file in ("case.json", "config.json")))
    program = f"./{architecture}.program"
    done = run(heedc, architecture, "-o", program)
    expect(done.returncode == 0, done.stderr)

    def generate(which, count, *options):
        """Of the rows that a slice names; encoders' inputs as transformers had them."""
        inputs = []
        for name in ("features", "source", "length"):
            if f"encode.in.{name}" in arrays:
                np.save(name + ".npy", arrays[f"encode.in.{name}"][which])
                inputs += ["--" + name, name + ".npy"]
        if not inputs:
            prompts = [row["prompt"] for row in rows[which]]
            longest = max(map(len, prompts))
            np.save("ids.npy", np.array([prompt + [0] * (longest - len(prompt)) for prompt in prompts], np.int32))
            np.save("count.npy", np.array([len(prompt) for prompt in prompts], np.int32))
            inputs = ["--ids", "ids.npy", "--count", "count.npy"]
        return tokens_of(run(program, "--weights", architecture, *inputs, "--generate", count, *options))

    shortest = min(len(row["greedy"]) for row in rows)
    found = generate(slice(0, 2), shortest, "--stop", 10**6)
    expect(found == [row["greedy"][:shortest] for row in rows], f"{architecture}: {found}, expected {rows}")
    for b, row in enumerate(rows):
        with open(f"{architecture}/generation_config.json", "w") as file:
            json.dump({"eos_token_id": row["stop"], "num_beams": 3, "length_penalty": 0.6, "repetition_penalty": 1.2,
                       "decoder_start_token_id": row["prompt"][0]}, file)
        found = generate(slice(b, b + 1), 14)
        expect(found == [row["beams"]], f"{architecture}, beams of row {b}: {found}, expected {row['beams']}")
        for name, more in (("ruled", {}), ("early", {"num_beams": 3, "length_penalty": 2.0, "early_stopping": True})):
            with open(f"{architecture}/generation_config.json", "w") as file:
                json.dump({**row["rules"], **more, "decoder_start_token_id": row["prompt"][0]}, file)
            found = generate(slice(b, b + 1), 14)
            expect(len(row[name]) > 3 and [found[0][:len(row[name])]] == [row[name]] and (name == "ruled" or found == [row[name]]),
                   f"{architecture}, {name} of row {b}: {found}, expected {row[name]}")


for architecture, rows in json.loads((HERE / "generated.json").read_text()).items():
    check(architecture, rows)
finish()
