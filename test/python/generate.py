# RUN: %python %s
# The library's runtime would want the sanitizer's, which is not in Python.
# UNSUPPORTED: asan
"""generate() and generation() of models from Python, against NumPy without a cache."""
import gc

import numpy as np

import heed
from generating import DECODER, PLAIN, V, decoder_logits, draw_weights, oracle
from runs import expect, fails, finish
from sampling import beam_search

rng = np.random.default_rng(1719)
weights = draw_weights(rng, V)
logits_of = decoder_logits(weights)
m = heed.compile(DECODER, weights=weights)
prompts = [[3, 14, 15, 9, 26], [7], [60, 0, 1]]


def padded(rows):
    width = max(map(len, rows))
    return [row + [-1] * (width - len(row)) for row in rows]


one = oracle(logits_of, prompts[0], 20)
tokens = m.generate(prompts[0], max_new=20)
expect(tokens.dtype == np.int32 and tokens.tolist() == one, f"one row: {tokens}, {one}")
expect(m.generate(np.array([prompts[0]], np.int64), max_new=20).tolist() == [one], "an array of i64")
stop = oracle(logits_of, prompts[1], 15)[4]
rows = [oracle(logits_of, prompt, 15, row, (stop,), 3, temperature=0.9, top_k=20, top_p=0.9, min_p=0.01, penalty=1.2) for row, prompt in enumerate(prompts)]
options = dict(max_new=15, temperature=0.9, top_k=20, top_p=0.9, min_p=0.01, repetition_penalty=1.2, seed=3, stop=stop)
expect(m.generate(prompts, **options).tolist() == padded(rows), f"lists of different lengths: {rows}")
expect(m.generate(prompts[2], rows=[2], **options).tolist() == rows[2], "a row of a batch, alone")
array = np.zeros((3, 5), np.int32)
for row, prompt in zip(array, prompts):
    row[:len(prompt)] = prompt
expect(m.generate(array, count=[5, 1, 3], **options).tolist() == padded(rows), "an array with lengths")
steps = [step.tolist() for step in m.generation(prompts, **options)]
expect(np.array(steps).T.tolist() == padded(rows), f"steps: {steps}")

# A state that goes on, with what it has seen; Ctrl-C and the like: what was made is there, and more can be.
state = m.state(B=1, C=64)
whole = m.generate(prompts[0], max_new=20, temperature=0.8, repetition_penalty=1.3, seed=5)
begin = m.generate(prompts[0], max_new=8, temperature=0.8, repetition_penalty=1.3, seed=5, state=state)
rest = m.generate(begin[-1:], past=prompts[0] + begin.tolist()[:-1], max_new=12, temperature=0.8, repetition_penalty=1.3, seed=5, state=state)
expect(begin.tolist() + rest.tolist() == whole.tolist() and state["len"].tolist() == [24], f"a state that goes on: {begin}, {rest}, {whole}")
generation = m.generation(prompts[0], max_new=20)
for k, step in zip(range(6), generation):
    pass
expect(generation.tokens().tolist() == one[:7] or generation.tokens().tolist() == one[:6], f"some steps: {generation.tokens()}")
rest = [int(step[0]) for step in generation]
expect(generation.tokens().tolist() == one and rest == one[-len(rest):], "the other steps")

# Beams.
flat = {**weights, "head": weights["head"] / 6}
beams = heed.compile(DECODER, weights=flat)
of_flat = decoder_logits(flat)
generation = beams.generation(prompts, max_new=9, beams=3, length_penalty=0.7, stop=[stop])
expect(all(step is None for step in generation), "steps of beams")
best = [beam_search(of_flat, prompt, 3, 9, (stop,), 0.7) for prompt in prompts]
expect(generation.tokens().tolist() == padded([tokens for tokens, _ in best]), f"beams: {generation.tokens()}, {best}")
expect(np.allclose(generation.scores(), [score for _, score in best], atol=1e-4), f"scores: {generation.scores()}, {best}")

# Two generations of one model in turns, each with a state of its own; they give their handles back.
pair = [m.generation(prompt, max_new=10) for prompt in prompts[:2]]
turns = np.array([[int(step[0]) for step in both] for both in zip(*pair)]).T.tolist()
expect(turns == [oracle(logits_of, prompt, 10) for prompt in prompts[:2]], f"in turns: {turns}")
del pair, generation, step
gc.collect()
handles = m._handles()
expect(len(handles.free) == len(handles.opened), f"{len(handles.free)} of {len(handles.opened)} handles are free")

closed = beams.generation(prompts, max_new=9)
next(closed)
beams.close()
fails(heed.RunError, "the model 'decoder' is closed", lambda: next(closed))
expect(closed.tokens().shape == (3, 1), "what a closed model has made")
plain = heed.compile(PLAIN, weights=weights)
expect(plain.generate(prompts[0], max_new=20).tolist() == one, "no count")
fails(TypeError, "has no input 'count'", lambda: plain.generate(prompts, max_new=2))
fails(TypeError, "has no input 'mask'", lambda: m.generate(prompts, max_new=2, mask=1))
fails(KeyError, "no entry 'none'", lambda: m.generate(prompts, max_new=2, entry="none"))
fails(TypeError, "peek() has no input 'ids'", lambda: m.generate(prompts, max_new=2, entry="peek"))
fails(heed.RangeError, "token 1 of row 0 is 61: expected 0 <= id < 61", lambda: m.generate([1, 61], max_new=2))
fails(heed.RangeError, "is out of range for kc", lambda: m.generate(prompts[0], max_new=9, state=m.state(B=1, C=7)))
fails(heed.ShapeError, "", lambda: m.generate(prompts[0], max_new=9, state=m.state(B=2, C=70)))
fails(heed.RunError, "temperature: expected", lambda: m.generate([1], max_new=2, temperature=-1))
fails(heed.RunError, "maxNew: expected 1", lambda: m.generate([1], max_new=0))
fails(heed.RunError, "topP: expected a number from 0 to 1, found -1", lambda: m.generate([1], max_new=2, top_p=-1))
expect(m.generate(prompts[0], max_new=20, temperature=2, top_p=0).tolist() == one, "top_p of 0")
fails(ValueError, "expected 1 ids of rows, found 2", lambda: m.generate([1], max_new=2, rows=[1, 2]))
fails(heed.RunError, "no entry takes ids", lambda: heed.compile("model none_(x: f32[N]) { return y[n] = x[n] }").generate([1], max_new=2))
finish()
