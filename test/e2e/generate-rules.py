# RUN: rm -rf %t && %python %s %heed_bin/heedc %t
"""What --generate may not choose, or must: options and generation_config.json, each against NumPy; which of them comes first; early_stopping and drawn beams;
Whisper's decoder prompts; settings that are none."""
import json
import os
import subprocess
import sys

import numpy as np

import programs
import safetensors_file
from generating import DECODER, V, decoder_logits, draw_weights, oracle
from runs import expect, expect_error, finish, run
from sampling import beam_search

programs.start(*sys.argv[1:])
os.chdir(programs.folder)
weights = draw_weights(np.random.default_rng(1721), V)
weights["head"] = weights["head"] / 4
os.makedirs("folder")
safetensors_file.write("folder/model.safetensors", weights)
logits_of = decoder_logits(weights)
decoder = programs.compile("decoder", DECODER)
prompt = [3, 14, 15, 9, 26]


def settings(**values):
    with open("folder/generation_config.json", "w") as file:
        json.dump(values, file)


def generate(count, *options, ids="3,14,15,9,26", quiet=True):
    done = run(decoder, "--weights", "folder", "--ids", ids, "--generate", count, *options)
    expect(done.returncode == 0 and ("note:" not in done.stderr) == quiet, f"{options}: {done.stderr}")
    return [int(token) for token in done.stdout.split()]


def check(wanted, what, *options, count=14, **given):
    expect(generate(count, *options, **given) == wanted, f"{what}: {generate(count, *options, **given)}, expected {wanted}")


settings()
plain = oracle(logits_of, prompt, 14)
a, b, c, d = plain[:4]
one = oracle(logits_of, [7], 14)
# Each alone: an option, the same in the file, what NumPy is told. Where the first tokens repeat, a rule changes something.
for options, values, count, ids, rules in [
        (["--no-repeat-ngram-size", 2], {"no_repeat_ngram_size": 2}, 60, prompt, {"ngram": 2}),
        (["--bad-words-ids", f"{a},{b}:{d}:60"], {"bad_words_ids": [[a, b], [d], [60]]}, 14, prompt, {"words": [[a, b], [d], [60]]}),
        (["--bad-words-ids", f"{c}", "--bad-words-ids", f"{b}"], {"bad_words_ids": [[c], [b]]}, 14, prompt, {"words": [[c], [b]]}),
        (["--suppress-tokens", f"{a},{c}"], {"suppress_tokens": [a, c, -1]}, 14, prompt, {"suppress": [a, c]}),
        (["--begin-suppress-tokens", f"{a}"], {"begin_suppress_tokens": [a]}, 14, prompt, {"begin": [a]}),
        (["--forced-bos-token-id", 44], {"forced_bos_token_id": 44}, 14, [7], {"bos": [44]}),
        (["--forced-bos-token-id", 44, "--begin-suppress-tokens", f"44,{one[0]}"], {"forced_bos_token_id": 44, "begin_suppress_tokens": [44, one[0]]}, 14, [7],
         {"bos": [44], "begin": [44, one[0]]}),
        (["--forced-eos-token-id", 50], {"forced_eos_token_id": [50]}, 14, prompt, {"eos": [50]})]:
    wanted = oracle(logits_of, ids, count, rules=rules)
    expect(wanted != oracle(logits_of, ids, count), f"the test's {options} change nothing")
    text = ",".join(map(str, ids))
    settings()
    check(wanted, options, *options, count=count, ids=text)
    settings(**values)
    check(wanted, values, count=count, ids=text)
    # The command line's own stays: nothing for a list, 0 for a number.
    nothing = [f"{options[k]}={0 if 'size' in options[k] else ''}" for k in range(0, len(options), 2)]
    check(oracle(logits_of, ids, count), f"{nothing} instead of {values}", *nothing, count=count, ids=text)

# Lengths: a row's with its prompt, or of new tokens alone, which is what counts where both are given.
ends = (a, c)
for options, values, rules in [(["--min-length", 9], {"min_length": 9}, {"min_length": 9}), (["--min-new-tokens", 6], {"min_new_tokens": 6}, {"min_new": 6}),
                               (["--min-length", 12, "--min-new-tokens", 2], {"min_length": 12, "min_new_tokens": 2}, {"min_new": 2})]:
    wanted = oracle(logits_of, prompt, 14, stop=ends, rules=rules)
    expect(wanted != [a], f"the test's {options} change nothing")
    settings(eos_token_id=list(ends))
    check(wanted, options, *options)
    settings(eos_token_id=list(ends), **values)
    check(wanted, values)
settings(eos_token_id=list(ends), min_length=12, min_new_tokens=0)
check([a], "min_new_tokens of 0 instead of min_length")
settings(eos_token_id=list(ends), min_new_tokens=3)
check(oracle(logits_of, prompt, 14, stop=ends, rules={"min_length": 12}), "--min-length instead of min_new_tokens", "--min-length", 12)

# All together, with draws and with beams, as bart's checkpoints have them.
everything = dict(no_repeat_ngram_size=3, bad_words_ids=[[a], [b, d]], min_length=9, forced_eos_token_id=2, suppress_tokens=[c], begin_suppress_tokens=[5])
rules = {"ngram": 3, "words": [[a], [b, d]], "min_length": 9, "eos": [2], "suppress": [c], "begin": [5]}
settings(eos_token_id=[2, 9], do_sample=True, temperature=0.9, top_k=20, **everything)
check(oracle(logits_of, prompt, 14, stop=(2, 9), rules=rules, temperature=0.9, top_k=20, seed=6), "draws", "--seed", 6)
found = set()
for early in (True, False, "never"):
    settings(eos_token_id=[2, 9], num_beams=4, length_penalty=2.0, early_stopping=early, **everything)
    best = beam_search(logits_of, prompt, 4, 14, (2, 9), 2.0, early=early, rules=rules)[0]
    check(best, f"early_stopping {early}")
    settings(eos_token_id=[2, 9], num_beams=4, length_penalty=2.0, **everything)
    check(best, f"--early-stopping {early}", "--early-stopping", str(early).lower())
for trial in range(12):
    stops = tuple(map(int, np.random.default_rng(trial).integers(0, V, 6)))
    for early in (True, False, "never"):
        best = beam_search(logits_of, prompt, 3, 12, stops, 1.0, early=early)[0]
        found.add((trial, tuple(best)))
        settings(eos_token_id=list(stops), num_beams=3, early_stopping=early)
        check(best, f"early_stopping {early}, {stops}", count=12)
expect(len(found) > 14, f"the test's early_stopping changes little: {len(found)}")
settings(eos_token_id=[2, 9], do_sample=True, temperature=0.8, top_k=9, num_beams=3, **everything)
best = beam_search(logits_of, prompt, 3, 14, (2, 9), 1.0, rules=rules, seed=11, temperature=0.8, top_k=9)[0]
check(best, "drawn beams", "--seed", 11)
best = beam_search(logits_of, prompt, 3, 14, (2, 9), 1.0, rules=rules)[0]
check(best, "--beams are not drawn", "--beams", 3)
check(best, "--temperature 0", "--temperature", 0)
settings(eos_token_id=[2, 9], num_beams=3)
check(oracle(logits_of, prompt, 14, stop=(2, 9), temperature=0.8, seed=11), "--temperature instead of beams", "--temperature", 0.8, "--seed", 11)
check(beam_search(logits_of, prompt, 2, 14, (2, 9), 1.0, seed=11, temperature=0.8)[0], "--beams and --temperature", "--temperature", 0.8, "--beams", 2, "--seed", 11)

# Whisper's: what a decoder's prompt is without --prompt.
WORDS = """model words {
  state memory: f32[B], kept: i32[B, C], len: i32[B]
  entry encode(source: f32[B]) {
    memory[b] = source[b]
    return memory
  }
  entry forward(ids: i32[B, N]) {
    kept[b, len[b] + n] = ids[b, n]
    len[b] = len[b] + N
    s[b] = sum(c:C where c < len[b]) kept[b, c] * (c + 1.0)
    return logits[b, v:97] = -abs(s[b] - v)
  }
}"""
program = programs.compile("words", WORDS)
np.save("source.npy", np.zeros(2, np.float32))
os.makedirs("whisper")
safetensors_file.write("whisper/model.safetensors", {})


def first(note, **values):
    """The first token: the sum over the prompt of token times place."""
    with open("whisper/generation_config.json", "w") as file:
        json.dump({"decoder_start_token_id": 3, **values}, file)
    done = run(program, "--source", "source.npy", "--generate", 1, "--weights", "whisper")
    expect(done.returncode == 0 and (note is None or note in done.stderr) and ("note:" in done.stderr) == (note is not None), f"{values}: {done.stderr}")
    return done.stdout.split()


expect(first(None) == ["3", "3"], "a start token")
expect(first(None, forced_decoder_ids=[[1, 5], [2, 7]]) == ["34", "34"], "forced_decoder_ids")
expect(first(None, forced_decoder_ids=[[1, 5], [2, 7]], no_timestamps_token_id=2) == ["42", "42"], "no_timestamps_token_id")
expect(first(None, forced_decoder_ids=[[1, 5], [2, 7]], no_timestamps_token_id=7) == ["34", "34"], "no_timestamps_token_id that is there")
expect(first(None, no_timestamps_token_id=7, return_timestamps=True) == ["3", "3"], "return_timestamps")
expect(first("'forced_decoder_ids'", forced_decoder_ids=[[1, None], [2, 7]]) == ["17", "17"], "a language that is not known")
expect(first("'language'", language="<|en|>") == ["3", "3"], "a language")

# Mistakes: of the command line, of the file.
settings()
base = [decoder, "--weights", "folder", "--ids", "3,14", "--generate", 3]
for options, text in [(["--no-repeat-ngram-size", -1], "option '--no-repeat-ngram-size': expected a number from 0"), (["--bad-words-ids", "1,:2"], "option '--bad-words-ids': expected ids as in 2,17:5, found '1,:2'"),
                      (["--bad-words-ids", "1::2"], "option '--bad-words-ids'"), (["--bad-words-ids", "1:"], "option '--bad-words-ids'"), (["--bad-words-ids", "70"], "badWords: expected ids of the vocabulary, found 70"),
                      (["--suppress-tokens", "one"], "option '--suppress-tokens': expected ids as in 2,17, found 'one'"), (["--suppress-tokens", "1:2"], "option '--suppress-tokens'"), (["--stop", ""], "option '--stop': expected ids"),
                      (["--forced-bos-token-id", 61], "forcedBos: expected ids of the vocabulary, found 61"), (["--forced-eos-token-id", -1], "option '--forced-eos-token-id'"),
                      (["--early-stopping", "ever"], "option '--early-stopping': expected true, false or never, found 'ever'"),
                      (["--suppress-tokens", ",".join(map(str, range(V)))], "row 0: the rules leave no token"), (["--forced-eos-token-id", 5, "--suppress-tokens", 5], "row 0: the rules leave no token")]:
    expect_error(run(*base, *options), text, str(options))
where = "folder/generation_config.json: "
for text, said in [('{"no_repeat_ngram_size": 2.5}', where + "expected an integer before this"), ('{"no_repeat_ngram_size": "2"}', where), ('{"no_repeat_ngram_size": -1}', "'no_repeat_ngram_size': expected a number from 0"),
                   ('{"min_length": 1e300}', where + "expected an integer before this"), ('{"min_length": 4e9}', "'min_length': expected a number from 0"), ('{"suppress_tokens": [1.5]}', where + "expected an integer before this"),
                   ('{"suppress_tokens": [[1]]}', where), ('{"suppress_tokens": true}', where), ('{"bad_words_ids": [3]}', None), ('{"bad_words_ids": [[]]}', where + "expected a token in each word before this"),
                   ('{"bad_words_ids": [[-1]]}', where + "expected a token in each word before this"), ('{"bad_words_ids": 3}', where), ('{"early_stopping": "ever"}', where + 'expected true, false or "never" before this'),
                   ('{"early_stopping": 1}', where), ('{"eos_token_id": 2.5}', where + "expected an integer before this"), ('{"decoder_start_token_id": 2.5}', where), ('{"repetition_penalty": -1}', "'repetition_penalty': expected a number from 1e-30 to 1e+30, found -1"),
                   ('{"repetition_penalty": 0}', "'repetition_penalty'"), ('{"num_beams": 0}', "'num_beams': expected a number from 1 to 4096, found 0"), ('{"num_beams": 1e18}', where), ('{"forced_decoder_ids": [[2, 5]]}', where + "expected positions 1, 2, .. and ids before this"),
                   ('{"forced_decoder_ids": [[1]]}', where), ('{"forced_decoder_ids": [[1, 2, 3]]}', where + "expected ']'"), ('{"top_k": -1}', None), ('{"top_k": -1, "do_sample": true}', "'top_k': expected a number from 0"),
                   ('{"suppress_tokens": [1', where), ('[]', where), ('', where), ('{"min_length": 3} x', where), ('{"\xff": 3}', where), ('{"min_length": nan}', where), ('{"min_length": Infinity}', where),
                   ('{"bad_words_ids": [[1, 2]', where), ('{"eos_token_id": [1, "x"]}', where), ('{"suppress_tokens": [99999999999999999999]}', where), ('{"suppress_tokens": [1], "suppress_tokens": [], "eos_token_id": [%d], "eos_token_id": null}' % a, None)]:
    with open("folder/generation_config.json", "wb") as file:
        file.write(text.encode("latin-1"))
    if said is None:
        expect(run(*base).returncode == 0, f"{text}: {run(*base).stderr}")
    else:
        expect_error(run(*base), said, text)

# A standard output that takes nothing ends generation; no row, no token.
settings()
with open("/dev/full", "w") as full:
    done = subprocess.run([decoder, "--weights", "folder", "--ids", "3,14", "--generate", "1000000", "--dim", "C=1000002"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
expect(done.returncode == 1 and "standard output cannot be written" in done.stderr and " 1 new in " in done.stderr, f"/dev/full: {done.returncode} {done.stderr}")
np.save("none.npy", np.zeros((0, 3), np.int32))
done = run(decoder, "--weights", "folder", "--ids", "none.npy", "--generate", 3, "--output", "out.npy")
expect(done.returncode == 0 and np.load("out.npy").shape == (0, 0), f"no rows: {done.stderr}")
# More stop ids than there are tokens: a search looks at what there is.
settings(eos_token_id=list(range(100, 30000)))
check(beam_search(logits_of, prompt, 3, 5, (), 1.0)[0], "many stop ids", "--beams", 3, count=5)
finish()
