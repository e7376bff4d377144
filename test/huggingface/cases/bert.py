"""BERT: the defaults, and each switch of its config."""
SMALL = dict(vocab_size=101, hidden_size=30, num_hidden_layers=3, num_attention_heads=3, intermediate_size=52, max_position_embeddings=40, type_vocab_size=3)
case = lambda model="BertModel", **more: dict(model=model, kind="encoder", config={**SMALL, **more.pop("config", {})}, **more)
CASES = {
    "default": case(),
    # Names with the prefix, and no pooler.
    "masked-lm": case(saved="BertForMaskedLM", options={"add_pooling_layer": False}, rewrite=lambda c: c.update(pooler=False)),
}
