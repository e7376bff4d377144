# RUN: %peers %s heedc
"""transformers' T5ForConditionalGeneration, teacher-forced, encoder and decoder: buckets, unscaled scores and logits times D^-1/2, as the authors have it.
Sequences are longer than the span of the buckets."""
import numpy as np
import torch
from peers import array, compare, drawn, layers
from transformers import T5Config, T5ForConditionalGeneration

peer = drawn(T5ForConditionalGeneration(T5Config(vocab_size=23, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, relative_attention_num_buckets=32,
                                                 relative_attention_max_distance=128, dropout_rate=0.0, feed_forward_proj="relu", tie_word_embeddings=True)))


def attention(at, module):
    return {at + "query": module.q, at + "key": module.k, at + "value": module.v, at + "output": module.o}


named = {"encoder.norm": peer.encoder.final_layer_norm, "decoder.norm": peer.decoder.final_layer_norm}
for side, stack in (("encoder", peer.encoder), ("decoder", peer.decoder)):
    for number, block in enumerate(stack.block):
        at = f"{side}.{number}."
        for which, sublayer in enumerate(block.layer, 1):
            named[f"{at}norm{which}"] = sublayer.layer_norm
        named |= attention(at + "self.", block.layer[0].SelfAttention)
        if side == "decoder":
            named |= attention(at + "cross.", block.layer[1].EncDecAttention)
        ffn = block.layer[-1].DenseReluDense
        named |= {at + "ffn.up": ffn.wi, at + "ffn.down": ffn.wo}
weights = layers(named) | {"shared.weight": array(peer.shared.weight)}
for side, stack in (("encoder", peer.encoder), ("decoder", peer.decoder)):
    weights[f"{side}.bias"] = array(stack.block[0].layer[0].SelfAttention.relative_attention_bias.weight)


def run(source, length, target):
    real = (torch.arange(source.shape[1])[None, :] < length[:, None]).long()
    return {"logits": peer(input_ids=source, attention_mask=real, decoder_input_ids=target).logits}


rng = np.random.default_rng(20)
cases = [dict(source=rng.integers(0, 23, (b, n)).astype(np.int32), length=np.array(length, np.int32), target=rng.integers(0, 23, (b, t)).astype(np.int32))
         for b, n, length, t in ((2, 17, [17, 5], 9), (1, 1, [1], 1), (1, 150, [140], 140))]
compare("whole-model/t5", weights, cases, run)
