"""BERT: the defaults, and each switch of its config."""
SMALL = dict(vocab_size=101, hidden_size=30, num_hidden_layers=3, num_attention_heads=3, intermediate_size=52, max_position_embeddings=40, type_vocab_size=3)
# What a config of transformers 3 says beside these.
OLD = dict(position_embedding_type="absolute", gradient_checkpointing=False, torch_dtype="float32", type_vocab_size=2)
case = lambda model="BertModel", **more: dict(model=model, kind="encoder", config={**SMALL, **more.pop("config", {})}, **more)


def old(config):
    for name in "dtype", "tie_word_embeddings", "is_decoder", "add_cross_attention", "use_cache", "bos_token_id", "eos_token_id":
        config.pop(name, None)
    config.update(OLD)


CASES = {
    "default": case(),
    # Names with the prefix, and no pooler; files in two parts.
    "masked-lm": case(saved="BertForMaskedLM", options={"add_pooling_layer": False}, shards=2),
    "old-config": case(saved="BertForPreTraining", rewrite=old, config=dict(type_vocab_size=2, hidden_act="relu2")),
    "large-eps": case(config=dict(layer_norm_eps=0.05, hidden_act="gelu_new", num_attention_heads=5), inputs=dict(length=[23, 1])),
    "activation": dict(error="unknown activation 'gelo'", config=dict(hidden_act="gelo")),
    "decoder": dict(error="decoder is not supported", config=dict(is_decoder=True)),
    "relative": dict(error="'relative_key' is not supported", config=dict(position_embedding_type="relative_key")),
}
