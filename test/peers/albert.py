# RUN: %peers %s heedc %heed_src/models/depth/check
"""transformers' AlbertModel with two groups of layers: the model reads its weights by their names as they are."""
import json
import pathlib
import sys

import numpy as np
import torch
from peers import array, compare, drawn
from transformers import AlbertConfig, AlbertModel

folder = pathlib.Path(sys.argv.pop())
peer = drawn(AlbertModel(AlbertConfig(**json.loads((folder / "config.json").read_text()), hidden_act="gelu_new")))
weights = {name: array(p) for name, p in peer.named_parameters()}


def run(ids, kind, length):
    real = (torch.arange(ids.shape[1])[None, :] < length[:, None]).double()
    found = peer(input_ids=ids, token_type_ids=kind, attention_mask=real)
    return {"hidden": found.last_hidden_state, "pooled": found.pooler_output}


rng = np.random.default_rng(19)
cases = [dict(ids=rng.integers(0, 11, (b, n)).astype(np.int32), kind=rng.integers(0, 2, (b, n)).astype(np.int32), length=np.array(length, np.int32))
         for b, n, length in ((2, 17, [17, 5]), (1, 1, [1]), (1, 140, [130]))]
compare("depth/albert", weights, cases, run, options=["--model-dir", str(folder)])
