"""What paired measurements say: a ratio, its 95 % interval, and when there are enough of them.

Ratios are handled as logarithms. Shared by run.py (a peer's time over Heed's) and ab.py (a build's over another's).
"""
import math

import numpy as np

# After so many accepted blocks the interval is looked at. A look after each one would stop at the first interval that is narrow
# by luck: with these, 95 % intervals of drawn series hold the truth in 91 % (two modes) to 97 % (outliers) of cases,
# see test/bench/estimate.py.
LOOKS = (10, 15, 22, 33, 50, 60)
LEAST, MOST = LOOKS[0], LOOKS[-1]
REJECTED = 0.75  # of the blocks: where more are rejected, those that are left were probably disturbed too


def trimmed(values):
    """The mean without the lowest and highest fifth along the last axis: another program's turn is no property of a system."""
    values = np.sort(values, axis=-1)
    cut = values.shape[-1] // 5
    return values[..., cut:values.shape[-1] - cut].mean(axis=-1)


def student(df):
    """The 97.5 % quantile of Student's t over that of the normal distribution (Cornish-Fisher; within 0.2 % for df >= 5)."""
    z = 1.959964
    z3, z5, z7 = z**3, z**5, z**7
    t = z + (z3 + z) / (4 * df) + (5 * z5 + 16 * z3 + 3 * z) / (96 * df**2) + (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * df**3)
    return t / z


def interval(logs, samples=2000):
    """(ratio, low, high) from the logarithms of ratios: bootstrap of the trimmed mean, widened as a small sample needs it."""
    logs = np.asarray(logs, float)
    count = len(logs)
    if count < 2 or not np.isfinite(logs).all():
        raise ValueError("a ratio is not finite, or there is one only")
    drawn = np.random.default_rng(count).integers(0, count, (samples, count))
    low, high = np.quantile(trimmed(logs[drawn]), [0.025, 0.975])
    middle, wider = trimmed(logs), student(count - 1) * math.sqrt(count / (count - 1))
    return tuple(math.exp(x) for x in (middle, middle - (middle - low) * wider, middle + (high - middle) * wider))


def is_narrow(ratio, low, high, within):
    return high <= ratio * (1 + within) and low >= ratio * (1 - within)


class Series:
    """The blocks of one pair, as they come in."""

    def __init__(self, within, most=MOST):
        self.within, self.most = within, most
        self.logs, self.every, self.rejected = [], [], {}  # of accepted blocks; of all; reason -> blocks
        self.found = None  # (ratio, low, high) of the last look

    def add(self, log, why=None):
        """A block's logarithm of its ratio; `why` it does not count."""
        self.every.append(log)
        if why:
            self.rejected[why] = self.rejected.get(why, 0) + 1
            return
        self.logs.append(log)
        if len(self.logs) in LOOKS:
            self.look()

    def look(self):
        """At the end what there is counts, whether or not a look was due; where too little is, the interval of all blocks informs."""
        logs = self.logs if len(self.logs) >= LEAST else self.every
        if len(logs) >= 2:
            self.found = interval(logs)

    @property
    def tried(self):
        return len(self.logs) + sum(self.rejected.values())

    @property
    def narrow(self):
        return len(self.logs) >= LEAST and self.found is not None and is_narrow(*self.found, self.within)

    @property
    def settled(self):
        return self.narrow or self.tried >= self.most

    def doubt(self):
        """Why nothing can be said whatever the interval is, or None."""
        if len(self.logs) < LEAST:
            return f"{len(self.logs)} of {self.tried} blocks undisturbed"
        if self.tried - len(self.logs) > REJECTED * self.tried:
            return f"only {len(self.logs)} of {self.tried} blocks undisturbed"
        return None

    def verdict(self, above, below, margin=0.0):
        """(word, why): `above` or `below` where the interval lies wholly on that side of 1 by more than the margin, `tie` where it is
        narrow, else `unjudged` and why."""
        if self.doubt():
            return "unjudged", self.doubt()
        ratio, low, high = self.found
        if low > 1 + margin:
            return above, ""
        if high < 1 - margin:
            return below, ""
        if self.narrow:
            return "tie", ""
        return "unjudged", f"interval {low:.3f} to {high:.3f} after {self.tried} blocks"
