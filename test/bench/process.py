# RUN: %python %s %heed_src %t
"""bench/process.py, worker.py and machine.py: pinned to their cores, answers are complete, a worker that dies costs one answer. No time is judged."""
import os
import pathlib
import signal
import sys

import numpy as np

from runs import expect, finish

folder = pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "bench"))
import cases  # of bench/
from compiled import expected, write_inputs
from machine import Machine, cache_bytes
from process import Worker
from reference import difference

core = sorted(os.sched_getaffinity(0))[-1]


def status(process, field):
    text = pathlib.Path(f"/proc/{process.process.pid}/status").read_text()
    return next(line.split()[1] for line in text.splitlines() if line.startswith(field))


worker = Worker("with_numpy", [core], folder)
expect(worker.greet()["name"] == "numpy", f"{worker.hello}")
expect(status(worker.process, "Cpus_allowed_list") == str(core), "a worker on other cores")
environment = pathlib.Path(f"/proc/{worker.process.process.pid}/environ").read_text()
expect("OPENBLAS_NUM_THREADS=1" in environment and "hugetlb=1" in environment, environment)

case = next(c for c in cases.cases() if c.name == "small causal N=17 E=64")
told, inputs, weights = write_inputs(case, folder)
right, most = expected(case, inputs, weights)
answer = worker.ask(do="prepare", case=told, folder=str(folder))
expect(list(answer["variants"]) == ["numpy"] and not answer["absent"], f"{answer}")
expect(difference(right, np.load(answer["variants"]["numpy"]["output"])) <= most, "what NumPy gives")
for least, seconds, cpu in ((3, 0.0, False), (1, 0.002, True)):
    answer = worker.ask(do="time", variant="numpy", seconds=seconds, least=least, cpu=cpu)
    expect(len(answer["seconds"]) >= least and min(answer["seconds"]) > 0 and answer["switches"] >= 0, f"{answer}")
    expect(cpu or sum(answer["seconds"]) <= answer["spent"], f"{answer}")
expect(worker.ask(do="prepare", case=told, folder=str(folder), only=["other"])["variants"] == {}, "only what was asked for")
worker.ask(do="release")
expect("KeyError" in worker.ask(do="time", variant="numpy", seconds=0, least=1, cpu=False)["error"], "what is released cannot be timed")

os.kill(worker.process.process.pid, signal.SIGKILL)
expect("ended with -9" in worker.ask(do="release")["error"], "a worker that died")
expect(worker.ask(do="release") == {} and status(worker.process, "Cpus_allowed_list") == str(core), "the next one")
worker.close()
missing = Worker("nothing", [core], folder)
expect("nothing" in missing.greet()["missing"], f"{missing.hello}")
missing.close()

machine = Machine(str(folder), [core])
expect(status(machine.process, "Cpus_allowed_list") == str(core), "the probe on other cores")
(peak, read, write, copy), switches, seconds = machine.measure(False)
expect(peak > 0 and read == write == copy == 0 and switches >= 0 and seconds > 0, f"{peak} {read} {write} {switches} {seconds}")
expect(min(machine.measure(True)[0]) > 0, "the bandwidths")
machine.close()

(folder / "index2").mkdir(exist_ok=True)
(folder / "index2/size").write_text("2048K\n")
expect(cache_bytes(str(folder)) == 2 << 20 and cache_bytes("/nowhere") == 1 << 20, "the size of a cache")
finish()
