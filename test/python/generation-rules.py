# RUN: %python %s
# The library's runtime would want the sanitizer's, which is not in Python.
# UNSUPPORTED: asan
"""What may not be chosen, or must: drawn settings of m.generate against NumPy (sampling.py), for the largest logit, draws, beams and drawn beams, in batches and row
by row; what beams are drawn from; mistakes."""
import collections
import itertools
import random

import numpy as np

import heed
from generating import DECODER, decoder_logits, draw_weights, oracle
from runs import expect, fails, finish
from sampling import beam_search, log_softmax, warped

rng, chance = np.random.default_rng(1720), random.Random(1720)
models = {}
for vocabulary in (7, 11, 61):
    weights = draw_weights(rng, vocabulary)
    weights["head"] = weights["head"] / 3
    models[vocabulary] = heed.compile(DECODER, weights=weights), decoder_logits(weights)
# The oracle's names of transformers' settings.
NAMES = {"no_repeat_ngram_size": "ngram", "bad_words_ids": "words", "min_length": "min_length", "min_new_tokens": "min_new", "forced_bos_token_id": "bos",
         "forced_eos_token_id": "eos", "suppress_tokens": "suppress", "begin_suppress_tokens": "begin"}


def some(vocabulary, most):
    return [chance.randrange(vocabulary) for _ in range(chance.randint(1, most))]


def padded(rows):
    width = max(map(len, rows))
    return [list(row) + [-1] * (width - len(row)) for row in rows]


def drawn_rules(vocabulary, stop):
    choices = {"no_repeat_ngram_size": lambda: chance.choice([2, 3] if vocabulary < 20 else [1, 2, 3]),
               "bad_words_ids": lambda: [some(vocabulary, 3) for _ in range(chance.randint(1, 5))] + [[token] for token in stop[:1]],
               "min_length": lambda: chance.randint(1, 12), "min_new_tokens": lambda: chance.randint(1, 6), "suppress_tokens": lambda: some(vocabulary, 2),
               "forced_bos_token_id": lambda: some(vocabulary, 1), "forced_eos_token_id": lambda: some(vocabulary, 1),
               "begin_suppress_tokens": lambda: some(vocabulary, 2)}
    return {name: draw() for name, draw in choices.items() if chance.random() < 0.35}


def wanted(logits_of, prompts, count, stop, rules, seed, sampling, beams):
    """A list for each prompt, or None where the rules leave no token."""
    rules = {NAMES[name]: value for name, value in rules.items()}
    drawn = {**({"seed": seed} if sampling else {}), **sampling}
    try:
        if not beams:
            return [oracle(logits_of, prompt, count, row, stop, rules=rules, **drawn) for row, prompt in enumerate(prompts)]
        return [beam_search(logits_of, prompt, stop=stop, rules=rules, length=count, row=row, **drawn, **beams)[0] for row, prompt in enumerate(prompts)]
    except LookupError:
        return None


used, refused = collections.Counter(), 0
for trial in range(240):
    vocabulary = chance.choice([7, 11, 61])
    model, logits_of = models[vocabulary]
    prompts = [some(vocabulary, 1) if chance.random() < 0.4 else some(vocabulary, 7) for _ in range(3)]
    count, stop, seed = chance.choice([1, 2, 5, 9]), sorted(set(some(vocabulary, 2))) if chance.random() < 0.8 else [], chance.randrange(2**40)
    rules = drawn_rules(vocabulary, stop)
    sampling = {"temperature": chance.choice([0.6, 1.0, 1.7]), "top_k": chance.choice([0, 3, 6]), "top_p": chance.choice([1.0, 0.8]), "min_p": chance.choice([0, 0.1])}
    sampling = sampling if trial % 2 else {}
    beams = {"beams": chance.choice([2, 3]), "length_penalty": chance.choice([0.0, 1.0, 2.0, -0.7]), "early": chance.choice([True, False, "never"])}
    beams = beams if trial % 4 > 1 else {}
    named = {"early_stopping" if name == "early" else name: value for name, value in beams.items()}
    options = {"max_new": count, "stop": stop, "seed": seed, **rules, **sampling, **named}
    if trial % 3 == 0 and rules.get("forced_bos_token_id"):
        options["forced_bos_token_id"] = rules["forced_bos_token_id"][0]
    best = wanted(logits_of, prompts, count, stop, rules, seed, sampling, beams)
    what = f"{trial}: {prompts}, {options}"
    try:
        found = model.generate(prompts, **options)
    except heed.RangeError as error:
        expect(best is None and "the rules leave no token" in str(error), f"{what}: {error}, expected {best}")
        refused += 1
        continue
    expect(best is not None and found.tolist() == padded(best), f"{what}: {found.tolist()}, expected {best}")
    used.update(rules.keys())
    row = trial % 3
    expect(model.generate(prompts[row], rows=[row], **options).tolist() == best[row], f"{what}: row {row} alone")
expect(all(used[name] > 30 for name in NAMES) and refused < 60, f"the test's settings: {used}, {refused} are refused")

# Beams are drawn without replacement, by the exponentials of their scores: how often each pair comes in the first step, of 4000 seeds.
model, logits_of = models[7]
prompt, sampling = [3, 5], {"temperature": 8.0, "top_k": 4}
s = warped(log_softmax(logits_of(prompt)), 2, **sampling)
p = np.exp(s - s.max()) / np.exp(s - s.max()).sum()
pairs = collections.Counter()
counted = 4000
for seed in range(counted // 40):
    generation = model.generation([prompt] * 40, max_new=1, beams=2, seed=seed, **sampling)
    next(generation)
    pairs.update(generation.tokens()[:, 0].tolist())
# Of the four that are drawn (all that top_k leaves), the best one: with more left than are drawn it varies.
expect(pairs == {int(s.argmax()): counted}, f"all that is left is drawn: {pairs}")
sampling["top_k"] = 0
s = warped(log_softmax(logits_of(prompt)), 2, **sampling)
p = np.exp(s - s.max()) / np.exp(s - s.max()).sum()
order, chances = np.argsort(-s), collections.Counter()
for drawn in itertools.permutations(range(7), 4):
    left, probability = 1.0, 1.0
    for token in drawn:
        probability, left = probability * p[token] / left, left - p[token]
    chances[min(drawn, key=list(order).index)] += probability
pairs = collections.Counter()
for seed in range(counted // 40):
    generation = model.generation([prompt] * 40, max_new=1, beams=2, seed=seed, **sampling)
    next(generation)
    pairs.update(generation.tokens()[:, 0].tolist())
chi = sum((pairs[token] - counted * q) ** 2 / (counted * q) for token, q in chances.items() if counted * q > 5)
freedom = sum(counted * q > 5 for q in chances.values()) - 1
expect(freedom >= 2 and abs(chi - freedom) < 4 * np.sqrt(2 * freedom), f"the best of four drawn: chi-square {chi} of {freedom}, {pairs}, {chances}")

# Settings as checkpoints and numpy have them; a state that goes on counts what it has seen.
model, logits_of = models[61]
plain = model.generate([1, 2, 3], max_new=6)
nothing = dict(bad_words_ids=None, forced_bos_token_id=None, forced_eos_token_id=None, suppress_tokens=None, begin_suppress_tokens=[], min_new_tokens=None)
expect(model.generate([1, 2, 3], max_new=6, **nothing).tolist() == plain.tolist(), "settings that are none")
expect(model.generate([1, 2, 3], max_new=6, suppress_tokens=np.array(plain[:1]), begin_suppress_tokens=-1).tolist()
       == oracle(logits_of, [1, 2, 3], 6, rules={"suppress": [int(plain[0])]}), "an array of ids")
expect(model.generate([1, 2, 3], max_new=6, stop=plain[:1], min_length=20, min_new_tokens=0).tolist() == plain[:1].tolist(), "min_new_tokens=0 instead of min_length")
state = model.state(B=1, C=64)
rules = dict(no_repeat_ngram_size=2, bad_words_ids=[[int(plain[0]), int(plain[1])]], min_length=9, stop=[int(plain[2])])
whole = model.generate([1, 2, 3], max_new=14, **rules).tolist()
begin = model.generate([1, 2, 3], max_new=5, state=state, **rules).tolist()
rest = model.generate(begin[-1:], past=[1, 2, 3] + begin[:-1], max_new=9, state=state, **rules).tolist()
expect(begin + rest == whole, f"a state that goes on: {begin}, {rest}, {whole}")

fails(heed.RunError, "noRepeatNgram: expected a number that is not negative, found -1", lambda: model.generate([1], max_new=2, no_repeat_ngram_size=-1))
fails(heed.RunError, "minLength: expected", lambda: model.generate([1], max_new=2, min_length=-3))
fails(heed.RunError, "minNew: expected", lambda: model.generate([1], max_new=2, min_new_tokens=-3))
fails(heed.RunError, "forcedBos: expected ids of the vocabulary, found 61", lambda: model.generate([1], max_new=2, forced_bos_token_id=61))
fails(heed.RunError, "forcedEos: expected ids of the vocabulary, found -1", lambda: model.generate([1], max_new=2, forced_eos_token_id=[-1]))
fails(heed.RunError, "badWords: expected ids of the vocabulary, found 70", lambda: model.generate([1], max_new=2, bad_words_ids=[[1, 70]]))
fails(ValueError, "bad_words_ids: expected lists of ids", lambda: model.generate([1], max_new=2, bad_words_ids=[[1], []]))
fails(TypeError, "suppress_tokens: expected ids", lambda: model.generate([1], max_new=2, suppress_tokens=[1.5]))
fails(ValueError, "suppress_tokens: expected ids below 2^31", lambda: model.generate([1], max_new=2, suppress_tokens=[2**31]))
fails(ValueError, "early_stopping: expected True, False or 'never', found 'ever'", lambda: model.generate([1], max_new=2, beams=2, early_stopping="ever"))
fails(heed.RangeError, "row 0: the rules leave no token", lambda: model.generate([1], max_new=2, suppress_tokens=range(61)))
fails(heed.RangeError, "prompt 0: the rules leave no token", lambda: model.generate([1], max_new=2, beams=2, suppress_tokens=range(61)))

# Prompts: what no integer is, is none in a list either; 0 beams are none.
fails(TypeError, "ids: expected integers", lambda: model.generate([[1.5, 2], [3]], max_new=2))
fails(heed.Error, "", lambda: model.generate([[2**32 + 5, 2], [3]], max_new=2))
fails(heed.Error, "", lambda: model.generate([np.array([2**32 + 5, 2]), np.array([3])], max_new=2))
fails(heed.Error, "at least one token", lambda: model.generate([], max_new=2))
fails(heed.Error, "at least one token", lambda: model.generate([[]], max_new=2))
fails(heed.Error, "at least one token", lambda: model.generate([[], []], max_new=2))
expect(model.generate([[], [1, 2, 3]], max_new=6).tolist() == [[-1] * 6, plain.tolist()], "an empty prompt beside another")
expect(model.generate([1, 2, 3], max_new=6, beams=0, rows=[3], past=[[4]]).tolist() == plain.tolist(), "0 beams")
finish()
