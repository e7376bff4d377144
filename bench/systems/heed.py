"""Heed: the case's shared library through the Python package."""
import heed
from heed.arrays import aligned


class System:
    name = "heed"

    def __init__(self, threads):
        self.threads = threads

    def version(self):
        return "this checkout"

    def variants(self, case, inputs, weights):
        """One way only: what heedc made of the case."""
        return {"heed": lambda: self.open(case, inputs)}

    def open(self, case, inputs):
        # Workers watch between runs, as those of the other systems do.
        model = heed.load(case["library"], case["prefix"], weights=case["weights_file"] or None, threads=self.threads, watch=True)
        arrays = {}
        for tensor in model.inputs:
            given = inputs[tensor.name]
            arrays[tensor.argument] = aligned(given.shape, given.dtype)
            arrays[tensor.argument][...] = given
        call = model.bind(**arrays)
        run = call.alone()
        run.close = model.close
        run.profile = lambda: [[k.name, k.seconds, k.flops, k.bytes] for k in model.profile(runs=5, **arrays)]
        results = call.results
        return run, lambda: results[0] if isinstance(results, tuple) and not case["params"].get("all") else results
