"""What pip asks of a package (PEP 517, PEP 660): a wheel of heed/, which is Python alone.

It is here so that `pip install ./python` needs nothing that is not on the machine, no network included.
"""
import base64
import hashlib
import os
import re
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def _field(name):
    """A field of pyproject.toml's [project]; Python 3.9 and 3.10 have no reader of TOML."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as file:
        return re.search(rf'^{name} = "(.*)"$', file.read(), re.M).group(1)


VERSION = _field("version")
INFO = f"heed-{VERSION}.dist-info"
TAG = "py3-none-any"


def _metadata():
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    return (f"Metadata-Version: 2.1\nName: heed\nVersion: {VERSION}\nSummary: {_field('description')}\n"
            f"License: Apache-2.0 WITH LLVM-exception\nRequires-Python: {_field('requires-python')}\nRequires-Dist: numpy\n"
            f"Description-Content-Type: text/markdown\n\n{readme}")


def _wheel(folder, files):
    """Writes the wheel of `files`, by name; returns its name."""
    files = {**files, f"{INFO}/METADATA": _metadata(),
             f"{INFO}/WHEEL": f"Wheel-Version: 1.0\nGenerator: heed\nRoot-Is-Purelib: true\nTag: {TAG}\n"}
    name, record = f"heed-{VERSION}-{TAG}.whl", ""
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            data = text.encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(data)}\n"
            archive.writestr(zipfile.ZipInfo(path), data)
        archive.writestr(zipfile.ZipInfo(f"{INFO}/RECORD"), record + f"{INFO}/RECORD,,\n")
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {}
    for name in sorted(os.listdir(os.path.join(HERE, "heed"))):
        if name.endswith(".py"):
            with open(os.path.join(HERE, "heed", name), encoding="utf-8") as file:
                files["heed/" + name] = file.read()
    return _wheel(wheel_directory, files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory, {"heed.pth": HERE + "\n"})


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("heed is installed from its repository: pip install ./python")
