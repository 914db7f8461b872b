"""First values of parameters: the initializers of DyNet, with its formulas.

Every initializer gives a float32 array of the parameter's shape from the package's one random generator, so that a seed
decides all. "Dims" below are DyNet's: those of the shape, but for a lookup table the row's dims first and the number of
rows last. Who may import: dynet_lite/params.py and the public face.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np

from dynet_lite import _core, config
from dynet_lite.needs import number

__all__ = [
    "ConstInitializer",
    "FanInInitializer",
    "FromFileInitializer",
    "GlorotInitializer",
    "HeInitializer",
    "IdentityInitializer",
    "NormalInitializer",
    "NumpyInitializer",
    "PyInitializer",
    "SaxeInitializer",
    "UniformInitializer",
]

Shape = tuple[int, ...]
Array = np.ndarray[Any, np.dtype[np.float32]]


WIDEST = 1e36  # of a distribution: so far from it that a float32 is finite whatever is drawn


class _Own(threading.local):
    """The generator of a thread. It is kept, as NumPy takes a tenth of a millisecond to make one."""

    generator: np.random.Generator | None = None

    def begin(self) -> np.random.Generator:
        """Makes it: not earlier, as an import does not load numpy.random."""
        self.bits = np.random.SFC64(0)
        self.state = self.bits.state
        self.words = self.state["state"]["state"]
        self.generator = np.random.Generator(self.bits)
        return self.generator


_own = _Own()


def generator() -> np.random.Generator:
    """A NumPy generator that continues the package's random numbers, as numpy.random.SFC64(next_seed()) would.

    Good until this thread asks again.
    """
    config.start()
    found = _own.generator or _own.begin()
    _core.next_sfc64(_own.words)
    _own.bits.state = _own.state
    return found


def _bounded(value: Any, what: str, least: float = -WIDEST) -> float:
    """A number of which no weight becomes NaN or infinite: a training would meet that much later."""
    found = number(value)
    if not least <= found <= WIDEST:
        raise ValueError(f"{what} must be from {least:g} to {WIDEST:g}; got {value}")
    return found


def dims_of(shape: Shape, is_lookup: bool) -> Shape:
    """DyNet's dims of a parameter or of a table (V, d1, ...): the number of rows comes last."""
    return (*shape[1:], shape[0]) if is_lookup else shape


class PyInitializer:
    """Base of all initializers; not for direct use. A subclass writes values(shape, is_lookup)."""

    def values(self, shape: Shape, is_lookup: bool = False) -> Array:
        """Numbers of this shape; a table's shape is (V, d1, ...)."""
        raise TypeError("[PyInitializer] is a base class; use NormalInitializer, UniformInitializer, ...")


class NormalInitializer(PyInitializer):
    """Normal with this mean and this *variance* (not standard deviation)."""

    def __init__(self, mean: float = 0, var: float = 1) -> None:
        self.mean = _bounded(mean, "[NormalInitializer] mean")
        self.var = _bounded(var, "[NormalInitializer] var", 0)

    def values(self, shape: Shape, is_lookup: bool = False) -> Array:
        out = generator().standard_normal(shape, dtype=np.float32)
        out *= np.float32(np.sqrt(self.var))
        out += np.float32(self.mean)
        return out


class UniformInitializer(PyInitializer):
    """Uniform between -scale and scale."""

    def __init__(self, scale: float) -> None:
        self.scale = _bounded(scale, "[UniformInitializer] scale", 0)

    def values(self, shape: Shape, is_lookup: bool = False) -> Array:
        out = generator().random(shape, dtype=np.float32)
        out *= np.float32(2 * self.scale)
        out -= np.float32(self.scale)
        return out


class ConstInitializer(PyInitializer):
    """One number everywhere; infinity and NaN, too, where a program asks for them."""

    def __init__(self, c: float) -> None:
        self.c = number(c)
        _core.numbers(self.c, "ConstInitializer")  # ValueError if that is too large for a float32

    def values(self, shape: Shape, is_lookup: bool = False) -> Array:
        return np.full(shape, _core.numbers(self.c, "ConstInitializer"))


def _square(shape: Shape, what: str) -> int:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"[{what}] a square matrix is needed; got shape {shape}")
    return shape[0]


class IdentityInitializer(PyInitializer):
    """The identity matrix. ValueError unless the shape is (n, n)."""

    def values(self, shape: Shape, is_lookup: bool = False) -> Array:
        return np.eye(_square(shape, "IdentityInitializer"), dtype=np.float32)


class SaxeInitializer(PyInitializer):
    """A random orthogonal matrix times scale (Saxe, McClelland, Ganguli: Exact solutions ..., 2014); shape (n, n)."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = _bounded(scale, "[SaxeInitializer] scale")

    def values(self, shape: Shape, is_lookup: bool = False) -> Array:
        n = _square(shape, "SaxeInitializer")
        q, r = np.linalg.qr(generator().standard_normal((n, n)))
        q *= np.sign(np.diag(r)) * self.scale  # without the signs the distribution is not uniform
        return q.astype(np.float32)


class GlorotInitializer(PyInitializer):
    """Uniform between -s and s, s = gain * sqrt(3 nd) / sqrt(sum of the nd dims) (Glorot and Bengio 2010); the default.

    A matrix {m,n}: s = sqrt(6 / (m + n)); a vector {n}: sqrt(3 / n). Four dims are a convolution {h,w,in,out}:
    s = sqrt(6 / (h w (in + out))). The number of rows of a table is one of its dims, so that the range shrinks with the
    vocabulary; with is_lookup=True the last dim is left out.
    """

    def __init__(self, is_lookup: bool = False, gain: float = 1.0) -> None:
        self.is_lookup, self.gain = bool(is_lookup), _bounded(gain, "[GlorotInitializer] gain")

    def scale(self, dims: Shape) -> float:
        """s, from DyNet's dims."""
        if self.is_lookup:
            dims = dims[:-1]
        if len(dims) == 4:
            return self.gain * float(np.sqrt(6 / max(1, dims[0] * dims[1] * (dims[2] + dims[3]))))
        return self.gain * float(np.sqrt(3 * len(dims) / max(1, sum(dims))))

    def values(self, shape: Shape, is_lookup: bool = False) -> Array:
        return UniformInitializer(abs(self.scale(dims_of(shape, is_lookup)))).values(shape, is_lookup)


class HeInitializer(PyInitializer):
    """Normal with variance 1 / (2 d), d the last number of the shape: what DyNet's 'he' does (usual is 2 / fan-in)."""

    def values(self, shape: Shape, is_lookup: bool = False) -> Array:
        return NormalInitializer(0, 1 / (2 * max(1, shape[-1]))).values(shape, is_lookup)


class FanInInitializer(PyInitializer):
    """Uniform between -s and s, s = gain * sqrt(3 / n), n how many numbers an output is made of (LeCun et al. 1998).

    A matrix {m,n}: n is its number of columns, so that W x is about as large as a number of x whatever m is. A table
    (V, d): n is d, so that a row's norm is about gain whatever V is. Unlike GlorotInitializer's, the range does not
    shrink with the number of classes or words: use it for output layers over a vocabulary and for tables of words. A
    vector {n}: n. Four dims, the convolution {h,w,in,out}: h w in. Not in DyNet.
    """

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = _bounded(gain, "[FanInInitializer] gain")

    def scale(self, shape: Shape, is_lookup: bool = False) -> float:
        """s, from the shape; a table's is (V, d1, ...)."""
        if is_lookup:
            n = int(np.prod(shape[1:]))
        elif len(shape) == 4:
            n = int(np.prod(shape[:3]))
        else:
            n = int(np.prod(shape[1:])) if len(shape) > 1 else shape[0]
        return self.gain * float(np.sqrt(3 / max(1, n)))

    def values(self, shape: Shape, is_lookup: bool = False) -> Array:
        return UniformInitializer(abs(self.scale(shape, is_lookup))).values(shape, is_lookup)


class FromFileInitializer(PyInitializer):
    """Numbers from a text file, column-major, with blanks or newlines between them; as many as are needed."""

    def __init__(self, fname: str | bytes | os.PathLike[str]) -> None:
        self.path = Path(os.fsdecode(fname))

    def values(self, shape: Shape, is_lookup: bool = False) -> Array:
        words = self.path.read_text().split()
        dims = dims_of(shape, is_lookup)
        if len(words) != int(np.prod(dims)):
            raise ValueError(f"[FromFileInitializer] {self.path}: {int(np.prod(dims))} numbers are needed for {dims}; "
                             f"the file has {len(words)}")  # fmt: skip
        try:
            numbers = [float(word) for word in words]
        except ValueError as e:
            raise ValueError(f"[FromFileInitializer] {self.path}: {e}") from None
        out = _core.numbers(numbers, "FromFileInitializer").reshape(dims, order="F")
        return np.moveaxis(out, -1, 0) if is_lookup else out


class NumpyInitializer(PyInitializer):
    """A copy of an array; its shape must be the parameter's (for a table: one row per word)."""

    def __init__(self, array: Any) -> None:
        self.array = np.array(_core.numbers(array, "NumpyInitializer"))

    def values(self, shape: Shape, is_lookup: bool = False) -> Array:
        given = self.array.shape
        if given != shape and given + (1,) != shape and given != shape + (1,):
            raise ValueError(f"[NumpyInitializer] the array has shape {given}; the parameter {shape}")
        return self.array.reshape(shape)


NAMES = "'uniform', 'normal', 'identity', 'glorot', 'he', 'saxe', 'fan-in'"


def make(init: Any, scale: float = 1.0, mean: float = 0.0, std: float = 1.0) -> PyInitializer:
    """An initializer from what add_parameters(init=) takes: a number, a name, an array, an initializer, None."""
    if init is None:
        return GlorotInitializer()
    if isinstance(init, PyInitializer):
        return init
    if isinstance(init, str):
        named: dict[str, PyInitializer] = {
            "uniform": UniformInitializer(abs(scale)),
            "normal": NormalInitializer(mean, std * std),
            "identity": IdentityInitializer(),
            "glorot": GlorotInitializer(),
            "he": HeInitializer(),
            "saxe": SaxeInitializer(scale),
            "fan-in": FanInInitializer(scale),
        }
        if init in named:
            return named[init]
    elif isinstance(init, (int, float, np.number)):
        return ConstInitializer(number(init))
    elif isinstance(init, (np.ndarray, list, tuple)):
        return NumpyInitializer(init)
    raise ValueError(
        f"[add_parameters] init must be a number, an array, an initializer or one of {NAMES}; got {init!r}"
    )
