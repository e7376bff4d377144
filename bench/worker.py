"""One system in a process of its own, so that no library's threads and settings touch another's.

Reads a request a line (JSON) and answers with a line: `prepare` a case, `time` a variant of it, `profile` or `release` it.
"""
import gc
import importlib
import json
import os
import resource
import sys
import time
import traceback

import numpy as np


SHORT = 5e-5  # seconds: a clock read for each run would count


def load_weights(path):
    if not path:
        return {}
    from safetensors.numpy import load_file
    return load_file(path)


def line_of(error):
    """What went wrong, for the report: a line without the folders of this machine."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/"
    return f"{type(error).__name__}: {error}".split("\n")[0].replace(root + "bench/../", "").replace(root, "")


class Worker:

    def __init__(self, module, threads):
        self.system = importlib.import_module(f"systems.{module}").System(threads)
        self.ready = {}

    def prepare(self, case, folder, only=None):
        """Makes each variant (or only these), runs it once and writes what it gave; those that cannot say why."""
        inputs = {name: np.load(os.path.join(folder, name + ".npy")) for name in case["inputs"]}
        weights = load_weights(case["weights_file"]) if self.system.name != "heed" else {}
        made, absent = {}, {}
        for name, make in self.system.variants(case, inputs, weights).items():
            if only is not None and name not in only:
                continue
            try:
                start = time.perf_counter()
                run, result = make()
                run()
                made[name] = {"prepare_seconds": time.perf_counter() - start}
                path = os.path.join(folder, f"{self.system.name}.{len(made)}.npy")
                np.save(path, joined(result()))
                made[name]["output"] = path
                self.ready[name] = run
            except Exception as error:  # any failure of a library is a line of the report, not the end of the run
                absent[name] = line_of(error)[:200]
        return {"variants": made, "absent": absent}

    def time(self, variant, seconds, least, cpu):
        """Seconds of a run (of the processor, if `cpu`), until `seconds` have passed and at least `least` are there; how often a thread
        of this process was made to leave its core meanwhile, and how long all of it took. Short runs are timed in groups."""
        run, found = self.ready[variant], []
        clock = time.process_time if cpu else time.perf_counter
        before, began, start = switches(), time.perf_counter(), clock()
        run()  # what another system left in the caches is not this one's burden
        first = clock() - start
        if first > 0.2:
            least, seconds, found = least - 1, 0, [first]  # which is little in so long a run
        else:
            before, began = switches(), time.perf_counter()
        group = max(1, min(1000, int(SHORT / max(first, 1e-9))))
        end = clock() + seconds
        while len(found) < least or clock() < end:
            start = clock()
            for _ in range(group):
                run()
            found.append((clock() - start) / group)
        return {"seconds": found, "switches": switches() - before, "spent": time.perf_counter() - began}

    def profile(self, variant):
        """Kernels as [name, seconds, operations, bytes], of the system that can say."""
        return {"kernels": self.ready[variant].profile()}

    def release(self, keep=()):
        for name in [n for n in self.ready if n not in keep]:
            run = self.ready.pop(name)
            getattr(run, "close", lambda: None)()
        gc.collect()
        return {}


def joined(results):
    """Several arrays as one; one as it is."""
    return np.concatenate([np.ravel(a) for a in results]) if isinstance(results, tuple) else np.asarray(results)


def switches():
    """Involuntary context switches of all threads of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def rest():
    """Returns once no thread of this process works or waits in a loop for work: the next system has the machine to itself."""
    for _ in range(200):
        before = time.process_time()
        time.sleep(0.002)
        if time.process_time() - before < 0.0004:
            return


def main(kind=Worker):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is not an answer
    try:
        worker = kind(sys.argv[1], int(sys.argv[2]))
        hello = {"name": worker.system.name, "version": worker.system.version()}
    except Exception as error:  # not installed, or broken here
        hello = {"missing": line_of(error)}
    print(json.dumps(hello), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        rest()
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
