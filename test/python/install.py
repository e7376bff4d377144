# RUN: %python %s %heed_src %t
# The library's runtime would want the sanitizer's, which is not in Python.
# UNSUPPORTED: asan
"""The package installs into an environment that has NumPy and nothing else, without network, and works there."""
import os
import pathlib
import shutil
import subprocess
import sys
import venv

import numpy

from runs import expect, finish, run

source, folder = map(pathlib.Path, sys.argv[1:])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
package = folder / "python"
shutil.copytree(source / "python", package, ignore=shutil.ignore_patterns("__pycache__"))
environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
# No index and no cache to take anything from.
environment.update(PIP_NO_INDEX="1", PIP_NO_CACHE_DIR="1", PIP_CONFIG_FILE=os.devnull, PIP_DISABLE_PIP_VERSION_CHECK="1")

TRY = """
import sys
import numpy
import heed
others = sorted({name.split(".")[0] for name, module in sys.modules.items() if "site-packages" in (getattr(module, "__file__", None) or "")})
print(others, heed.__version__)
m = heed.compile("model m(x: f32[N]) { return y[n] = 2 * x[n] }")
print(m(numpy.arange(3, dtype="f4")))
"""

for editable in (False, True):
    place = folder / ("editable" if editable else "plain")
    venv.create(place, symlinks=True)  # without pip: that of this environment installs into it
    python = place / "bin/python"
    packages = pathlib.Path(subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True,
                                           text=True, check=True).stdout.strip())
    # NumPy as it lies in this environment, with its libraries and its description.
    home = pathlib.Path(numpy.__file__).parent.parent
    for part in home.glob("numpy*"):
        (packages / part.name).symlink_to(part)
    done = run(sys.executable, "-m", "pip", "--python", python, "install", *(["-e"] if editable else []), package, env=environment)
    expect(done.returncode == 0 and "Successfully installed heed-" in done.stdout, f"pip: {done.stdout}{done.stderr}")
    done = run(python, "-c", TRY, env=environment, cwd=folder)
    lines = done.stdout.splitlines()
    names = "['numpy']" if editable else "['heed', 'numpy']"
    expect(done.returncode == 0 and lines == [f"{names} 0.1.0", "[0. 2. 4.]"], f"{done.stdout}{done.stderr}")
    if not editable:
        listed = run(sys.executable, "-m", "pip", "--python", python, "show", "-f", "heed", env=environment).stdout
        for name in sorted((source / "python/heed").glob("*.py")):
            expect(f"heed/{name.name}" in listed, f"{name.name} is not installed: {listed}")
        expect("Requires: numpy" in listed, listed)
        # Without a compiler: what to do is said.
        bare = {**environment, "PATH": "/no/such"}
        bare.pop("HEEDC", None)
        done = run(python, "-c", "import heed; heed.compile('model m(x: f32[N]) { return y[n] = x[n] }')", env=bare, cwd=folder)
        expect(done.returncode == 1 and "heedc is not on PATH" in done.stderr, done.stderr)
        done = run(sys.executable, "-m", "pip", "--python", python, "uninstall", "-y", "heed", env=environment)
        expect(done.returncode == 0 and not (packages / "heed/abi.py").exists(), f"uninstall: {done.stdout}{done.stderr}")
version = run(os.environ["HEEDC"], "--version").stdout.split()
expect(version == ["heedc", "0.1.0"], f"the package's version is the compiler's: {version}")
shutil.rmtree(folder, ignore_errors=True)
finish()
