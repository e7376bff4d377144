"""A system that generates, in a process of its own: answers lines as worker.py does, or (`once`) makes tokens and ends.

A system's module gives `ways(case)`, `load(case, way)`, `unload(model)` and `open(model, case, way, ids)`: an object whose `prefill()` runs the prompts
from the start, `step()` the tokens chosen last, `back()` returns to the prompts' end, and `chosen()` gives the last tokens. One that cannot be
stopped between tokens has `steps()`, seconds of each, and `greedy(count)`, tokens, instead.
"""
import json
import sys
import time

import numpy as np

import worker


class Worker(worker.Worker):

    def __init__(self, module, threads):
        super().__init__("generate_" + module, threads)
        self.model, self.loaded, self.generation = None, None, None

    def ways(self, case):
        return {"ways": self.system.ways(case)}

    def open(self, case, way, ids):
        """Loads the model, if it is another than before, and makes the first `case["check"]` tokens."""
        self.close()
        start = time.perf_counter()
        if self.loaded != [case["folder"], way]:
            self.release()
            self.model, self.loaded = self.system.load(case, way), [case["folder"], way]
        loaded = time.perf_counter()
        self.generation, self.most = self.system.open(self.model, case, way, np.load(ids)), case["new"]
        made = self.greedy(case["check"])
        self.ready = {"prefill": self.prefill, "step": self.step}
        return {"tokens": made.tolist(), "load_seconds": loaded - start, "prepare_seconds": time.perf_counter() - loaded}

    def greedy(self, count):
        if hasattr(self.generation, "greedy"):
            return self.generation.greedy(count)
        self.prefill()
        made = [self.generation.chosen()]
        for _ in range(count - 1):
            self.step()
            made.append(self.generation.chosen())
        return np.stack(made, 1)

    def prefill(self):
        self.generation.prefill()
        self.made = 1

    def step(self):
        if self.made == self.most:
            self.generation.back()
            self.made = 1
        self.generation.step()
        self.made += 1

    def gap(self, tokens):
        found = self.generation.gap(np.array(tokens, np.int32))
        self.prefill()
        return {"gap": found}

    def time(self, variant, seconds, least, cpu):
        if variant == "prefill" or not hasattr(self.generation, "steps"):
            return super().time(variant, seconds, least, cpu)
        before, start = worker.switches(), time.perf_counter()
        found = self.generation.steps()
        return {"seconds": found, "switches": worker.switches() - before, "spent": time.perf_counter() - start}

    def close(self):
        if self.generation is not None:
            self.generation.close()
        self.generation, self.ready = None, {}

    def release(self, keep=()):
        self.close()
        if self.model is not None:
            self.system.unload(self.model)
        self.model = self.loaded = None
        return super().release()


def once(module, threads, told, ids):
    """All of it as a program of this system would: load, make the tokens, end."""
    with open(told, encoding="utf-8") as file:
        case = json.load(file)
    system = Worker(module, threads)
    system.open({**case, "check": case["new"]}, system.system.ways(case)[0], ids)
    system.release()


if __name__ == "__main__":
    if sys.argv[1] == "once":
        once(sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
    else:
        worker.main(Worker)
