# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Xiao and Zhu 2023, equations 200 and 201, with the layers of Radford et al. 2018, over the whole text and without a cache; logits of the last token alone. The
prompt in one call or several, then tokens through the other entry; a model that continues what it has made is compared with NumPy's greedy choice."""
import numpy as np
from decoders import draw, logits
from generating import oracle as greedy
from states import agree, check, compile, run

rng = np.random.default_rng(308)
for lengths, words, d in [([23, 9, 0], 11, 16), ([70, 1], 23, 16)]:
    weights = draw(rng, words, 80, d)
    m = compile("whole-model/decoder-only", weights)
    rows = [rng.integers(0, words, n).astype(np.int32) for n in lengths]
    wants, what = [logits(row, weights) for row in rows], f"decoder-only, rows of {lengths}"
    open_state = lambda: m.state(B=len(rows), C=max(lengths))
    check(m, "prefill", rows, wants, open_state, what, last=True)
    state, half = open_state(), [len(row) // 2 for row in rows]
    run(m, "prefill", [row[:n] for row, n in zip(rows, half)], state, (1000,), last=True)
    for t in range(max(map(len, rows))):
        on = np.array([n + t < len(row) for row, n in zip(rows, half)])
        ids = np.array([row[n + t] if more else 99 for row, n, more in zip(rows, half, on)], np.int32)
        got = m["step"](ids, on.astype(np.int32), state=state)
        for b in np.flatnonzero(on):
            agree(got[b], wants[b][half[b] + t], f"{what}, step {t} of row {b}")
    prompts = [row[:5].tolist() for row in rows if len(row)]
    made = m.generate(prompts, max_new=9)
    for prompt, tokens in zip(prompts, np.reshape(made, (len(prompts), -1))):
        assert tokens.tolist() == greedy(lambda seen: logits(np.array(seen), weights)[-1], prompt, 9), f"{what}: generated {made}"
