"""One module a system: a class `System(threads)` with `name`, `version()` and `variants(case, inputs, weights)`.

`variants` gives name -> function; the function returns (run, result): `run()` is what is timed, `result()` the last output
as an array (all, where `all` is among the case's params). A variant that cannot serve a case is left out; one that fails is named in the report.
"""
import os
import sys

# Several of them need Heed's package: arrays whose data begin where those of the other systems do, at 64 bytes.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
