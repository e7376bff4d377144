# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Vaswani et al. 2017, section 6.1: of all continuations of the K hypotheses the best K by log p / length^alpha, those that have ended among them, with a decoder in
NumPy that has no cache. With as many hypotheses as there are continuations it is the best of all, found by trying them. `forward` with m.generate's beams, whose
ended hypotheses leave the beam, as transformers' do."""
import numpy as np
from decoders import draw, logits
from sampling import beam_search, exhaustive, log_softmax
from states import check, compile

rng = np.random.default_rng(335)
END = 2


def oracle(prompt, weights, beams, length, alpha):
    """The K hypotheses after `length` steps: score, tokens; how far the choice is from another one."""
    pool, margin = [(0.0, [])], np.inf
    for step in range(length):
        more = []
        for score, tokens in pool:
            if tokens[-1:] == [END]:
                more.append((score, tokens))
                continue
            more += [(score + p, tokens + [v]) for v, p in enumerate(log_softmax(logits(np.array(prompt + tokens), weights)[-1]))]
        more.sort(key=lambda one: -one[0] / len(one[1]) ** alpha)
        ranks = [score / len(tokens) ** alpha for score, tokens in more[: beams + 1]]
        margin = min([margin, *-np.diff(ranks)])
        pool = more[:beams]
    assert margin > 1e-5, f"the test's choice lies on an edge: {margin}"
    return pool


def search(m, prompts, beams, length):
    """Tokens and scores of all hypotheses, sentence by sentence; the model's loop."""
    state = m.state(R=beams * len(prompts), C=max(map(len, prompts)) + length)
    ids = np.full((len(prompts), max(map(len, prompts))), -1, np.int32)
    for row, prompt in zip(ids, prompts):
        row[: len(prompt)] = prompt
    count = np.array([len(prompt) for prompt in prompts], np.int32)
    m["prompt"](np.repeat(ids, beams, 0), np.repeat(count, beams), state=state)
    for _ in range(length - 1):
        m["step"](state=state)
    assert state["steps"] == length
    rows = [[int(t) for t in text[:n]] for text, n in zip(state["text"], state["length"])]
    return [[(score, row) for score, row in zip(state["score"][at:at + beams], rows[at:at + beams])] for at in range(0, len(rows), beams)]


def agree(found, wanted, what):
    found, wanted = ([one for one in pool if one[0] > -np.inf] for pool in (found, wanted))
    assert [tokens for _, tokens in found] == [tokens for _, tokens in wanted], f"{what}: {found}, {wanted}"
    error = max(abs(a - b) / abs(b) for (a, _), (b, _) in zip(found, wanted))
    assert error < 1e-5, f"{what}: scores differ by {error}"


# All continuations of three words: at most 9 hypotheses stand before the last step.
prompts = [[1, 0, 1], [0]]
for alpha in 0.0, 0.6, 2.0:
    weights = draw(rng, 3, 12, 16, scale=3)
    m = compile("decoding/beam-search", weights, beams=9, alpha=alpha, end=END)
    for prompt, found in zip(prompts, search(m, prompts, 9, 3)):
        tokens, score, margin = exhaustive(lambda seen: logits(np.array(seen), weights)[-1], prompt, 3, 3, (END,), alpha)
        assert margin > 1e-5, "the test's best lies on an edge"
        agree([(found[0][0] / len(found[0][1]) ** alpha, found[0][1])], [(score, tokens)], f"beam-search, exhaustive, alpha {alpha}")
        agree(found, oracle(prompt, weights, 9, 3, alpha), f"beam-search, exhaustive, all hypotheses, alpha {alpha}")

for words, beams, alpha, length, prompts in [(11, 4, 0.6, 12, [[3, 1, 4, 1, 5], [9], [7, 6]]), (61, 3, 1.0, 9, [[60, 0, 17]]), (7, 1, 0.0, 5, [[1, 3], [4]])]:
    weights = draw(rng, words, 40, 16, scale=4)
    m, what = compile("decoding/beam-search", weights, beams=beams, alpha=alpha, end=END), f"beam-search, {beams} hypotheses of {words} words"
    for prompt, found in zip(prompts, search(m, prompts, beams, length)):
        agree(found, oracle(prompt, weights, beams, length, alpha), what)
    made = np.reshape(m.generate(prompts, max_new=length, beams=beams, length_penalty=alpha, stop=[END]), (len(prompts), -1))
    for prompt, row in zip(prompts, made.tolist()):
        want = beam_search(lambda seen: logits(np.array(seen), weights)[-1], prompt, beams, length, (END,), alpha)[0]
        assert [t for t in row if t >= 0] == want, f"{what}: generated {row}, {want}"
    print(f"{what}: agree")
rows = [rng.integers(0, words, n).astype(np.int32) for n in (23, 9, 0)]
check(m, "forward", rows, [logits(row, weights) for row in rows], lambda: m.state(R=3, C=23), "beam-search, the decoder", last=True, batch="R", trims=False)
