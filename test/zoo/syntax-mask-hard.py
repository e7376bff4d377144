# RUN: %python %s heedc
"""Xiao and Zhu 2023, equation 55, hard form: for each word a softmax over the words at most omega_max steps away in the parse tree."""
import numpy as np
from zoo import check, f64, softmax, uniform


def distances(parent):
    """Lengths of the paths between all pairs of a tree: steps to the lowest common ancestor and down again."""
    n = len(parent)
    chains = []
    for i in range(n):
        chain = [i]
        while parent[chain[-1]] >= 0:
            chain.append(parent[chain[-1]])
        chains.append(chain)
    return np.array([[min(a + b for a, x in enumerate(chains[i]) for b, y in enumerate(chains[j]) if x == y) for j in range(n)] for i in range(n)])


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    omega, reach = inputs["omega"], inputs["omega_max"]
    out = np.zeros(v.shape)
    for b, h, i in np.ndindex(*q.shape[:3]):
        keys = [j for j in range(q.shape[2]) if omega[b, i, j] <= reach]
        if keys:
            out[b, h, i] = softmax(k[b, h, keys] @ q[b, h, i] / np.sqrt(q.shape[3])) @ v[b, h, keys]
    return {"o": out}


rng = np.random.default_rng(102)
cases = []
shapes = [(2, 3, 13, 8, 5, 2), (1, 2, 140, 4, 4, 3), (1, 1, 1, 4, 4, 0), (2, 1, 9, 4, 3, 0), (1, 2, 6, 4, 4, 100), (1, 1, 5, 4, 4, -1)]
for b, h, n, e, f, reach in shapes:
    omega = np.stack([distances([-1] + [int(rng.integers(max(0, i - 8), i)) for i in range(1, n)]) for _ in range(b)]).astype(np.int32)
    q, k, v = uniform(rng, b, h, n, e), uniform(rng, b, h, n, e), uniform(rng, b, h, n, f)
    if reach == 2:  # padding at the end of the second sentence: far from everything, itself too
        omega[1, 9:], omega[1, :, 9:] = 1000, 1000
        v[1, :, 9:] = np.nan
    cases.append((dict(q=q, k=k, v=v, omega=omega, omega_max=reach), None))
check("syntax/syntax-mask-hard", oracle, cases)
