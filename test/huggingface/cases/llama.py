"""Llama: the defaults, each switch of its config, each type of rotary positions in the old and the new form."""
SMALL = dict(vocab_size=101, hidden_size=48, intermediate_size=68, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=40,
             bos_token_id=0, eos_token_id=0)
case = lambda **more: dict(model="LlamaForCausalLM", config={**SMALL, **more.pop("config", {})}, **more)
rope = lambda **parameters: case(config=dict(rope_parameters=dict(parameters)))


def old(**changes):
    """As configs before transformers 5 have it: `rope_theta` and `rope_scaling`, no `head_dim`."""
    def rewrite(config):
        for name in ("rope_parameters", "dtype", "head_dim", "pretraining_tp"):
            config.pop(name, None)
        config.update({"rope_theta": 10000.0, "rope_scaling": None, "torch_dtype": "float32", **changes})
    return rewrite


LONG = dict(short_factor=[1.0, 1.1, 1.3, 1.6], long_factor=[1.5, 2.0, 3.1, 4.5])
CASES = {
    "default": case(),
    "bare-old": case(saved="LlamaModel", config=dict(tie_word_embeddings=True, num_key_value_heads=None), rewrite=old(rope_theta=500.0)),
    "switches": case(config=dict(attention_bias=True, mlp_bias=True, head_dim=10, hidden_act="gelu", rms_norm_eps=0.05), shards=3),
    # Old checkpoints hold their frequencies, which nothing reads.
    "linear": case(rewrite=old(rope_scaling=dict(type="linear", factor=2.5)), tensors={"model.layers.0.self_attn.rotary_emb.inv_freq": [4]}),
    "dynamic": case(config=dict(max_position_embeddings=10), rewrite=old(rope_scaling=dict(type="dynamic", factor=3.0), rope_theta=50.0), stepwise=True),
    "yarn": rope(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=10),
    "yarn-scales": rope(rope_type="yarn", rope_theta=1000.0, factor=4.0, original_max_position_embeddings=10, mscale=0.7, mscale_all_dim=1.2, beta_fast=3,
                        beta_slow=0.5, truncate=False),
    "llama3": rope(rope_type="llama3", rope_theta=30.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=12),
    "longrope": dict(rope(rope_type="longrope", rope_theta=100.0, factor=3.0, original_max_position_embeddings=9, **LONG), stepwise=True),
    # As without: the ramp is not rounded to whole pairs.
    "yarn-null": rope(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=10, truncate=None, beta_fast=None),
    "activation": case(config=dict(hidden_act="gelu_11"), error="unknown activation 'gelu_11'"),
    "rope": case(config=dict(rope_parameters=dict(rope_type="spiral", rope_theta=100.0)), error="unknown rope type 'spiral'"),
    "no-factor": rope(rope_type="dynamic", rope_theta=100.0) | dict(error="rope type 'dynamic' needs a number 'factor'"),
    "no-lists": rope(rope_type="longrope", factor=2.0, short_factor=[1.0] * 4) | dict(error="needs lists of numbers 'short_factor' and 'long_factor'"),
    "short-lists": rope(rope_type="longrope", factor=2.0, short_factor=[1.0] * 4, long_factor=[2.0] * 3) | dict(
        error="rope type 'longrope' needs 4 numbers in 'short_factor' and in 'long_factor', found 4 and 3"),
    "no-bounds": rope(rope_type="llama3", factor=2.0, low_freq_factor=1.0) | dict(error="needs numbers 'low_freq_factor' and 'high_freq_factor'"),
    "groups": case(config=dict(num_key_value_heads=4), error="4 heads of keys do not divide the 6 heads of queries"),
}
