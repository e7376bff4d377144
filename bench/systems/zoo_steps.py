"""Recurrences in PyTorch that go from step to step, and single steps of others: see zoo_torch.py. A loop over many steps is not compiled as a whole,
which takes minutes: a step or a block of steps is, and called again and again."""
import torch
import torch.nn.functional as F

from systems.zoo_torch import another_way, equations, linear

BLOCK = 16  # steps of a compiled block


def compiled(function):
    return torch.compile(function, dynamic=False)


# --- cells with gates --------------------------------------------------------------------------------------------------


@equations("lstm")
def lstm(x, w, p):
    bias = w["layer.0.bias"]
    weights = [w["layer.0.weight_ih"], w["layer.0.weight_hh"], bias, torch.zeros_like(bias)]
    return torch.lstm(x["x"], (x["h"], x["c"]), weights, True, 1, 0.0, False, False, True)


@equations("lstm-step")
def lstm_step(x, w, p):
    """Two products, and what is between them and the state."""
    h, c = x["h"][0], x["c"][0]
    i, f, g, o = (F.linear(x["x"][:, 0], w["layer.0.weight_ih"], w["layer.0.bias"]) + F.linear(h, w["layer.0.weight_hh"])).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return h[:, None], h[None], c[None]


@another_way("lstm-step")
def lstm_step_operator(x, w, p):
    return {"lstm": lambda: lambda: lstm(x, w, p)}


def loop(step, x, weight, bias):
    """The products of inputs at once."""
    def run():
        h, y = x["h"], []
        for row in F.linear(x["x"], weight, bias).unbind(1):
            h = step(row, h)
            y.append(h)
        return torch.stack(y, 1), h

    return run


@another_way("gru-behind")
def gru_behind(x, w, p):
    """The operator is not compiled: that makes its steps a loop of its own, and unrolls it."""
    weights = [w[name] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    u = w["weight_hh"].T.contiguous()

    def operator():
        y, h = torch.gru(x["x"], x["h"][None], weights, True, 1, 0.0, False, False, True)
        return y, h[0]

    def step(row, h):
        (r, z, n), (hr, hz, hn) = row.chunk(3, -1), torch.addmm(w["bias_hh"], h, u).chunk(3, -1)
        return torch.lerp((n + (r + hr).sigmoid() * hn).tanh(), h, (z + hz).sigmoid())

    return {"gru": lambda: operator, "compiled steps": lambda: loop(compiled(step), x, weights[0], weights[2])}


@another_way("gru")
def gru(x, w, p):
    u, e = w["gru.weight_hh"], p["E"]
    gates, candidate = u[: 2 * e].T.contiguous(), u[2 * e :].T.contiguous()

    def step(row, h):
        r, z = (row[:, : 2 * e] + h @ gates).sigmoid().chunk(2, -1)
        return torch.lerp(h, (row[:, 2 * e :] + (r * h) @ candidate).tanh(), z)

    return {name: lambda run=run: loop(run(), x, w["gru.weight_ih"], w["gru.bias"])
            for name, run in (("steps", lambda: step), ("compiled steps", lambda: compiled(step)))}


# --- Mamba -------------------------------------------------------------------------------------------------------------


def convolved(x, w):
    """Causal, each channel by itself."""
    taps, (n, c) = w["conv1d.weight"], x.shape[1:]
    return F.silu(F.conv1d(x.mT, taps, w["conv1d.bias"], padding=taps.shape[2] - 1, groups=c)[..., :n].mT)


def before(x, delta, P, Q, A, h):
    """Steps in blocks: sums of what they write, over its decay; then the states before the blocks, in a tree."""
    x, delta, P, Q = (t.unflatten(1, (-1, min(BLOCK, t.shape[1]))) for t in (x, delta, P, Q))
    total = (delta[..., None] * A).cumsum(2)
    within = ((delta * x)[..., None] * P[..., None, :] * (-total).exp()).cumsum(2) * total.exp()
    gone, S = total[:, :, -1].exp(), within[:, :, -1]
    S = torch.cat([gone[:, :1] * h[:, None] + S[:, :1], S[:, 1:]], 1)
    reach = 1
    while reach < S.shape[1]:
        S = torch.cat([S[:, :reach], S[:, reach:] + gone[:, reach:] * S[:, :-reach]], 1)
        gone = torch.cat([gone[:, :reach], gone[:, reach:] * gone[:, :-reach]], 1)
        reach *= 2
    first = torch.cat([h[:, None], S[:, :-1]], 1)
    y = ((within + total.exp() * first[:, :, None]) * Q[..., None, :]).sum(-1)
    return y.flatten(1, 2), S[:, -1]


def block(x, delta, P, Q, A, h):
    """Steps of one sentence, channels last: h is E x C. Its elements are one kernel, its readings a product."""
    states = []
    for t in range(x.shape[0]):
        h = (delta[t] * A).exp() * h + (delta[t] * x[t]) * P[t, :, None]
        states.append(h)
    return torch.bmm(Q[:, None], torch.stack(states))[:, 0], h


def in_blocks(run, steps, x, delta, P, Q, A, h):
    A, h, y = A.T.contiguous(), h[0].T.contiguous(), []
    for part in zip(*(t[0].split(steps) for t in (x, delta, P, Q))):
        o, h = run(*part, A, h)
        y.append(o)
    return torch.cat(y)[None], h.T[None]


def between(u, x, w):
    """What the selective scan reads, of mamba-scan."""
    return u, F.softplus(x["delta"] + w["dt_proj.bias"]), x["P"], x["Q"], -w["A_log"].exp(), x["h"]


@equations("mamba-scan")
def mamba_scan(x, w, p):
    u = convolved(x["x"], w)
    y, h = before(*between(u, x, w))
    return (y + w["D"] * u) * F.silu(x["z"]), h


def split(xz, w):
    """The same of the layer, and the gate's input."""
    x, z = xz.chunk(2, -1)
    u, e = convolved(x, w), w["A_log"].shape[1]
    low, P, Q = linear(u, w, "x_proj").split([w["x_proj.weight"].shape[0] - 2 * e, e, e], -1)
    return z, (u, F.softplus(linear(low, w, "dt_proj")), P, Q, -w["A_log"].exp(), torch.zeros(len(u), *w["A_log"].shape))


def gated(y, u, z, w):
    return (y + w["D"] * u) * F.silu(z)


@equations("mamba")
def mamba(x, w, p):
    z, scanned = split(linear(x["u"], w, "in_proj"), w)
    y, _ = before(*scanned)
    return linear(gated(y, scanned[0], z, w), w, "out_proj")


@another_way("mamba-scan")
def mamba_scan_blocks(x, w, p):
    def make(steps):
        run, first, last = compiled(block), compiled(lambda x, w: between(convolved(x["x"], w), x, w)), compiled(gated)

        def call():
            scanned = first(x, w)
            y, h = in_blocks(run, steps, *scanned)
            return last(y, scanned[0], x["z"], w), h

        return call

    return {f"compiled, {steps} steps": lambda steps=steps: make(steps) for steps in (BLOCK // 2, BLOCK)}


@another_way("mamba")
def mamba_blocks(x, w, p):
    def make(steps):
        run, first, last = compiled(block), compiled(split), compiled(gated)

        def call():
            z, scanned = first(linear(x["u"], w, "in_proj"), w)
            y, _ = in_blocks(run, steps, *scanned)
            return linear(last(y, scanned[0], z, w), w, "out_proj")

        return call

    return {f"compiled, {steps} steps": lambda steps=steps: make(steps) for steps in (BLOCK // 2, BLOCK)}


@equations("mamba-step")
def mamba_step(x, w, p):
    taps, e = w["conv1d.weight"], w["A_log"].shape[1]
    new, z = linear(x["u"], w, "in_proj").chunk(2, -1)
    window = torch.cat([x["window"][:, 1:], new[:, None]], 1)
    u = F.silu((window * taps[:, 0].T).sum(1) + w["conv1d.bias"])
    low, P, Q = linear(u, w, "x_proj").split([w["x_proj.weight"].shape[0] - 2 * e, e, e], -1)
    delta = F.softplus(linear(low, w, "dt_proj"))
    h = (-delta[..., None] * w["A_log"].exp()).exp() * x["h"] + (delta * u)[..., None] * P[:, None]
    return linear(gated((h * Q[:, None]).sum(-1), u, z, w), w, "out_proj"), window, h


# --- steps of linear attentions ----------------------------------------------------------------------------------------


def written(x, decay):
    S = decay * x["S"] + x["k"].mT * x["v"]
    return x["q"] @ S, S


def corrected(x, decay):
    """What the state holds for the key and for the query, in one product."""
    held, seen = (torch.cat([x["k"], x["q"]], 2) @ x["S"] * decay).split(1, 2)
    d = x["beta"][..., None] * (x["v"] - held)
    return seen + (x["q"] * x["k"]).sum(-1, keepdim=True) * d, decay * x["S"] + x["k"].mT * d


STEPS = {"retention-step": (written, lambda x: x["gamma"][:, None, None]), "channel-gates-step": (written, lambda x: x["g"].mT.exp()),
         "gated-delta-step": (corrected, lambda x: x["g"][..., None].exp())}


def step(key):
    function, decay = STEPS[key]

    @equations(key)
    def run(x, w, p):
        return function(x, decay(x))

    @another_way(key)
    def in_place(x, w, p):
        """The new state where one was before: nothing is allocated."""
        def make():
            S = torch.empty_like(x["S"])

            def write(x, S):
                o, new = function(x, decay(x))
                S.copy_(new)
                return o

            run = compiled(write)
            return lambda: (run(x, S), S)

        return {"compiled, in place": make}


for name in STEPS:
    step(name)
