"""Fuzzes the parser from every .heed file of the repository, the examples of docs/language.md and the malformed inputs
of the syntax tests, whole and truncated, for 60 seconds (HEED_FUZZ_SECONDS changes that).

The drivers are built with sanitizers alone: `make asan`.
REQUIRES: fuzzer
RUN: rm -rf %t && mkdir -p %t/seeds && %python %s %heed_src %heed_bin/../test/fuzz/bin/fuzz-heed %t
"""
import glob
import os
import re
import subprocess
import sys

source, driver, folder = sys.argv[1:]
seconds = os.environ.get("HEED_FUZZ_SECONDS", "60")


def read(*path):
    with open(os.path.join(source, *path), encoding="utf-8") as file:
        return file.read()


files = [path for top in ("frontend", "models", "test") for path in glob.glob(os.path.join(source, top, "**/*.heed"), recursive=True)]
seeds = [read(path) for path in files]
seeds += re.findall(r"^```heed(?:-error)?\n(.*?)^```", read("docs/language.md"), re.S | re.M)
seeds += [case.split("\n---\n")[0] for case in read("test/frontend/syntax/Inputs/errors.txt").split("\n===\n")]
seeds += ["[[1, 2], [3, -4.5]]", "true", "layer.0/x-1", "\ufeffmodel α(x₀: f32[]) { return α = x₀ }"]
if len(files) < 15 or len(seeds) < 120:
    sys.exit(f"seeds are missing: {len(files)} files, {len(seeds)} seeds")
for k, seed in enumerate(seeds):
    content = seed.encode()
    for part, length in enumerate([len(content), len(content) // 2, len(content) * 4 // 5, max(len(content) - 2, 0)]):
        with open(os.path.join(folder, "seeds", f"{k}-{part}"), "wb") as file:
            file.write(content[:length])
words = set(re.findall(r"[a-z_]{2,}|[^\s\w\"\\]{1,2}", " ".join(seeds)))
with open(os.path.join(folder, "words"), "w") as file:
    file.writelines(f'"{word}"\n' for word in sorted(words) if word.isascii())

command = [driver, "-max_total_time=" + seconds, "-max_len=4096", "-timeout=10", "-print_final_stats=1", "-dict=" + os.path.join(folder, "words"),
           f"-artifact_prefix={folder}/", os.path.join(folder, "seeds")]
done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
print("\n".join(done.stdout.splitlines()[-(12 if done.returncode == 0 else 60):]))
sys.exit(done.returncode != 0)
