"""What each case's mathematics gives, in float64 NumPy, and how far an f32 output may be from it.

Nothing here is fast, and nothing is shared with the systems that are measured. `answer` gives (output, largest |score|)."""
import math

import cases
import numpy as np
import zoo_cases

BLOCK = 256  # query rows at a time: of a long attention no matrix of all scores is stored
PEER = 10  # a peer may be off by so much more: nobody is left out for a shorter series of its exponential


def tolerance(largest_score):
    """Of |x - reference| / max |reference|: what f32 sums and an exponential of scores of that size allow."""
    return max(1e-5, 8 * 2.0**-24 * largest_score)


def difference(reference, given):
    """max |given - reference| / max |reference|; infinite where the shape is another, or something is not finite. Of several results the largest;
    `given` has them one behind the other."""
    if isinstance(reference, tuple):
        ends = np.cumsum([r.size for r in reference])
        return max(map(difference, reference, np.split(given.ravel(), ends[:-1]))) if given.size == ends[-1] else float("inf")
    if given.size != reference.size or given.dtype.kind != "f":
        return float("inf")
    parts = zip(np.array_split(reference.ravel(), 16), np.array_split(given.ravel(), 16))  # no third array of that size
    top = max(float(np.abs(reference).max()), 1e-30)
    worst = [float(np.abs(a - b.astype(np.float64)).max()) for a, b in parts if a.size]
    # Python's max drops a NaN, and none is above a bound.
    return max(worst) / top if np.isfinite(worst).all() else float("inf")


ROWWISE = ("gemm", "layer_norm", "rms_norm", "softmax", "chain", "encoder", "open", "embedding")  # of which a row of the result needs that row of each input alone


def answer(kind, params, inputs, weights, rows=None):
    """`rows`: of these alone, of attentions queries, of what is ROWWISE along the first axis; None: all."""
    if rows is not None and kind in ROWWISE:
        inputs = {name: a[rows] for name, a in inputs.items()}
    wide = {name: a.astype(np.float64) if a.dtype.kind == "f" else a for name, a in inputs.items()}
    held = {name.removeprefix("bert."): a.astype(np.float64) for name, a in weights.items() if a.dtype.kind == "f"}
    if kind == "attention" and rows is not None:
        params = {**params, "rows": rows}
    return KINDS[kind](params, wide, held)


def softmax(s):
    """Along the last axis, in place; -inf are masked."""
    s -= s.max(-1, keepdims=True)
    np.exp(s, out=s)
    s /= s.sum(-1, keepdims=True)
    return s


def attention(p, x, _):
    one = x["q"].ndim == 3
    q, k, v = x["q"][:, :, None] if one else x["q"], x["k"], x["v"]
    wanted = p.get("rows", np.arange(p["N"]))
    q = q[:, :, wanted]
    share, out, largest = p["H"] // p["G"], np.empty_like(q), 0.0
    for b, h, first in np.ndindex(p["B"], p["H"], -(-len(wanted) // BLOCK)):
        rows = slice(first * BLOCK, (first + 1) * BLOCK)
        i, j = wanted[rows, None], np.arange(p["M"])[None, :]
        s = q[b, h, rows] @ k[b, h // share].T
        if "relative" in p:
            offset = np.clip(j - i, -p["relative"], p["relative"]) + p["relative"]
            s += np.take_along_axis(q[b, h, rows] @ x["ak"].T, offset, 1)
        s /= math.sqrt(p["E"])
        if "cap" in p:
            s = p["cap"] * np.tanh(s / p["cap"]) - 2.0 ** (-8.0 * (h + 1) / p["H"]) * (i - j)
        live = cases.sees(p, x.get("document"), i, j)
        if live is not None:
            s[~np.broadcast_to(live, s.shape)] = -np.inf
        largest = max(largest, float(np.abs(s[np.isfinite(s)]).max()))
        w = softmax(s)
        out[b, h, rows] = w @ v[b, h // share]
        if "relative" in p:
            of = np.zeros((len(w), 2 * p["relative"] + 1))
            for n, (weights, columns) in enumerate(zip(w, offset)):
                of[n] = np.bincount(columns, weights, of.shape[1])
            out[b, h, rows] += of @ x["av"]
    return (out[:, :, 0] if one else out), largest


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + np.exp(-x))


def gemm(p, x, w):
    y = x["x"] @ w["weight"].T
    if p["epilogue"] == "swiglu":
        y *= silu(x["x"] @ w["gate"].T)
    if "bias" in w:
        y += w["bias"]
    if p["epilogue"] == "bias_residual":
        y += x["r"]
    return {"bias_gelu": gelu, "bias_gelu_tanh": gelu_tanh}.get(p["epilogue"], lambda y: y)(y), 0.0


def norm(x, scale, shift, eps):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * scale + shift


def layer_norm(p, x, w):
    return norm(x["x"], w["norm.weight"], w["norm.bias"], p["eps"]), 0.0


def rms_norm(p, x, w):
    return x["x"] / np.sqrt((x["x"]**2).mean(-1, keepdims=True) + p["eps"]) * w["norm.weight"], 0.0


def softmax_rows(_, x, w):
    return softmax(x["x"].copy()), float(np.abs(x["x"]).max())


def rotary(_, x, w):
    a, b = np.split(x["x"], 2, -1)
    return np.concatenate((a * x["c"] - b * x["s"], b * x["c"] + a * x["s"]), -1), 0.0


def chain(_, x, w):
    return np.maximum(silu(x["x"]) * x["y"] + x["z"], 0) * 0.5 + np.tanh(x["z"]), 0.0


def linear(_, x, w):
    """Feature map elu + 1, which is exp below 0."""
    q, k = (np.where(a > 0, a + 1, np.exp(np.minimum(a, 0))) for a in (x["q"], x["k"]))
    return q @ (k.swapaxes(-1, -2) @ x["v"]) / (q @ k.sum(-2)[..., None]), 0.0


def embedding(_, x, w):
    """Ids of 0 are padding."""
    return np.where(x["id"][..., None] != 0, w["embedding.weight"][x["id"]], 0), 0.0


def smoothing(_, x, w):
    """Each turn the mean of two neighbours, in a ring."""
    y = x["x"]
    for _ in range(int(x["L"])):
        y = 0.5 * (y + np.roll(y, -1, 1))
    return y, 0.0


def encoder(p, x, w):
    """BERT; every position is real."""
    ids, largest = x["ids"], 0.0
    b, n = ids.shape

    def normed(y, at):
        return norm(y, w[at + ".weight"], w[at + ".bias"], p["eps"])

    def dense(y, at):
        return y @ w[at + ".weight"].T + w[at + ".bias"]

    y = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][:n] + w["embeddings.token_type_embeddings.weight"][0]
    y = normed(y, "embeddings.LayerNorm")
    for layer in range(p["L"]):
        at = f"encoder.layer.{layer}."
        q, k, v = (dense(y, at + f"attention.self.{name}").reshape(b, n, p["H"], -1).swapaxes(1, 2) for name in ("query", "key", "value"))
        s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        largest = max(largest, float(np.abs(s).max()))
        a = (softmax(s) @ v).swapaxes(1, 2).reshape(b, n, -1)
        y = normed(y + dense(a, at + "attention.output.dense"), at + "attention.output.LayerNorm")
        y = normed(y + dense(gelu(dense(y, at + "intermediate.dense")), at + "output.dense"), at + "output.LayerNorm")
    return y, largest


KINDS = {"attention": attention, "gemm": gemm, "layer_norm": layer_norm, "rms_norm": rms_norm, "softmax": softmax_rows, "rotary": rotary,
         "chain": chain, "linear": linear, "encoder": encoder, "embedding": embedding,
         "open": encoder, "launch": smoothing, "zoo": zoo_cases.answer}
