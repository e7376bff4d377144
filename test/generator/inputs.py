"""Arrays for a model's inputs, from a recipe and a seed."""
import numpy as np

TYPES = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i8": np.int8, "i32": np.int32, "i64": np.int64, "bool": np.bool_}


def bf16(x):
    bits = np.array(x, np.float32, order="C").view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(x):
    return (x.astype(np.uint32) << 16).view(np.float32)


def draw(recipe, shape, kind, rng, dims):
    """("real", scale, decades by which rows may be smaller), ("weight", fan): divided by its root, ("positive",), ("exact",): halves, ("integer", low, high): expressions
    over dims as text, ("bool", share), ("sorted", low, high), ("mask", share): 0 or -inf."""
    name, *rest = recipe
    value = lambda text: eval(str(text), {}, dict(dims))
    if name == "real":
        x = rng.uniform(-1, 1, shape) * (rest[0] if rest else 1)
        return x * 10 ** -rng.uniform(0, rest[1], (*shape[:-1], 1)) if len(rest) > 1 and shape else x
    if name == "weight":
        return rng.uniform(-1, 1, shape) * (3 / max(1, value(rest[0]))) ** 0.5
    if name == "positive":
        return rng.uniform(0.25, 1.5, shape)
    if name == "exact":
        return rng.integers(-4, 5, shape) / 2
    if name in ("integer", "sorted"):
        low, high = value(rest[0]), value(rest[1])
        x = rng.integers(low, max(low + 1, high), shape)
        return np.sort(x, -1) if name == "sorted" else x
    if name == "bool":
        share = rest[0] if rest else (0.5, 0.05, 0.95, 0.0, 1.0)[rng.integers(5)]
        return rng.random(shape) < share
    if name == "mask":
        return np.where(rng.random(shape) < (0.4, 0.8, 1.0)[rng.integers(3)], 0.0, -np.inf)
    raise TypeError(name)


MASKED, INFINITE = -1, -2


def behind_lengths(model, dims, made):
    """NaN in the rows of real inputs that no length reaches: a masked key contributes nothing, whatever stands there."""
    for x in model.inputs:
        if x.recipe[0] == "integer" and str(x.recipe[2]).endswith(" + 1") and made[x.name].size:
            extent = str(x.recipe[2])[:-4]
            last = int(made[x.name].max())
            for y in model.inputs:
                v = made[y.name]
                if y.recipe[0] == "real" and y.type in ("f32", "f16"):
                    for axis, n in enumerate(y.shape):
                        if getattr(n, "name", n) == extent:
                            v[(slice(None),) * axis + (slice(last, None),)] = np.nan
                            break


def behind_masks(model, made, rng):
    """NaN or an infinite number in the values that a mask of -inf excludes for all queries."""
    for x in model.inputs:
        for axis, n in enumerate(x.shape if x.recipe[0] == "mask" and made[x.name].size else ()):
            gone = (made[x.name] == -np.inf).all(tuple(k for k in range(len(x.shape)) if k != axis))
            for y in model.inputs:
                for k, m in enumerate(y.shape):
                    if y.name[0] == "v" and y.recipe[0] == "real" and m == n:
                        made[y.name][(slice(None),) * k + (gone,)] = rng.choice([np.nan, np.inf])


def infinite(model, made, rng):
    """Up to three elements are infinite or NaN: of one real input, at times in one row; or of two, in the rows of the same place, as a key's and its value's."""
    real = [x for x in model.inputs if x.recipe[0] in ("real", "weight", "positive") and x.type in ("f32", "f16", "bf16") and made[x.name].size]
    if not real:
        return
    bad = lambda: rng.choice([np.inf, -np.inf, -np.inf, np.nan])
    if len(real) > 1 and rng.random() < 0.6:
        place, pairs = {}, [x for x in real if x.name in ("k", "v")]
        if len(pairs) < 2 or rng.random() < 0.3:
            pairs = [real[k] for k in rng.permutation(len(real))[:2]]
        for x in pairs:
            v = made[x.name]
            v[tuple(place.setdefault(extent, rng.integers(n)) for extent, n in zip(x.shape, v.shape))] = bad()
        return
    v = made[real[rng.integers(len(real))].name]
    v = v.reshape(-1, *v.shape[-1:])
    at = rng.integers(len(v))
    rows = v[at:at + 1] if rng.random() < 0.5 else v
    for _ in range(rng.integers(1, 4)):
        rows[tuple(rng.integers(0, n) for n in rows.shape)] = bad()


def arrays(model, dims, seed, poison):
    """name: array of each input. `poison`: how many elements of real inputs become NaN; MASKED: those behind every length, or that a mask excludes;
    INFINITE: some are infinite."""
    rng = np.random.default_rng(seed)
    made = {}
    for x in model.inputs:
        shape = [int(eval_dim(n, dims)) for n in x.shape]
        v = draw(x.recipe, shape, x.type, rng, dims)
        if poison > 0 and x.recipe[0] == "real" and np.size(v):
            v = np.array(v)
            for _ in range(poison):
                v[tuple(rng.integers(0, n) for n in shape)] = np.nan
        made[x.name] = np.array(v, np.float32 if x.type == "bf16" else TYPES[x.type], order="C")
    if poison == MASKED:
        behind_lengths(model, dims, made)
        behind_masks(model, made, rng)
    if poison == INFINITE:
        infinite(model, made, rng)
    for x in model.inputs:
        if x.held:
            v = made[x.name]
            made[x.name] = from_bf16(bf16(v)) if x.held == "bf16" else v.astype(np.float16).astype(np.float32)
    return {x.name: bf16(made[x.name]) if x.type == "bf16" else made[x.name] for x in model.inputs}


def weights_type(model):
    """heedc's option for how the model's parameters lie in memory: none for f32."""
    return [f"--weights-type={held}" for held in sorted({x.held for x in model.inputs if x.held})]


def eval_dim(n, dims):
    """The number of an expression of dims."""
    from numpy_text import expr
    return eval(n if isinstance(n, str) else expr(n), {"power": lambda a, b, w: a ** b}, dict(dims))
