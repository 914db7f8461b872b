"""ParameterCollection: owns the parameters of a model, in a tree of collections with DyNet's names.

The numbers live in Parameters and LookupParameters (compiled); a collection is the list of them. A parameter does not
refer to its collection, nor a collection to its children, so memory goes with the last reference, without waiting for
the garbage collector. Files are dynet_lite/io.py's business.
"""

from __future__ import annotations

import math
import os
import warnings
from typing import Any

import numpy as np

from dynet_lite import config, gpus, initializers
from dynet_lite._core import LookupParameters, Parameters
from dynet_lite.compat import old_names

__all__ = [
    "Model",
    "ParameterCollection",
]

Shape = tuple[int, ...]
LARGEST = 2**31 - 1


def _unique(name: str, taken: dict[str, int]) -> str:
    """The name, or name_1, name_2, ... when it is taken; without a name _0, _1, ...

    taken: every name in use, with the number to try next after it.
    """
    if name and name not in taken:
        taken[name] = 1
        return name
    number = taken.get(name, 0)
    while f"{name}_{number}" in taken:
        number += 1
    taken[name] = number + 1
    taken[f"{name}_{number}"] = 1
    return f"{name}_{number}"


def _checked_name(name: Any) -> str:
    if name is None:
        return ""
    if not isinstance(name, str):
        raise TypeError(f"[name] a name is text; got {type(name).__name__}")
    if "/" in name or name != name.strip() or not name.isprintable():  # of blanks only the space is printable
        raise ValueError(
            f"[name] a name may not hold '/' or control characters, or begin or end with a blank; got {name!r}"
        )
    return name


def _checked_device(device: str, where: str) -> None:
    if not gpus.known_name(device):
        raise gpus.UnknownDevice(f"[{where}] there is no such device, see dy.devices(); got {device!r}")


def _cut(shape: Shape) -> Shape:
    """The shape without trailing dims of 1."""
    while shape and shape[-1] == 1:
        shape = shape[:-1]
    return shape


def _shape(dim: Any) -> Shape:
    if isinstance(dim, (str, bytes)):
        raise ValueError(f"[add_parameters] the shape comes first, unlike in DyNet 1: write (shape, name={dim!r})")
    if isinstance(dim, (int, np.integer)) or not hasattr(dim, "__iter__"):
        dim = (dim,)
    # Half a size, hidden / 2, is a float.
    shape = tuple(_whole(d) if isinstance(d, (float, np.floating)) else d for d in dim)
    shape = tuple(d.__index__() if hasattr(d, "__index__") else d for d in shape)
    if not shape or not all(isinstance(d, int) and d >= 0 for d in shape):  # DyNet takes empty ones, too
        raise ValueError(f"[add_parameters] dims must be whole numbers >= 0; got {dim}")
    if len(shape) > 7:
        raise ValueError(f"[add_parameters] at most 7 dims; got {dim}")
    if max(shape) > LARGEST:
        raise ValueError(f"[add_parameters] too large: a size may be {LARGEST} at most; got {dim}")
    return shape


def _whole(d: Any) -> Any:
    """A size given as a float, if it is whole; where dynet_lite stands in for DyNet cut off, as there."""
    return int(d) if math.isfinite(d) and (d == int(d) or config.is_dynet()) else d


def _check_size(shape: Shape, is_lookup: bool) -> None:
    numbers = math.prod(shape[1:] if is_lookup else shape)
    if numbers > LARGEST:
        where, what = ("add_lookup_parameters", "a row") if is_lookup else ("add_parameters", "a parameter")
        raise ValueError(f"[{where}] too large: {what} may have {LARGEST} numbers at most; got {shape}")


class ParameterCollection:
    """The parameters of a model.

    Names are those of DyNet: the root is ``/``; a parameter ``/x``, a second one of that name ``/x_1``, one without a
    name ``/_0``, ``/_1``, ...; a sub-collection ``/s/``, ``/s_1/``, ``/_0/``. Unlike in DyNet a name may hold ``_``.

    Parameters live as long as someone holds them, with or without their collection. Collections can be pickled and
    deep-copied (values and settings, no gradients; a sub-collection takes its whole tree along).
    """

    def __init__(self, parent: ParameterCollection | None = None, *, _name: str = "/") -> None:
        if parent is not None and not isinstance(parent, ParameterCollection):
            raise TypeError(f"[ParameterCollection] parent must be a collection; got {type(parent).__name__}")
        self._parent = parent
        self._name = _name if parent is None or _name != "/" else parent._sub_name("")
        self._all: list[Parameters | LookupParameters] = []  # with those of sub-collections, in order of making
        self._taken: dict[str, int] = {}  # names of parameters, with what follows them
        self._taken_sub: dict[str, int] = {}
        self._weight_decay = config.get("weight_decay") if parent is None else 0.0

    # ---- making ----------------------------------------------------------------------------------------------------

    def add_parameters(
        self,
        dim: Any,
        init: Any = None,
        name: str = "",
        device: str = "",
        scale: float = 1.0,
        mean: float = 0.0,
        std: float = 1.0,
    ) -> Parameters:
        """A new parameter of shape ``dim`` (an int or a tuple; or an array, which gives shape and values).

        init: a number; 'uniform' (between -scale and scale), 'normal' (mean, std), 'identity', 'glorot', 'he', 'saxe'
        (times scale), 'fan-in' (times scale; not in DyNet, for output layers and tables: FanInInitializer); an array, whose
        shape is taken, as in DyNet (with a warning when it is not dim); an initializer. None is GlorotInitializer(), as in
        DyNet: its range shrinks with the number of rows, and a table or an output layer of thousands of words hardly learns.

        name: see the class. device: accepted for DyNet programs if there is such a device; the settings say where a graph runs.
        ValueError for another init or device, more than 7 dims, a size below 0, or a "/" in the name.
        """
        p: Parameters = self._add(Parameters, dim, init, name, device, scale, mean, std)
        return p

    def add_lookup_parameters(
        self,
        dim: Any,
        init: Any = None,
        name: str = "",
        device: str = "",
        scale: float = 1.0,
        mean: float = 0.0,
        std: float = 1.0,
    ) -> LookupParameters:
        """A new table of shape (V, d1, ...): V rows of dims {d1, ...}; an int V means (V, 1). See add_parameters()."""
        p: LookupParameters = self._add(LookupParameters, dim, init, name, device, scale, mean, std)
        return p

    def _add(self, kind: Any, dim: Any, init: Any, name: str, device: str, scale: float, mean: float,
             std: float) -> Any:  # fmt: skip
        if isinstance(dim, np.ndarray):
            dim, init = dim.shape, dim
        is_lookup = kind is LookupParameters
        shape = _shape(dim)
        if isinstance(init, np.ndarray):
            if _cut(init.shape) != _cut(shape):
                warnings.warn(f"the array that a parameter is made from has shape {init.shape}, not {shape}; "
                              "the array's shape is taken", stacklevel=3)  # fmt: skip
            shape = _shape(init.shape)
        if is_lookup and len(shape) == 1:
            shape = (*shape, 1)
        _check_size(shape, is_lookup)
        name = _checked_name(name)
        _checked_device(device, "add_lookup_parameters" if is_lookup else "add_parameters")
        first = initializers.make(init, scale, mean, std)
        values = first.values(shape, is_lookup)
        p = kind.make(shape, self._name + _unique(name, self._taken))
        if is_lookup:
            p.init_from_array(values)
        else:
            p.set_value(values)
        self._enlist(p)
        return p

    def _enlist(self, p: Parameters | LookupParameters) -> None:
        collection: ParameterCollection | None = self
        while collection is not None:
            collection._all.append(p)
            collection = collection._parent

    def parameters_from_numpy(self, array: Any, name: str = "", device: str = "") -> Parameters:
        """A new parameter with the shape and the values of an array."""
        a = np.asarray(array)
        return self.add_parameters(a.shape, init=a, name=name, device=device)

    def lookup_parameters_from_numpy(self, array: Any, name: str = "", device: str = "") -> LookupParameters:
        """A new table with the shape (V, d1, ...) and the values of an array."""
        a = np.asarray(array)
        return self.add_lookup_parameters(a.shape, init=a, name=name, device=device)

    def add_subcollection(self, name: str | None = None) -> ParameterCollection:
        """A collection whose parameters are also parameters of this one; its names begin with this one's."""
        return ParameterCollection(self, _name=self._sub_name(name))

    def _sub_name(self, name: str | None) -> str:
        return self._name + _unique(_checked_name(name), self._taken_sub) + "/"

    def _mark(self) -> list[tuple[ParameterCollection, int, dict[str, int], dict[str, int]]]:
        """What _rollback() needs to take back later additions."""
        marks, collection = [], self
        while True:
            marks.append((collection, len(collection._all), dict(collection._taken), dict(collection._taken_sub)))
            if collection._parent is None:
                return marks
            collection = collection._parent

    def _rollback(self, marks: list[tuple[ParameterCollection, int, dict[str, int], dict[str, int]]]) -> None:
        for collection, size, taken, taken_sub in marks:
            del collection._all[size:]
            collection._taken, collection._taken_sub = taken, taken_sub

    # ---- reading ---------------------------------------------------------------------------------------------------

    def name(self) -> str:
        """Full name, such as / or /encoder/."""
        return self._name

    def parameters_list(self) -> list[Parameters]:
        """All weights, those of sub-collections too, in order of making."""
        return [p._anew() for p in self._all if isinstance(p, Parameters)]

    def lookup_parameters_list(self) -> list[LookupParameters]:
        """All tables, those of sub-collections too, in order of making."""
        return [p for p in self._all if isinstance(p, LookupParameters)]

    def parameter_count(self) -> int:
        """How many numbers are trained, tables included."""
        return sum(math.prod(p.shape()) for p in self._all)

    def __repr__(self) -> str:
        return (f"<parameter collection {self._name}: {len(self.parameters_list())} weights, "
                f"{len(self.lookup_parameters_list())} tables, {self.parameter_count():,} numbers>")  # fmt: skip

    # ---- training --------------------------------------------------------------------------------------------------

    def _root(self) -> ParameterCollection:
        root = self
        while root._parent is not None:
            root = root._parent
        return root

    def get_weight_decay(self) -> float:
        """The fraction by which every update shrinks the weights: w becomes w (1 - decay). One setting for the whole tree."""
        return self._weight_decay if self._parent is None else self._root()._weight_decay

    def set_weight_decay(self, lam: float) -> None:
        """Set the fraction by which every update shrinks the weights, 0 <= lam < 1; for the whole tree of collections."""
        lam = float(lam)
        if not 0 <= lam < 1:
            raise ValueError(f"[set_weight_decay] a number >= 0 and < 1 is needed; got {lam}")
        self._root()._weight_decay = lam

    def get_weight_decay_lambda(self) -> float:
        """Another name of get_weight_decay()."""
        return self.get_weight_decay()

    def set_weight_decay_lambda(self, lam: float) -> None:
        """DyNet's other name of set_weight_decay()."""
        self.set_weight_decay(lam)

    def gradient_l2_norm(self) -> float:
        """L2 norm of all accumulated gradients together."""
        total = 0.0
        for p in self._all:
            g = p._row_grads()[1] if isinstance(p, LookupParameters) else p.grad_as_array()
            total += float(np.sum(np.square(g, dtype=np.float64)))
        return math.sqrt(total)

    def reset_gradient(self) -> None:
        """Forget all accumulated gradients."""
        for p in self._all:
            p.zero_gradient()

    def set_updated(self, b: bool) -> None:
        """False freezes every parameter of the collection."""
        for p in self._all:
            p.set_updated(b)

    # ---- files -----------------------------------------------------------------------------------------------------

    def save(self, fname: Any, name: str = "", append: bool = False) -> None:
        """Write all parameters as text, in DyNet's format. ``name`` ('/key') replaces this collection's name."""
        from dynet_lite import io

        if isinstance(name, (list, tuple)) and name:
            old_names.warn_once("collection.save(file, objects)", "dynet_lite.save(basename, objects)")
            io.save(fname, name)
            return
        io.save_collection(self, fname, name, append)

    def populate(self, fname: Any, key: str = "") -> None:
        """Fill all parameters from a file, in order: the k-th weight from the k-th weight of the file, tables likewise.

        key: only entries whose names start with it. ModelFileError (a ValueError and RuntimeError) when the file is damaged,
        or when counts or dims differ; then nothing has changed.
        """
        from dynet_lite import io

        io.populate_collection(self, fname, key)

    def load(self, fname: Any) -> list[Any] | None:
        """DyNet 1's name of populate(), or of dynet_lite.load() for what save(fname, objects) wrote; warns once."""
        from dynet_lite import io

        old_names.warn_once("load", "collection.populate(file), or dynet_lite.load(basename, collection) for objects")
        if os.path.exists(os.fsdecode(fname) + ".meta") and not os.path.exists(fname):
            return io.load(fname, self)
        self.populate(fname)
        return None

    @classmethod
    def from_file(cls, fname: Any) -> tuple[ParameterCollection, list[Any]]:
        """DyNet 1's: a new collection, and in it what save(fname, objects) wrote; warns once."""
        from dynet_lite import io

        old_names.warn_once("from_file", "dynet_lite.load(basename, collection)")
        collection = cls()
        return collection, io.load(fname, collection)

    def save_all(self, fname: Any) -> None:
        """DyNet 1's other name of save(); warns once."""
        old_names.warn_once("save_all", "collection.save(file)")
        self.save(fname)

    def load_all(self, fname: Any) -> None:
        """DyNet 1's other name of populate(); warns once."""
        old_names.warn_once("load_all", "collection.populate(file)")
        self.populate(fname)

    def __getitem__(self, name: Any) -> Any:
        raise TypeError("[ParameterCollection] has no items, unlike in DyNet 1: keep what add_parameters() gives you")

    def write_to_textfile(self, fname: Any, key: str = "", append: bool = False) -> None:
        """DyNet's other name of save()."""
        self.save(fname, key, append)

    def populate_from_textfile(self, fname: Any, key: str = "") -> None:
        """DyNet's other name of populate()."""
        self.populate(fname, key)

    def load_param(self, fname: Any, key: str) -> Parameters:
        """A new parameter with the shape and values of the file's entry ``key`` (a full name)."""
        from dynet_lite import io

        p: Parameters = io.load_parameter(self, fname, key, Parameters)
        return p

    def load_lookup_param(self, fname: Any, key: str) -> LookupParameters:
        """A new table with the shape and values of the file's entry ``key`` (a full name)."""
        from dynet_lite import io

        p: LookupParameters = io.load_parameter(self, fname, key, LookupParameters)
        return p


Model = ParameterCollection
