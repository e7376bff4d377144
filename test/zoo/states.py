"""What the oracles of models that go on from call to call share: all ways to cut sequences into calls give what the model without a cache gives (NumPy); a state
that was saved and loaded, copied, permuted or made shorter goes on as it would have."""
import os
import shutil
import sys
import tempfile

import numpy as np
from generating import oracle as greedy
from oracles import parts
from zoo import MODELS

sys.path.insert(0, os.path.join(MODELS, "..", "python"))
os.environ["HEEDC"] = shutil.which(sys.argv[1])
import heed

JUNK = {np.dtype(np.int32): -7, np.dtype(np.float32): np.nan}


def compile(model, weights, **constants):
    return heed.compile(os.path.join(MODELS, model + ".heed"), weights=weights, set=constants)


def agree(got, want, what, tolerance=1e-5):
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    error = np.abs(got - want).max(initial=0) / (np.abs(want).max(initial=0) or 1)
    assert error <= tolerance, f"{what}: differs by {error:.3g}, allowed {tolerance:g}"


def same(got, want, what):
    assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)), f"{what}: not bit for bit the same"


def run(m, entry, rows, state, sizes, begin=None, last=False, result=None):
    """Row b of the calls is rows[b], in parts of these sizes; what lies behind a shorter row is junk, of which a call must not make anything, and a row that is
    at its end has a count of 0. Of each row: the places of its results in it, and the results. `last`: a call gives one result a row, that of its last
    token. `result`: which of several."""
    begin = [0] * len(rows) if begin is None else begin
    places, results = [[] for _ in rows], [[] for _ in rows]
    for a, z in parts(max(len(row) - first for row, first in zip(rows, begin)), sizes):
        count = np.array([min(max(len(row) - first - a, 0), z - a) for row, first in zip(rows, begin)], np.int32)
        part = np.full((len(rows), z - a, *rows[0].shape[1:]), JUNK[rows[0].dtype], rows[0].dtype)
        for b, c in enumerate(count):
            part[b, :c] = rows[b][begin[b] + a : begin[b] + a + c]
        got = m[entry](part, count, state=state)
        got = (getattr(got, result) if result else got).copy()
        for b in np.flatnonzero(count):
            end = begin[b] + a + count[b]
            places[b] += [end - 1] if last else range(begin[b] + a, end)
            results[b] += [got[b]] if last else list(got[b, : count[b]])
    return places, [np.array(one) for one in results]


def check(m, entry, rows, wants, open_state, what, sizes=((1000,), (1,), (7,)), last=False, result=None, batch="B", trims=True):
    """trims: tokens can be taken back; else a state holds more than counted places. wants[b]: for each token of rows[b] what the model without a cache gives. open_state(): one that no call has seen but those that come before."""
    def compare(state, sizes, what, rows=rows, wants=wants, begin=None):
        places, got = run(m, entry, rows, state, sizes, begin, last, result)
        scale = max(np.abs(want).max(initial=0) for want in wants)
        for b, want in enumerate(wants):
            agree(got[b].reshape(-1, *want.shape[1:]) / scale, want[places[b]] / scale, f"{what}, row {b}")
        return got

    for size in sizes:
        state, said = open_state(), f"{what}, calls of {size}"
        compare(state, size, said)
        assert state["len"].tolist() == [len(row) for row in rows], f"{said}: {state['len']}"
        moved(batch, rows, wants, open_state, compare, size, said, trims)
    full(m, entry, rows, state, what)
    print(f"{what}: agrees")


def check_language_model(m, rows, oracle, what):
    """The logits of `scores` and `forward`, oracle(tokens) without a cache, and what they generate."""
    wants = [oracle(row) for row in rows]
    open_state = lambda: m.state(B=len(rows), C=max(map(len, rows)))
    check(m, "scores", rows, wants, open_state, what)
    check(m, "forward", rows, wants, open_state, what + ", last tokens", sizes=((7,),), last=True)
    prompt = rows[0][:5].tolist()
    made = m.generate(prompt, max_new=9).tolist()
    assert made == greedy(lambda seen: oracle(np.array(seen))[-1], prompt, 9), f"{what}: generated {made}"


def moved(batch, rows, wants, open_state, compare, size, what, trims):
    """Half of the tokens, then the others: on that state, on one from its file, on a copy, on one whose rows changed places, and once more on it, made shorter.
    These are the same sums in the same order, so they are equal bit for bit."""
    half = [len(row) // 2 for row in rows]
    state = open_state()
    compare(state, size, what + ", half", [row[:h] for row, h in zip(rows, half)])
    loaded, copied, turned = open_state(), open_state(), open_state()
    with tempfile.TemporaryDirectory() as folder:
        state.save(os.path.join(folder, "state"))
        loaded.load(os.path.join(folder, "state"))
    copied.copy_from(state)
    turned.copy_from(state)
    turned.permute(batch, list(range(len(rows)))[::-1])
    rest = compare(state, size, what + ", the rest", begin=half)
    same(compare(loaded, size, what + ", loaded", begin=half), rest, what + ", loaded")
    same(compare(copied, size, what + ", copied", begin=half), rest, what + ", copied")
    back = compare(turned, size, what + ", permuted", rows[::-1], wants[::-1], half[::-1])[::-1]
    same(back, rest, what + ", permuted")
    if trims:
        state.trim("len", half)
    else:
        try:
            state.trim("len", half)
            raise AssertionError(f"{what}: tokens were taken back")
        except heed.RunError as error:
            assert "is recurrent" in str(error), error
        state["len"] = np.array(half, np.int32)
    same(compare(state, size, what + ", made shorter", begin=half), rest, what + ", made shorter")


def full(m, entry, rows, state, what):
    """`state` is full: a token more is an error, as is a count that is none of this call, and changes nothing; nor does a call without any."""
    before = {name: state[name] for name in state.names}
    one, longest = np.zeros((len(rows), 1, *rows[0].shape[1:]), rows[0].dtype), [len(row) == max(map(len, rows)) for row in rows]
    for count in np.array(longest, np.int32), np.full(len(rows), -1, np.int32), np.full(len(rows), 2, np.int32):
        try:
            m[entry](one, count, state=state)
            raise AssertionError(f"{what}: a full cache takes {count} more")
        except heed.RangeError as error:
            assert "is out of range" in str(error), error
    m[entry](one, np.zeros(len(rows), np.int32), state=state)
    assert all(np.array_equal(before[name], state[name]) for name in before), f"{what}: a call that adds nothing has changed a state"


def check_segments(m, x, want, sizes, open_state, what):
    """A model whose calls are segments of x, B x N x D, without counts: its results joined, and those of states that were saved, copied or permuted after some."""
    def go(state, x, cuts):
        return np.concatenate([m(x[:, a:z].copy(), state=state).copy() for a, z in cuts], axis=1)

    cuts = list(parts(x.shape[1], sizes))
    early, late = cuts[: len(cuts) // 2], cuts[len(cuts) // 2 :]
    state, loaded, copied, turned = (open_state() for _ in range(4))
    first = go(state, x, early) if early else want[:, :0].astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        state.save(os.path.join(folder, "state"))
        loaded.load(os.path.join(folder, "state"))
    copied.copy_from(state)
    turned.copy_from(state)
    turned.permute("B", list(range(len(x)))[::-1])
    rest = go(state, x, late)
    agree(np.concatenate([first, rest], axis=1), want, what)
    same([go(loaded, x, late)], [rest], what + ", loaded")
    same([go(copied, x, late)], [rest], what + ", copied")
    same([go(turned, x[::-1], late)[::-1]], [rest], what + ", permuted")
    print(f"{what}: agrees")
