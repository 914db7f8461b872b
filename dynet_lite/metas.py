"""The pickles of dy.save's ``.meta`` files: written by name, read without running any code of a program.

The unpickler makes numbers, text, containers, arrays and objects of plain classes, finds classes with ``from_spec`` and functions
such as ``tanh``, and runs nothing of what it finds. Whatever a file gives is looked at by its type only: ``==``, ``isinstance``,
``repr`` and methods looked up on an object may be a program's code. Who may import: io.py.
"""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from functools import partial
from types import FunctionType, GetSetDescriptorType
from typing import Any, BinaryIO

import numpy as np

from dynet_lite.compat.old_names import Saveable
from dynet_lite.errors import ModelFileError

__all__ = ["dump_meta", "load_metas"]

# What the pickles of DyNet's .meta files are made of; what imports or calls freely is missing.
SAFE = {
    "PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP", "NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT",
    "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING",
    "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
    "EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_DICT",
    "DICT", "SETITEM", "SETITEMS", "EMPTY_SET", "ADDITEMS", "FROZENSET", "GLOBAL", "STACK_GLOBAL", "PUT", "BINPUT",
    "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET", "MEMOIZE", "REDUCE", "NEWOBJ", "BUILD",
}  # fmt: skip
OURS = ("_dynet", "dynet", "dynet_lite")
CONTAINERS: tuple[type, ...] = (Counter, OrderedDict, defaultdict, deque)
ARRAY = np.zeros(0).__reduce__()[0]  # the function by which pickles of arrays begin
# What is found by name though no program defines it. Containers, dtypes and ARRAY are all that a file can call.
KNOWN: dict[tuple[str, str], Any] = {("collections", c.__name__): c for c in CONTAINERS}
KNOWN |= {("numpy", "ndarray"): np.ndarray, ("numpy", "dtype"): np.dtype}
KNOWN |= {(f"numpy.{core}.multiarray", "_reconstruct"): ARRAY for core in ("core", "_core")}
KNOWN |= {("builtins", kind.__name__): kind for kind in (bool, dict, float, int, list, set, str, tuple)}


def overrides(kind: type, *names: str) -> bool:
    """Whether the class, or one that it is derived from, has one of these methods in a way of its own."""
    own = [vars(c) for c in kind.__mro__ if c.__module__ not in ("builtins", "collections")]
    return any(name in methods for methods in own for name in names)


def plain(kind: Any) -> bool:
    """Whether an object of this class can be made, and given attributes, without any code of the class."""
    if not issubclass(type(kind), type) or kind.__module__.split(".")[0] in OURS:
        return False
    made_here = kind.__new__ in (object.__new__, dict.__new__, list.__new__)
    dicts = [vars(c)["__dict__"] for c in kind.__mro__ if "__dict__" in vars(c)]
    made_here = made_here and all(type(d) is GetSetDescriptorType for d in dicts)  # Python's own
    return made_here and not overrides(kind, "__new__", "__setstate__", "__del__")


def keyed(key: Any) -> bool:
    """Whether hashing and comparing a key runs no program's code."""
    return all(map(keyed, key)) if type(key) is tuple else not overrides(type(key), "__hash__", "__eq__")


def fills(container: Any, given: Any) -> bool:
    """Whether making a container of this, as pickles do, runs no program's code."""
    if container is deque:
        return type(given) in (list, tuple, int, type(None))
    if container is OrderedDict:  # pairs, as Python 2 writes it
        return type(given) is list and all(type(pair) is list and len(pair) == 2 and keyed(pair[0]) for pair in given)
    return type(given) is dict  # whose keys have been looked at


def shown(what: Any) -> str:
    """A text of it for messages, without any code of a program."""
    if type(what) is tuple:
        return f"({', '.join(map(shown, what))})"
    if type(what) in (type, str, int, float, bool, type(None)):
        return f"{what!r:.80}"
    return f"<{type(what).__module__}.{type(what).__name__}>"


def belong_together(module: str, other: str) -> bool:
    """Whether two modules are of one program or package: the same outermost package, or beside each other on the path."""
    if module.split(".")[0] == other.split(".")[0]:
        return True
    roots = []
    for name in (module, other):
        file = getattr(sys.modules[name], "__file__", None)
        if file is None:
            return False
        up = name.count(".") + (os.path.basename(file) == "__init__.py")
        roots.append(os.path.abspath(os.path.join(os.path.dirname(file), *[os.pardir] * up)))
    return roots[0] == roots[1] and os.path.basename(roots[0]) not in ("site-packages", "dist-packages")


Interpreter: Any = pickle._Unpickler  # type: ignore[attr-defined]  # the one in Python, whose steps can be looked at


class MetaUnpickler(Interpreter):  # type: ignore[misc]
    """Finds classes that can be loaded, and what their specs may hold; imports nothing, and runs no program's code.

    A spec may hold objects of plain classes (a vocabulary), arrays and containers, and it may name what dynet_lite offers
    (the activation of a layer, an initializer), a ufunc of NumPy, and functions of the program that the class is from.
    """

    dispatch = dict(Interpreter.dispatch)

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.modules: set[str] = set()  # of the classes found so far: an item begins with its class

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] in OURS:
            ours = sys.modules["dynet_lite"]
            found: Any = getattr(ours, name, None)
            if callable(found) and name in ours.__all__:
                return found
        elif (module, name) in KNOWN:
            return KNOWN[module, name]
        else:
            if module not in sys.modules:
                raise pickle.UnpicklingError(f"class {module}.{name}: import its module first")
            found = vars(sys.modules[module]).get(name)
        if issubclass(type(found), type) and (hasattr(found, "from_spec") or issubclass(found, Saveable)):
            self.modules.add(module)
        elif type(found) is not np.ufunc and not plain(found) and not self.is_own(found, module):
            raise pickle.UnpicklingError(f"{module}.{name} is not a class with from_spec(), nor what a spec may hold")
        return found

    def is_own(self, found: Any, module: str) -> bool:
        """Whether it is a function of the program that the class of this item is from."""
        if type(found) is not FunctionType or found.__module__ != module:
            return False
        return any(belong_together(module, m) for m in self.modules)

    def load_reduce(self) -> None:
        called, given = self.stack[-2:]
        kinds = [type(part) for part in given] if type(given) is tuple else [object]
        allowed: Any
        if called is ARRAY:
            allowed = kinds == [type, tuple, bytes] and repr(given[1:]) == "((0,), b'b')" and given[0] is np.ndarray
        elif called is np.dtype:
            allowed = kinds in ([str, bool, bool], [str, int, int]) and re.fullmatch("[a-zA-Z][0-9]*", given[0])
            allowed = allowed and given[1:] == (False, True)
        elif called is defaultdict:  # with what makes its values, which nobody asks for now
            allowed = len(kinds) <= 1 and object not in kinds
        else:
            allowed = any(called is kind for kind in CONTAINERS) and all(map(fills, [called] * len(kinds), given))
        self.see(allowed, called, "called")
        super().load_reduce()

    def load_newobj(self) -> None:
        kind, given = self.stack[-2:]
        self.see(plain(kind) and type(given) is tuple and not given, kind, "made")
        super().load_newobj()

    def load_build(self) -> None:
        made, state = self.stack[-2:]
        kind = type(made)
        if issubclass(kind, np.dtype):  # a state of another kind may break NumPy
            simple = type(state) is tuple and all(type(part) in (int, str, type(None)) for part in state)
            usual = [made.newbyteorder("<").__reduce__()[2], made.newbyteorder(">").__reduce__()[2]]
            self.see(simple and state in usual, made, "changed in this way")
        elif kind is np.ndarray:
            parts = [type(part) for part in state] if type(state) is tuple else []
            simple = len(parts) == 5 and parts[:2] == [int, tuple] and issubclass(parts[2], np.dtype)
            simple = simple and parts[3] in (bool, int) and parts[4] in (bytes, list, str)
            self.see(simple and all(type(n) is int for n in state[1]), kind, "changed in this way")
        else:
            self.see(type(state) is dict and plain(kind) and all(type(key) is str for key in state), kind, "changed")
            object.__getattribute__(made, "__dict__").update(self.stack.pop())
            return
        super().load_build()

    def load_items(self, code: int) -> None:
        """Puts items into a container by Python's own methods: an object may have others, or attributes of these names."""
        if code in (pickle.APPEND[0], pickle.SETITEM[0]):
            n = 1 if code == pickle.APPEND[0] else 2
            items = [self.stack.pop() for _ in range(n)][::-1]
        else:
            items = self.pop_mark()
        into = self.stack[-1]
        kind = type(into)
        self.see(not overrides(kind, "append", "extend", "add", "__setitem__"), kind, "filled")
        if code in (pickle.APPEND[0], pickle.APPENDS[0]):
            base: Any = next((c for c in (list, deque) if issubclass(kind, c)), None)
            self.see(base, kind, "filled with items")
            base.extend(into, items)
        elif code == pickle.ADDITEMS[0]:
            self.see(issubclass(kind, set) and all(map(keyed, items)), kind, "filled with these")
            set.update(into, items)
        else:
            base = next((c for c in (OrderedDict, dict) if issubclass(kind, c)), None)
            self.see(base and all(map(keyed, items[::2])), kind, "filled with these keys")
            for key, value in zip(items[::2], items[1::2], strict=True):
                base.__setitem__(into, key, value)

    def load_frozenset(self) -> None:
        self.see(all(map(keyed, self.stack)), frozenset, "filled with these")
        super().load_frozenset()

    def load_dict(self) -> None:
        self.see(all(map(keyed, self.stack[::2])), dict, "filled with these keys")
        super().load_dict()

    def see(self, allowed: Any, what: Any, done: str) -> None:
        if not allowed:
            raise pickle.UnpicklingError(f"{shown(what)} is not {done} by a file")

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.FROZENSET[0]] = load_frozenset
    dispatch[pickle.DICT[0]] = load_dict
    for items in (pickle.APPEND, pickle.APPENDS, pickle.SETITEM, pickle.SETITEMS, pickle.ADDITEMS):
        dispatch[items[0]] = partial(lambda code, self: self.load_items(code), items[0])


class MetaPickler(pickle._Pickler):  # type: ignore[name-defined]
    """Writes classes and functions by name: ours under DyNet's module name, so that DyNet reads the file, too."""

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, np.generic):
            obj = obj.item()
        module, name = getattr(obj, "__module__", None), getattr(obj, "__name__", None)
        if module and module.split(".")[0] in OURS and getattr(sys.modules["dynet_lite"], str(name), None) is obj:
            module = "_dynet"
        elif not isinstance(obj, type):
            super().save(obj, save_persistent_id)  # type: ignore[misc]
            return
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())  # type: ignore[attr-defined]


def dump_meta(item: Any) -> bytes:
    for protocol in (2, 4):  # 2, as ever, but sets, bytes and arrays need the other
        out = io.BytesIO()
        try:
            MetaPickler(out, protocol).dump(item)
            load_metas(out.getvalue(), "")
        except Exception as e:
            error = e
        else:
            return out.getvalue()
    raise ValueError(f"[save] {item[0]}: its spec may hold numbers, text, containers, arrays, objects of plain classes, "
                     "classes with from_spec, and functions of DyNet's, of NumPy's or of its own program only: "
                     f"{error}") from None  # fmt: skip


def describes(item: Any) -> bool:
    """Whether it describes a parameter, an object with from_spec, or a Saveable with its components."""
    kinds = [type(part) for part in item] if type(item) is tuple else []
    if len(kinds) != 3 or not issubclass(kinds[0], type):
        return kinds == [str, str] and item[0] in ("Parameters", "LookupParameters")
    if kinds[2] is list:
        return issubclass(item[0], Saveable) and all(map(describes, item[2]))
    return kinds[2] is str and hasattr(item[0], "from_spec")


def load_metas(data: bytes, path: str) -> list[tuple[Any, ...]]:
    """The items of a .meta file."""
    stream, out = io.BytesIO(data), []
    while stream.tell() < len(data):
        begin = stream.tell()
        try:
            for op, _, _ in pickletools.genops(stream):
                if op.name not in SAFE:
                    raise pickle.UnpicklingError(f"{op.name} is not allowed in such a file")
            item = MetaUnpickler(io.BytesIO(data[begin : stream.tell()])).load()
        except Exception as e:
            raise ModelFileError(f"[load] {path}: {e}") from None
        if not describes(item):
            raise ModelFileError(f"[load] {path}: an object's description is needed; got {shown(item)}")
        out.append(item)
    return out
