# RUN: %python %s %heed_src heedc
"""Each model of the zoo has the summary that docs/zoo.json, and so docs/zoo.md, says: kernels, attentions, what is stored, operations. One attention is one
kernel that stores no scores, and numbers for pairs of positions are stored nowhere, but where this file says why."""
import concurrent.futures
import importlib.util
import os
import pathlib
import shutil
import sys

from runs import expect, finish

# Attentions that are no kernel of their own.
UNFUSED = {
    "adabert": "softmaxes over three and two parameters that mix the nodes of a cell",
    "hardcoded-gaussian": "the weights depend on sizes and widths alone: one matrix for all sentences",
    "joint-representation": "the last is a softmax for each channel, of scores that a product with a weight made",
    "lambda-networks": "keys are normalised by themselves, and meet values before any query: no scores of pairs",
    "synthesizer-random": "the weights are parameters: one matrix for all sentences, made when the model is opened",
}
# What is stored for pairs of positions.
PAIRS = {
    "attention-map-output": "the weights are a result, which its own head reads again",
    "camtl": "the weights of both sentences are mixed by blocks that data chooses",
    "etc-global-local": "labels, an input, whose range is checked",
    "flat-lattice": "four distances through a product and a ReLU give the relative positions: N x N x D by the equations",
    "fnet": "the cosines and sines of the transform, a matrix that is made once",
    "graphormer": "edges along a path, an input, and the bias that all layers share",
    "hardcoded-gaussian": "see above",
    "head-pruning": "no pairs: S is the number of heads",
    "joint-representation": "the model is a grid of source and target",
    "moe-dense": "no pairs: M is the width of an expert",
    "predictive-attention": "scores that the next layer reads",
    "prior-lower-layer": "scores that the next layer reads",
    "realformer": "scores that the next layer reads",
    "short-long-memory": "no pairs: S is the number of segments",
    "synthesizer-random": "see above",
    "tupe": "scores of positions with positions, which all layers and sentences share",
}

root, heedc = pathlib.Path(sys.argv[1]), shutil.which(sys.argv[2])
spec = importlib.util.spec_from_file_location("page", root / "tools/zoo-page.py")
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)
written, models = tool.read_data(root), tool.models(root)
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    measured = dict(zip(models, pool.map(lambda path: tool.measure(root, heedc, path, kernels=False), models.values())))
expect(len(measured) > 200, f"{len(measured)} models")
for key, found in measured.items():
    if not found:
        expect(False, f"{key} does not compile")
        continue
    stored = {**written.get(key, {}), "seconds": None, "elapsed": None}
    differ = [what for what in found if found[what] != stored.get(what)]
    expect(not differ, f"{key}: docs/zoo.json has another {', '.join(differ)}: {[found[what] for what in differ]}; `python tools/zoo-page.py --count build/bin/heedc {key}` writes it")
    fused = found["streaming"] + found["rowBlock"] == found["attentions"]
    expect(fused != (key in UNFUSED), f"{key}: {found['attentions']} attentions, {found['streaming'] + found['rowBlock']} of them one kernel: {found['why']}")
    expect(bool(tool.pairs(found)) == (key in PAIRS), f"{key}: stores {tool.pairs(found)}")
expect(len(UNFUSED) <= 10, "more than ten systems whose attentions are not one kernel")
finish()
