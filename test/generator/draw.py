"""What productions draw with: choices that follow from (seed, number), names, dims, inputs, equations.

Swarm: of all FEATURES each model may use a random half, so that rare combinations are not drowned by the common ones.
"""
import random

from tree import *

FEATURES = []  # filled by feature() at import


def feature(*names):
    FEATURES.extend(n for n in names if n not in FEATURES)
    return names


class T:
    """A tensor in scope: its axes are labelled, so that it can be read in any layout."""

    def __init__(self, name, axes):
        self.name, self.axes = name, tuple(axes)  # of (key, extent)

    @property
    def keys(self):
        return [k for k, _ in self.axes]

    def at(self, **where):
        """A read with Name(key) at each axis unless `where` says otherwise."""
        return Read(self.name, tuple(lift(where.get(k, Name(k))) for k, _ in self.axes))


class Draw:
    def __init__(self, seed, number, off=()):
        self.random = random.Random(f"{seed}/{number}")
        self.number = number
        self.on = {f for f in FEATURES if self.random.random() < 0.5} - set(off)
        self.used = set()
        self.inputs, self.body, self.functions, self.constants = [], [], [], []
        self.dims = {}      # name: role
        self.multiples = {}  # name: (of which dim)
        self.extents = {}   # key: extent
        self.fixed = set()  # dims that are numbers in the text
        self.also = []      # names of further results
        self.count = {}
        self.cost = 1

    # Choices
    def chance(self, p):
        return self.random.random() < p

    def have(self, name, p=1.0):
        """May this model use the feature, and does it here?"""
        assert name in FEATURES, name
        if name in self.on and self.chance(p):
            self.used.add(name)
            return True
        return False

    def pick(self, options):
        """One of the names in `options` that this model may use; None stands for none of them and is always there if listed."""
        open_ = [o for o in options if o is None or o in self.on]
        choice = self.random.choice(open_) if open_ else None
        if choice:
            self.used.add(choice)
        return choice

    def one(self, *options):
        return self.random.choice(options)

    # Names
    def name(self, stem):
        self.count[stem] = self.count.get(stem, 0) + 1
        return stem if self.count[stem] == 1 else f"{stem}{self.count[stem]}"

    def dim(self, stem, role, multiple=None):
        name = self.name(stem)
        self.dims[name] = role
        if multiple:
            self.multiples[name] = multiple
        return Name(name)

    def key(self, stem, extent):
        """A fresh index with its range."""
        key = self.name(stem)
        self.extents[key] = lift(extent)
        return key

    def index(self, key, extent=None):
        return Index(key, lift(extent) if extent is not None else self.extents[key])

    # Tensors
    def input(self, stem, keys, kind="f32", recipe=("real",), shape=None):
        name = self.name(stem)
        axes = [(k, self.extents[k]) for k in keys] if shape is None else list(zip(keys, shape))
        self.inputs.append(Input(name, kind, tuple(n for _, n in axes), recipe))
        return T(name, axes)

    def let(self, stem, keys, right, rebind=False):
        name = stem if rebind else self.name(stem)
        self.body.append(Equation(name, tuple(self.index(k) for k in keys), right))
        return T(name, [(k, self.extents[k]) for k in keys])

    def sum(self, keys, body, where=None, op="sum"):
        return Reduce(op, tuple(self.index(k) for k in keys), body, where)

    def shuffled(self, keys, p=0.3):
        """The keys in another order at times."""
        keys = list(keys)
        if self.have("layout", p):
            self.random.shuffle(keys)
        return keys

    def model(self, results, static):
        return Model(tuple(self.inputs), tuple(self.body), tuple(results), tuple(self.functions), tuple(self.constants), tuple(static),
                     frozenset(self.used))


feature("layout", "static", "powers")
