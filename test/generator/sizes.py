"""Sizes of a model's dims: small and odd ones, 0 and 1, about a vector's lanes and a tile's rows, at times beyond two tiles."""
LENGTHS = [[0], [1], [2, 3, 5], [7, 8, 9, 15, 16, 17], [31, 32, 33, 47, 48, 49], [63, 64, 65, 95, 97], [127, 129, 150, 193], [257, 520, 1030, 2100]]
WIDTHS = [[0], [1], [2, 3, 4, 5], [6, 7, 8, 9], [15, 16, 17], [31, 32, 33], [48, 64, 65]]
# How often each class is drawn.
LENGTH_WEIGHTS = [2, 4, 10, 12, 8, 5, 3, 1]
WIDTH_WEIGHTS = [1, 4, 12, 10, 6, 3, 1]


def draw(rng, dims, multiples, budget, small=False, long=False):
    """name: size. The product of all stays within the budget: then lengths are drawn again, shorter. `long`: lengths beyond two tiles,
    all else small."""
    for turn in range(100):
        sizes = {}
        for name, role in dims.items():
            if role == "length":
                c = rng.choices(LENGTHS, LENGTH_WEIGHTS)[0] if turn < 90 else [2, 3]
                sizes[name] = rng.choice(c)
            elif role == "width":
                sizes[name] = rng.choice(rng.choices(WIDTHS, WIDTH_WEIGHTS)[0] if turn < 90 else [2, 3])
            elif role == "long":  # enough for what is planned for long calls; of these no second dim grows with the budget
                sizes[name] = rng.choice([512, 512, 513, 527, 544, 600])
            elif role == "narrow":
                sizes[name] = rng.choice([1, 3, 8, 8, 13, 16, 17, 20])
            elif role == "few":
                sizes[name] = rng.choice([1, 1, 1, 2])
            elif role == "half":
                sizes[name] = rng.choice([1, 2, 3, 4, 8])
            elif role == "side":
                sizes[name] = rng.choice([1, 2, 2, 3, 4, 5])
            elif role == "group":
                sizes[name] = rng.choice([1, 1, 2, 3])
            else:
                sizes[name] = rng.choice([1, 1, 2, 2, 3, 4, 5] if role == "head" else [1, 1, 2, 3])
            if long and turn < 50:
                sizes[name] = rng.choice([97, 127, 129, 150, 193, 260]) if role == "length" else min(sizes[name], 7)
            if small and turn < 50:
                sizes[name] = min(sizes[name], 5)
        for name, of in multiples.items():
            sizes[name] = sizes[of] * rng.choice([1, 2, 3])
        product = 1
        for name, n in sizes.items():
            product *= 1 if dims[name] == "long" else max(1, n)
        if product <= budget:
            return sizes
    return {name: 1 if name not in multiples else sizes.get(multiples[name], 1) for name in dims}
