"""The zoo's cases that are recurrences, and recurrences alone (models/recurrence.heed), group `recurrence`: see zoo_cases.py.

Of a linear attention operations are those of its chunked form with 64 steps, 2 E F + 65/2 (E + F) multiply-adds a step and head, its pairs once: the
form that the shares of the literature's kernels are given by. A step alone (N = 1) is what it reads and writes: weights, and a state beyond the
caches. Recurrences that are not the zoo's give and take their states, and all that they give is compared, with recurrence_oracles.py.
PyTorch has the same forms (systems/zoo_recurrence.py), LSTM and GRU of its own, as ONNX Runtime and OpenVINO do.
"""
import functools

from zoo_cases import FOUND, attended, entry, linear_weights, made, norm_weights, np, rows, uniform

EXP = 8  # multiply-adds that an exponential takes: a rounding, two to take it off, five of a polynomial


def each(*sizes):
    """A case for each of these keyword arguments."""
    def add(function):
        for size in sizes:
            FOUND.append(functools.update_wrapper(functools.partial(function, **size), function))
        return function

    return add


def chunked(h, n, e, f):
    return 2.0 * h * n * (2 * e * f + 32.5 * (e + f))


def recurrent(*arguments, **keywords):
    return made(*arguments, **keywords) | dict(group="recurrence")


def alone(key, what, flops, inputs, weights=None, sets=None):
    """A model of models/recurrence.heed."""
    return recurrent(key, what, flops, inputs, weights, sets) | dict(key=key, model=key.replace("-", "_"))


# --- linear attentions -------------------------------------------------------------------------------------------------

LONG = [dict(n=n, e=e) for n in (2048, 16384) for e in (64, 128)]


@each(*LONG)
def linear_attention_causal(n, e, h=8):
    """With its normaliser."""
    return recurrent("linear/linear-attention-causal", f"N={n} E={e} H={h}", chunked(h, n, e, e), attended(1, h, n, e), None, dict(B=1, H=h, N=n, E=e, F=e))


def retnet(h):
    return (1 - 2.0**(-5 - np.arange(h) % 8)).astype(np.float32)


@entry
def decayed_linear_attention(n=2048, h=8, e=64):
    """RetNet's decays, 1 - 2^(-5 - h), and a normaliser."""
    decays = lambda rng: {"decay": retnet(h)}
    return recurrent("linear/decayed-linear-attention", f"N={n} E={e} H={h}", chunked(h, n, e, e), attended(1, h, n, e, more=decays), None,
                     dict(B=1, H=h, N=n, E=e, F=e))


def decays(rng, least, *shape):
    """Logarithms of decays between this one and 1."""
    return np.log(rng.uniform(least, 1, shape)).astype(np.float32)


def of_state(key, b, h, n, e, flops, more):
    """A linear attention alone; one step of it is a case of another key, with its batch in its name."""
    what = f"N={n} E={e} H={h}" if n > 1 else f"B={b} E={e} H={h}"
    inputs = attended(b, h, n, e, more=lambda rng: more(rng) | {"S": uniform(rng, b, h, e, e)})
    found = alone(key, what, flops, inputs, None, dict(B=b, H=h, N=n, E=e, F=e))
    return found if n > 1 else found | dict(key=key + "-step")


def one_step(b, h, e, more=0):
    """Operations: a decay, a product's addition and a reading of each element of the state."""
    return b * h * e * e * (5.0 + more)


STEP = dict(n=1, e=128, b=32, h=32)  # 64 MiB of state


@each(*LONG, STEP)
def retention(n, e, h=8, b=1):
    flops = b * chunked(h, n, e, e) if n > 1 else one_step(b, h, e)
    return of_state("retention", b, h, n, e, flops, lambda rng: {"gamma": retnet(h)})


@each(*LONG)
def scalar_gates(n, e, h=8):
    return of_state("scalar-gates", 1, h, n, e, chunked(h, n, e, e), lambda rng: {"g": decays(rng, 0.8, 1, h, n)})


@each(*LONG[:2], STEP)
def channel_gates(n, e, h=8, b=1):
    """GLA's recurrence: sigmoid(x)^(1/16)."""
    flops = b * chunked(h, n, e, e) if n > 1 else one_step(b, h, e)
    return of_state("channel-gates", b, h, n, e, flops, lambda rng: {"g": decays(rng, 0.9, b, h, n, e)})


@each(*LONG[:2], STEP)
def gated_delta(n, e, h=8, b=1):
    """In chunks as delta_rule."""
    def more(rng):
        k, beta = uniform(rng, b, h, n, e), (uniform(rng, b, h, n) + np.float32(1)) / 2
        return {"k": k / np.linalg.norm(k, axis=-1, keepdims=True), "g": decays(rng, 0.8, b, h, n), "beta": beta}

    return of_state("gated-delta", b, h, n, e, 2.0 * h * n * (3 * e * e + 64 * 2 * e) if n > 1 else one_step(b, h, e, 2), more)


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


# --- cells with gates --------------------------------------------------------------------------------------------------

# 16 sentences of 1,024 steps of 1,024 units are left out: a run of it takes seconds.
SENTENCES = [dict(b=1, n=128, d=256), dict(b=1, n=1024, d=256), dict(b=16, n=128, d=256), dict(b=16, n=1024, d=256), dict(b=1, n=128, d=1024),
             dict(b=1, n=1024, d=1024), dict(b=16, n=128, d=1024)]


def cell_weights(rng, d, gates, names):
    return {name: uniform(rng, gates * d, *([d] if "weight" in name else [])) * np.float32(d**-0.5) for name in names}


@each(*SENTENCES)
def lstm(b, n, d):
    def inputs(rng):
        return dict(x=uniform(rng, b, n, d), h=uniform(rng, 1, b, d), c=uniform(rng, 1, b, d), length=np.full(b, n, np.int32))

    names = [f"layer.0.{name}" for name in ("weight_ih", "weight_hh", "bias")]
    return recurrent("recurrence/lstm", f"B={b} N={n} D={d}", 16.0 * b * n * d * d, inputs, lambda rng: cell_weights(rng, d, 4, names),
                     dict(layers=1, B=b, N=n, D=d, E=d), dict(LAYERS=1))


@entry
def lstm_step(b=1, d=2048):
    return lstm(b, 1, d) | dict(what=f"B={b} D={d}", key="lstm-step")


@each(*SENTENCES[:3], SENTENCES[4])
def gru(b, n, d):
    """The paper's, whose reset gate is before the matrix."""
    def inputs(rng):
        return dict(x=uniform(rng, b, n, d), h=uniform(rng, b, d), length=np.full(b, n, np.int32))

    names = [f"gru.{name}" for name in ("weight_ih", "weight_hh", "bias")]
    return recurrent("recurrence/gru", f"B={b} N={n} D={d}", 12.0 * b * n * d * d, inputs, lambda rng: cell_weights(rng, d, 3, names),
                     dict(B=b, N=n, D=d, E=d))


@each(*SENTENCES)
def gru_behind(b, n, d):
    """PyTorch's, whose reset gate is behind the matrix."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return alone("gru-behind", f"B={b} N={n} D={d}", 12.0 * b * n * d * d, lambda rng: dict(x=uniform(rng, b, n, d), h=uniform(rng, b, d)),
                 lambda rng: cell_weights(rng, d, 3, names), dict(B=b, N=n, D=d, E=d))


# --- Mamba -------------------------------------------------------------------------------------------------------------


def mamba_weights(rng, d, e, k=4):
    """As the paper begins: A = -1 .. -E, steps of 0.001 to 0.1. For 2 D channels."""
    c, r = 2 * d, -(-d // 16)
    matrix = lambda out, into: uniform(rng, out, into) * np.float32(into**-0.5)
    steps = np.exp(rng.uniform(np.log(0.001), np.log(0.1), c))
    return {"in_proj.weight": matrix(2 * c, d), "conv1d.weight": uniform(rng, c, 1, k), "conv1d.bias": uniform(rng, c),
            "x_proj.weight": matrix(r + 2 * e, c), "dt_proj.weight": matrix(c, r), "dt_proj.bias": np.float32(np.log(np.expm1(steps))),
            "out_proj.weight": matrix(d, c), "D": uniform(rng, c), "A_log": np.log(np.tile(np.arange(1, e + 1), (c, 1))).astype(np.float32)}


def selective(n, c, e, k=4):
    """Of an element of a state in a step: its decay's product and exponential, what is written (a product), the sum with what is kept, the reading;
    of a channel the convolution, and four exponentials (two SiLUs, a softplus with its logarithm)."""
    return 2.0 * n * c * (e * (EXP + 4) + k + 4 * EXP)


def projections(n, d, e):
    """in_proj, x_proj, dt_proj, out_proj."""
    c, r = 2 * d, -(-d // 16)
    return 2.0 * n * (d * 2 * c + c * (r + 2 * e) + r * c + c * d)


@entry
def mamba_scan(n=4096, c=2048, e=16):
    def inputs(rng):
        found = {name: uniform(rng, 1, n, c) for name in ("x", "z", "delta")} | {name: uniform(rng, 1, n, e) for name in "PQ"}
        return found | {"h": uniform(rng, 1, c, e)}

    def weights(rng):
        kept = ("conv1d.weight", "conv1d.bias", "dt_proj.bias", "D", "A_log")
        return {name: a for name, a in mamba_weights(rng, c // 2, e).items() if name in kept}

    return alone("mamba-scan", f"N={n} C={c} E={e}", selective(n, c, e), inputs, weights, dict(B=1, N=n, C=c, E=e))


@entry
def mamba(n=4096, d=1024, e=16):
    """The layer: most of its operations are its projections'."""
    return recurrent("recurrence/mamba", f"N={n} D={d} E={e}", projections(n, d, e) + selective(n, 2 * d, e), rows(1, n, d, "u"),
                     lambda rng: mamba_weights(rng, d, e), dict(B=1, N=n, D=d))


@entry
def mamba_step(b=1, d=2048, e=16, k=4):
    def inputs(rng):
        return {"u": uniform(rng, b, d), "window": uniform(rng, b, k, 2 * d), "h": uniform(rng, b, 2 * d, e)}

    flops = b * (projections(1, d, e) + selective(1, 2 * d, e))
    return alone("mamba-step", f"B={b} D={d} E={e}", flops, inputs, lambda rng: mamba_weights(rng, d, e), dict(B=b, D=d, E=e, K=k))


# --- prefixes ----------------------------------------------------------------------------------------------------------


def prefix(key, n, d):
    """Each element is read once and written once, as by a copy, whose time is the limit; beyond the caches."""
    return alone(key, f"{n}x{d}", n * d, lambda rng: {"x": uniform(rng, n, d)}, None, dict(N=n, D=d)) | dict(copies=True)


@entry
def prefix_sums_of_rows(n=16384, d=2048):
    return prefix("prefix-sums-of-rows", n, d)


@entry
def prefix_sums_over_rows(n=16384, d=2048):
    return prefix("prefix-sums-over-rows", n, d)


@entry
def log_sum_exp_of_rows(n=16384, d=2048):
    return prefix("log-sum-exp-of-rows", n, d)


@entry
def log_sum_exp_over_rows(n=16384, d=2048):
    return prefix("log-sum-exp-over-rows", n, d)
