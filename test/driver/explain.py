# RUN: %python %s %heed_bin %heed_src %t
"""--explain=json: every line of stderr is one object whose place lies in the source; --explain=all says the same as text, --explain what counts of each attention."""
import json
import pathlib
import re
import sys

from runs import expect, finish, run

heedc, model = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]) / "models/core/causal-attention.heed"
folder = pathlib.Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
source = model.read_text().splitlines()
SUMMARY = {"kernels": int, "attentions": int, "streaming": int, "rowBlock": int, "stored": list, "flops": str, "bytes": str, "seconds": float, "target": str}
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
    expect({key: type(value) for key, value in remark.items()} == KEYS | (SUMMARY if remark["kind"] == "summary" else {}), f"keys and types: {remark}")
    expect(remark["kind"] in ("done", "declined", "found", "summary") and remark["message"], f"kind and message: {remark}")
    expect(remark["file"] == str(model) and 1 <= remark["line"] <= len(source)
           and 1 <= remark["column"] <= len(source[remark["line"] - 1]), f"place: {remark}")
raised = [r for r in remarks if r["pass"] == "attn-raise-attention" and r["kind"] == "done"]
expect(len(raised) == 1 and "softmax" in "".join(source[4:6]), f"the attention is raised once: {raised}")

# What the model takes, once, at the end: seven equations are one kernel, and what it costs does not depend on how it is written.
expect([r["kind"] == "summary" for r in remarks].index(True) == len(remarks) - 1, f"the summary is last: {remarks}")
whole = remarks.pop()
expect([whole[key] for key in ("kernels", "attentions", "streaming", "rowBlock", "stored", "target")] == [1, 1, 1, 0, [], ""], f"{whole}")
expect(whole["flops"] == "2*B*E*H*M*N + 4*B*H*M*N + 2*B*F*H*M*N" and 0 < whole["seconds"] < 300, f"{whole}")
expect(whole["bytes"] == "4*B*E*G*M + 4*B*E*H*N + 4*B*F*G*M + 4*B*F*H*N", f"q, k, v and o once each: {whole}")

# The same remarks as text, and no remark without the option.
text = run(heedc, model, "--explain=all", "--emit=halide", "-o", folder / "out.mlir").stderr.splitlines()
expect(len(text) == len(remarks) + 1, f"{len(text)} lines, {len(remarks) + 1} objects")
expect(re.fullmatch(rf".*: model attention: {re.escape(whole['message'])}; compiled in [\d.]+ s", text[-1]), f"{text[-1]!r} for {whole}")
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
# What comes first: of the first attention no scores are stored, those of the second in its tile; what both stored products read is the largest between kernels.
expect(": model two: " in lines[0] and ", 2 of 2 attentions fused, " in lines[0], f"the summary is first: {lines[0]}")
every = run(heedc, folder / "two.heed", "--explain=json", "--emit=halide", "-o", folder / "two.mlir").stderr.splitlines()
places = {tuple(json.loads(line)[key] for key in ("line", "column")) for line in every if json.loads(line)["pass"] == "attn-choose-algorithm"}
left = [r for r in map(json.loads, every) if (r["line"], r["column"]) not in places and (r["pass"], r["kind"]) != ("attn-plan-memory", "done") and r["kind"] != "summary"]
expect(lines[-1] == f"{len(left)} remarks on other operations: --explain=all" and len(lines) < len(every) + 1, f"{len(left)}: {lines}")
# What stays inside of a kernel is named with the bytes that are not moved: written once and read once.
(folder / "layer.heed").write_text("""model layer(x: f32[N, D], w: f32[24, D], b: f32[24]) {
  y[n, o] = sum(d) x[n, d] * w[o, d] + b[o]
  return z[n, o] = tanh(y[n, o])
}""")
saved = run(heedc, folder / "layer.heed", "--explain=all", "--emit=halide", "-o", folder / "layer.mlir").stderr
expect("which saves writing and reading [N, 24] of f32 (192*N bytes)" in saved, f"bytes saved: {saved}")
# What lies between kernels is named in the model's sizes, those of parameters and of parts of a dim too; a loop counts as often as it runs; an
# attention that a function makes is counted each time, though the remarks are the same. Of two targets each has a summary.
(folder / "loop.heed").write_text("""import "attention.heed"
import "nn.heed"
model loop(x: f32[B, N, D], y: f32[B, M, D]) {
  for l in 0..3 {
    q = split_heads(linear(x, O = D, at = "{l}.q", bias = false), H = 2)
    a = attention(q, q, q)
    b = attention(a, split_heads(y, H = 2), split_heads(y, H = 2))
    x = merge_heads(b)
  }
  return z = x
}""")
both = run(heedc, folder / "loop.heed", "--explain=json", "--emit=obj", "--target=x86-64-v2,x86-64-v3", "-o", folder / "loop.o")
expect(both.returncode == 0, both.stderr)
found = [r for r in map(json.loads, both.stderr.splitlines()) if r["kind"] == "summary"]
expect([r["target"] for r in found] == ["x86-64-v3", "x86-64-v2"], f"{found}")
for summary in found:
    expect(summary["attentions"] == summary["streaming"] == 2 and summary["stored"][0] == "B*D*N", f"{summary}")
    expect("6*B*D*D*N" in summary["flops"] and "?" not in summary["flops"], f"three times a product of D x D: {summary}")
# Two orders of products, between which the sizes of a call decide: both are told, and what the sum has in common is not in either.
(folder / "orders.heed").write_text("""model orders(q: f32[N, E], k: f32[M, E], v: f32[M, F]) {
  a[n, m] = sum(e) q[n, e] * k[m, e]
  return o[n, f] = sum(m) a[n, m] * v[m, f]
}""")
orders = json.loads(run(heedc, folder / "orders.heed", "--explain=json", "--emit=halide", "-o", folder / "orders.mlir").stderr.splitlines()[-1])
expect(orders["flops"] == "(2*E*F*M + 2*E*F*N or 2*E*M*N + 2*F*M*N)" and orders["stored"] == ["(E*F or M*N)"] and orders["attentions"] == 0, f"{orders}")
# A softmax that is no attention's is said, with why the sum after it was not raised.
(folder / "alone.heed").write_text("""model alone(q: f32[N, D], k: f32[9, D], v: f32[9, 8]) {
  s[n, m:7] = sum(d) q[n, d] * k[m, d]
  p[n, m] = softmax(m) s[n, m]
  r[n] = sum(m) p[n, m] * p[n, m]
  return o[n, f:3] = sum(m:7) p[n, m] * p[n, m] / r[n] * v[m, f]
}""")
alone = run(heedc, folder / "alone.heed", "--explain", "--emit=halide", "-o", folder / "alone.mlir").stderr
expect("3:13: no attention: a softmax by itself: its rows are stored, [N, 7] of f32" in alone and "5:22: no attention: not raised: " in alone, alone)

# A recurrence has a line with its form, and its attention, where it is one, another: by the number of steps it is one step, pairs, or goes by chunks.
(folder / "retention.heed").write_text("""model retention(q, k: f32[H, N, 64], v: f32[H, N, 64]; gamma: f32[H]) {
  scan t in 0..N, S: f32[H, 64, 64] = 0 {
    S[h, e, f] = gamma[h] * S[h, e, f] + k[h, t, e] * v[h, t, f]
    o[h, t, f] = sum(e) q[h, t, e] * S[h, e, f]
  }
  return o
}""")
for steps, form, raised in (("1", "one step", False), ("64", "parallel: 64 steps are products", True), ("16384", "sequential within 512 steps: ", False)):
    said = run(heedc, folder / "retention.heed", "--set", f"N={steps}", "--explain", "--emit=halide", "-o", folder / "retention.mlir").stderr
    expect(f":2:3: recurrence: {form}" in said and "  a linear attention: its state is a sum of products" in said, f"{steps} steps: {said}")
    expect((":2:3: attention, streaming: " in said) == raised, f"{steps} steps: {said}")

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
