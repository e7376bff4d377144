"""python test/generator --seed S --count N: draws models and takes each through the oracles."""
import argparse
import collections
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import draw
import models
from heed_text import heed_text
from oracles import Failure, cases, check_backend, disagreement, write_source
import oracle
from judge import unjudged
from passes import check_passes, explained


def check(seed, number, options):
    """A dict of what happened to one model; runs in a process of its own."""
    out = {"number": number, "failure": None}
    model, tuples, plain = models.drawn(seed, number, options.off)
    out["features"] = sorted(model.features)
    out["text"] = heed_text(model)
    try:
        known = list(cases(model, tuples, f"{seed}/{number}"))
    except Exception as e:
        out["failure"] = ("oracle", "".join(traceback.format_exception(e)[-3:]), None)
        return out
    if plain:
        wrong = disagreement(model, plain, known)
        if wrong:
            out["failure"] = ("respelling", wrong + "\nwas:\n" + heed_text(plain), None)
            return out
    out["cases"] = len(known)
    out["unjudged"] = [unjudged(t) for *_, want in known for t in want]
    with tempfile.TemporaryDirectory() as folder:
        source = write_source(model, folder)
        for backend in options.backends:
            try:
                if backend == "passes":
                    check_passes(source, folder, model, known)
                elif backend == "explain":
                    out["remarks"] = explained(source, folder)
                else:
                    check_backend(source, folder, backend, model, known)
            except Failure as e:
                out["failure"] = (f"{backend}: {e.kind}", e.text, e.dims)
                return out
    return out


def isolated(seed, number, options, limit=300):
    """check() in a child, so that a crash or a hang is a finding."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(limit)
        try:
            data = pickle.dumps(check(seed, number, options))
        except BaseException as e:
            data = pickle.dumps({"number": number, "failure": ("generator", "".join(traceback.format_exception(e)[-4:]), None), "features": [], "text": ""})
        with os.fdopen(write, "wb") as pipe:
            pipe.write(data)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        model, _, _ = models.drawn(seed, number, options.off)
        return {"number": number, "failure": ("crash", f"ended with status {status}", None), "features": sorted(model.features), "text": heed_text(model)}
    return pickle.loads(data)


def commit():
    """The first digits of the source's commit; without git a fixed word."""
    folder = os.path.dirname(os.path.abspath(__file__))
    done = subprocess.run(["git", "-C", folder, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "none"


def main():
    parser = argparse.ArgumentParser(prog="generator", description=__doc__)
    parser.add_argument("--seed", default="1", help="what every draw follows from; `commit`: the commit of the source")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--number", type=int, help="only this model")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--backend", default="reference",
                        help="with commas: reference, passes (the IR after all of them, by the reference), explain (remarks), halide; none")
    parser.add_argument("--off", default="", help="features that no model uses, with commas")
    parser.add_argument("--list-features", action="store_true")
    parser.add_argument("--print", action="store_true", help="print the models")
    options = parser.parse_args()
    if options.list_features:
        print("\n".join(draw.FEATURES))
        return 0
    if options.seed == "commit":
        options.seed = commit()
    options.off = [f.strip() for f in options.off.split(",") if f]
    options.backends = [b for b in options.backend.split(",") if b != "none"]
    numbers = [options.number] if options.number is not None else range(options.first, options.first + options.count)
    failed, used, kinds, share, ran, said = 0, collections.Counter(), collections.Counter(), [], 0, collections.Counter()
    begin = time.time()
    for number in numbers:
        out = isolated(options.seed, number, options)
        used.update(out["features"])
        said.update(out.get("remarks", {}))
        share += out.get("unjudged", [])
        ran += out.get("cases", 0)
        if options.print:
            print(out.get("unjudged"), out["features"])
            print(out["text"])
        if out["failure"]:
            failed += 1
            kind, text, dims = out["failure"]
            kinds[kind] += 1
            print(f"--- model {number}: FAIL {kind}\n{text}\n{out['text']}repeat: --seed={options.seed} --number={number}\n", flush=True)
    for what, count in sorted(said.items()):
        print(f"{count:7} {what}")
    never = [f for f in draw.FEATURES if not used[f]]
    print(f"seed {options.seed}: {len(numbers)} models, {ran} inputs, {failed} failed {dict(kinds)}; {time.time() - begin:.0f} s; "
          f"unjudged {100 * sum(share) / max(1, len(share)):.1f} %; never used: {', '.join(never) or 'nothing'}")
    return failed != 0


sys.exit(main())
