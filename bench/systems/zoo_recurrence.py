"""Recurrences in PyTorch: see zoo_torch.py; what goes from step to step there is in zoo_steps.py. Linear attention in chunks, all of them at once:
products within a chunk, and the states before the chunks as a sum of what each chunk adds."""
import torch
import torch.nn.functional as F

from systems.zoo_torch import equations, layer_norm, linear, merge, split, tables

CHUNK = 64


def chunks(x):
    return x.unflatten(2, (-1, min(CHUNK, x.shape[2])))


def phi(x):
    return F.elu(x) + 1


@equations("linear-attention-causal")
def linear_attention(x, w, p):
    q, k, v = chunks(phi(x["q"])), chunks(phi(x["k"])), chunks(x["v"])
    a = (q @ k.mT).tril()
    added, sums = k.mT @ v, k.sum(-2)
    before, seen = added.cumsum(2) - added, sums.cumsum(2) - sums
    o = a @ v + q @ before
    z = a.sum(-1) + (q @ seen[..., None])[..., 0]
    return (o / z[..., None]).flatten(2, 3)


@tables("decayed-linear-attention")
def decays(x, w, p):
    n, decay = x["q"].shape[2], x["decay"]
    c = min(CHUNK, n)
    i, j = torch.arange(c), torch.arange(n // c)
    power = lambda exponent: torch.where(exponent >= 0, decay.view(-1, *[1] * exponent.dim()) ** exponent.clamp(min=0), 0)
    return dict(pairs=power(i[:, None] - i), rest=power(c - 1 - i), gone=power(i + 1), chunks=power(c * (j[:, None] - 1 - j)))


@equations("decayed-linear-attention")
def decayed(x, w, p):
    q, k, v = chunks(phi(x["q"])), chunks(phi(x["k"])), chunks(x["v"])
    a = (q @ k.mT) * w["pairs"][:, None]
    left = k * w["rest"][:, None, :, None]
    added, sums = left.mT @ v, left.sum(-2)
    before = (w["chunks"] @ added.flatten(3)).unflatten(3, added.shape[3:])
    seen = w["chunks"] @ sums
    gone = w["gone"][:, None]
    o = a @ v + (q @ before) * gone[..., None]
    z = a.sum(-1) + (q @ seen[..., None])[..., 0] * gone
    return (o / z[..., None]).flatten(2, 3)


def states(gone, added, S):
    """What is there before each chunk, and after the last: S' = gone S + added."""
    found = [S]
    for c in range(added.shape[2]):
        found.append(gone[:, :, c] * found[-1] + added[:, :, c])
    return torch.stack(found[:-1], 2), found[-1]


def of_head(q, k, v, pairs, left, gone, S):
    """A decay of a head: of each pair of a chunk, from a step to the chunk's end, from the chunk's begin to a step."""
    before, S = states(gone[..., -1:, None], (k * left[..., None]).mT @ v, S)
    return (((q @ k.mT) * pairs) @ v + (q * gone[..., None]) @ before).flatten(2, 3), S


@tables("retention")
def retention_table(x, w, p):
    c = min(CHUNK, x["q"].shape[2])
    i, gamma = torch.arange(c), x["gamma"].view(-1, 1, 1)
    shape = (1, len(gamma), x["q"].shape[2] // c, c)
    return dict(pairs=torch.where(i[:, None] >= i, (gamma[..., None]**(i[:, None] - i).clamp(min=0)), 0)[None], left=gamma**(c - 1 - i),
                gone=(gamma**(i + 1)).expand(shape))


@equations("retention")
def retention(x, w, p):
    return of_head(chunks(x["q"]), chunks(x["k"]), chunks(x["v"]), w["pairs"], w["left"], w["gone"], x["S"])


def ratios(total):
    """exp(c_i - c_j) of each pair, j <= i."""
    return (total[..., :, None] - total[..., None, :]).exp().tril()


@equations("scalar-gates")
def scalar_gates(x, w, p):
    total = chunks(x["g"]).cumsum(-1)
    return of_head(chunks(x["q"]), chunks(x["k"]), chunks(x["v"]), ratios(total), (total[..., -1:] - total).exp(), total.exp(), x["S"])


def of_channel(q, k, v, rate, S):
    """Decays as differences of their sums within a chunk: exp(c_i) and exp(-c_j) apart, which 64 steps of alpha^(1/16) allow."""
    total = rate.cumsum(-2)
    last = total[..., -1:, :]
    reading = q * total.exp()
    pairs = (reading @ (k * (-total).exp()).mT).tril()
    before, S = states(last.mT.exp(), (k * (last - total).exp()).mT @ v, S)
    return (pairs @ v + reading @ before).flatten(2, 3), S


@equations("channel-gates")
def channel_gates(x, w, p):
    return of_channel(chunks(x["q"]), chunks(x["k"]), chunks(x["v"]), chunks(x["g"]), x["S"])


@equations("gla")
def gla(x, w, p):
    x = x["x"]
    one = lambda at: split(linear(x, w, at), p["heads"])
    rate = F.logsigmoid(split(linear(linear(x, w, "decay.0"), w, "decay.1"), p["heads"])) / 16
    q, k, v, rate = (chunks(t) for t in (one("query"), one("key"), one("value"), rate))
    o, _ = of_channel(q, k, v, rate, torch.zeros(*q.shape[:2], q.shape[-1], v.shape[-1]))
    return linear(F.silu(linear(x, w, "gate")) * merge(layer_norm(o, w, "norm")), w, "output")


def dpfp(x):
    r = torch.cat([x, -x], -1).relu()
    y = torch.cat([r * r.roll(-1, -1), r * r.roll(-2, -1)], -1)
    return y / y.sum(-1, keepdim=True)


def corrected(q, k, v, beta, total, W):
    """Chunks in the WY form: what a chunk writes is u - (what W holds) r, of one triangular system. `total`: sums of the logarithms of decays."""
    gone, within = total.exp()[..., None], ratios(total)
    written = k * beta
    system = ((written @ k.mT) * within).tril(-1) + torch.eye(k.shape[-2])
    right = torch.cat([v * beta, written * gone], -1)
    u, r = torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True).split([v.shape[-1], k.shape[-1]], -1)
    pairs, reading, left = (q @ k.mT) * within, q * gone, k * (total[..., -1:] - total).exp()[..., None]
    o = []
    for c in range(k.shape[2]):
        new = u[:, :, c] - r[:, :, c] @ W
        o.append(reading[:, :, c] @ W + pairs[:, :, c] @ new)
        W = gone[:, :, c, -1:] * W + left[:, :, c].mT @ new
    return torch.cat(o, 2), W


@equations("delta-rule")
def delta_rule(x, w, p):
    """Chunks in the WY form: what a chunk writes is u - (what W holds) r, of one triangular system."""
    beta = chunks(linear(x["x"], w, "beta").sigmoid().mT[..., None])
    q, k, v = chunks(dpfp(x["q"])), chunks(dpfp(x["k"])), chunks(x["v"])
    written = k * beta
    system = (written @ k.mT).tril(-1) + torch.eye(k.shape[-2])
    u, r = torch.linalg.solve_triangular(system, torch.cat([v * beta, written], -1), upper=False, unitriangular=True).split([v.shape[-1], k.shape[-1]], -1)
    pairs = (q @ k.mT).tril()
    W, o = torch.zeros(*k.shape[:2], k.shape[-1], v.shape[-1]), []
    for c in range(k.shape[2]):
        new = u[:, :, c] - r[:, :, c] @ W
        o.append(q[:, :, c] @ W + pairs[:, :, c] @ new)
        W = W + k[:, :, c].mT @ new
    return torch.cat(o, 2)


@equations("gated-delta")
def gated_delta(x, w, p):
    return corrected(chunks(x["q"]), chunks(x["k"]), chunks(x["v"]), chunks(x["beta"])[..., None], chunks(x["g"]).cumsum(-1), x["S"])


@equations("prefix-sums-of-rows")
def sums_of_rows(x, w, p):
    return x["x"].cumsum(1)


@equations("prefix-sums-over-rows")
def sums_over_rows(x, w, p):
    return x["x"].cumsum(0)


@equations("log-sum-exp-of-rows")
def log_sum_exp_of_rows(x, w, p):
    return x["x"].logcumsumexp(1)


@equations("log-sum-exp-over-rows")
def log_sum_exp_over_rows(x, w, p):
    return x["x"].logcumsumexp(0)
