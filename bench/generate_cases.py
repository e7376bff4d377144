"""Generation from checkpoint folders (checkpoints.py), group `generate`: prompts of B rows and N tokens, then NEW tokens of each.

A shape has two cells. `prefill` is one run of all prompts and the choice of each row's first token: its operations are products with the layers'
matrices, the pairs of the causal attention and, of the last position alone, the head. `step` is one more token of each row: it reads all matrices
and the cache, as it is in the middle of the NEW tokens, once. Weights and cache are counted in the checkpoint's type.
Checkpoints in bf16 are measured with products in f32 and, as shapes of their own, in bf16 (heedc's --products=bf16).
"""
import dataclasses
import math

import numpy as np

import checkpoints

NEW = 64
MODELS, TYPES, LENGTHS, ROWS = ("gpt2", "qwen3-0.6b", "llama-3.2-1b"), tuple(checkpoints.TYPES), (32, 512), (1, 8)


@dataclasses.dataclass
class Shape:
    """One model, type and size of prompts; stands for a case in run.py, with two cells."""
    key: str  # of checkpoints.CONFIGS, or with "/2" so many layers of it
    type: str
    B: int
    N: int
    products: str = "f32"  # heedc's --products
    group: str = "generate"
    kind: str = "generate"
    threads: tuple = ("1", "all")
    rank: int = 0

    @property
    def name(self):
        more = "" if self.products == "f32" else f" products={self.products}"
        return f"{self.key} {self.type}{more} N={self.N} B={self.B}"

    @property
    def cells(self):
        return tuple(f"{self.name} {what}" for what in ("prefill", "step"))

    def ids(self):
        vocabulary = checkpoints.config_of(self.key)["vocab_size"]
        return np.random.default_rng(self.N + self.B).integers(1, vocabulary, (self.B, self.N)).astype(np.int32)

    def sizes(self):
        """Layers, query heads, key heads, extent of a head."""
        c = checkpoints.config_of(self.key)
        if c["model_type"] == "gpt2":
            return c["n_layer"], c["n_head"], c["n_head"], c["n_embd"] // c["n_head"]
        return c["num_hidden_layers"], c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]

    def elements(self):
        """(of the layers' matrices and vectors, of the head)."""
        tensors = checkpoints.tensors_of(checkpoints.config_of(self.key))
        layers = sum(math.prod(shape) for name, shape, _, _ in tensors if ".h." in name or ".layers." in name)
        return layers, math.prod(tensors[0][1])

    def cache_bytes(self, length):
        """Keys and values of so many tokens of each row."""
        layers, _, groups, extent = self.sizes()
        return 2.0 * layers * groups * extent * length * self.B * checkpoints.TYPES[self.type][1]

    def held(self):
        """Bytes of weights and of the whole cache."""
        return sum(self.elements()) * checkpoints.TYPES[self.type][1] + self.cache_bytes(self.N + NEW)

    def cost(self, what):
        """(operations, bytes read, bytes written) of a cell."""
        layers, heads, _, extent = self.sizes()
        body, head = self.elements()
        weights = float(body + head) * checkpoints.TYPES[self.type][1]
        count = self.N if what == "prefill" else 1
        pairs = self.N * (self.N + 1) / 2 if what == "prefill" else self.N + NEW / 2
        flops = 2.0 * self.B * (body * count + head) + 4.0 * self.B * layers * heads * extent * pairs
        seen = 0 if what == "prefill" else self.N + NEW / 2
        return flops, weights + self.cache_bytes(seen), self.cache_bytes(count)

    def describe(self, what):
        return {"name": f"{self.name} {what}", "group": self.group, "kind": self.kind,
                "params": {"model": self.key, "type": self.type, "products": self.products, "B": self.B, "N": self.N, "new": NEW, "what": what}}


def shapes():
    for key in MODELS:
        for dtype in TYPES:
            for n in LENGTHS:
                for b in ROWS:
                    for products in ("f32", "bf16") if dtype == "bf16" else ("f32",):
                        yield Shape(key, dtype, b, n, products)
