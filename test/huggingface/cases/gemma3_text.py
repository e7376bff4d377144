"""Gemma 3: the defaults, windows by a pattern and listed ones, rotary positions of both kinds of layers, each switch of its config."""
SMALL = dict(vocab_size=101, hidden_size=48, intermediate_size=68, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=12,
             max_position_embeddings=40, sliding_window=6, query_pre_attn_scalar=9)
RULES = [(r"norm\.weight$", 0.0, 0.3), (r"embed_tokens", 0.0, 0.3)]
case = lambda **more: dict(model="Gemma3ForCausalLM", config={**SMALL, **more.pop("config", {})}, rules=RULES, **more)


def old(**changes):
    """As configs before transformers 5 have it."""
    def rewrite(config):
        for name in ("rope_parameters", "layer_types", "dtype", "use_bidirectional_attention", "tie_word_embeddings", "_sliding_window_pattern"):
            config.pop(name, None)
        config.update({"rope_theta": 700.0, "rope_local_base_freq": 30.0, "rope_scaling": None, "sliding_window_pattern": 2, "torch_dtype": "float32", **changes})
    return rewrite


KINDS = ["sliding_attention", "full_attention", "sliding_attention"]
FULL = dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=10)
CASES = {
    "default": case(config=dict(layer_types=KINDS)),
    "pattern": case(rewrite=lambda config: [config.pop(name, None) for name in ("layer_types", "rope_parameters", "_sliding_window_pattern")] and config,
                    config=dict(num_hidden_layers=6, intermediate_size=20)),
    "bare-old": case(saved="Gemma3TextModel", rewrite=old(rope_scaling=dict(rope_type="linear", factor=4.0))),
    # attn_logit_softcapping is in the config, but the library does not use it.
    "switches": case(config=dict(tie_word_embeddings=False, attention_bias=True, hidden_activation="silu", rms_norm_eps=0.05, final_logit_softcapping=4.0,
                                 attn_logit_softcapping=2.0, num_key_value_heads=6, layer_types=KINDS[::-1],
                                 rope_parameters=dict(full_attention=FULL, sliding_attention=dict(rope_type="linear", rope_theta=20.0, factor=2.0)))),
    # The type of one record by its older name; what stands beside them is of none.
    "records": case(rewrite=lambda config: config["rope_parameters"]["full_attention"].update(type=config["rope_parameters"]["full_attention"].pop("rope_type")),
                    config=dict(layer_types=KINDS, original_max_position_embeddings=7, num_hidden_layers=3,
                                rope_parameters=dict(full_attention=dict(FULL, original_max_position_embeddings=20)))),
    "twice": case(config=dict(rope_scaling=dict(rope_type="linear", factor=2.0)), error="rope_parameters and rope_scaling at once are not supported"),
    "whole": case(config=dict(rope_parameters=dict(full_attention=dict(FULL, truncate=False))), error="yarn whose truncate is not true is not supported"),
    "both-directions": case(config=dict(use_bidirectional_attention=True), error="attention in both directions is not supported"),
}
