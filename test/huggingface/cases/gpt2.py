"""GPT-2: the defaults, names without the prefix, each switch of its config."""
SMALL = dict(vocab_size=101, n_embd=48, n_layer=3, n_head=3, n_positions=40, bos_token_id=0, eos_token_id=0)
# Its products' weights lie inputs times outputs.
RULES = [(r"mlp\.c_proj\.weight$", 0.0, 0.19), (r"\.c_\w+\.weight$", 0.0, 0.37)]
case = lambda **more: dict(model="GPT2LMHeadModel", config={**SMALL, **more.pop("config", {})}, rules=RULES, **more)


def old(config):
    """As gpt2's own config on the hub: no n_inner, n_ctx, no dtype."""
    for name in ("n_inner", "dtype", "scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention", "tie_word_embeddings"):
        config.pop(name, None)
    config["n_ctx"] = config["n_positions"]


def general(config):
    """The names that all models share are over its own, as in transformers."""
    config.update(hidden_size=config["n_embd"], num_attention_heads=config["n_head"], num_hidden_layers=config.pop("n_layer"), max_position_embeddings=config["n_positions"])
    config.update(n_embd=12, n_head=2, n_positions=8)


CASES = {
    "default": case(),
    "bare-old": case(saved="GPT2Model", rewrite=old),
    "untied": case(config=dict(tie_word_embeddings=False, n_inner=72, activation_function="gelu", layer_norm_epsilon=0.05)),
    "scales": case(config=dict(scale_attn_weights=False, scale_attn_by_inverse_layer_idx=True, activation_function="relu")),
    # Embeddings and head are one tensor, which is the head's.
    "one-table": case(config=dict(n_layer=1), tensors={"transformer.wte.weight": None, "lm_head.weight": [101, 48]}),
    "general-names": case(rewrite=general, config=dict(n_layer=2)),
    "activation": case(config=dict(activation_function="gelu_11"), error="unknown activation 'gelu_11'"),
    "cross": case(config=dict(add_cross_attention=True), error="cross attention is not supported"),
}
