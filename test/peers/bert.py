# RUN: %peers %s heedc %heed_src/models/whole-model/check
"""transformers' BertModel: the model reads its weights by their names as they are. Rows of padding are compared, too. The pooled embedding is that of
sentence encoders (mean, then unit length), computed here from BERT's rows."""
import json
import pathlib
import sys

import numpy as np
import torch
from peers import array, compare, drawn
from transformers import BertConfig, BertModel

folder = pathlib.Path(sys.argv.pop())
peer = drawn(BertModel(BertConfig(**json.loads((folder / "config.json").read_text()), hidden_act="gelu"), add_pooling_layer=False))
weights = {name: array(p) for name, p in peer.named_parameters()}


def run(ids, length):
    real = (torch.arange(ids.shape[1])[None, :] < length[:, None]).double()
    x = peer(input_ids=ids, attention_mask=real).last_hidden_state
    pooled = (x * real[..., None]).sum(1) / length[:, None]
    return {"hidden": x, "embedding": pooled / pooled.norm(dim=-1, keepdim=True)}


rng = np.random.default_rng(18)
cases = [dict(ids=rng.integers(0, 11, (b, n)).astype(np.int32), length=np.array(length, np.int32)) for b, n, length in ((2, 17, [17, 5]), (1, 1, [1]), (1, 40, [33]))]
compare("whole-model/bert", weights, cases, run, options=["--model-dir", str(folder)])
