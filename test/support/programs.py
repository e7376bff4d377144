"""Compiles small models to programs, runs them on arrays, and compares what they say with NumPy."""
import os

import numpy as np

from runs import expect, run

heedc = folder = None


def start(compiler, scratch):
    """Programs and arrays lie in `scratch`."""
    global heedc, folder
    heedc, folder = compiler, scratch
    os.makedirs(folder, exist_ok=True)


def compile(name, source, *options, says=""):
    """The program; heedc is to say `says`."""
    path = os.path.join(folder, name)
    with open(path + ".heed", "w") as file:
        file.write(source)
    done = run(heedc, path + ".heed", "-o", path, *options)
    said = done.stdout + done.stderr
    expect(done.returncode == 0 and says in said, f"{name}: {said}")
    return path


def outputs(program, inputs, names, *options):
    """The results of a run, or the finished process after an error."""
    command = [program, *options]
    for name, value in inputs.items():
        if isinstance(value, np.ndarray):
            np.save(f"{program}.{name}.npy", value)
            command += ["--" + name, f"{program}.{name}.npy"]
        else:
            command += [f"--{name}={value}"]
    for name in names:
        command += ["--output", f"{name}={program}.out.{name}.npy"]
    done = run(*command)
    if done.returncode:
        return done
    return {name: np.load(f"{program}.out.{name}.npy") for name in names}


def compare(program, inputs, expected, *options, tolerance=1e-5):
    got = outputs(program, inputs, expected, *options)
    what = os.path.basename(program) + " " + str({k: getattr(v, "shape", v) for k, v in inputs.items()})
    if not isinstance(got, dict):
        return expect(False, f"{what}: {got.stderr}")
    for name, want in expected.items():
        have, want = got[name], np.asarray(want)
        if have.shape != want.shape or (have.dtype.kind in "ib") != (want.dtype.kind in "ib"):
            expect(False, f"{what}: {name} is {have.dtype}{have.shape}, expected {want.dtype}{want.shape}")
            continue
        if want.dtype.kind in "ib":
            expect(np.array_equal(have, want), f"{what}: {name}\n{have.ravel()[:12]}\n{want.ravel()[:12]}")
            continue
        have, want = have.astype(np.float64), want.astype(np.float64)
        same = np.array_equal(np.isnan(have), np.isnan(want)) and np.array_equal(have[np.isinf(want)], want[np.isinf(want)])
        finite = np.isfinite(want)
        scale = np.abs(want[finite]).max(initial=0) or 1
        error = np.abs(have[finite] - want[finite]).max(initial=0) / scale
        expect(same and error <= tolerance, f"{what}: {name} differs by {error:.2g}\n{have.ravel()[:12]}\n{want.ravel()[:12]}")
