"""What is measured on a GPU, group `gpu`, f32 (goals.py has the goals): the cases of cases.py in sizes that fill one.

Of rows, elements and gathers each array is far beyond the caches. Encoders have the shapes of MiniLM and BERT base and drawn weights.
"""
import dataclasses
import os

import numpy as np

import cases
import checkpoints
from cases import BASE, MODELS, OWN, Case, normal

MINILM = {**BASE, "hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536}
TINY_ENCODER = {**BASE, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96, "vocab_size": 64}


@dataclasses.dataclass
class Sizes:
    tokens: int = 16384  # of an attention: batch times queries
    queries: tuple = (2048, 4096, 8192, 16384)
    fewer: tuple = (2048, 16384)  # of the masks that are neither none nor causal
    width: int = 1024  # heads times their extent
    extents: tuple = (64, 128)
    window: int = 512
    documents: int = 12
    squares: tuple = (1024, 2048, 4096, 8192)
    row: tuple = (4096, 11008)  # of a weight that one row is multiplied by
    keys: tuple = ((1, 1, 65536), (8, 8, 16384), (32, 8, 16384), (64, 64, 4096))  # heads, heads of keys, keys
    elements: int = 1 << 26
    lengths: tuple = (1024, 4096, 32768)
    table: tuple = (131072, 1024)
    gathered: tuple = (64, 1024)
    encoders: tuple = (("MiniLM", MINILM), ("BERT base", BASE))
    batches: tuple = ((1, 128), (32, 128))
    chain: int = 256  # elements of a tiny kernel
    turns: tuple = (16, 272)  # of two chains of them


FULL = Sizes()
TINY = Sizes(tokens=80, queries=(40, 80), fewer=(40,), width=32, extents=(16,), window=9, documents=3, squares=(72,), row=(96, 160), keys=((2, 2, 70), (4, 2, 300)),
             elements=1 << 12, lengths=(64, 300), table=(50, 24), gathered=(3, 11), encoders=(("tiny", TINY_ENCODER),), batches=((1, 9), (3, 9)), chain=16, turns=(2, 6))


def sets(**values):
    return tuple(word for name, value in values.items() for word in ("--set", f"{name}={value}"))


def attentions(s):
    kinds = {"full": ("core/sdpa.heed", {}), "causal": ("core/causal-attention.heed", dict(mask="causal")),
             f"window {s.window}": ("attention.heed", dict(of="window", mask="window", window=s.window)),
             "ALiBi + cap": ("attention.heed", dict(of="alibi_cap", mask="causal", cap=50.0, alibi=True)),
             f"{s.documents} documents": ("attention.heed", dict(of="documents", mask="documents", documents=s.documents))}
    for name, (model, more) in kinds.items():
        for e in s.extents:
            for n in s.queries if name in ("full", "causal") else s.fewer:
                b, h = s.tokens // n, s.width // e
                case = cases.attention(f"{name} N={n} E={e} B={b} H={h}", model, n, e=e, h=h, b=b, **more)
                yield dataclasses.replace(case, options=(*case.options, *sets(window=s.window))) if "window" in more else case


def gemms(s):
    for n in s.squares:
        yield cases.gemm("GEMM, bias, GELU", "bias_gelu", n, n, n)


def rounded(weights, dtype):
    """f32 arrays of numbers that the type has: what a model holds in it is what the reference reads."""
    def one(array):
        found = checkpoints.stored(array, dtype)
        return (found.astype(np.uint32) << 16).view(np.float32) if dtype == "bf16" else found.astype(np.float32)

    return {name: one(array) for name, array in weights.items()}


def decodes(s):
    for h, g, m in s.keys:
        yield cases.attention(f"decode M={m} E=128 H={h}/{g}", "attention.heed", 1, e=128, h=h, g=g, m=m, mask="decode", of="decode")
    h, g, m = s.keys[-1]  # with a query axis, whose length only the call knows
    yield cases.attention(f"decode by causal attention M={m} E=128 H={h}/{g}", "core/causal-attention.heed", 1, e=128, h=h, g=g, m=m, mask="causal")
    d, o = s.row
    case = cases.gemm("row by a weight", "product", 1, d, o)
    for dtype in ("f32", "f16", "bf16"):
        yield dataclasses.replace(case, name=f"{case.name} {dtype}", options=(*case.options, *sets(N=1), f"--weights-type={dtype}"),
                                  reads=4.0 * d + d * o * (4.0 if dtype == "f32" else 2.0), make_weights=lambda dtype=dtype: rounded(case.make_weights(), dtype))


def passes(s):
    for kind in ("layer_norm", "softmax"):
        for d in s.lengths:
            yield cases.one_pass(kind, s.elements // d, d)
    yield cases.one_pass("chain", s.elements // s.lengths[0], s.lengths[0])


def embedding(s):
    (v, d), (b, n) = s.table, s.gathered
    rows = np.random.default_rng(1).permutation(v - 1)[:b * n] + 1  # each once: no cache helps
    return Case(f"embedding {b}x{n} of {v}x{d}", "gpu", "embedding", dict(V=v, D=d), os.path.join(MODELS, "core/embedding-lookup.heed"), (), 0.0,
                4.0 * rows.size * (d + 1), 4.0 * rows.size * d, make=lambda: {"id": rows.reshape(b, n).astype(np.int32)},
                make_weights=lambda: {"embedding.weight": normal(2, v, d)})


def encoders(s):
    for name, config in s.encoders:
        for b, n in s.batches:
            yield cases.encoder(name, config, lambda config=config: cases.drawn_weights(config), b, n)


def launches(s):
    yield Case("a kernel of a chain", "gpu", "launch", dict(turns=s.turns), os.path.join(OWN, "launch.heed"), sets(D=s.chain),
               make=lambda: {"x": normal(1, 1, s.chain), "L": np.array(s.turns[1], np.int32)})
    case = next(encoders(s))
    yield dataclasses.replace(case, name=f"open {case.name}", kind="open")


def cases_of(s=FULL):
    for part in (attentions, gemms, decodes, passes, lambda s: [embedding(s)], encoders, launches):
        for case in part(s):
            yield dataclasses.replace(case, group="gpu")
