# RUN: %python %s heedc
# RUN: %python %s heedc --set=bits=4 --set=G=5
"""Xiao and Zhu 2023, equations 196 and 197 with the signed rule s = max|x| / (2^(bits-1) - 1): per tensor, per channel, per group of a row. Numbers
near a tie of round are moved away from it: f32 decides ties as it can. |x - D(Q(x))| <= s/2 is checked, and Q of exact multiples of s."""
import sys

import numpy as np
from zoo import check, uniform

SETTINGS = dict(a.removeprefix("--set=").split("=") for a in sys.argv if a.startswith("--set="))
TOP, G = 2 ** (int(SETTINGS.get("bits", 8)) - 1) - 1, int(SETTINGS.get("G", 16))


def scales(x):
    """One scale for each element, three times."""
    n, c = x.shape
    whole = np.full((n, c), np.abs(x).max(initial=0) / TOP)
    channel = np.tile(np.abs(x).max(0, initial=0) / TOP, (n, 1))
    group = np.zeros((n, c))
    for i in range(n):
        for first in range(0, c, G):
            group[i, first : first + G] = np.abs(x[i, first : first + G]).max() / TOP
    return dict(tensor=whole, channel=channel, group=group)


def ratio(x, s):
    return np.divide(x, s, out=np.zeros(x.shape), where=s > 0)


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    out = {}
    for name, s in scales(x).items():
        q = np.rint(ratio(x, s))
        assert (np.abs(q) <= TOP).all() and (np.abs(x - s * q) <= s / 2 * (1 + 1e-9)).all()
        out[name], out[name + "_value"] = q.astype(np.int8), s * q
    return out


rng = np.random.default_rng(141)
cases = []
for n, c in [(7, 37), (1, 1), (140, 33), (3, 16), (2, 0)]:
    x = uniform(rng, n, c) * np.float32(3)
    if n == 7:
        x[:, 4], x[2] = 0, 0  # a channel and groups of zeros
    for _ in range(100):
        near = np.zeros(x.shape, bool)
        for s in scales(x.astype(np.float64)).values():
            r = ratio(x, s)
            near |= np.abs(r - np.floor(r) - 0.5) < 1e-3
        x = np.where(near, x * np.float32(0.99), x)
    assert not near.any()
    cases.append((dict(x=x), None))
if TOP == 127:
    exact = np.array([[127.0, -127, 5, -64, 0]], np.float32)  # s = 1: Q is x itself
    assert (oracle(dict(x=exact), None)["tensor"] == exact).all()
    cases.append((dict(x=exact), None))
check("quantization/uniform-quantiser", oracle, cases)
