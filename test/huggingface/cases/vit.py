"""ViT: the defaults, and each switch of its config."""
import torch

import weights

SMALL = dict(hidden_size=36, num_hidden_layers=3, num_attention_heads=3, intermediate_size=50, image_size=15, patch_size=5)
# The tensors that are no product's.
RULES = [(r"cls_token|position_embeddings", 0.0, 0.9)]


def run(model, case, seed):
    size = model.config.image_size
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    pixels = weights.uniform(seed + "/pixels", (2, model.config.num_channels, height, width))
    found = model(pixel_values=torch.tensor(pixels).to(model.dtype), output_hidden_states=True)
    if case["model"] == "ViTModel":
        results = {"hidden": found.last_hidden_state, "pooled": found.pooler_output}
        if found.pooler_output is None:
            results["pooled"] = found.last_hidden_state[:, 0]
    else:
        results = {"logits": found.logits}
    return {"encode": ({"pixels": pixels}, {name: value.numpy() for name, value in results.items()})}


def case(model="ViTModel", **more):
    return dict(model=model, kind="encoder", config={**SMALL, **more.pop("config", {})}, rules=RULES, run=run, **more)


def bare(config):
    """Nothing that has the library's default."""
    kept = {key: config[key] for key in (*SMALL, "model_type") if key in config}
    config.clear()
    config.update(kept)


CASES = {
    "default": case(),
    "bare": case(rewrite=bare),
    "classifier": case("ViTForImageClassification", config=dict(num_labels=7)),
    "masked": case(saved="ViTForMaskedImageModeling", options={"add_pooling_layer": False}, config=dict(patch_size=3, encoder_stride=3)),
    # Sides of their own.
    "oblong": case(config=dict(num_hidden_layers=1, image_size=[15, 12], patch_size=[3, 4])),
    # What no whole patch covers is left out.
    "uneven": case(config=dict(num_hidden_layers=1, image_size=[14, 16], patch_size=5)),
    "switches": case(config=dict(qkv_bias=False, hidden_act="gelu_new", layer_norm_eps=0.05, pooler_output_size=20, pooler_act="relu", num_channels=1)),
    "activation": dict(error="unknown activation 'gelo'", config=dict(hidden_act="gelo")),
}
