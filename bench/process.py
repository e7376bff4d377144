"""Processes that answer a line for each line they are asked: the systems' workers, and the probe of the machine."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
THERE = os.path.join(HERE, "..", ".venv-bench", "bin", "python")


class Pinned:
    """A process on these cores alone. Large pages serve all alike: whatever malloc gives asks for them."""

    def __init__(self, command, cores, log=None, **settings):
        environment = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "CUDA_VISIBLE_DEVICES": "", **settings}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment,
                                        preexec_fn=lambda: os.sched_setaffinity(0, cores))

    def read(self):
        return self.process.stdout.readline()

    def line(self, text):
        """The answer; empty if the process has ended."""
        try:
            print(text, file=self.process.stdin, flush=True)
            return self.read()
        except OSError:
            return ""

    def close(self):
        """Its exit code."""
        try:
            self.process.stdin.close()
        except OSError:  # what was not yet read of it
            pass
        return self.process.wait()


class Worker:
    """A system (a module of systems/) in a process of its own with a thread on each of these cores: see worker.py."""

    def __init__(self, module, cores, folder, python=sys.executable, script="worker.py", **settings):
        self.module, self.cores = module, cores
        count = str(len(cores))
        self.settings = {f"{x}_NUM_THREADS": count for x in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "HL")}
        self.settings["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(os.path.expanduser("~"), ".cache", "heed-bench", "inductor")
        self.settings.update(settings)
        os.makedirs(folder, exist_ok=True)
        self.log = open(os.path.join(folder, f"{script.removesuffix('worker.py')}{module}.{count}.log"), "w", encoding="utf-8")
        self.command = [python, os.path.join(HERE, script), module, count]
        self.start()

    def start(self):
        self.hello = None
        self.process = Pinned(self.command, self.cores, self.log, **self.settings)

    def greet(self):
        """Name and version, or what is missing; known once the process has started."""
        if not self.hello:
            line = self.process.read()
            self.hello = json.loads(line) if line else {"missing": "its process ended"}
        return self.hello

    def ask(self, **request):
        self.greet()
        line = self.process.line(json.dumps(request))
        if line:
            return json.loads(line)
        code = self.process.close()
        self.start()  # the next case shall not suffer
        self.greet()
        return {"error": f"its process ended with {code}"}

    def close(self):
        self.process.close()
        self.log.close()
