"""What a cell or a compiled function reads besides its arguments: variables, attributes and items that its code names.

Runs no code of a program: objects may be proxies that do work, or fail, when they are asked for an attribute or their class. So
they are looked at by type(), classes and __dict__ are read as they are stored, and properties are not called.
Who may import: cells.py and compiled.py.
"""

from __future__ import annotations

import array
import collections
import contextvars
import functools
import gc
import importlib.util
import operator
import os
import pickle
import random
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dynet_lite import _core
from dynet_lite.params import ParameterCollection
from dynet_lite.reading_code import ABSENT, ANY, attributes_of, inside_of, is_of, names_of

__all__ = ["read_by"]

_MOST_ITEMS = 32  # of a list, dict or set that are looked into
_DEEPEST = 5  # objects and lists in one another: holder.layers[0].attention.dropout.p
_HEAP_TYPE = 1 << 9  # of a class that was made by Python code
_LIBRARY = os.path.dirname(os.__file__) + os.sep  # Python's own
# Methods that are called without being named: of objects, of classes.
_OF_OBJECTS = {f"__{name}__" for name in ("call", "get", "getattr", "getitem", "missing", "setitem", "iter", "next", "len", "contains", "bool", "float",
                                          "int", "index", "enter", "exit", "add", "sub", "mul", "matmul", "truediv", "floordiv",
                                          "mod", "pow", "radd", "rsub", "rmul", "rmatmul", "rtruediv", "rpow", "iadd", "isub", "imul",
                                          "itruediv", "neg", "pos", "abs", "lt", "le", "gt", "ge", "rfloordiv", "rmod", "and", "or", "xor", "rand",
                                          "ror", "rxor", "invert", "lshift", "rshift", "instancecheck", "subclasscheck")}  # fmt: skip
_OF_CLASSES = {"__init__", "__new__", "__post_init__", "__class_getitem__"}
_FEWEST = 8  # objects with cells of their own of which nothing is forgotten
_PLAIN = (int, float, str, bool, bytes, type(None))  # nothing is in them
# What trainers keep as fields, by the name that shows it.
_OF_TRAINERS = {**{name: name for name in _core.TrainerFields._numbers}, "learning_rate": "_learning_rate"}
_OF_COLLECTIONS = {"parameters_list", "lookup_parameters_list", "parameter_count"}  # what grows with a collection
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_CACHE = type(functools.lru_cache(lambda: None))
_ARRAYS = (np.ndarray, array.array, bytearray, memoryview)  # whose numbers may change
_OF_WRAPPERS = {"data", "maps"}  # where these keep a list, a dict, a set or some:
_WRAPPERS = (collections.UserDict, collections.UserList, collections.ChainMap,
             weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)  # fmt: skip
_REFERENCES = (weakref.ref, weakref.ProxyType, weakref.CallableProxyType)
_VIEWS: tuple[type, ...] = (
    types.MappingProxyType,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)  # of a dict: they refer to it


Read = tuple[Any, Any, Any]  # (where, key, value), see read_by()
_NEVER: Read = ({}, "", None)  # is never what is there
_of_objects: weakref.WeakSet[Any] = weakref.WeakSet()  # the functions of objects' cells, which keep what is read
_most = _FEWEST


class _Seen(dict[int, set[str]]):
    """What has been looked at, by id, for which names; what was found to be read; the functions, and objects with more names,
    that are to be looked at."""

    def __init__(self, common: set[str]) -> None:
        self.read: list[Read] = []
        self.names: set[str] = set()  # in the functions
        self.common = common  # what objects are looked at for: functions are given them, and give them back
        self.functions: list[types.FunctionType] = []
        self.objects: dict[int, tuple[Any, set[str], int]] = {}
        self.generators: dict[int, Any] = {}  # of random numbers
        self._kept: dict[tuple[int, Any], tuple[Any, Any]] = {}

    def found(self) -> list[Read]:
        """All that was read, each once."""
        found = {(id(where), key): (where, key, value) for where, key, value in self.read}
        drawn = [(_core.Generators(self.generators.values()), None, None)] if self.generators else []
        return [*found.values(), *drawn]

    def once(self, make: Callable[..., Any], value: Any, *args: Any) -> Any:
        """make(value), one for each value: what is read twice is compared once."""
        found = self._kept.get((id(value), make))
        if found is None:
            found = self._kept[id(value), make] = value, make(value, *args)
        return found[1]

    def watch(self, make: Callable[..., _core.Watched], value: Any, *args: Any) -> None:
        """What is compared as a whole."""
        self.read.append((self.once(make, value, *args), None, None))

    def look_again(self, value: Any, names: set[str], depth: int) -> None:
        _, others, before = self.objects.get(id(value), (None, set(), depth))
        self.objects[id(value)] = value, names | others, min(depth, before)

    def is_new(self, value: Any, names: set[str]) -> bool:
        """Has it not been looked at for all of these names?"""
        before = self.get(id(value))
        if before is not None and names <= before:
            return False
        self[id(value)] = names if before is None else names | before
        return True


def read_by(function: Any, given: Iterable[Any] = ()) -> list[Read]:
    """(where, key, value) of the variables and attributes that a function names: when one changes, it is recorded anew.

    Globals and variables of enclosing functions, those of functions that it names in turn, attributes of these objects, of their
    classes, of modules and of the object that it is a method of, items of lists, dicts and sets, numbers of arrays. ``where``
    is a dict, what is read like one, the variable itself (key None), a class, which may inherit the attribute, or something
    that is compared as a whole (key None).

    given: arguments; then the list is what is read of these.
    """
    if not _core.is_method(function):
        seen = _seen_from([function], set())
        return _seen_from(given, seen.names).found() if given else seen.found()
    seen = _seen_from([function.ref(), function.function], _names(function.function))
    if given:
        return _seen_from(given, seen.names).found()
    found = seen.found()
    _hold(function, found)
    return found


def random_states(read: Iterable[Read] | None) -> list[Any]:
    """States of the generators of random numbers among what a function reads. None: another thread looks at that anew."""
    return [_state_of(one) for where, _, _ in read or () if type(where) is _core.Generators for one in where.found]


def _state_of(generator: Any) -> Any:
    if is_of(generator, random.Random):
        return random.Random.getstate(generator)
    if is_of(generator, np.random.RandomState):
        return pickle.dumps(np.random.RandomState.get_state(generator, legacy=False))
    return pickle.dumps(generator.bit_generator.state)


def _seen_from(those: Iterable[Any], names: set[str]) -> _Seen:
    """What functions that have these names read of objects, and what the methods and functions do that they call."""
    those = [*those]
    while True:
        seen = _Seen(names)
        for value in those:
            _see_callable(value, names, seen, 0)
        _see_rest(seen)
        if seen.names <= names:
            return seen
        names = names | seen.names


def _see_rest(seen: _Seen) -> None:
    while seen.functions or seen.objects:  # one after the other: chains of calls may be longer than Python's stack
        if seen.functions:
            _see_variables(seen.functions.pop(), seen)
        else:
            value, names, depth = seen.objects.pop(next(iter(seen.objects)))
            _see_object(value, names, seen, depth)


def _hold(method: Any, found: list[Read]) -> None:
    """What a cell of an object reads may refer to the object, and the class knows the cell: the object would stay as long as
    the class. So now and then all such lists are emptied, for objects that are gone to go; what is called again is read
    again. The lists belong to the cells: with the class they go in any case, and with it its module's variables."""
    global _most
    if len(_of_objects) >= _most:
        for other in [*_of_objects]:
            other.read[:] = [_NEVER]
        gc.collect()
        _most = max(_FEWEST, 2 * len(_of_objects))
    method.read = found
    _of_objects.add(method)


def _is_settled(module: Any) -> bool:
    """Is what this module defines of this package or of Python's library? A program's may have a name of the latter, and
    classes that are made by exec(), in variables without a __name__, are said to be of builtins."""
    top = str(module or "").split(".")[0]
    if top == __name__.split(".")[0]:
        return True
    if top not in sys.stdlib_module_names or top == "builtins":
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    return file.startswith(_LIBRARY) if file else top in sys.builtin_module_names


def _names(function: Any) -> set[str]:
    """The attributes that are named in the code of a function."""
    return names_of(function)[1]


def _see_callable(function: Any, names: set[str], seen: _Seen, depth: int) -> None:
    """What is called: a function, a method with its object, a partial, or an object that can be called."""
    if is_of(function, types.FunctionType, _core.told_type):
        _see_own_attributes(function, names, seen, depth)
        _see_function(function, seen)
    elif _core.is_cell(function):
        function = getattr(function, "cell", function).function
        if _core.is_method(function):
            _see_object(function.ref(), names | _names(function.function), seen, depth)
            function = function.function
        _see_callable(function, names, seen, depth)
    elif is_of(function, types.MethodType):
        _see_object(function.__self__, names | _names(function.__func__), seen, depth)
        _see_function(function.__func__, seen)
    elif is_of(function, staticmethod, classmethod):
        _see_callable(function.__func__, names, seen, depth)
    elif is_of(function, _CACHE):
        _see_callable(function.__wrapped__, names, seen, depth)
    elif is_of(function, operator.attrgetter, operator.methodcaller):
        seen.names.update(*(one.split(".") for one in function.__reduce__()[1] if type(one) is str))
    elif is_of(function, functools.partial):
        _see_callable(function.func, names, seen, depth)
        names = names | _names(function.func)
        for given in (function.args, function.keywords):
            _see_object(given, names, seen, depth)
    else:
        _see_object(function, names, seen, depth)


def _see_function(function: Any, seen: _Seen) -> None:
    if is_of(function, types.FunctionType) and not seen.once(_is_settled, function.__module__):
        if seen.is_new(function, seen.once(_names, function)):
            seen.functions.append(function)


def _see_own_attributes(function: Any, names: set[str], seen: _Seen, depth: int) -> None:
    """Those that a program, or functools.singledispatch, has given to a function."""
    if is_of(function, types.FunctionType) and function.__dict__ and seen.is_new(function.__dict__, names):
        for name in sorted((names | {"registry"}) & function.__dict__.keys()):
            _see(function.__dict__, name, function.__dict__[name], names, seen, depth)


def _see_variables(function: types.FunctionType, seen: _Seen) -> None:
    (variables, own), inside = seen.once(names_of, function), function.__globals__
    seen.names |= own
    names = own | seen.common
    seen.watch(_core.WatchedFunction, function)
    for name in sorted(variables):
        if name in inside:
            _see(inside, name, inside[name], own if is_of(inside[name], types.ModuleType) else names, seen, 0)
        else:
            module, known_as = _imported(name, inside)
            if is_of(module, types.ModuleType):  # it is imported in the function
                _see(sys.modules, known_as, module, own, seen, 0)
            if not name.startswith("."):  # it may come to hide a builtin
                seen.read.append((inside, name, _core.MISSING))
    for variable in function.__closure__ or ():
        try:
            value = variable.cell_contents
        except ValueError:
            continue
        _see(variable, None, value, names, seen, 0)
    for defaults in (function.__defaults__, function.__kwdefaults__):
        _see_object(defaults, names, seen, 0)


def _imported(name: str, inside: dict[str, Any]) -> tuple[Any, str]:
    """The module of this name, or of this place beside that of a function with these globals, and its whole name."""
    try:
        known_as = importlib.util.resolve_name(name, inside.get("__package__"))
    except ImportError:
        return None, name
    return sys.modules.get(known_as), known_as


def _see(where: Any, key: Any, value: Any, names: set[str], seen: _Seen, depth: int) -> None:
    if not is_of(value, types.ModuleType) or seen.once(_is_users, value):
        seen.read.append((where, key, value))
    _see_value(value, names, seen, depth)


def _see_value(value: Any, names: set[str], seen: _Seen, depth: int) -> None:
    _see_generator(value, seen)
    if is_of(value, types.ModuleType):
        _see_module(value, names, seen, depth)
    elif type(value) not in _PLAIN:
        _see_surroundings(value, names, seen, depth)
        _see_callable(value, names, seen, depth + 1)


def _see_surroundings(value: Any, names: set[str], seen: _Seen, depth: int) -> None:
    """What is another one in another context, thread or environment."""
    if value is os.environ or value is os.getenv:
        seen.watch(_core.WatchedDict, os.environ._data)  # type: ignore[attr-defined]
    elif is_of(value, contextvars.ContextVar, threading.local):
        here = seen.once(_Here, value)
        expected = names if ABSENT in names else seen.once(_names_in, type(value))  # where there is none yet
        if seen.is_new(here, names):
            for name in [None] if is_of(value, contextvars.ContextVar) else sorted(names):
                found = here.get(name)
                if found is not _core.MISSING or name is None or name in expected and name.isidentifier():
                    _see(here, name, found, names, seen, depth + 1)


def _see_generator(value: Any, seen: _Seen) -> None:
    """Is it one of random numbers, or a method of one?"""
    if is_of(value, types.MethodType, types.BuiltinMethodType):
        value = value.__self__
    if is_of(value, random.Random, np.random.RandomState, np.random.Generator):
        seen.generators[id(value)] = value


def _is_users(module: Any) -> bool:
    """Is a module a program's own?"""
    inside = attributes_of(module) or {}
    return not _is_settled(inside.get("__name__")) and "-packages" not in str(inside.get("__file__"))


def _see_module(module: Any, names: set[str], seen: _Seen, depth: int) -> None:
    """Its variables. Into what they are goes nobody where the module is not the user's."""
    inside = attributes_of(module)
    if inside is None or inside.get("Expression") is _core.Expression or not seen.is_new(module, names):
        return
    name_of = str(inside.get("__name__"))
    if name_of.split(".")[0] == __name__.split(".")[0]:
        return
    users = seen.once(_is_users, module)
    asked = {name for name in names if name.isidentifier()} | ({"__getattr__"} if users else set())
    if users and ANY in names:
        seen.watch(_core.WatchedDict, inside)
    absent = ABSENT in names or "__getattr__" in inside
    for name in sorted(asked):
        if name not in inside:
            if users and absent:
                seen.read.append((inside, name, _core.MISSING))
        elif users:
            _see(inside, name, inside[name], names, seen, depth)
        elif inside[name] is np.random:
            _see_module(np.random, names, seen, depth)
        elif not is_of(inside[name], types.ModuleType):
            _see_generator(inside[name], seen)
            _see_surroundings(inside[name], names, seen, depth)
            seen.read.append((inside, name, inside[name]))


def _see_object(value: Any, names: set[str], seen: _Seen, depth: int) -> None:
    """Items, and attributes that the function names."""
    if depth > _DEEPEST or is_of(value, _core.Expression) or not seen.is_new(value, names):
        return
    base = next((kind for kind in _CONTAINERS if is_of(value, kind)), None)
    if base is not None:
        _see_items(value, base, names, seen, depth)
        if type(value) is base:
            return
    if is_of(value, *_ARRAYS):
        _see_numbers(value, seen)
    if is_of(value, *_VIEWS):
        for one in gc.get_referents(value):
            _see_object(one, names, seen, depth)
    if is_of(value, *_REFERENCES):
        _see_value(_core.referent(value), names, seen, depth)
    if is_of(value, type):  # its objects have its methods
        for name in sorted((names | _OF_CLASSES | _OF_OBJECTS) & seen.once(_names_in, value)):
            _see_in_class(value, value, name, names, seen, depth)
        _see_metaclass(value, names, seen, depth)
        return
    attributes = attributes_of(value)
    if attributes is None and not type(value).__flags__ & _HEAP_TYPE:
        return
    if type(value).__flags__ & _HEAP_TYPE and not seen.once(_is_settled, inside_of(type(value)).get("__module__")):
        seen.watch(_core.WatchedClass, value)
        if "__class__" in names:  # it is asked for attributes that objects do not have, or have otherwise
            _see_object(type(value), names, seen, depth)
    if attributes is not None:
        names = names | _asked_for(attributes, value, names, seen)
    absent = ABSENT in names or _found_in(type(value), "__getattr__") is not _core.MISSING  # do those count, too?
    if is_of(value, ParameterCollection) and attributes and names & _OF_COLLECTIONS:
        seen.read.append((attributes["_all"], len(attributes["_all"]), _core.MISSING))
    there = seen.once(_names_in, type(value)) | (attributes or {}).keys()
    if is_of(value, _core.TrainerFields):
        there = there | _OF_TRAINERS.keys()
    looked_for = (names | _OF_OBJECTS) & there
    if absent:
        looked_for |= {name for name in names if name.isidentifier()}
    for name in sorted(looked_for):
        if attributes is not None and name in attributes:
            _see(attributes, name, attributes[name], names, seen, depth)
            continue
        in_class = _see_in_class(type(value), value, name, names, seen, depth)
        if name.startswith("__") and name.endswith("__"):
            continue  # it is looked for in the class alone
        if name in names and attributes is not None and (in_class or absent):
            seen.read.append((attributes, name, _core.MISSING))
        if name in names and absent and not in_class:
            seen.read.append((type(value), name, _core.MISSING))


def _see_items(value: Any, base: Any, names: set[str], seen: _Seen, depth: int) -> None:
    if base is list:
        seen.watch(_core.WatchedList, value)
    elif base is dict:
        seen.watch(_core.WatchedDict, value)
        if is_of(value, collections.OrderedDict):  # has an order of its own
            seen.watch(_core.WatchedItems, value, collections.OrderedDict)
    elif base in (set, collections.deque):
        seen.watch(_core.WatchedItems, value, base)
    if base.__len__(value) <= _MOST_ITEMS:
        items = [*base.__iter__(value), *(dict.values(value) if base is dict else ())]
        for one in items:
            _see_value(one, names, seen, depth)


def _see_numbers(value: Any, seen: _Seen) -> None:
    try:
        seen.watch(_core.WatchedBuffer, value)
    except (BufferError, ValueError):  # of a kind that other programs cannot look at, such as dates
        return


def _see_metaclass(kind: Any, names: set[str], seen: _Seen, depth: int) -> None:
    """What a class has from its own class."""
    if type(kind) is type or seen.once(_is_settled, inside_of(type(kind)).get("__module__")):
        return
    looked_for = (names | _OF_OBJECTS) & seen.once(_names_in, type(kind))
    if "__getattr__" in looked_for:
        looked_for |= {name for name in names if name.isidentifier()}
    for name in sorted(looked_for):
        if _found_in(kind, name) is _core.MISSING:
            seen.read.append((kind, name, _core.MISSING))
        _see_in_class(type(kind), kind, name, names, seen, depth)


def _asked_for(attributes: dict[str, Any], value: Any, names: set[str], seen: _Seen) -> set[str]:
    """Attributes that are not named but may be asked for: by names that are computed, or all."""
    if ANY in names:
        seen.watch(_core.WatchedDict, attributes)
    if is_of(value, *_WRAPPERS):
        return _OF_WRAPPERS
    if ANY in names and len(attributes) > _MOST_ITEMS:
        return set()
    texts = [one[1:] for one in names if one.startswith(ANY)]
    return {name for name in attributes if texts and type(name) is str and any(text in name for text in texts)}


def _see_in_class(kind: type, value: Any, name: str, names: set[str], seen: _Seen, depth: int) -> bool:
    """An attribute that a class gives to the object, or to itself. False: there is none."""
    owners = [c for c in kind.__mro__ if name in inside_of(c)]
    if name in _OF_TRAINERS and is_of(value, _core.TrainerFields):
        fields, field = seen.once(_Slots, value), _OF_TRAINERS[name]
        _see(fields, field, fields.get(field), names, seen, depth)
    via = kind  # where it is found
    for owner in owners:
        if not owner.__flags__ & _HEAP_TYPE or seen.once(_is_settled, inside_of(owner).get("__module__")):
            break  # it does not change
        function = _see_own(owner, via, value, name, names, seen, depth)
        if function is None or "super" not in seen.once(names_of, function)[0]:
            break
        for via in kind.__mro__[kind.__mro__.index(owner) + 1 :]:  # where super() looks
            if name in inside_of(via):
                break
            seen.read.append((via, name, _found_in(via, name)))
    return bool(owners)


def _names_in(kind: type) -> set[str]:
    """What objects of a class have from it, but for what all objects have."""
    return set().union(*(inside_of(c) for c in kind.__mro__ if c is not object))


def _found_in(kind: type, name: str) -> Any:
    """What objects of a class have from it or from one that it is derived from."""
    return next((inside_of(c)[name] for c in kind.__mro__ if name in inside_of(c)), _core.MISSING)


def _see_own(owner: type, via: type, value: Any, name: str, names: set[str], seen: _Seen, depth: int) -> Any:
    """What stands in the class itself, and is found by way of another; the function that is called then, None if it is
    none."""
    found = inside_of(owner)[name]
    if is_of(found, types.MemberDescriptorType):
        if value is not via:
            slots = seen.once(_Slots, value)
            _see(slots, name, slots.get(name), names, seen, depth)
        return None
    function = found
    if is_of(found, property):
        function = found.fget
    elif is_of(found, staticmethod, classmethod):
        function = found.__func__
    elif is_of(found, functools.cached_property, functools.partialmethod):
        function = found.func
    elif is_of(found, functools.singledispatchmethod):
        _see_callable(found.dispatcher, names, seen, depth)
        function = found.func
    elif _core.is_cell(found):
        function = found.function
    elif is_of(getter := _found_in(type(found), "__get__"), types.FunctionType):  # a descriptor of a program
        seen.look_again(value, names | seen.once(_names, getter), depth)
    if not is_of(function, types.FunctionType):
        _see(via, name, found, names, seen, depth)
        return None
    seen.read.append((via, name, found))
    if not seen.once(_is_settled, function.__module__):
        more = seen.once(_names, function)  # one of its own that is called
        _see_function(function, seen)
        if not more <= names:
            seen.look_again(value, names | more, depth)
    return function


class _Slots:
    """Attributes that an object keeps in slots, or a trainer in fields, by name. Does not keep the object in memory if that
    can be."""

    def __init__(self, value: Any) -> None:
        try:
            self._ref: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self._ref = lambda: value

    def __getitem__(self, name: str) -> Any:
        owner = self._ref()
        kind, slot = next(((c, inside_of(c)[name]) for c in type(owner).__mro__ if name in inside_of(c)), (None, None))
        if not is_of(slot, types.MemberDescriptorType) and kind is not _core.TrainerFields:
            raise KeyError(name)
        try:
            return slot.__get__(owner)  # type: ignore[union-attr]
        except AttributeError:
            raise KeyError(name) from None

    def get(self, name: str) -> Any:
        """MISSING where there is none."""
        try:
            return self[name]
        except KeyError:
            return _core.MISSING


class _Here:
    """What a context variable is in the context that asks (key None), or attributes of a threading.local() in its thread."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __getitem__(self, name: str | None) -> Any:
        found = self.get(name)
        if found is _core.MISSING:
            raise KeyError(name)
        return found

    def get(self, name: str | None) -> Any:
        """MISSING where there is none."""
        if name is None:
            return self._value.get(_core.MISSING)
        return threading.local.__getattribute__(self._value, "__dict__").get(name, _core.MISSING)
