"""States: what lives from call to call of a model."""
import ctypes as C
import os
import weakref

import numpy as np

from heed import abi
from heed.arrays import new_result, result_view, view_of
from heed.errors import BY_STATUS, ElementTypeError, RunError


class CallOptions(abi.Sized):
    """heed_call."""
    _fields_ = [("size", C.c_size_t), ("state", C.c_void_p), ("stream", C.c_void_p), ("cancel", C.c_void_p), ("deadline", C.c_int64),
                ("keepFloatMode", C.c_int32)]


class State:
    """A state of a model, at first as the model starts it (zeros, where it does not say); model.state() opens one. One thread at a time uses it."""

    def __init__(self, model, dims):
        self._handles, self._library = model._handles(), model._library
        c, handle = self._library.c, self._handles.take()
        self.handle = C.c_void_p()
        try:
            given = (abi.Dim * max(len(dims), 1))(*[abi.Dim(name.encode(), int(extent)) for name, extent in dims.items()])
            status = c.heed_state_open(handle, given, len(dims), C.byref(self.handle))
            if status:
                raise self._library.error(handle, status)
        finally:
            self._handles.free.append(handle)
        self.call = CallOptions(state=self.handle)
        self._finalizer = weakref.finalize(self, c.heed_state_close, self.handle)

    def _check(self, status):
        if status:
            word = self._library.c.heed_status_name(status).decode()
            text = self._library.c.heed_state_last_error(self.handle).decode(errors="replace") or "the state is in use"
            raise BY_STATUS.get(word, RunError)(text, word)

    @property
    def names(self):
        """The names of its tensors."""
        return [tensor.name for tensor in self._library.states]

    def __getitem__(self, name):
        """A copy of the tensor of that name."""
        buffer = abi.Buffer()
        self._check(self._library.c.heed_state_get(self.handle, name.encode(), C.byref(buffer)))
        shape = tuple(buffer.shape[:buffer.rank])
        array = new_result(buffer.type, shape, f"state '{name}'")
        view = result_view(array, buffer.type, shape, f"state '{name}'")
        view.fill(buffer)
        self._check(self._library.c.heed_state_get(self.handle, name.encode(), C.byref(buffer)))
        return array

    def __setitem__(self, name, value):
        kinds = {tensor.name: tensor.type for tensor in self._library.states}
        if name not in kinds:
            raise KeyError(f"no state '{name}', expected one of {', '.join(kinds)}")
        buffer = abi.Buffer()
        view = view_of(value, kinds[name], f"state '{name}'")
        view.fill(buffer)
        self._check(self._library.c.heed_state_set(self.handle, name.encode(), C.byref(buffer)))

    def reset(self):
        """All is as it was at first."""
        self._check(self._library.c.heed_state_reset(self.handle))

    def copy_from(self, other):
        """Becomes what `other`, a state of the same model and dims, is."""
        self._check(self._library.c.heed_state_copy(other.handle, self.handle))

    def trim(self, name, values):
        """Takes a count of positions back, as `len` after a draft whose tokens are rejected: to `values`, one each or one for all, none greater than what it has. Raises
        RunError where states are recurrent or rings, which do not come back with it: keep a copy there (copy_from)."""
        array = np.ascontiguousarray(values)
        if array.dtype.kind not in "iu":
            raise ElementTypeError(f"state '{name}': expected integers, found {array.dtype}", "type")
        buffer = abi.Buffer()
        view = view_of(array.astype(np.int64).reshape(np.shape(values)), abi.I64, f"state '{name}'")
        view.fill(buffer)
        self._check(self._library.c.heed_state_trim(self.handle, name.encode(), C.byref(buffer)))

    def permute(self, dim, positions):
        """Along the axes that `dim` names, position k becomes what positions[k] was."""
        array = np.ascontiguousarray(positions, np.int64)
        self._check(self._library.c.heed_state_permute(self.handle, dim.encode(), array.ctypes.data_as(C.POINTER(C.c_int64)), array.size))

    def save(self, path):
        """Writes it to a .safetensors file, which appears whole or not at all."""
        self._check(self._library.c.heed_state_save(self.handle, os.fsencode(path)))

    def load(self, path):
        """Becomes what save() wrote; what does not fit or is damaged is an error and changes nothing."""
        self._check(self._library.c.heed_state_load(self.handle, os.fsencode(path)))

    @property
    def nbytes(self):
        """Bytes that it holds."""
        return self._library.c.heed_state_bytes(self.handle)

    def close(self):
        """Gives its memory back; no call may be under way."""
        self._finalizer()
