"""Test checkpoints with a tokenizer, which is made on the spot."""
import json
import pathlib

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

import weights

ROWS = 320
TEXT = "Grüße aus Köln, früh um fünf! 日本語の文章 und 👩‍🔬 in einer Zeile. " * 3


def byte_pairs():
    """A byte-level BPE tokenizer of ROWS tokens at most, which begins texts with <s>."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=ROWS, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def checkpoint(architecture, folder, tokenizer):
    """Writes a folder with all that the examples read, and returns it: the test checkpoint of an architecture, with more rows for tokens."""
    stored = pathlib.Path(__file__).parent / "expected" / architecture / "default"
    case, config = (json.loads((stored / name).read_text()) for name in ("case.json", "config.json"))
    case["tensors"] = {name: [ROWS, *shape[1:]] if shape[0] == config["vocab_size"] else shape for name, shape in case["tensors"].items()}
    weights.write(folder, case, {**config, "vocab_size": ROWS, "eos_token_id": None, "max_position_embeddings": 256})
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": {"content": "</s>", "special": True}}))
    return folder
