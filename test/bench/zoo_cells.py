# RUN: %python %s %heed_src %heed_build %t %python
# UNSUPPORTED: asan
# (the compiled libraries are linked without the sanitizer that the runtime would want)
"""bench/zoo_cases.py: at small sizes each case's inputs, weights and constants are those of its model and of its oracle, and some compiled ones give what
the oracle does. No peer is asked, no time is judged."""
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np

from runs import expect, finish

source, build, folder = (pathlib.Path(a) for a in sys.argv[1:4])
sys.path[:0] = [str(source / "bench"), str(source / "python")]
import cases  # of bench/
import compiled
import measure
import process
import zoo_cases
import zoo_models

SMALL = {
    "t5_bias": dict(n=40, h=2, e=8), "alibi": dict(n=40, h=4, e=8), "deberta": dict(n=40, d=16, heads=2, k=6),
    "txl_relative": dict(n=20, m=33, d=16, h=2, e=8), "music_transformer": dict(n=40, h=2, e=8), "additive_attention": dict(b=2, n=9, a=16, f=8),
    "talking_heads": dict(n=40, h=3, e=8), "synthesizer_dense": dict(n=40, d=16, heads=2, a=8), "prior_mixture": dict(n=40, h=2, e=8),
    "fnet": dict(n=20, d=16, hidden=32), "syntax_branch_mix": dict(n=40, h=2, e=8), "longformer": dict(n=64, h=2, e=8, window=8),
    "bigbird": dict(n=64, h=2, e=8, block=4), "image_transformer_2d": dict(h=8, w=12, heads=2, e=8, hq=4, wq=6, hm=3, wm=2),
    "axial_transformer": dict(h=6, w=9, d=16, heads=2), "performer_favor": dict(n=40, h=2, e=8, r=16),
    "linear_transformer": dict(n=40, d=16, heads=2, hidden=32), "linformer": dict(n=40, h=2, e=8, k=8),
    "nystrom_landmarks": dict(n=40, h=2, e=8, landmarks=4), "perceiver": dict(m=40, c=7, r=8, d=16, heads=2),
    "set_transformer": dict(b=2, n=40, d=16, points=8), "moe_dense": dict(n=20, d=16, a=32), "gmlp": dict(n=20, d=16, hidden=32),
    "macaron": dict(n=20, d=16, hidden=32), "dlcl": dict(n=20, d=16, hidden=32), "ode_rk2": dict(n=20, d=16, hidden=32),
    "dynamicconv": dict(b=2, n=20, c=16, h=4, k=5), "squeeze_excitation": dict(b=2, size=5, c=8, reduced=4),
    "lite_transformer": dict(n=20, d=16, heads=2, k=5), "int8_matmul": dict(n=20, k=24, m=32),
    "vit": dict(size=32, d=16, heads=2, hidden=32, classes=8, p=16), "swin": dict(size=56, c=16, heads=(2, 4), classes=8),
    "conformer": dict(n=20, d=16, k=8), "flamingo": dict(n=20, images=2, s=7, r=4, d=16, hidden=32, words=9),
    "linear_attention_causal": dict(n=70, h=2, e=8), "decayed_linear_attention": dict(n=70, h=2, e=8), "retention": dict(b=2, n=70, h=2, e=8),
    "scalar_gates": dict(n=70, h=2, e=8), "channel_gates": dict(b=2, n=70, h=2, e=8),
    "gated_delta": dict(b=2, n=70, h=2, e=8), "lstm": dict(b=3, n=5, d=8),
    "lstm_step": dict(b=2, d=8), "gru": dict(b=3, n=5, d=8), "gru_behind": dict(b=3, n=5, d=8), "mamba_scan": dict(n=20, c=16, e=4),
    "mamba": dict(n=20, d=8, e=4), "mamba_step": dict(b=2, d=8, e=4),
    "prefix_sums_of_rows": dict(n=9, d=20), "prefix_sums_over_rows": dict(n=9, d=20),
    "log_sum_exp_of_rows": dict(n=9, d=20), "log_sum_exp_over_rows": dict(n=9, d=20),
    "gla": dict(n=70, d=16, heads=2), "delta_rule": dict(n=70, h=2, e=4, f=8, d=6),
    "palm_parallel_block": dict(n=20, d=16, heads=2, e=8, hidden=32), "evolved_transformer": dict(n=20, d=16, heads=2),
}
# One of each kind of constant: by keyword and by name in the oracle, a table from outside, a list among heedc's. Of a recurrence alone all results
# are compared.
COMPILED = ("longformer", "synthesizer_dense", "squeeze_excitation", "gated_delta", "mamba_step")
# Recurrences of which one step has a key of its own; systems whose bench has an oracle of its own, for longer sequences.
STEPS, LONG = ("retention", "channel_gates", "gated_delta"), ("linear-attention-causal", "lstm", "gru", "mamba")

shutil.rmtree(folder, ignore_errors=True)
expect(set(SMALL) == {f.__name__ for f in zoo_models.FOUND}, "each case has a small size here")
names = {cases.zoo_case(f()).name for f in zoo_models.FOUND}
expect(len(SMALL) >= 30 and len(names) == len(zoo_models.FOUND), "30 systems, and each of their cases with a name of its own")
worker = process.Worker("heed", [min(os.sched_getaffinity(0))], str(folder))
small = {f.__name__: f(**SMALL[f.__name__]) for f in zoo_models.FOUND}
# A step of what is many steps otherwise has a key of its own.
steps = [f(**{**SMALL[f.__name__], "n": 1}) for f in zoo_models.FOUND if f.__name__ in STEPS]
small |= {e["key"]: e for e in steps}
for name, made in small.items():
    at = str(folder / name)
    case = cases.zoo_case(made)
    told, inputs, weights = compiled.write_inputs(case, at)
    right = compiled.expected(case, inputs, weights)
    if case.params["key"] in LONG:
        wide = ({k: a.astype(np.float64) if a.dtype.kind == "f" else a for k, a in arrays.items()} for arrays in (inputs, weights))
        first = zoo_cases.first_of_oracle(case.params, *wide)
        expect(measure.reference.difference(first, right[0][0]) < 1e-10, f"{name}: two oracles")
    results = right[0] if isinstance(right[0], tuple) else (right[0],)
    expect(all(np.isfinite(r).all() and r.dtype == np.float64 for r in results) and case.writes == 4 * sum(r.size for r in results), name)
    expect(case.reads > 0 and case.flops > 0, name)
    # The model takes these constants and weights.
    more = ["--weights", told["weights_file"]] if told["weights_file"] else []
    done = subprocess.run([str(build / "bin/heedc"), case.source, *case.options, *more, "--emit=attn", "-o", os.devnull], capture_output=True, text=True)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    if name in COMPILED:
        found = compiled.compile_case(case, told, at, str(build), "host")
        expect("error" not in found, f"{name}: {found}")
        absent = {}
        expect(measure.prepare(worker, told, at, right, absent), f"{name}: {absent}")
        kernels = worker.ask(do="profile", variant="heed")["kernels"]
        expect(all(len(k) == 4 for k in kernels) and any(k[1] > 0 for k in kernels), f"{name}: {kernels}")
        # Another constant of the oracle, another result: it is the oracle that decides.
        for k in range(len(results)):
            almost = tuple(r * (1 + 1e-3 * (j == k)) for j, r in enumerate(results))
            expect(not measure.prepare(worker, told, at, (almost, right[1]), {}), f"{name}: a wrong number passed")
worker.close()
finish()
