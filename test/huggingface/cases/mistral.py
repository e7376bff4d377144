"""Mistral: the defaults, windows, each switch of its config."""
SMALL = dict(vocab_size=101, hidden_size=48, intermediate_size=68, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=40,
             bos_token_id=0, eos_token_id=0)
case = lambda **more: dict(model="MistralForCausalLM", config={**SMALL, **more.pop("config", {})}, **more)


def old(config):
    """As configs before transformers 5 have it."""
    for name in ("rope_parameters", "head_dim", "dtype"):
        config.pop(name, None)
    config.update(rope_theta=1000000.0, torch_dtype="bfloat16")


CASES = {
    "default": case(config=dict(sliding_window=6)),
    "old": case(config=dict(sliding_window=None), rewrite=old),
    "bare": case(saved="MistralModel", config=dict(tie_word_embeddings=True, head_dim=10, num_key_value_heads=6, rms_norm_eps=0.05, hidden_act="gelu_new",
                                                   sliding_window=3, rope_parameters=dict(rope_type="yarn", factor=4.0, rope_theta=100.0,
                                                                                          original_max_position_embeddings=10))),
}
