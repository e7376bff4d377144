# RUN: %python %s %heed_src %heed_build %t %cmake %cc
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
"""An installed tree that was moved still compiles models; its pkg-config file and CMake package serve a C program."""
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np

from runs import expect, finish, run

source, build, folder = (pathlib.Path(a) for a in sys.argv[1:4])
cmake, cc = sys.argv[4:6]
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)


def must(*command, **options):
    done = run(*command, **options)
    expect(done.returncode == 0, f"{[str(c) for c in command]}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def attention(q, k, v):
    s = np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(q.shape[-1])
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return np.einsum("bhij,bhjf->bhif", p / p.sum(axis=-1, keepdims=True), v)


try:
    must(cmake, "--install", build, "--prefix", folder / "first")
    root = folder / "moved to" / "here"
    root.parent.mkdir()
    (folder / "first").rename(root)

    # Nothing of the build tree, of the sources or of the first place is looked for.
    for tool in sorted((root / "bin").iterdir()):
        listed = must("ldd", tool)
        expect("not found" not in listed, f"{tool.name}: {listed}")
        for line in listed.splitlines():
            if "libHalide" in line:
                expect(str(root.parent) in line, f"{tool.name}: {line}")
        dynamic = must("readelf", "-d", tool)
        expect(str(build) not in dynamic and str(source) not in dynamic, f"{tool.name}: {dynamic}")

    for name in ("share/doc/heed/LICENSE", "share/doc/heed/LICENSE.Halide", "include/heed/heed.hpp", "lib/heed/libheed.a"):
        expect((root / name).is_file() and (root / name).stat().st_size > 1000, f"{name} is not installed")

    # A program.
    random = np.random.default_rng(3)
    arrays = {name: random.uniform(-1, 1, (1, 2, 9, 8)).astype(np.float32) for name in "qkv"}
    arguments = []
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        arguments += ["--" + name, folder / f"{name}.npy"]
    must(root / "bin/heedc", source / "models/core/sdpa.heed", "-o", folder / "sdpa")
    must(folder / "sdpa", *arguments, "--output", folder / "o.npy")
    got, want = np.load(folder / "o.npy"), attention(*(a.astype(np.float64) for a in arrays.values()))
    expect(got.shape == want.shape and np.abs(got - want).max() <= 1e-5, "the program's numbers")

    # A project that finds the package. CMake rebuilds nothing when nothing has changed.
    project = folder / "project"
    project.mkdir()
    shutil.copy(source / "docs/examples/two-models/two.c", project)
    (project / "CMakeLists.txt").write_text(f"""
cmake_minimum_required(VERSION 3.20)
project(Two C)
find_package(Heed 0.1 REQUIRED)
heed_add_model(sdpa "{source}/models/core/sdpa.heed")
heed_add_model(attention "{source}/models/core/sdpa.heed" OPTIONS --prefix=attention --target=x86-64)
add_executable(two two.c)
target_link_libraries(two PRIVATE sdpa attention)
""")
    must(cmake, "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={root}", f"-DCMAKE_C_COMPILER={cc}")
    must(cmake, "--build", project / "build")
    again = must(cmake, "--build", project / "build")
    expect("Compiling the model" not in again, f"compiled again: {again}")
    # What a model is made of is known to the build: its imports and configs, not the other files.
    (project / "imported.heed").write_text("config \"config.json\"\nfn scaled(x) = factor * x\n")
    (project / "config.json").write_text('{"factor": 2}')
    (project / "third.heed").write_text("import \"imported.heed\"\nmodel third(x: f32[N]) { return y[i] = scaled(x[i]) }\n")
    with open(project / "CMakeLists.txt", "a") as lists:
        lists.write("heed_add_model(third third.heed)\nadd_dependencies(two third_heed)\n")
    must(cmake, "--build", project / "build")
    expect("Compiling the model" not in must(cmake, "--build", project / "build"), "compiled again, with imports")
    for name in ("third.heed", "imported.heed", "config.json"):
        os.utime(project / name, (4 * 10**9, 4 * 10**9))
        built = must(cmake, "--build", project / "build")
        expect(built.count("Compiling the model") == 1 and "Compiling the model third" in built, f"{name} has changed: {built}")
        os.utime(project / name, (1, 1))

    lines = must(project / "build/two").splitlines()
    expect(lines.count("sdpa 2 4 37 16") == 3 and len(lines) == 3 * (1 + 2 * 4 * 37 * 16), "the project's program")

    # The same by hand with pkg-config.
    if shutil.which("pkg-config"):
        place = {"PKG_CONFIG_PATH": str(root / "lib/pkgconfig"), "PATH": "/usr/bin:/bin"}
        expect(must("pkg-config", "--modversion", "heed", env=place).strip().count(".") == 2, "pkg-config's version")
        flags = must("pkg-config", "--cflags", "heed", env=place)
        libraries = must("pkg-config", "--libs", "heed", env=place).split()
        include = root / "lib/pkgconfig/../../include/heed"
        expect(flags.strip().replace("\\", "") == f"-I{include}", f"pkg-config's flags: {flags}")
        models = [project / f"build/{name}.heed.dir" for name in ("sdpa", "attention")]
        must(cc, "-I", include, *(f"-I{m}" for m in models), project / "two.c",
             models[0] / "libsdpa.a", models[1] / "libattention.a", *libraries, "-o", folder / "by-hand")
        expect(must(folder / "by-hand").splitlines() == lines, "the program built with pkg-config")
finally:
    shutil.rmtree(folder, ignore_errors=True)  # libHalide.so is large
finish()
