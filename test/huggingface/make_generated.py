"""Writes generated.json and long.json: what transformers' generate() makes of the first case of some architectures, in float64; generate.py and long.py
compare. Needs torch and transformers, as make.py does."""
import json
import pathlib
import tempfile

import numpy as np
import torch
import transformers

import weights
from make import loaded

HERE = pathlib.Path(__file__).parent
MODELS = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "gemma3_text": "Gemma3ForCausalLM", "mamba2": "Mamba2ForCausalLM",
          "bart": "BartForConditionalGeneration", "t5": "T5ForConditionalGeneration", "whisper": "WhisperForConditionalGeneration"}
MARGIN = 1e-3  # by which each choice is ahead
# 200 greedy tokens of a larger vocabulary: config, what of the weights is drawn in another way, and the seed. With the default case's gains, or another seed,
# some models soon say one word for ever; with these they say at least 80 words.
LONG = {
    "gpt2": ({"vocab_size": 1009, "n_positions": 256}, [["wte", 0.0, 0.15], ["wpe", 0.0, 1.2]], 11),
    "llama": ({"vocab_size": 1009, "max_position_embeddings": 256}, [], 1),
    "qwen3": ({"vocab_size": 1009, "max_position_embeddings": 256}, [["embed_tokens", 0.0, 0.25]], 1),
    "gemma3_text": ({"vocab_size": 1009, "max_position_embeddings": 256}, [[r"post_\w+_layernorm\.weight$", 5.0, 2.0]], 10),
    "mamba2": ({"vocab_size": 1009}, [], 1),
}


def run(model, given, prompt, new, **options):
    """New tokens behind a prompt; of greedy ones only those that nearly no rounding changes."""
    found = transformers.GenerationMixin.generate(model, **given, max_new_tokens=new, do_sample=False, return_dict_in_generate=True, output_scores=True,
                                                  **options)
    tokens = found.sequences[0, prompt:].tolist()
    if "num_beams" in options:
        return tokens
    for k, scores in enumerate(found.scores):
        best = torch.topk(scores[0], 2).values
        if best[0] - best[1] < MARGIN:
            return tokens[:k]
    return tokens


def make(architecture, name):
    folder = HERE / "expected" / architecture / "default"
    case, config = (json.loads((folder / file).read_text()) for file in ("case.json", "config.json"))
    arrays = np.load(folder / "expected.npz")
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        weights.write(scratch, case, config)
        model = loaded(name, scratch, "float64", {})
        rows = []
        for b in range(2):
            if case["kind"] == "decoder" and "encode.in.features" not in arrays:
                ids = torch.tensor(arrays["scores.in.ids"][b:b + 1, :5 - 3 * b]).long()
                given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            else:
                ids = torch.tensor([[config["decoder_start_token_id"]]])
                given = {"decoder_input_ids": ids}
                if "encode.in.features" in arrays:
                    given["inputs"] = torch.tensor(arrays["encode.in.features"][b:b + 1]).double()
                else:
                    length = arrays["encode.in.length"][b]
                    given["inputs"] = torch.tensor(arrays["encode.in.source"][b:b + 1, :length]).long()
                    given["attention_mask"] = torch.ones_like(given["inputs"])
            prompt = ids.shape[1]
            greedy = run(model, given, prompt, 24, eos_token_id=10**6, pad_token_id=0)
            stop = greedy[min(9, len(greedy) - 1)]
            beams = run(model, given, prompt, 14, eos_token_id=[stop, 5], pad_token_id=10**6, num_beams=3, length_penalty=0.6, repetition_penalty=1.2)
            rules = {"no_repeat_ngram_size": 2, "bad_words_ids": [greedy[:1], greedy[1:3]], "min_length": prompt + 5, "forced_bos_token_id": 7, "forced_eos_token_id": 9,
                     "suppress_tokens": [token for token in greedy[3:4] if token not in (7, 9)], "begin_suppress_tokens": greedy[4:5], "eos_token_id": [stop, 5]}
            ruled = run(model, given, prompt, 14, pad_token_id=10**6, **rules)
            early = run(model, given, prompt, 14, pad_token_id=10**6, num_beams=3, length_penalty=2.0, early_stopping=True, **rules)
            rows.append({"prompt": ids[0].tolist(), "greedy": greedy, "stop": [stop, 5], "beams": [token for token in beams if token != 10**6],
                         "rules": rules, "ruled": [token for token in ruled if token != 10**6], "early": [token for token in early if token != 10**6]})
            print(architecture, rows[-1], flush=True)
    return rows


def make_long(architecture, changes, rules, number):
    """What long.py needs to draw the weights again, the prompt and the 200 tokens behind it."""
    folder = HERE / "expected" / architecture / "default"
    case, config = (json.loads((folder / file).read_text()) for file in ("case.json", "config.json"))
    seed, rules = f"{architecture}/long/{number}", rules + case["rules"]
    case, config = weights.resized(case, config, changes, seed=seed, rules=rules)
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        weights.write(scratch, case, config)
        model = loaded(config["architectures"][0], scratch, "float64", {})
        ids = torch.tensor(weights.integers(seed + "/ids", 8, config["vocab_size"], (1, 12))).long()
        found = transformers.GenerationMixin.generate(model, input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=200, do_sample=False,
                                                      return_dict_in_generate=True, output_scores=True, eos_token_id=10**6, pad_token_id=0)
    greedy = found.sequences[0, ids.shape[1]:].tolist()
    best = [torch.topk(scores[0], 2).values for scores in found.scores]
    print(seed, len(set(greedy)), "words; the best is ahead by at least", min((a - b).item() for a, b in best), flush=True)
    return {"config": changes, "case": {"seed": seed, "rules": rules}, "prompt": ids[0].tolist(), "greedy": greedy}


def write_all(name, made):
    text = ",\n".join(f"{json.dumps(key)}: [\n " + ",\n ".join(map(json.dumps, rows)) + "]" for key, rows in made.items())
    (HERE / name).write_text("{" + text + "}\n")


if __name__ == "__main__":
    write_all("long.json", {architecture: [make_long(architecture, *about)] for architecture, about in LONG.items()})
    write_all("generated.json", {architecture: make(architecture, name) for architecture, name in MODELS.items()})
