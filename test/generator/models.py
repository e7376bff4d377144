"""Draws whole models: blocks in sequence, what is returned, which dims are numbers in the text."""
from attention import attention
from draw import *
from ranges import settle
from respell import respelled
import sizes

feature("intermediate result", "respelled")


def drawn(seed, number, off=()):
    """The model, size tuples for it, and the model that it is an equal respelling of, or None."""
    d = Draw(seed, number, off)
    o = attention(d)
    results = [o.name]
    if d.have("intermediate result", 0.3):
        named = [s.name for s in d.body if isinstance(s, Equation) and s.name not in results]
        if named:
            results.append(d.random.choice(named))
    first = sizes.draw(d.random, d.dims, d.multiples, 400000)
    static = []
    if d.have("static", 0.6):
        share = d.one(0.3, 1.0)
        static = [(n, size) for n, size in first.items() if d.chance(share)]
    plain = d.model(results, static)
    other = respelled(plain, d.random) if d.have("respelled") else None
    model = settle(replace(other or plain, features=frozenset(d.used)), lambda: d.chance(0.1))
    tuples = [first]
    for k in range(3):
        more = sizes.draw(d.random, d.dims, d.multiples, 400000, small=k == 2)
        more.update(dict(static))
        for name, of in d.multiples.items():
            if name not in dict(static):
                more[name] = more[of] * d.one(1, 2, 3)
        if all(more[name] % max(1, more[of]) == 0 for name, of in d.multiples.items()):
            tuples.append(more)
    return model, tuples, plain if other else None
