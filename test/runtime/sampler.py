"""heed_sampler against a NumPy oracle in float64: each filter and all together, penalties, stop ids; draws follow their distribution, and depend on the logits, the seed,
the row's id and its position alone.

RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin/../test/runtime/bin/sampler-test %t
"""
import os
import sys

import numpy as np

from runs import expect, finish, run
from sampling import draw, philox, probabilities

program, folder = sys.argv[1:]
os.chdir(folder)
rng = np.random.default_rng(1717)

# The published vectors of Random123.
expect(philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], "philox of zeros")
expect(philox([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD], "philox of ones")


def sample(logits, *options, rows=(), stop=None, name="logits.npy"):
    np.save(name, logits)
    done = run(program, name, *options, *rows, env={**os.environ, **({} if stop is None else {"STOP": str(stop)})})
    expect(done.returncode == 0, done.stderr)
    return [line if ":" in line else [int(token) for token in line.split()] for line in done.stdout.splitlines()]


def oracle(logits, temperature=0, top_k=0, top_p=1, min_p=0, penalty=1, seed=0, rows=None, stop=None):
    """The tokens, and how far each draw is from where another token would be drawn."""
    steps, count, _ = logits.shape
    seen, result, stopped = [[] for _ in range(count)], [], [False] * count
    least = 1.0
    for t in range(steps):
        tokens = []
        for r in range(count):
            if stopped[r]:
                tokens.append(-1)
                continue
            token, margin = draw(logits[t, r], seen[r], seed, rows[r] if rows else r, temperature, top_k, top_p, min_p, penalty)
            least = min(least, margin) if temperature else least
            tokens.append(token)
            seen[r].append(token)
            stopped[r] = token == stop
        result.append(tokens)
    return result, least


logits = (3 * rng.standard_normal((40, 3, 97))).astype(np.float32)
logits[5:9] = np.round(logits[5:9])  # equal ones
logits[11, 1, ::2] = -np.inf
for options in [{}, {"penalty": 1.7}, {"temperature": 1.0}, {"temperature": 0.3}, {"temperature": 2.5, "top_k": 5}, {"temperature": 1.0, "top_k": 1},
                {"temperature": 1.0, "top_k": 96}, {"temperature": 1.0, "top_k": 500}, {"temperature": 1.3, "top_p": 0.8}, {"temperature": 1.0, "top_p": 1e-9},
                {"temperature": 1.0, "min_p": 0.1}, {"temperature": 0.9, "min_p": 1.0}, {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "min_p": 0.05, "penalty": 1.2},
                {"temperature": 1e-6}, {"temperature": 1.0, "penalty": 0.7}]:
    for seed in (0, 2**63 + 5):
        o = {"temperature": 0, "top_k": 0, "top_p": 1, "min_p": 0, "penalty": 1, **options, "seed": seed}
        rows = (7, 2**40 + 1, 0)
        wanted, least = oracle(logits, **o, rows=rows)
        found = sample(logits, *o.values(), rows=rows)
        expect(least > 1e-12, f"{o}: the test's draw lies on an edge")
        expect(found == wanted, f"{o}: {[(a, b) for a, b in zip(found, wanted) if a != b][:3]}")
# Half types are taken as they are.
half = logits.astype(np.float16)
wanted, _ = oracle(half.astype(np.float32), temperature=1.0, top_p=0.95)
expect(sample(half, 1.0, 0, 0.95, 0, 1, 0) == wanted, "f16")
bits = (logits.view(np.uint32) >> 16).astype(np.uint16)
wanted, _ = oracle((bits.astype(np.uint32) << 16).view(np.float32), temperature=1.0, top_k=9)
expect(sample(bits.view("V2"), 1.0, 9, 1, 0, 1, 0) == wanted, "bf16")
# A row that has stopped.
wanted, _ = oracle(logits, temperature=1.5, top_k=6, stop=30)
stops = sample(logits, 1.5, 6, 1, 0, 1, 0, stop=wanted[9][1])
wanted, _ = oracle(logits, temperature=1.5, top_k=6, stop=wanted[9][1])
expect(stops == wanted and stops[10][1] == -1 and stops[10][0] >= 0, f"stop ids: {stops}")

# A row draws the same alone, in a batch, and in another place of it.
options = (1.1, 0, 0.97, 0, 1.3, 12)
batch = sample(logits, *options, rows=(4, 5, 6))
expect([t[2] for t in batch] == [t[0] for t in sample(logits[:, 2:], *options, rows=(6,))], "a row alone")
expect([t[::-1] for t in batch] == sample(logits[:, ::-1], *options, rows=(6, 5, 4)), "rows in another order")
expect(batch != sample(logits, *options[:-1], 13, rows=(4, 5, 6)) and batch != sample(logits, *options, rows=(5, 4, 6)), "another seed, other rows: the same draws")

# The draws follow the distribution (chi-square, fixed seed): within four standard deviations of its mean. So do those that a filter leaves.
row = (1.5 * rng.standard_normal(24)).astype(np.float32)
count = 4000
for options in [(1.0, 0, 1, 0, 1), (0.7, 8, 1, 0, 1), (1.0, 0, 0.75, 0, 1), (1.4, 12, 0.9, 0.1, 1)]:
    drawn = np.array(sample(np.tile(row, (count // 100, 100, 1)), *options, 99)).ravel()
    p = probabilities(row, (), *options)
    found = np.bincount(drawn, minlength=len(row))
    expect(not found[p == 0].any(), f"{options}: a token was drawn that is left out")
    live = p > 0
    chi, freedom = ((found[live] - count * p[live]) ** 2 / (count * p[live])).sum(), live.sum() - 1
    expect(abs(chi - freedom) < 4 * np.sqrt(2 * freedom), f"{options}: chi-square {chi} of {freedom} degrees of freedom")
# The test sees a wrong distribution.
wrong = probabilities(row, (), 1.1, *options[1:])
drawn = np.bincount(np.array(sample(np.tile(row, (40, 100, 1)), 1.0, 12, 0.9, 0.1, 1, 99)).ravel(), minlength=len(row))
live = (wrong > 0) & (drawn > 0)
expect(((drawn[live] - count * wrong[live]) ** 2 / (count * wrong[live])).sum() > live.sum() + 4 * np.sqrt(2 * live.sum()), "chi-square of a wrong temperature")

# Errors name the row, and the other rows have seen nothing.
bad = logits[:4].copy()
bad[1, 2, 3] = np.nan
bad[2, 1, 0] = np.inf
found = sample(bad, 1.0, 0, 1, 0, 1, 5)
good = sample(logits[[0, 3]], 1.0, 0, 1, 0, 1, 5)
expect(found[1] == "range: logits of row 2: that of token 3 is NaN" and found[2] == "range: logits of row 1: that of token 0 is inf", f"{found}")
expect([found[0], found[3]] == good, "rows after an error")
bad[0, 0] = -np.inf
expect(sample(bad, 0, 0, 1, 0, 1, 5)[0] == "range: logits of row 0: all are -inf, no token is left", "-inf alone")
expect(sample(np.zeros((2, 2, 7), np.float32), 1.0, 0, 1e-300, 0, 1, 5) == [[0, 0], [0, 0]], "a topP of almost nothing, of equal logits")
# 150000 tokens.
many = (2 * rng.standard_normal((2, 2, 150000))).astype(np.float32)
wanted, least = oracle(many, temperature=1.0, top_p=0.9, seed=3)
expect(sample(many, 1.0, 0, 0.9, 0, 1, 3) == wanted and least > 1e-13, "a large vocabulary")
done = run(program)
expect(done.stdout == "every mistake was refused\n", done.stderr)
finish()
