# RUN: %peers %s heedc
"""transformers' LongformerSelfAttention: a window of 4 to each side, global tokens with projections of their own. It scales queries where the model
scales scores, computes by chunks of the window (so lengths are multiples of it), and has no dilation: it is 1. What is compared is what its heads give."""
import numpy as np
import torch
from peers import array, compare, drawn, heads, tensor, uniform
from transformers import LongformerConfig
from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

peer = drawn(LongformerSelfAttention(LongformerConfig(hidden_size=32, num_attention_heads=4, attention_window=[8], attention_probs_dropout_prob=0.0), 0))
rng = np.random.default_rng(21)
xs = {n: uniform(rng, 2, n, 32) for n in (48, 16)}


def case(x, tokens):
    inputs = {name: array(heads(project(tensor(x)), 4)) for name, project in
              (("q", peer.query), ("k", peer.key), ("v", peer.value), ("qg", peer.query_global), ("kg", peer.key_global), ("vg", peer.value_global))}
    globals_ = np.zeros(x.shape[:2], bool)
    for b, places in enumerate(tokens):
        globals_[b, places] = True
    return inputs | {"global": globals_, "dilation": np.ones(4, np.int32)}


def run(q, dilation, **inputs):
    x, everywhere = tensor(xs[q.shape[2]]), inputs["global"].bool()
    mask = torch.where(everywhere, 10000.0, 0.0).double()
    out = peer(x, attention_mask=mask, is_index_masked=mask < 0, is_index_global_attn=mask > 0, is_global_attn=bool(everywhere.any()))[0]
    return {"o": heads(out, 4)}


compare("sparse/longformer", {}, [case(xs[48], [[0, 20], [47]]), case(xs[16], [[3], [0, 1, 2]])], run)
