"""MPNet: the defaults, and each switch of its config; distances up to the last bucket."""
SMALL = dict(vocab_size=103, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=44, max_position_embeddings=40)
case = lambda **more: dict(model="MPNetModel", kind="encoder", config={**SMALL, **more.pop("config", {})}, **more)
CASES = {
    "default": case(),
    "masked-lm": case(saved="MPNetForMaskedLM", options={"add_pooling_layer": False}),
    "large-eps": case(config=dict(hidden_act="hardswish", layer_norm_eps=0.05, relative_attention_num_buckets=33), inputs=dict(length=[23, 1])),
    # More tokens than the last bucket's distance.
    "far": case(config=dict(max_position_embeddings=160, num_hidden_layers=1), inputs=dict(tokens=155)),
    "activation": dict(error="unknown activation 'gelo'", config=dict(hidden_act="gelo")),
}
