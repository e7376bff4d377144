"""What recurrences of the bench give in float64, all results of them: models/recurrence.heed, and systems of the zoo whose own oracle takes long at
these sizes. Step by step, as the papers write them, of arrays in float64."""
import numpy as np

ORACLES = {}  # key -> f(inputs, weights): the results, in the model's order


def oracle(*keys):
    def add(function):
        ORACLES.update(dict.fromkeys(keys, function))
        return function

    return add


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def softplus(x):
    return np.logaddexp(0, x)


def phi(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def read(q, S):
    """q S: B x H x E, B x H x E x F."""
    return (q[:, :, None] @ S)[:, :, 0]


def linear(q, k, v, decay, S):
    """(rows, the last state) of S = decay S + k v; `decay` is B x H x N x 1 or x E."""
    o = np.empty(v.shape)
    for t in range(q.shape[2]):
        S = decay[:, :, t, :, None] * S + k[:, :, t, :, None] * v[:, :, t, None]
        o[:, :, t] = read(q[:, :, t], S)
    return o, S


@oracle("linear-attention-causal")
def linear_attention(x, w):
    """A column of ones among the values sums the keys."""
    q, k, v = x["q"], x["k"], x["v"]
    o, _ = linear(phi(q), phi(k), np.concatenate([v, np.ones((*v.shape[:3], 1))], -1), np.ones((1, 1, q.shape[2], 1)), 0.0)
    return (o[..., :-1] / o[..., -1:],)


@oracle("retention", "retention-step")
def retention(x, w):
    return linear(x["q"], x["k"], x["v"], np.broadcast_to(x["gamma"][None, :, None, None], (*x["q"].shape[:3], 1)), x["S"])


@oracle("scalar-gates")
def scalar_gates(x, w):
    return linear(x["q"], x["k"], x["v"], np.exp(x["g"])[..., None], x["S"])


@oracle("channel-gates", "channel-gates-step")
def channel_gates(x, w):
    return linear(x["q"], x["k"], x["v"], np.exp(x["g"]), x["S"])


@oracle("gated-delta", "gated-delta-step")
def gated_delta(x, w):
    S, o = x["S"], np.empty(x["v"].shape)
    for t in range(x["q"].shape[2]):
        k = x["k"][:, :, t]
        S = np.exp(x["g"])[:, :, t, None, None] * S
        S = S + k[..., None] * (x["beta"][:, :, t, None] * (x["v"][:, :, t] - read(k, S)))[:, :, None]
        o[:, :, t] = read(x["q"][:, :, t], S)
    return o, S


def selective(x, delta, A, P, Q, h):
    y = np.empty(x.shape)
    for t in range(x.shape[1]):
        h = np.exp(delta[:, t, :, None] * A) * h + (delta[:, t] * x[:, t])[..., None] * P[:, t, None]
        y[:, t] = (h @ Q[:, t, :, None])[..., 0]
    return y, h


def convolved(x, w):
    """`x`: the rows before the first too, as many as the convolution reaches back."""
    taps = w["conv1d.weight"][:, 0]
    n = x.shape[1] - taps.shape[1] + 1
    return silu(sum(x[:, j : j + n] * taps[:, j] for j in range(taps.shape[1])) + w["conv1d.bias"])


def behind(x, w):
    return np.pad(x, ((0, 0), (w["conv1d.weight"].shape[2] - 1, 0), (0, 0)))


@oracle("mamba-scan")
def mamba_scan(x, w):
    u = convolved(behind(x["x"], w), w)
    y, h = selective(u, softplus(x["delta"] + w["dt_proj.bias"]), -np.exp(w["A_log"]), x["P"], x["Q"], x["h"])
    return (y + w["D"] * u) * silu(x["z"]), h


def mamba_layer(xz, before, w, h):
    """Of the rows behind in_proj, and rows before them for the convolution."""
    c, e = w["A_log"].shape
    u = convolved(np.concatenate([before, xz[..., :c]], 1), w)
    low, P, Q = np.split(u @ w["x_proj.weight"].T, [-2 * e, -e], -1)
    y, h = selective(u, softplus(low @ w["dt_proj.weight"].T + w["dt_proj.bias"]), -np.exp(w["A_log"]), P, Q, h)
    return ((y + w["D"] * u) * silu(xz[..., c:])) @ w["out_proj.weight"].T, h


@oracle("mamba")
def mamba(x, w):
    xz = x["u"] @ w["in_proj.weight"].T
    c, e = w["A_log"].shape
    return mamba_layer(xz, np.zeros((len(xz), w["conv1d.weight"].shape[2] - 1, c)), w, np.zeros((len(xz), c, e)))[:1]


@oracle("mamba-step")
def mamba_step(x, w):
    xz, kept = (x["u"] @ w["in_proj.weight"].T)[:, None], x["window"][:, 1:]
    y, h = mamba_layer(xz, kept, w, x["h"])
    return y[:, 0], np.concatenate([kept, xz[..., : kept.shape[2]]], 1), h


@oracle("gru-behind")
def gru_behind(x, w):
    h, y = x["h"], np.empty((*x["x"].shape[:2], x["h"].shape[1]))
    rows = x["x"] @ w["weight_ih"].T + w["bias_ih"]
    for t in range(rows.shape[1]):
        r, z, n = np.split(rows[:, t], 3, -1)
        hr, hz, hn = np.split(h @ w["weight_hh"].T + w["bias_hh"], 3, -1)
        z = sigmoid(z + hz)
        h = y[:, t] = (1 - z) * np.tanh(n + sigmoid(r + hr) * hn) + z * h
    return y, h


@oracle("gru")
def gru(x, w):
    """All sentences as long as the longest."""
    h, y = x["h"], np.empty((*x["x"].shape[:2], x["h"].shape[1]))
    rows, (ur, uz, un) = x["x"] @ w["gru.weight_ih"].T + w["gru.bias"], np.split(w["gru.weight_hh"], 3)
    for t in range(rows.shape[1]):
        r, z, n = np.split(rows[:, t], 3, -1)
        r, z = sigmoid(r + h @ ur.T), sigmoid(z + h @ uz.T)
        h = y[:, t] = (1 - z) * h + z * np.tanh(n + (r * h) @ un.T)
    return y, h


@oracle("lstm", "lstm-step")
def lstm(x, w):
    """One layer; all sentences as long as the longest."""
    h, c, y = x["h"][0], x["c"][0], np.empty((*x["x"].shape[:2], x["h"].shape[2]))
    rows = x["x"] @ w["layer.0.weight_ih"].T + w["layer.0.bias"]
    for t in range(rows.shape[1]):
        i, f, g, o = np.split(rows[:, t] + h @ w["layer.0.weight_hh"].T, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = y[:, t] = sigmoid(o) * np.tanh(c)
    return y, h[None], c[None]


@oracle("prefix-sums-of-rows")
def sums_of_rows(x, w):
    return (np.cumsum(x["x"], 1),)


@oracle("prefix-sums-over-rows")
def sums_over_rows(x, w):
    return (np.cumsum(x["x"], 0),)


@oracle("log-sum-exp-of-rows")
def log_sum_exp_of_rows(x, w):
    return (np.logaddexp.accumulate(x["x"], 1),)


@oracle("log-sum-exp-over-rows")
def log_sum_exp_over_rows(x, w):
    return (np.logaddexp.accumulate(x["x"], 0),)
