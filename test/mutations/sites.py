"""The deliberate faults that the sources hold: calls of mutated("pass.fault") (passes/Mutation.h)."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
SITE = re.compile(r'mutated\(\s*"([\w-]+)\.([\w-]+)"\)')

# Part of the compiler: (its pass, the oracle that sees its work; hunt.py says what they run). Passes are those of docs/passes.md; attn-to-halide has a part
# for each family of schedules and what they share.
PARTS = {
    "split-scans": ("attn-split-scans", "rewrites"),
    "batch-steps": ("attn-batch-steps", "rewrites"),
    "raise-linear-attention": ("attn-raise-linear-attention", "rewrites"),
    "widen-sums": ("attn-widen-sums", "rewrites"),
    "chunk": ("attn-chunk-linear-attention", "halide"),
    "fuse-scans": ("attn-fuse-scans", "rewrites"),
    "block-scans": ("attn-block-scans", "halide"),
    "lower-scans": ("attn-lower-scans", "halide"),
    "fuse-elementwise": ("attn-fuse-elementwise", "rewrites"),
    "contract-tables": ("attn-contract-tables", "rewrites"),
    "raise-attention": ("attn-raise-attention", "rewrites"),
    "reorder-products": ("attn-reorder-products", "rewrites"),
    "join-dims": ("attn-join-dims", "halide"),
    "solve-masks": ("attn-solve-masks", "halide"),
    "split-masks": ("attn-split-masks", "halide"),
    "choose-algorithm": ("attn-choose-algorithm", "halide"),
    "attention-plan": ("attn-choose-algorithm", "halide"),
    "score-bound": ("attn-to-halide", "halide"),
    "hoist-invariants": ("attn-hoist-invariants", "halide"),
    "hoist-weights": ("attn-hoist-weights", "halide"),
    "form-kernels": ("attn-form-kernels", "halide"),
    "merge-products": ("attn-merge-products", "kernels"),
    "merge-steps": ("attn-merge-steps", "kernels"),
    "merge-elementwise": ("attn-merge-elementwise", "kernels"),
    "stream-attention": ("attn-stream-attention", "kernels"),
    "kernel-algorithm": ("attn-to-halide", "halide"),
    "streaming": ("attn-to-halide", "halide"),
    "mask-tables": ("attn-to-halide", "halide"),
    "row-block": ("attn-to-halide", "halide"),
    "rows": ("attn-to-halide", "halide"),
    "contraction": ("attn-to-halide", "halide"),
    "row-product": ("attn-to-halide", "halide"),
    "dot-products": ("attn-to-halide", "halide"),
    "state-product": ("attn-to-halide", "halide"),
    "elementwise": ("attn-to-halide", "halide"),
    "windows": ("attn-to-halide", "halide"),
    "recurrence": ("attn-to-halide", "halide"),
    "element-scan": ("attn-to-halide", "halide"),
    "sum-scan": ("attn-to-halide", "halide"),
    "expand-math": ("halide-expand-math", "halide"),
    "form-entries": ("attn-form-entries", "host"),
    "plan-memory": ("attn-plan-memory", "host"),
    "lower-host": ("attn-lower-host", "host"),
}

# What a proof stands behind.
PROVEN = ("contract-tables", "raise-attention", "reorder-products")

# Passes that cannot change a number, each with the reason.
WITHOUT = {
    "attn-hoist-packs": "moves by the code of attn-hoist-weights (passes/Plan/Hoisting.cpp), whose faults are for both",
    "attn-relax-math": "sets flags that --fast-math alone allows, for which no bound of errors is promised",
    "attn-round-products": "changes numbers where --products=bf16 asks for it; test/passes/Schedule/products.py compares them with NumPy's",
    "attn-verify-front-end": "verifies",
    "attn-verify-attention": "verifies",
    "attn-verify-kernels": "verifies",
    "attn-verify-halide": "verifies",
    "attn-verify-host": "verifies",
}

# Switches the proofs off: no fault of a pass.
PROOF_OFF = "proof.accept-anything"


def sites():
    """[(part, fault, file)] in the order of PARTS; of one fault each place."""
    found = []
    for file in sorted((ROOT / "passes").rglob("*.cpp")):
        found += [(part, fault, str(file.relative_to(ROOT))) for part, fault in SITE.findall(file.read_text())]
    order = list(PARTS)
    return sorted((s for s in found if f"{s[0]}.{s[1]}" != PROOF_OFF),
                  key=lambda s: (order.index(s[0]) if s[0] in order else len(order)))


def mutations():
    return [f"{part}.{fault}" for part, fault, _ in sites()]


def passes_of(document):
    """The names of the compiler's passes."""
    text = document.read_text().split("\n## ")[1]
    return re.findall(r"^### `-([\w-]+)`", text, re.M)


def mistakes(passes):
    """What is wrong with the list, for the test. `passes`: the names in docs/passes.md."""
    names = mutations()
    wrong = [f"'{n}' has two places" for n in sorted(set(names)) if names.count(n) > 1]
    wrong += [f"'{n}' belongs to no part of sites.py" for n in names if n.split(".")[0] not in PARTS]
    for part in PARTS:
        count = sum(n.split(".")[0] == part for n in names)
        if count < 5:
            wrong.append(f"{part}: expected five faults or more, found {count}")
    known = {name for name, _ in PARTS.values()} | set(WITHOUT)
    wrong += [f"{name}: neither faults nor a reason for having none" for name in passes if name not in known]
    wrong += [f"{name}: no such pass" for name in sorted(known) if name not in passes]
    return wrong
