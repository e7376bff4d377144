"""Qwen3: the defaults, windows of the later layers and of listed ones, each switch of its config."""
SMALL = dict(vocab_size=101, hidden_size=48, intermediate_size=68, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=12,
             max_position_embeddings=40, bos_token_id=0, eos_token_id=0)
case = lambda **more: dict(model="Qwen3ForCausalLM", config={**SMALL, **more.pop("config", {})}, **more)


def old(config):
    """As configs before transformers 5 have it."""
    for name in ("rope_parameters", "layer_types", "dtype"):
        config.pop(name, None)
    config.update(rope_theta=1000000.0, rope_scaling=None, torch_dtype="bfloat16")


KINDS = ["full_attention", "sliding_attention", "full_attention"]
CASES = {
    "default": case(config=dict(tie_word_embeddings=True)),
    "old-windows": case(config=dict(use_sliding_window=True, max_window_layers=2, sliding_window=4, num_key_value_heads=None), rewrite=old),
    "listed-windows": case(config=dict(use_sliding_window=True, sliding_window=7, layer_types=KINDS, attention_bias=True)),
    "bare": case(saved="Qwen3Model", config=dict(tie_word_embeddings=True, head_dim=8, rms_norm_eps=0.05, hidden_act="relu2",
                                                 rope_parameters=dict(rope_type="yarn", factor=4.0, rope_theta=1000.0, original_max_position_embeddings=10))),
    "no-window": case(config=dict(layer_types=KINDS), error="layer 1 has sliding attention, but there is no sliding_window"),
}
