# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Xiao and Zhu 2023, equations 192 and 193: Pr(c | s_i) = softmax(W s_i + b) of the decoder's row s_i, over the whole text and without a cache; a row stops at the
first i, from the prompt's last token on, where Pr(stop) >= Pr(not) + threshold, and is stopped from then on; the greedy choice until then."""
import numpy as np
from decoders import decoder, draw, logits
from states import check, compile
from zoo import linear, linear_weights, softmax

rng = np.random.default_rng(336)
MOST, THRESHOLD = 30, 0.3


def stops(tokens, weights):
    """Pr(stop) at each token."""
    return softmax(linear(decoder(tokens, weights), weights, "stop"))[:, 0]


def oracle(prompt, weights):
    """What is said until the classifier stops, and then `end`."""
    made = []
    while len(made) < MOST:
        p = stops(np.array(prompt + made), weights)[-1]
        assert abs(p - (1 - p) - THRESHOLD) > 1e-4, "the test's choice lies on an edge"
        if p >= 1 - p + THRESHOLD:
            return made + [END]
        made.append(int(logits(np.array(prompt + made), weights)[-1].argmax()))
    return made


for words, prompts in [(31, [[3, 1, 4, 1, 5], [9], [2, 6]]), (61, [[60, 0, 17]])]:
    weights = draw(rng, words, 80, 16, scale=6) | linear_weights(rng, "stop", 2, 16) | {"stop.bias": np.zeros(2, np.float32)}
    END = words - 1
    m = compile("decoding/learned-stop", weights, threshold=THRESHOLD, end=END)
    wants = [oracle(prompt, weights) for prompt in prompts]
    assert all(2 < len(want) < MOST for want in wants), f"the test's rows stop at once or not at all: {wants}"
    state = m.state(B=len(prompts), C=40)
    made = np.reshape(m.generate(prompts, max_new=MOST, stop=[END], state=state), (len(prompts), -1))
    assert [[t for t in row if t >= 0] for row in made.tolist()] == wants, f"generated {made}, {wants}"
    assert state["stopped"].tolist() == [True] * len(prompts), state["stopped"]
    rows = [rng.integers(0, words, n).astype(np.int32) for n in (23, 9, 0)]
    check(m, "forward", rows, [stops(row, weights) for row in rows], lambda: m.state(B=3, C=23), f"learned-stop, {words} words", last=True, result="stop", trims=False)
