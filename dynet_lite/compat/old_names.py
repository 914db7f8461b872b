"""Names and keywords of DyNet 1 and its predecessor that programs still use.

What can work works, with one warning for each name in a process; what cannot says what to write instead. Here are the
functions of the module, the keywords of trainers, a class for saving, and the boxes of numbers that DyNet exports.
"""

from __future__ import annotations

import copyreg
import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from dynet_lite import _core, ops
from dynet_lite.told import told

__all__ = [
    "FloatValue",
    "FloatVectorValue",
    "Saveable",
    "UnsignedValue",
    "UnsignedVectorValue",
    "inputMatrix",
    "inputTensorTranspose",
    "matInput",
]

_warned: set[str] = set()


def warn_once(name: str, instead: str, stacklevel: int = 3) -> None:
    """A warning at the line of the program, the first time that this name is used."""
    if name not in _warned:
        _warned.add(name)
        warnings.warn(f"{name} is an old name of DyNet's; write {instead}", stacklevel=stacklevel)


# ---- functions ---------------------------------------------------------------------------------------------------------

# name: (what it does, what to write instead)
WORKING: dict[str, tuple[Callable[..., Any], str]] = {
    "cwise_multiply": (_core.cmult, "cmult(x, y)"),
    "sum_dims": (ops.sum_dim, "sum_dim(x, dims)"),
    "sigmoid": (_core.logistic, "logistic(x)"),
}
GONE = {
    "conv1d_narrow": "write conv2d(x, f, stride), or filter1d_narrow(x, f)",
    "conv1d_wide": "write conv2d(x, f, stride, is_valid=False)",
    "load_matrix": "write numpy.loadtxt(file) and parameters_from_numpy(array)",
    "RNNBuilder": "write the builder you need: SimpleRNNBuilder, VanillaLSTMBuilder, GRUBuilder, ...",
    "Saver": "write save(basename, objects)",
    "Loader": "write load(basename, collection)",
}


def _working(name: str) -> Callable[..., Any]:
    function, instead = WORKING[name]

    def call(*args: Any, **kwargs: Any) -> Any:
        warn_once(name, instead)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Old name: write {instead}."
    return call


def _gone(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise AttributeError(f"[{name}] it is gone since DyNet 2; {GONE[name]}")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Gone since DyNet 2, raises AttributeError: {GONE[name]}."
    return call


def functions() -> dict[str, Callable[..., Any]]:
    """The functions of DyNet 1 by name, for the module's own dict.

    They stand there, although few need them, because a module with a __getattr__ finds all its names slowly (a CPython
    that specialises attribute access passes such modules over), and a program reads dozens per sentence.
    """
    made = {name: _working(name) for name in WORKING} | {name: _gone(name) for name in GONE}
    return {name: told(function) for name, function in made.items()}


def _removed(name: str, instead: str) -> NoReturn:
    raise DeprecationWarning(f"[{name}] is gone since DyNet 2; write {instead}")


def matInput(d1: Any = None, d2: Any = None) -> NoReturn:
    """Gone since DyNet 2, raises DeprecationWarning: write inputTensor(array)."""
    _removed("matInput", "inputTensor(array)")


def inputMatrix(v: Any = None, d: Any = None) -> NoReturn:
    """Gone since DyNet 2, raises DeprecationWarning: write inputTensor(array)."""
    _removed("inputMatrix", "inputTensor(array)")


class inputTensorTranspose(_core.InputExpression):
    """``inputTensorTranspose(val, dim=None, batch_size=1, device="")``: numbers given flat, in column-major order.

    A class, as in DyNet; what it gives is an input like any other. dim: None for a vector of all of them.
    """

    def __new__(cls, val: Any, dim: Any = None, batch_size: int = 1, device: str = "") -> Any:
        return _core.inputTensorTranspose(val, (len(val),) if dim is None else dim, batch_size, device)

    def __init__(self, val: Any, dim: Any = None, batch_size: int = 1, device: str = "") -> None: ...


# ---- trainers ----------------------------------------------------------------------------------------------------------


class TrainerType(type):
    """Class of the trainer classes: takes the keywords of DyNet 1.

    e0 is the learning rate. edecay and lam have no effect here, unless they are 0, which is what they then mean. A program's
    own class may have arguments of these names.
    """

    @property
    def __signature__(cls) -> inspect.Signature:
        """What help() and notebooks show: the arguments of __init__(), not those of __call__()."""
        return inspect.Signature(list(inspect.signature(cls.__init__).parameters.values())[1:])  # type: ignore[misc]

    @told
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        known = inspect.signature(cls.__init__).parameters  # type: ignore[misc]  # only its names are read
        if "e0" in kwargs and "e0" not in known:
            warn_once("e0", "learning_rate=...")
            kwargs["learning_rate"] = kwargs.pop("e0")
        if "edecay" not in known and kwargs.pop("edecay", 0):
            warn_once("edecay", "trainer.learning_rate = ... after each epoch (edecay has no effect)")
        if "lam" not in known and kwargs.pop("lam", 0):
            warn_once("lam", "collection.set_weight_decay(lam) (lam has no effect)")
        if not any(p.kind is p.VAR_KEYWORD for p in known.values()):
            for name in kwargs:
                if name not in known:
                    names = ", ".join(list(known)[1:])
                    raise TypeError(f"[{cls.__name__}] there is no argument {name!r}; there are {names}")
        return super().__call__(*args, **kwargs)


# ---- saving ------------------------------------------------------------------------------------------------------------


class Saveable:
    """DyNet 1's base of classes whose objects can be saved: now ``param_collection()``, ``spec`` and ``from_spec`` do that.

    get_components() lists the parameters, builders and other Saveables that an object consists of, and
    restore_components(components) puts them back. ``dy.save`` writes these and, with those values that its ``.meta`` files may
    hold, all other attributes; ``dy.load`` gives the object, without calling its __init__(). pickle and copy.deepcopy work, too.
    Deriving a class warns once.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        warn_once("Saveable", "a class with param_collection(), spec and from_spec(), or save whole collections")

    def get_components(self) -> Any:
        """Parameters, builders and Saveables that belong to this object, in an order of your own."""
        raise NotImplementedError(f"[{type(self).__name__}] a Saveable needs a method get_components()")

    def restore_components(self, components: list[Any]) -> Any:
        """Take these, which are in the order of get_components(), as your own."""
        raise NotImplementedError(f"[{type(self).__name__}] a Saveable needs a method restore_components()")

    def __getstate__(self) -> Any:
        """All attributes, as Python's own classes give them since 3.11: pickle and deepcopy take the components along."""
        slots = {n: getattr(self, n) for n in copyreg._slotnames(type(self)) if hasattr(self, n)}  # type: ignore[attr-defined]
        return (dict(vars(self)), slots) if slots else dict(vars(self))

    def _described(self) -> tuple[Any, list[Any]]:
        """What dy.save() writes of it: its state, and the components, in whose places there None stands."""
        components = list(self.get_components())
        parts = {id(part) for part in components}
        copies: dict[int, Any] = {}  # by the container, which may hold itself

        def rest(value: Any) -> Any:
            if id(value) in parts or id(value) in copies:
                return copies.get(id(value))
            if type(value) is tuple:
                return tuple(map(rest, value))
            if type(value) is list:
                items: list[Any] = []
                copies[id(value)] = items
                items += map(rest, value)
                return items
            if type(value) is dict:
                entries: dict[Any, Any] = {}
                copies[id(value)] = entries
                entries.update((key, rest(item)) for key, item in value.items())
                return entries
            return value

        def attributes(given: Any) -> Any:
            """An attribute that is a component is left out: restore_components() sets it."""
            return {n: rest(v) for n, v in given.items() if id(v) not in parts} if type(given) is dict else rest(given)

        state = self.__getstate__()
        of_slots = type(state) is tuple and len(state) == 2
        return tuple(map(attributes, state)) if of_slots else attributes(state), components

    @staticmethod
    def _restored(kind: type[Saveable], state: Any, components: list[Any]) -> Saveable:
        """An object made of what dy.save() wrote of it."""
        made = kind.__new__(kind)
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            values, slots = state if type(state) is tuple else (state, {})
            vars(made).update(values)
            for name, value in slots.items():
                setattr(made, name, value)
        made.restore_components(components)
        return made


# ---- boxes of numbers ----------------------------------------------------------------------------------------------------


class FloatValue:
    """A box with a number: DyNet keeps changeable inputs in such. ``get()``, ``set(number)``."""

    _convert: type = float

    def __init__(self, val: Any = 0) -> None:
        self.set(val)

    def get(self) -> Any:
        """The number."""
        return self._value

    def set(self, val: Any) -> None:
        """Put another number in."""
        self._value = self._convert(val)


class UnsignedValue(FloatValue):
    """A box with a whole number that is not negative. ``get()``, ``set(number)``."""

    _convert = int

    def set(self, val: Any) -> None:
        """Put another number in; OverflowError when it is negative."""
        if val < 0:
            raise OverflowError(f"[UnsignedValue] a number >= 0 is needed; got {val}")
        super().set(val)


class FloatVectorValue:
    """A box with a list of numbers. ``get()``, ``set(numbers)``, ``size()``."""

    _box: type[FloatValue] = FloatValue

    def __init__(self, vals: Iterable[Any] = ()) -> None:
        self.set(vals)

    def get(self) -> list[Any]:
        """The numbers."""
        return list(self._values)

    def set(self, newval: Iterable[Any]) -> None:
        """Put other numbers in."""
        self._values = [self._box(v).get() for v in newval]

    def size(self) -> int:
        """How many there are."""
        return len(self._values)


class UnsignedVectorValue(FloatVectorValue):
    """A box with a list of whole numbers that are not negative. ``get()``, ``set(numbers)``, ``size()``."""

    _box = UnsignedValue
