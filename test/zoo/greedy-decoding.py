# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Xiao and Zhu 2023, equations 198 and 199: y_t is the largest logit of a decoder over the prompt and y_<t, without a cache; a row ends with `end`. The model's own
choices, given back to it, and m.generate make the same tokens. (Draws from a distribution: test/runtime/sampler.py, and of programs test/e2e/generate.py.)"""
import numpy as np
from decoders import draw, logits
from generating import oracle as greedy
from states import check, compile

rng = np.random.default_rng(334)
MOST = 20


def chosen(m, prompts, count):
    """Tokens of each row, by a loop around `forward` that gives `next` back."""
    state = m.state(B=len(prompts), C=max(map(len, prompts)) + MOST)
    ids = np.full((len(prompts), max(map(len, prompts))), -1, np.int32)
    for row, prompt in zip(ids, prompts):
        row[: len(prompt)] = prompt
    found, turn = [[] for _ in prompts], np.array([len(prompt) for prompt in prompts], np.int32)
    for step in range(count):
        got = m(ids, turn, state=state)
        for row, token, on in zip(found, got.next, turn):
            assert on or token == END, f"a row that has ended gives {token}"
            row += [int(token)] if on else []
        ids, turn = got.next[:, None].copy(), (~got.ended).astype(np.int32)
    return found


for words, prompts in [(11, [[3, 1, 4, 1, 5], [9], [2, 6]]), (61, [[60, 0, 17]])]:
    weights = draw(rng, words, 80, 16, scale=3)
    of = lambda seen: logits(np.array(seen), weights)[-1]
    END = greedy(of, prompts[0], 6)[-1]
    wants = [greedy(of, prompt, MOST, stop=(END,)) for prompt in prompts]
    m = compile("decoding/greedy-decoding", weights, end=END)
    made = np.reshape(m.generate(prompts, max_new=MOST, stop=[END]), (len(prompts), -1))
    assert [[t for t in row if t >= 0] for row in made.tolist()] == wants, f"generated {made}, {wants}"
    found = chosen(m, prompts, MOST)
    assert found == wants, f"chosen {found}, {wants}"
    assert len(wants[0]) < MOST, "the test's row does not end"
    rows = [rng.integers(0, words, n).astype(np.int32) for n in (23, 9, 0)]
    check(m, "forward", rows, [logits(row, weights) for row in rows], lambda: m.state(B=3, C=23), f"greedy-decoding, {words} words", last=True, result="logits", trims=False)
