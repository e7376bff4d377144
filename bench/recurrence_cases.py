"""The zoo's cases that are recurrences, group `recurrence`: see zoo_cases.py.

Of a linear attention operations are those of its chunked form with 64 steps, 2 E F + 65/2 (E + F) multiply-adds a step and head, its pairs once: the
form that the shares of the literature's kernels are given by. PyTorch has the same form (systems/zoo_recurrence.py), and oneDNN's LSTM.
"""
from zoo_cases import attended, entry, linear_weights, made, norm_weights, np, rows, uniform


def chunked(h, n, e, f):
    return 2.0 * h * n * (2 * e * f + 32.5 * (e + f))


def recurrent(*arguments, **keywords):
    return made(*arguments, **keywords) | dict(group="recurrence")


@entry
def linear_attention_causal(n=2048, h=8, e=64):
    """With its normaliser."""
    return recurrent("linear/linear-attention-causal", f"N={n} E={e} H={h}", chunked(h, n, e, e), attended(1, h, n, e), None, dict(B=1, H=h, N=n, E=e, F=e))


@entry
def decayed_linear_attention(n=2048, h=8, e=64):
    """RetNet's decays, 1 - 2^(-5 - h), and a normaliser."""
    decays = lambda rng: {"decay": (1 - 2.0**(-5 - np.arange(h))).astype(np.float32)}
    return recurrent("linear/decayed-linear-attention", f"N={n} E={e} H={h}", chunked(h, n, e, e), attended(1, h, n, e, more=decays), None,
                     dict(B=1, H=h, N=n, E=e, F=e))


def lstm(b, n, d):
    def inputs(rng):
        return dict(x=uniform(rng, b, n, d), h=uniform(rng, 1, b, d), c=uniform(rng, 1, b, d), length=np.full(b, n, np.int32))

    def weights(rng):
        found = {f"layer.0.{name}": uniform(rng, 4 * d, d) * np.float32(d**-0.5) for name in ("weight_ih", "weight_hh")}
        return found | {"layer.0.bias": uniform(rng, 4 * d) * np.float32(d**-0.5)}

    return recurrent("recurrence/lstm", f"B={b} N={n} D={d}", 16.0 * b * n * d * d, inputs, weights, dict(layers=1, B=b, N=n, D=d, E=d), dict(LAYERS=1))


@entry
def lstm_small(b=1, n=128, d=256):
    return lstm(b, n, d)


@entry
def lstm_long(b=1, n=1024, d=256):
    return lstm(b, n, d)


@entry
def lstm_batch(b=16, n=128, d=256):
    return lstm(b, n, d)


@entry
def lstm_wide(b=1, n=128, d=1024):
    return lstm(b, n, d)


@entry
def gla(n=2048, d=512, heads=4):
    """A decay of each key channel in each step, between projections. Keys are like queries: no result is near 0, where the norm would magnify its
    rounding."""
    def weights(rng):
        matrix = lambda out, into: uniform(rng, out, into) * np.float32(into**-0.5)
        found = {f"{at}.weight": matrix(out, d) for at, out in (("query", d // 2), ("key", d // 2), ("value", d), ("output", d), ("decay.0", 16))}
        found["key.weight"] = found["query.weight"] + np.float32(0.2) * found["key.weight"]
        return found | linear_weights(rng, "decay.1", d // 2, 16) | linear_weights(rng, "gate", d, d) | norm_weights(rng, "norm", d // heads)

    projections = 2.0 * n * (4 * d * d + 16 * d + 8 * d)
    return recurrent("linear/gla", f"N={n} D={d} H={heads}", projections + chunked(heads, n, d // 2 // heads, d // heads), rows(1, n, d), weights,
                     dict(B=1, N=n, D=d, heads=heads), dict(HEADS=heads))


@entry
def delta_rule(n=2048, h=8, e=16, f=64, d=512):
    """DPFP makes 4 E features. In chunks of 64 steps a step takes 3 multiply-adds for each element of the state, and 64 (4 E + F)."""
    more = lambda rng: dict(v=uniform(rng, 1, h, n, f), x=uniform(rng, 1, n, d))
    return recurrent("linear/delta-rule", f"N={n} E={4 * e} F={f} H={h}", 2.0 * h * n * (3 * 4 * e * f + 64 * (4 * e + f)) + 2.0 * n * d * h,
                     attended(1, h, n, e, more=more, names="qk"), lambda rng: linear_weights(rng, "beta", h, d), dict(B=1, H=h, N=n, E=e, F=f, D=d))
