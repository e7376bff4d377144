"""BLOOM: numbers of heads that are powers of two and others, names without the prefix, residuals behind the norms."""
SMALL = dict(vocab_size=101, hidden_size=48, n_layer=3, n_head=6)
case = lambda **more: dict(model="BloomForCausalLM", config={**SMALL, **more.pop("config", {})}, **more)


def old(config):
    """As bloom-560m's on the hub: n_embed and num_attention_heads."""
    config["n_embed"], config["num_attention_heads"] = config.pop("hidden_size"), config.pop("n_head")
    for name in ("tie_word_embeddings", "dtype"):
        config.pop(name, None)


def general(config):
    """The names that all models share are over its own, as in transformers."""
    config.update(num_attention_heads=config["n_head"], num_hidden_layers=config["n_layer"], n_embed=None)
    config.update(n_head=2, n_layer=1)


CASES = {
    "default": case(),
    "bare-old": case(saved="BloomModel", rewrite=old, config=dict(n_head=4)),
    "general-names": case(rewrite=general, config=dict(n_layer=2)),
    "residuals": case(config=dict(apply_residual_connection_post_layernorm=True, tie_word_embeddings=False, n_head=3, layer_norm_epsilon=0.05)),
    "parts": case(config=dict(slow_but_exact=True, pretraining_tp=2), error="slow_but_exact with a pretraining_tp of 2 is not supported"),
    # Either one alone says nothing.
    "one-part": case(config=dict(slow_but_exact=True, n_layer=1), rewrite=lambda config: config.update(pretraining_tp=1)),
}
