"""OPT: norms before and behind, the embedding of another width, without biases or the norms' weights."""
SMALL = dict(vocab_size=101, hidden_size=48, num_hidden_layers=3, num_attention_heads=3, ffn_dim=80, max_position_embeddings=40)
case = lambda **more: dict(model="OPTForCausalLM", config={**SMALL, **more.pop("config", {})}, **more)


def old(config):
    """Without what has its default, and with what older files have, too."""
    for name in ("word_embed_proj_dim", "enable_bias", "layer_norm_elementwise_affine", "_remove_final_layer_norm", "tie_word_embeddings", "dtype"):
        config.pop(name, None)
    config["torch_dtype"] = "float16"


CASES = {
    "default": case(),
    "bare-old": case(saved="OPTModel", rewrite=old),
    "norms-behind": case(config=dict(do_layer_norm_before=False, word_embed_proj_dim=32)),
    "plain": case(config=dict(enable_bias=False, layer_norm_elementwise_affine=False, activation_function="gelu", tie_word_embeddings=False)),
    "no-final-norm": case(config=dict(_remove_final_layer_norm=True)),
    "activation": case(config=dict(activation_function="snake"), error="unknown activation 'snake'"),
}
