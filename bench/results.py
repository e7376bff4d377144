"""results.json: one run of one commit, written after each cell, so that a run which was stopped goes on where it was."""
import hashlib
import json
import os
import subprocess
import time


def commit(folder):
    """The commit of this checkout, with `+` if something that is tracked has changed since; `unknown` without git."""
    def git(*arguments):
        try:
            done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    name = git("rev-parse", "--short=12", "HEAD")
    if not name:
        return "unknown"
    return name + ("+" if git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs") else "")


def fingerprint(path):
    """Of the compiler that makes the cells: a commit with changes is no name for it."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:12]


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


# What must be the same for cells to stand in one table.
SAME = ("commit", "compiler", "target", "clock", "machine", "within", "moved")


def earlier(path, run):
    """The run of this file, if it is this one begun: else a ValueError that says what differs."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    for key in SAME:
        # Whether something has changed since the commit is in the compiler's fingerprint, as far as it matters.
        if str(found.get(key)).rstrip("+") != str(run[key]).rstrip("+"):
            raise ValueError(f"--keep: the run in '{path}' is of another {key}: {found.get(key)}, and this is {run[key]}")
    return found


def key(result):
    return result["name"], result["threads"]


class Results:
    """The run, and its file."""

    def __init__(self, path, run, order):
        self.path, self.run, self.order = path, run, {name: k for k, name in enumerate(order)}
        self.began, self.minutes = time.monotonic(), run["minutes"]

    def done(self):
        """Cells that are there: (name, threads) -> result."""
        return {key(result): result for result in self.run["cases"]}

    def add(self, result):
        """In place of an earlier result of that cell; in the order of cases, whatever was measured first."""
        cells = {**self.done(), key(result): {**result, "time": now()}}
        self.run["cases"] = sorted(cells.values(), key=lambda c: (self.order.get(c["name"], len(self.order)), c["threads"]))
        self.run["minutes"] = round(self.minutes + (time.monotonic() - self.began) / 60, 1)
        self.run["ended"] = now()
        part = self.path + ".part"
        with open(part, "w", encoding="utf-8") as file:
            json.dump(self.run, file, indent=None, separators=(",", ":"), default=str)
            file.write("\n")
        os.replace(part, self.path)
