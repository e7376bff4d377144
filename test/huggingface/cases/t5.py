"""T5: the defaults, version 1.1, each switch of the config."""
SMALL = dict(vocab_size=101, d_model=36, d_kv=10, d_ff=50, num_layers=3, num_heads=3, decoder_start_token_id=0)
# Scores are not scaled; narrow queries leave them varying by some units.
RULES = [(r"\.q\.weight$", 0.0, 0.15)]
HEAD = {"lm_head.weight": [101, 36]}


def case(**more):
    return dict(model="T5ForConditionalGeneration", kind="encoder-decoder", config={**SMALL, **more.pop("config", {})}, rules=RULES, **more)


def bare(config):
    """Nothing that has the library's default, and what old configs have besides."""
    kept = {key: config[key] for key in (*SMALL, "model_type")}
    config.clear()
    config.update(kept, n_positions=512, output_past=True, task_specific_params={"summarization": {"num_beams": 4, "prefix": "summarize: "}})


def first(config):
    """Version 1.1 as on the hub: its head is not the embeddings, and is not scaled."""
    for name in "dense_act_fn", "is_gated_act", "scale_decoder_outputs", "dtype":
        config.pop(name)
    config.update(tie_word_embeddings=False, torch_dtype="float32")


def general(config):
    """The names that all models share are over its own, as in transformers."""
    config.update(hidden_size=config.pop("d_model"), num_attention_heads=config["num_heads"], num_hidden_layers=config.pop("num_layers"), head_dim=config.pop("d_kv"))
    config.update(num_heads=2)


CASES = {
    "default": case(),
    "bare": case(rewrite=bare, config=dict(num_layers=1)),
    "base-model": case(saved="T5Model", config=dict(num_layers=2, num_decoder_layers=1, layer_norm_epsilon=0.05), shards=2),
    "version-1.1": case(config=dict(feed_forward_proj="gated-gelu", num_layers=1, num_decoder_layers=2), rewrite=first, tensors=HEAD),
    # One tensor by one of its names.
    "one-table": case(config=dict(num_layers=1), tensors={"shared.weight": None, "decoder.embed_tokens.weight": [101, 36]}),
    "head-alone": case(config=dict(num_layers=1), rewrite=lambda config: config.update(tie_word_embeddings=True),
                       tensors={"shared.weight": None, "lm_head.weight": [101, 36]}),
    # As transformers 5 writes version 1.1: tied, and the scale apart.
    "unscaled": case(config=dict(feed_forward_proj="gated-silu", tie_word_embeddings=False, num_layers=1), tensors=HEAD),
    "buckets": case(config=dict(relative_attention_num_buckets=10, relative_attention_max_distance=12, feed_forward_proj="gelu", num_layers=1),
                    inputs=dict(tokens=31, source=27)),
    "general-names": case(rewrite=general, config=dict(num_layers=2, num_decoder_layers=1)),
    # An activation of its own name says nothing of gates.
    "dense": case(config=dict(num_layers=1), rewrite=lambda config: config.pop("is_gated_act") or config.update(dense_act_fn="gelu")),
    "distance": dict(error="relative_attention_max_distance 16 is within the exact half of relative_attention_num_buckets", config=dict(relative_attention_max_distance=16)),
    "activation": dict(error="unknown activation 'gated-gelo'", config=dict(feed_forward_proj="gated-gelo", dense_act_fn="gated-gelo", is_gated_act=False)),
}
