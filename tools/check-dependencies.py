"""Checks that includes follow the straight line of the folders (CONTRIBUTING.md, "Dependencies"). Exit 1 and a list where they don't."""
import os
import re
import sys

# Folder -> the folders of this project that it may include (itself always). The longest matching folder counts.
MAY_INCLUDE = {
    "dialects/Attn": [],
    "dialects/Halide": [],
    "frontend/Common": ["dialects/Attn"],
    "frontend/Emit": ["frontend/Common", "dialects/Attn"],  # no front end's own: what one makes, another may emit
    "frontend": ["frontend/Common", "frontend/Emit", "dialects/Attn", "runtime/io"],
    "passes": ["dialects", "runtime/heed.h", "runtime/host.h"],
    "compiler/Codegen": ["dialects", "passes", "runtime"],
    "compiler/Reference": ["dialects", "compiler/Codegen/Host", "runtime"],
    "compiler": ["compiler", "dialects", "passes", "frontend", "runtime"],
    "runtime/io": ["runtime/heed.h"],  # its element types; the header includes nothing of ours
    "runtime": ["runtime/io"],
}
# The rooms of a station, in the order in which a model walks through them: each may include those before it.
ROOMS = {
    "frontend": ["Common", "Heed/Syntax", "Heed/Semantics", "Emit", "HuggingFace", "Heed"],
    "passes": ["Algebra", "Fuse", "Raise", "Rewrite", "Recurrence", "Masks", "Plan", "Kernels", "Schedule", "Lower", "Host", "Verify"],
}
# A room that sees less than its station, of the project's dialects or of MLIR's: a schedule knows pipelines, no tensors.
HIDDEN = {"passes/Schedule": ["dialects/Attn", "mlir/Dialect/Affine", "mlir/Dialect/Bufferization", "mlir/Dialect/Func", "mlir/Dialect/Linalg", "mlir/Dialect/MemRef", "mlir/Dialect/Tensor"]}
# What anyone may include; it includes nothing of ours.
LEAF = "support"
# Only here may libHalide's own header be seen.
HALIDE_HEADER = "compiler/Codegen/Halide"

root = sys.argv[1]
found = []
for top in (LEAF, "dialects", "frontend", "passes", "compiler", "runtime"):
    for folder, _, names in os.walk(os.path.join(root, top)):
        for name in sorted(names):
            if not name.endswith((".h", ".cpp", ".c", ".td")):
                continue
            path = os.path.relpath(os.path.join(folder, name), root)
            home = max((key for key in MAY_INCLUDE if path.startswith(key + "/")), key=len, default=None)
            for number, line in enumerate(open(os.path.join(folder, name), encoding="utf-8"), 1):
                match = re.match(r'\s*#?\s*include\s+["<]([^">]+)[">]', line)
                if not match:
                    continue
                target = match.group(1)
                if target == "Halide.h" and not path.startswith(HALIDE_HEADER):
                    found.append(f"{path}:{number}: includes Halide.h, which only {HALIDE_HEADER}*.cpp may")
                for room, hidden in HIDDEN.items():
                    dialect = next((folder for folder in hidden if target.startswith(folder + "/")), None)
                    if path.startswith(room + "/") and dialect:
                        found.append(f"{path}:{number}: includes {target}; {room} sees nothing of {dialect}")
                if target.split("/")[0] not in (LEAF, "dialects", "frontend", "passes", "compiler", "runtime", "models", "test"):
                    continue
                station = path.split("/")[0]
                rooms = ROOMS.get(station, [])
                room, other = (next((r for r in rooms if name.startswith(f"{station}/{r}/")), None) for name in (path, target))
                if room and other and rooms.index(other) > rooms.index(room):
                    found.append(f"{path}:{number}: includes {target}; a model comes to {other} after {room}")
                allowed = MAY_INCLUDE.get(home, []) + [home or top, LEAF]
                if not any(target.startswith(prefix) for prefix in allowed):
                    found.append(f"{path}:{number}: includes {target}; {home} may include {', '.join(allowed)}")
print("\n".join(found) or "dependencies: in order")
sys.exit(1 if found else 0)
