# RUN: %python %s %heed_bin %heed_src %t
"""--explain=json: every line of stderr is one object whose place lies in the source; --explain=all says the same as text, --explain what counts of each attention."""
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
text = run(heedc, model, "--explain=all", "--emit=halide", "-o", folder / "out.mlir").stderr.splitlines()
expect(len(text) == len(remarks), f"{len(text)} lines, {len(remarks)} objects")
for line, r in zip(text, remarks):
    expect(line.startswith(f"{r['file']}:{r['line']}:{r['column']}: {r['pass']}") and line.endswith(r["message"]), f"{line!r} for {r}")

# The summary: a line for each attention (how, what is stored), what it costs and why it is no better below it; the rest is counted.
(folder / "two.heed").write_text("""model two(x: f32[N, D], k: f32[M, D], w: f32[H, H], v: f32[M, D]) {
  r[n] = sum(d) x[n, d] * x[n, d]
  q[n, d] = x[n, d] / sqrt(r[n] + 0.1)
  s[n, m] = sum(d) q[n, d] * k[m, d]
  p[n, m] = softmax(m where m % 3 != n % 2) s[n, m]
  o[n, d] = sum(m) p[n, m] * v[m, d]
  t[h, n, m] = s[n, m] * w[h, h]
  a[h, n, m] = softmax(m) t[h, n, m]
  b[g, n, m] = sum(h) a[h, n, m] * w[h, g]
  return z[g, n, d] = sum(m) b[g, n, m] * (v[m, d] + o[n, d])
}""")
lines = run(heedc, folder / "two.heed", "--explain", "--emit=halide", "-o", folder / "two.mlir").stderr.splitlines()
headers = [line for line in lines if ": attention, " in line]
expect([line.split(": ")[1] for line in headers] == ["attention, streaming", "attention, row-block"], f"headers: {lines}")
at = lines.index(headers[0])
expect("no scores are stored" in lines[at] and any(line == "  costs 2*D*M*N products, less where it is masked" for line in lines[at:]), f"of the first: {lines}")
every = run(heedc, folder / "two.heed", "--explain=json", "--emit=halide", "-o", folder / "two.mlir").stderr.splitlines()
places = {tuple(json.loads(line)[key] for key in ("line", "column")) for line in every if json.loads(line)["pass"] == "attn-choose-algorithm"}
left = [r for r in map(json.loads, every) if (r["line"], r["column"]) not in places and (r["pass"], r["kind"]) != ("attn-plan-memory", "done")]
expect(lines[-1] == f"{len(left)} remarks on other operations: --explain=all" and len(lines) < len(every) + 1, f"{len(left)}: {lines}")
# What stays inside of a kernel is named with the bytes that are not moved: written once and read once.
(folder / "layer.heed").write_text("""model layer(x: f32[N, D], w: f32[24, D], b: f32[24]) {
  y[n, o] = sum(d) x[n, d] * w[o, d] + b[o]
  return z[n, o] = tanh(y[n, o])
}""")
saved = run(heedc, folder / "layer.heed", "--explain=all", "--emit=halide", "-o", folder / "layer.mlir").stderr
expect("which saves writing and reading [N, 24] of f32 (192*N bytes)" in saved, f"bytes saved: {saved}")
# A softmax that is no attention's is said, with why the sum after it was not raised.
(folder / "alone.heed").write_text("""model alone(q: f32[N, D], k: f32[9, D], v: f32[9, 8]) {
  s[n, m:7] = sum(d) q[n, d] * k[m, d]
  p[n, m] = softmax(m) s[n, m]
  r[n] = sum(m) p[n, m] * p[n, m]
  return o[n, f:3] = sum(m:7) p[n, m] * p[n, m] / r[n] * v[m, f]
}""")
alone = run(heedc, folder / "alone.heed", "--explain", "--emit=halide", "-o", folder / "alone.mlir").stderr
expect("3:13: no attention: a softmax by itself: its rows are stored, [N, 7] of f32" in alone and "5:22: no attention: not raised: " in alone, alone)

# What libHalide warns of is nothing that a user could act on: this kernel has an update that runs as it stands.
(folder / "rows.heed").write_text("model rows(x: f32[N, M]) { return y[n, m] = softmax(m) x[n, m] }")
rows = run(heedc, folder / "rows.heed", "--no-cache", "-o", folder / "rows")
expect(rows.returncode == 0 and not rows.stderr, f"warnings: {rows.stderr}")
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
