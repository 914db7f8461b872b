"""The exceptions of dynet_lite.

All of them are subclasses of the built-in exception that DyNet programs already catch. Messages begin with what the user
called, in brackets.
"""

__all__ = [
    "CellError",
    "CompileError",
    "DataError",
    "DeviceError",
    "EmptyListError",
    "InputTypeError",
    "InternalError",
    "MissingFileError",
    "ModelFileError",
    "NotFiniteError",
    "OutOfMemoryError",
    "OutOfRangeError",
    "SettingError",
    "StaleExpressionError",
]


class StaleExpressionError(ValueError, RuntimeError):
    """An expression of an old graph was used.

    Example: ``x = dy.inputVector([1]); dy.renew_cg(); dy.tanh(x)``.
    Remedy: build the expression again after ``renew_cg()``, or keep the number (``x.value()``) instead of the expression.
    """


class NotFiniteError(RuntimeError):
    """A validity check found NaN or infinity in a value.

    ``node`` is the number of the node in its graph; the message ends with the line that made it.
    """

    def __init__(self, message: str, node: int = -1) -> None:
        super().__init__(message)
        self.node = node


class CellError(TypeError, RuntimeError):
    """A cell does something that cannot be recorded: it asks for a number, or uses an expression that is not an argument.

    The message says what to write instead. See ``dynet_lite.cell``.
    """


class CompileError(CellError):
    """A compiled function does what cannot be recorded and done again: asks for a number, or uses an expression from outside.

    The message says what to write instead. See ``dynet_lite.compile``.
    """


class OutOfMemoryError(MemoryError, RuntimeError):
    """Memory for a graph could not be allocated; the message says how much was needed."""


class OutOfRangeError(IndexError, ValueError):
    """A row, label or position is out of range. It is an IndexError, and a ValueError for programs written for DyNet."""


class EmptyListError(ValueError, AssertionError):
    """A list of expressions is empty where at least one is needed. Also an AssertionError, which DyNet raises."""


class InputTypeError(TypeError, ValueError):
    """An input is not made of numbers, or has the wrong shape. Also a TypeError, which DyNet raises."""


class InternalError(RuntimeError):
    """A bug of dynet_lite, not of your program. Please report it with the message."""


class DeviceError(RuntimeError):
    """A device cannot be used: there is no driver, no such GPU, or no code for it. ``dy.devices()`` tells of each."""


class DataError(ValueError):
    """A data file is malformed; the message names the file, the line and what was expected."""


class SettingError(DataError):
    """A variable such as ``DYNET_LITE_THREADS``, or a flag such as ``--dynet-seed``, has a value that it cannot have."""


class ModelFileError(ValueError, RuntimeError):
    """A file of parameters is damaged, or does not fit the model; the message names the file and the entry."""


class MissingFileError(FileNotFoundError, RuntimeError):
    """A file of parameters does not exist."""
