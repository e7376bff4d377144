"""Heed: generation with the compiled checkpoint through the Python package, whose steps are the runtime's own (heed_generation_step)."""
import numpy as np

import heed


class Generation:

    def __init__(self, model, case, ids):
        self.model, self.ids, self.new = model, ids, case["new"]
        self.state = model.state(B=len(ids), C=ids.shape[1] + self.new)

    def begin(self, ids, length):
        self.state["len"] = np.full(len(ids), length, np.int32)
        self.generation = self.model.generation(ids, max_new=self.new, state=self.state, entry="forward")

    def prefill(self):
        self.begin(self.ids, 0)
        self.step()
        self.first = self.tokens

    def back(self):
        """To the prompt's end, with its first token chosen."""
        self.generation.close()
        self.begin(self.first[:, None], self.ids.shape[1])

    def step(self):
        self.tokens = next(self.generation)

    def chosen(self):
        return self.tokens

    def gap(self, tokens):
        """Fed another system's tokens, [B, steps]: how far its choice lies at most below the largest logit, of the largest one's size."""
        forward, found = self.model["forward"], 0.0
        self.state["len"] = np.zeros(len(self.ids), np.int32)
        given = self.ids
        for step in range(tokens.shape[1]):
            logits = forward(given, np.full(len(given), given.shape[1], np.int32), state=self.state)
            if not np.isfinite(logits).all():
                return float("inf")
            theirs = np.take_along_axis(logits, tokens[:, step:step + 1], 1)[:, 0]
            found = max(found, float(((logits.max(1) - theirs) / abs(logits).max(1)).max()))
            given = np.ascontiguousarray(tokens[:, step:step + 1])
        return found

    def close(self):
        self.generation.close()


class System:
    name = "heed"

    def __init__(self, threads):
        self.threads = threads

    def version(self):
        return "this checkout"

    def ways(self, case):
        return ["heed"]

    def load(self, case, way):
        return heed.load(case["library"], case["prefix"], weights=case["folder"], threads=self.threads, watch=True)

    def unload(self, model):
        model.close()

    def open(self, model, case, way, ids):
        return Generation(model, case, ids)
