"""A float64 NumPy reading of the MiniLM sentence encoder, from the papers' equations (Vaswani et al. 2017; Devlin et al. 2019;
Hendrycks and Gimpel 2016 for GELU; Reimers and Gurevych 2019 for the pooling), on the weights of a checkpoint."""
import json
import math
import os

import numpy as np
from safetensors.numpy import load_file

erf = np.vectorize(math.erf, otypes=[np.float64])


class Encoder:
    """One sentence at a time: ids of shape N to the unit vector of width D."""

    def __init__(self, folder):
        self.config = json.load(open(os.path.join(folder, "config.json")))
        weights = load_file(os.path.join(folder, "model.safetensors"))
        self.weights = {name: w.astype(np.float64) for name, w in weights.items() if w.dtype.kind == "f"}

    def linear(self, x, at):
        return x @ self.weights[at + ".weight"].T + self.weights[at + ".bias"]

    def norm(self, x, at):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + self.config["layer_norm_eps"]) * self.weights[at + ".weight"] + self.weights[at + ".bias"]

    def attention(self, x, at):
        count = self.config["num_attention_heads"]
        n, d = x.shape
        q, k, v = (self.linear(x, f"{at}.self.{name}").reshape(n, count, d // count).transpose(1, 0, 2) for name in ("query", "key", "value"))
        s = q @ k.transpose(0, 2, 1) / math.sqrt(d // count)
        p = np.exp(s - s.max(-1, keepdims=True))
        o = (p / p.sum(-1, keepdims=True)) @ v
        return self.linear(o.transpose(1, 0, 2).reshape(n, d), at + ".output.dense")

    def __call__(self, ids):
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
        x = self.norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(self.config["num_hidden_layers"]):
            at = f"encoder.layer.{layer}"
            x = self.norm(x + self.attention(x, at + ".attention"), at + ".attention.output.LayerNorm")
            h = self.linear(x, at + ".intermediate.dense")
            h = 0.5 * h * (1 + erf(h / math.sqrt(2)))
            x = self.norm(x + self.linear(h, at + ".output.dense"), at + ".output.LayerNorm")
        pooled = x.mean(0)
        return pooled / np.linalg.norm(pooled)
