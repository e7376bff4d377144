"""Which cores are used, and what other programs did to them meanwhile."""
import os

# A block is rejected for these; Heed's own time is not among them.
MOVED = 0.03  # the most that the FMA peak may move within a block, of its median
MOVED_MEMORY = 0.10  # a bandwidth, which the neighbours of a virtual machine share
STOLEN = 0.005  # of a block's time on its cores, taken by the hypervisor
# Involuntary switches of a slot: so many, and so many a second. By the clock one may cost as much as the slot takes, so only the kernel's own
# threads in a long slot are let pass. Processor time stands still meanwhile, and what is paid is the way back into the caches.
SWITCHES = {"wall": (0, 2.0), "cpu": (2, 200.0)}

TICK = 1.0 / os.sysconf("SC_CLK_TCK")


def cores_of(text):
    """'0,2-3' to [0, 2, 3]; nothing: the cores that this process may use."""
    allowed = sorted(os.sched_getaffinity(0))
    if not text:
        return allowed
    found = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ValueError(f"expected numbers of cores such as 0,2-3; found '{text}'")
        found += range(int(first), int(last or first) + 1)
    missing = [core for core in found if core not in allowed]
    if missing or not found:
        raise ValueError(f"this process may not use core {missing[0]}" if missing else "no cores are named")
    return list(dict.fromkeys(found))


def stolen_ticks(stat, cores):
    """What /proc/stat (its text) says was stolen from these cores, in seconds since the start."""
    wanted = {f"cpu{core}" for core in cores}
    total = 0
    for line in stat.splitlines():
        name, *numbers = line.split()
        if name in wanted and len(numbers) >= 8:
            total += int(numbers[7])
    return total * TICK


def stolen(cores):
    try:
        with open("/proc/stat", encoding="utf-8") as file:
            return stolen_ticks(file.read(), cores)
    except OSError:
        return 0.0


def spread(values):
    """How far values moved, of their median."""
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return (ordered[-1] - ordered[0]) / middle if middle > 0 else float("inf")


def disturbance(limits, switches, stolen_seconds, seconds, cores, memory=False, clock="wall", moved=MOVED):
    """Why a block does not count, or None.

    limits: (FMA, read, write, copy) of its probes; switches: (involuntary context switches, seconds) of each slot, probes among
    them; stolen_seconds: on all its cores together, of a block of so many seconds."""
    if stolen_seconds > STOLEN * seconds * cores:
        return "stolen time"
    some, rate = SWITCHES[clock]
    if any(count > some + int(rate * time) for count, time in switches):
        return "involuntary switches"
    if spread([limit[0] for limit in limits]) > moved:
        return "the peak moved"
    if memory and spread([limit[1] for limit in limits]) > MOVED_MEMORY:
        return "the bandwidth moved"
    return None
