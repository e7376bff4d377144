# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin %S %t
"""Kernels that were compiled before come from the user's cache, and only those that this compiler made of the same content."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import sys

from runs import expect, finish, run

heedc, inputs = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]) / "Inputs"
os.chdir(sys.argv[3])
shutil.copy(inputs / "scale.mlir", "scale.mlir")
os.environ["XDG_CACHE_HOME"] = os.path.abspath("caches")
cache = pathlib.Path("caches/heed")


def compiled(*options):
    """The object's bytes, and how many kernels of how many came from the cache."""
    done = run(heedc, "scale.mlir", "--emit=obj", "-o", "model.o", "--time-passes", *options)
    expect(done.returncode == 0, f"{options}: {done.stderr}")
    found = re.search(r"kernels: (\d+) of (\d+) from the cache", done.stderr)
    return pathlib.Path("model.o").read_bytes(), int(found[1]), int(found[2])


def entries():
    return sorted(p for p in cache.glob("llvmcache-*") if p.name != "llvmcache.timestamp")


cold, hits, count = compiled("--no-cache")
expect((hits, count) == (0, 1) and not cache.exists(), "--no-cache: used or made a cache")
first, hits, _ = compiled()
expect(hits == 0 and first == cold and len(entries()) == 1, f"first: {hits} found, {entries()}")
again, hits, _ = compiled()
expect(hits == 1 and again == cold, f"again: {hits} of 1 found, same bytes: {again == cold}")

# Kernels of 16-bit weights, too.
pathlib.Path("narrow.heed").write_text("model narrow(x: f32[N, 64]) {\n  param g: f32[64]\n  return y[n,d] = x[n,d] * g[d]\n}\n")
for held in ("bf16", "f16"):
    for hit in (False, True):
        done = run(heedc, "narrow.heed", f"--weights-type={held}", "--emit=obj", "-o", "narrow.o", "--time-passes", "--explain=all")
        found = re.search(r"kernels: (\d+) of (\d+) from the cache", done.stderr)
        expect(done.returncode == 0 and found and found[1] == (found[2] if hit else "0") and "emulated" not in done.stderr, f"{held}: {done.stderr}")

# What decides on the code decides on the kernel found.
for option in ("--target=x86-64-v2", "--prefix=other"):
    _, hits, _ = compiled(option)
    expect(hits == 0, f"{option}: found a kernel of other options")
    _, hits, _ = compiled(option)
    expect(hits == 1, f"{option}: not found again")
text = pathlib.Path("scale.mlir").read_text()
pathlib.Path("scale.mlir").write_text(text.replace("arith.addf", "arith.subf"))
other, hits, _ = compiled()
expect(hits == 0 and other != cold, "another kernel: found that of the first")
pathlib.Path("scale.mlir").write_text(text)

# A damaged file counts as missing, and is replaced.
known = {p: p.read_bytes() for p in entries()}
for damage in (lambda b: b[:-1], lambda b: b"", lambda b: b[:40] + bytes([b[40] ^ 1]) + b[41:]):
    for path, data in known.items():
        path.write_bytes(damage(data))
    bytes_, hits, _ = compiled()
    expect(hits == 0 and bytes_ == cold, f"damaged: {hits} found")
    _, hits, _ = compiled()
    expect(hits == 1, "damaged: not replaced")

# So does one that stands under another one's name, whole as it is.
names = sorted(known)
for name, other in zip(names, names[1:] + names[:1]):
    name.write_bytes(known[other])
for options in ((), ("--target=x86-64-v2",), ("--prefix=other",)):
    _, hits, _ = compiled(*options)
    expect(hits == 0, f"exchanged: {options} found another one's kernel")
    _, hits, _ = compiled(*options)
    expect(hits == 1, f"exchanged: {options} not replaced")

# Every library that makes code is part of the key: with another build of one, known by its build id, nothing is found.
libraries = dict(re.findall(r"(lib(?:Halide|LLVM|MLIR)[\w.]*) => (\S+)", run("ldd", heedc).stdout))
expect(len(libraries) == 3, f"libraries: {libraries}")
pathlib.Path("other").mkdir()
for name, path in libraries.items():
    other = pathlib.Path("other") / name
    data = bytearray(pathlib.Path(path).read_bytes())
    at = data.index(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0") + 16
    data[at] ^= 1
    other.write_bytes(data)
    os.environ["LD_LIBRARY_PATH"] = os.path.abspath("other")
    _, hits, _ = compiled()
    expect(hits == 0, f"{name}: found a kernel of another build of it")
    del os.environ["LD_LIBRARY_PATH"]
    other.unlink()
_, hits, _ = compiled()
expect(hits == 1, "the libraries that were: not found again")

# What somebody else may have written is neither read nor linked.
def refused(what):
    before = {p: p.read_bytes() for p in cache.iterdir()}
    done = run(heedc, "scale.mlir", "--emit=obj", "-o", "model.o", "--time-passes")
    expect(done.returncode == 0 and "kernels: 0 of 1 from the cache" in done.stderr and
           f"heedc: warning: kernels are not cached: {what}" in done.stderr, f"{what}: {done.returncode}: {done.stderr}")
    expect({p: p.read_bytes() for p in cache.iterdir()} == before, f"{what}: changed the folder")


expect(cache.stat().st_mode & 0o777 == 0o700, f"the folder's mode: {cache.stat().st_mode:o}")
expect(all(p.stat().st_mode & 0o777 == 0o600 for p in entries()), "the entries' mode")
for mode in (0o770, 0o702, 0o777, 0o1777):
    cache.chmod(mode)
    refused(f"others may write to '{cache.resolve()}'; 'chmod go-w' mends that")
cache.chmod(0o755)
_, hits, _ = compiled()
expect(hits == 1, "a folder that others may read: not found")
for entry in entries():
    entry.chmod(0o620)
_, hits, _ = compiled()
expect(hits == 0, "an entry that the group may write: found")
for entry in entries():  # the same bytes, from elsewhere
    entry.rename(entry.name)
    entry.symlink_to(os.path.abspath(entry.name))
_, hits, _ = compiled()
expect(hits == 0, "a link as entry: followed")
shutil.rmtree(cache)
compiled()
if os.geteuid() == 0:
    for entry in entries():
        os.chown(entry, 65534, 65534)
    _, hits, _ = compiled()
    expect(hits == 0, "an entry of another user: found")
    os.chown(cache, 65534, 65534)
    refused(f"'{cache.resolve()}' belongs to another user")
    os.chown(cache, 0, 0)

# Many at once, from an empty cache.
shutil.rmtree(cache)
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    runs = list(pool.map(lambda k: run(heedc, "scale.mlir", "--emit=obj", "-o", f"model{k}.o"), range(8)))
expect(all(r.returncode == 0 for r in runs), f"at once: {[r.stderr for r in runs]}")
expect({pathlib.Path(f"model{k}.o").read_bytes() for k in range(8)} == {cold}, "at once: other bytes")
expect(len(entries()) == 1 and not list(cache.glob("*.tmp")), f"at once: left {sorted(cache.iterdir())}")

# The folder's size is bounded: what was not used for longest goes.
old = cache / "llvmcache-old"
with old.open("wb") as file:
    file.truncate(2 << 30)
os.utime(old, (1, 1))
(cache / "llvmcache.timestamp").unlink()
_, hits, _ = compiled()
expect(hits == 1 and not old.exists(), "the cache keeps more than its bound")

# Where there is no place for a cache, kernels are compiled.
shutil.rmtree("caches")
pathlib.Path("caches").write_text("a file")
bytes_, hits, _ = compiled()
expect(hits == 0 and bytes_ == cold, "without a folder: other bytes")
finish()
