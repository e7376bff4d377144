"""Phi-3: grouped heads, a window, rotary positions in a part of the heads, longrope under its old names."""
SMALL = dict(vocab_size=101, hidden_size=48, intermediate_size=68, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=40,
             pad_token_id=0, eos_token_id=0)
case = lambda **more: dict(model="Phi3ForCausalLM", config={**SMALL, **more.pop("config", {})}, **more)
LONG = dict(short_factor=[1.0, 1.1, 1.3, 1.6], long_factor=[1.5, 2.0, 3.1, 4.5])


def old(**changes):
    """As the configs on the hub: rope_theta and rope_scaling."""
    def rewrite(config):
        for name in ("rope_parameters", "dtype"):
            config.pop(name, None)
        config.update({"rope_theta": 100.0, "rope_scaling": None, "torch_dtype": "bfloat16", **changes})
    return rewrite


CASES = {
    "default": case(),
    "window-old": case(rewrite=old(), config=dict(sliding_window=6, num_key_value_heads=None)),
    "longrope": case(config=dict(original_max_position_embeddings=9, rope_parameters=dict(rope_type="longrope", rope_theta=100.0, **LONG)), stepwise=True),
    "su": case(rewrite=old(rope_scaling=dict(type="su", original_max_position_embeddings=12, **LONG), original_max_position_embeddings=12), stepwise=True),
    "partial": case(rewrite=old(partial_rotary_factor=0.75, rope_scaling=dict(type="longrope", short_factor=[1.0, 1.1, 1.3], long_factor=[1.5, 2.0, 3.1])),
                    config=dict(tie_word_embeddings=True, rms_norm_eps=0.05, hidden_act="gelu_new", max_position_embeddings=16384)),
    "rope": case(config=dict(rope_parameters=dict(rope_type="spiral", rope_theta=100.0)), error="unknown rope type 'spiral'"),
}
