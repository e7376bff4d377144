# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Kwon et al. 2023, equation 4: o_i = softmax(q_i K_(<=i)^T / sqrt(E)) V_(<=i) of each sequence, whatever pages its tokens lie in: in one call, token by token, in
sevens; pages in any order, those of nobody full of NaN; rows and pages that change places; a prompt's pages that two sequences read. (What is refused:
test/e2e/states.py.)"""
import os
import tempfile

import numpy as np
from oracles import parts
from states import agree, compile, heed, same
from zoo import softmax, uniform


def oracle(q, k, v):
    """N x H x E, N x G x E, N x G x F."""
    q, k, v = (one.astype(np.float64).transpose(1, 0, 2) for one in (q, k, v))
    share, mask = len(q) // len(k), np.tri(q.shape[1], dtype=bool)
    return np.stack([softmax(one @ k[h // share].T / np.sqrt(q.shape[2]), mask) @ v[h // share] for h, one in enumerate(q)], 1)


def run(m, rows, table, state, sizes, begin):
    """Each row's results, of rows[b] = (q, k, v) from token begin[b] on."""
    found = [[] for _ in rows]
    for a, z in parts(max(len(row[0]) - first for row, first in zip(rows, begin)), sizes):
        count = [min(max(len(row[0]) - first - a, 0), z - a) for row, first in zip(rows, begin)]
        new = [np.full((len(rows), z - a, *one.shape[1:]), np.nan, np.float32) for one in rows[0]]
        for b, n in enumerate(count):
            for part, whole in zip(new, rows[b]):
                part[b, :n] = whole[begin[b] + a : begin[b] + a + n]
        got = m(*new, table, np.array(count, np.int32), state=state)
        for b, n in enumerate(count):
            found[b] += list(got[b, :n])
            assert not got[b, n:].any(), f"padding of row {b} is not zeros"
    return [np.reshape(one, (len(one), rows[0][0].shape[1], rows[0][2].shape[2])) for one in found]


rng = np.random.default_rng(331)
for lengths, size, h, g, e, f in [([23, 9, 0], 4, 4, 2, 8, 6), ([70, 33], 16, 2, 2, 5, 7), ([1], 1, 6, 1, 16, 16), ([130, 131], 16, 2, 1, 16, 16)]:
    pages = -(-(max(lengths) + 3) // size)
    total, b = len(lengths) * pages + 3, len(lengths)
    m, what = compile("decoding/paged-attention", None, P=size), f"paged-attention, rows of {lengths}, pages of {size}"
    table = rng.permutation(total)[: b * pages].reshape(b, pages).astype(np.int32)
    rows = [(uniform(rng, n, h, e), uniform(rng, n, g, e), uniform(rng, n, g, f)) for n in lengths]
    wants = [oracle(*row) for row in rows]

    def opened():
        state = m.state(R=total, G=g, E=e, F=f, B=b)
        for name in ("kc", "vc"):
            state[name] = np.full(state[name].shape, np.nan, np.float32)
        return state

    def refused(count):
        one = [np.zeros((b, 1, *part.shape[1:]), np.float32) for part in rows[0]]
        try:
            m(*one, table, np.full(b, count, np.int32), state=opened())
        except heed.RangeError:
            return True

    assert refused(2) and refused(-1), f"{what}: a count that is none of the call's"

    def compare(state, sizes, what, begin, rows=rows, table=table, wants=wants):
        got = run(m, rows, table, state, sizes, begin)
        for one, want, first in zip(got, wants, begin):
            agree(one, want[first : first + len(one)], what)
        return got

    none, half = [0] * b, [n // 2 for n in lengths]
    for sizes in (1000,), (1,), (7,):
        said = f"{what}, calls of {sizes}"
        compare(opened(), sizes, said, none)
        state, loaded, rowed, paged = (opened() for _ in range(4))
        compare(state, sizes, said + ", half", none, [tuple(one[:n] for one in row) for row, n in zip(rows, half)])
        with tempfile.TemporaryDirectory() as folder:
            state.save(os.path.join(folder, "state"))
            loaded.load(os.path.join(folder, "state"))
        rowed.copy_from(state)
        rowed.permute("B", list(range(b))[::-1])
        paged.copy_from(state)
        order = rng.permutation(total)
        paged.permute("R", order.tolist())
        rest = compare(state, sizes, said + ", the rest", half)
        same(compare(loaded, sizes, said, half), rest, said + ", loaded")
        same(compare(rowed, sizes, said, half[::-1], rows[::-1], table[::-1].copy(), wants[::-1])[::-1], rest, said + ", rows permuted")
        same(compare(paged, sizes, said, half, table=np.argsort(order)[table].astype(np.int32)), rest, said + ", pages permuted")
        state["len"] = np.array(half, np.int32)
        same(compare(state, sizes, said, half), rest, said + ", made shorter")
    # Row 0's prompt, of whole pages, is every row's; each goes on in pages of its own.
    prompt = lengths[0] // size * size
    shared = table.copy()
    shared[:, : prompt // size] = table[0, : prompt // size]
    state = opened()
    compare(state, (1000,), what + ", a prompt", none, [tuple(one[:prompt] for one in rows[0])] + [tuple(one[:0] for one in rows[0])] * (b - 1), shared, [wants[0]] * b)
    state["len"] = np.full(b, prompt, np.int32)
    more = [tuple(np.concatenate([whole[:prompt], uniform(rng, 3, *whole.shape[1:])]) for whole in rows[0]) for _ in range(b)]
    compare(state, (2,), what + ", a shared prompt", [prompt] * b, more, shared, [oracle(*row) for row in more])
    print(f"{what}: agrees")
