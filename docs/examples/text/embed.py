"""Sentences to vectors with the folder of a Hugging Face encoder (BERT, RoBERTa, MPNet, ...): the nearer two sentences in meaning, the larger their product.

    pip install ./python tokenizers
    python docs/examples/text/embed.py FOLDER "It rains." "Take an umbrella." "The cat sleeps." --output vectors.npy
"""
import argparse
import json
import pathlib
import sys

import numpy as np
from tokenizers import Tokenizer

import heed


def tokenise(folder, sentences):
    """ids [S, N], rows padded on the right, and the length of each row."""
    tokenizer = Tokenizer.from_file(str(pathlib.Path(folder, "tokenizer.json")))
    tokenizer.no_padding()
    rows = [tokenizer.encode(sentence).ids for sentence in sentences]
    length = np.array([len(row) for row in rows], np.int32)
    ids = np.zeros((len(rows), length.max()), np.int32)
    for row, tokens in zip(ids, rows):
        row[:len(tokens)] = tokens
    return ids, length


def pooled(hidden, length, folder):
    """One unit vector a sentence: the mean of its tokens, or the first one where the folder says so (as sentence-transformers writes it down)."""
    path = pathlib.Path(folder, "1_Pooling", "config.json")
    modes = {name for name, on in json.loads(path.read_text()).items() if name.startswith("pooling_mode_") and on is True} if path.exists() else set()
    if modes == {"pooling_mode_cls_token"}:
        vectors = hidden[:, 0]
    elif modes <= {"pooling_mode_mean_tokens"}:
        real = np.arange(hidden.shape[1]) < length[:, None]
        vectors = np.where(real[..., None], hidden, 0).sum(1) / length[:, None]
    else:
        sys.exit(f"{path}: {', '.join(sorted(modes))}: expected the mean of the tokens or the first one")
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def embed(model, folder, sentences):
    ids, length = tokenise(folder, sentences)
    return pooled(model["encode"](ids, length).hidden, length, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="config.json, tokenizer.json, model.safetensors")
    parser.add_argument("sentence", nargs="+")
    parser.add_argument("--output", help="where the vectors go, an .npy file")
    given = parser.parse_intermixed_args()
    try:
        vectors = embed(heed.compile(given.folder), given.folder, given.sentence)
    except heed.Error as error:
        sys.exit(str(error))
    if given.output:
        np.save(given.output, vectors)
    for row, sentence in zip(vectors @ vectors.T, given.sentence):
        print(" ".join(f"{similarity:5.2f}" for similarity in row), "", sentence)


if __name__ == "__main__":
    main()
