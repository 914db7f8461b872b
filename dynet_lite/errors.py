"""The exceptions of dynet_lite.

All of them are subclasses of the built-in exception that DyNet programs already catch.
"""

__all__ = [
    "CellError",
    "DataError",
    "EmptyListError",
    "InputTypeError",
    "InternalError",
    "MissingFileError",
    "ModelFileError",
    "NotFiniteError",
    "OutOfMemoryError",
    "OutOfRangeError",
    "StaleExpressionError",
]


class StaleExpressionError(ValueError, RuntimeError):
    """An expression of a graph that is gone was used.

    Example: ``x = dy.inputVector([1]); dy.renew_cg(); dy.tanh(x)``.
    Cure: build the expression again after ``renew_cg()``, or keep the number (``x.value()``) instead of the expression.
    """


class NotFiniteError(RuntimeError):
    """A validity check found NaN or infinity in a value.

    ``node`` is the number of the node in its graph; the message ends with the line that made it.
    """

    def __init__(self, message: str, node: int = -1) -> None:
        super().__init__(message)
        self.node = node


class CellError(TypeError, RuntimeError):
    """A cell does what cannot be recorded and done again: asks for a number, or uses an expression that is no argument.

    The message says what to write instead. See ``dynet_lite.cell``.
    """


class OutOfMemoryError(MemoryError, RuntimeError):
    """Memory for a graph could not be had; the message says how much was wanted."""


class OutOfRangeError(IndexError, ValueError):
    """A row, label or position that there is not. DyNet's programs catch ValueError, Python's habit is IndexError."""


class EmptyListError(ValueError, AssertionError):
    """A list of expressions that is empty, where at least one is needed. DyNet's programs catch AssertionError."""


class InputTypeError(TypeError, ValueError):
    """Something else than numbers in the wanted shape was given as an input. DyNet's programs catch TypeError."""


class InternalError(RuntimeError):
    """A bug of dynet_lite, not of your program. Please report it with the message."""


class DataError(ValueError):
    """A data file is malformed; the message names the file, the line and what was expected."""


class ModelFileError(ValueError, RuntimeError):
    """A file of parameters is damaged, or does not fit the model; the message names the file and the entry."""


class MissingFileError(FileNotFoundError, RuntimeError):
    """A file of parameters is not there."""
