"""GPT-NeoX: the defaults (an odd number of rotary dims is rounded up), sublayers one after the other, rotary parameters in the old and the new form."""
SMALL = dict(vocab_size=101, hidden_size=60, num_hidden_layers=3, num_attention_heads=3, intermediate_size=84, max_position_embeddings=40)
case = lambda **more: dict(model="GPTNeoXForCausalLM", config={**SMALL, **more.pop("config", {})}, **more)


def old(**changes):
    """As pythia's configs on the hub: rotary_pct and rotary_emb_base."""
    def rewrite(config):
        for name in ("rope_parameters", "attention_bias", "dtype"):
            config.pop(name, None)
        config.update({"rotary_pct": 0.25, "rotary_emb_base": 10000, "torch_dtype": "float16", **changes})
    return rewrite


CASES = {
    "default": case(),
    "old": case(rewrite=old(rotary_pct=0.6, rotary_emb_base=300)),
    "old-scaled": case(rewrite=old(rope_scaling=dict(type="linear", factor=2.5)), config=dict(hidden_size=48)),
    "switches": case(config=dict(use_parallel_residual=False, attention_bias=False, tie_word_embeddings=True, hidden_act="gelu_new", layer_norm_eps=0.05,
                                 rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=1.0))),
    # Embeddings and head are one tensor, which is the head's; what both have is not.
    "one-table": case(config=dict(num_hidden_layers=1, tie_word_embeddings=True), tensors={"gpt_neox.embed_in.weight": None, "embed_out.weight": [101, 60]}),
    "two-tables": case(config=dict(num_hidden_layers=1, tie_word_embeddings=True), tensors={"embed_out.weight": [101, 60]}),
    "head-dim": case(rewrite=old(head_dim=36)),
    "yarn": case(config=dict(rope_parameters=dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=10, partial_rotary_factor=0.5))),
    # The library has a ramp of 2 numbers for 3 pairs.
    "odd-yarn": case(config=dict(rope_parameters=dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=10)),
                     error="rope type 'yarn' of an odd number of dims (5) is not supported"),
    "activation": case(config=dict(hidden_act="gelu_11"), error="unknown activation 'gelu_11'"),
}
