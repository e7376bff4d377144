"""One model through the chosen oracles, in a process of its own, so that a crash or a hang is a finding."""
import os
import pathlib
import pickle
import signal
import tempfile
import traceback
import zlib
from dataclasses import replace

import tools
from heed_text import heed_text
from judge import unjudged
from metamorphic import check_metamorphic
from oracles import Failure, cases, check_backend, disagreement, write_source
from passes import check_passes, explained


# What must not change a number: more threads, no memory plan, other targets.
VARIANTS = {"threads": ("halide", [], 3), "no-plan": ("halide", ["--no-memory-plan"], 1), "v2": ("halide", ["--target=x86-64-v2"], 1),
            "v3": ("halide", ["--target=x86-64-v3"], 1), "opencl": ("halide", ["--target=opencl"], 1)}


def check(model, tuples, plain, seed, backends):
    """What happened, as a dict; `failure`: (kind, text, sizes) or None."""
    out = {"failure": None, "features": sorted(getattr(model, "features", ()))}
    try:
        known = list(cases(model, tuples, seed))
        wrong = plain and disagreement(model, plain, known)
    except Exception as e:
        out["failure"] = ("oracle", "".join(traceback.format_exception(e)[-3:]), None)
        return out
    if wrong:
        out["failure"] = ("respelling", f"{wrong}\nwas:\n{heed_text(plain)}", None)
        return out
    out["cases"] = len(known)
    out["unjudged"] = [unjudged(t) for *_, want in known for t in want]
    with tempfile.TemporaryDirectory() as folder:
        source = write_source(model, folder)
        for backend in backends:
            try:
                if backend == "passes":
                    check_passes(source, folder, model, known)
                elif backend == "explain":
                    out["remarks"] = out.get("remarks", {}) | explained(source, folder, model)
                elif backend.startswith("static"):
                    check_static(backend, model, known, seed, folder)
                elif backend.startswith("metamorphic"):
                    own = pathlib.Path(folder) / backend
                    own.mkdir()
                    said = check_metamorphic(model, known, seed, own, "halide" if backend.endswith("halide") else "passes")
                    out["remarks"] = out.get("remarks", {}) | {f"oracle {name}": n for name, n in said.items()}
                else:
                    name, flags, threads = VARIANTS.get(backend, (backend, [], 1))
                    check_backend(source, folder, name, model, known, flags, threads)
            except Failure as e:
                out["failure"] = (f"{backend}: {e.kind}", e.text, e.dims)
                break
    return out


def check_static(backend, model, known, seed, folder):
    """The model with a number for every size, those of one of its inputs."""
    if not known:
        return
    case = known[zlib.crc32(seed.encode()) % len(known)]
    fixed = replace(model, static=tuple((n, size) for n, size in case[0].items() if n != "poison"))
    folder = pathlib.Path(folder) / backend
    folder.mkdir()
    source = write_source(fixed, folder)
    if backend == "static-halide":
        check_backend(source, folder, "halide", fixed, [case])
    else:
        check_backend(source, folder, "reference", fixed, [case])
        check_passes(source, folder, fixed, [case])


def isolated(action, limit=600):
    """action()'s result from a child; how the child ended, if it did not end well."""
    tools.start()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(limit)
        try:
            data = pickle.dumps(action())
        except BaseException as e:
            data = pickle.dumps({"failure": ("generator", "".join(traceback.format_exception(e)[-4:]), None), "features": []})
        with os.fdopen(write, "wb") as pipe:
            pipe.write(data)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if data and not status:
        return pickle.loads(data)
    tools.restart()
    return {"failure": ("crash", f"ended with status {status}", None), "features": []}
