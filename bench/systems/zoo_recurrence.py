"""The zoo's recurrences in PyTorch: see zoo_torch.py. Linear attention in chunks, all of them at once: products within a chunk, and the states before the
chunks as a sum of what each chunk adds."""
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


@equations("lstm")
def lstm(x, w, p):
    bias = w["layer.0.bias"]
    y, _, _ = torch.lstm(x["x"], (x["h"], x["c"]), [w["layer.0.weight_ih"], w["layer.0.weight_hh"], bias, torch.zeros_like(bias)], True, 1, 0.0,
                         False, False, True)
    return y


def states(gone, added):
    """What is there before each chunk: S' = gone S + added."""
    found = [torch.zeros_like(added[:, :, 0])]
    for c in range(added.shape[2] - 1):
        found.append(gone[:, :, c] * found[-1] + added[:, :, c])
    return torch.stack(found, 2)


@equations("gla")
def gla(x, w, p):
    """Decays as differences of their sums within a chunk: exp(c_i) and exp(-c_j) apart, which 64 steps of alpha^(1/16) allow."""
    x = x["x"]
    one = lambda at: split(linear(x, w, at), p["heads"])
    rate = F.logsigmoid(split(linear(linear(x, w, "decay.0"), w, "decay.1"), p["heads"])) / 16
    q, k, v, rate = (chunks(t) for t in (one("query"), one("key"), one("value"), rate))
    total = rate.cumsum(-2)
    last = total[..., -1:, :]
    reading = q * total.exp()
    pairs = (reading @ (k * (-total).exp()).mT).tril()
    before = states(last.mT.exp(), (k * (last - total).exp()).mT @ v)
    o = (pairs @ v + reading @ before).flatten(2, 3)
    return linear(F.silu(linear(x, w, "gate")) * merge(layer_norm(o, w, "norm")), w, "output")


def dpfp(x):
    r = torch.cat([x, -x], -1).relu()
    y = torch.cat([r * r.roll(-1, -1), r * r.roll(-2, -1)], -1)
    return y / y.sum(-1, keepdim=True)


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
