"""Equal models and inputs of another kind: what is known of a model from its tree alone, without computing it.

An oracle is a function of (model, uses, dims, arrays, rng): None where it does not apply, else what else to run and how its results become
those of the model. What it says holds by the meaning of the language, so a difference is a fault of what was compiled.
"""
import pathlib
import random
from dataclasses import dataclass
from typing import Callable

import numpy as np

from compiled import Refused
from heed_text import heed_text
from inputs import eval_dim
from judge import as_float, judge_values
from oracle import Large, Tensor, Tie
from oracles import Failure, Program, expected, write_source
from passes import emitted, final
from ranges import settle
from tree import *
from uses import linear_inputs, names, uses


@dataclass
class Changed:
    model: object     # another one, or the model itself
    runs: tuple       # of (dims, arrays)
    back: Callable    # [results of each run] to results


def axes_of(shape, dim):
    return [k for k, n in enumerate(shape) if n == Name(dim)]


def over(array, axes, change):
    for k in axes:
        array = change(array, k)
    return array


def known_results(model, u):
    return all(u.shapes.get(r) is not None for r in model.results)


def changed_inputs(model, dim, arrays, change):
    return {x.name: np.array(over(arrays[x.name], axes_of(x.shape, dim), change), order="C") for x in model.inputs}


def each(model, u, dim, change):
    """Results with `change` at their axes over the dim."""
    return lambda results: [over(r, axes_of(u.shapes[name], dim), change) for r, name in zip(results, model.results)]


def pick(rng, dims):
    return rng.choice(sorted(dims)) if dims else None


def bound_dims(model):
    return {n.name for x in model.inputs for n in x.shape if isinstance(n, Name)}


def permuted(model, u, dims, arrays, rng):
    """Elements of a dim whose order nothing asks for stand in another order: keys with their masks, heads, widths."""
    dim = pick(rng, {d for d in bound_dims(model) - u.placed if dims[d] > 1})
    if dim is None:
        return None
    order = np.array(rng.sample(range(dims[dim]), dims[dim]))
    back = np.argsort(order)
    return Changed(model, ((dims, changed_inputs(model, dim, arrays, lambda a, k: np.take(a, order, k))),),
                   lambda runs: each(model, u, dim, lambda a, k: np.take(a, back, k))(runs[0]))


def padded(model, u, dims, arrays, rng):
    """More keys behind a length: NaN, and whatever else."""
    dim = pick(rng, (bound_dims(model) & u.summed) - u.valued - u.open - set(dict(model.static)))
    if dim is None:
        return None
    if any(x.type == "i32" and np.max(arrays[x.name], initial=0) > dims[dim] for x in model.inputs):
        return None
    more = rng.choice([1, 7, 16, 65])
    numbers = np.random.default_rng(rng.randrange(1 << 30))

    def wider(a, k):
        shape = a.shape[:k] + (more,) + a.shape[k + 1:]
        rest = np.full(shape, np.nan, a.dtype) if a.dtype.kind == "f" else numbers.integers(0, 1 + (a.dtype == bool), shape).astype(a.dtype)
        return np.concatenate([a, rest], k)
    arrays = changed_inputs(model, dim, arrays, wider)
    return Changed(model, (({**dims, dim: dims[dim] + more}, arrays),),
                   lambda runs: each(model, u, dim, lambda a, k: np.take(a, range(dims[dim]), k))(runs[0]))


def pieces(model, u, dims, arrays, rng):
    """A dim that nothing sums over, in two calls."""
    dim = pick(rng, {d for d in bound_dims(model) - u.placed - u.valued - u.summed - set(dict(model.static))
                     if all(axes_of(u.shapes[r], d) for r in model.results)})
    if dim is None:
        return None
    cut = rng.randrange(dims[dim] + 1)
    parts = [range(cut), range(cut, dims[dim])]
    runs = tuple(({**dims, dim: len(p)}, changed_inputs(model, dim, arrays, lambda a, k: np.take(a, p, k))) for p in parts)

    def back(runs):
        return [np.concatenate([a, b], axes_of(u.shapes[r], dim)[0]) for a, b, r in zip(*runs, model.results)]
    if any(len(axes_of(u.shapes[r], dim)) > 1 for r in model.results) or any(len(axes_of(s, dim)) > 1 for s in u.shapes.values() if s):
        return None  # pairs of the dim's elements do not fall apart
    return Changed(model, runs, back)


def split(model, u, dims, arrays, rng):
    """One dim as two, whose product it is: heads out of a batch, keys or sums over a grid. Long: one kind of node after the other."""
    dim = pick(rng, {d for d in bound_dims(model) - u.placed if dims[d] > 0})
    if dim is None or any(x.param is not None and axes_of(x.shape, dim) for x in model.inputs):
        return None
    size = dims[dim]
    outer = rng.choice([n for n in range(1, size + 1) if size % n == 0])
    d1, d2 = dim + "o", dim + "i"
    if {d1, d2} & names(model.body, model.inputs) or any(n.name in (d1, d2) for n in walk((model.body,)) if isinstance(n, Index)):
        return None
    indices = {}

    def two(name):
        return indices.setdefault(name, (name + "_o", name + "_i"))

    def statement(s):
        if isinstance(s, For):
            return replace(s, body=tuple(map(statement, s.body)))
        if isinstance(s, Scan):
            return replace(s, states=tuple((name, binders(at), start) for name, at, start in s.states), body=tuple(map(statement, s.body)),
                           rows=tuple((name, shape(extents)) for name, extents in s.rows))
        if isinstance(s, Let):
            return replace(s, shape=shape(s.shape))
        if not isinstance(s, Equation):
            return s
        own = {x.name for x in s.left if isinstance(x, Index) and x.extent == Name(dim)}
        return replace(s, left=binders(s.left), right=inner(s.right, own))

    def binders(left):
        out = []
        for x in left:
            out += [Index(n, Name(d)) for n, d in zip(two(x.name), (d1, d2))] if isinstance(x, Index) and x.extent == Name(dim) else [x]
        return tuple(out)

    def shape(extents):
        return tuple(y for n in extents for y in ((Name(d1), Name(d2)) if n == Name(dim) else (n,)))

    def inner(e, own):
        """With the indices `own` over the dim as pairs."""
        if isinstance(e, tuple):
            return tuple(inner(x, own) for x in e)
        if not hasattr(e, "__dataclass_fields__") or isinstance(e, Num):
            return e
        if isinstance(e, Name):
            return Name(d1) * Name(d2) if e.name == dim and e.name not in own else e
        if isinstance(e, Read):
            at = []
            for x in e.index:
                at += map(Name, two(x.name)) if isinstance(x, Name) and x.name in own else [inner(x, own)]
            return replace(e, index=tuple(at))
        if isinstance(e, Reduce):
            mine = {b.name for b in e.binders}
            own = own - mine | {b.name for b in e.binders if b.extent == Name(dim)}
            return replace(e, binders=binders(e.binders), body=inner(e.body, own), where=None if e.where is None else inner(e.where, own))
        if isinstance(e, Softmax):
            e = replace(e, names=tuple(y for n in e.names for y in (two(n) if n in own else (n,))))
        return replace(e, **{f: inner(getattr(e, f), own) for f in e.__dataclass_fields__
                             if hasattr(getattr(e, f), "__dataclass_fields__") or isinstance(getattr(e, f), tuple)})
    other = replace(model, inputs=tuple(replace(x, shape=shape(x.shape)) for x in model.inputs), body=tuple(map(statement, model.body)),
                    static=tuple((n, s) for n, s in model.static if n != dim) + (((d1, outer), (d2, size // outer)) if dim in dict(model.static) else ()))
    new = {**dims, d1: outer, d2: size // outer}
    made = {x.name: arrays[x.name].reshape([eval_dim(n, new) for n in x.shape]) for x in other.inputs}

    def back(runs):
        return [r.reshape([eval_dim(n, dims) for n in u.shapes[name]]) for r, name in zip(runs[0], model.results)]
    return Changed(settle(other), ((new, made),), back)


def doubled(model, u, dims, arrays, rng):
    """An input in which the results are linear: the sum of its two parts, one of them scaled."""
    name = pick(rng, linear_inputs(model, model.results))
    if name is None:
        return None
    a = arrays[name]
    share = np.random.default_rng(rng.randrange(1 << 30)).random(a.shape) < 0.5
    first, second = (np.array(w, a.dtype) for w in (np.where(share, a, 0), np.where(share, 0, a * np.float32(-2))))

    def back(runs):
        return [x - y / 2 for x, y in zip(*runs)]
    return Changed(model, ((dims, {**arrays, name: first}), (dims, {**arrays, name: second})), back)


def shifted(model, u, dims, arrays, rng):
    """The same number added to all scores of a row."""
    shift = "rowshift"
    for k, s in enumerate(model.body):
        if isinstance(s, Equation) and isinstance(s.right, Softmax) and s.right.sink is None and all(isinstance(x, Index) for x in s.left):
            rows = [x for x in s.left if x.name not in s.right.names]
            right = replace(s.right, body=s.right.body + Read(shift, tuple(Name(x.name) for x in rows)))
            extra = Input(shift, "f32", tuple(x.extent for x in rows))
            other = replace(model, inputs=model.inputs + (extra,), body=model.body[:k] + (replace(s, right=right),) + model.body[k + 1:])
            numbers = np.random.default_rng(rng.randrange(1 << 30))
            made = {**arrays, shift: np.array(numbers.integers(-10, 11, [eval_dim(n, dims) for n in extra.shape]), np.float32)}
            return Changed(settle(other), ((dims, made),), lambda runs: runs[0])
    return None


ORACLES = {"permuted": permuted, "padded": padded, "pieces": pieces, "split": split, "linear": doubled, "shifted": shifted}


def program_of(model, folder, backend):
    """The model by Halide, or its IR after the passes by the reference."""
    # Parts of a parameter may need more than 16 bits.
    model = replace(model, inputs=tuple(replace(x, held=None) for x in model.inputs))
    source = write_source(model, folder)
    if backend == "halide":
        return Program(source, folder, "halide", model)
    for _, ir in final(emitted(source, folder, model)):
        source = pathlib.Path(folder) / "after.mlir"
        source.write_text(ir)
    return Program(source, folder, "reference", model)


def by_numpy(changed):
    """What the runs give by NumPy, as values and magnitudes; None where f32 may decide otherwise."""
    try:
        with np.errstate(all="ignore"):
            runs = [expected(changed.model, dims, arrays) for dims, arrays in changed.runs]
    except (Tie, Large):
        return None
    values = changed.back([[np.asarray(t.v, float) for t in run] for run in runs])
    none = lambda t: np.zeros(np.shape(t.v)) if t.a is None else np.asarray(t.a)
    return values, [np.abs(a) for a in changed.back([[none(t) for t in run] for run in runs])]


def check_metamorphic(model, known, seed, folder, backend):
    """How often each oracle had something to say. Raises Failure."""
    rng, said, programs = random.Random(f"metamorphic {seed}"), {}, {}
    u = uses(model)
    if not known_results(model, u):
        return said
    try:
        for name, oracle in ORACLES.items():
            for dims, number, arrays, want in rng.sample(known, len(known)):
                changed = oracle(model, u, dims, arrays, rng)
                plain = changed and by_numpy(changed)
                if not plain:
                    continue
                values, magnitudes = plain
                wants = [Tensor(t.v, None if t.a is None else np.maximum(t.a, a)) for t, a in zip(want, magnitudes)]
                for r, v, w in zip(model.results, values, wants):
                    wrong = judge_values(v, "f64", w, f"{name}, by NumPy: {r}")
                    if wrong:
                        raise Failure("metamorphic oracle", f"{wrong}; sizes {changed.runs[0][0]}\n")
                key = "itself" if changed.model is model else name
                if key not in programs:
                    own = pathlib.Path(folder) / key
                    own.mkdir()
                    try:
                        programs[key] = program_of(changed.model, own, backend)
                    except Failure as e:
                        raise Failure(f"{e.kind}, {key}", e.text + "\n" + heed_text(changed.model))
                try:
                    runs = [programs[key](arrays) for _, arrays in changed.runs]
                except Refused as e:
                    raise Failure(f"refused call, {name}", str(e), dims)
                got = changed.back([[as_float(r) for r in run] for run in runs])
                for r, v, (_, kind), w in zip(model.results, got, runs[0], wants):
                    wrong = judge_values(v, kind, w, f"{name}, {backend}: {r}")
                    if wrong:
                        raise Failure(f"numbers, {name}", f"{wrong}; sizes {changed.runs[0][0]}, seed {number}", dims)
                said[name] = said.get(name, 0) + 1
                break
    finally:
        for program in programs.values():
            program.close()
    return said
