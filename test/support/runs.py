"""Runs a program and compares what it says."""
import re
import subprocess
import sys

failures = 0


def run(*command, **options):
    """The finished process; death by a signal or a sanitizer's report is a failure whatever the test expects."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", timeout=300,
                          **options)
    # A refused allocation is what some tests want; the sanitizer's remark on it is none of the program's.
    if "AddressSanitizer failed to allocate" in done.stderr:
        done.stderr = re.sub(r"(?m)^(==\d+==.*|\s+#\d+ .*|)\n", "", done.stderr)
    if done.returncode < 0 or "Sanitizer" in done.stderr or "runtime error:" in done.stderr:
        expect(False, f"{command}: crashed with {done.returncode}\n{done.stderr}")
    return done


def expect(condition, what):
    global failures
    if not condition:
        failures += 1
        print("FAILED:", what)


def expect_error(done, text, what=""):
    """Exit code 1 and one line on stderr that holds `text`."""
    expect(done.returncode == 1 and text in done.stderr and done.stderr.count("\n") == 1,
           f"{what}: expected an error with {text!r}, found exit code {done.returncode}, {done.stderr!r}")


def fails(kind, text, function, what=""):
    """The call raises such an exception, whose message holds `text`."""
    try:
        function()
    except kind as error:
        return expect(text in str(error), f"{what}: expected {text!r}, found {error!s}")
    except Exception as error:
        return expect(False, f"{what}: expected {kind.__name__} with {text!r}, found {error!r}")
    expect(False, f"{what}: expected {kind.__name__} with {text!r}, found no error")


def finish():
    print("failures:", failures)
    sys.exit(failures != 0)
