"""Found models as files: the text, sizes and seed of the inputs, the oracle in NumPy. Replayed by corpus.test."""
import json
import pathlib

from heed_text import heed_text
from numpy_text import expr, numpy_text


def write(path, model, tuples, seed, found):
    """One file; `found`: a line that says what was wrong."""
    data = {"sizes": tuples, "seed": seed, "results": model.results,
            "inputs": [[x.name, x.type, [expr(n) for n in x.shape], x.recipe, x.param, x.held] for x in model.inputs]}
    text = f"# {found}\n#: {json.dumps(data)}\n" + heed_text(model) + "".join("#| " + line + "\n" for line in numpy_text(model).splitlines())
    pathlib.Path(path).write_text(text)


class Stored:
    """A model of a file: what the oracles need of one."""

    def __init__(self, path):
        lines = pathlib.Path(path).read_text().splitlines()
        data = json.loads(next(x for x in lines if x.startswith("#: "))[3:])
        self.tuples, self.seed, self.results = data["sizes"], data["seed"], data["results"]
        self.oracle = "\n".join(x[3:] for x in lines if x.startswith("#| ")) + "\n"
        self.source = "\n".join(x for x in lines if not x.startswith("#"))
        self.inputs = [StoredInput(*x) for x in data["inputs"]]


class StoredInput:
    def __init__(self, name, kind, shape, recipe, param=None, held=None):
        self.name, self.type, self.recipe, self.param, self.held = name, kind, tuple(recipe), param, held
        self.shape = [Text(n) for n in shape]


class Text(str):
    """An extent as text."""
