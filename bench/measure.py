"""One cell: a case with one number of threads. Who can do it, who is fast enough to be raced, and the race."""
import math
import os
import statistics
import time

import numpy as np

import blocks
import reference
from machine import cache_bytes

CONTENDS = 1.25  # times the best peer's time in the trial: who is slower is not raced
FAR = 3.0  # times the fastest: who takes longer in the first turn of the trial gets no second one
FEWER = 1.1  # times a peer's time on all threads: where it takes no longer on fewer, that is tried too


class Candidate:
    """A way of one system to do the case, ready to run in its worker."""

    def __init__(self, worker, variant, made):
        name = worker.hello["name"]
        self.worker, self.variant, self.system, self.threads = worker, variant, name, len(worker.cores)
        self.label = variant if variant == name else f"{name} {variant}"
        self.group = "prototype" if worker.module == "prototype" else "peer"
        self.prepare_seconds, self.difference, self.trial = made["prepare_seconds"], None, []

    def on(self, threads):
        """Its name, with its threads where they are fewer than these."""
        return self.label if self.threads == threads else f"{self.label}, {self.threads} of {threads} threads"

    def time(self, seconds, least, options):
        """([seconds of a run], switches, seconds in all); a RuntimeError if that fails."""
        answer = self.worker.ask(do="time", variant=self.variant, seconds=seconds, least=least, cpu=options.clock == "cpu")
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["seconds"], answer["switches"], answer["spent"]

    def row(self, threads, made=()):
        return {"system": self.system, "variant": self.on(threads), "group": self.group, "threads": self.threads, "difference": self.difference,
                "prepare_seconds": self.prepare_seconds, "trial": self.trial, "blocks": list(made)}


def prepare(worker, told, folder, expected, absent, only=None):
    """Candidates whose outputs are right; `expected` is (reference, tolerance)."""
    answer = worker.ask(do="prepare", case=told, folder=folder, only=only)
    name = worker.hello["name"]
    if "error" in answer:
        absent[name] = answer["error"]
        return []
    absent.update({f"{name}: {v}" if v != name else name: why for v, why in answer["absent"].items()})
    found = []
    for variant, made in answer["variants"].items():
        output = np.load(made["output"])
        os.unlink(made["output"])
        candidate = Candidate(worker, variant, made)
        candidate.difference = reference.difference(expected[0], output)
        most = expected[1] * (1 if name == "heed" else reference.PEER)
        if candidate.difference <= most:
            found.append(candidate)
        elif math.isfinite(candidate.difference):
            absent[candidate.label] = f"its output differs from float64 by {candidate.difference:.1e}, {most:.1e} is allowed"
        else:
            absent[candidate.label] = "its output is not finite, or has another shape"
    return found


def trial(candidates, absent, options):
    """A short turn of each, and a second one of those that are not far behind; of each system the fastest way stays. The best run of a turn
    counts: another program's turn must not put a peer out."""
    for least in (2, 3):
        fastest = min((c.trial[0] for c in candidates if c.trial), default=0)
        for candidate in list(candidates):
            if candidate.trial and candidate.trial[0] > FAR * fastest:
                continue
            try:
                candidate.trial.append(min(candidate.time(options.each, least, options)[0]))
            except RuntimeError as error:
                absent[candidate.label] = str(error)
                candidates.remove(candidate)
    best = {}
    for candidate in candidates:
        rival = best.get(candidate.worker)
        if rival is None or min(candidate.trial) < min(rival.trial):
            best[candidate.worker] = candidate
    for worker, candidate in best.items():
        worker.ask(do="release", keep=[candidate.variant])
    return list(best.values())


def on_fewer_threads(candidates, fewer, told, folder, expected, known, options):
    """Peers on fewer threads, where they are faster so: `known` gives a system's trial on one thread, if that was measured."""
    found = []
    for candidate in candidates:
        for worker in fewer.get(candidate.worker.module, []):
            alone = known.get(candidate.system) if len(worker.cores) == 1 else None
            if alone is not None and alone > FEWER * min(candidate.trial):
                continue
            found += trial(prepare(worker, told, folder, expected, {}, [candidate.variant]), {}, options)
    every = {}
    for candidate in candidates + found:
        every.setdefault(candidate.system, []).append(candidate)
    return [min(ways, key=lambda c: min(c.trial)) for ways in every.values()]


def contenders(candidates):
    """Those that are not clearly slower than the best peer. A prototype is always one: it is asked about by itself."""
    peers = [min(c.trial) for c in candidates if c.group == "peer"]
    return [c for c in candidates if c.group == "prototype" or min(c.trial) <= CONTENDS * min(peers)]


def floor(case, limit):
    """The least seconds that a machine of these limits needs; memory counts where its bandwidth was measured. Of a case that `copies`, a plain
    copy's, which reads what it writes."""
    peak, read, write, *copy = limit
    memory = case["reads"] / read + case["writes"] / write if read and not case["cached"] else 0.0
    if case.get("copies") and memory and copy:
        memory = (case["reads"] + case["writes"]) / copy[0]
    return 1e-9 * max(case["flops"] / peak, memory)


def shares(case, made, place="A"):
    """The share of the limit of each slot of a block."""
    return [floor(case, limit) / seconds for seconds, limit in blocks.neighbours(made, place)]


def race(case, mine, others, machine, cores, options, enough=blocks.ENOUGH):
    """Candidate -> (Series, blocks); with nobody else None -> those of Heed's share."""
    memory = case["memory"]
    end = time.monotonic() + options.seconds

    def slot(candidate):
        return lambda: candidate.time(options.each, 1, options)

    def block(other):
        slots = {"A": slot(mine)}
        if other is not None:
            slots["B"] = slot(other)
        return blocks.run_block(slots, lambda: machine.measure(memory), cores, memory, options.clock, options.moved)

    def checked(other):
        try:
            return block(other)
        except RuntimeError as error:
            if other is None:
                raise
            mine.time(0, 1, options)  # if it is Heed that fails, the cell has failed
            return {"error": str(error)}

    def share(made):
        return statistics.mean(math.log(x) for x in shares(case, made))

    return blocks.race(others or [None], checked, lambda: time.monotonic() < end, options.within, options.blocks,
                       groups={c: c.group for c in others}, enough=enough, **({} if others else {"value": share}))


def measure(case, told, folder, expected, systems, fewer, machine, cores, known, options):
    """What results.json says of the cell."""
    result = {**case.describe(), "flops": case.flops, "reads": case.reads, "writes": case.writes, "gate": case.gate, "grows": case.grows,
              "rounded": case.rounded, "cached": case.reads + case.writes < cache_bytes(), "copies": case.params.get("copies", False),
              "tolerance": expected[1], "systems": []}
    result["memory"] = not result["cached"] and (case.group in ("rows", "decode") or case.flops < 50 * (case.reads + case.writes))
    result["absent"] = absent = {}
    candidates, threads = [], len(cores)
    try:
        mine, *others = [prepare(worker, told, folder, expected, absent) for worker in systems]
        mine = trial(mine, absent, options)
        if not mine:
            result["failed"] = "Heed: " + absent.get("heed", "no output")
            return result
        mine = mine[0]
        if case.kind == "zoo":  # of a model of many kernels: which of them takes the time
            result["kernels"] = mine.worker.ask(do="profile", variant=mine.variant).get("kernels", [])
        candidates = trial([c for found in others for c in found], absent, options)
        candidates = on_fewer_threads(candidates, fewer, told, folder, expected, known, options)
        raced = race(result, mine, contenders(candidates), machine, cores, options) or race(result, mine, [], machine, cores, options)
        if None in raced:
            result["systems"] = [mine.row(threads, raced.pop(None)[1])]
        else:
            result["systems"] = [mine.row(threads)]
        result["systems"] += [c.row(threads, raced[c][1] if c in raced else ()) for c in candidates]
    except RuntimeError as error:
        result["failed"] = f"Heed: {error}"
    finally:
        for worker in [*systems, *(w for found in fewer.values() for w in found)]:
            worker.ask(do="release")
    return result
