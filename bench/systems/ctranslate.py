"""CTranslate2: whole encoders, in f32."""
import os
import tempfile

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec


class System:
    name = "ctranslate2"

    def __init__(self, threads):
        self.threads = threads

    def version(self):
        return ctranslate2.__version__

    def variants(self, case, inputs, weights):
        return {"ctranslate2": lambda: self.encoder(case["params"], inputs, weights)} if case["kind"] == "encoder" else {}

    def encoder(self, p, inputs, weights):
        w = {name.removeprefix("bert."): a for name, a in weights.items()}
        spec = transformer_spec.TransformerEncoderModelSpec(
            transformer_spec.TransformerEncoderSpec(p["L"], p["H"], pre_norm=False, activation=common_spec.Activation.GELU,
                                                    layernorm_embedding=True, num_source_embeddings=2,
                                                    embeddings_merge=common_spec.EmbeddingsMerge.ADD))
        spec.encoder.scale_embeddings = False
        spec.encoder.embeddings[0].weight = w["embeddings.word_embeddings.weight"]
        spec.encoder.embeddings[1].weight = w["embeddings.token_type_embeddings.weight"]
        spec.encoder.position_encodings.encodings = w["embeddings.position_embeddings.weight"]

        def norm(to, at):
            to.gamma, to.beta = w[at + ".weight"], w[at + ".bias"]

        def dense(to, *names):
            to.weight = np.concatenate([w[name + ".weight"] for name in names])
            to.bias = np.concatenate([w[name + ".bias"] for name in names])

        norm(spec.encoder.layernorm_embedding, "embeddings.LayerNorm")
        for k, layer in enumerate(spec.encoder.layer):
            at = f"encoder.layer.{k}."
            dense(layer.self_attention.linear[0], *(at + f"attention.self.{x}" for x in ("query", "key", "value")))
            dense(layer.self_attention.linear[1], at + "attention.output.dense")
            norm(layer.self_attention.layer_norm, at + "attention.output.LayerNorm")
            dense(layer.ffn.linear_0, at + "intermediate.dense")
            dense(layer.ffn.linear_1, at + "output.dense")
            norm(layer.ffn.layer_norm, at + "output.LayerNorm")
        spec.register_vocabulary([f"t{k}" for k in range(p["config"]["vocab_size"])])
        spec.config.unk_token, spec.config.layer_norm_epsilon = "t0", p["eps"]
        with tempfile.TemporaryDirectory() as folder:
            spec.validate()
            spec.save(folder)
            encoder = ctranslate2.Encoder(folder, device="cpu", compute_type="float32", intra_threads=self.threads,
                                          inter_threads=1)
        b, n = inputs["ids"].shape
        ids = ctranslate2.StorageView.from_array(np.ascontiguousarray(inputs["ids"]))
        lengths = ctranslate2.StorageView.from_array(np.full(b, n, np.int32))
        kept = {}

        def run():
            kept["y"] = encoder.forward_batch(ids, lengths)

        return run, lambda: np.array(kept["y"].last_hidden_state)
