"""Compiled models as callables."""
import collections
import ctypes as C
import inspect
import keyword
import os
import weakref

from heed import abi
from heed.arrays import STREAM, from_dlpack, from_numpy, new_result, result_like, result_view, view_of
from heed.errors import BY_STATUS, RunError
from heed.generation import Generation
from heed.state import CallOptions, State

import numpy as np

Tensor = collections.namedtuple("Tensor", "name argument type extents is_scalar default")
Tensor.__doc__ = "An input or output: its name in the model, its name in Python, heed_type, extents as text, and a scalar's default."
Kernel = collections.namedtuple("Kernel", "name calls seconds flops bytes pairs")
Kernel.__doc__ = ("What one kernel has cost: calls, seconds of all calls, operations and bytes of all calls (0: not known), "
                  "pairs of a query and a key (0: not counted).")
Memory = collections.namedtuple("Memory", "weights copies buffers")
Memory.__doc__ = "Bytes: weights that are read where they lie, copies of weights, buffers of one call."
MISSING = inspect.Parameter.empty


class Annotation(str):
    """A type as signatures show it: as it is, without quotes."""

    def __repr__(self):
        return str(self)


def argument_name(name):
    """What an input is called in Python: `global` is `global_`, and so are the names that a call has itself."""
    return name + "_" if keyword.iskeyword(name) or name in ("self", "out", "state") else name


def text_of(tensor):
    """f32[B, H, N, E], f32 = 1.5"""
    text = abi.TYPE_NAMES[tensor.type] + (f"[{', '.join(tensor.extents)}]" if tensor.extents or not tensor.is_scalar else "")
    return text if tensor.default is MISSING else f"{text} = {tensor.default}"


class Library:
    """A shared library of heedc, and what it says of its model."""

    def __init__(self, path, prefix=None):
        self.c = C.CDLL(os.path.abspath(os.fspath(path)))
        missing = abi.bind(self.c)
        if missing:
            raise RunError(f"{path}: no '{missing}' in it: expected a library of 'heedc --emit=shared' with C interface {abi.ABI_VERSION}",
                           "version")
        name = "heed_models" if prefix is None else prefix + "_model"
        try:
            # The first is a list that ends with null; heedc puts one model into a library.
            self.desc = (C.c_void_p * 2).in_dll(self.c, name)[0] if prefix is None else C.addressof(C.c_char.in_dll(self.c, name))
        except ValueError:
            raise RunError(f"{path}: no '{name}' in it: expected a library of 'heedc --emit=shared', and the prefix that it was made with",
                           "argument") from None
        # Without declared arguments: a call's are ctypes objects already, and looking at them again takes longer than a small model.
        self.run = self.c["heed_run"]
        self.name = self.c.heed_model_name(self.desc).decode()
        signatures = [self.c.heed_entry_signature(self.desc, k) for k in range(self.c.heed_num_entries(self.desc))]
        entries = [one.contents for one in signatures]
        self.generating = [one.contents.entry.decode() for one in signatures if self.c.heed_can_generate(one)]
        self.entries = {one.entry.decode(): ([self._tensor(one.inputs[k].contents) for k in range(one.numInputs)],
                                             [self._tensor(one.outputs[k].contents) for k in range(one.numOutputs)]) for one in entries}

        self.states = [self._tensor(self.c.heed_state_info(self.desc, k).contents) for k in range(self.c.heed_num_states(self.desc))]

    @staticmethod
    def _tensor(info):
        default = MISSING
        if info.isScalar and info.hasDefault:
            default = info.defaultReal if info.type in (abi.F32, abi.F16, abi.BF16) else int(info.defaultInteger)
            default = bool(default) if info.type == abi.BOOL else default
        name = info.name.decode()
        return Tensor(name, argument_name(name), info.type, tuple(info.extents[k].decode() for k in range(info.rank)),
                      bool(info.isScalar), default)

    def error(self, handle, status):
        word = self.c.heed_status_name(status).decode()
        text = (self.c.heed_last_error(handle) if handle else b"") or b"no memory, or a library of another version"
        # The runtime speaks of the option of programs.
        return BY_STATUS.get(word, RunError)(text.decode(errors="replace").replace("--convert", "convert=True"), word)


class Handles:
    """Open handles of one process: one for each call that runs at a time, all on the same weights and the same threads."""

    def __init__(self, library, files, arrays, threads, convert, watch, packed=None, profile=False):
        self.library, self.pid, self.arrays = library, os.getpid(), arrays
        c, paths = library.c, (C.c_char_p * max(len(files), 1))(*map(os.fsencode, files))
        find = abi.FindWeight(self._find) if arrays is not None else abi.FindWeight()
        self.opened, self.free = [], []
        pool = c.heed_threads_open(library.desc, threads, int(watch))
        options = abi.Options(weights=paths, numWeights=len(files), findWeight=find, convert=int(convert), threads=threads,
                              profile=int(profile), wait=int(watch), pool=pool, packed=None if packed is None else os.fsencode(packed))
        # What closes them must not keep this object alive.
        self.finalizer = weakref.finalize(self, Handles._close, c, self.opened, pool, self.pid)
        handle = C.c_void_p()
        status = c.heed_open_version(abi.ABI_VERSION, library.desc, C.byref(options), C.byref(handle))
        if handle:
            self.opened.append(handle)
        if status:
            raise library.error(handle, status)
        self.free.append(handle)

    @staticmethod
    def _close(c, opened, pool, pid):
        if os.getpid() != pid:
            return  # a child of fork: handles and threads are its parent's
        for handle in reversed(opened):
            c.heed_close(handle)
        c.heed_threads_close(pool)

    def _find(self, user, name, buffer):
        view = self.arrays.get(name.decode())
        if view is None:
            return 0
        view.fill(buffer.contents)
        return 1

    def take(self):
        """A handle that nobody uses. list.pop and append are atomic."""
        try:
            return self.free.pop()
        except IndexError:
            other = C.c_void_p()
            status = self.library.c.heed_open_shared(self.opened[0], 0, C.byref(other))
            if other:
                self.opened.append(other)
            if status:
                raise self.library.error(other, status)
            return other


class Call:
    """A model with its arrays: what it is called with each time. Calling it runs the model on what the arrays hold then and returns
    the results, the same arrays each time. One thread at a time calls it."""

    def __init__(self, model, entry, inputs, out, handles=None, state=None):
        self.model, self._handles, self.state = model, handles, state
        ins, outs = model._library.entries[entry]
        self._keep, self._there, self._cuda = [], None, model.target == "cuda"
        self._in = (abi.Buffer * max(len(ins), 1))()
        for buffer, tensor in zip(self._in, ins):
            self._fill(buffer, tensor, inputs)
        self._out = (abi.Buffer * max(len(outs), 1))()
        for buffer in self._out:
            buffer.size = C.sizeof(abi.Buffer)
        name = entry.encode()
        self._run, c = model._library.run, model._library.c
        options = C.byref(state.call) if state else None
        self._with_handle(lambda handle: c.heed_output_shapes_in(handle, name, self._in, len(ins), self._out, len(outs), options))
        arrays = []
        for k, (buffer, tensor) in enumerate(zip(self._out, outs)):
            given, what = out.get(tensor.name), f"result '{tensor.name}'"
            shape = tuple(buffer.shape[:buffer.rank])
            if given is None:
                given = new_result(buffer.type, shape, what) if self._there is None else result_like(self._there, buffer.type, shape, what)
            arrays.append(given)
            view = result_view(given, buffer.type, shape, what, self._cuda)
            view.fill(buffer)
            self._keep.append(view)
        if any(view.on_device for view in self._keep):
            self._call = CallOptions(state=state.handle if state else None, stream=STREAM)
            options = C.byref(self._call)
        self._arguments = (C.c_char_p(name), self._in, C.c_size_t(len(ins)), self._out, C.c_size_t(len(outs)), options)
        self.results = arrays[0] if len(arrays) == 1 else model._results[entry](*arrays)

    def _fill(self, buffer, tensor, inputs):
        if tensor.name in inputs:
            view = view_of(inputs[tensor.name], tensor.type, f"input '{tensor.name}'", self._cuda)
            view.fill(buffer)
            self._keep.append(view)
            if view.on_device and self._there is None:
                self._there = inputs[tensor.name]
        else:  # a scalar's default
            buffer.size, buffer.type, buffer.deviceType = C.sizeof(abi.Buffer), tensor.type, abi.DEVICE_CPU

    def _with_handle(self, function):
        handles = self._handles or self.model._handles()
        handle = handles.take()
        try:
            status = function(handle)
            if status:
                raise self.model._library.error(handle, status)
        finally:
            handles.free.append(handle)

    def __call__(self):
        handles = self._handles or self.model._handles()
        handle = handles.take()
        try:
            status = self._run(handle, *self._arguments)
            if status:
                raise handles.library.error(handle, status)
        finally:
            handles.free.append(handle)
        return self.results


    def alone(self):
        """A function without arguments that runs the model on these arrays and returns nothing, on a handle of its own: for loops of
        one thread over models of a few microseconds, where looking for a free handle shows."""
        handles = self._handles or self.model._handles()
        handle, run, library = handles.take(), self._run, handles.library
        arguments = (handle, *self._arguments)

        def function():
            if status := run(*arguments):
                raise library.error(handle, status)

        function.keep = self, handles
        return function


class Model:
    """A compiled model. Call it with arrays; `bind` keeps them for many calls."""

    def __init__(self, library, compilation, files, arrays, *, threads, convert, watch=False, packed=None):
        self._library, self._compilation = library, compilation
        self._open = lambda **more: Handles(library, files, arrays, threads, convert, watch, packed, **more)
        self._current = self._open()
        self._results = {entry: collections.namedtuple("Results", [t.name for t in outs], rename=True)
                         for entry, (_, outs) in library.entries.items()}
        self._entry = next(iter(library.entries))
        self.name = library.name
        self.__name__ = library.name
        self.__signature__ = self.signature()

    @classmethod
    def of(cls, library, compilation, files, arrays, **options):
        """An instance of a class of its own, so that help() shows the model's inputs and results."""
        about = compilation.comment(library.name) if compilation else ""
        own = type(library.name, (cls,), {"__doc__": describe(library, about), "__module__": "heed"})
        model = own(library, compilation, files, arrays, **options)

        def call(self, *args, out=None, state=None, **inputs):
            return self.bind(*args, out=out, state=state, **inputs)()

        call.__doc__ = "Runs the model and returns its result, or several as a named tuple."
        call.__signature__ = model.signature(with_self=True)
        call.__name__, call.__qualname__ = "__call__", f"{library.name}.__call__"
        own.__call__ = call
        return model

    def _handles(self):
        if self._current is None:
            raise RunError(f"the model '{self.name}' is closed", "argument")
        if self._current.pid != os.getpid():  # a child of fork opens handles of its own
            self._current = self._open()
        return self._current

    def close(self):
        """Ends its threads and gives its memory back; the model cannot be called afterwards, and no call may be under way. A model
        that nobody refers to is closed by itself."""
        if self._current is not None:
            self._current.finalizer()
        self._current = None

    @property
    def entries(self):
        """The names of the entry points."""
        return list(self._library.entries)

    @property
    def inputs(self):
        """The inputs of the first entry, as Tensor."""
        return self._library.entries[self._entry][0]

    @property
    def outputs(self):
        """The results of the first entry, as Tensor."""
        return self._library.entries[self._entry][1]

    @property
    def threads(self):
        """Threads that a call computes with."""
        return self._library.c.heed_num_threads(self._handles().opened[0])

    @property
    def target(self):
        """The target whose code runs, "x86-64-v3"."""
        return self._library.c.heed_target(self._handles().opened[0]).decode()

    def signature(self, entry=None, with_self=False):
        """The inspect.Signature of an entry: arrays by position or name, scalars by name."""
        ins, outs = self._library.entries[entry or self._entry]
        parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)] if with_self else []
        kinds = inspect.Parameter
        for tensor in sorted(ins, key=lambda tensor: tensor.is_scalar):
            kind = kinds.KEYWORD_ONLY if tensor.is_scalar else kinds.POSITIONAL_OR_KEYWORD
            annotation = Annotation(text_of(tensor._replace(default=MISSING)))
            parameters.append(kinds(tensor.argument, kind, default=tensor.default, annotation=annotation))
        parameters.append(kinds("out", kinds.KEYWORD_ONLY, default=None))
        if self._library.states:
            parameters.append(kinds("state", kinds.KEYWORD_ONLY, default=None))
        returns = [text_of(tensor) for tensor in outs]
        return inspect.Signature(parameters, return_annotation=Annotation(", ".join(returns)))

    def __getitem__(self, entry):
        """An entry point by its name, as a function."""
        if entry not in self._library.entries:
            raise KeyError(f"no entry '{entry}', expected one of {', '.join(self._library.entries)}")

        def run(*args, out=None, state=None, **inputs):
            return self.bind(*args, out=out, entry=entry, state=state, **inputs)()

        run.__name__, run.__signature__ = entry, self.signature(entry)
        return run

    def __call__(self, *args, out=None, state=None, **inputs):
        return self.bind(*args, out=out, state=state, **inputs)()

    def state(self, **dims):
        """A State with these extents of the dims that states have and nothing else binds: all zero."""
        return State(self, dims)

    def generation(self, ids, **options):
        """A Generation: iterating over it gives the tokens of each step as they come. Arguments as generate()'s."""
        return Generation(self, ids, **options)

    def generate(self, ids, **options):
        """The tokens behind the prompts `ids`: an array [rows, longest], with -1 behind a row's end; of a prompt that is one list, an
        array [tokens]. See Generation for the options, docs/python.md for what they mean."""
        generation = self.generation(ids, **options)
        for _ in generation:
            pass
        return generation.tokens()

    def __repr__(self):
        return f"<heed model {self.name}{self.__signature__}>"

    def bind(self, *args, out=None, entry=None, state=None, **inputs):
        """A Call: the arrays are looked at once, and every call reads what they hold then."""
        return self._bind(args, inputs, out, entry, state=state)

    def _bind(self, args, inputs, out, entry, handles=None, state=None):
        entry = entry or self._entry
        ins, outs = self._library.entries[entry]
        arrays = [tensor for tensor in ins if not tensor.is_scalar]
        if len(args) > len(arrays):
            raise TypeError(f"{entry}() takes {len(arrays)} arrays by position, {len(args)} were given")
        given = {tensor.name: value for tensor, value in zip(arrays, args)}
        known = {name: tensor for tensor in ins for name in (tensor.name, tensor.argument)}
        for name, value in inputs.items():
            if name not in known:
                raise TypeError(f"{entry}() has no input '{name}', expected {', '.join(tensor.argument for tensor in ins)}")
            if known[name].name in given:
                raise TypeError(f"{entry}() got input '{name}' twice")
            given[known[name].name] = value
        missing = [tensor.argument for tensor in ins if tensor.name not in given and tensor.default is MISSING]
        if missing:
            raise TypeError(f"{entry}() needs {', '.join(missing)}")
        return Call(self, entry, given, by_name(out, outs, entry), handles, state)

    def explain(self, form="summary"):
        """What heedc says of the model: how each attention is computed, what it stores and costs, and why it is no better. `form`:
        "summary", "all" that the passes did, or "json". Compiles the model again, without its kernels."""
        if self._compilation is None:
            raise RunError("expected a model that was compiled here: a library does not hold its source", "argument")
        if form not in ("summary", "all", "json"):
            raise ValueError(f"expected 'summary', 'all' or 'json', found {form!r}")
        option = "--explain" if form == "summary" else f"--explain={form}"
        return self._compilation.run("--emit=llvm", "-o", os.devnull, option)[1]

    def profile(self, *args, runs=10, **inputs):
        """A Profile: what each kernel costs in `runs` runs on these arrays, after one that is not counted."""
        handles = self._open(profile=True)
        call, c = self._bind(args, inputs, None, None, handles), self._library.c
        call()
        handle = handles.opened[0]
        c.heed_profile_reset(handle)
        for _ in range(runs):
            call()
        kernels = (abi.KernelProfile * max(c.heed_profile(handle, None, 0), 1))()
        kernels[0].size = C.sizeof(abi.KernelProfile)
        count = c.heed_profile(handle, kernels, len(kernels))
        return Profile(runs, [Kernel(k.kernel.decode(), k.calls, k.seconds, k.flops, k.bytes, k.pairs) for k in kernels[:count]])

    def memory(self):
        """Memory: bytes that the model holds."""
        use = abi.MemoryUse()
        status = self._library.c.heed_memory(self._handles().opened[0], C.byref(use))
        if status:
            raise self._library.error(self._handles().opened[0], status)
        return Memory(use.weights, use.copies, use.buffers)


    def save_packed(self, path):
        """Writes the weights as they are packed for this code, for load(packed=...): a file whole, or none."""
        handle = self._handles().take()
        status = self._library.c.heed_save_packed(handle, os.fsencode(path))
        error = self._library.error(handle, status) if status else None
        self._handles().free.append(handle)
        if error:
            raise error


class Profile(list):
    """Kernels, as Kernel, in the order of the model; as text a table."""

    def __init__(self, runs, kernels):
        super().__init__(kernels)
        self.runs = runs

    def __repr__(self):
        lines = [f"{'kernel':40} {'calls':>7} {'ms a run':>10} {'GFLOP/s':>9} {'GB/s':>8}"]
        for kernel in sorted(self, key=lambda kernel: -kernel.seconds):
            def rate(number):
                return f"{number / kernel.seconds / 1e9:.1f}" if number and kernel.seconds else "-"
            lines.append(f"{kernel.name:40} {kernel.calls:7} {1e3 * kernel.seconds / max(self.runs, 1):10.4f} {rate(kernel.flops):>9} "
                         f"{rate(kernel.bytes):>8}")
        return "\n".join(lines)


def by_name(out, outs, entry):
    """What was given as `out`: an array where there is one result, a dict by name, or a sequence with None for new arrays."""
    if out is None:
        return {}
    names = [tensor.name for tensor in outs]
    if isinstance(out, dict):
        unknown = [name for name in out if name not in names]
        if unknown:
            raise TypeError(f"{entry}() has no result '{unknown[0]}', expected {', '.join(names)}")
        return out
    if isinstance(out, (tuple, list)):
        if len(out) != len(names):
            raise TypeError(f"{entry}() has {len(names)} results, {len(out)} arrays were given")
        return dict(zip(names, out))
    if len(names) != 1:
        raise TypeError(f"{entry}() has {len(names)} results: expected a dict or a sequence as out")
    return {names[0]: out}


def describe(library, about):
    """A model's documentation: the comment above it, its inputs and results."""
    lines = [about, ""] if about else []
    for entry, (ins, outs) in library.entries.items():
        if len(library.entries) > 1:
            lines.append(f"Entry {entry}")
        lines.append("inputs:")
        lines += [f"  {tensor.argument}: {text_of(tensor)}" for tensor in ins]
        lines.append("results:")
        lines += [f"  {tensor.name}: {text_of(tensor)}" for tensor in outs]
    return "\n".join(lines)


def in_memory(weights):
    """Views of a dict of arrays by name."""
    views = {}
    for name, value in weights.items():
        what = f"weight '{name}'"
        view = from_dlpack(value, what) if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__") else None
        if view is None:
            array = np.asarray(value)
            view = from_numpy(array)
            if view is None:
                view = from_numpy(np.array(array, array.dtype.newbyteorder("="), order="C"))
        if view is None:
            raise RunError(f"{what} is {np.asarray(value).dtype}, which no parameter can be", "type")
        views[name] = view
    return views


def load(path, prefix=None, *, weights=None, packed=None, threads=0, convert=False, watch=False):
    """Opens a library that `heedc --emit=shared` made; `prefix` as it was given to heedc is not needed.

    packed  a file of Model.save_packed(), instead of weights: mapped, with nothing left to compute
    weights, threads, convert and watch as for compile().
    """
    from heed.compiler import paths_of
    arrays = in_memory(weights) if isinstance(weights, dict) else None
    return Model.of(Library(path, prefix), None, paths_of(weights) if arrays is None else [], arrays, threads=threads, convert=convert,
                    watch=watch, packed=packed)
