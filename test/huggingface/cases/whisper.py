"""Whisper: the defaults and each switch of the config."""
import torch

import weights

SMALL = dict(vocab_size=101, num_mel_bins=10, d_model=36, encoder_layers=2, encoder_attention_heads=3, encoder_ffn_dim=50, decoder_layers=3,
             decoder_attention_heads=2, decoder_ffn_dim=44, max_source_positions=21, max_target_positions=30, pad_token_id=0, bos_token_id=0, eos_token_id=1,
             decoder_start_token_id=2)


def run(model, case, seed):
    c = model.config
    features = weights.uniform(seed + "/features", (2, c.num_mel_bins, 2 * c.max_source_positions))
    ids = weights.integers(seed + "/ids", 3, c.vocab_size, (2, 23))
    found = model(input_features=torch.tensor(features).to(model.dtype), decoder_input_ids=torch.tensor(ids).long())
    return {"encode": ({"features": features}, {"hidden": found.encoder_last_hidden_state.numpy()}), "scores": ({"ids": ids}, {"logits": found.logits.numpy()})}


def case(**more):
    more = {"model": "WhisperForConditionalGeneration", **more}
    return dict(kind="encoder-decoder", config={**SMALL, **more.pop("config", {})}, run=run, **more)


def bare(config):
    """Nothing that has the library's default."""
    kept = {key: config[key] for key in (*SMALL, "model_type")}
    config.clear()
    config.update(kept)


def general(config):
    """The names that all models share are over its own, as in transformers."""
    config.update(hidden_size=config.pop("d_model"), num_attention_heads=config.pop("encoder_attention_heads"), num_hidden_layers=config["encoder_layers"])
    config.update(encoder_layers=1)


CASES = {
    "default": case(),
    # Old files hold the head of its own name, too; that one counts.
    "bare": case(rewrite=bare, config=dict(encoder_layers=1, decoder_layers=2), tensors={"proj_out.weight": [101, 36]}, shards=2),
    "base-model": case(saved="WhisperModel", config=dict(scale_embedding=True, activation_function="relu", encoder_layers=1, decoder_layers=1)),
    "untied": case(config=dict(tie_word_embeddings=False, encoder_layers=1, decoder_layers=1)),
    "one-table": case(config=dict(encoder_layers=1, decoder_layers=1), tensors={"model.decoder.embed_tokens.weight": None, "proj_out.weight": [101, 36]}),
    "no-head": dict(error="proj_out.weight", config=dict(tie_word_embeddings=False)),
    "general-names": case(rewrite=general, config=dict(decoder_layers=1)),
    "key-heads": case(rewrite=lambda config: config.update(num_key_value_heads=2), config=dict(encoder_layers=1, decoder_layers=1)),
    "activation": dict(error="unknown activation 'gelo'", config=dict(activation_function="gelo")),
}
