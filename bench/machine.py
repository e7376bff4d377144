"""The machine's limits, measured by machine.c while the cases run."""
import os
import platform
import re
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return re.search(r"model name\s*: (.*)", file.read())[1]
    except (OSError, TypeError):
        return platform.machine()


def cache_bytes():
    """Of a core's own cache: what fits there does not wait for memory."""
    try:
        return max(os.sysconf("SC_LEVEL2_CACHE_SIZE"), 1 << 18)
    except (OSError, ValueError):
        return 1 << 20


class Machine:
    """A process that measures when it is asked to."""

    def __init__(self, folder, threads, march="native", clock="wall"):
        program = os.path.join(folder, f"machine-{march}")
        if not os.path.exists(program):
            subprocess.run([os.environ.get("CC", "clang-22"), "-O3", f"-march={march}", "-ffp-contract=fast",
                            os.path.join(HERE, "machine.c"), "-o", program, "-lpthread"], check=True)
        self.process = subprocess.Popen([program, str(threads), clock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.bandwidth, self.best = (0.0, 0.0), 0.0

    def measure(self, memory):
        """(GFLOP/s of FMA, GB/s of reading, GB/s of writing); without `memory` the last bandwidths."""
        self.process.stdin.write("m" if memory else "f")
        self.process.stdin.flush()
        peak, read, write = map(float, self.process.stdout.readline().split())
        if memory:
            self.bandwidth = (read, write)
        return (peak, *self.bandwidth)

    def steady(self, peaks, most):
        """Whether these rounds were undisturbed, and not slower than all before."""
        middle = statistics.median(peaks)
        self.best = max(self.best, middle)
        return max(peaks) - min(peaks) <= most * middle and middle >= (1 - most) * self.best

    def close(self):
        self.process.stdin.close()
        self.process.wait()
