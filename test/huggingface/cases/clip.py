"""CLIP: both towers and their similarities; the end of a text by its number and, in old configs, as the largest one."""
import numpy as np
import torch

import weights

TEXT = dict(vocab_size=101, hidden_size=36, intermediate_size=50, num_hidden_layers=2, num_attention_heads=3, max_position_embeddings=20, eos_token_id=90)
VISION = dict(hidden_size=40, intermediate_size=44, num_hidden_layers=2, num_attention_heads=2, image_size=12, patch_size=4)
# Tensors that the general rules do not know. The logarithm of a scale as published would leave nothing but one text to each image.
RULES = [(r"class_embedding", 0.0, 0.9), (r"patch_embedding", 0.0, "fan"), (r"logit_scale", 1.5, 0.3)]


def drawn_texts(config, seed):
    """Three texts, each with an end. It pads a text, too, where the first one counts; where the largest one does, something small does."""
    ids, length = weights.integers(seed + "/ids", 3, 90, (3, 13)), np.array([13, 6, 9], np.int32)
    end, padding = (95, 1) if config.eos_token_id == 2 else (config.eos_token_id, config.eos_token_id)
    for row, n in zip(ids, length):
        row[n - 1], row[n:] = end, padding
    return ids, length


def run(model, case, seed):
    vision = model.config.vision_config
    ids, length = drawn_texts(model.config.text_config, seed)
    pixels = weights.uniform(seed + "/pixels", (2, vision.num_channels, vision.image_size, vision.image_size))
    mask = torch.tensor(np.arange(ids.shape[1]) < length[:, None]).long()
    words, images = torch.tensor(ids).long(), torch.tensor(pixels).to(model.dtype)
    text, image = model.text_model(input_ids=words, attention_mask=mask), model.vision_model(pixel_values=images)
    of = lambda tower, features: {"hidden": tower.last_hidden_state.numpy(), "pooled": tower.pooler_output.numpy(), "features": features.pooler_output.numpy()}
    both = model(input_ids=words, attention_mask=mask, pixel_values=images)
    both = {name: both[name].numpy() for name in ("logits_per_image", "logits_per_text", "text_embeds", "image_embeds")}
    return {"text": ({"ids": ids, "length": length}, of(text, model.get_text_features(words, mask))),
            "image": ({"pixels": pixels}, of(image, model.get_image_features(images))),
            "forward": ({"ids": ids, "length": length, "pixels": pixels}, both)}


def case(text={}, vision={}, **more):
    config = dict(text_config={**TEXT, **text}, vision_config={**VISION, **vision}, projection_dim=20)
    return dict(model="CLIPModel", kind="encoder", config=config, rules=RULES, run=run, **more)


def old(config):
    """As the first ones on the hub: a wrong number of the end, parts that hold little but sizes."""
    for part, sizes in ("text_config", TEXT), ("vision_config", VISION):
        config[part] = {key: config[part][key] for key in sizes if key in config[part]}
        config[part + "_dict"] = None
    config["text_config"]["eos_token_id"] = 2
    config.update(torch_dtype="float32", logit_scale_init_value=2.6592)
    config.pop("dtype", None)


def twice(config):
    """What the dicts say, or leave to the defaults, is over the parts' own."""
    old(config)
    config["text_config"].update(hidden_act="gelu", num_attention_heads=4)
    config["vision_config"].update(hidden_act="gelu", layer_norm_eps=0.5)
    config.update(text_config_dict=dict(TEXT, num_hidden_layers=1), vision_config_dict=dict(VISION, num_hidden_layers=1, hidden_act="relu"))


CASES = {
    "default": case(),
    "old": case(dict(num_hidden_layers=1), dict(num_hidden_layers=1), rewrite=old),
    "twice": case(rewrite=twice),
    "switches": case(dict(num_hidden_layers=1, hidden_act="gelu", layer_norm_eps=0.05, eos_token_id=7),
                     dict(num_hidden_layers=1, hidden_act="gelu_new", layer_norm_eps=0.02, patch_size=6, num_channels=1)),
    "uneven": case(dict(num_hidden_layers=1), dict(num_hidden_layers=1, image_size=13)),
    "causal": dict(error="is_causal = false is not supported", config=dict(text_config=dict(TEXT, is_causal=False))),
    "activation": dict(error="unknown activation 'gelo'", config=dict(text_config=dict(TEXT, hidden_act="gelo"))),
}
