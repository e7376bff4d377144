"""A checkpoint's folder as a GGUF file, llama.cpp's format: matrices in the type that they have, vectors in f32, no vocabulary.

Names, keys and the order of rotated rows are those that llama.cpp's own models read (src/llama-arch.cpp, docs of GGUF).
"""
import json
import os
import struct

import numpy as np

F32, TYPES = 0, {"F32": (0, np.float32), "F16": (1, np.float16), "BF16": (30, np.uint16)}
ALIGNMENT = 32


def tensors_of(folder):
    """Name -> (type, array mapped from the file)."""
    path = os.path.join(folder, "model.safetensors")
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    found = {}
    for name, told in header.items():
        if name != "__metadata__":
            found[name] = told["dtype"], np.memmap(path, TYPES[told["dtype"]][1], "r", 8 + size + told["data_offsets"][0], tuple(told["shape"]))
    return found


def in_f32(kind, array):
    return (array.astype(np.uint32) << 16).view(np.float32) if kind == "BF16" else array.astype(np.float32)


def in_pairs(array, heads):
    """Rows of each head in the order in which llama.cpp rotates them for Llama: neighbours are a pair, not halves."""
    rows, columns = array.shape
    return array.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def llama3_factors(c, scaling):
    """What each frequency is divided by."""
    e = c["head_dim"]
    frequency = c["rope_theta"] ** (-np.arange(0, e, 2) / e)
    wave, context = 2 * np.pi / frequency, scaling["original_max_position_embeddings"]
    low, high, factor = scaling["low_freq_factor"], scaling["high_freq_factor"], scaling["factor"]
    smooth = (context / wave - low) / (high - low)
    between = 1 / ((1 - smooth) / factor + smooth)
    return np.where(wave < context / high, 1, np.where(wave > context / low, factor, between)).astype(np.float32)


def gpt2(c):
    """(keys, [(name here, name there, transform)])."""
    names = [("token_embd.weight", "transformer.wte.weight", None), ("position_embd.weight", "transformer.wpe.weight", "f32"),
             ("output_norm.weight", "transformer.ln_f.weight", None), ("output_norm.bias", "transformer.ln_f.bias", None)]
    for layer in range(c["n_layer"]):
        for here, there in (("attn_norm", "ln_1"), ("ffn_norm", "ln_2"), ("attn_qkv", "attn.c_attn"), ("attn_output", "attn.c_proj"),
                            ("ffn_up", "mlp.c_fc"), ("ffn_down", "mlp.c_proj")):
            for part in ("weight", "bias"):
                names.append((f"blk.{layer}.{here}.{part}", f"transformer.h.{layer}.{there}.{part}", "transposed" if "." in there else None))
    return {"context_length": c["n_positions"], "embedding_length": c["n_embd"], "block_count": c["n_layer"], "feed_forward_length": 4 * c["n_embd"],
            "attention.head_count": c["n_head"], "attention.layer_norm_epsilon": float(c["layer_norm_epsilon"])}, names


def llama(c):
    """Llama and Qwen3."""
    pairs = c["model_type"] == "llama"
    names = [("token_embd.weight", "model.embed_tokens.weight", None), ("output_norm.weight", "model.norm.weight", None)]
    parts = [("attn_norm", "input_layernorm", None), ("ffn_norm", "post_attention_layernorm", None), ("attn_v", "self_attn.v_proj", None),
             ("attn_q", "self_attn.q_proj", c["num_attention_heads"] if pairs else None),
             ("attn_k", "self_attn.k_proj", c["num_key_value_heads"] if pairs else None), ("attn_output", "self_attn.o_proj", None),
             ("ffn_gate", "mlp.gate_proj", None), ("ffn_up", "mlp.up_proj", None), ("ffn_down", "mlp.down_proj", None)]
    if not pairs:
        parts += [("attn_q_norm", "self_attn.q_norm", None), ("attn_k_norm", "self_attn.k_norm", None)]
    for layer in range(c["num_hidden_layers"]):
        names += [(f"blk.{layer}.{here}.weight", f"model.layers.{layer}.{there}.weight", how) for here, there, how in parts]
    return {"context_length": c["max_position_embeddings"], "embedding_length": c["hidden_size"], "block_count": c["num_hidden_layers"],
            "feed_forward_length": c["intermediate_size"], "attention.head_count": c["num_attention_heads"],
            "attention.head_count_kv": c["num_key_value_heads"], "attention.layer_norm_rms_epsilon": float(c["rms_norm_eps"]),
            "attention.key_length": c["head_dim"], "attention.value_length": c["head_dim"], "rope.dimension_count": c["head_dim"],
            "rope.freq_base": float(c["rope_theta"])}, names


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, value):
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    return text(key) + (struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", 4, value))


def converted(folder, config, names):
    """(name, type's number, array) of each tensor."""
    there = tensors_of(folder)
    for here, name, how in names:
        kind, array = there[name]
        if array.ndim == 1 or how == "f32":
            yield here, F32, in_f32(kind, array)
            continue
        if how == "transposed":
            array = array.T
        elif how:
            array = in_pairs(array, how)
        yield here, TYPES[kind][0], array
    if config.get("rope_scaling"):
        yield "rope_freqs.weight", F32, llama3_factors(config, config["rope_scaling"])


def write(folder, path):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    kind = config["model_type"]
    keys, names = (gpt2 if kind == "gpt2" else llama)(config)
    told = [entry("general.architecture", kind), entry(f"{kind}.vocab_size", config["vocab_size"]), entry("tokenizer.ggml.model", "no_vocab")]
    told += [entry(f"{kind}.{key}", value) for key, value in keys.items()]
    tensors, at, infos = list(converted(folder, config, names)), 0, []
    for name, number, array in tensors:
        shape = array.shape[::-1]  # the innermost extent first
        infos.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, number, at))
        at += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(told)) + b"".join(told) + b"".join(infos)
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % ALIGNMENT))
        for _, _, array in tensors:
            file.write(np.ascontiguousarray(array).data)
            file.write(b"\0" * (-array.nbytes % ALIGNMENT))
