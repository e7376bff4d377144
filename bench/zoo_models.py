"""The zoo's cases, whole models: see zoo_cases.py."""
from zoo_cases import (FOUND, attention_weights, dense, entry, feed_forward_weights, layer, made, norms, np, scores, triangle, uniform)


@entry
def vit(size=224, d=384, heads=6, hidden=1536, classes=1000, p=16):
    """ViT-S/16."""
    tokens = (size // p)**2 + 1

    def weights(rng):
        found = {"embedding.weight": uniform(rng, p * p * 3, d) / np.float32(p), "class": uniform(rng, 1, d), "position": uniform(rng, tokens, d)}
        for at in ("layer.0.", "layer.1."):
            found |= attention_weights(rng, at + "self.", d) | feed_forward_weights(rng, at + "ffn.", d, hidden)
            found |= norms(rng, d, at + "norm1", at + "norm2")
        return found | norms(rng, d, "norm") | dense(rng, ("head", classes, d))

    flops = 2 * layer(tokens, d, hidden) + 2.0 * (tokens - 1) * p * p * 3 * d + 2.0 * d * classes
    return made("vision/vit", f"{size}x{size} D={d}", flops, lambda rng: {"image": uniform(rng, 1, size, size, 3)}, weights,
                dict(heads=heads, hidden=hidden, classes=classes, P=p, B=1, H=size, W=size, C=3), dict(HEADS=heads, P=p))


@entry
def swin(size=224, c=96, heads=(3, 6), classes=1000):
    """The first two stages of Swin-T."""
    def weights(rng):
        found = dense(rng, ("embedding", c, 48)) | norms(rng, c, "embedding.norm") | norms(rng, 4 * c, "stage.1.merge.norm")
        found |= {"stage.1.merge.weight": uniform(rng, 2 * c, 4 * c) * np.float32((4 * c)**-0.5)}
        for t, d in enumerate((c, 2 * c)):
            for at in (f"stage.{t}.{l}." for l in range(2)):
                found |= attention_weights(rng, at + "self.", d) | feed_forward_weights(rng, at + "ffn.", d, 4 * d)
                found |= norms(rng, d, at + "norm1", at + "norm2")
                found[at + "self.bias"] = uniform(rng, 13, 13, heads[t])
        return found | norms(rng, 2 * c, "norm") | dense(rng, ("head", classes, 2 * c))

    n, side = (size // 4)**2, size // 4
    live = ((side // 7 - 1) * 49 + 25)**2 / (side * 7)**2  # of the pairs of a shifted window, which the roll cuts into 4 and 3 at the end
    first = 96.0 * n * c + 48.0 * n * c * c + 4.0 * c * 49 * n * (1 + live)
    flops = first + 4.0 * n * c * c + 48.0 * n * c * c + 4.0 * c * 49 * n + 4.0 * c * classes
    return made("vision/swin", f"{size}x{size} C={c}", flops, lambda rng: {"image": uniform(rng, 1, size, size, 3)}, weights,
                dict(C=c, heads=f"[{','.join(map(str, heads))}]", classes=classes, B=1, H=size, W=size, K=3),
                dict(C=c, HEADS=list(heads)))


@entry
def conformer(n=250, d=256, k=32, heads=4):
    """Conformer M: ten seconds of speech."""
    def weights(rng):
        found = {}
        for at in ("layer.0.", "layer.1."):
            for f in ("ffn1", "ffn2"):
                found |= feed_forward_weights(rng, f"{at}{f}.", d, 4 * d) | norms(rng, d, f"{at}{f}.norm")
            found |= attention_weights(rng, at + "self.", d) | norms(rng, d, at + "self.norm", at + "conv.norm", at + "norm", at + "conv.batch")
            found[at + "self.position.weight"] = uniform(rng, d, d) * np.float32(d**-0.5)
            found |= {at + "self.u": uniform(rng, heads, d // heads), at + "self.v": uniform(rng, heads, d // heads)}
            found |= {at + "conv.batch.running_mean": uniform(rng, d), at + "conv.batch.running_var": uniform(rng, d) + np.float32(1.5)}
            found |= dense(rng, (at + "conv.pointwise1", 2 * d, d), (at + "conv.pointwise2", d, d))
            found |= {at + "conv.depthwise.weight": uniform(rng, d, k) * np.float32(k**-0.5), at + "conv.depthwise.bias": uniform(rng, d)}
        return found

    # The table of positions is of parameters alone; a product with it for each pair of its offsets.
    flops = 2 * (n * (16.0 * d * d + 8.0 * d * d + 6.0 * d * d + 2.0 * d * k) + 6.0 * n * n * d)
    return made("speech/conformer", f"N={n} D={d} K={k}", flops, lambda rng: {"x": uniform(rng, 1, n, d)}, weights,
                dict(heads=heads, B=1, N=n, D=d))


@entry
def flamingo(n=128, images=2, s=256, r=64, d=512, hidden=2048, words=1000):
    def weights(rng):
        found = {"embedding.weight": uniform(rng, words, d), "position.weight": uniform(rng, n, d), "resampler.latents": uniform(rng, r, d)}
        found |= {"gate.attention": uniform(rng, 2), "gate.ffn": uniform(rng, 2)} | norms(rng, d, "resampler.norm", "norm")
        for l in range(2):
            for at in (f"resampler.{l}.self.", f"gated.{l}.cross.", f"layer.{l}.self."):
                found |= attention_weights(rng, at, d)
            found |= norms(rng, d, f"resampler.{l}.norm.latents", f"resampler.{l}.norm.features", f"resampler.{l}.ffn.norm", f"gated.{l}.norm",
                           f"gated.{l}.ffn.norm", f"layer.{l}.norm1", f"layer.{l}.norm2")
            found |= feed_forward_weights(rng, f"layer.{l}.ffn.", d, hidden)
            for at in (f"resampler.{l}.ffn.", f"gated.{l}.ffn."):
                found |= feed_forward_weights(rng, at, d, 4 * d)
        return found

    def inputs(rng):
        ids = rng.integers(1, words, (1, n)).astype(np.int32)
        ids[0, [0, n // 2]] = 0
        return {"ids": ids, "f": uniform(rng, 1, images, s, d)}

    resampled = images * (4.0 * (s + 2 * r) * d * d + 4.0 * r * (s + r) * d + 16.0 * r * d * d)
    gated = 4.0 * n * d * d + 4.0 * images * r * d * d + 4.0 * n * r * d + 16.0 * n * d * d
    own = n * (8.0 * d * d + 4.0 * d * hidden) + scores(1, triangle(n), d)
    return made("multimodal/flamingo", f"N={n} images={images} D={d}", 2 * (resampled + gated + own) + 2.0 * n * d * words, inputs, weights,
                dict(hidden=hidden, B=1, N=n, I=images, S=s, D=d))


@entry
def palm_parallel_block(n=256, d=1024, heads=8, e=128, hidden=4096):
    def weights(rng):
        shapes = dict(query=(heads * e, d), key=(e, d), value=(e, d), output=(d, heads * e), gate=(hidden, d), up=(hidden, d), down=(d, hidden))
        found = {}
        for at in ("layer.0.", "layer.1."):
            found |= {f"{at}{name}.weight": uniform(rng, *s) * np.float32(s[1]**-0.5) for name, s in shapes.items()}
            found[at + "norm.weight"] = uniform(rng, d) + 1
        return found

    flops = 2 * (n * d * (4.0 * heads * e + 4.0 * e + 6.0 * hidden) + scores(heads, triangle(n), e))
    return made("whole-model/palm-parallel-block", f"N={n} D={d}", flops, lambda rng: {"x": uniform(rng, 1, n, d)}, weights,
                dict(heads=heads, E=e, hidden=hidden, B=1, N=n, D=d), dict(HEADS=heads, E=e))


@entry
def evolved_transformer(n=64, d=512, heads=8):
    def separable(rng, at, size, out, into):
        return {at + ".depthwise.weight": uniform(rng, into, size) * np.float32(size**-0.5)} | dense(rng, (at + ".pointwise", out, into))

    def weights(rng):
        found = norms(rng, d, "encoder.norm", "decoder.norm")
        for l in range(2):
            at, to = f"encoder.{l}.", f"decoder.{l}."
            found |= norms(rng, d, *(at + x for x in ("glu.norm", "conv.norm1", "self.norm", "ffn.norm")))
            found |= norms(rng, d, *(to + x for x in ("first.norm", "conv.norm1", "self.norm", "cross.norm", "ffn.norm1")))
            found |= norms(rng, 4 * d, at + "conv.norm2", to + "ffn.norm2") | norms(rng, 2 * d, to + "conv.norm2")
            for name in (at + "self.", to + "first.self.", to + "first.cross.", to + "self.", to + "cross."):
                found |= attention_weights(rng, name, d)
            found |= dense(rng, (at + "glu.value", d, d), (at + "glu.gate", d, d), (at + "conv.left", 4 * d, d))
            found |= {at + "conv.right.weight": uniform(rng, d // 2, d, 3) * np.float32((3 * d)**-0.5), at + "conv.right.bias": uniform(rng, d // 2)}
            found |= separable(rng, at + "conv.separable", 9, d // 2, 4 * d) | separable(rng, to + "conv.left", 11, 2 * d, d)
            found |= separable(rng, to + "conv.right", 7, d // 2, d) | separable(rng, to + "conv.separable", 7, d, 2 * d)
            found |= feed_forward_weights(rng, at + "ffn.", d, 4 * d) | feed_forward_weights(rng, to + "ffn.", d, 4 * d)
        return found

    def inputs(rng):
        return {"x": uniform(rng, 1, n, d), "length": np.full(1, n, np.int32), "y": uniform(rng, 1, n, d)}

    encoder = n * (4.0 * d * d + 8.0 * d * d + 3.0 * d * d + 72.0 * d + 4.0 * d * d) + layer(n, d, 4 * d)
    first = 16.0 * n * d * d + scores(1, triangle(n) + n * n, d)
    decoder = n * d * (22.0 + 4.0 * d + 14.0 + 1.0 * d + 28.0 + 4.0 * d + 16.0 * d) + first + 16.0 * n * d * d + scores(1, triangle(n) + n * n, d)
    return made("search-result/evolved-transformer", f"N={n} D={d}", 2 * (encoder + decoder), inputs, weights,
                dict(heads=heads, B=1, N=n, T=n, D=d), dict(HEADS=heads))
