"""One model through its oracles: NumPy against the reference, the reference against Halide."""
import pathlib

import numpy as np

import inputs
import oracle
import oracle_functions
from compiled import Compiled, Refused, compile_model, write_weights
from heed_text import heed_text
from infinite import is_open, open_where
from judge import judge, unjudged
from numpy_text import numpy_text
from oracle import Large, Tensor, Tie, Wrong


def expected(model, dims, arrays):
    """The results by NumPy, as Tensors."""
    space = {k: getattr(oracle_functions, k) for k in dir(oracle_functions) if not k.startswith("__")}
    exec(model.oracle if hasattr(model, "oracle") else numpy_text(model), space)
    oracle.STACK.clear()
    given = []
    for x in model.inputs:
        a = arrays[x.name]
        v = inputs.from_bf16(a) if x.type == "bf16" else a
        v = v.astype(float) if v.dtype.kind == "f" else v if v.dtype.kind == "b" else v.astype(np.int64)
        given.append(Tensor(v, np.abs(v) if v.dtype.kind == "f" else None, exact=True))
    return space["model"](*given, **dims)


class Failure(Exception):
    """What went wrong: a kind that a shrinker keeps ('numbers', 'refused', 'crash'), the text."""

    def __init__(self, kind, text, dims=None, seed=None):
        super().__init__(text)
        self.kind, self.text, self.dims, self.seed = kind, text, dims, seed


def cases(model, tuples, seed):
    """(dims, seed, arrays, expected) for each tuple that the oracle takes."""
    for k, dims in enumerate(tuples):
        for attempt in range(4):
            draw = f"{seed}/{k}/{attempt}"
            number = int.from_bytes(draw.encode()[-8:], "little") & 0x7FFFFFFF
            arrays = inputs.arrays(model, dims, number, dims.get("poison", 0))
            try:
                with np.errstate(all="ignore"):
                    want = expected(model, dims, arrays)
            except Tie:
                continue
            except Large:
                break
            yield dims, number, arrays, want
            break


class Program:
    """A compiled model, opened again where its weights are other ones."""

    def __init__(self, source, folder, backend, model, flags=(), threads=1):
        # A library that is still mapped must not be written again.
        self.library = pathlib.Path(folder) / f"{backend}{len(list(pathlib.Path(folder).iterdir()))}.so"
        self.weights, self.model, self.threads, self.open = pathlib.Path(folder) / "weights.safetensors", model, threads, None
        # A processor's device is taken by its name alone.
        self.target = b"opencl" if "--target=opencl" in flags else None
        # Three quarters of a reference's compile time would go into optimising what runs for a millisecond.
        try:
            self.text = compile_model(source, self.library, backend, [*flags, *(inputs.weights_type(model) if source.suffix == ".heed" else [])] + ["-O0"] * (backend == "reference"))
        except Refused as e:
            raise Failure("refused", str(e))

    def __call__(self, arrays):
        """The results. Raises Refused."""
        weights = write_weights(self.weights, self.model, arrays)
        if weights or not self.open:
            self.close()
            self.open = Compiled(self.library, self.threads, self.target, weights)
        return self.open(arrays)

    def close(self):
        if self.open:
            self.open.close()
        self.open = None


def check_backend(source, folder, backend, model, known, flags=(), threads=1):
    """Compiles, runs every case, raises Failure. Returns heedc's messages."""
    program = Program(source, folder, backend, model, flags, threads)
    try:
        for dims, seed, arrays, want in known:
            try:
                results = program(arrays)
            except Refused as e:
                raise Failure("refused call", f"{backend}: {e}", dims, seed)
            for name, got, expected_ in zip(model.results, results, want):
                wrong = judge(got, expected_, f"{backend}: {name}")
                if wrong:
                    raise Failure("numbers", f"{wrong}; sizes {dims}, seed {seed}", dims, seed)
    finally:
        program.close()
    return program.text


def disagreement(model, plain, known):
    """What NumPy finds between a model and the one that it respells, or None: a fault of the generator."""
    for dims, _, arrays, want in known:
        try:
            with np.errstate(all="ignore"):
                other = expected(plain, dims, arrays)
        except (Tie, Large):
            continue
        for name, x, y in zip(model.results, want, other):
            v, a = y.v, None
            if x.a is not None and y.a is not None:
                v, a = open_where(is_open(x.v, x.a) | is_open(y.v, y.a), v, np.maximum(x.a, y.a))
            wrong = judge((np.asarray(x.v), "f64"), Tensor(v, a), f"respelled {name}")
            if wrong:
                return f"{wrong}; sizes {dims}"
    return None


def write_source(model, folder):
    source = pathlib.Path(folder) / "drawn.heed"
    source.write_text(model.source if hasattr(model, "source") else heed_text(model))
    return source
