"""python test/mutations: which deliberate faults of the passes does the generator find, and which does the proof refuse?"""
import argparse
import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "generator"), str(HERE.parent.parent / "python")]
import models
import tools
from hunt import hunt, refusal
from sites import PARTS, PROVEN, ROOT, mistakes, mutations, passes_of


def arguments():
    parser = argparse.ArgumentParser(prog="mutations", description=__doc__)
    parser.add_argument("--list", action="store_true", help="the faults; exit code 1 if the list has mistakes")
    parser.add_argument("--part", default="", help="these parts only, with commas")
    parser.add_argument("--only", default="", help="these faults only, with commas")
    parser.add_argument("--models", type=int, default=500, help="how many models a fault may take to be found")
    parser.add_argument("--first", type=int, default=0, help="the number of the first model")
    parser.add_argument("--seed", default="mutations")
    parser.add_argument("--minutes", type=float, help="draw no further model after this time")
    parser.add_argument("--having", default="", help="draw with models that use one of these features alone, with commas")
    parser.add_argument("--state", metavar="FILE", help="what was found is kept there, and not looked for again")
    return parser.parse_args()


def absent(names):
    """The faults that the tools do not hold."""
    data = pathlib.Path(tools.tool("heedc")).read_bytes() + pathlib.Path(tools.tool("heed-opt")).read_bytes()
    return [n for n in names if n.encode() not in data]


def table(found, wanted, tried):
    rows = [("part", "fault", "models", "seen by", "proof")]
    for name in wanted:
        part, fault = name.split(".")
        f = found.get(name)
        rows.append((part, fault, str(f["models"]) if f else f"not in {tried}", f["seen"] if f else "", (f or {}).get("proof", "")))
    widths = [max(len(r[k]) for r in rows) for k in range(5)]
    for r in rows:
        print("| " + " | ".join(c.ljust(w) for c, w in zip(r, widths)) + " |")
        if r is rows[0]:
            print("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    count = sum(n in found for n in wanted)
    print(f"{count} of {len(wanted)} found ({100 * count / max(1, len(wanted)):.0f} %), each with the proofs off in at most {tried} models")
    return count


def main():
    options = arguments()
    if options.list:
        wrong = mistakes(passes_of(ROOT / "docs/passes.md"))
        print("\n".join(mutations() + wrong))
        return bool(wrong)
    tools.start()
    wanted = [n for n in mutations()
              if n.split(".")[0] in (options.part.split(",") if options.part else PARTS) and (not options.only or n in options.only.split(","))]
    if missing := absent(wanted):
        print(f"mutations: expected tools with the faults of the sources, found none of {', '.join(missing)}: build them with "
              "`cmake --preset mutations` and set HEED_BIN", file=sys.stderr)
        return 1
    state = pathlib.Path(options.state) if options.state else None
    found = json.loads(state.read_text()) if state and state.exists() else {}
    begin, tried = time.time(), 0
    for number in range(options.first, options.first + options.models):
        alive = [n for n in wanted if n not in found]
        if not alive or options.minutes and time.time() - begin > 60 * options.minutes:
            break
        tried = number + 1
        try:
            model, tuples, _ = models.drawn(options.seed, number)
        except Exception:  # a fault of the generator, too
            continue
        if options.having and not set(options.having.split(",")) & model.features:
            continue
        seed = f"{options.seed}/{number}"
        if number % 50 == 49:
            print(f"model {number}: {len(alive)} left, {time.time() - begin:.0f} s", flush=True)
        for name, what in hunt(model, tuples, seed, alive).items():
            found[name] = {"models": number + 1, "seen": what.split(":")[0] + ":" + what.split(":")[1]}
            if name.split(".")[0] in PROVEN:
                found[name]["proof"] = refusal(model, tuples, seed, name)
            print(f"{name}: model {number}: {what[:160]} {found[name].get('proof', '')}", flush=True)
            if state:
                state.write_text(json.dumps(found, indent=1))
    count = table(found, wanted, max(tried, options.first))
    accepted = [n for n in wanted if n in found and found[n].get("proof", "refused").startswith("wrong")]
    for name in accepted:
        print(f"{name}: the proof takes it")
    return count < 0.95 * len(wanted) or bool(accepted)


sys.exit(main())
