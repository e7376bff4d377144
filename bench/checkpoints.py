"""Checkpoint folders with drawn weights, as Hugging Face lays them out: config.json and model.safetensors, written a block at a time.

checkpoints.py qwen3-0.6b bf16 [FOLDER] writes one and prints its folder. The same seed gives the same numbers in all types, rounded.
"""
import json
import os
import sys

import numpy as np

BLOCK = 1 << 22  # elements drawn at a time
TYPES = {"f32": ("F32", 4), "bf16": ("BF16", 2), "f16": ("F16", 2)}
#: As they lie under the user's cache: none of them is downloaded, all are made again where they are missing.
HOME = os.path.join(os.path.expanduser("~"), ".cache", "heed-bench", "checkpoints")

CONFIGS = {
    "gpt2": {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12,
        "n_positions": 1024, "n_inner": None, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True},
    "qwen3-0.6b": {
        "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "hidden_act": "silu",
        "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "rope_theta": 1000000, "tie_word_embeddings": True},
    "llama-3.2-1b": {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192,
        "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "hidden_act": "silu",
        "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": True,
        "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 8192}},
}
#: As Qwen3 is, for tests of the measuring.
CONFIGS["tiny"] = {**CONFIGS["qwen3-0.6b"], "vocab_size": 500, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32}
LAYERS = {"gpt2": "n_layer", "qwen3": "num_hidden_layers", "llama": "num_hidden_layers"}


def config_of(key):
    """The config of `qwen3-0.6b`, or of `qwen3-0.6b/2` with so many layers."""
    name, _, layers = key.partition("/")
    config = {**CONFIGS[name], "bos_token_id": None, "eos_token_id": None}  # nothing ends a row
    if layers:
        config[LAYERS[config["model_type"]]] = int(layers)
    return config


def gpt2_tensors(c):
    """(name, shape, mean, deviation): matrices lie input times output."""
    d, f = c["n_embd"], 4 * c["n_embd"]
    yield "transformer.wte.weight", (c["vocab_size"], d), 0, 0.02
    yield "transformer.wpe.weight", (c["n_positions"], d), 0, 0.02
    for layer in range(c["n_layer"]):
        at = f"transformer.h.{layer}."
        for norm in ("ln_1", "ln_2"):
            yield at + norm + ".weight", (d,), 1, 0.1
            yield at + norm + ".bias", (d,), 0, 0.1
        for name, rows, columns in (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d), ("mlp.c_fc", d, f), ("mlp.c_proj", f, d)):
            yield at + name + ".weight", (rows, columns), 0, rows**-0.5
            yield at + name + ".bias", (columns,), 0, 0.1
    yield "transformer.ln_f.weight", (d,), 1, 0.1
    yield "transformer.ln_f.bias", (d,), 0, 0.1


def llama_tensors(c):
    """Those of Llama and Qwen3, whose heads have norms."""
    d, f, e = c["hidden_size"], c["intermediate_size"], c["head_dim"]
    heads, groups = c["num_attention_heads"] * e, c["num_key_value_heads"] * e
    yield "model.embed_tokens.weight", (c["vocab_size"], d), 0, 0.02
    for layer in range(c["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", (d,), 1, 0.1
        for name, rows, columns in (("q", heads, d), ("k", groups, d), ("v", groups, d), ("o", d, heads)):
            yield f"{at}self_attn.{name}_proj.weight", (rows, columns), 0, columns**-0.5
        if c["model_type"] == "qwen3":
            yield at + "self_attn.q_norm.weight", (e,), 1, 0.1
            yield at + "self_attn.k_norm.weight", (e,), 1, 0.1
        yield at + "post_attention_layernorm.weight", (d,), 1, 0.1
        for name, rows, columns in (("gate", f, d), ("up", f, d), ("down", d, f)):
            yield f"{at}mlp.{name}_proj.weight", (rows, columns), 0, columns**-0.5
    yield "model.norm.weight", (d,), 1, 0.1


def tensors_of(config):
    return list((gpt2_tensors if config["model_type"] == "gpt2" else llama_tensors)(config))


def stored(values, dtype):
    """f32 values as the bytes of a type; bf16 rounded to nearest, ties to even."""
    if dtype == "f16":
        return values.astype(np.float16)
    if dtype == "bf16":
        bits = values.view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return values


def write_tensors(path, tensors, dtype, drawn=True):
    name, size = TYPES[dtype]
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for tensor, shape, _, _ in tensors:
        count = int(np.prod(shape))
        header[tensor] = {"dtype": name, "shape": shape, "data_offsets": [end, end + size * count]}
        end += size * count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        if not drawn:
            file.truncate(8 + len(text) + end)  # zeros that take no room
            return
        for number, (_, shape, mean, deviation) in enumerate(tensors):
            drawn, left = np.random.Generator(np.random.SFC64([17, number])), int(np.prod(shape))
            while left:
                values = drawn.standard_normal(min(left, BLOCK), np.float32)
                values *= np.float32(deviation)
                values += np.float32(mean)
                file.write(stored(values, dtype).data)
                left -= len(values)


def make(key, dtype, home=HOME, drawn=True):
    """The folder of this checkpoint, written if it is not there; not `drawn`: all zero, for compiling alone."""
    folder = os.path.join(home, f"{key.replace('/', '-layers-')}-{dtype}{'' if drawn else '-zero'}")
    config = config_of(key)
    config["torch_dtype"] = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}[dtype]
    text = json.dumps(config, indent=1) + "\n"
    told = os.path.join(folder, "config.json")
    if os.path.exists(told) and open(told, encoding="utf-8").read() == text:
        return folder
    os.makedirs(folder, exist_ok=True)
    part = os.path.join(folder, "model.safetensors.part")
    write_tensors(part, tensors_of(config), dtype, drawn)
    os.replace(part, part.removesuffix(".part"))
    with open(told, "w", encoding="utf-8") as file:  # last: a folder with it is whole
        file.write(text)
    return folder


if __name__ == "__main__":
    print(make(*sys.argv[1:]))
