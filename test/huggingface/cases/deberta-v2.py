"""DeBERTa v2 and v3: the defaults, the form of the hub's checkpoints, each switch of the config."""
SMALL = dict(vocab_size=103, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=44, max_position_embeddings=40)
# Distances of buckets: 8 in each direction, the last 4 logarithmic up to 20.
RELATIVE = dict(relative_attention=True, position_buckets=8, max_relative_positions=20, pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm",
                share_att_key=True, position_biased_input=False)
case = lambda relative={}, **more: dict(model="DebertaV2Model", kind="encoder", config={**SMALL, **relative, **more.pop("config", {})}, **more)
v3 = lambda config={}, **more: case(RELATIVE, config=config, **more)


def old(config):
    for name in "dtype", "tie_word_embeddings", "bos_token_id", "eos_token_id":
        config.pop(name, None)
    config.update(pos_att_type="p2c|c2p", max_relative_positions=-1, torch_dtype="float32")


CASES = {
    "default": v3(),
    # Nothing but content, positions and token types in the input.
    "absolute": case(config=dict(type_vocab_size=2, layer_norm_eps=0.05, hidden_act="laplace")),
    "hub": v3(dict(max_position_embeddings=46), saved="DebertaV2ForMaskedLM", rewrite=old),
    "own-projections": v3(dict(share_att_key=False, norm_rel_ebd="none", position_biased_input=True, layer_norm_eps=0.05)),
    "c2p": v3(dict(pos_att_type=["c2p"], share_att_key=False, hidden_act="leaky_relu"), inputs=dict(length=[23, 1])),
    "p2c": v3(dict(pos_att_type=["p2c"], position_buckets=-1, max_relative_positions=-1, num_attention_heads=2)),
    # xlarge's convolution beside the first layer; embeddings of their own width.
    "convolution": v3(dict(conv_kernel_size=3, conv_act="gelu", embedding_size=16)),
    "groups": v3(dict(attention_head_size=8, conv_kernel_size=5, conv_groups=4, max_relative_positions=12, position_buckets=6, num_hidden_layers=1)),
    "heads": dict(error="attention_head_size 16 is not hidden_size / num_attention_heads", config=dict(attention_head_size=16)),
    "string": dict(error="unknown pos_att_type 'c2p|p2p'", config=dict(pos_att_type="c2p|p2p")),
    "norm": dict(error="unknown norm_rel_ebd 'batch_norm'", config=dict(norm_rel_ebd="batch_norm")),
}
