"""XLM-RoBERTa: the defaults, and each switch of its config."""
SMALL = dict(vocab_size=103, hidden_size=30, num_hidden_layers=3, num_attention_heads=3, intermediate_size=52, max_position_embeddings=26, type_vocab_size=1)
case = lambda model="XLMRobertaModel", **more: dict(model=model, kind="encoder", config={**SMALL, **more.pop("config", {})}, **more)
CASES = {
    "default": case(),
    # Names with the prefix, and no pooler.
    "masked-lm": case(saved="XLMRobertaForMaskedLM", options={"add_pooling_layer": False}),
    "relu6": case(config=dict(hidden_act="relu6", type_vocab_size=2, layer_norm_eps=0.05)),
    # Positions begin where the padding's id says.
    "padding": case(config=dict(pad_token_id=4, max_position_embeddings=31), inputs=dict(length=[23, 1])),
    "decoder": dict(error="decoder is not supported", config=dict(is_decoder=True)),
    "relative": dict(error="'relative_key' is not supported", config=dict(position_embedding_type="relative_key")),
}
