"""One block of measurements, `P A P B P B P A P`, and the race of several B.

A and B are systems, P is the probe of what the machine can do at this moment. A stands at places 1 and 4, B at 2 and 3: what
changes evenly with time hits both alike and leaves their ratio. Each slot's share of the limit is that of the probes beside it.
"""
import math
import statistics
import time

import quiet
from estimate import LEAST, LOOKS, Series, trimmed

PAIR, ALONE = "PAPBPBPAP", "PAPAP"
ENOUGH = LOOKS[1]  # blocks that are tried when time is over and too few of them have counted


def run_block(slots, probe, cores, memory=False, clock="wall", moved=quiet.MOVED, stolen=quiet.stolen,
              now=time.monotonic):
    """`slots`: name -> function that gives ([seconds of a run], switches, seconds in all); `probe` gives ((FMA, read, write), switches,
    seconds).

    {'A': [median seconds of a run in each slot], 'B': ..., 'limits': [of each probe], 'why': None or why it does not count}"""
    block = {name: [] for name in slots}
    limits, switches = [], []
    before, start = stolen(cores), now()
    for place in PAIR if "B" in slots else ALONE:
        if place == "P":
            limit, count, seconds = probe()
            limits.append(limit)
            switches.append((count, seconds))
            continue
        times, count, seconds = slots[place]()
        if not times or min(times) <= 0:
            raise RuntimeError("no time was measured")
        block[place].append(statistics.median(times))
        switches.append((count, seconds))
    why = quiet.disturbance(limits, switches, stolen(cores) - before, now() - start, len(cores), memory, clock, moved)
    return {**block, "limits": limits, "why": why}


def log_ratio(block):
    """The logarithm of B's time over A's, from neighbours in time."""
    return statistics.mean(map(math.log, block["B"])) - statistics.mean(map(math.log, block["A"]))


def neighbours(block, place):
    """(seconds, limits) of each slot of A or B: the means of the probes before and after it."""
    order = PAIR if "B" in block else ALONE
    found, seen, probes = [], 0, 0
    for letter in order:
        if letter == "P":
            probes += 1
        elif letter == place:
            beside = zip(block["limits"][probes - 1], block["limits"][probes])
            found.append((block[place][seen], [statistics.mean(pair) for pair in beside]))
            seen += 1
    return found


def race(names, block, more, within, most, groups=None, value=log_ratio, enough=ENOUGH):
    """Blocks with each of these in turn (`block(name)`), until each is settled or clearly not the fastest of its group, or not `more()`:
    then the one that leads each group still gets what an interval needs at least, or `enough` blocks.

    name -> (Series of `value(block)`, its blocks). A name leaves the race when its interval lies above that of another one: it
    cannot be the best. One whose block has an `error` is out, and not in what is found."""
    groups = groups or {}
    found = {name: (Series(within, most), []) for name in names}

    def rivals(name):
        return [other for other in found if groups.get(other) == groups.get(name)]

    def beaten(name):
        ready = {other: found[other][0].found for other in rivals(name) if len(found[other][0].logs) >= LEAST}
        return name in ready and any(ready[name][1] > high for _, _, high in ready.values())

    def leads(name):
        return name == min(rivals(name), key=lambda other: trimmed(found[other][0].every))

    late = False
    while True:
        left = [name for name, (series, _) in found.items() if not series.settled and not beaten(name)]
        if late:
            left = [name for name in left if leads(name) and len(found[name][0].logs) < LEAST and found[name][0].tried < enough]
        if not left:
            break
        for name in left:
            made = block(name)
            if "error" in made:
                del found[name]
                continue
            series, blocks = found[name]
            series.add(value(made), made["why"])
            blocks.append(made)
        late = late or not more()
    for series, _ in found.values():
        series.look()
    return found


def best(found):
    """Of name -> Series the name whose ratio is the least, of those that can be judged; if there is none, of all that have one; or None."""
    for usable in ([n for n, x in found.items() if not x.doubt()], [n for n, x in found.items() if x.found]):
        if usable:
            return min(usable, key=lambda name: found[name].found[0])
    return next(iter(found), None)
