# RUN: rm -rf %t && %python %s %heed_bin/heedc %t
"""--generate of programs: the largest logit, draws and beams against NumPy without a cache; rows of different lengths, stop ids, settings of a checkpoint's folder,
states that go on, an encoder, models without states, Ctrl-C, mistakes."""
import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys

import numpy as np

import programs
import safetensors_file
from generating import D, DECODER, PLAIN, V, decoder_logits, draw_weights, oracle, softmax
from runs import expect, expect_error, finish, run
from sampling import beam_search, exhaustive

programs.start(*sys.argv[1:])
os.chdir(programs.folder)
rng = np.random.default_rng(1718)
STATELESS = f"""model stateless {{
  param word, head: f32[V, D]
  entry forward(ids: i32[B, N], count: i32[B]) {{
    a[b, i, j] = sum(d) word[ids[b, i], d] * word[ids[b, j], d]
    p[b, i, j] = softmax(j where j <= i) a[b, i, j]
    o[b, i, d] = sum(j) p[b, i, j] * word[ids[b, j], d]
    return logits[b, v] = sum(d) o[b, max(count[b] - 1, 0), d] * head[v, d]
  }}
}}"""
ENCODER = f"""model translator {{
  state memory: f32[B, D], tails: f32[R], kept: f32[B, C, D], len: i32[B]
  param word, head: f32[V, D]
  entry encode(ids: i32[B, M], scale: f32[B], tail: f32[2*R]) {{
    memory[b, d] = (sum(m) word[ids[b, m], d]) * scale[b]
    tails[r] = tail[2*r + 1]
    return memory
  }}
  entry forward(ids: i32[B, N]) {{
    kept[b, len[b] + n, d] = word[ids[b, n], d]
    t[b, d] = sum(c:C where c < len[b] + N) kept[b, c, d] * cos((d + 2.0) * (c - len[b] - N) / 5)
    len[b] = len[b] + N
    return logits[b, v] = sum(d) (t[b, d] + memory[b, d]) * head[v, d]
  }}
}}"""


def stateless_logits(w):
    def logits(tokens):
        x = w["word"].astype(np.float64)[tokens]
        return softmax(x @ x[-1]) @ x @ w["head"].T
    return logits


weights = draw_weights(rng, V)
safetensors_file.write("w.safetensors", weights)
logits_of = decoder_logits(weights)
decoder = programs.compile("decoder", DECODER)
base = [decoder, "--weights", "w.safetensors"]


def lines(done):
    expect(done.returncode == 0 and " new in " in done.stderr, f"{done.args}: {done.returncode} {done.stderr}")
    return [[int(token) for token in line.split()] for line in done.stdout.splitlines()]


def padded(rows):
    width = max(map(len, rows))
    return np.array([list(row) + [-1] * (width - len(row)) for row in rows])


# One row: text and file; the entry that can generate is found, and it is not the first.
prompt = [3, 14, 15, 9, 26]
wanted = oracle(logits_of, prompt, 40)
np.save("one.npy", np.array([prompt], np.int32))
done = run(*base, "--ids", "one.npy", "--generate", 40)
expect(lines(done) == [wanted] and done.stderr.count("\n") == 1 and done.stderr.endswith(" tokens/s\n"), f"one row: {done.stdout}, {wanted}")
both = subprocess.run([str(one) for one in [*base, "--ids", "one.npy", "--generate", 40]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
expect(both.stdout == done.stdout + both.stdout.splitlines()[1] + "\n" and both.stdout.splitlines()[1].startswith("decoder: 5 tokens of prompt"), f"order: {both.stdout}")
expect(lines(run(*base, "--ids", "3,14,15,9,26", "--generate=40", "--entry", "forward", "--dim", "C=44")) == [wanted], "a list of tokens")
run(*base, "--ids", "one.npy", "--generate", 40, "--output", "out.npy")
out = np.load("out.npy")
expect(out.dtype == np.int32 and out.tolist() == [wanted], f"a file: {out}")

# Rows of different lengths, as each alone; a row that is not active; one stops.
prompts = [[3, 14, 15, 9, 26], [7], [60, 0, 1]]
np.save("ids.npy", np.array([row + [59] * (5 - len(row)) for row in prompts] + [[0] * 5], np.int32))
np.save("count.npy", np.array([5, 1, 3, 0], np.int32))
batch = [*base, "--ids", "ids.npy", "--count", "count.npy"]
rows = [oracle(logits_of, one, 25) for one in prompts]
expect(lines(run(*batch, "--generate", 25)) == rows + [[]], "rows of different lengths")
stop = rows[1][6]
rows = [oracle(logits_of, one, 25, stop=(stop, 1000)) for one in prompts]
expect(len(rows[1]) < 8 and len(set(map(len, rows))) > 1, "the test's stop id")
run(*batch, "--generate", 25, "--stop", f"{stop},1000", "--output", "out.npy")
expect(np.array_equal(np.load("out.npy"), padded(rows + [[]])), f"stop ids: {np.load('out.npy')}, {rows}")

# Draws: each row's own, the same alone and in a batch.
for options, named in [(["--temperature", 1.2], {"temperature": 1.2}), (["--temperature", 0.9, "--top-k", 12, "--top-p", 0.9, "--min-p", 0.03, "--repetition-penalty", 1.4, "--seed", 77],
                       {"temperature": 0.9, "top_k": 12, "top_p": 0.9, "min_p": 0.03, "penalty": 1.4, "seed": 77}), (["--repetition-penalty", 1.3], {"penalty": 1.3})]:
    rows = [oracle(logits_of, one, 15, row, **named) for row, one in enumerate(prompts)]
    expect(lines(run(*batch, "--generate", 15, *options)) == rows + [[]], f"{options}")
    expect(lines(run(*base, "--ids", "one.npy", "--generate", 15, *options)) == rows[:1], f"{options}, a row alone")

# A state that goes on: what two runs make is what one makes.
for extra in (["--dim", "C=64"], ["--temperature", "0.8", "--repetition-penalty", "1.2", "--seed", "5", "--dim", "C=64"]):
    whole = lines(run(*base, "--ids", "one.npy", "--generate", 30, *extra))[0]
    part = lines(run(*base, "--ids", "one.npy", "--generate", 11, "--state-out", "s", *extra))[0]
    np.save("past.npy", np.array([prompt + part[:-1]], np.int32))
    rest = lines(run(*base, "--ids", part[-1], "--past", "past.npy", "--generate", 19, "--state-in", "s", *extra[:-2]))[0]
    expect(part + rest == whole, f"a state that goes on, {extra}: {part} {rest}, {whole}")

# Beam search on few tokens: as many beams as there are continuations find what an exhaustive search finds; few find what NumPy's few do.
small = draw_weights(rng, 5)
safetensors_file.write("small.safetensors", small)
tiny = [decoder, "--weights", "small.safetensors"]
few = decoder_logits(small)
for power in (0.0, 1.0, 2.5, -0.5):
    for stops in ((), (2,), (0, 4)):
        what = f"beams, length penalty {power}, stop {stops}"
        options = ["--generate", 4, "--length-penalty", power, *(["--stop", ",".join(map(str, stops))] if stops else [])]
        best, _, margin = exhaustive(few, [1, 3], 5, 4, stops, power)
        expect(margin > 1e-5, f"{what}: the test's best lies on an edge")
        expect(lines(run(*tiny, "--ids", "1,3", "--beams", 625, *options)) == [best], f"{what}: exhaustive {best}")
np.save("pairs.npy", np.array([[1, 3, 0], [4, 0, 0]], np.int32))
np.save("two.npy", np.array([2, 1], np.int32))
for beams, power, penalty, stops in [(2, 1.0, 1.0, (2,)), (3, 0.5, 1.0, (0, 4)), (3, 2.0, 1.3, (1,)), (4, -1.0, 1.0, (3,)), (5, 1.0, 1.0, ())]:
    options = ["--length-penalty", power, "--repetition-penalty", penalty, *(["--stop", ",".join(map(str, stops))] if stops else [])]
    best = [beam_search(few, one, beams, 12, stops, power, penalty)[0] for one in ([1, 3], [4])]
    expect(lines(run(*tiny, "--ids", "pairs.npy", "--count", "two.npy", "--beams", beams, "--generate", 12, *options)) == best, f"{beams} beams, {options}: {best}")
flat = {**weights, "head": weights["head"] / 6}
safetensors_file.write("flat.safetensors", flat)
best = beam_search(decoder_logits(flat), prompt, 4, 12, (stop,), 1.0)[0]
run(decoder, "--weights", "flat.safetensors", "--ids", "one.npy", "--beams", 4, "--generate", 12, "--stop", stop, "--output", "out.npy")
expect(np.load("out.npy").tolist() == [best], f"4 beams: {best}, {np.load('out.npy')}")
expect(best != oracle(logits_of, prompt, 12, stop=(stop,)), "the test's beams find what the largest logit finds")

# A checkpoint's folder: its files, and generation_config.json, which the command line overrides.
os.makedirs("folder/shards")
os.makedirs("folder/other")


def settings(**values):
    with open("folder/generation_config.json", "w") as file:
        json.dump(values, file)


np.save("one.npy", np.array([prompt], np.int32))
bag = [decoder, "--weights", "folder", "--ids", "one.npy", "--generate", 20]
expect_error(run(*bag), "folder: expected model.safetensors or model.safetensors.index.json in the folder", "an empty folder")
open("folder/pytorch_model.bin", "w").close()
expect_error(run(*bag), "folder/pytorch_model.bin: pickled weights are not read: expected model.safetensors beside it", "pickled weights")
safetensors_file.write("folder/model.safetensors", weights)
plain = oracle(logits_of, prompt, 20)
expect(lines(run(*bag)) == [plain], "a folder")
settings(eos_token_id=plain[7], temperature=0.5, top_k=3)
expect(lines(run(*bag)) == [oracle(logits_of, prompt, 20, stop=(plain[7],))], "eos_token_id, no draws without do_sample")
settings(eos_token_id=[plain[9], plain[4]], pad_token_id=None, max_length=20, encoder_no_repeat_ngram_size=3, min_length=0, sequence_bias=[[[1], 0.5]], bad_words_ids=None,
         begin_suppress_tokens=[], stop_strings="x", typical_p=1.0, penalty_alpha=None, num_beam_groups=1, renormalize_logits=False,
         token_healing=True, dola_layers="low", force_words_ids=[[4]], num_return_sequences=2)
done = run(*bag)
expect([[int(t) for t in done.stdout.split()]] == [oracle(logits_of, prompt, 20, stop=(plain[9], plain[4]))], "eos_token_ids")
expect(done.stderr.startswith("decoder: note: settings of the checkpoint that are not applied: 'encoder_no_repeat_ngram_size', 'sequence_bias', 'stop_strings', "
                              "'token_healing', 'dola_layers', 'force_words_ids', 'num_return_sequences'\n"), f"not applied: {done.stderr}")
expect(lines(run(*bag, "--stop", 60)) == [oracle(logits_of, prompt, 20, stop=(60,))], "--stop instead of eos_token_id")
settings(do_sample=True, temperature=0.7, top_p=0.8, top_k=None, repetition_penalty=1.1, seed=4)
expect(lines(run(*bag, "--seed", 9)) == [oracle(logits_of, prompt, 20, temperature=0.7, top_p=0.8, penalty=1.1, top_k=50, seed=9)], "do_sample")
expect(lines(run(*bag, "--top-k", 4, "--temperature=1.5")) == [oracle(logits_of, prompt, 20, temperature=1.5, top_p=0.8, penalty=1.1, top_k=4)], "options before settings")
expect(lines(run(*bag, "--top-p", 0)) == [oracle(logits_of, prompt, 20, penalty=1.1)], "--top-p 0")
expect(lines(run(*bag, "--temperature", 0)) == [oracle(logits_of, prompt, 20, penalty=1.1)], "no draws")
settings(num_beams=3, length_penalty=0.3, eos_token_id=plain[5])
expect(lines(run(*bag)) == [beam_search(logits_of, prompt, 3, 20, (plain[5],), 0.3)[0]], "num_beams")
expect(lines(run(*bag, "--beams", 1, "--stop", 1000)) == [plain], "--beams 1")
with open("folder/generation_config.json", "w") as file:
    file.write('{"eos_token_id": "two"}')
expect_error(run(*bag), "folder/generation_config.json: ", "settings that are none")
os.remove("folder/generation_config.json")
with open("folder/config.json", "w") as file:
    json.dump({"eos_token_id": plain[3], "model_type": "x", "nested": {"a": [1]}}, file)
expect(lines(run(*bag)) == [oracle(logits_of, prompt, 20, stop=(plain[3],))], "config.json where there is no generation_config.json")
names = sorted(weights)
safetensors_file.write("folder/shards/a.safetensors", {name: weights[name] for name in names[:2]})
safetensors_file.write("folder/shards/b.safetensors", {name: weights[name] for name in names[2:]})
with open("folder/shards/model.safetensors.index.json", "w") as file:
    json.dump({"weight_map": {name: "a.safetensors" if name in names[:2] else "b.safetensors" for name in names}}, file)
expect(lines(run(decoder, "--weights", "folder/shards/", "--ids", "one.npy", "--generate", 20)) == [plain], "a folder with an index")
again = programs.compile("again", DECODER, "--weights", "folder/shards", "-MD")
expect(lines(run(again, "--weights", "folder/shards", "--ids", "one.npy", "--generate", 20)) == [plain], "heedc --weights FOLDER")
rule = open(again + ".d").read()
expect(all(f"folder/shards/{name}" in rule for name in ("model.safetensors.index.json", "a.safetensors", "b.safetensors")), rule)

# An entry without `count`, with another result; one without states; an encoder, whose ids are --ids.
plain_program = programs.compile("plain", PLAIN)
np.save("equal.npy", np.array([[1, 2, 3], [60, 5, 7]], np.int32))
rows = [oracle(logits_of, one, 12) for one in ([1, 2, 3], [60, 5, 7])]
stop = rows[1][2]
rows = [oracle(logits_of, one, 12, stop=(stop,)) for one in ([1, 2, 3], [60, 5, 7])]
expect(lines(run(plain_program, "--weights", "w.safetensors", "--ids", "equal.npy", "--generate", 12, "--stop", stop)) == rows, "no count")
stateless = programs.compile("stateless", STATELESS)
safetensors_file.write("pair.safetensors", {name: weights[name] for name in ("word", "head")})
of_pair = stateless_logits(weights)
rows = [oracle(of_pair, one, 10, row, temperature=2.0, top_k=9) for row, one in enumerate(prompts)]
free = [stateless, "--weights", "pair.safetensors"]
expect(lines(run(*free, "--ids", "ids.npy", "--count", "count.npy", "--generate", 10, "--temperature", 2, "--top-k", 9)) == rows + [[]], f"no states: {rows}")
best = beam_search(of_pair, prompt, 3, 6, (), 1.0)[0]
expect(lines(run(*free, "--ids", "one.npy", "--generate", 6, "--beams", 3)) == [best], "no states, beams")

translator = programs.compile("translator", ENCODER)
safetensors_file.write("folder/other/model.safetensors", {name: weights[name] for name in ("word", "head")})
with open("folder/other/config.json", "w") as file:
    json.dump({"decoder_start_token_id": 4}, file)
with open("folder/other/generation_config.json", "w") as file:
    json.dump({"bos_token_id": 9}, file)
sources, scale = [[5, 6, 7, 7], [8, 60, 2, 2]], np.array([0.5, 0.25], np.float32)
np.save("sources.npy", np.array(sources, np.int32))
np.save("scale.npy", scale)
np.save("tail.npy", np.ones(6, np.float32))


def translated(source, scale):
    word = weights["word"].astype(np.float64)

    def logits(tokens):
        turns = np.cos((np.arange(D) + 2.0) * (np.arange(len(tokens)) - len(tokens))[:, None] / 5)
        return ((word[tokens] * turns).sum(0) + word[source].sum(0) * scale) @ weights["head"].T
    return logits


both = [translator, "--weights", "folder/other", "--ids", "sources.npy", "--scale", "scale.npy", "--tail", "tail.npy"]
rows = [oracle(translated(source, one), [4], 8) for source, one in zip(sources, scale)]
expect(lines(run(*both, "--generate", 8)) == rows and rows[0] != rows[1], f"an encoder: {rows}")
np.save("starts.npy", np.array([[1, 2], [3, 4]], np.int32))
rows = [oracle(translated(source, one), start, 8) for source, one, start in zip(sources, scale, ([1, 2], [3, 4]))]
expect(lines(run(*both, "--generate", 8, "--prompt", "starts.npy")) == rows, "an encoder, and a prompt")
rows = [beam_search(translated(source, one), [4], 4, 8, (7,), 1.0)[0] for source, one in zip(sources, scale)]
expect(lines(run(*both, "--generate", 8, "--beams", 4, "--stop", 7)) == rows, "an encoder, beams")
expect(run(translator, "--weights", "folder/other", "--entry", "encode", "--ids", "sources.npy", "--scale", "scale.npy", "--tail", "tail.npy", "--dim", "C=1").returncode == 0, "the encoder alone")
os.remove("folder/other/config.json")
expect(lines(run(*both, "--generate", 3)) == [oracle(translated(source, one), [9], 3) for source, one in zip(sources, scale)], "bos_token_id")
os.remove("folder/other/generation_config.json")
expect_error(run(*both, "--generate", 3), "expected a start token, --prompt ID or decoder_start_token_id", "no start token")

# Mistakes.
nan = {**weights, "head": np.where(np.arange(V)[:, None] == 17, np.float32("nan"), weights["head"])}
safetensors_file.write("nan.safetensors", nan)
for command, text in [([*base, "--generate", 5], "input 'ids' is missing"), ([*base, "--ids", "one.npy", "--generate", 0], "option '--generate': expected a number from 1"),
                      ([*base, "--ids", "one.npy", "--generate", 5, "--temperature", "hot"], "option '--temperature'"), ([*base, "--ids", "one.npy", "--generate", 5, "--top-p", 1.1], "from 0 to 1, found '1.1'"),
                      ([*base, "--ids", "one.npy", "--generate", 5, "--top-k", 3], "option '--top-k' goes with a --temperature above 0"), ([*base, "--temperature", 1], "unknown option '--temperature'"),
                      ([*base, "--ids", "one.npy", "--generate", 5, "--stop", "1,,2"], "option '--stop': expected ids"), ([*base, "--ids", "one.npy", "--generate", 5, "--seed", -1], "option '--seed'"),
                      ([*base, "--ids", "one.npy", "--generate", 5, "--entry", "peek"], "entry 'peek' does not take ids"), ([*base, "--ids", "one.npy", "--generate", 5, "--entry", "nothing"], "there is no entry 'nothing'"),
                      ([*base, "--ids", "one.npy", "--generate", 5, "--bench"], "option '--bench' does not go with --generate"), ([*base, "--ids", "61", "--generate", 5], "token 0 of row 0 is 61: expected 0 <= id < 61"),
                      ([*base, "--ids", "one.npy", "--generate", 5, "--count", "two.npy"], "'count' has 2 rows, 'ids' 1"), ([*base, "--ids", "pairs.npy", "--generate", 5, "--count", "six.npy"], "count[1] = 6: expected 0 to 3"),
                      ([*base, "--ids", "one.npy", "--generate", 5, "--prompt", "1"], "option '--prompt' goes with a model"), ([*base, "--ids", "none.npy", "--generate", 5], "none.npy"),
                      ([*base, "--ids", "one.npy", "--generate", 5, "--dim", "C=7"], "is out of range for kc"), ([*base, "--ids", "one.npy", "--generate", 5, "--output", "/nowhere/x"], "/nowhere/x: cannot be written"),
                      ([*base, "--ids", "one.npy", "--generate", 60, "--state-in", "s"], "is out of range for kc"), ([*base, "--ids", "one.npy", "--generate", 5, "--state-in", "one.npy"], "one.npy"),
                      ([*base, "--ids", "one.npy", "--generate", 5, "--state-in", "s", "--dim", "C=63"], "expected shape"), ([*base, "--ids", "pairs.npy", "--generate", 5, "--past", "one.npy"], "'past' has 1 rows, 'ids' 2"), ([*base, "--ids", "one.npy", "--generate", 5, "--dim", "X=7"], "no state has a dim 'X'"),
                      ([decoder, "--weights", "nan.safetensors", "--ids", "one.npy", "--generate", 5], "logits of row 0: that of token 17 is NaN"), ([decoder, "--weights", "nan.safetensors", "--ids", "one.npy", "--generate", 5, "--beams", 2], "logits of row 0"),
                      ([plain_program, "--weights", "w.safetensors", "--ids", "pairs.npy", "--generate", 5, "--count", "two.npy"], "unknown option '--count'")]:
    np.save("six.npy", np.array([2, 6], np.int32))
    expect_error(run(*command), text, str(command))
expect("no entry takes ids: i32[B, N]" in run(programs.compile("silent", "model silent(x: f32[N]) { return y[n] = x[n] }"), "--generate", 5).stderr, "a model that cannot generate")
expect("--repetition-penalty X" in run(decoder, "--help").stdout and "--generate" not in run(programs.folder + "/silent", "--help").stdout, "--help")

# Ctrl-C: what is there is a result; also where it goes to a file, with the state.
command = [str(one) for one in [*base, "--ids", "one.npy", "--generate", 100000]]
# lit's processes ignore SIGINT, and what ignores it goes on doing so.
listen = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), "stdout": subprocess.PIPE, "bufsize": 0}


def read_tokens(count):
    """At least so many of what is running, byte by byte."""
    text = b""
    while text.count(b" ") < count and (more := running.stdout.read(1)):
        text += more
    return text


running = subprocess.Popen(command, stderr=subprocess.PIPE, **listen)
start = read_tokens(12)
running.send_signal(signal.SIGINT)
rest, said = running.communicate(timeout=120)
tokens = [int(token) for token in (start + rest).split()]
expect(running.returncode == 130 and (start + rest).endswith(b"\n") and said.endswith(b", interrupted\n") and said.count(b"\n") == 1, f"Ctrl-C: {running.returncode} {said}")
expect(12 <= len(tokens) < 100000 and tokens[:40] == wanted[:min(40, len(tokens))], f"Ctrl-C: {tokens[:40]}")
theirs, ours = pty.openpty()
running = subprocess.Popen([*command, "--output", "part.npy", "--state-out", "part"], stderr=ours, **listen)
os.close(ours)
shown = b""
while b"tokens/s" not in shown:
    shown += os.read(theirs, 4096)
running.send_signal(signal.SIGINT)
try:
    while os.read(theirs, 4096):
        pass
except OSError:
    pass
out, _ = running.communicate(timeout=120)
part = np.load("part.npy")[0].tolist()
expect(running.returncode == 130 and out == b"" and tokens[:len(part)] == part[:len(tokens)] and len(part) > 1, f"Ctrl-C with a file: {running.returncode} {len(part)}")
expect(b"\rdecoder: 1 of 100000 tokens" in shown, f"progress: {shown}")
rest = lines(run(*base, "--ids", part[-1], "--generate", 3, "--state-in", "part"))[0]
expect(rest == oracle(logits_of, prompt + part, 3) if len(part) < 2000 else len(rest) == 3, "the state after Ctrl-C")

# A process that ignores SIGINT is not ended by it.
listen["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
running = subprocess.Popen([*command[:-1], "3000"], stderr=subprocess.PIPE, **listen)
start = read_tokens(12)
running.send_signal(signal.SIGINT)
rest, said = running.communicate(timeout=120)
expect(running.returncode == 0 and len((start + rest).split()) == 3000, f"a process that ignores SIGINT: {running.returncode} {said}")

# 10000 steps take no more memory than the first ones. The pipe holds a page, so the process is never far ahead of what is read.
running = subprocess.Popen([*command[:-1], "10000"], stderr=subprocess.PIPE, **listen)
fcntl.fcntl(running.stdout, fcntl.F_SETPIPE_SZ, 4096)


def resident():
    with open(f"/proc/{running.pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])


if b"__asan_init" not in open(decoder, "rb").read():
    read_tokens(500)
    before = resident()
    read_tokens(8000)
    expect(resident() <= before + 64, f"after 500 steps {before} KiB, after 8500 {resident()} KiB")
rest, said = running.communicate(timeout=300)
expect(running.returncode == 0 and b" 10000 new in " in said, f"10000 steps: {said}")
finish()
