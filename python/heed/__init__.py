"""Heed from Python: attention models as mathematics, compiled to native code.

    import heed
    m = heed.compile("models/core/causal-attention.heed")
    o = m(q=q, k=k, v=v)

Arrays are NumPy's, or anything with DLPack on the CPU. See docs/python.md.
"""
from heed.compiler import CompileError, CompilerNotFound, compile, find_heedc
from heed.errors import ElementTypeError, Error, RangeError, RunError, ShapeError
from heed.generation import Generation
from heed.model import Call, Model, load

__all__ = ["compile", "load", "find_heedc", "Model", "Call", "Generation", "Error", "CompileError", "CompilerNotFound", "RunError", "ShapeError",
           "ElementTypeError", "RangeError"]
__version__ = "0.1.0"
