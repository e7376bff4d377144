"""PyTorch: transformers' model with a static cache, eager, and with a compiled step, as its generate() has it: prompts of all lengths run eager."""
import os

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")

import numpy as np
import torch
import transformers

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


class Generation:

    def __init__(self, model, case, ids, compiled):
        self.model, self.ids = model, torch.from_numpy(ids).long()
        self.cache = transformers.StaticCache(config=model.config, max_cache_len=ids.shape[1] + case["new"])
        c = model.config
        heads = getattr(c, "num_key_value_heads", None) or c.num_attention_heads
        extent = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
        self.cache.early_initialization(len(ids), heads, extent, model.dtype, torch.device("cpu"))  # which is not to be compiled
        self.positions = torch.arange(ids.shape[1] + case["new"])
        self.run = torch.compile(self.forward, dynamic=False) if compiled else self.forward

    def forward(self, ids, positions):
        logits = self.model(input_ids=ids, cache=self.cache, position_ids=positions[None].expand(len(ids), -1), use_cache=True,
                            logits_to_keep=1).logits
        return logits[:, -1].argmax(-1)

    @torch.inference_mode()
    def feed(self, ids):
        n = ids.shape[1]
        run = self.run if n == 1 else self.forward
        self.tokens = run(ids, self.positions[self.at:self.at + n])
        self.at += n

    def go(self, length):
        """The cache holds so many tokens."""
        self.at = length
        for layer in self.cache.layers:
            layer.cumulative_length.fill_(length)

    def prefill(self):
        self.go(0)
        self.feed(self.ids)
        self.first = self.tokens

    def back(self):
        self.go(self.ids.shape[1])
        self.tokens = self.first

    def step(self):
        self.feed(self.tokens[:, None])

    def chosen(self):
        return self.tokens.numpy().astype(np.int32)

    def close(self):
        torch._dynamo.reset()


class System:
    name = "pytorch"

    def __init__(self, threads):
        torch.set_num_threads(threads)
        torch.set_flush_denormal(True)

    def version(self):
        return f"{torch.__version__}, transformers {transformers.__version__}"

    def ways(self, case):
        return ["eager", "compiled"]

    def load(self, case, way):
        return transformers.AutoModelForCausalLM.from_pretrained(case["folder"], dtype=TYPES[case["type"]], attn_implementation="sdpa").eval()

    def unload(self, model):
        pass

    def open(self, model, case, way, ids):
        return Generation(model, case, ids, way == "compiled")
