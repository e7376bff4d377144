# RUN: %python %s %heed_bin %heed_src
"""What makes the inner loops of each family of schedules fast, read off the assembly.

A loop of products keeps its sums in registers (nothing is spilled), computes no index (no division, product or clamp of integers) and
does more multiply-adds than loads; a loop over rows or elements works in whole vectors.
"""
import pathlib
import re
import sys

from runs import expect, finish, run

heedc, source = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
VECTOR = {"x86-64-v3": "ymm", "x86-64-v4": "zmm"}
INDEX = r"\s(i?div[lq]?|imul\w*|cmov\w*)\s"
SPILL = r"mm\d.*-byte (Folded )?(Spill|Reload)"


class Loop:
    """One that holds no other; named after Halide's loop."""

    def __init__(self, function, lines, vector):
        self.function, self.lines = function, lines
        self.name = (re.findall(r'%"?\d+_for_([\w.$]+)', "\n".join(lines)) or ["?"])[0]
        self.products = self.count(rf"\svf?n?m(add|sub)\d+ps\s.*{vector}")
        self.loads = self.count(rf"\(%r[^)]*\)(\{{1to\d+\}})?, .*%{vector}\d+(?!.*(Spill|Reload))")
        self.vectors = self.count(rf"%{vector}")

    def count(self, pattern):
        return sum(bool(re.search(pattern, line)) for line in self.lines)

    def __str__(self):
        return f"{self.function}, loop {self.name}"


def loops(text, vector):
    functions = re.split(r"^([A-Za-z_][\w.$]*):", text, flags=re.M)
    for function, body in zip(functions[1::2], functions[2::2]):
        lines, labels, ends = body.split("\n"), {}, {}
        for number, line in enumerate(lines):
            if label := re.match(r"(\.L\w+):", line):
                labels[label[1]] = number
            jump = re.match(r"\s+j\w+\s+(\.L\w+)", line)
            if jump and jump[1] in labels:
                ends[labels[jump[1]]] = number  # the last one: it may go on from several places
        spans = list(ends.items())
        for first, last in spans:
            # The header may lie behind what LLVM has moved to the top.
            header = any("Inner Loop Header" in line for line in lines[first:last])
            if header and not any((a, b) != (first, last) and first <= a and b <= last for a, b in spans):
                yield Loop(function, lines[first:last + 1], vector)


def of(target, model, *options):
    done = run(heedc, source / model, *options, f"--target={target}", "--emit=asm", "-o", "-")
    expect(done.returncode == 0, f"{model} {options}: {done.stderr}")
    return list(loops(done.stdout, VECTOR[target]))


def expect_products(found, what, name, least, form=""):
    """Loops `name` of functions that hold `form`: at least `least` multiply-adds for each load."""
    these = [loop for loop in found if re.match(name, loop.name) and form in loop.function and loop.products >= 8]
    expect(these, f"{what}: expected a loop {name} of products in {form}, found {sorted({loop.name for loop in found})}")
    for loop in these:
        expect(not loop.count(SPILL), f"{what}: {loop} spills {loop.count(SPILL)} vectors")
        expect(not loop.count(INDEX), f"{what}: {loop} computes indices")
        expect(loop.products >= least * loop.loads,
               f"{what}: {loop}: {loop.products} multiply-adds for {loop.loads} loads, expected {least} for each")


def expect_query(found, what, target):
    """Loops of one query at a time, E = F = 64: sums in registers, of some keys, and of eight keys for four vectors of a row of V; an
    operand in memory for each multiply-add and a quarter more. Rows of V that all members of a group take may lie on the stack: loads."""
    lanes = {"ymm": 8, "zmm": 16}[VECTOR[target]]
    for name, least in (r"t_full0_lanes\.s1", lanes), (r"pv_full\.s1\.(rx_rj\$y|b2|dt\.do\.do)$", 8 * 4):
        these = [loop for loop in found if re.match(name, loop.name) and "parts" in loop.function]
        expect(these, f"{what}: expected a loop {name} of one query, found {sorted({loop.name for loop in found})}")
        for loop in these:
            again = loop.count(r"mm\d.*-byte (Folded )?Reload")
            expect(loop.products >= least, f"{what}: {loop}: {loop.products} multiply-adds, expected {least} side by side")
            expect(not loop.count(r"mm\d.*-byte Spill"), f"{what}: {loop} spills")
            expect(not loop.count(INDEX), f"{what}: {loop} computes indices")
            expect(loop.loads + again <= 1.25 * loop.products,
                   f"{what}: {loop}: {loop.loads} loads and {again} reloads for {loop.products} multiply-adds")


for target in VECTOR:
    for model in "core/sdpa.heed", "core/causal-attention.heed":
        found = of(target, "models/" + model, "--set=E=64", "--set=F=64")
        what = f"{model}, {target}"
        expect_products(found, what, "t_full0", 1.5, "attention_par")
        expect_products(found, what, "pv_full", 1.5, "attention_par")
        expect_products(found, what, "t_part0", 1.5, "attention_par")
        expect_products(found, what, "t_full0", 0.75, "narrow_par")
        expect_products(found, what, "pv_full", 0.75, "narrow_par")
        expect_query(found, what, target)
        for loop in found:  # weights of a full block: exp, and what is rounded
            if loop.name.startswith("p_full") and "attention_par" in loop.function:
                expect(loop.products >= 32 and not loop.count(SPILL) and not loop.count(INDEX), f"{what}: {loop} spills or computes indices")
    expect_query(of(target, "bench/models/attention.heed", "--model=decode", "--set=E=64", "--set=F=64"), f"decode, {target}", target)
    for model in "product", "bias_gelu", "swiglu":
        found = of(target, "bench/models/gemm.heed", f"--model={model}")
        expect_products(found, f"{model}, {target}", "sum0", 1.5)
    found = of(target, "models/linear/linear-attention-bidir.heed", "--set=E=64")
    expect_products(found, f"linear attention, {target}", "sum0", 1.5)
    found = of(target, "models/linear/linear-attention-bidir.heed", "--set=E=64", "--set=F=64")
    expect_products(found, f"keys of linear attention, {target}", r"sum\d_block", 1.5, "contraction_par")
    expect_products(found, f"queries of linear attention, {target}", r"sum\d\.", 1.5, "contraction_0_par")
    # Lines that come while the products are computed: of the keys' next block two arrays, of later queries the rows and what they result in.
    for name, form, least in (r"sum\d_block", "contraction_par", 2), (r"sum\d\.", "contraction_0_par", 4):
        lines = max((loop.count("prefetcht0") for loop in found if re.match(name, loop.name) and form in loop.function and loop.products >= 8), default=0)
        expect(lines >= least, f"linear attention, {target}: {form} prefetches {lines} lines, expected {least}")
    for loop in found:  # feature maps
        if re.match(r"columns\.|f0", loop.name):
            expect(loop.vectors and loop.count(SPILL) <= 4, f"linear attention, {target}: {loop} spills {loop.count(SPILL)} vectors")
    for model, size in ("layer_norm_rows", 3), ("rms_norm_rows", 2), ("softmax_rows", 3), ("chain", 1):
        found = of(target, "bench/models/rows.heed", f"--model={model}")
        # The rows of a last, shorter task have what is left of a row inside of their loops, under a mask.
        work = [loop for loop in found if loop.loads and not loop.count(r"\svmaskmov")]
        expect(len(work) >= size, f"{model}, {target}: expected {size} loops with vectors, found {len(work)}")
        for loop in work:
            # With 16 registers what a row has once, as its maximum, may be an operand in memory like the constants of exp.
            again = loop.count(r"mm\d.*-byte (Folded )?Reload")
            expect(not loop.count(INDEX) and not loop.count(r"mm\d.*-byte Spill") and again <= 1,
                   f"{model}, {target}: {loop} computes indices, spills or reloads {again} vectors")
finish()
