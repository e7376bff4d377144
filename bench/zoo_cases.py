"""The zoo's cases: models/<group>/<key>.heed at the sizes of their papers, with drawn inputs and weights.

A function gives what cases.py makes a case of; its defaults are the paper's sizes (whole models: two layers of them). All sizes are constants, as they
are for torch.compile. The float64 answer is that of the oracle of the model's own test, test/zoo/<key>.py. Operations are those of the mathematics:
products and sums of what is not masked, 2 for a multiply-add; exponentials and the like are not counted.
"""
import importlib.util
import os
import sys

import numpy as np

import recurrence_oracles

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLES = os.path.join(HERE, "..", "test", "zoo")
sys.path.append(ORACLES)
from zoo import (attention_weights, encoder_weights, feed_forward_weights, linear_weights, norm_weights, uniform)  # of test/zoo

FOUND = []  # functions that give (key, what, inputs, weights, operations, constants for heedc, constants for the oracle)


def entry(function):
    FOUND.append(function)
    return function


def made(path, what, flops, inputs, weights=None, sets=None, oracle=None):
    """`inputs` and `weights` are functions of a random generator; `oracle`: what test/zoo/<key>.py holds otherwise: its constants in capitals,
    keyword arguments of its function."""
    return dict(path=path, key=path.split("/")[-1], what=what, flops=float(flops), inputs=inputs, weights=weights, sets=sets or {}, oracle=oracle or {})


def answer(p, inputs, weights):
    """(all results of a recurrence alone, or the first of the oracle; 0: its scores are small)."""
    own = recurrence_oracles.ORACLES.get(p["key"])
    return own(inputs, weights) if own else first_of_oracle(p, inputs, weights), 0.0


def first_of_oracle(p, inputs, weights):
    import zoo
    checked, zoo.check = zoo.check, lambda *_, **__: None  # the small cases of the test are the test's
    arguments, sys.argv = sys.argv, sys.argv[:1]
    try:
        spec = importlib.util.spec_from_file_location("oracle", os.path.join(ORACLES, p["key"] + ".py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        zoo.check, sys.argv = checked, arguments
    for name, value in p["oracle"].items():
        if name.isupper():
            assert hasattr(module, name), f"{p['key']}.py has no {name}"
            setattr(module, name, value)
    given = {name: value for name, value in p["oracle"].items() if not name.isupper()}
    return next(iter(module.oracle(inputs, weights, **given).values()))


# --- operations --------------------------------------------------------------------------------------------------------


def scores(h, pairs, e, f=None):
    """Of attention: H heads, pairs that live, widths of keys and values."""
    return 2.0 * h * pairs * (e + (e if f is None else f))


def triangle(n, m=0):
    """Pairs under a causal mask, after M - N keys that all see."""
    return n * (n + 1) // 2 + n * (max(m, n) - n)


def layer(n, d, hidden, m=0):
    """Projections, attention and feed-forward layer of a Transformer; `m`: keys of another sequence of that width."""
    m = m or n
    return 4.0 * (n + m) * d * d + 4.0 * n * m * d + 4.0 * n * d * hidden


def attended(b, h, n, e, m=0, more=None, names="qkv"):
    """Inputs of an attention, B x H x N x E; `more`: a function of the generator for others."""
    def draw(rng):
        found = {name: uniform(rng, b, h, n if k == 0 else m or n, e) for k, name in enumerate(names.split() if " " in names else names)}
        return found | (more(rng) if more else {})

    return draw


def rows(b, n, d, name="x"):
    return lambda rng: {name: uniform(rng, b, n, d)}


def dense(rng, *of):
    """Weights of linear layers: (name, out, in)."""
    return {k: w for name, out, into in of for k, w in linear_weights(rng, name, out, into).items()}


def norms(rng, size, *names):
    return {k: w for name in names for k, w in norm_weights(rng, name, size).items()}


# --- position ----------------------------------------------------------------------------------------------------------


@entry
def t5_bias(n=512, h=12, e=64, k=32):
    more = lambda rng: {"table": uniform(rng, k, h)}
    return made("position/t5-bias", f"N={n} E={e} H={h}", scores(h, n * n, e), attended(1, h, n, e, more=more),
                sets=dict(B=1, H=h, N=n, M=n, E=e, F=e))


@entry
def alibi(n=1024, h=16, e=128):
    return made("position/alibi", f"N={n} E={e} H={h}", scores(h, triangle(n), e), attended(1, h, n, e),
                sets=dict(B=1, H=h, N=n, E=e, F=e))


@entry
def deberta(n=512, d=768, heads=12, k=256):
    def weights(rng):
        found = {"rel_embeddings.weight": uniform(rng, 2 * k, d)}
        found |= {f"pos_{x}.weight": linear_weights(rng, "w", d, d)["w.weight"] for x in ("query", "key")}
        return found | dense(rng, *((x, d, d) for x in ("content.query", "content.key", "content.value", "output")))

    # Each query times the rows of positions, each key too: not with a row for each pair.
    flops = 8.0 * n * d * d + 8.0 * k * d * d + 4.0 * n * n * d + 2 * 2.0 * n * 2 * k * d
    return made("position/deberta", f"N={n} D={d} H={heads}", flops, lambda rng: {"h": uniform(rng, 1, n, d), "length": np.full(1, n, np.int32)},
                weights, dict(heads=heads, B=1, N=n, D=d), dict(HEADS=heads))


@entry
def txl_relative(n=384, m=768, d=1024, h=16, e=64):
    def weights(rng):
        return {"r_net.weight": uniform(rng, h, e, d) * np.float32(d**-0.5), "r_w_bias": uniform(rng, h, e), "r_r_bias": uniform(rng, h, e)}

    pairs = triangle(n, m)
    return made("position/txl-relative", f"N={n} M={m} E={e} H={h}", scores(h, pairs, e) + 2.0 * h * pairs * e + 2.0 * h * m * d * e,
                attended(1, h, n, e, m, names="q k value"), weights, dict(B=1, H=h, N=n, M=m, D=d, E=e, F=e))


@entry
def music_transformer(n=2048, h=8, e=64):
    more = lambda rng: {"er": uniform(rng, h, n, e)}
    return made("position/music-transformer", f"N={n} E={e} H={h}", scores(h, triangle(n), e, 2 * e), attended(1, h, n, e, more=more),
                sets=dict(B=1, H=h, N=n, L=n, E=e, F=e))


# --- score, heads, prior, syntax ---------------------------------------------------------------------------------------


@entry
def additive_attention(b=4, n=50, a=1000, f=2000):
    def inputs(rng):
        return {"x": uniform(rng, b, n, a), "y": uniform(rng, b, n, a), "w": uniform(rng, a) * np.float32(a**-0.5), "v": uniform(rng, b, n, f)}

    return made("score/additive-attention", f"B={b} N={n} A={a}", b * n * n * (3.0 * a + 2.0 * f), inputs,
                sets=dict(B=b, N=n, M=n, A=a, F=f))


@entry
def talking_heads(n=512, h=12, e=64):
    more = lambda rng: {"pl": uniform(rng, h, h), "pw": uniform(rng, h, h)}
    return made("heads/talking-heads", f"N={n} E={e} H={h}", scores(h, n * n, e) + 4.0 * h * h * n * n,
                attended(1, h, n, e, more=more), sets=dict(B=1, A=h, H=h, C=h, N=n, M=n, E=e, F=e))


@entry
def synthesizer_dense(n=512, d=512, heads=8, a=64):
    def weights(rng):
        found = {"dense.w1": uniform(rng, heads, a, d) * np.float32(d**-0.5), "dense.b1": uniform(rng, heads, a)}
        found |= {"dense.w2": uniform(rng, heads, n, a) * np.float32(a**-0.5), "dense.b2": uniform(rng, heads, n)}
        return found | dense(rng, ("value", d, d), ("output", d, d))

    flops = 4.0 * n * d * d + 2.0 * n * d * heads * a + scores(heads, n * n, a, d // heads)
    return made("prior/synthesizer-dense", f"N={n} D={d} H={heads}", flops, rows(1, n, d), weights, dict(heads=heads, B=1, N=n, D=d),
                dict(HEADS=heads))


@entry
def prior_mixture(n=512, h=8, e=64):
    more = lambda rng: {"beta": np.array(0.5, np.float32), "gamma": np.array(1.0, np.float32)}
    return made("prior/prior-mixture", f"N={n} E={e} H={h}", scores(h, n * n, e), attended(1, h, n, e, more=more),
                sets=dict(B=1, H=h, N=n, E=e, F=e))


@entry
def fnet(n=512, d=768, hidden=3072):
    def weights(rng):
        found = {}
        for at in ("layer.0.", "layer.1."):
            found |= feed_forward_weights(rng, at, d, hidden) | norms(rng, d, at + "norm1", at + "norm2")
        return found

    return made("prior/fnet", f"N={n} D={d}", 2 * (4.0 * n * d * d + 4.0 * n * n * d + 4.0 * n * d * hidden), rows(1, n, d), weights,
                dict(hidden=hidden, B=1, N=n, D=d))


@entry
def syntax_branch_mix(n=128, h=8, e=64):
    def more(rng):
        mask = np.where(rng.random((1, n, n)) < 0.6, -np.inf, 0).astype(np.float32)
        mask[:, np.arange(n), np.arange(n)] = 0
        return {"M": mask, "alpha": np.array(0.5, np.float32)}

    return made("syntax/syntax-branch-mix", f"N={n} E={e} H={h}", scores(h, n * n, e, 2 * e), attended(1, h, n, e, more=more),
                sets=dict(B=1, H=h, N=n, E=e, F=e))


# --- sparse ------------------------------------------------------------------------------------------------------------


@entry
def longformer(n=4096, h=12, e=64, window=256):
    """One global token, as for classification; no dilation, as in the lower layers."""
    more = lambda rng: {"global": np.arange(n)[None] == 0, "dilation": np.ones(h, np.int32)}
    i = np.arange(1, n)
    reach = np.minimum(i + window, n - 1) - np.maximum(i - window, 0) + 1 + (i > window)
    return made("sparse/longformer", f"N={n} E={e} H={h} W={window}", scores(h, reach.sum() + n, e),
                attended(1, h, n, e, more=more, names="q k v qg kg vg"), sets=dict(B=1, H=h, N=n, E=e, window=window), oracle=dict(window=window))


@entry
def bigbird(n=4096, h=12, e=64, block=64, r=3, globals_=2):
    blocks = n // block
    table = np.random.default_rng(7).integers(0, blocks, (blocks, r)).astype(np.int32)
    seen = [blocks if x < globals_ else len({*range(max(x - 1, 0), min(x + 2, blocks)), *range(globals_), *table[x]}) for x in range(blocks)]
    return made("sparse/bigbird", f"N={n} E={e} H={h} block={block}", scores(h, sum(seen) * block * block, e),
                attended(1, h, n, e, more=lambda rng: {"random": table}), sets=dict(B=1, H=h, N=n, E=e, F=e, R=r, block=block, globals=globals_),
                oracle=dict(block=block, count=globals_))


@entry
def image_transformer_2d(h=32, w=96, heads=4, e=64, hq=8, wq=32, hm=8, wm=16):
    """CIFAR-10: a row of 32 pixels has 96 channels."""
    def inputs(rng):
        return {name: uniform(rng, 1, heads, h, w, e) for name in "qkv"}

    sizes = dict(hq=hq, wq=wq, hm=hm, wm=wm)
    y, x = (a.ravel() for a in np.mgrid[:h, :w])
    turn = (y // hq * -(-w // wq) + x // wq) * hq * wq + y % hq * wq + x % wq
    top, left = y // hq * hq, x // wq * wq
    pairs = sum(int(((y >= t - hm) & (y < t + hq) & (x >= l - wm) & (x < l + wq + wm) & (turn <= k)).sum()) for t, l, k in zip(top, left, turn))
    return made("sparse/image-transformer-2d", f"{h}x{w} E={e} H={heads}", scores(heads, pairs, e), inputs,
                sets=dict(B=1, A=heads, H=h, W=w, E=e, F=e, **sizes), oracle=sizes)


@entry
def axial_transformer(h=64, w=64, d=256, heads=8):
    def weights(rng):
        found = {}
        for at in ("layer.0.row", "layer.0.column"):
            found |= norm_weights(rng, at + ".norm", d) | attention_weights(rng, at + ".", d)
        return found

    return made("sparse/axial-transformer", f"{h}x{w} D={d} H={heads}", h * w * (16.0 * d * d + 4.0 * (h + w) * d),
                lambda rng: {"x": uniform(rng, 1, h, w, d)}, weights, dict(heads=heads, B=1, H=h, W=w, D=d), dict(HEADS=heads))


# --- linear, lowrank, memory compression -------------------------------------------------------------------------------


@entry
def performer_favor(n=4096, h=8, e=64, r=256):
    weights = lambda rng: {"omega": rng.standard_normal((r, e)).astype(np.float32)}
    return made("linear/performer-favor", f"N={n} E={e} H={h} R={r}", h * n * (8.0 * e * r + 2.0 * r), attended(1, h, n, e), weights,
                dict(B=1, H=h, N=n, M=n, E=e, F=e))


@entry
def linear_transformer(n=1024, d=512, heads=8, hidden=2048):
    def weights(rng):
        found = {}
        for at in ("layer.0.", "layer.1."):
            found |= attention_weights(rng, at, d) | feed_forward_weights(rng, at, d, hidden) | norms(rng, d, at + "norm1", at + "norm2")
        return found

    flops = 2 * n * (8.0 * d * d + 4.0 * d * hidden + 4.0 * d * d / heads)
    return made("linear/linear-transformer", f"N={n} D={d} H={heads}", flops, rows(1, n, d), weights,
                dict(heads=heads, hidden=hidden, B=1, N=n, D=d), dict(HEADS=heads))


@entry
def linformer(n=4096, h=12, e=64, k=256):
    weights = lambda rng: {x: uniform(rng, k, n) * np.float32(n**-0.5) for x in "EF"}
    return made("lowrank/linformer", f"N={n} E={e} H={h} K={k}", 8.0 * h * n * k * e, attended(1, h, n, e), weights,
                dict(B=1, H=h, N=n, M=n, D=e, C=e))


@entry
def nystrom_landmarks(n=4096, h=12, e=64, landmarks=64):
    return made("lowrank/nystrom-landmarks", f"N={n} E={e} H={h} L={landmarks}", 8.0 * h * n * landmarks * e, attended(1, h, n, e),
                sets=dict(B=1, H=h, N=n, L=landmarks, E=e, F=e), oracle=dict(count=landmarks))


@entry
def perceiver(m=2048, c=387, r=128, d=512, heads=8):
    """ModelNet40: points with 64 bands of Fourier features in each coordinate."""
    def weights(rng):
        found = {"latents": uniform(rng, r, d)}
        for at, width in (("cross.0", c), ("cross.1", c), ("latent.0", d), ("latent.1", d)):
            found |= norms(rng, d, at + ".norm_query", at + ".mlp.norm") | norm_weights(rng, at + ".norm_input", width)
            found |= dense(rng, (at + ".query", d, d), (at + ".key", d, width), (at + ".value", d, width))
            found |= dense(rng, *((at + x, d, d) for x in (".output", ".mlp.up", ".mlp.down")))
        return found

    flops = 3 * (4.0 * m * c * d + 4.0 * r * m * d + 8.0 * r * d * d + layer(r, d, d))
    return made("memory-compression/perceiver", f"M={m} R={r} D={d}", flops, rows(1, m, c), weights,
                dict(heads=heads, B=1, M=m, C=c), dict(HEADS=heads))


@entry
def set_transformer(b=4, n=1000, d=256, points=32, seeds=4, heads=4):
    def mab(rng, at):
        return attention_weights(rng, at + ".", d) | dense(rng, (at + ".rff", d, d)) | norms(rng, d, at + ".norm1", at + ".norm2")

    def weights(rng):
        found = {"pma.seeds": uniform(rng, seeds, d)} | dense(rng, ("decoder", d, d)) | mab(rng, "pma") | mab(rng, "sab")
        for l in range(2):
            found |= {f"isab.{l}.inducing": uniform(rng, points, d)} | mab(rng, f"isab.{l}.mab1") | mab(rng, f"isab.{l}.mab2")
        return found

    def block(i, j):
        return i * 6.0 * d * d + j * 4.0 * d * d + 4.0 * i * j * d

    flops = b * (2 * (block(points, n) + block(n, points)) + 2.0 * n * d * d + block(seeds, n) + block(seeds, seeds) + 2.0 * seeds * d * d)
    return made("memory-compression/set-transformer", f"B={b} N={n} D={d}", flops, rows(b, n, d), weights,
                dict(points=points, seeds=seeds, heads=heads, B=b, N=n, D=d), dict(HEADS=heads))


# --- layers ------------------------------------------------------------------------------------------------------------


@entry
def moe_dense(n=128, d=512, m=4, a=2048):
    def weights(rng):
        return {"gate.weight": uniform(rng, m, d) * np.float32(d**-0.5), "experts.up.weight": uniform(rng, m, a, d) * np.float32(d**-0.5),
                "experts.up.bias": uniform(rng, m, a), "experts.down.weight": uniform(rng, m, d, a) * np.float32(a**-0.5),
                "experts.down.bias": uniform(rng, m, d)}

    return made("moe-conditional/moe-dense", f"N={n} D={d} M={m} A={a}", n * m * (4.0 * d * a + 4.0 * d), rows(1, n, d, "h"), weights,
                dict(B=1, N=n, D=d))


@entry
def gmlp(n=512, d=512, hidden=3072):
    """gMLP base: 512 wide, 3072 hidden units."""
    def weights(rng):
        found = {}
        for at in ("layer.0.", "layer.1."):
            found |= norms(rng, d, at + "norm") | norms(rng, hidden // 2, at + "spatial.norm")
            found |= dense(rng, (at + "up", hidden, d), (at + "down", d, hidden // 2))
            found |= {at + "spatial.weight": uniform(rng, n, n) * np.float32(n**-0.5), at + "spatial.bias": uniform(rng, n)}
        return found

    return made("ffn/gmlp", f"N={n} D={d}", 2 * (3.0 * n * d * hidden + n * n * hidden), rows(1, n, d), weights,
                dict(hidden=hidden, B=1, N=n, D=d))


@entry
def macaron(n=128, d=512, hidden=1024):
    def weights(rng):
        found = {}
        for at in ("layer.0.", "layer.1."):
            found |= attention_weights(rng, at, d) | norms(rng, d, at + "norm1", at + "norm2", at + "norm3")
            found |= feed_forward_weights(rng, at + "first.", d, hidden) | feed_forward_weights(rng, at + "second.", d, hidden)
        return found

    return made("norm-residual/macaron", f"N={n} D={d}", 2 * layer(n, d, 2 * hidden), rows(1, n, d), weights,
                dict(hidden=hidden, B=1, N=n, D=d))


@entry
def dlcl(n=128, d=512, hidden=1024):
    def weights(rng):
        found = norms(rng, d, *(f"combine.norm.{l}" for l in range(4))) | {"combine": np.tril(uniform(rng, 4, 4) + np.float32(0.5))}
        for at in (f"layer.{l}." for l in range(3)):
            found |= attention_weights(rng, at + "attention.", d) | feed_forward_weights(rng, at + "ffn.", d, hidden)
            found |= norms(rng, d, at + "norm1", at + "norm2")
        return found

    return made("depth/dlcl", f"N={n} D={d}", 3 * layer(n, d, hidden) + 20.0 * n * d, rows(1, n, d), weights,
                dict(hidden=hidden, B=1, N=n, D=d))


@entry
def ode_rk2(n=128, d=512, hidden=1024):
    def weights(rng):
        found = {}
        for at in ("layer.0.", "layer.1."):
            found |= attention_weights(rng, at + "attention.", d) | feed_forward_weights(rng, at + "ffn.", d, hidden)
            found |= norms(rng, d, at + "attention.norm", at + "ffn.norm")
        return found

    return made("ode/ode-rk2", f"N={n} D={d}", 4 * layer(n, d, hidden), rows(1, n, d, "z"), weights, dict(hidden=hidden, B=1, N=n, D=d))


@entry
def dynamicconv(b=4, n=64, c=1024, h=16, k=15):
    def weights(rng):
        return dense(rng, ("input", 2 * c, c), ("output", c, c)) | {"conv.weight": uniform(rng, h, k, c) * np.float32(c**-0.5)}

    return made("conv-hybrid/dynamicconv", f"B={b} N={n} C={c} K={k}", b * n * (6.0 * c * c + 2.0 * c * h * k + 2.0 * c * k), rows(b, n, c), weights,
                dict(B=b, N=n, C=c))


@entry
def squeeze_excitation(b=8, size=56, c=256, reduced=16):
    """The second stage of a ResNet."""
    weights = lambda rng: dense(rng, ("squeeze", reduced, c), ("excite", c, reduced))
    return made("conv-hybrid/squeeze-excitation", f"B={b} {size}x{size} C={c}", 2.0 * b * size * size * c + 4.0 * b * c * reduced,
                lambda rng: {"x": uniform(rng, b, size, size, c)}, weights, dict(reduced=reduced, B=b, H=size, W=size, C=c))


@entry
def lite_transformer(n=128, d=496, heads=4, k=31):
    def weights(rng):
        found = {}
        for at in ("layer.0.", "layer.1."):
            found |= attention_weights(rng, at + "attention.", d // 2) | feed_forward_weights(rng, at, d, d) | norms(rng, d, at + "norm1", at + "norm2")
            found |= dense(rng, (at + "branch.input", d, d // 2), (at + "branch.output", d // 2, d // 2))
            found |= {at + "branch.conv.weight": uniform(rng, heads, k)}
        return found

    flops = 2 * (layer(n, d // 2, 2 * d) - 8.0 * n * (d // 2) * d + 4.0 * n * d * d + 6.0 * n * (d // 2)**2 + 2.0 * n * (d // 2) * k)
    return made("conv-hybrid/lite-transformer", f"N={n} D={d} K={k}", flops, rows(1, n, d), weights,
                dict(heads=heads, B=1, N=n, D=d), dict(HEADS=heads))


@entry
def int8_matmul(n=128, k=768, m=3072):
    def inputs(rng):
        a = uniform(rng, n, k)
        for _ in range(100):  # away from ties of round, which f32 decides as it can
            r = a / (np.abs(a).max().astype(np.float64) / 127)
            a = np.where(np.abs(r - np.floor(r) - 0.5) < 1e-3, a * np.float32(0.99), a)
        return {"a": a, "A": rng.integers(-127, 128, (k, m)).astype(np.int8), "sA": uniform(rng, m) + np.float32(1.5)}

    return made("quantization/int8-matmul", f"{n}x{k}x{m}", 2.0 * n * k * m, inputs, sets=dict(N=n, K=k, M=m))
