"""Writes expected/<model_type>/<case>/: what transformers computes for the cases of cases/<model_type>.py. `make.py [model_type[/case]]`; needs torch and
transformers (README.md). config.json is the checkpoint's, case.json says how its weights are drawn, expected.npz holds inputs and results."""
import importlib.util
import json
import os
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import torch
import transformers

import weights

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
HERE = pathlib.Path(__file__).parent
FIELDS = {"config", "model", "saved", "kind", "rules", "shards", "rewrite", "inputs", "run", "dtype", "tolerance", "stepwise", "error", "compare", "options", "tensors"}
LIMIT = 200_000


def shapes_of(folder):
    """Names and shapes of a checkpoint that transformers has written."""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        with open(path, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        found.update({name: about["shape"] for name, about in header.items() if name != "__metadata__"})
    return found


def plain_config(folder, rewrite):
    config = json.loads((pathlib.Path(folder) / "config.json").read_text())
    config.pop("transformers_version", None)
    return rewrite(config) or config if rewrite else config


def loaded(name, folder, dtype, options):
    """The model of a checkpoint folder; weights that it does not find are an error."""
    model, about = getattr(transformers, name).from_pretrained(folder, dtype=getattr(torch, dtype), attn_implementation="eager", output_loading_info=True,
                                                               **options)
    wrong = {what: keys for what, keys in about.items() if keys and what != "unexpected_keys"}
    if wrong:
        raise SystemExit(f"{name}: {wrong}")
    return model.eval()


def drawn_inputs(case, seed, model):
    """Token ids of a batch and the rows' lengths. Special ids (padding, begin, end) are no text's."""
    given = {"batch": 2, "tokens": 23, "avoid": [], **case.get("inputs", {})}
    config = model.config.get_text_config()
    avoid = {*given["avoid"], config.pad_token_id, getattr(config, "bos_token_id", None), getattr(config, "eos_token_id", None)}
    low = 1 + max((a for a in avoid if isinstance(a, int) and 0 <= a < 8), default=-1)
    shape = given["batch"], given["tokens"]
    ids = weights.integers(seed + "/ids", low, given.get("vocab", config.vocab_size), shape)
    if avoid & set(ids.flatten().tolist()):
        raise SystemExit(f"{seed}: ids hold special ones of {avoid}")
    lengths = [shape[1], *(shape[1] * (k + 1) // (2 * shape[0]) for k in range(shape[0] - 1))]
    return ids, np.array(given.get("length", lengths), np.int32)


def run_encoder(model, case, seed):
    """{entry: (inputs, results)} of an encoder: hidden and pooled, with token types where it has them."""
    ids, length = drawn_inputs(case, seed, model)
    real = np.arange(ids.shape[1]) < length[:, None]

    def encode(**more):
        found = model(input_ids=torch.tensor(ids).long(), attention_mask=torch.tensor(real).long(), **more)
        hidden = found.last_hidden_state.double().numpy()
        pooled = getattr(found, "pooler_output", None)
        mean = (hidden * real[..., None]).sum(1) / real.sum(1)[:, None]
        return {"hidden": hidden, "pooled": mean if pooled is None else pooled.double().numpy()}

    calls = {"encode": ({"ids": ids, "length": length}, encode())}
    kinds = getattr(model.config, "type_vocab_size", 0)
    if kinds > 1 and case.get("inputs", {}).get("kinds", True):
        kind = weights.integers(seed + "/kinds", 0, kinds, ids.shape)
        calls["encode_pairs"] = {"ids": ids, "kinds": kind, "length": length}, encode(token_type_ids=torch.tensor(kind).long())
    return calls


def run_decoder(model, case, seed):
    """Logits at every position of a batch, in one call; `stepwise`: also in chunks of 7 and token by token, with the library's cache."""
    ids, _ = drawn_inputs(case, seed, model)
    tokens, size = torch.tensor(ids).long(), ids.shape[1]
    results = {"logits": model(input_ids=tokens).logits.double().numpy()}
    for chunk in (7, 1) if case.get("stepwise") else ():
        cache, parts = None, []
        for at in range(0, size, chunk):
            found = model(input_ids=tokens[:, at:at + chunk], past_key_values=cache, use_cache=True)
            cache = found.past_key_values
            parts.append(found.logits)
        results[f"logits_{chunk}"] = torch.cat(parts, 1).double().numpy()
    return {"scores": ({"ids": ids}, results)}


def run_encoder_decoder(model, case, seed):
    """The encoder's hidden states, and logits of the decoder at every position."""
    given = {"source": 17, **case.get("inputs", {})}
    source, length = drawn_inputs({"inputs": {**given, "tokens": given["source"]}}, seed + "/source", model)
    ids, _ = drawn_inputs(case, seed, model)
    real = torch.tensor(np.arange(source.shape[1]) < length[:, None]).long()
    found = model(input_ids=torch.tensor(source).long(), attention_mask=real, decoder_input_ids=torch.tensor(ids).long())
    hidden = found.encoder_last_hidden_state.double().numpy()
    return {"encode": ({"source": source, "length": length}, {"hidden": hidden}), "scores": ({"ids": ids}, {"logits": found.logits.double().numpy()})}


KINDS = {"encoder": run_encoder, "decoder": run_decoder, "encoder-decoder": run_encoder_decoder}


def save_expected(folder, calls, seed):
    arrays = {}
    for entry, (inputs, results) in calls.items():
        for kind, values in (("in", inputs), ("out", results)):
            for name, value in values.items():
                value = np.asarray(value)
                if not np.isfinite(value).all():
                    raise SystemExit(f"{seed}: {entry}'s {name} is not finite")
                arrays[f"{entry}.{kind}.{name}"] = value.astype(np.float32) if value.dtype.kind == "f" else value.astype(np.int32)
    np.savez_compressed(folder / "expected.npz", **arrays)
    size = (folder / "expected.npz").stat().st_size
    if size > LIMIT:
        raise SystemExit(f"{seed}: {size} bytes, at most {LIMIT}")
    about = [f"{name} {list(a.shape)}, deviation {a.std():.2g}, largest {np.abs(a).max():.2g}" for name, a in arrays.items() if ".out." in name]
    print(f"{seed}: {size // 1000} kB; " + "; ".join(about), flush=True)


def as_text(about):
    """JSON with a line for each tensor."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in about.items() if key != "tensors"]
    tensors = ",\n".join(f" {json.dumps(name)}: {json.dumps(shape)}" for name, shape in about["tensors"].items())
    return "{" + ",\n".join(lines) + ",\n" + '"tensors": {\n' + tensors + "}}"


def write_error(folder, case, base):
    """A config that heedc refuses: the first case's, with changes."""
    config = {**json.loads((base / "config.json").read_text()), **case.get("config", {})}
    config = {name: value for name, value in config.items() if value is not ...}
    about = json.loads((base / "case.json").read_text())
    return config, {**about, "error": case["error"], "shards": 1}


def make(architecture, name, case, first):
    seed, folder, base = f"{architecture}/{name}", HERE / "expected" / architecture / name, HERE / "expected" / architecture / first
    if set(case) - FIELDS:
        raise SystemExit(f"{seed}: unknown {set(case) - FIELDS}, expected {FIELDS}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        if "error" in case:
            config, about = write_error(folder, case, base)
        else:
            saved = getattr(transformers, case.get("saved", case["model"]))
            saved(saved.config_class(**case["config"])).save_pretrained(scratch + "/saved")
            config = plain_config(scratch + "/saved", case.get("rewrite"))
            shapes = {**shapes_of(scratch + "/saved"), **case.get("tensors", {})}  # None: the checkpoint does not have it
            about = {"kind": case.get("kind", "decoder"), "seed": seed, "rules": case.get("rules", []), "shards": case.get("shards", 1),
                     **{key: case[key] for key in ("tolerance", "compare") if key in case},
                     "tensors": {name: shape for name, shape in shapes.items() if shape is not None}}
            weights.write(scratch + "/drawn", about, config)
            model = loaded(case["model"], scratch + "/drawn", case.get("dtype", "float64"), case.get("options", {}))
            with torch.no_grad():
                run = case.get("run") or KINDS[about["kind"]]
                save_expected(folder, run(model, case, seed), seed)
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        (folder / "case.json").write_text(as_text(about) + "\n")


def main(pattern):
    wanted, _, one = pattern.partition("/")
    for path in sorted((HERE / "cases").glob("*.py")):
        if wanted not in ("", path.stem):
            continue
        spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, case in module.CASES.items():
            if one in ("", name):
                make(path.stem, name, case, next(iter(module.CASES)))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
