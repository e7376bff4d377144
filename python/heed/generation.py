"""Generation: an entry that takes `ids` and returns `logits` makes tokens one after another."""
import ctypes as C
import weakref

import numpy as np

from heed import abi
from heed.arrays import view_of
from heed.errors import BY_STATUS, RunError


EARLY = [False, True, "never"]


def as_ids(ids, what):
    """One id, several or None, as an array for the runtime."""
    array = np.asarray([] if ids is None else [ids] if np.ndim(ids) == 0 else ids)
    if array.ndim != 1 or array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{what}: expected ids, found {ids!r}")
    if array.size and not (np.iinfo(np.int32).min <= array.min() and array.max() <= np.iinfo(np.int32).max):
        raise ValueError(f"{what}: expected ids below 2^31, found {ids!r}")
    return np.ascontiguousarray(array, np.int32)


def as_words(words):
    """Lists of ids as one array, -1 behind each."""
    lists = [as_ids(word, "bad_words_ids") for word in words or ()]
    if any(word.size == 0 or word.min() < 0 for word in lists):
        raise ValueError(f"bad_words_ids: expected lists of ids, found {words!r}")
    return np.concatenate([np.append(word, np.int32(-1)) for word in lists] or [np.zeros(0, np.int32)]).astype(np.int32)


def as_rows(ids, count):
    """Prompts as an array [rows, longest], their lengths (None: all are equally long), and whether there is one without an axis of rows."""
    if isinstance(ids, (list, tuple)) and ids and all(isinstance(row, (list, tuple, np.ndarray)) for row in ids):
        lengths = [len(row) for row in ids]
        if len(set(lengths)) > 1:
            if count is not None:
                raise TypeError("expected count with an array of ids alone: lists have their lengths")
            rows = np.zeros((len(ids), max(lengths)), np.int64)
            for row, one in zip(rows, map(np.asarray, ids)):
                if one.size and (one.ndim != 1 or one.dtype.kind not in "iu"):
                    raise TypeError(f"ids: expected integers, found {one.dtype} in {one.ndim} dimensions")
                row[:len(one)] = one
            return rows, np.array(lengths, np.int32), False
    array = np.asarray(ids)
    array = array if array.size else array.astype(np.int32)
    return (array[None], count, True) if array.ndim == 1 else (array, count, False)


def free_dims(model):
    """Dims of the states that no parameter has, in the order of the states."""
    c, desc, of_params = model._library.c, model._library.desc, set()
    for k in range(c.heed_num_params(desc)):
        param = c.heed_param(desc, k).contents
        of_params.update(param.extents[axis].decode() for axis in range(param.rank))
    names = [name for tensor in model._library.states for name in tensor.extents if name.isidentifier()]
    return [name for name in dict.fromkeys(names) if name not in of_params]


class Generation:
    """Tokens of a model, step by step.

    for tokens in model.generation([3, 14, 15], max_new=20, stop=[2]):
        print(tokens[0])                      # of the first row; -1 where a row has stopped, None in beam search

    ids: prompts, an array [rows, N] of integers, or lists; of different lengths (or with `count`) where the entry has `count`. max_new: tokens at most.
    temperature (0: the largest logit), top_k, top_p, min_p, repetition_penalty, seed, stop (ids): how a token is chosen. no_repeat_ngram_size, bad_words_ids,
    min_length, min_new_tokens, forced_bos_token_id, forced_eos_token_id, suppress_tokens, begin_suppress_tokens: what may not be, or must, as transformers has it.
    rows: the rows' ids, on which draws depend (0, 1, ..). beams, length_penalty, early_stopping (True, False, "never"): beam search. state: what to begin with and
    what changes; else a new one with room for all tokens. past: what the state has seen. entry: which one. Other names are the entry's other inputs.
    """

    def __init__(self, model, ids, *, max_new, temperature=0.0, top_k=0, top_p=1.0, min_p=0.0, repetition_penalty=1.0, seed=0, stop=(), rows=None,
                 beams=1, length_penalty=1.0, early_stopping=False, no_repeat_ngram_size=0, bad_words_ids=(), min_length=0, min_new_tokens=None,
                 forced_bos_token_id=(), forced_eos_token_id=(), suppress_tokens=(), begin_suppress_tokens=(), count=None, past=None, state=None, entry=None, **inputs):
        library = model._library
        if entry is None and not library.generating:
            raise RunError("no entry takes ids: i32[B, N] and returns logits: f32[B, V]", "argument")
        self.entry = library.generating[0] if entry is None else entry
        if self.entry not in library.entries:
            raise KeyError(f"no entry '{self.entry}', expected one of {', '.join(library.entries)}")
        beams = 1 if beams == 0 else beams
        self.max_new, self.beams, self._model, self._library, self._keep = max_new, beams, model, library, []
        prompts, count, self._single = as_rows(ids, count)
        given = {"ids": prompts, **({} if count is None else {"count": count}), **inputs}
        tensors = self._fill_inputs(given)
        self.rows = prompts.shape[0]
        self.state = state if state is not None or not library.states else self._new_state(model, given, tensors, prompts.shape[1])
        sampling = abi.Sampling(temperature=temperature, topK=top_k, topP=top_p or 1e-300, minP=min_p, repetitionPenalty=repetition_penalty, seed=seed,
                                noRepeatNgram=no_repeat_ngram_size or 0, minLength=min_length or 0 if min_new_tokens is None else 0, minNew=min_new_tokens or 0)
        for name, numbers in {"stop": as_ids(stop, "stop"), "badWords": as_words(bad_words_ids), "forcedBos": as_ids(forced_bos_token_id, "forced_bos_token_id"),
                              "forcedEos": as_ids(forced_eos_token_id, "forced_eos_token_id"), "suppress": as_ids(suppress_tokens, "suppress_tokens"),
                              "beginSuppress": as_ids(begin_suppress_tokens, "begin_suppress_tokens")}.items():
            self._keep.append(numbers)
            setattr(sampling, name, numbers.ctypes.data_as(C.POINTER(C.c_int32)))
            setattr(sampling, "num" + name[0].upper() + name[1:], numbers.size)
        if early_stopping not in EARLY:
            raise ValueError(f"early_stopping: expected True, False or 'never', found {early_stopping!r}")
        options = abi.GenerationOptions(entry=self.entry.encode(), state=self.state.handle if self.state else None, maxNew=max_new,
                                        sampling=C.pointer(sampling), beams=beams, lengthPenalty=length_penalty, earlyStopping=EARLY.index(early_stopping))
        if rows is not None:
            row_ids = np.repeat(np.ascontiguousarray(rows, np.uint64), beams)
            if row_ids.shape != (self.rows * beams,):
                raise ValueError(f"expected {self.rows} ids of rows, found {len(row_ids) // beams}")
            options.rowIds = row_ids.ctypes.data_as(C.POINTER(C.c_uint64))
        if past is not None:
            options.past = C.pointer(self._buffer(np.repeat(np.atleast_2d(np.asarray(past)), beams, 0), abi.I32, "past"))
        self._open(model._handles(), options, len(tensors))

    def _buffer(self, value, code, what):
        view, buffer = view_of(value, code, what), abi.Buffer()
        view.fill(buffer)
        self._keep.append((view, buffer))
        return buffer

    def _fill_inputs(self, given):
        """The entry's inputs, a row for each beam."""
        tensors = self._library.entries[self.entry][0]
        names = {tensor.name for tensor in tensors}
        unknown = [name for name in given if name not in names]
        if unknown:
            raise TypeError(f"{self.entry}() has no input '{unknown[0]}', expected {', '.join(tensor.argument for tensor in tensors)}")
        missing = [tensor.name for tensor in tensors if tensor.name not in given and tensor.name != "count" and not tensor.is_scalar]
        if missing:
            raise TypeError(f"{self.entry}() needs {', '.join(missing)}")
        batch = next((tensor.extents[0] for tensor in tensors if tensor.name == "ids"), None)
        self._inputs = (abi.Buffer * max(len(tensors), 1))()
        for k, tensor in enumerate(tensors):
            if tensor.name not in given:
                self._inputs[k] = abi.Buffer(type=tensor.type, deviceType=abi.DEVICE_CPU)
                continue
            value = given[tensor.name]
            if tensor.name in ("ids", "count"):
                value = np.ascontiguousarray(value)
            if self.beams > 1 and tensor.extents and tensor.extents[0] == batch:
                value = np.repeat(np.asarray(value), self.beams, 0)
            self._inputs[k] = self._buffer(value, tensor.type, f"input '{tensor.name}'")
        return tensors

    def _new_state(self, model, given, tensors, longest):
        """One with room for the prompts and all new tokens: that is the extent of the one dim that is left."""
        known = {}
        for tensor in tensors:
            if tensor.name in given:
                known.update((name, extent) for name, extent in zip(tensor.extents, np.shape(given[tensor.name])))
        batch = next(tensor.extents[0] for tensor in tensors if tensor.name == "ids")
        known[batch] = known[batch] * self.beams
        free = free_dims(model)
        left = [name for name in free if name not in known]
        dims = {name: known[name] for name in free if name in known}
        if len(left) == 1:
            dims[left[0]] = longest + self.max_new
        return model.state(**dims)

    def _open(self, handles, options, count):
        c, self._handle, self._opened, handle = self._library.c, C.c_void_p(), handles, handles.take()
        status = c.heed_generation_open(handle, C.byref(options), self._inputs, count, C.byref(self._handle))
        self._finalizer = weakref.finalize(self, Generation._close, c, self._handle, handles, handle, self._keep)
        self._running, self._steps = C.c_int64(1), 0
        self._check(status)

    @staticmethod
    def _close(c, generation, handles, handle, _):
        c.heed_generation_close(generation)
        handles.free.append(handle)

    def _check(self, status):
        if status:
            word = self._library.c.heed_status_name(status).decode()
            text = self._library.c.heed_generation_last_error(self._handle).decode(errors="replace") or "no memory"
            raise BY_STATUS.get(word, RunError)(text, word)

    def __iter__(self):
        return self

    def __next__(self):
        """One step: a token for each row."""
        if not self._running.value:
            raise StopIteration
        if self._model._handles() is not self._opened:
            raise RunError("the generation belongs to the process that this one is a fork of", "fork")
        tokens = np.full(self.rows, -1, np.int32)
        target = tokens.ctypes.data_as(C.POINTER(C.c_int32)) if self.beams == 1 else None
        self._check(self._library.c.heed_generation_step(self._handle, target, C.byref(self._running)))
        self._steps += 1
        return tokens if self.beams == 1 else None

    def _made(self):
        tokens, scores = np.empty((self.rows, self._steps), np.int32), np.zeros(self.rows)
        self._check(self._library.c.heed_generation_tokens(self._handle, self._steps, tokens.ctypes.data_as(C.POINTER(C.c_int32)),
                                                           scores.ctypes.data_as(C.POINTER(C.c_double))))
        return tokens, scores

    def tokens(self):
        """What was made so far: an array [rows, longest], with -1 behind a row's end; of a prompt that is one list, an array [tokens]."""
        tokens = self._made()[0]
        tokens = tokens[:, :(tokens >= 0).sum(1).max(initial=0)]
        return tokens[0] if self._single else tokens

    def scores(self):
        """In beam search, the score of each row's best hypothesis: log probability / length^length_penalty."""
        return self._made()[1]

    def close(self):
        """Gives its memory back."""
        self._finalizer()
