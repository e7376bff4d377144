# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin %S %t
"""A signal at any moment: heedc and what it started end, the output is there whole or not at all, nothing else is left."""
import os
import pathlib
import signal
import subprocess
import sys
import time

from runs import expect, finish

heedc, model = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]) / "Inputs/linear.heed"
folder = pathlib.Path(sys.argv[3])
(folder / "tmp").mkdir()
os.environ["TMPDIR"] = str(folder / "tmp")


def group(leader):
    """Processes of a group that still run."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if fields[2] == str(leader) and fields[0] != "Z":
            found.append(entry.name)
    return found


def whole():
    start = time.monotonic()
    subprocess.run([heedc, model, "-o", folder / "whole"], check=True)
    return time.monotonic() - start


duration = whole()
(folder / "whole").unlink()
count = 8
for k in range(count):
    number = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[k % 3]
    process = subprocess.Popen([heedc, model, "-o", folder / "out"], stderr=subprocess.PIPE, start_new_session=True)
    time.sleep(duration * k / (count - 1))
    # To the whole group, as a terminal does, or to heedc alone.
    os.killpg(process.pid, number) if k % 2 else process.send_signal(number)
    process.communicate()
    expect(process.returncode in (0, -number), f"{number.name}, {k}: exit code {process.returncode}")
    deadline = time.monotonic() + 60
    while group(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    expect(not group(process.pid), f"{number.name}, {k}: {len(group(process.pid))} processes still run")
    left = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.name != "tmp")
    expect(left in ([], ["out"]), f"{number.name}, {k}: left {left}")
    if left == ["out"]:
        expect(subprocess.run([folder / "out", "--version"], capture_output=True).returncode == 0, "a part of a program")
    for name in left:
        (folder / name).unlink()

# A signal that a kernel's process gets before heedc does, as when a terminal ends a group, ends heedc in the same way.
caught = 0
for attempt in range(20):
    process = subprocess.Popen([heedc, "--no-cache", model, "-o", folder / "out"], stderr=subprocess.PIPE, start_new_session=True)
    while process.poll() is None and not caught:
        for child in group(process.pid):
            if child != str(process.pid):
                os.kill(int(child), signal.SIGHUP)
                caught = 1
    said = process.communicate()[1]
    if caught:
        expect(process.returncode == -signal.SIGHUP, f"a kernel's process alone: exit code {process.returncode}: {said}")
        break
expect(caught, "no process of a kernel was seen")
expect(not (folder / "out").exists(), "a part of a program")
finish()
