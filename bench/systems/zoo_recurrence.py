"""The zoo's recurrences in PyTorch: see zoo_torch.py. Linear attention in chunks, all of them at once: products within a chunk, and the states before the
chunks as a sum of what each chunk adds."""
import torch
import torch.nn.functional as F

from systems.zoo_torch import equations, tables

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
