"""The machine's limits, measured by machine.c while the cases run."""
import os
import platform
import re
import subprocess

from process import Pinned

HERE = os.path.dirname(os.path.abspath(__file__))


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return re.search(r"model name\s*: (.*)", file.read())[1]
    except (OSError, TypeError):
        return platform.machine()


def cache_bytes(folder="/sys/devices/system/cpu/cpu0/cache"):
    """Of a core's own cache: what fits there does not wait for memory."""
    try:
        with open(os.path.join(folder, "index2", "size"), encoding="utf-8") as file:  # "2048K"
            return int(file.read().strip().removesuffix("K")) << 10
    except (OSError, ValueError):
        return 1 << 20


class Machine:
    """A process on these cores, one thread each, that measures when it is asked to."""

    def __init__(self, folder, cores, march="native", clock="wall"):
        program = os.path.join(folder, f"machine-{march}")
        source = os.path.join(HERE, "machine.c")
        if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source):
            subprocess.run([os.environ.get("CC", "clang-22"), "-O3", f"-march={march}", "-ffp-contract=fast", source,
                            "-o", program, "-lpthread"], check=True)
        self.process = Pinned([program, clock, *map(str, cores)], cores)

    def measure(self, memory):
        """((GFLOP/s of FMA, GB/s of reading, of writing, of copying), involuntary switches, seconds); without `memory` the bandwidths are 0."""
        *limits, switches, seconds = map(float, self.process.line("m" if memory else "f").split())
        return tuple(limits), int(switches), seconds

    def close(self):
        self.process.close()
