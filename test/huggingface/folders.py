# RUN: env PYTHONPATH=%heed_src/test/support:%heed_src/test/huggingface %python %s %heed_bin/heedc %t
"""heedc takes a checkpoint's folder: its config and its weights are found, what is wrong with it is said, all at once; what --emit=heed prints is the same model
for every architecture, and compiles elsewhere."""
import json
import pathlib
import shutil
import sys

import numpy as np

import safetensors_file
import weights
from runs import expect, finish, run

heedc, folder = sys.argv[1], pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
HERE = pathlib.Path(__file__).parent


def checkpoint(case):
    """The folder of a test checkpoint, and its case."""
    stored, path = HERE / "expected" / case, folder / case.replace("/", "-")
    parts = [json.loads((stored / name).read_text()) for name in ("case.json", "config.json")]
    weights.write(path, *parts)
    return path, *parts


def attn(*arguments):
    done = run(heedc, *arguments, "--emit=attn", "-o", "-")
    expect(done.returncode == 0, f"{arguments}: {done.stderr}")
    return "\n".join(line for line in done.stdout.splitlines() if "attn.source" not in line)


# The model as a file of one's own.
types = sorted(path.stem for path in (HERE.parent.parent / "frontend/HuggingFace/architectures").glob("*.heed"))
expect(len(types) >= 25, f"architectures: {types}")
for name in types:
    path = checkpoint(f"{name}/default")[0]
    own = folder / f"own-{name}.heed"
    done = run(heedc, path, "--emit=heed", "-o", own)
    expect(done.returncode == 0 and '"../lib' not in own.read_text(), f"{name}: {done.stderr}")
    expect(attn(path) == attn(own, "--model-dir", path, "--weights", path), f"{name}: another model than its own file")

# Three tensors are wrong, of which one belongs to the last turn of a rolled loop.
path, case, config = checkpoint("llama/default")
tensors = weights.tensors(case)
last = max(int(name.split(".")[2]) for name in tensors if ".layers." in name)
del tensors["model.norm.weight"], tensors[f"model.layers.{last}.self_attn.q_proj.weight"]
tensors["model.layers.0.mlp.up_proj.weight"] = tensors["model.layers.0.mlp.up_proj.weight"][:, :5].copy()
safetensors_file.write(path / "model.safetensors", tensors)
out = folder / "out"
done = run(heedc, path, "-o", out)
for text in (f"the weights have no 'layers.{last}.self_attn.q_proj.weight' or 'model.layers.{last}.self_attn.q_proj.weight'", "the weights have no 'norm.weight' or 'model.norm.weight'",
             "the weights' 'model.layers.0.mlp.up_proj.weight' has 5"):
    expect(text in done.stderr, f"expected {text!r} in {done.stderr}")
expect(done.returncode == 1 and not out.exists() and done.stderr.count("error:") == 3, f"three tensors: {done.stderr}")

# Folders that are none of a checkpoint, or of one that is not supported.
path, case, config = checkpoint("llama/default")
for text, change in (
        ("has no 'model_type'", {"model_type": None}),
        ("has model_type 'lama': expected one of bart, bert, bloom, ", {"model_type": "lama"}),
        ("; did you mean 'llama'?", {"model_type": "lama"}),
        ("has a 'quantization_config': quantised checkpoints are not supported yet", {"quantization_config": {"quant_method": "gptq"}}),
        ("has a 'per_layer_config': layers with configs of their own are not supported", {"per_layer_config": {"1": {"intermediate_size": 20}}}),
        ("is_causal = false is not supported", {"is_causal": False}),
        ("the weights have no 'layers.3.", {"num_hidden_layers": 10**9}),
        ("unknown activation 'xielu'", {"hidden_act": "xielu"}),
        ("unknown rope type 'ntk'", {"rope_parameters": None, "rope_scaling": {"rope_type": "ntk", "factor": 2.0}})):
    (path / "config.json").write_text(json.dumps({**config, **change}))
    done = run(heedc, path, "-o", out)
    expect(done.returncode == 1 and text in done.stderr and not out.exists(), f"expected {text!r} in {done.stderr}")
for text, content in (("is not JSON", "{"), ("is no JSON object", "[1]"), ("nests deeper than 256", "[" * 300)):
    (path / "config.json").write_text(content)
    done = run(heedc, path, "-o", out)
    expect(done.returncode == 1 and f"config.json {text}" in done.stderr and not out.exists(), f"expected {text!r} in {done.stderr}")
(path / "config.json").unlink()
done = run(heedc, path, "-o", out)
expect(done.returncode == 1 and "config.json cannot be read: no such file or directory: expected the folder of a Hugging Face checkpoint" in done.stderr, done.stderr)
(path / "config.json").write_text(json.dumps(config))
(path / "adapter_config.json").write_text("{}")
done = run(heedc, path, "-o", out)
expect(done.returncode == 1 and "adapter_config.json: adapters are not supported" in done.stderr and not out.exists(), f"adapter: {done.stderr}")
(path / "adapter_config.json").unlink()
(path / "model.safetensors").rename(path / "pytorch_model.bin")
done = run(heedc, path, "-o", out)
expect(done.returncode == 1 and "pytorch_model.bin" in done.stderr and not out.exists(), f"pickled: {done.stderr}")
done = run(heedc, "--emit=heed", folder / "own-llama.heed")
expect(done.returncode == 1 and "--emit=heed prints the model of a checkpoint's folder" in done.stderr, done.stderr)

# Without -o a folder gives a program called model; its tensors may lie elsewhere.
(path / "pytorch_model.bin").rename(folder / "elsewhere.safetensors")
done = run(heedc, path, "--weights", folder / "elsewhere.safetensors", "--backend=reference", "-O", "0", cwd=folder)
expect(done.returncode == 0 and (folder / "model").exists(), f"elsewhere: {done.stderr}")
np.save(folder / "ids.npy", np.array([[3, 5]], np.int32))
done = run(folder / "model", "--weights", folder / "elsewhere.safetensors", "--ids", folder / "ids.npy", "--generate", "3")
expect(done.returncode == 0 and len(done.stdout.split()) == 3, f"{done.stdout}{done.stderr}")
finish()
