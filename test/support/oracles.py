"""What several tests expect, in NumPy."""
import numpy as np


def softmax(s, axes=-1, live=True):
    """Rows without a live element are zeros."""
    s = np.where(live, s, -np.inf)
    top = s.max(axes, keepdims=True, initial=-np.inf)
    w = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = w.sum(axes, keepdims=True)
    return w / np.where(total == 0, 1, total)
