# RUN: %python %s %heed_bin %t
"""A kernel that takes too long to compile is an error that names it and the time it had, and nothing is left behind. Without any time every kernel is late, however fast it is."""
import pathlib
import sys

from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
source = folder / "two.heed"
source.write_text("model two(x: f32[N, D], w: f32[D, E]) {\n  y[n, e] = sum(d) x[n, d] * w[d, e]\n  z[n, d] = softmax(d) x[n, d]\n  return y, z\n}\n")
before = set(folder.iterdir())
done = run(heedc, source, "--no-cache", "--kernel-timeout=0", "-o", folder / "two")
lines = done.stderr.splitlines()
expect(done.returncode == 1, f"exit code {done.returncode}")
expect(len(lines) == 2 and all(line.startswith(f"{source}:") for line in lines), f"an error for each kernel: {done.stderr}")
for name in ("two_two_contraction", "two_two_softmax"):
    expect(any(f"error: kernel '{name}' was not compiled within 0 seconds; --kernel-timeout=SECONDS gives it more" in line for line in lines), done.stderr)
expect(set(folder.iterdir()) == before, f"left behind: {set(folder.iterdir()) - before}")
for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        expect(str(source).encode() not in process.read_bytes().split(b"\0"), f"still runs: {process}")
    except OSError:
        continue  # it ended while we looked
done = run(heedc, source, "--no-cache", "--kernel-timeout=3000", "-o", folder / "two")
expect(done.returncode == 0 and (folder / "two").exists(), done.stderr)
finish()
