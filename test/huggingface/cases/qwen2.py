"""Qwen2: the defaults, windows of the later layers and of listed ones, each switch of its config."""
SMALL = dict(vocab_size=101, hidden_size=48, intermediate_size=68, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=40,
             bos_token_id=0, eos_token_id=0)
case = lambda **more: dict(model="Qwen2ForCausalLM", config={**SMALL, **more.pop("config", {})}, **more)


def old(config):
    """As configs before transformers 5 have it."""
    for name in ("rope_parameters", "layer_types", "dtype"):
        config.pop(name, None)
    config.update(rope_theta=1000000.0, sliding_window=5, torch_dtype="bfloat16")


KINDS = ["sliding_attention", "full_attention", "sliding_attention"]
CASES = {
    "default": case(),
    "old-windows": case(config=dict(tie_word_embeddings=True, use_sliding_window=True, max_window_layers=1), rewrite=old),
    "listed-windows": case(config=dict(use_sliding_window=True, sliding_window=6, layer_types=KINDS, num_key_value_heads=None)),
    "bare": case(saved="Qwen2Model", config=dict(tie_word_embeddings=True, head_dim=10, rms_norm_eps=0.05, hidden_act="relu",
                                                 rope_parameters=dict(rope_type="linear", factor=3.0, rope_theta=100.0))),
    "no-window": case(config=dict(layer_types=KINDS), error="layer 0 has sliding attention, but there is no sliding_window"),
    "kind": case(config=dict(layer_types=["full_attention", "chunked_attention", "full_attention"]), error="unknown layer type 'chunked_attention'"),
}
