"""Linear and compressed attentions, layers and whole models of the zoo in PyTorch. See zoo_torch.py."""
import math

import torch
import torch.nn.functional as F
from systems.zoo_torch import equations, ffn, layer_norm, linear, merge, multi_head, project, split, tables

sdpa = F.scaled_dot_product_attention


@equations("performer-favor")
def performer(x, w, p):
    omega, root = w["omega"], x["q"].shape[3]**-0.25

    def features(t, dims):
        t = t * root
        s = t @ omega.T - (t * t).sum(-1, keepdim=True) / 2
        return torch.exp(s - s.amax(dims, keepdim=True))

    q, k = features(x["q"], -1), features(x["k"], (-1, -2))
    return q @ (k.transpose(-1, -2) @ x["v"]) / (q @ k.sum(-2)[..., None])


@equations("linear-transformer")
def linear_transformer(x, w, p):
    y = x["x"]
    for at in ("layer.0.", "layer.1."):
        q, k, v = project(y, w, p["heads"], at)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        a = q @ (k.transpose(-1, -2) @ v) / (q @ k.sum(-2)[..., None])
        y = layer_norm(y + linear(merge(a), w, at + "output"), w, at + "norm1")
        y = layer_norm(y + ffn(y, w, at), w, at + "norm2")
    return y


@equations("linformer")
def linformer(x, w, p):
    return sdpa(x["q"], w["E"] @ x["k"], w["F"] @ x["v"])


@equations("nystrom-landmarks")
def nystrom_landmarks(x, w, p):
    q, k = (x[name].unflatten(2, (p["L"], -1)).mean(3) for name in "qk")
    return sdpa(x["q"], k, sdpa(q, x["k"], x["v"]))


@equations("perceiver")
def perceiver(x, w, p):
    def block(u, y, at):
        n = layer_norm(u, w, at + ".norm_query")
        # The latents' own turn has two norms of one sequence.
        u = u + multi_head(n, layer_norm(y, w, at + ".norm_input"), w, p["heads"], at + ".")
        return u + linear(F.gelu(linear(layer_norm(u, w, at + ".mlp.norm"), w, at + ".mlp.up")), w, at + ".mlp.down")

    u = w["latents"].expand(len(x["x"]), -1, -1)
    for stage in ("0", "1", "1"):
        u = block(u, x["x"], "cross." + stage)
        u = block(u, u, "latent." + stage)
    return u


@equations("set-transformer")
def set_transformer(x, w, p):
    def mab(y, z, at):
        h = layer_norm(y + multi_head(y, z, w, p["heads"], at + "."), w, at + ".norm1")
        return layer_norm(h + F.relu(linear(h, w, at + ".rff")), w, at + ".norm2")

    y = x["x"]
    for l in range(2):
        inducing = w[f"isab.{l}.inducing"].expand(len(y), -1, -1)
        y = mab(y, mab(inducing, y, f"isab.{l}.mab1"), f"isab.{l}.mab2")
    z = mab(w["pma.seeds"].expand(len(y), -1, -1), F.relu(linear(y, w, "pma.rff")), "pma")
    return F.relu(linear(mab(z, z, "sab"), w, "decoder"))


@equations("moe-dense")
def moe_dense(x, w, p):
    """One product for the first layers of all experts, one for their second: gates weigh the hidden units."""
    h = x["h"]
    up, down = w["experts.up.weight"], w["experts.down.weight"]
    m, a, d = up.shape
    g = torch.softmax(F.linear(h, w["gate.weight"]), -1)
    u = F.relu(F.linear(h, up.reshape(m * a, d), w["experts.up.bias"].flatten())).unflatten(-1, (m, a)) * g[..., None]
    return F.linear(u.flatten(-2), down.transpose(0, 1).reshape(d, m * a)) + g @ w["experts.down.bias"]


@equations("gmlp")
def gmlp(x, w, p):
    y = x["x"]
    n = y.shape[1]
    for at in ("layer.0.", "layer.1."):
        z1, z2 = F.gelu(linear(layer_norm(y, w, at + "norm"), w, at + "up")).chunk(2, -1)
        mixed = w[at + "spatial.weight"][:n, :n] @ layer_norm(z2, w, at + "spatial.norm") + w[at + "spatial.bias"][:n, None]
        y = y + linear(z1 * mixed, w, at + "down")
    return y


def fourier(n):
    k = torch.arange(n)
    angle = 2 * math.pi / n * (k[:, None] * k % n).double()
    return angle.cos().float(), angle.sin().float()


@tables("fnet")
def fnet_table(x, w, p):
    (cn, sn), (cd, sd) = (fourier(n) for n in x["x"].shape[1:])
    return {"positions": torch.cat((cn, -sn), 1), "hidden": torch.cat((cd, sd), 1)}


@equations("fnet")
def fnet(x, w, p):
    """By matrices, as its authors do it for such lengths on TPUs: an FFT would be another algorithm, not other equations' speed."""
    y = x["x"]
    for at in ("layer.0.", "layer.1."):
        y = layer_norm(y + w["positions"] @ torch.cat((y @ w["hidden"]).chunk(2, -1), 1), w, at + "norm1")
        y = layer_norm(y + ffn(y, w, at, F.gelu), w, at + "norm2")
    return y


@equations("squeeze-excitation")
def squeeze_excitation(x, w, p):
    s = torch.sigmoid(linear(F.relu(linear(x["x"].mean((1, 2)), w, "squeeze")), w, "excite"))
    return x["x"] * s[:, None, None]


@equations("macaron")
def macaron(x, w, p):
    y = x["x"]
    for at in ("layer.0.", "layer.1."):
        y = layer_norm(y + 0.5 * ffn(y, w, at + "first."), w, at + "norm1")
        y = layer_norm(y + multi_head(y, y, w, 4, at), w, at + "norm2")
        y = layer_norm(y + 0.5 * ffn(y, w, at + "second."), w, at + "norm3")
    return y


@equations("dlcl")
def dlcl(x, w, p):
    outputs, y = [], x["x"]
    for l in range(4):
        outputs.append(layer_norm(y, w, f"combine.norm.{l}"))
        y = (w["combine"][l, :l + 1] @ torch.stack(outputs).flatten(1)).view_as(y)
        if l < 3:
            n = layer_norm(y, w, f"layer.{l}.norm1")
            y = y + multi_head(n, n, w, 4, f"layer.{l}.attention.")
            y = y + ffn(layer_norm(y, w, f"layer.{l}.norm2"), w, f"layer.{l}.ffn.")
    return y


@equations("ode-rk2")
def ode_rk2(x, w, p):
    def step(z, f, at):
        first = f(layer_norm(z, w, at + "norm"), at)
        second = f(layer_norm(z + first, w, at + "norm"), at)
        return z + (first + second) / 2

    z = x["z"]
    for l in range(2):
        z = step(z, lambda n, at: multi_head(n, n, w, 4, at), f"layer.{l}.attention.")
        z = step(z, lambda n, at: ffn(n, w, at), f"layer.{l}.ffn.")
    return z


def depthwise(x, taps, bias=None):
    """K taps for each channel of B x N x C; before row 0 stand K // 2."""
    k = taps.shape[-1]
    y = F.conv1d(F.pad(x.transpose(1, 2), (k // 2, k - 1 - k // 2)), taps[:, None], bias, groups=len(taps))
    return y.transpose(1, 2)


@equations("dynamicconv")
def dynamicconv(x, w, p):
    """A product of each head's row of taps with the rows around it, which unfold names."""
    a = F.glu(linear(x["x"], w, "input"), -1)
    heads, k, c = w["conv.weight"].shape
    taps = torch.softmax(F.linear(a, w["conv.weight"].flatten(0, 1)).unflatten(-1, (heads, k)), -1)
    around = F.pad(a, (0, 0, k // 2, k - 1 - k // 2)).unfold(1, k, 1).unflatten(2, (heads, c // heads))
    return linear((around * taps[:, :, :, None]).sum(-1).flatten(2), w, "output")


@equations("lite-transformer")
def lite_transformer(x, w, p):
    y = x["x"]
    for at in ("layer.0.", "layer.1."):
        left, right = y.chunk(2, -1)
        a = F.glu(linear(right, w, at + "branch.input"), -1)
        taps = torch.softmax(w[at + "branch.conv.weight"], -1)
        short = depthwise(a, taps.repeat_interleave(a.shape[2] // len(taps), 0))
        both = torch.cat((multi_head(left, left, w, p["heads"], at + "attention."), linear(short, w, at + "branch.output")), -1)
        y = layer_norm(y + both, w, at + "norm1")
        y = layer_norm(y + ffn(y, w, at), w, at + "norm2")
    return y


@equations("int8-matmul")
def int8_matmul(x, w, p):
    a = x["a"]
    scale = a.abs().max() / 127
    q = torch.round(a / scale).clamp(-127, 127).to(torch.int8)
    return scale * x["sA"] * torch._int_mm(q, x["A"])


@equations("vit")
def vit(x, w, p):
    size, image = p["P"], x["image"].permute(0, 3, 1, 2)
    d = w["class"].shape[1]
    kernel = w["embedding.weight"].T.reshape(d, size, size, -1).permute(0, 3, 1, 2)
    patches = F.conv2d(image, kernel, stride=size).flatten(2).transpose(1, 2)
    z = torch.cat((w["class"].expand(len(image), -1, -1), patches), 1) + w["position"]
    for at in ("layer.0.", "layer.1."):
        m = layer_norm(z, w, at + "norm1")
        z = z + multi_head(m, m, w, p["heads"], at + "self.")
        z = z + ffn(layer_norm(z, w, at + "norm2"), w, at + "ffn.", F.gelu)
    return linear(layer_norm(z[:, 0], w, "norm"), w, "head")


@tables("swin")
def swin_table(x, w, p, size=7, shift=3):
    """Offsets of a window's pairs, and what the roll brought together."""
    b, height, width = x["image"].shape[:3]
    height, width = height // 4, width // 4
    i = torch.arange(size * size)
    y, z = i // size, i % size
    part = lambda n: (torch.arange(n) >= n - shift).int() + (torch.arange(n) >= n - size).int()
    places = part(height)[:, None] * 3 + part(width)
    places = places.view(height // size, size, width // size, size).transpose(1, 2).reshape(-1, size * size)
    apart = torch.where(places[:, :, None] != places[:, None], -math.inf, 0.0)
    return {"rows": y[:, None] - y + size - 1, "columns": z[:, None] - z + size - 1, "apart": apart.repeat(b, 1, 1)[:, None]}


def window_attention(x, w, heads, shift, at, size=7):
    """As in the authors' code: roll, cut into windows, a bias of offsets and a mask for what the roll brought together."""
    b, height, width, c = x.shape
    rows, columns = height // size, width // size
    if shift:
        x = torch.roll(x, (-shift, -shift), (1, 2))
    windows = x.view(b, rows, size, columns, size, c).transpose(2, 3).reshape(b * rows * columns, size * size, c)
    q, k, v = project(windows, w, heads, at)
    bias = w[at + "bias"][w["rows"], w["columns"]].permute(2, 0, 1)[None]
    if shift:
        bias = bias + w["apart"]
    o = merge(sdpa(q, k, v, attn_mask=bias)).view(b, rows, columns, size, size, c).transpose(2, 3).reshape(b, height, width, c)
    if shift:
        o = torch.roll(o, (shift, shift), (1, 2))
    return linear(o, w, at + "output")


@equations("swin")
def swin(x, w, p):
    heads = [int(h) for h in p["heads"].strip("[]").split(",")]
    image, c = x["image"], p["C"]
    b, height, width, channels = image.shape
    kernel = w["embedding.weight"].view(c, 4, 4, channels).permute(0, 3, 1, 2)
    y = F.conv2d(image.permute(0, 3, 1, 2), kernel, w["embedding.bias"], stride=4).permute(0, 2, 3, 1)
    y = layer_norm(y, w, "embedding.norm")
    for stage in range(2):
        if stage:
            y = torch.cat([y[:, r::2, s::2] for s in (0, 1) for r in (0, 1)], -1)
            y = F.linear(layer_norm(y, w, "stage.1.merge.norm"), w["stage.1.merge.weight"])
        for l in range(2):
            at = f"stage.{stage}.{l}."
            y = y + window_attention(layer_norm(y, w, at + "norm1"), w, heads[stage], 3 if (stage, l) == (0, 1) else 0, at + "self.")
            y = y + ffn(layer_norm(y, w, at + "norm2"), w, at + "ffn.", F.gelu)
    return linear(layer_norm(y, w, "norm").mean((1, 2)), w, "head")


@tables("conformer")
def conformer_table(x, w, p):
    """Row t is of the offset i - j = N - 1 - t, so that the shift of Transformer-XL puts it into place."""
    n, d = x["x"].shape[1:]
    angles = torch.arange(n - 1, -n, -1)[:, None] / 10000.0**(torch.arange(0, d, 2).double() / d)
    return {"R": torch.stack((angles.sin(), angles.cos()), -1).flatten(1).float()}


def relative_attention(x, w, heads, at):
    n, d = x.shape[1:]
    q, k, v = project(x, w, heads, at)
    r = split(F.linear(w["R"], w[at + "position.weight"]), heads)
    scale = 1 / math.sqrt(d // heads)
    far = (q + w[at + "v"][:, None]) @ r.transpose(-1, -2)
    far = F.pad(far, (1, 0)).view(len(x), heads, 2 * n, n)[:, :, 1:].reshape(len(x), heads, n, 2 * n - 1)[..., :n]
    return linear(merge(sdpa(q + w[at + "u"][:, None], k, v, attn_mask=far * scale)), w, at + "output")


@equations("conformer")
def conformer(x, w, p):
    def half(y, at):
        return y + 0.5 * ffn(layer_norm(y, w, at + "norm"), w, at, F.silu)

    y = x["x"]
    for at in ("layer.0.", "layer.1."):
        y = half(y, at + "ffn1.")
        y = y + relative_attention(layer_norm(y, w, at + "self.norm"), w, p["heads"], at + "self.")
        t = F.glu(linear(layer_norm(y, w, at + "conv.norm"), w, at + "conv.pointwise1"), -1).transpose(1, 2)
        taps = w[at + "conv.depthwise.weight"]
        k = taps.shape[1]
        t = F.conv1d(F.pad(t, ((k - 1) // 2, k - 1 - (k - 1) // 2)), taps[:, None], w[at + "conv.depthwise.bias"], groups=len(taps))
        norm = [w[f"{at}conv.batch.{name}"] for name in ("running_mean", "running_var", "weight", "bias")]
        t = F.silu(F.batch_norm(t, *norm)).transpose(1, 2)
        y = y + linear(t, w, at + "conv.pointwise2")
        y = layer_norm(half(y, at + "ffn2."), w, at + "norm")
    return y


@equations("flamingo")
def flamingo(x, w, p):
    ids, f = x["ids"], x["f"]
    b, images, s, d = f.shape

    def squared(y, at):
        return linear(F.relu(linear(layer_norm(y, w, at + "norm"), w, at + "up")).square(), w, at + "down")

    features = f.flatten(0, 1)
    z = w["resampler.latents"].expand(b * images, -1, -1)
    for at in ("resampler.0.", "resampler.1."):
        q = layer_norm(z, w, at + "norm.latents")
        z = z + multi_head(q, torch.cat((layer_norm(features, w, at + "norm.features"), q), 1), w, 4, at + "self.")
        z = z + squared(z, at + "ffn.")
    z = layer_norm(z, w, "resampler.norm")
    r = z.shape[1]
    v = z.reshape(b, images * r, d)
    phi = (ids == 0).int().cumsum(1)
    sees = phi[:, :, None] == torch.arange(images * r) // r + 1
    y = F.embedding(ids, w["embedding.weight"]) + w["position.weight"][:ids.shape[1]]
    for l in range(2):
        a = multi_head(layer_norm(y, w, f"gated.{l}.norm"), v, w, 4, f"gated.{l}.cross.", sees[:, None])
        y = y + torch.tanh(w["gate.attention"][l]) * a
        y = y + torch.tanh(w["gate.ffn"][l]) * squared(y, f"gated.{l}.ffn.")
        n = layer_norm(y, w, f"layer.{l}.norm1")
        y = y + multi_head(n, n, w, 4, f"layer.{l}.self.", causal=True)
        y = y + ffn(layer_norm(y, w, f"layer.{l}.norm2"), w, f"layer.{l}.ffn.", F.gelu)
    return F.linear(layer_norm(y, w, "norm"), w["embedding.weight"])


@tables("palm-parallel-block")
def palm_table(x, w, p):
    angles = torch.arange(x["x"].shape[1])[:, None] * 10000.0**(-torch.arange(0, p["E"], 2).double() / p["E"])
    return {"cos": angles.cos().float(), "sin": angles.sin().float()}


@equations("palm-parallel-block")
def palm(x, w, p):
    y, heads, e = x["x"], p["heads"], p["E"]
    c, s = w["cos"], w["sin"]

    def turn(t):
        a, b = t[..., 0::2], t[..., 1::2]
        return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)

    for at in ("layer.0.", "layer.1."):
        z = F.layer_norm(y, y.shape[-1:], w[at + "norm.weight"])
        names, sizes = ("query", "key", "value", "gate", "up"), [heads * e, e, e, p["hidden"], p["hidden"]]
        q, k, v, gate, up = F.linear(z, torch.cat([w[f"{at}{name}.weight"] for name in names])).split(sizes, -1)
        a = sdpa(turn(split(q, heads)), turn(k[:, None]), v[:, None], is_causal=True, enable_gqa=True)
        y = y + linear(F.silu(gate) * up, w, at + "down") + linear(merge(a), w, at + "output")
    return y


@equations("evolved-transformer")
def evolved_transformer(x, w, p):
    """The sentence has no padding here."""
    heads = p["heads"]

    def separable(t, at, back):
        taps = w[at + ".depthwise.weight"]
        k = taps.shape[1]
        t = F.conv1d(F.pad(t.transpose(1, 2), (back, k - 1 - back)), taps[:, None], groups=len(taps)).transpose(1, 2)
        return linear(t, w, at + ".pointwise")

    def fill(t, like):
        return F.pad(t, (0, like.shape[-1] - t.shape[-1]))

    def encoder(y, at):
        g = layer_norm(y, w, at + "glu.norm")
        y = y + linear(g, w, at + "glu.value") * torch.sigmoid(linear(g, w, at + "glu.gate"))
        c = layer_norm(y, w, at + "conv.norm1")
        left = F.relu(linear(c, w, at + "conv.left"))
        right = F.relu(F.conv1d(c.transpose(1, 2), w[at + "conv.right.weight"], w[at + "conv.right.bias"], padding=1).transpose(1, 2))
        y = y + fill(separable(layer_norm(left + fill(right, left), w, at + "conv.norm2"), at + "conv.separable", 4), y)
        a = layer_norm(y, w, at + "self.norm")
        y = y + multi_head(a, a, w, heads, at + "self.")
        return y + ffn(layer_norm(y, w, at + "ffn.norm"), w, at + "ffn.")

    def decoder(y, memory, at):
        a = layer_norm(y, w, at + "first.norm")
        y = y + multi_head(a, a, w, 2 * heads, at + "first.self.", causal=True) + multi_head(a, memory, w, heads, at + "first.cross.")
        c = layer_norm(y, w, at + "conv.norm1")
        left = F.relu(separable(c, at + "conv.left", 10))
        m = layer_norm(left + fill(separable(c, at + "conv.right", 6), left), w, at + "conv.norm2")
        y = y + separable(m, at + "conv.separable", 6)
        s = layer_norm(y, w, at + "self.norm")
        y = y + multi_head(s, s, w, heads, at + "self.", causal=True)
        y = y + multi_head(layer_norm(y, w, at + "cross.norm"), memory, w, heads, at + "cross.")
        f = F.silu(linear(layer_norm(y, w, at + "ffn.norm1"), w, at + "ffn.up"))
        return y + linear(layer_norm(f, w, at + "ffn.norm2"), w, at + "ffn.down")

    memory = x["x"]
    for l in range(2):
        memory = encoder(memory, f"encoder.{l}.")
    memory, y = layer_norm(memory, w, "encoder.norm"), x["y"]
    for l in range(2):
        y = decoder(y, memory, f"decoder.{l}.")
    return layer_norm(y, w, "decoder.norm")
