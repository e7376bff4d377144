"""ModernBERT: the defaults, a config of the hub, each switch. In float32: the library's mask of a padding's row, which sees no key, gives NaN in float64."""
SMALL = dict(vocab_size=103, hidden_size=24, num_hidden_layers=4, num_attention_heads=3, intermediate_size=20, max_position_embeddings=40, local_attention=9,
             pad_token_id=0, bos_token_id=1, cls_token_id=1, eos_token_id=2, sep_token_id=2)
case = lambda **more: dict(model="ModernBertModel", kind="encoder", dtype="float32", config={**SMALL, **more.pop("config", {})}, **more)


def old(config):
    for name in "dtype", "tie_word_embeddings", "layer_types", "rope_parameters":
        config.pop(name, None)
    config.update(torch_dtype="float32", global_attn_every_n_layers=2, global_rope_theta=1000.0, local_rope_theta=50.0, position_embedding_type="absolute")


def half_window(config):
    config.update(sliding_window=3, rope_parameters={"full_attention": {"type": "default", "rope_theta": 100.0}})


def whole(config):
    old(config)
    config.update(global_attn_every_n_layers=1, local_rope_theta=None)


kinds = dict(full="full_attention", local="sliding_attention")
CASES = {
    "default": case(),
    "hub": case(saved="ModernBertForMaskedLM", rewrite=old),
    "biases": case(config=dict(norm_bias=True, attention_bias=True, mlp_bias=True, norm_eps=0.05, hidden_activation="silu"), inputs=dict(length=[23, 1])),
    # Layers in any order, with bases of their own.
    "layers": case(config=dict(layer_types=[kinds[k] for k in ("local", "full", "full", "local")], local_attention=6, rope_parameters={
        "full_attention": {"rope_type": "default", "rope_theta": 300.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}})),
    # The half of a window by its own name; of the layers with windows nothing is said.
    "half-window": case(rewrite=half_window, config=dict(num_hidden_layers=2, global_attn_every_n_layers=2)),
    # Of layers that all see everything, the others' base says nothing.
    "whole": case(rewrite=whole, config=dict(num_hidden_layers=1)),
    "kind": dict(error="unknown layer type 'chunked_attention'", config=dict(layer_types=["full_attention"] * 3 + ["chunked_attention"])),
    "rope": dict(error="rope type 'linear' of ModernBERT is not supported", config=dict(rope_parameters={
        "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 300.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}})),
    "scaling": dict(error="rope_scaling of ModernBERT is not supported", config=dict(rope_scaling={"type": "linear", "factor": 2.0})),
}
