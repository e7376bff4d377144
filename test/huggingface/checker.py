# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support:%heed_src/test/huggingface %python %s %heed_bin/heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""The comparison itself: one wrong element is found, one of a row of padding is not looked at; wrong rows of a decoder's calls are found."""
import contextlib
import io

import numpy as np

import runs
import weights
from check import Decoder, near
from runs import expect, finish


def failures_of(function):
    """How many failures a comparison counts, which are none of this test's."""
    before = runs.failures
    with contextlib.redirect_stdout(io.StringIO()):
        function()
    found, runs.failures = runs.failures - before, before
    return found


wanted = weights.uniform("checker", (2, 5, 7)).astype(np.float64)
real = np.arange(5) < np.array([5, 2])[:, None]
for at, value, rows, count in [((1, 1, 6), 3e-5, None, 1), ((1, 1, 6), 1e-5, None, 0), ((0, 0, 0), np.nan, None, 1), ((0, 0, 0), np.inf, None, 1),
                               ((1, 1, 6), 3e-5, real, 1), ((1, 2, 0), 3e-5, real, 0), ((1, 2, 0), np.nan, real, 0)]:
    found = (wanted / np.abs(wanted).max()).astype(np.float32)
    found[at] += value
    expect(failures_of(lambda: near(found, wanted / np.abs(wanted).max(), "", where=rows)) == count, f"{value} added at {at}")
expect(failures_of(lambda: near(wanted[:, :4], wanted, "")) == 1, "a row less")
expect(failures_of(lambda: near(wanted, np.where(wanted > 0, np.nan, wanted), "")) == 1, "an expected NaN")


class Fake:
    """A decoder that gives the expected logits, each row `off` tokens late."""

    class _library:
        states = ()

    def __init__(self, logits, off):
        self.logits, self.off, self.seen = logits, off, np.zeros(len(logits), int)

    def state(self, **dims):
        return type("State", (), {"names": ()})()

    def __getitem__(self, entry):
        def call(ids, count, state):
            rows = [np.roll(self.logits[b], self.off, axis=0)[at:at + ids.shape[1]] for b, at in enumerate(self.seen)]
            self.seen += count
            padded = np.stack([np.pad(row, ((0, ids.shape[1] - len(row)), (0, 0)), constant_values=np.nan) for row in rows])
            return padded if entry == "scores" else np.stack([padded[b, n - 1] for b, n in enumerate(count)])
        return call


for off in 0, 1:
    for entry in "scores", "forward":
        decoder = Decoder(Fake(wanted, off), {"scores": ({"ids": np.zeros((2, 5), np.int32)}, {"logits": wanted})}, "", 1e-6)
        count = failures_of(lambda: [decoder.call(entry, counts) for counts in ([2, 1], [0, 3], [3, 1])])
        expect(count == 5 * off, f"{entry}, {off} tokens late: {count} failures")
finish()
