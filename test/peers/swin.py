# RUN: %peers %s heedc
"""transformers' SwinForImageClassification, with shifted windows in the first stage: as in the paper, and the last stage is one window. Its table of
relative biases is a matrix of offsets by heads."""
import numpy as np
from peers import array, compare, drawn, layers, uniform
from transformers import SwinConfig, SwinForImageClassification

peer = drawn(SwinForImageClassification(SwinConfig(image_size=56, patch_size=4, num_channels=3, embed_dim=8, depths=[2, 2], num_heads=[2, 4], window_size=7, mlp_ratio=4.0,
                                                   drop_path_rate=0.0, num_labels=10)))
swin = peer.swin
patch = swin.embeddings.patch_embeddings.projection
weights = {"embedding.weight": array(patch.weight.permute(0, 2, 3, 1).reshape(8, -1)), "embedding.bias": array(patch.bias)}
weights |= layers({"embedding.norm": swin.embeddings.norm, "norm": swin.layernorm, "head": peer.classifier})
for stage, blocks in enumerate(swin.encoder.layers):
    for number, block in enumerate(blocks.blocks):
        at, attention = f"stage.{stage}.{number}.", block.attention
        weights |= layers({at + "norm1": block.layernorm_before, at + "norm2": block.layernorm_after, at + "self.query": attention.q_proj, at + "self.key": attention.k_proj,
                           at + "self.value": attention.v_proj, at + "self.output": attention.o_proj, at + "ffn.up": block.mlp.fc1, at + "ffn.down": block.mlp.fc2})
        weights[at + "self.bias"] = array(attention.relative_position_bias.relative_position_bias_table.reshape(13, 13, -1))
    if blocks.downsample is not None:
        weights |= layers({f"stage.{stage + 1}.merge.norm": blocks.downsample.norm, f"stage.{stage + 1}.merge": blocks.downsample.reduction})
rng = np.random.default_rng(17)
compare("vision/swin", weights, [dict(image=uniform(rng, b, 56, 56, 3)) for b in (2, 1)], lambda image: {"y": peer(image.permute(0, 3, 1, 2)).logits})
