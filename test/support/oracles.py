"""What several tests expect, in NumPy."""
import numpy as np


def parts(total, sizes):
    """From and to of the calls that a sequence is made of, of these sizes in turn."""
    at = 0
    while at < total:
        for n in sizes:
            if at < total:
                yield at, min(at + n, total)
                at += n


def softmax(s, axes=-1, live=True):
    """Rows without a live element are zeros."""
    s = np.where(live, s, -np.inf)
    top = s.max(axes, keepdims=True, initial=-np.inf)
    w = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = w.sum(axes, keepdims=True)
    return w / np.where(total == 0, 1, total)
