# RUN: %python %s %heed_bin %heed_src %t
"""--explain=json: every line of stderr is one object whose place lies in the source; the text form says the same."""
import json
import pathlib
import sys

from runs import expect, finish, run

heedc, model = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]) / "models/core/causal-attention.heed"
folder = pathlib.Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
source = model.read_text().splitlines()
KEYS = {"pass": str, "name": str, "function": str, "kind": str, "file": str, "line": int, "column": int, "message": str}

done = run(heedc, model, "--explain=json", "--emit=halide", "-o", folder / "out.mlir")
expect(done.returncode == 0, f"exit code {done.returncode}")
remarks = []
for line in done.stderr.splitlines():
    try:
        remarks.append(json.loads(line))
    except ValueError as error:
        expect(False, f"not JSON: {line!r}: {error}")
expect(len(remarks) > 1, f"remarks: {done.stderr}")
for remark in remarks:
    expect({key: type(value) for key, value in remark.items()} == KEYS, f"keys and types: {remark}")
    expect(remark["kind"] in ("done", "declined", "found") and remark["message"], f"kind and message: {remark}")
    expect(remark["file"] == str(model) and 1 <= remark["line"] <= len(source)
           and 1 <= remark["column"] <= len(source[remark["line"] - 1]), f"place: {remark}")
raised = [r for r in remarks if r["pass"] == "attn-raise-attention" and r["kind"] == "done"]
expect(len(raised) == 1 and "softmax" in "".join(source[4:6]), f"the attention is raised once: {raised}")

# The same remarks as text, and no remark without the option.
for option in ("--explain", "--explain=text"):
    text = run(heedc, model, option, "--emit=halide", "-o", folder / "out.mlir").stderr.splitlines()
    expect(len(text) == len(remarks), f"{option}: {len(text)} lines, {len(remarks)} objects")
    for line, r in zip(text, remarks):
        expect(line.startswith(f"{r['file']}:{r['line']}:{r['column']}: {r['pass']}") and line.endswith(r["message"]),
               f"{option}: {line!r} for {r}")
# What stays inside of a kernel is named with the bytes that are not moved: written once and read once.
(folder / "layer.heed").write_text("""model layer(x: f32[N, D], w: f32[24, D], b: f32[24]) {
  y[n, o] = sum(d) x[n, d] * w[o, d] + b[o]
  return z[n, o] = tanh(y[n, o])
}""")
saved = run(heedc, folder / "layer.heed", "--explain", "--emit=halide", "-o", folder / "layer.mlir").stderr
expect("which saves writing and reading [N, 24] of f32 (192*N bytes)" in saved, f"bytes saved: {saved}")
quiet = run(heedc, model, "--emit=halide", "-o", folder / "quiet.mlir")
expect(quiet.stderr == "", f"without --explain: {quiet.stderr}")
expect((folder / "quiet.mlir").read_bytes() == (folder / "out.mlir").read_bytes(), "--explain changed the output")

# Quotes in a file's name stay inside their string.
odd = folder / 'a "b".heed'
odd.write_text(model.read_text())
line = run(heedc, odd, "--explain=json", "--emit=halide", "-o", folder / "out.mlir").stderr.splitlines()[0]
expect(json.loads(line)["file"] == str(odd), line)

# An unknown form is an error.
done = run(heedc, model, "--explain=xml", "-o", folder / "xml")
expect(done.returncode == 1 and "xml" in done.stderr and not (folder / "xml").exists(), done.stderr)
finish()
