"""BART: the defaults, old configs, each switch."""
SMALL = dict(vocab_size=101, d_model=36, encoder_layers=2, encoder_ffn_dim=50, encoder_attention_heads=3, decoder_layers=3, decoder_ffn_dim=44,
             decoder_attention_heads=2, max_position_embeddings=30)


def case(**more):
    more = {"model": "BartForConditionalGeneration", "rules": [], **more}
    # Zeros in published checkpoints, but read.
    more["rules"] = [*more["rules"], (r"final_logits_bias", 0.0, 0.9)]
    return dict(kind="encoder-decoder", config={**SMALL, **more.pop("config", {})}, **more)


def bare(config):
    """Nothing that has the library's default, and what old configs have besides."""
    kept = {key: config[key] for key in (*SMALL, "model_type")}
    config.clear()
    config.update(kept, add_bias_logits=False, normalize_before=False, normalize_embedding=True, static_position_embeddings=False, extra_pos_embeddings=2)


def general(config):
    """The names that all models share are over its own, as in transformers."""
    config.update(hidden_size=config.pop("d_model"), num_attention_heads=config.pop("encoder_attention_heads"), num_hidden_layers=config["encoder_layers"])
    config.update(encoder_layers=1)


CASES = {
    "default": case(),
    # Old files hold the head of its own name, too; that one counts.
    "bare": case(rewrite=bare, config=dict(encoder_layers=1, decoder_layers=1), tensors={"lm_head.weight": [101, 36]}),
    "base-model": case(saved="BartModel", config=dict(scale_embedding=True, encoder_layers=1, decoder_layers=2, activation_function="relu"),
                       rules=[(r"shared\.weight", 0.0, 0.2)], shards=2),
    "untied": case(config=dict(tie_word_embeddings=False, decoder_layers=1, encoder_layers=1)),
    # All of these are one tensor, which a file may hold by any of its names.
    "one-table": case(config=dict(encoder_layers=1, decoder_layers=1), tensors={"model.shared.weight": None, "lm_head.weight": [101, 36]}),
    "decoders-table": case(config=dict(encoder_layers=1, decoder_layers=1), tensors={"model.shared.weight": None, "model.decoder.embed_tokens.weight": [101, 36]}),
    "no-head": dict(error="lm_head.weight", config=dict(tie_word_embeddings=False)),
    "general-names": case(rewrite=general, config=dict(decoder_layers=1)),
    "activation": dict(error="unknown activation 'gelo'", config=dict(activation_function="gelo")),
}
