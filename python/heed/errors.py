"""What can go wrong when a model is opened or run."""


class Error(Exception):
    """Any error of this package."""


class RunError(Error):
    """A model could not be opened or run; `status` is the word of heed.h ("memory", "weights")."""

    def __init__(self, message, status=""):
        super().__init__(message)
        self.status = status


class ShapeError(RunError, ValueError):
    """An array's rank or extents do not fit."""


class ElementTypeError(RunError, TypeError):
    """An array's element type does not fit."""


class RangeError(RunError, IndexError):
    """An integer in the data points outside what it indexes."""


BY_STATUS = {"shape": ShapeError, "type": ElementTypeError, "range": RangeError}
