"""Normalisers with a threshold, in float64: of sorted scores, as their papers write them."""
import numpy as np


def sparsemax(z):
    """Martins and Astudillo 2016, algorithm 1."""
    z = np.sort(z)[::-1]
    sums, k = np.cumsum(z), np.arange(1, len(z) + 1)
    size = k[1 + k * z > sums][-1]
    return (sums[size - 1] - 1) / size


def entmax15(z):
    """Peters et al. 2019, algorithm 2; of scores that are halved."""
    z = np.sort(z)[::-1]
    k = np.arange(1, len(z) + 1)
    mean, square = np.cumsum(z) / k, np.cumsum(z**2) / k
    t = mean - np.sqrt(np.maximum((1 - k * (square - mean**2)) / k, 0))
    return t[np.flatnonzero(t <= z)[-1]]


# Name: what scores are divided by, their threshold, the power of what is above it.
NORMALISERS = {"sparsemax": (1, sparsemax, 1), "entmax15": (2, entmax15, 2)}


def weights(name, z):
    """Of the scores of one row, all of them finite."""
    divisor, threshold, power = NORMALISERS[name]
    z = (z - z.max()) / divisor
    near = z[z > -2]  # the others are below every threshold
    return np.maximum(z - threshold(near), 0) ** power
