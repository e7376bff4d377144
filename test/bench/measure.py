# RUN: %python %s %heed_src %t
"""bench/measure.py with systems that are made up: wrong outputs, failures, peers on fewer threads, who is raced. No clock decides."""
import pathlib
import sys
import types

import numpy as np

from runs import expect, finish

folder = pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "bench"))
import cases  # of bench/
import measure
import quiet

quiet.stolen = lambda cores: 0.0
RIGHT = np.linspace(-1, 1, 50)


class Made:
    """A worker: variant -> (seconds, error of its output); `breaks` after so many turns."""

    def __init__(self, name, ways, threads=2, module="", breaks=10**9, absent=()):
        self.hello, self.module, self.cores = {"name": name}, module or name, list(range(threads))
        self.ways, self.breaks, self.ready, self.absent, self.asked = ways, breaks, set(), dict(absent), []

    def ask(self, do, **request):
        self.asked.append(do)
        return getattr(self, do)(**request)

    def prepare(self, case, folder, only):
        made = {}
        for variant, (seconds, error) in self.ways.items():
            if only is None or variant in only:
                path = str(pathlib.Path(folder) / f"{self.hello['name']}.{variant}.npy")
                np.save(path, (RIGHT + error).astype(np.float32))
                made[variant] = {"prepare_seconds": 1.0, "output": path}
        self.ready = set(made)
        return {"variants": made, "absent": self.absent}

    def time(self, variant, seconds, least, cpu):
        expect(variant in self.ready, f"{variant} is timed and was released")
        self.breaks -= 1
        if self.breaks < 0:
            return {"error": "it broke"}
        return {"seconds": [self.ways[variant][0]] * least, "switches": 0, "spent": 0.005}

    def release(self, keep=()):
        self.ready &= set(keep)
        return {}


machine = types.SimpleNamespace(measure=lambda memory: ((100.0, 10.0 * memory, 10.0 * memory), 0, 0.001))
options = types.SimpleNamespace(clock="wall", each=0.005, seconds=1e9, within=0.015, blocks=60, moved=0.03)
case = next(c for c in cases.cases() if c.name.startswith("product 256"))


def measured(heed, *peers, fewer=None, known=None):
    return measure.measure(case, {}, str(folder), (RIGHT, 1e-5), [heed, *peers], fewer or {}, machine, [0, 1], known or {}, options)


def heed(error=0.0, **more):
    return Made("heed", {"heed": (0.010, error)}, **more)


def rows(result):
    return {r["variant"]: r for r in result["systems"]}


fast, slow = Made("fast", {"one": (0.012, 0), "two": (0.011, 0), "wrong": (0.001, 1e-3), "nan": (0.001, np.nan)}), Made("slow", {"slow": (0.1, 0)})
result = measured(heed(), fast, slow, Made("loose", {"loose": (0.0115, 5e-5)}))
found = rows(result)
expect(list(found) == ["heed", "fast two", "slow", "loose"] and "failed" not in result, f"{list(found)} {result.get('failed')}")
expect([len(r["blocks"]) for r in found.values()] == [0, 10, 0, 10], f"{[len(r['blocks']) for r in found.values()]}")
expect(found["slow"]["trial"] == [0.1] and len(found["loose"]["trial"]) == 2 and 4e-5 < found["loose"]["difference"] < 6e-5, f"{found['slow']}")
expect("differs from float64 by 1.0e-03" in result["absent"]["fast wrong"] and "not finite" in result["absent"]["fast nan"], f"{result['absent']}")
expect(not fast.ready and fast.asked[-1] == "release", "what was prepared stays")

# Heed's own output: ten times less may be wrong, and then nothing is said of its speed.
for error, says in ((5e-5, "differs from float64"), (np.nan, "not finite")):
    result = measured(heed(error), fast)
    expect(says in result["failed"] and not result["systems"], f"{result}")
expect("it broke" in measured(heed(breaks=7), fast)["failed"], "Heed breaks in a block")
expect("it broke" in measured(heed(breaks=0), fast)["failed"], "Heed breaks in its trial")

# Nobody else, or nobody who lasts: Heed alone, with its share.
for peers in ((), (Made("wrong", {"wrong": (0.001, 1)}),), (Made("p", {"p": (0.011, 0)}, breaks=4),)):
    found = rows(measured(heed(), *peers))["heed"]["blocks"]
    expect(len(found) == 10 and "B" not in found[0] and len(found[0]["limits"]) == 3, f"{len(found)}")
# One peer breaks, the others go on.
result = measured(heed(), Made("p", {"p": (0.011, 0)}, breaks=4), Made("q", {"q": (0.011, 0)}))
expect(len(rows(result)["q"]["blocks"]) == 10, f"{result}")

# A peer on fewer threads: tried where one thread was not clearly slower, and the faster of both stays.
for alone, seconds, says in ((None, 0.010, "p, 1 of 2 threads"), (0.0115, 0.010, "p, 1 of 2 threads"), (None, 0.012, "p"), (0.02, 0.010, "p")):
    one = Made("p", {"p": (seconds, 0)}, threads=1)
    found = rows(measured(heed(), Made("p", {"p": (0.011, 0)}), fewer={"p": [one]}, known={"p": alone} if alone else {}))
    expect(list(found) == ["heed", says], f"{alone} {seconds}: {list(found)}")
    expect(("prepare" in one.asked) == (alone != 0.02), f"{alone}: {one.asked}")

# A prototype is raced however slow it is, and none of the peers' times is measured by it.
found = rows(measured(heed(), Made("prototype", {"safe": (0.001, 0)}), Made("p", {"p": (0.05, 0)})))
expect([(r["group"], len(r["blocks"])) for r in found.values()] == [("peer", 0), ("prototype", 10), ("peer", 10)], f"{found.keys()}")
result = measured(heed(absent={"heed": "no such entry"}), fast)
expect(result["absent"]["heed"] == "no such entry", f"{result['absent']}")
finish()
