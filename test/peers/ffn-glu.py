# RUN: %peers %s heedc
"""transformers' LlamaMLP, SwiGLU: as in the paper, without biases."""
import numpy as np
from peers import compare, drawn, layers, uniform
from transformers.models.llama.modeling_llama import LlamaConfig, LlamaMLP

peer = drawn(LlamaMLP(LlamaConfig(hidden_size=32, intermediate_size=88, hidden_act="silu")))
rng = np.random.default_rng(15)
weights = layers({"gate": peer.gate_proj, "up": peer.up_proj, "down": peer.down_proj})
compare("ffn/ffn-glu", weights, [dict(x=uniform(rng, 2, n, 32)) for n in (33, 1)], lambda x: {"y": peer(x)})
