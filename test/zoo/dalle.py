# RUN: %python %s heedc --set=W=4 --set=K=3
# RUN: %python %s heedc --set=W=12 --set=K=11
"""Ramesh et al. 2021, appendix B.1 and figure 11, one pair at a time; of each image token the tokens that it sees are listed by walking the grid.
Rows, columns, then the convolution in the last of four layers, of which the second is the one with columns."""
import math
import sys

import numpy as np
from zoo import attention_weights, check, feed_forward_weights, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform

SETTING = dict(a.removeprefix("--set=").split("=") for a in sys.argv if a.startswith("--set="))
W, K = int(SETTING["W"]), int(SETTING["K"])


def seen(n, kind):
    """Image tokens that image token n sees."""
    if kind == "row":
        return range(max(0, n - W), n + 1)
    if kind == "column":
        return range(n % W, n + 1, W)
    places = {n - up * W + side for up in range(K // 2 + 1) for side in range(-(K // 2), K // 2 + 1)}
    return [j for j in places if 0 <= j <= n]


def oracle(inputs, w):
    out = []
    for text, image in zip(inputs["text"], inputs["image"]):
        t = len(text)
        words = np.array([w["text.weight"][k] if k else w["text.padding"][n] for n, k in enumerate(text)], np.float64)
        n = np.arange(len(image))
        codes = w["image.weight"].astype(np.float64)[image] + w["image.row"][n // W] + w["image.column"][n % W]
        x = np.concatenate([words + w["text.position"], codes])
        for l, kind in enumerate(("row", "column", "row", "convolution")):
            live = np.zeros((len(x), len(x)), bool)
            live[:t, :t] = np.tri(t)
            live[t:, :t] = True
            for i in n:
                live[t + i, [t + j for j in seen(i, kind)]] = True
            m = layer_norm(x, w, f"layer.{l}.norm1")[None]
            x = x + multi_head(m, m, w, 4, f"layer.{l}.self.", live)[0]
            u = linear(layer_norm(x, w, f"layer.{l}.norm2"), w, f"layer.{l}.ffn.up")
            x = x + linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, w, f"layer.{l}.ffn.down")
        out.append(linear(layer_norm(x, w, "norm"), w, "head"))
    return {"logits": np.array(out)}


rng = np.random.default_rng(610)
cases = []
for b, t, size, d in [(2, 6, W * W, 16), (1, 3, W * W - 1, 8), (2, 5, W + 1, 8), (1, 1, 1, 8)]:
    text = rng.integers(0, 5, (b, t)).astype(np.int32)
    text[0, t // 2 :] = 0
    w = {"text.weight": uniform(rng, 5, d), "image.weight": uniform(rng, 7, d), "text.position": uniform(rng, t, d)}
    w |= {"text.padding": uniform(rng, t, d)}
    w |= {"image.row": uniform(rng, W, d), "image.column": uniform(rng, W, d)} | norm_weights(rng, "norm", d) | linear_weights(rng, "head", 12, d)
    for at in (f"layer.{l}." for l in range(4)):
        w |= attention_weights(rng, at + "self.", d) | feed_forward_weights(rng, at + "ffn.", d, 64)
        w |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    cases.append((dict(text=text, image=rng.integers(0, 7, (b, size)).astype(np.int32)), w))
check("multimodal/dalle", oracle, cases)
