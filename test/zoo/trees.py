"""Dependency trees for the oracles of syntax models: a tree is the list of its words' parents, -1 for the root."""
import numpy as np


def draw(rng, n, near=8):
    """A tree of n words, whose numbers do not tell their depth."""
    order = rng.permutation(n)
    parent = np.full(n, -1)
    for i in range(1, n):
        parent[order[i]] = order[rng.integers(max(0, i - near), i)]
    return parent


def chain(parent, i):
    """Word i, its parent, .. , the root."""
    out = [int(i)]
    while parent[out[-1]] >= 0:
        out.append(int(parent[out[-1]]))
    return out


def distances(parent):
    """Lengths of the paths between all pairs."""
    n = len(parent)
    omega = np.zeros((n, n), np.int32)
    for i, j in np.ndindex(n, n):
        up, down = chain(parent, i), chain(parent, j)
        meet = next(x for x in up if x in down)
        omega[i, j] = up.index(meet) + down.index(meet)
    return omega
