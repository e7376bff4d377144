# RUN: rm -rf %t && env PYTHONPATH=%heed_src/python:%heed_src/test/support:%heed_src/test/huggingface %python %s %heed_bin/heedc %t
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""200 greedy tokens of transformers (long.json, which make_generated.py writes). Fed them, we choose the same at each step, or theirs is within 1e-4 of our
largest logit; a program that goes on by itself makes the same ones up to the first such tie. They are 83 different ones for gpt2, 165 for llama, 106 for qwen3,
107 for gemma3_text, 150 for mamba2, of 1009."""
import contextlib
import json
import os
import pathlib
import sys

import numpy as np

os.environ["HEEDC"] = sys.argv[1]
import heed
import weights
from runs import expect, finish, run

HEEDC, SCRATCH = sys.argv[1], pathlib.Path(sys.argv[2])
HERE = pathlib.Path(__file__).parent
NEW, TIE = 200, 1e-4


def write_folder(architecture, about):
    stored = HERE / "expected" / architecture / "default"
    parts = [json.loads((stored / file).read_text()) for file in ("case.json", "config.json")]
    folder = SCRATCH / architecture
    weights.write(folder, *weights.resized(*parts, about["config"], **about["case"]))
    return folder


def fed(model, ids, begin):
    """Logits of the last NEW positions, before each of which transformers chose a token; `begin`: how many tokens the first call is given."""
    state, forward = model.state(B=1, **({"C": len(ids)} if any("C" in tensor.extents for tensor in model._library.states) else {})), model["forward"]
    calls = [ids[:begin], *([token] for token in ids[begin:])]
    logits = [forward(ids=np.array([call], np.int32), count=np.array([len(call)], np.int32), state=state)[0].copy() for call in calls]
    return np.array(logits[-NEW:])


def check_choices(logits, greedy, what):
    """Each step's choice; returns the first step at which two tokens are within TIE."""
    for step, (row, theirs) in enumerate(zip(logits, greedy)):
        if not row[theirs] >= row.max() - TIE:
            expect(False, f"{what}, step {step}: {row.argmax()} of {row.max()}, transformers chose {theirs} of {row[theirs]}")
    best = np.sort(logits, axis=1)
    ties = np.flatnonzero(best[:, -1] - best[:, -2] <= TIE)
    return int(ties[0]) if ties.size else len(greedy)


def check(architecture, about):
    prompt, greedy = about["prompt"], about["greedy"]
    expect(len(greedy) == NEW and len(set(greedy)) >= 80, f"{architecture}: {len(set(greedy))} of {len(greedy)} tokens differ")
    folder, ids = write_folder(architecture, about), prompt + greedy[:-1]
    with contextlib.closing(heed.compile(folder, weights=folder)) as model:
        alone, whole = (check_choices(fed(model, ids, begin), greedy, f"{architecture}, {begin} tokens at first") for begin in (1, len(prompt)))
    program, tie = SCRATCH / f"{architecture}.program", min(alone, whole)
    expect(tie >= 150, f"{architecture}: a tie at step {tie}")
    done = run(HEEDC, folder, "-o", program)
    expect(done.returncode == 0, f"{architecture}: {done.stderr}")
    np.save(SCRATCH / "prompt.npy", np.array([prompt], np.int32))
    done = run(program, "--weights", folder, "--ids", SCRATCH / "prompt.npy", "--generate", NEW, "--stop", 10**6)  # as for transformers, none ends the text
    found = [int(token) for token in done.stdout.split()]
    expect(done.returncode == 0 and len(found) == NEW and found[:tie] == greedy[:tie], f"{architecture}: {found}, expected {greedy}; {done.stderr}")
    print(f"{architecture}: {len(set(greedy))} different tokens, the first tie at step {tie}, the same {sum(np.cumprod(np.equal(found, greedy)))}")


os.makedirs(SCRATCH)
for architecture, rows in json.loads((HERE / "long.json").read_text()).items():
    check(architecture, rows[0])
finish()
