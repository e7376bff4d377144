"""Writes .safetensors files with NumPy alone, well-formed by default and malformed on demand."""
import json
import struct

import numpy as np

DTYPES = {"f4": "F32", "f2": "F16", "f8": "F64", "i1": "I8", "i2": "I16", "i4": "I32", "i8": "I64", "u1": "U8",
          "b1": "BOOL"}


def header_and_data(tensors, dtypes={}):
    """The header as a dict and the data; `dtypes` overrides the dtype of a tensor (BF16 for uint16)."""
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": dtypes.get(name) or DTYPES[array.dtype.str[1:]], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    return header, data


def pack(header, data):
    """A file's bytes; header is a dict, or text or bytes taken as they are."""
    if isinstance(header, dict):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + data


def write(path, tensors, dtypes={}, metadata=None):
    header, data = header_and_data(tensors, dtypes)
    if metadata is not None:
        header["__metadata__"] = metadata
    with open(path, "wb") as file:
        file.write(pack(header, data))
