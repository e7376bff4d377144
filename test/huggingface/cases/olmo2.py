"""OLMo 2: grouped heads, biases, tied embeddings, rotary positions in the old and the new form."""
SMALL = dict(vocab_size=101, hidden_size=48, intermediate_size=68, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=40)
case = lambda **more: dict(model="Olmo2ForCausalLM", config={**SMALL, **more.pop("config", {})}, **more)


def old(config):
    """As OLMo-2-1124-7B's on the hub: rope_theta beside an empty rope_scaling."""
    for name in ("rope_parameters", "dtype", "attention_bias"):
        config.pop(name, None)
    config.update(rope_theta=500000, rope_scaling=None, torch_dtype="float32")


CASES = {
    "default": case(),
    "bare-old": case(saved="Olmo2Model", rewrite=old, config=dict(num_key_value_heads=None, tie_word_embeddings=True)),
    "switches": case(config=dict(attention_bias=True, hidden_act="gelu", rms_norm_eps=0.05,
                                 rope_parameters=dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=10))),
    "activation": case(config=dict(hidden_act="gelu_11"), error="unknown activation 'gelu_11'"),
}
