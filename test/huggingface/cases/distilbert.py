"""DistilBERT: the defaults, and each switch of its config. Its eps is none: 1e-12 everywhere."""
SMALL = dict(vocab_size=103, dim=30, n_layers=3, n_heads=3, hidden_dim=52, max_position_embeddings=26)
case = lambda **more: dict(model="DistilBertModel", kind="encoder", config={**SMALL, **more.pop("config", {})}, **more)


def old(config):
    for name in "dtype", "tie_word_embeddings", "bos_token_id", "eos_token_id":
        config.pop(name, None)
    config.update(tie_weights_=True, torch_dtype="float32", output_past=True)


def general(config):
    """The names that all models share are over its own, as in transformers."""
    config.update(hidden_size=config.pop("dim"), num_attention_heads=config.pop("n_heads"), num_hidden_layers=config["n_layers"])
    config.update(n_layers=1)


CASES = {
    "default": case(),
    "masked-lm": case(saved="DistilBertForMaskedLM", rewrite=old, config=dict(activation="mish", n_heads=5), inputs=dict(length=[23, 1])),
    "sinusoidal": case(config=dict(sinusoidal_pos_embds=True, activation="tanh")),
    "general-names": case(rewrite=general, config=dict(n_layers=2)),
    "activation": dict(error="unknown activation 'gelo'", config=dict(activation="gelo")),
}
