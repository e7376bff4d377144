# RUN: %python %s %heed_src
"""bench/blocks.py and bench/quiet.py on made-up machines: steady, drifting, stolen from, switched away from, with two modes. No clock is read."""
import itertools
import math
import pathlib
import sys

import numpy as np

from runs import expect, finish

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "bench"))
import blocks  # of bench/
import quiet

PEAK, READ, WRITE = 200.0, 15.0, 10.0


class Made:
    """A machine on which A takes 10 ms and B `ratio` times that, times what happens at that moment."""

    def __init__(self, ratio=1.2, noise=0.0, slower=lambda t: 1.0, steals=(), switched=(), seed=0):
        self.now, self.ratio, self.noise, self.slower = 0.0, ratio, noise, slower
        self.steals, self.switched = list(steals), set(switched)
        self.random, self.slots = np.random.default_rng(seed), itertools.count()

    def spend(self, seconds):
        self.now += seconds
        return seconds

    def slot(self, factor):
        def run():
            number = next(self.slots)
            times = [self.spend(0.010 * factor() * self.slower(self.now) * math.exp(self.noise * self.random.standard_normal())) for _ in range(3)]
            return times, int(number in self.switched), sum(times)
        return run

    def probe(self):
        speed = 1 / self.slower(self.now)
        return (PEAK * speed, READ * speed, WRITE * speed), 0, self.spend(0.003)

    def stolen(self, cores):
        expect(cores == [0, 1], f"{cores}")
        return sum(seconds for when, seconds in self.steals if when <= self.now)

    def block(self, memory=False, b=None):
        slots = {"A": self.slot(lambda: 1.0), "B": self.slot(b or (lambda: self.ratio))}
        return blocks.run_block(slots, self.probe, [0, 1], memory, stolen=self.stolen, now=lambda: self.now)


def measured(machine, count=10, **more):
    return [machine.block(**more) for _ in range(count)]


def whys(found):
    return [b["why"] for b in found]


# Steady: all count, the ratio and the share are what was put in.
steady = measured(Made())
expect(whys(steady) == [None] * 10, f"{whys(steady)}")
expect(np.allclose([blocks.log_ratio(b) for b in steady], math.log(1.2)), "the ratio of a steady machine")
expect([len(steady[0][k]) for k in ("A", "B", "limits")] == [2, 2, 5], f"{steady[0]}")
expect(blocks.neighbours(steady[0], "A") == [(0.010, [PEAK, READ, WRITE])] * 2, f"{blocks.neighbours(steady[0], 'A')}")

# A machine that slows down evenly, by 30 % in a second: neighbours in time cancel it. A before B would be off by 1 %.
drifting = measured(Made(slower=lambda t: 1 + 0.3 * t), 1)
expect(abs(blocks.log_ratio(drifting[0]) - math.log(1.2)) < 2e-3, f"{blocks.log_ratio(drifting[0])} against {math.log(1.2)}")
naive = math.log(drifting[0]["B"][0] / drifting[0]["A"][0])
expect(abs(naive - math.log(1.2)) > 5e-3, "the drift of this test is no drift")
# The share follows the probes beside it, and so it drifts less than time does.
shares = [1e9 / (limit[0] * 1e9 * seconds) for seconds, limit in blocks.neighbours(drifting[0], "A")]
expect(abs(shares[1] / shares[0] - 1) < 0.01 and drifting[0]["A"][1] / drifting[0]["A"][0] > 1.02, f"{shares} {drifting[0]['A']}")
expect(drifting[0]["why"] == "the peak moved", f"{drifting[0]['why']}")
expect(measured(Made(slower=lambda t: 1 + 0.1 * t), 1)[0]["why"] is None, "2 % within a block are let pass")

# A clock that jumps within the block is seen by the probes; one that jumps between blocks is none of theirs.
expect(whys(measured(Made(slower=lambda t: 1.05 if t > 0.05 else 1.0), 3)) == ["the peak moved", None, None], "a jump within the first block")

# Stolen time: the block in which it is booked, and no other. 0.1 % of a block is nothing.
length = Made()
length.block()
length = length.now
stolen = measured(Made(steals=[(1.5 * length, 0.010)]), 4)
expect(whys(stolen) == [None, "stolen time", None, None], f"{whys(stolen)}")
expect(whys(measured(Made(steals=[(0.5 * length, 0.002 * length)]), 2)) == [None, None], "a little stolen time")

# Involuntary switches, in whichever slot; in a long one some are the kernel's own.
expect(whys(measured(Made(switched=[2, 9]), 4)) == ["involuntary switches", None, "involuntary switches", None], "switches")
limits = [(PEAK, READ, WRITE)] * 5
expect(quiet.disturbance(limits, [(2, 1.0)], 0, 4, 2) is None and quiet.disturbance(limits, [(3, 1.0)], 0, 4, 2), "switches of a long slot")
expect(quiet.disturbance(limits, [(6, 0.02)], 0, 1, 1, clock="cpu") is None and quiet.disturbance(limits, [(7, 0.02)], 0, 1, 1, clock="cpu"),
       "processor time stands still while another program runs")
# The bandwidth counts only where memory does.
moved = [(PEAK, READ, WRITE)] * 4 + [(PEAK, 0.8 * READ, WRITE)]
expect(quiet.disturbance(moved, [], 0, 1, 1) is None and quiet.disturbance(moved, [], 0, 1, 1, memory=True) == "the bandwidth moved", "bandwidth")
expect(quiet.disturbance([(0, 0, 0)] * 5, [], 0, 1, 1) == "the peak moved", "a probe that measured nothing")

# Heed's own time rejects nothing: A of two modes, three times as slow in every second run of it.
flip = itertools.count()
two = Made()
slots = {"A": two.slot(lambda: 3.0 if next(flip) // 3 % 2 else 1.0), "B": two.slot(lambda: 1.2)}
found = [blocks.run_block(slots, two.probe, [0, 1], False, stolen=two.stolen, now=lambda: two.now) for _ in range(10)]
expect(whys(found) == [None] * 10, f"{whys(found)}")
expect(np.allclose([blocks.log_ratio(b) for b in found], math.log(1.2) - math.log(3) / 2), "both modes count")


# The race: who cannot be the best leaves it; it ends when the rest is settled.
def race(ratios, noise=0.01, left=10**6, groups=None, most=60, **more):
    machines = {name: Made(ratio, noise, seed=k, **more) for k, (name, ratio) in enumerate(ratios.items())}
    turns = itertools.count()
    return blocks.race(list(ratios), lambda name: machines[name].block(), lambda: next(turns) < left, 0.015, most, groups)


def series(found):
    return {name: x for name, (x, _) in found.items()}


found = race({"near": 1.2, "nearer": 1.08, "far": 1.6}, noise=0.1)
expect(blocks.best(series(found)) == "nearer", f"{ {n: x.found for n, x in series(found).items()} }")
expect(found["far"][0].tried < found["nearer"][0].tried and not found["far"][0].settled, "the far one ran to the end")
expect(found["nearer"][0].settled, f"{found['nearer'][0].found}")
# Two groups are two races.
found = race({"near": 1.10, "far": 1.25}, groups={"near": "peer", "far": "prototype"})
expect(all(x.settled for x in series(found).values()), "each group is run to its end")
# All blocks disturbed: it stops at the most, and nothing is said.
found = race({"one": 1.3}, switched=range(10**4), most=60)
expect(found["one"][0].tried == 60 and found["one"][0].verdict("ahead", "behind")[0] == "unjudged", f"{found['one'][0].rejected}")
# Time is over: the one that leads gets what an interval needs, the other stays where it is.
found = race({"one": 1.3, "two": 1.5}, left=3)
expect([x.tried for x in series(found).values()] == [10, 4] and found["one"][0].verdict("ahead", "behind")[0] == "ahead", f"{[x.tried for x in series(found).values()]}")
found = race({"one": 1.3}, left=0, switched=range(0, 10**4, 7))
expect(found["one"][0].tried == 15 and found["one"][0].verdict("ahead", "behind")[0] == "unjudged", f"{found['one'][0].rejected}")
# Half of the blocks stolen from: the others say it, and rightly.
found = race({"one": 1.02}, noise=0.005, steals=[((2 * k + 0.5) * length, 0.010) for k in range(60)])
one = found["one"][0]
expect(one.rejected.get("stolen time", 0) >= 3 and one.verdict("ahead", "behind")[0] == "ahead" and one.found[1] < 1.02 < one.found[2], f"{one.found} {one.rejected}")
# A peer that breaks is out, and stops nobody.
machine = Made(1.1)
found = blocks.race(["good", "bad"], lambda name: machine.block() if name == "good" else {"error": "it ended"}, lambda: True, 0.015, 60)
expect(list(found) == ["good"] and found["good"][0].settled, f"{list(found)}")
expect(blocks.best({}) is None, "nobody")
# Alone: the interval is that of the share.
alone = [blocks.run_block({"A": machine.slot(lambda: 1.0)}, machine.probe, [0, 1], True, stolen=machine.stolen, now=lambda: machine.now) for _ in range(2)]
expect([len(alone[0][k]) for k in ("A", "limits")] == [2, 3] and alone[0]["why"] is None, f"{alone[0]}")

# Cores by number; what /proc/stat says of them.
allowed = quiet.cores_of("")
expect(quiet.cores_of(str(allowed[0])) == [allowed[0]] and quiet.cores_of(f"{allowed[0]}-{allowed[0]},{allowed[0]}") == [allowed[0]], f"{allowed}")
for text in ("a", "0-", "-1", "100000", "1,,2"):
    try:
        quiet.cores_of(text)
        expect(False, f"'{text}' names cores")
    except ValueError:
        pass
stat = "cpu 1 1 1 1 1 1 1 999 0 0\ncpu0 1 1 1 1 1 1 1 50 0 0\ncpu1 1 1 1 1 1 1 1 7 0 0\ncpu10 1 1 1 1 1 1 1 100 0 0\nintr 5\n"
expect(math.isclose(quiet.stolen_ticks(stat, [0, 1]), 57 * quiet.TICK) and quiet.stolen_ticks(stat, [2]) == 0, "steal of two cores")
finish()
