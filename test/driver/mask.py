# RUN: rm -rf %t && mkdir -p %t && %python %s heedc %heed_src/models %t
"""--emit=mask against the condition of each mask in NumPy, tile by tile and element by element: what is drawn as empty has no live pair, as full no
masked one, and where the solver is tight neither is drawn as partial. Then what it says where there is no mask, no size or no data."""
import os
import pathlib
import sys
import xml.dom.minidom

import numpy as np
from masks import differences, read
from runs import expect, expect_error, finish, run

heedc, models = sys.argv[1], pathlib.Path(sys.argv[2])
os.chdir(sys.argv[3])


def grid(n, m):
    return np.arange(n)[:, None], np.arange(m)[None, :]


def draw(model, *options):
    done = run(heedc, models / f"{model}.heed", "--emit=mask", "-o", "out.svg", *options)
    expect(done.returncode == 0 and done.stderr == "", f"{model} {options}: {done.stderr}")
    text = pathlib.Path("out.svg").read_text()
    xml.dom.minidom.parseString(text)
    os.remove("out.svg")
    return read(text), text


def compare(model, options, live, tight=True):
    """`live`: for each picture its mask."""
    masks, _ = draw(model, *options)
    expect(len(masks) == len(live), f"{model} {options}: {len(masks)} pictures: {[m.title for m in masks]}")
    for k, (mask, seen) in enumerate(zip(masks, live)):
        wrong = differences(mask, np.broadcast_to(seen, mask.tiles.shape), tight)
        expect(wrong is None, f"{model} {options}, picture {k}: {wrong}")
    return masks


# One condition on places; more keys than queries and fewer; sizes of the kernel's own tiles, odd ones and 1.
for n, m in ((64, 64), (16, 40), (40, 16), (1, 9), (61, 67), (700, 1030)):
    i, j = grid(n, m)
    masks = compare("core/causal-attention", [f"--set=N={n}", f"--set=M={m}", "--target=x86-64-v4"], [j <= i + (m - n)])
    expect(n < 700 or masks[0].tile == (32, 64), f"tiles of {masks[0].tile} for {n} queries")
i, j = grid(64, 64)
compare("core/causal-attention", [], [j <= i])
compare("sparse/block-local-attention", [], [i // 16 == j // 16])
compare("sparse/dilated-attention", [], [(abs(i - j) <= 12) & ((i - j) % 3 == 0)], tight=False)
compare("sparse/strided-attention", [], [(i - j) % 4 == 0])
compare("sparse/sparse-transformer-strided", [], [(j <= i) & (i - j <= 12), (j <= i) & ((i - j) % 12 == 0)], tight=False)
compare("sparse/image-transformer-1d", ["--set=N=90"], [(grid(90, 90)[1] <= grid(90, 90)[0]) & (grid(90, 90)[1] >= grid(90, 90)[0] // 16 * 16 - 24)])
# Several conditions in a model, in its order: encoder, decoder, from one to the other; data is given.
i, j = grid(24, 40)
ii, jj = grid(24, 24)
compare("whole-model/transformer-encdec", ["--set=N=40", "--set=T=24", "--input=length=29"], [grid(40, 40)[1] < 29, jj <= ii, j < 29])
# Data by query, by key, by batch index; a list goes on with its last number.
i, j = grid(50, 50)
seen = np.arange(50) < 3
compare("sparse/longformer", ["--set=N=50", "--set=H=2", "--input=global=1,1,1,0", "--input=dilation=1,2"],
        [(abs(i - j) <= 4) | seen[None, :], ((abs(i - j) <= 8) & ((i - j) % 2 == 0)) | seen[None, :], np.broadcast_to(seen[:, None], (50, 50))], tight=False)
left, right = np.minimum(np.arange(50), 5), np.minimum(np.arange(50) + 7, 30)
compare("sparse/span-bounds-attention", ["--set=N=50", "--set=M=50", f"--input=left={','.join(map(str, left))}", f"--input=right={','.join(map(str, right))}"],
        [(left[:, None] <= j) & (j <= right[:, None])])
document = np.arange(50) // 9 * 2
compare("core/varlen-packed-attention", ["--set=T=50", f"--input=seg={','.join(map(str, document))}"], [document[:, None] == document[None, :]])

# Data that is not given: what no data changes is drawn, the rest says so.
masks, text = draw("multimodal/m6", "--set=N=24", "--set=R=40")
expect("The mask depends on data: prefix" in text, "m6 names its data")
for mask in masks:
    for length in (0, 17, 64):
        i, j = grid(64, 64)
        live = (j < length) | (j <= i)
        expect(not live[mask.tiles == " "].any() and live[mask.tiles == "f"].all(), f"m6: what is drawn as certain does not hold for a prefix of {length}")
    expect((mask.tiles == "f").any() and (mask.tiles == "d").any() and not (mask.tiles == " ").any(), f"m6: {mask.tiles}")
    expect((mask.elements[(mask.tiles == "d") & (j > i)] == "o").all() and (mask.elements[(mask.tiles == "d") & (j <= i)] == "l").all(), "m6: elements")
# Several query and key dims are one: windows of 7 by 7, in the second layer moved by 3, of an image of 14 by 14, then of one of 7 by 7.
i, j = grid(49, 49)
apart = [np.ones((49, 49), bool)]
for r, s in ((0, 1), (1, 0), (1, 1)):
    apart.append(np.all([(w * 7 + a < 11) == (w * 7 + b < 11) for w, a, b in ((r, i // 7, j // 7), (s, i % 7, j % 7))], axis=0))
compare("vision/swin", [], [*apart, apart[0]], tight=False)

# Where there is nothing to draw.
expect_error(run(heedc, models / "core/mha.heed", "--emit=mask"), "model 'mha' has no mask: every query sees every key")
expect_error(run(heedc, models / "ffn/ffn-relu.heed", "--emit=mask"), "has no attention, so it has no mask")
expect_error(run(heedc, models / "core/causal-attention.heed", "--emit=mask", "--set=N=9000", "--set=M=9000"), "expected at most 4194304 pairs of a query and a key in a picture")
expect_error(run(heedc, models / "core/causal-attention.heed", "--emit=mask", "--input=w=1"), "--input w: model 'attention' has no input of that name")
expect_error(run(heedc, models / "core/causal-attention.heed", "--emit=mask", "--input=q=one"), "expected --input name=number,number,.., found 'q=one'")
expect_error(run(heedc, models / "core/causal-attention.heed", "--emit=attn", "--input=q=1"), "--input is for --emit=mask")
expect_error(run(heedc, models / "core/causal-attention.heed", "--emit=mask", "--backend=reference"), "the reference leaves out nothing")
run(heedc, models / "core/causal-attention.heed", "--emit=halide", "-o", "kernels.mlir")
expect_error(run(heedc, "kernels.mlir", "--emit=mask"), "--emit=mask needs a source or attn IR")
# attn IR is an input as a source is, and the picture is the same.
run(heedc, models / "core/causal-attention.heed", "--emit=attn", "-o", "attn.mlir")
one, other = (run(heedc, source, "--emit=mask") for source in (models / "core/causal-attention.heed", "attn.mlir"))
expect(one.returncode == 0 and one.stdout.split('class="mask"')[1] == other.stdout.split('class="mask"')[1], f"from attn IR: {other.stderr}")

# The reader of pictures sees a wrong one.
masks, text = draw("core/causal-attention")
i, j = grid(64, 64)
expect(differences(masks[0], j < i, True) and differences(masks[0], j <= i + 1, True), "a wrong mask passes")
finish()
