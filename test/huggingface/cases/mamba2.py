"""Mamba-2: groups of heads, biases, the limits of a step, names without the prefix, calls that end within the convolution's taps."""
SMALL = dict(vocab_size=67, hidden_size=48, num_hidden_layers=3, num_heads=6, head_dim=16, state_size=10, n_groups=2)
# Decays of some tenths a step.
RULES = [(r"A_log$", 0.0, 1.0), (r"dt_bias$", -1.5, 0.7), (r"mixer\.D$", 1.0, 0.5)]
case = lambda **more: dict(model="Mamba2ForCausalLM", config={**SMALL, **more.pop("config", {})}, rules=RULES, **more)


def old(config):
    """As mamba2-130m's on the hub, whose JSON holds Infinity."""
    for name in ("dtype", "use_conv_bias", "use_bias", "tie_word_embeddings"):
        config.pop(name, None)
    config["time_step_limit"] = [0.0, float("inf")]


CASES = {
    # More tokens than one chunk of the compiled recurrence. At one of them transformers is off by 5e-6 itself when it computes in float32.
    "default": case(inputs=dict(tokens=75), tolerance=5e-5),
    "bare-old": case(saved="Mamba2Model", rewrite=lambda c: c.update(tie_word_embeddings=True), config=dict(n_groups=1, tie_word_embeddings=True)),
    "old": case(rewrite=old),
    "switches": case(config=dict(use_bias=True, use_conv_bias=False, n_groups=3, conv_kernel=3, hidden_act="gelu", layer_norm_epsilon=0.05,
                                 time_step_limit=(0.15, 0.5), expand=1, head_dim=8)),
    "minimum": case(config=dict(time_step_limit=(0.2, float("inf")))),
    "activation": case(config=dict(hidden_act="gelu_11"), error="unknown activation 'gelu_11'"),
}
