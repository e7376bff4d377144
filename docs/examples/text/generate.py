"""Text to text with the folder of a Hugging Face checkpoint: a decoder goes on with a prompt, an encoder-decoder answers a source.

    pip install ./python tokenizers                              # for --chat jinja2, too
    python docs/examples/text/generate.py FOLDER "Once upon a time"
    python docs/examples/text/generate.py FOLDER --chat "Who are you?" --temperature 0.7 --top-p 0.9
    python docs/examples/text/generate.py FOLDER "One prompt" "and another, in the same calls"

The folder is compiled, which takes some seconds. A library is compiled once: heedc FOLDER --emit=shared -o model.so, then --library model.so.
"""
import argparse
import datetime
import inspect
import json
import pathlib
import sys

import numpy as np
from tokenizers import Tokenizer

import heed


def read(folder, name):
    """A JSON file of the folder, if it has one; null means that an entry is left out."""
    path = pathlib.Path(folder, name)
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {key: value for key, value in found.items() if value is not None}


def open_model(folder, library=None):
    return heed.load(library, weights=folder) if library else heed.compile(folder)


def open_tokenizer(folder):
    path = pathlib.Path(folder, "tokenizer.json")
    if not path.exists():
        sys.exit(f"{path} is missing: expected the file that the tokenizers package reads")
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def special_tokens(folder):
    """{"bos_token": "<s>", ...} of tokenizer_config.json, where a token is its text or a record with it."""
    tokens = {name: value for name, value in read(folder, "tokenizer_config.json").items() if name.endswith("_token")}
    return {name: value["content"] if isinstance(value, dict) else value for name, value in tokens.items() if isinstance(value, (dict, str))}


def stop_ids(folder, tokenizer):
    """The tokens that end a text: eos_token_id, one or a list, and the tokenizer's own."""
    config = {**read(folder, "config.json"), **read(folder, "generation_config.json")}
    ids = config.get("eos_token_id", [])
    own = tokenizer.token_to_id(special_tokens(folder).get("eos_token", ""))
    return sorted({*(ids if isinstance(ids, list) else [ids]), *([] if own is None else [own])})


def chat_text(folder, prompt, system=None):
    """What a chat model reads before its answer: the messages as the folder's template writes them."""
    try:
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        sys.exit("--chat needs jinja2, which is not installed: the folder's chat template is written in its language (pip install jinja2)")
    file = pathlib.Path(folder, "chat_template.jinja")
    template = file.read_text(encoding="utf-8") if file.exists() else read(folder, "tokenizer_config.json").get("chat_template")
    if isinstance(template, list):
        template = {one["name"]: one["template"] for one in template}.get("default")
    if template is None:
        sys.exit(f"{folder} has no chat template: expected chat_template.jinja, or 'chat_template' in tokenizer_config.json")

    def refuse(message):
        sys.exit(f"the chat template of {folder} refuses these messages: {message}")

    # The settings and names that templates are written for.
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    environment.globals.update(raise_exception=refuse, strftime_now=lambda form: datetime.datetime.now().strftime(form))
    messages = [{"role": "system", "content": system}] * (system is not None) + [{"role": "user", "content": prompt}]
    return environment.from_string(template).render(messages=messages, add_generation_prompt=True, tools=None, documents=None, **special_tokens(folder))


class Text:
    """The text of a row, as its tokens come. A token can hold a part of a character, which waits for the others (until then it is decoded as U+FFFD); and a
    word at the start of what is decoded can lose its space. So a new piece is decoded together with the piece before."""

    def __init__(self, tokenizer):
        self.tokenizer, self.ids, self.begin, self.end = tokenizer, [], 0, 0

    def add(self, tokens, last=False):
        """What is new and whole; with `last` all that is left."""
        self.ids += tokens
        before, now = (self.tokenizer.decode(ids) for ids in (self.ids[self.begin:self.end], self.ids[self.begin:]))
        if len(now) <= len(before) or (now.endswith("\ufffd") and not last):
            return ""
        self.begin, self.end = self.end, len(self.ids)
        return now[len(before):]


RULES = ("no_repeat_ngram_size", "bad_words_ids", "min_length", "min_new_tokens", "forced_bos_token_id", "forced_eos_token_id", "suppress_tokens",
         "begin_suppress_tokens")


def begin(model, folder, prompts, max_new, **options):
    """A heed.Generation behind prompts (lists of ids, of any lengths). An encoder reads them first, if there is one; its decoder begins anew. What may not be
    said, or must, the folder's generation_config.json has."""
    settings = read(folder, "generation_config.json") or read(folder, "config.json")
    options = {**{name: settings[name] for name in RULES if name in settings}, **options}
    if "encode" not in model.entries:
        return model.generation(prompts, max_new=max_new, **options)
    if "source" not in inspect.signature(model["encode"]).parameters:
        sys.exit(f"{folder}: expected a decoder, or an encoder-decoder over text, found '{model.name}'")
    length = np.array([len(prompt) for prompt in prompts], np.int32)
    source = np.zeros((len(prompts), length.max()), np.int32)
    for row, prompt in zip(source, prompts):
        row[:len(prompt)] = prompt
    config = {**read(folder, "config.json"), **read(folder, "generation_config.json")}
    start = [config.get("decoder_start_token_id", config.get("bos_token_id", 0))]
    state = model.state(B=len(prompts), C=len(start) + max_new, M=source.shape[1])
    model["encode"](source, length, state=state)
    return model.generation([start] * len(prompts), max_new=max_new, state=state, **options)


def pieces(model, folder, tokenizer, prompts, *, max_new, **options):
    """Yields (row, piece of text) as they come. options: temperature, top_p, seed, ... as m.generate has them."""
    texts = [Text(tokenizer) for _ in prompts]
    for tokens in begin(model, folder, prompts, max_new, stop=stop_ids(folder, tokenizer), **options):
        for row, token in enumerate(tokens.tolist()):
            if token >= 0 and (piece := texts[row].add([token])):
                yield row, piece
    for row, text in enumerate(texts):
        if piece := text.add([], last=True):
            yield row, piece


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="config.json, tokenizer.json, model.safetensors (or its parts and their index)")
    parser.add_argument("prompt", nargs="*", help="one or several; standard input, if there is none")
    parser.add_argument("--library", help="what heedc --emit=shared made of the folder")
    parser.add_argument("--chat", action="store_true", help="the prompt is a message, which the folder's chat template dresses up")
    parser.add_argument("--system", help="with --chat: a system message before it")
    parser.add_argument("--max-new", type=int, default=128, help="tokens at most (default: 128)")
    parser.add_argument("--temperature", type=float, default=0.0, help="0, the default: always the likeliest token")
    parser.add_argument("--top-k", type=int, default=0)
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--repetition-penalty", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_intermixed_args()
    prompts = given.prompt or [sys.stdin.read()]
    tokenizer = open_tokenizer(given.folder)
    texts = [chat_text(given.folder, prompt, given.system) if given.chat else prompt for prompt in prompts]
    # A chat template writes the special tokens itself.
    ids = [tokenizer.encode(text, add_special_tokens=not given.chat).ids for text in texts]
    if not all(ids):
        sys.exit(f"the prompt {prompts[ids.index([])]!r} has no tokens")
    answers = [""] * len(prompts)
    try:
        for row, piece in pieces(open_model(given.folder, given.library), given.folder, tokenizer, ids, max_new=given.max_new, seed=given.seed,
                                 temperature=given.temperature, top_k=given.top_k, top_p=given.top_p, repetition_penalty=given.repetition_penalty):
            answers[row] += piece
            if len(prompts) == 1:
                print(piece, end="", flush=True)
    except heed.Error as error:
        sys.exit(str(error))
    print() if len(prompts) == 1 else print("\n\n".join(f"> {prompt}\n{answer}" for prompt, answer in zip(prompts, answers)))


if __name__ == "__main__":
    main()
