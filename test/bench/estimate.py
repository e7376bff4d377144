# RUN: %python %s %heed_src
"""bench/estimate.py: intervals hold the truth as often as they say, on drawn series with fixed seeds; verdicts follow from them."""
import math
import pathlib
import sys

import numpy as np

from runs import expect, finish

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "bench"))
import estimate  # of bench/
from estimate import LEAST, LOOKS, MOST, Series, interval


def drawn(kind, seed, count, noise):
    random = np.random.default_rng(seed)
    if kind == "two modes":  # a system that is now fast, now slow
        return noise * (random.choice([-1.0, 1.0], count) + 0.2 * random.standard_normal(count))
    found = noise * random.standard_normal(count)
    if kind == "outliers":
        found += (random.random(count) < 0.05) * random.normal(0.2, 0.1, count) * random.choice([-1, 1], count)
    return found


def hits(kind, count, noise):
    """Of 300 series of a true ratio of 1.03, with this many blocks, how many intervals hold it."""
    found = 0
    for seed in range(300):
        ratio, low, high = interval(math.log(1.03) + drawn(kind, seed, count, noise), samples=500)
        expect(low <= ratio <= high, f"{kind}: {low} {ratio} {high}")
        found += low <= 1.03 <= high
    return found


# 285 of 300 are expected: from 275 to 298 is within two and a half standard deviations, and outliers widen the interval.
for kind, count in (("steady", 10), ("steady", 30), ("outliers", 10), ("outliers", 30), ("two modes", 10), ("two modes", 30)):
    found = hits(kind, count, 0.02)
    expect(275 <= found <= 298, f"{kind}, {count} blocks: {found} of 300 intervals hold the ratio")

# Repeated until the interval is narrow: stopping early must not make it a lie.
for kind, noise, least in (("steady", 0.01, 275), ("steady", 0.03, 275), ("outliers", 0.02, 275), ("two modes", 0.02, 265)):
    found, blocks = 0, []
    for seed in range(300):
        series = Series(0.015)
        for log in math.log(0.97) + drawn(kind, seed, MOST, noise):
            if series.settled:
                break
            series.add(log)
        found += series.found[1] <= 0.97 <= series.found[2]
        blocks.append(series.tried)
    expect(found >= least, f"{kind}, noise {noise}, until it is narrow: {found} of 300 intervals hold the ratio")
    expect(set(blocks) <= set(LOOKS), f"{kind}: it stopped between two looks: {sorted(set(blocks))}")

# Outliers do not move it, more noise widens it, a constant has no width.
wide, narrow = (interval(noise * np.random.default_rng(3).standard_normal(30)) for noise in (0.1, 0.01))
expect(wide[2] - wide[1] > 5 * (narrow[2] - narrow[1]), f"{wide} {narrow}")
expect(np.allclose(interval([math.log(2)] * 10), 2), "a constant ratio")
spiked = interval(np.r_[np.zeros(17), 3.0, 3.0, 3.0])
expect(abs(spiked[0] - 1) < 1e-9, f"three outliers of twenty: {spiked}")
for bad in ([0.0, math.nan], [0.0, math.inf], [0.1]):
    try:
        interval(bad)
        expect(False, f"{bad} is taken for ratios")
    except ValueError:
        pass
for df, t in ((5, 2.5706), (9, 2.2622), (30, 2.0423)):
    expect(abs(estimate.student(df) * 1.959964 - t) < 0.005, f"Student's t of {df}: {estimate.student(df) * 1.959964}")


def of(logs, rejected=0, within=0.015):
    series = Series(within)
    for log in logs:
        series.add(log)
    for _ in range(rejected):
        series.add(0.0, "stolen time")
    series.look()
    return series


def around(ratio, noise, count=20, seed=5):
    return math.log(ratio) + noise * np.random.default_rng(seed).standard_normal(count)


for series, says in ((of(around(1.05, 0.005)), "ahead"), (of(around(0.95, 0.005)), "behind"), (of(around(1.0, 0.005)), "tie"),
                     (of(around(1.5, 0.1)), "ahead"), (of(around(1.0, 0.1)), "unjudged"), (of(around(1.5, 0.0, LEAST - 1)), "unjudged"),
                     (of(around(1.5, 0.001), rejected=60), "ahead"), (of(around(1.5, 0.001), rejected=61), "unjudged")):
    expect(series.verdict("ahead", "behind")[0] == says, f"{says}: {series.found} {series.rejected} {series.verdict('ahead', 'behind')}")
expect("19 of 20" not in of(around(1, 0.1)).verdict("a", "b")[1] and "interval" in of(around(1, 0.1)).verdict("a", "b")[1], "why it is unjudged")
expect(of([0.0] * 3, rejected=57).verdict("a", "b") == ("unjudged", "3 of 60 blocks undisturbed"), "too few blocks")
# With a margin: what is 5 % slower is slower, 1 % is a tie, 2 % and a wide interval is nothing.
for ratio, noise, says in ((1.05, 0.005, "slower"), (0.95, 0.005, "faster"), (1.01, 0.005, "tie"), (1.02, 0.1, "unjudged")):
    found = of(around(ratio, noise), within=0.01).verdict("slower", "faster", 0.02)
    expect(found[0] == says, f"{ratio}: {found}")
# A disturbed block never counts, whatever it says.
expect(of(around(1.05, 0.005), rejected=5).found == of(around(1.05, 0.005)).found, "rejected blocks move the interval")
expect(of([], rejected=12).found[0] == 1 and of([], rejected=12).verdict("a", "b")[0] == "unjudged", "only rejected blocks")
finish()
