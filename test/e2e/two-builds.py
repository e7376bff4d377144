# RUN: %python %s %heed_bin %heed_src %t %cc
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
"""Two libraries of different builds in one process: the second one's runtime is compiled here, from sources in which the
structs of a handle have other layouts. Linked in either order or loaded, shared or static, each model runs on its own runtime, and
names that the program has for itself meet neither library's."""
import glob
import pathlib
import shutil
import subprocess
import sys

from runs import expect, finish, run

heedc, source = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder, cc = pathlib.Path(sys.argv[3]), sys.argv[4]
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
(folder / "sums.heed").write_text("model sums(a: f32[N, K], b: f32[K, M]) { return y[n,m] = sum(k) a[n,k] * b[k,m] }\n")
(folder / "shifted.heed").write_text(
    "model shifted(a: f32[N, K], b: f32[K, M]) {\n  s[n,m] = sum(k) a[n,k] * b[k,m]\n  return y[n,m] = s[n,m] + 1\n}\n")


def made(name, kind, file):
    subprocess.run([heedc, folder / f"{name}.heed", "--emit=" + kind, "-o", folder / file], check=True)
    return folder / file


# The other build.
other = folder / "other"
shutil.copytree(source / "runtime", other / "runtime")
header = other / "runtime/Model.h"
text = header.read_text()
for struct in ("struct heed_model {\n  heed_object object;\n", "struct heed_threads {\n  heed_object object;\n"):
    assert struct in text
    text = text.replace(struct, struct + "  char other[200];\n")
header.write_text(text.replace("typedef struct heed_shared {\n", "typedef struct heed_shared {\n  char other[72];\n"))
halide = glob.glob(str(source / ".venv/lib/python3*/site-packages/halide/include"))[0]
sources = [f for f in glob.glob(str(other / "runtime/*.c")) + glob.glob(str(other / "runtime/io/*.c"))]
objects = []
for file in sources:
    objects.append(file[:-1] + "o")
    subprocess.run([cc, "-c", "-O1", "-std=c11", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden", "-ffunction-sections", f"-I{other}",
                    f"-isystem{halide}", file, "-o", objects[-1]], check=True)
model = made("shifted", "obj", "shifted.o")
kernels = pathlib.Path(sys.argv[1]).parent / "lib/halide_runtime-x86-64.o"
(folder / "exports.map").write_text("{ global: shifted_model; heed_*; local: *; };\n")
registry = folder / "registry.c"
registry.write_text("extern const char shifted_model;\nconst void *const heed_models[] = {&shifted_model, 0};\n")
second = folder / "libshifted.so"
subprocess.run([cc, "-shared", "-fPIC", "-Wl,-Bsymbolic", f"-Wl,--version-script={folder / 'exports.map'}", "-Wl,--gc-sections", model, kernels,
                registry, *objects, "-lm", "-lpthread", "-o", second], check=True)
first = made("sums", "shared", "libsums.so")


def program(name, *arguments):
    subprocess.run([cc, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{source / 'runtime'}", source / "test/e2e/Inputs/two_builds.c",
                    *arguments, "-lm", "-lpthread", "-ldl", "-o", folder / name], check=True)
    return folder / name


def check(name, *command):
    done = run(*command)
    expect(done.returncode == 0 and done.stdout == "both right\n", f"{name}: {done.returncode}: {done.stdout!r} {done.stderr!r}")


path = f"-Wl,-rpath,{folder}"
check("in order", program("linked", first, second, path))
check("reversed", program("reversed", second, first, path))
# The program's own names are found before those of libraries here.
check("exported names", program("exported", "-rdynamic", first, second, path))
check("loaded", program("loaded", "-DLOADED", first, path), second)
static = made("sums", "lib", "libsums.a")
check("static and loaded", program("static", "-DLOADED", "-rdynamic", static), second)
check("two static", program("statics", static, made("shifted", "lib", "libshifted.a")))
listed = run("nm", "-g", "--defined-only", static).stdout
names = {line.split()[-1] for line in listed.splitlines() if len(line.split()) == 3}
public = {n for n in run("nm", "-D", "--defined-only", first).stdout.split() if n.startswith("heed_")} - {"heed_models"}
expect(names == public | {"sums_model"}, f"names of a static library: {names ^ public}")
dynamic = run("readelf", "-dlW", first).stdout
for word in ("BIND_NOW", "SYMBOLIC", "GNU_RELRO"):
    expect(word in dynamic, f"no {word}")
done = run(heedc, folder / "sums.heed", "--prefix=heed", "--emit=header", "-o", folder / "heed.out")
expect(done.returncode == 1 and "expected another prefix" in done.stderr, f"--prefix=heed: {done.stderr}")
finish()
