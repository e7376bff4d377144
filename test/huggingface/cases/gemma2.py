"""Gemma 2: the defaults, windows of every other layer and of listed ones, each switch of its config."""
SMALL = dict(vocab_size=101, hidden_size=48, intermediate_size=68, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=12,
             max_position_embeddings=40, sliding_window=6, query_pre_attn_scalar=9, attn_logit_softcapping=5.0, final_logit_softcapping=7.0)
RULES = [(r"norm\.weight$", 0.0, 0.3), (r"embed_tokens", 0.0, 0.3)]
case = lambda **more: dict(model="Gemma2ForCausalLM", config={**SMALL, **more.pop("config", {})}, rules=RULES, **more)


def old(config):
    """As configs before transformers 5 have it."""
    for name in ("rope_parameters", "layer_types", "dtype", "use_bidirectional_attention", "tie_word_embeddings"):
        config.pop(name, None)
    config.update(rope_theta=500.0, hidden_act="gelu_pytorch_tanh", cache_implementation="hybrid", torch_dtype="float32")


KINDS = ["full_attention", "sliding_attention", "sliding_attention"]
CASES = {
    "default": case(),
    "bare-old": case(saved="Gemma2Model", rewrite=old),
    "untied": case(config=dict(tie_word_embeddings=False, attention_bias=True, hidden_activation="silu", rms_norm_eps=0.05, layer_types=KINDS)),
    "uncapped": case(config=dict(attn_logit_softcapping=None, final_logit_softcapping=None, num_key_value_heads=6, head_dim=8,
                                 rope_parameters=dict(rope_type="linear", factor=3.0, rope_theta=100.0))),
    "both-directions": case(config=dict(use_bidirectional_attention=True), error="attention in both directions is not supported"),
}
