# RUN: %peers %s heedc
"""transformers' ViTForImageClassification: as in the paper. Its patches are a convolution over channels first, the model's a sum over rows, columns and
channels; its norms have another eps, which is set to the model's."""
import numpy as np
from peers import array, compare, drawn, layers, uniform
from transformers import ViTConfig, ViTForImageClassification

SIZE, P, D = 48, 16, 32
peer = drawn(ViTForImageClassification(ViTConfig(hidden_size=D, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=SIZE, patch_size=P,
                                                 num_channels=3, num_labels=10, layer_norm_eps=1e-5)))
vit = peer.vit
embeddings = vit.embeddings
patch = embeddings.patch_embeddings.projection  # its bias is added to positions: the paper has none
position = embeddings.position_embeddings[0].clone()
position[1:] += patch.bias
weights = {"embedding.weight": array(patch.weight.permute(2, 3, 1, 0).reshape(-1, D)), "class": array(embeddings.cls_token[0]), "position": array(position)}
weights |= layers({"norm": vit.layernorm, "head": peer.classifier})
for number, block in enumerate(vit.layers):
    at, attention = f"layer.{number}.", block.attention
    weights |= layers({at + "norm1": block.layernorm_before, at + "norm2": block.layernorm_after, at + "self.query": attention.q_proj, at + "self.key": attention.k_proj,
                       at + "self.value": attention.v_proj, at + "self.output": attention.o_proj, at + "ffn.up": block.mlp.fc1, at + "ffn.down": block.mlp.fc2})
rng = np.random.default_rng(16)
compare("vision/vit", weights, [dict(image=uniform(rng, b, SIZE, SIZE, 3)) for b in (2, 1)], lambda image: {"y": peer(image.permute(0, 3, 1, 2)).logits})
