"""Attentions of the zoo in PyTorch: relative terms, scores of another form, priors, patterns. See zoo_torch.py."""
import math

import torch
import torch.nn.functional as F
from systems.zoo_torch import another_way, equations, layer_norm, linear, merge, multi_head, offsets, project, split, tables

sdpa = F.scaled_dot_product_attention


def flex(score=None, keep=None, shape=None):
    """name -> FlexAttention, compiled; its table of blocks is made before anything is timed."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def make(x):
        block = create_block_mask(keep, None, None, *shape, device="cpu") if keep else None
        run = torch.compile(flex_attention, dynamic=False)
        return lambda: run(x["q"], x["k"], x["v"], score_mod=score, block_mask=block)

    return make


def t5_buckets(n, m, k, span=128):
    half, exact = k // 2, k // 4
    offset = offsets(n, m)
    r = offset.abs()
    far = exact + (torch.log(r.clamp(min=1).double() / exact) / math.log(span / exact) * exact).int()
    return (offset > 0) * half + torch.where(r < exact, r, far.clamp(max=half - 1))


@tables("t5-bias")
def t5_table(x, w, p):
    return {"bucket": t5_buckets(x["q"].shape[2], x["k"].shape[2], len(x["table"]))}


@equations("t5-bias")
def t5_bias(x, w, p):
    return sdpa(x["q"], x["k"], x["v"], attn_mask=x["table"][w["bucket"]].permute(2, 0, 1)[None], scale=1.0)


@another_way("t5-bias")
def t5_flex(x, w, p):
    n, m = x["q"].shape[2], x["k"].shape[2]
    bucket, table = t5_buckets(n, m, len(x["table"])), x["table"]
    scaled = {**x, "q": x["q"] * math.sqrt(x["q"].shape[3])}
    return {"FlexAttention": lambda: flex(lambda s, b, h, i, j: s + table[bucket[i, j], h])(scaled)}


def slopes(heads):
    return 2.0**(-8 * (torch.arange(heads) + 1) / heads)


@tables("alibi")
def alibi_table(x, w, p):
    heads, n = x["q"].shape[1:3]
    offset = offsets(n)
    return {"bias": torch.where(offset <= 0, slopes(heads)[:, None, None] * offset, -math.inf)[None]}


@equations("alibi")
def alibi(x, w, p):
    return sdpa(x["q"], x["k"], x["v"], attn_mask=w["bias"])


@another_way("alibi")
def alibi_flex(x, w, p):
    heads, n = x["q"].shape[1:3]
    slope = slopes(heads)
    make = flex(lambda s, b, h, i, j: s - slope[h] * (i - j), lambda b, h, i, j: j <= i, (n, n))
    return {"FlexAttention": lambda: make(x)}


@tables("deberta")
def deberta_table(x, w, p):
    b, n = x["h"].shape[:2]
    reach = len(w["rel_embeddings.weight"]) // 2
    return {"delta": (-offsets(n) + reach).clamp(0, 2 * reach - 1)[None, None].expand(b, p["heads"], n, n)}


@equations("deberta")
def deberta(x, w, p):
    """As in the authors' code: products with all rows, and a gather for each pair."""
    h, heads, table, delta = x["h"], p["heads"], w["rel_embeddings.weight"], w["delta"]
    n = h.shape[1]
    q, k, v = project(h, w, heads, "content.")
    qr, kr = (split(F.linear(table, w[f"pos_{name}.weight"]), heads) for name in ("query", "key"))
    scale = 1 / math.sqrt(3 * q.shape[3])
    c2p = torch.gather(q @ kr.transpose(-1, -2), -1, delta)
    p2c = torch.gather(k @ qr.transpose(-1, -2), -1, delta).transpose(-1, -2)
    live = torch.arange(n) < x["length"][:, None, None, None]
    bias = torch.where(live, (c2p + p2c) * scale, -math.inf)
    return linear(merge(sdpa(q, k, v, attn_mask=bias, scale=scale)), w, "output")


def shifted(x, zeros):
    """x[.., i, t] to x[.., i, N - 1 - i + t]: a column of zeros before, and read with rows of another length."""
    *rest, n, m = x.shape
    return F.pad(x, (zeros, 0)).reshape(*rest, m + zeros, n)[..., zeros:, :].reshape(*rest, n, m)


@tables("txl-relative")
def txl_table(x, w, p):
    n, m, d = x["q"].shape[2], x["k"].shape[2], w["r_net.weight"].shape[2]
    angles = torch.arange(m - 1, -1, -1)[:, None] / 10000.0**(torch.arange(0, d, 2).double() / d)
    return {"R": torch.cat((angles.sin(), angles.cos()), -1).float(), "live": offsets(n, m) <= m - n}


@equations("txl-relative")
def txl_relative(x, w, p):
    """The authors' code: scores of distances by one product, shifted into place."""
    q, k = x["q"], x["k"]
    r = torch.einsum("td,hed->hte", w["R"], w["r_net.weight"])
    scale = 1 / math.sqrt(q.shape[3])
    far = shifted((q + w["r_r_bias"][:, None]) @ r.transpose(-1, -2), 1) * scale
    bias = torch.where(w["live"], far, -math.inf)
    return sdpa(q + w["r_w_bias"][:, None], k, x["value"], attn_mask=bias)


@tables("music-transformer")
def music_table(x, w, p):
    return {"live": offsets(x["q"].shape[2]) <= 0}


@equations("music-transformer")
def music_transformer(x, w, p):
    q = x["q"]
    far = shifted(q @ x["er"].transpose(-1, -2), 1) / math.sqrt(q.shape[3])
    return sdpa(q, x["k"], x["v"], attn_mask=torch.where(w["live"], far, -math.inf))


@equations("additive-attention")
def additive_attention(x, w, p):
    s = torch.tanh(x["x"][:, :, None] + x["y"][:, None]) @ x["w"]
    return torch.softmax(s, -1) @ x["v"]


@another_way("additive-attention")
def additive_attention_fused(x, w, p):
    """With a sum that its compiler joins with what is summed."""
    def formula(x, y, w, v):
        return torch.softmax((torch.tanh(x[:, :, None] + y[:, None]) * w).sum(-1), -1) @ v

    def make():
        run = torch.compile(formula, dynamic=False)
        return lambda: run(x["x"], x["y"], x["w"], x["v"])

    return {"compiled, one sum": make}


@equations("talking-heads")
def talking_heads(x, w, p):
    q = x["q"] / math.sqrt(x["q"].shape[3])
    s = torch.einsum("baij,ah->bhij", q @ x["k"].transpose(-1, -2), x["pl"])
    return torch.einsum("bhij,hc->bcij", torch.softmax(s, -1), x["pw"]) @ x["v"]


@equations("synthesizer-dense")
def synthesizer_dense(x, w, p):
    y, heads = x["x"], p["heads"]
    n, v = y.shape[1], split(linear(y, w, "value"), heads)
    f = F.relu(F.linear(y, w["dense.w1"].flatten(0, 1), w["dense.b1"].flatten()))
    s = split(f, heads) @ w["dense.w2"][:, :n].transpose(-1, -2) + w["dense.b2"][:, None, :n]
    return linear(merge(torch.softmax(s, -1) @ v), w, "output")


@tables("prior-mixture")
def prior_table(x, w, p):
    return {"distance": offsets(x["q"].shape[2]).abs().float()}


@equations("prior-mixture")
def prior_mixture(x, w, p):
    """Linear in the values: two attentions, of which the prior's weights need no data."""
    prior = torch.softmax(-x["gamma"] * w["distance"], -1)
    return (1 - x["beta"]) * sdpa(x["q"], x["k"], x["v"]) + x["beta"] * (prior @ x["v"])


@equations("syntax-branch-mix")
def syntax_branch_mix(x, w, p):
    s = x["q"] @ x["k"].transpose(-1, -2) / math.sqrt(x["q"].shape[3])
    weights = x["alpha"] * torch.softmax(s, -1) + (1 - x["alpha"]) * torch.softmax(s + x["M"][:, None], -1)
    return weights @ x["v"]


@tables("longformer")
def longformer_table(x, w, p):
    """Of a block's queries and the three blocks beside them, and the global key at the end."""
    n, width = x["q"].shape[2], p["window"]
    i = torch.arange(n).view(-1, width, 1)
    j = torch.arange(n // width)[:, None, None] * width - width + torch.arange(3 * width)
    return {"live": F.pad(((i - j).abs() <= width) & (j > 0) & (j < n), (0, 1), value=True)}


@equations("longformer")
def longformer(x, w, p):
    """Blocks of `window` queries beside three blocks of keys, as in the authors' chunked code; the first token is global."""
    q, k, v, width = x["q"], x["k"], x["v"], p["window"]
    b, h, n, e = q.shape
    blocks = q.view(b * h, n // width, width, e)  # four dims: its fused kernel takes no more

    def near(t):
        t = t.view(b * h, n, e)
        own = F.pad(t, (0, 0, width, width)).unfold(1, 3 * width, width).transpose(-1, -2)
        return torch.cat((own, t[:, None, :1].expand(-1, n // width, -1, -1)), 2)

    local = sdpa(blocks, near(k), near(v), attn_mask=w["live"]).reshape(b, h, n, e)
    return torch.cat((sdpa(x["qg"][:, :, :1], x["kg"], x["vg"]), local[:, :, 1:]), 2)


@another_way("longformer")
def longformer_flex(x, w, p):
    n, width = x["q"].shape[2], p["window"]
    make = flex(None, lambda b, h, i, j: ((i - j).abs() <= width) | (j == 0), (n, n))

    def ready():
        local = make(x)
        return lambda: torch.cat((sdpa(x["qg"][:, :, :1], x["kg"], x["vg"]), local()[:, :, 1:]), 2)

    return {"FlexAttention": ready}


def bigbird_blocks(table, n, p):
    size = p["block"]
    x = torch.arange(n // size)
    seen = ((x[:, None] - x).abs() <= 1) | (x < p["globals"]) | (x[:, None] < p["globals"])
    return seen | (table[:, :, None] == x).any(1)


@tables("bigbird")
def bigbird_table(x, w, p):
    live = bigbird_blocks(x["random"], x["q"].shape[2], p)
    return {"live": live.repeat_interleave(p["block"], 0).repeat_interleave(p["block"], 1)}


@equations("bigbird")
def bigbird(x, w, p):
    return sdpa(x["q"], x["k"], x["v"], attn_mask=w["live"])


@another_way("bigbird")
def bigbird_ways(x, w, p):
    n, size = x["q"].shape[2], p["block"]
    live = bigbird_blocks(x["random"], n, p)

    def gathered():
        """Of each row of blocks the keys that it sees, a table made before; rows with as many of them together."""
        q, k, v = (x[name].flatten(0, 1).unflatten(1, (-1, size)) for name in "qkv")
        classes = {}
        for row, seen in enumerate(live):
            classes.setdefault(int(seen.sum()), []).append(row)
        tables = [(torch.tensor(found), torch.stack([live[row].nonzero()[:, 0] for row in found])) for found in classes.values()]

        def run():
            y = torch.empty_like(q)
            for found, columns in tables:
                y[:, found] = sdpa(q[:, found], k[:, columns].flatten(2, 3), v[:, columns].flatten(2, 3))
            return y.view_as(x["q"])

        return run

    make = flex(None, lambda b, h, i, j: live[i // size, j // size], (n, n))
    return {"gathered blocks": gathered, "FlexAttention": lambda: make(x)}


def image_blocks(h, w, p):
    """What the pixels of an image see: (query's place, key's place) -> bool, places in raster order."""
    y, x = torch.arange(h * w) // w, torch.arange(h * w) % w
    hq, wq, hm, wm = (p[name] for name in ("hq", "wq", "hm", "wm"))
    top, left = y // hq * hq, x // wq * wq
    turn = (y // hq * -(-w // wq) + x // wq) * hq * wq + y % hq * wq + x % wq
    return turn, top - hm, top + hq, left - wm, left + wq + wm, y, x


@tables("image-transformer-2d")
def image_table(x, w, p):
    height, width = x["q"].shape[2:4]
    hq, wq, hm, wm = (p[name] for name in ("hq", "wq", "hm", "wm"))
    turn = image_blocks(height, width, p)[0].view(height, width)
    far = F.pad(turn, (wm, wm, hm, 0), value=height * width).unfold(0, hm + hq, hq).unfold(1, wq + 2 * wm, wq).flatten(2).flatten(0, 1)
    own = turn.view(height // hq, hq, width // wq, wq).transpose(1, 2).reshape(len(far), -1)
    return {"live": far[:, None, :] <= own[..., None]}


@equations("image-transformer-2d")
def image_transformer_2d(x, w, p):
    """Blocks of queries beside their memories, cut out of a padded image."""
    q, k, v = x["q"], x["k"], x["v"]
    b, a, height, width, e = q.shape
    hq, wq, hm, wm = (p[name] for name in ("hq", "wq", "hm", "wm"))
    rows, columns = height // hq, width // wq

    def memory(t):
        t = F.pad(t, (0, 0, wm, wm, hm, 0)).unfold(2, hm + hq, hq).unfold(3, wq + 2 * wm, wq)  # b a rows columns e r c
        return t.permute(0, 1, 2, 3, 5, 6, 4).reshape(b * a, rows * columns, -1, e)

    blocks = q.view(b, a, rows, hq, columns, wq, e).transpose(3, 4).reshape(b * a, rows * columns, -1, e)
    y = sdpa(blocks, memory(k), memory(v), attn_mask=w["live"])
    return y.view(b, a, rows, columns, hq, wq, e).transpose(3, 4).reshape(b, a, height, width, e)


@another_way("image-transformer-2d")
def image_flex(x, w, p):
    height, width = x["q"].shape[2:4]
    turn, top, bottom, left, right, y, c = image_blocks(height, width, p)

    def keep(b, h, i, j):
        return (turn[j] <= turn[i]) & (y[j] >= top[i]) & (y[j] < bottom[i]) & (c[j] >= left[i]) & (c[j] < right[i])

    make = flex(None, keep, (height * width, height * width))
    return {"FlexAttention": lambda: make({name: t.flatten(2, 3) for name, t in x.items()})}


@equations("axial-transformer")
def axial_transformer(x, w, p):
    def attend(y, at):
        n = layer_norm(y, w, at + ".norm").flatten(0, 1)
        return y + multi_head(n, n, w, p["heads"], at + ".").view_as(y)

    y = attend(x["x"], "layer.0.row")
    return attend(y.transpose(1, 2), "layer.0.column").transpose(1, 2)
