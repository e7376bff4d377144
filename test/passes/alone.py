# RUN: %python %s %heed_bin %heed_src %t
"""Each pass of ours runs alone on the attn IR of core models and every fifth other one of the zoo: it succeeds, or says in a diagnostic why not."""
import pathlib
import re
import subprocess
import sys

tools, root, folder = (pathlib.Path(a) for a in sys.argv[1:])
folder.mkdir(parents=True, exist_ok=True)
help_ = subprocess.run([tools / "heed-opt", "--help"], capture_output=True, text=True, check=True).stdout
passes = sorted(set(re.findall(r"^ +--(attn-[a-z-]+)", help_, re.M)))
declared = set(re.findall(r'Pass<"(attn-[a-z-]*[a-z])"', "".join(file.read_text() for file in (root / "passes").glob("*.td"))))
wrong = sorted(declared - set(passes)) + [upstream for upstream in ("canonicalize", "one-shot-bufferize") if "--" + upstream not in help_]
print("not in --help:", wrong)
refused = 0
models = sorted(m for m in (root / "models").glob("*/*.heed") if m.parent.name not in ("core", "lib"))[::5] + sorted((root / "models/core").glob("*.heed"))
for model in models:
    ir = folder / (model.stem + ".mlir")
    config = model.parent / "check"
    subprocess.run([tools / "heedc", model, "--emit=attn", "-o", ir, *([f"--model-dir={config}"] if config.exists() else [])], check=True)
    for name in passes:
        done = subprocess.run([tools / "heed-opt", ir, "--" + name, "-o", "/dev/null"], capture_output=True, text=True)
        refused += done.returncode == 1
        if done.returncode not in (0, 1) or (done.returncode == 1 and not re.search(r"mlir:\d+:\d+: error: ", done.stderr)):
            wrong.append((model.stem, name))
            print("WRONG:", model.stem, name, done.returncode, done.stderr[-500:])
print(f"{len(models)} models, {len(passes)} passes, {refused} refused with a diagnostic, {len(wrong)} wrong")
sys.exit(bool(wrong) or len(passes) < 15 or len(models) < 15)
