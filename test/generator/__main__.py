"""python test/generator --seed S --count N: draws models and takes each through the oracles."""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "python")]
import corpus
import draw
import models
from heed_text import heed_text
from session import check, isolated
from shrink import shrink


OWN = ("generator", "oracle", "respelling", "metamorphic: metamorphic oracle", "metamorphic-halide: metamorphic oracle")


def commit():
    """The first digits of the source's commit; without git a fixed word."""
    folder = os.path.dirname(os.path.abspath(__file__))
    done = subprocess.run(["git", "-C", folder, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "none"


def arguments():
    parser = argparse.ArgumentParser(prog="generator", description=__doc__)
    parser.add_argument("--seed", default="1", help="what every draw follows from; `commit`: the commit of the source")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--number", type=int, help="only this model")
    parser.add_argument("--backend", default="reference",
                        help="with commas: reference, passes (the IR after all of them, by the reference), explain (remarks), halide, "
                             "static (every size a number: reference and passes), static-halide, threads (3), no-plan, v2, v3, opencl, "
                             "metamorphic (by the IR after the passes), metamorphic-halide; none")
    parser.add_argument("--minutes", type=float, help="draw no further model after this time")
    parser.add_argument("--off", default="", help="features that no model uses, with commas")
    parser.add_argument("--having", default="", help="of the models drawn only those that use one of these features, with commas; --count counts all")
    parser.add_argument("--shrink", metavar="FOLDER", help="make failures small and write them there")
    parser.add_argument("--replay", nargs="+", metavar="FILE", help="files of the corpus instead of drawn models")
    parser.add_argument("--list-features", action="store_true")
    parser.add_argument("--print", action="store_true", help="print the models")
    options = parser.parse_args()
    options.seed = commit() if options.seed == "commit" else options.seed
    options.having = {f.strip() for f in options.having.split(",") if f}
    options.off = [f.strip() for f in options.off.split(",") if f]
    options.backends = [b for b in options.backend.split(",") if b != "none"]
    return options


def make_small(number, seed, model, tuples, kind, text, options):
    """Shrinks a failure and writes it."""
    backends = [kind.split(":")[0]] if ":" in kind else options.backends
    fails = lambda m, t: (isolated(lambda: check(m, t, None, seed, backends))["failure"] or [None])[0]
    small, sizes = shrink(model, tuples, fails)
    found = isolated(lambda: check(small, sizes, None, seed, backends))["failure"] or (kind, text)
    path = pathlib.Path(options.shrink) / f"{options.seed}-{number}.heed"
    corpus.write(path, small, sizes, seed, " ".join(f"{found[0]}: {found[1]}".split())[:300])
    print(f"{path}:\n{heed_text(small)}sizes {sizes}\n", flush=True)


def replay(files, backends):
    failed = 0
    for file in files:
        stored = corpus.Stored(file)
        out = isolated(lambda: check(stored, stored.tuples, None, stored.seed, backends))
        if out["failure"]:
            failed += 1
            print(f"{file}: FAIL {out['failure'][0]}\n{out['failure'][1]}")
    print(f"{len(files)} models of the corpus, {failed} failed")
    return failed != 0


def main():
    options = arguments()
    if options.list_features:
        print("\n".join(draw.FEATURES))
        return 0
    if options.replay:
        return replay(options.replay, options.backends)
    numbers = [options.number] if options.number is not None else range(options.first, options.first + options.count)
    used, said, kinds, share, ran, drawn = collections.Counter(), collections.Counter(), collections.Counter(), [], 0, 0
    begin = time.time()
    for number in numbers:
        if options.minutes and time.time() - begin > 60 * options.minutes:
            break
        seed = f"{options.seed}/{number}"
        try:
            model, tuples, plain = models.drawn(options.seed, number, options.off)
        except Exception as e:
            drawn, kinds["generator"] = drawn + 1, kinds["generator"] + 1
            print(f"--- model {number}: FAIL generator: {e!r}", flush=True)
            continue
        if options.having and not options.having & model.features:
            continue
        drawn += 1
        out = isolated(lambda: check(model, tuples, plain, seed, options.backends))
        used.update(model.features)
        said.update(out.get("remarks", {}))
        share += out.get("unjudged", [])
        ran += out.get("cases", 0)
        if options.print:
            print(out.get("unjudged"), sorted(model.features), "\n" + heed_text(model))
        if out["failure"]:
            kind, text, _ = out["failure"]
            kinds[kind] += 1
            print(f"--- model {number}: FAIL {kind}\n{text}\n{heed_text(model)}repeat: --seed={options.seed} --number={number} "
                  f"--off='{','.join(options.off)}'\n", flush=True)
            if options.shrink and kind not in OWN:
                make_small(number, seed, model, tuples, kind, text, options)
    for what, count in sorted(said.items()):
        print(f"{count:7} {what}")
    never = [f for f in draw.FEATURES if not used[f] and f not in options.off]
    print(f"seed {options.seed}: {drawn} models, {ran} inputs, {sum(kinds.values())} failed {dict(kinds)}; {time.time() - begin:.0f} s; "
          f"unjudged {100 * sum(share) / max(1, len(share)):.1f} %; never used: {', '.join(never) or 'nothing'}")
    # A fault of the generator itself is printed and tells nothing of the compiler.
    own = sum(kinds[k] for k in OWN)
    return sum(kinds.values()) > own or own > drawn // 20


sys.exit(main())
