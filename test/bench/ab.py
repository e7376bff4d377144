# RUN: %python %s %heed_src %heed_build %python
# UNSUPPORTED: asan
# (the compiled libraries are linked without the sanitizer that the runtime would want)
"""bench/ab.py: its statistics on made-up numbers, and a pair of equal builds on one small cell, whose time is not judged."""
import math
import pathlib
import sys

import numpy as np

from runs import expect, finish, run

source, build = (pathlib.Path(a) for a in sys.argv[1:3])
sys.path.insert(0, str(source / "bench"))
import ab  # of bench/


def pairs(ratio, noise, seed, spikes=0.0):
    """B takes `ratio` times as long as A; both vary, and now and then another program takes a turn."""
    random = np.random.default_rng(seed)

    def pair(_):
        a, b = np.exp(noise * random.standard_normal(2)) * (1 + 3 * (random.random(2) < spikes))
        return a, ratio * b

    return pair


# The interval holds the true ratio about as often as it says: of 200 made-up cells at least 180 times, of 190 expected.
hits = 0
for seed in range(200):
    draw = pairs(1.03, 0.02, seed)
    ratio, low, high = ab.interval([math.log(b / a) for a, b in (draw(k) for k in range(40))])
    expect(low <= ratio <= high, f"{low} {ratio} {high}")
    hits += low <= 1.03 <= high
expect(180 <= hits <= 199, f"{hits} of 200 intervals hold the ratio")
# Outliers do not move it, more noise widens it, a constant has no width.
spiked = ab.until_certain(pairs(1.0, 0.005, 1, spikes=0.05), 0.01, lambda: True)
expect(spiked[4] and abs(spiked[0] - 1) < 0.01, f"{spiked}")
wide, narrow = (ab.interval(noise * np.random.default_rng(3).standard_normal(30)) for noise in (0.1, 0.01))
expect(wide[2] - wide[1] > 5 * (narrow[2] - narrow[1]), f"{wide} {narrow}")
expect(np.allclose(ab.interval([math.log(2)] * 10), 2), "a constant ratio")
try:
    ab.interval([0.0, math.nan])
    expect(False, "a NaN is taken for a ratio")
except ValueError:
    pass

# It repeats until the interval is as narrow as asked, or the limit is reached, which it says.
left = iter(range(500))
ratio, low, high, count, is_narrow = ab.until_certain(pairs(1.05, 0.02, 5), 0.01, lambda: next(left, None) is not None)
expect(is_narrow and count > ab.LEAST and low >= ratio * 0.99 and high <= ratio * 1.01, f"{ratio} {low} {high} {count}")
expect(ab.verdict(low, high, is_narrow, 0.02) == "SLOWER", "five percent")
left = iter(range(14))
found = ab.until_certain(pairs(1.0, 0.3, 6), 0.01, lambda: next(left, None) is not None)
expect(found[3] == 15 and not found[4], f"{found}")
expect(ab.verdict(*found[1:3], found[4], 0.02) == "limit reached, undecided", f"{found}")
left = iter(range(3))
expect(ab.until_certain(pairs(1.0, 0.0, 6), 0.01, lambda: next(left, None) is not None)[3:] == (4, False), "few pairs say nothing")
for low, high, is_narrow, says in ((1.021, 1.04, True, "SLOWER"), (1.021, 1.2, False, "SLOWER"), (1.015, 1.03, True, "slower, but by less than asked"),
                                   (0.995, 1.005, True, "same"), (0.95, 0.96, True, "faster"), (0.9, 1.01, False, "limit reached, not slower")):
    expect(ab.verdict(low, high, is_narrow, 0.02) == says, f"{low} {high}: {ab.verdict(low, high, is_narrow, 0.02)}")

tool = (sys.argv[3], source / "bench/ab.py")
done = run(*tool, build, build, "--case", "small causal N=17", "--seconds", "2", "--each", "0.001")
# 1: this machine had other work for one of them.
expect(done.returncode in (0, 1) and "FAILED" not in done.stdout and "small causal N=17 E=64" in done.stdout, f"{done.stdout}{done.stderr}")
expect(run(*tool, build, build, "--case", "nothing").returncode == 1, "a case that is none")
done = run(*tool, build, source)
expect(done.returncode == 1 and "is no build folder" in done.stderr, done.stderr)
finish()
