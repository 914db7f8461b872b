"""What a cell or a compiled function reads besides its arguments: variables, attributes and items that its code names.

Runs no code of a program: objects may be proxies that do work, or fail, when they are asked for an attribute or their class. So
they are looked at by type(), classes and __dict__ are read as they are stored, and properties are not called.
Who may import: cells.py and compiled.py.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import gc
import importlib.util
import os
import sys
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from dynet_lite import _core
from dynet_lite.params import ParameterCollection

__all__ = ["read_by"]

_MOST_ITEMS = 32  # of a list, dict or set that a cell may read
_DEEPEST = 5  # objects and lists in one another: holder.layers[0].attention.dropout.p
_HEAP_TYPE = 1 << 9  # of a class that was made by Python code
_LIBRARY = os.path.dirname(os.__file__) + os.sep  # Python's own
# Methods that are called without being named: of objects, of classes.
_OF_OBJECTS = {f"__{name}__" for name in ("call", "get", "getattr", "getitem", "missing", "setitem", "iter", "next", "len", "contains", "bool", "float",
                                          "int", "index", "enter", "exit", "add", "sub", "mul", "matmul", "truediv", "floordiv",
                                          "mod", "pow", "radd", "rsub", "rmul", "rmatmul", "rtruediv", "rpow", "iadd", "isub", "imul",
                                          "itruediv", "neg", "pos", "abs", "lt", "le", "gt", "ge")}  # fmt: skip
_OF_CLASSES = {"__init__", "__new__", "__post_init__"}
_FEWEST = 8  # objects with cells of their own of which nothing is forgotten
_PATTERN = "__match_args__"  # of a class: the attributes that a pattern compares without naming them
_PLAIN = (int, float, str, bool, bytes, type(None))  # nothing is in them
# What trainers keep as fields, by the name that shows it.
_OF_TRAINERS = {**{name: name for name in _core.TrainerFields._numbers}, "learning_rate": "_learning_rate"}
# In functions that expect objects without an attribute; its name may be a text.
_ASK = {"getattr", "hasattr", "AttributeError"}
_ABSENT = "?"  # stands among the names of such functions
_OF_COLLECTIONS = {"parameters_list", "lookup_parameters_list", "parameter_count"}  # what grows with a collection
_inside: Callable[[type], Any] = type.__dict__["__dict__"].__get__  # vars() of a class, whatever its metaclass does


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
        self._kept: dict[tuple[int, Any], tuple[Any, Any]] = {}

    def found(self) -> list[Read]:
        """All that was read, each once."""
        return [*{(id(where), key): (where, key, value) for where, key, value in self.read}.values()]

    def once(self, make: Callable[..., Any], value: Any, *args: Any) -> Any:
        """make(value), one for each value: what is read twice is compared once."""
        found = self._kept.get((id(value), make))
        if found is None:
            found = self._kept[id(value), make] = value, make(value, *args)
        return found[1]

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
    classes, of modules and of the object that it is a method of, items of small lists, dicts and sets. ``where`` is a dict or
    list, what is read like one, the variable itself (key None), a class, which may inherit the attribute, or a function,
    whose code is read (key None).

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


def _is(value: Any, *kinds: type) -> bool:
    """isinstance() without asking the object."""
    return issubclass(type(value), kinds)


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
    return _named(function)[1]


def _named(function: Any) -> tuple[set[str], set[str]]:
    is_function = _is(function, types.FunctionType, types.MethodType, _core.told_type)
    if not (is_function and hasattr(function, "__code__")):
        return set(), set()
    variables, attributes = _in_code(function.__code__)
    if _PATTERN in attributes:
        attributes = attributes | _of_patterns(function, variables, attributes)
    return variables, attributes


@functools.lru_cache(maxsize=4096)
def _in_code(code: types.CodeType) -> tuple[set[str], set[str]]:
    """(variables and modules, attributes) that are named in code, and in functions and comprehensions inside it."""
    variables: set[str] = set()
    attributes: set[str] = set()
    before: Any = None
    level: Any = None  # what is before that
    for step in dis.get_instructions(code):
        if step.opcode in dis.hasname:
            of_object = step.opname.endswith(("_ATTR", "_METHOD")) or step.opname == "IMPORT_FROM"
            dots = "." * level.argval if step.opname == "IMPORT_NAME" else ""  # of `from ..package import name`
            (attributes if of_object else variables).add(dots + str(step.argval))
        elif step.opname == "MATCH_CLASS":  # after the names in `case Point(x=0)`
            attributes |= {_PATTERN, *before.argval}
        if step.opname != "EXTENDED_ARG":
            level, before = before, step
    if not variables.isdisjoint(_ASK):
        attributes |= {_ABSENT, *(one for one in code.co_consts if type(one) is str and one.isidentifier())}
    for inner in code.co_consts:
        if _is(inner, types.CodeType):
            more = _in_code(inner)
            variables |= more[0]
            attributes |= more[1]
    return variables, attributes


def _of_patterns(function: Any, variables: set[str], attributes: set[str]) -> set[str]:
    """Attributes that `case Point(0, y)` compares, where one of these variables, or of a module that one is, is the class."""
    inside = function.__globals__
    values = [inside[name] for name in variables if name in inside]
    for variable in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # it has no value
            values.append(variable.cell_contents)
    for module in values.copy():
        if _is(module, types.ModuleType):
            values += [one for name, one in (_attributes(module) or {}).items() if name in attributes]
    found = [_inside(c).get(_PATTERN) for kind in values if _is(kind, type) for c in kind.__mro__]
    return {name for names in found if type(names) is tuple for name in names if type(name) is str}


def _see_callable(function: Any, names: set[str], seen: _Seen, depth: int) -> None:
    """What is called: a function, a method with its object, a partial, or an object that can be called."""
    if _is(function, types.FunctionType, _core.told_type):
        _see_own_attributes(function, names, seen, depth)
        _see_function(function, seen)
    elif _core.is_cell(function):
        function = getattr(function, "cell", function).function
        if _core.is_method(function):
            _see_object(function.ref(), names | _names(function.function), seen, depth)
            function = function.function
        _see_callable(function, names, seen, depth)
    elif _is(function, types.MethodType):
        _see_object(function.__self__, names | _names(function.__func__), seen, depth)
        _see_function(function.__func__, seen)
    elif _is(function, functools.partial):
        _see_callable(function.func, names, seen, depth)
        names = names | _names(function.func)
        for given in (function.args, function.keywords):
            _see_object(given, names, seen, depth)
    else:
        _see_object(function, names, seen, depth)


def _see_function(function: Any, seen: _Seen) -> None:
    if _is(function, types.FunctionType) and not seen.once(_is_settled, function.__module__):
        if seen.is_new(function, seen.once(_names, function)):
            seen.functions.append(function)


def _see_own_attributes(function: Any, names: set[str], seen: _Seen, depth: int) -> None:
    """Those that a program has given to a function."""
    if _is(function, types.FunctionType) and function.__dict__ and seen.is_new(function.__dict__, names):
        for name in sorted(names & function.__dict__.keys()):
            _see(function.__dict__, name, function.__dict__[name], names, seen, depth)


def _see_variables(function: types.FunctionType, seen: _Seen) -> None:
    (variables, own), inside = seen.once(_named, function), function.__globals__
    seen.names |= own
    names = own | seen.common
    seen.read.append((function, None, function.__code__))  # tools such as autoreload of notebooks put in new code
    for name in sorted(variables):
        if name in inside:
            _see(inside, name, inside[name], own if _is(inside[name], types.ModuleType) else names, seen, 0)
        else:
            module = _imported(name, inside)
            if _is(module, types.ModuleType):  # it is imported in the function
                _see_module(module, own, seen, 0)
    for variable in function.__closure__ or ():
        try:
            value = variable.cell_contents
        except ValueError:
            continue
        _see(variable, None, value, names, seen, 0)
    for defaults in (function.__defaults__, function.__kwdefaults__):
        _see_object(defaults, names, seen, 0)


def _imported(name: str, inside: dict[str, Any]) -> Any:
    """The module of this name, or of this place beside that of a function with these globals."""
    try:
        return sys.modules.get(importlib.util.resolve_name(name, inside.get("__package__")))
    except ImportError:
        return None


def _see(where: Any, key: Any, value: Any, names: set[str], seen: _Seen, depth: int) -> None:
    if _is(value, types.ModuleType):
        _see_module(value, names, seen, depth)
        return
    seen.read.append((where, key, value))
    if type(value) not in _PLAIN:
        _see_callable(value, names, seen, depth + 1)


def _see_module(module: Any, names: set[str], seen: _Seen, depth: int) -> None:
    """Its variables. Into what they are goes nobody where the module is not the user's."""
    inside = _attributes(module)
    if inside is None or inside.get("Expression") is _core.Expression or not seen.is_new(module, names):
        return
    name_of = str(inside.get("__name__"))
    if name_of.split(".")[0] == __name__.split(".")[0]:
        return
    users = not _is_settled(name_of) and "-packages" not in str(inside.get("__file__"))
    for name in sorted(names):
        if name not in inside:
            continue
        if users:
            _see(inside, name, inside[name], names, seen, depth)
        elif not _is(inside[name], types.ModuleType):
            seen.read.append((inside, name, inside[name]))


def _see_object(value: Any, names: set[str], seen: _Seen, depth: int) -> None:
    """Items, and attributes that the function names."""
    if depth > _DEEPEST or _is(value, _core.Expression) or not seen.is_new(value, names):
        return
    if _is(value, set):
        _see_members(value, seen)
    base = next((kind for kind in (list, tuple, dict) if _is(value, kind)), None)
    if base is not None:
        _see_items(value, base, names, seen, depth)
        if type(value) is base:
            return
    if _is(value, type):  # its objects have its methods
        for name in sorted(names | _OF_CLASSES | _OF_OBJECTS):
            _see_in_class(value, value, name, names, seen, depth)
        return
    attributes = _attributes(value)
    if attributes is None and not type(value).__flags__ & _HEAP_TYPE:
        return
    absent = _ABSENT in names or _found_in(type(value), "__getattr__") is not _core.MISSING  # do those count, too?
    if _is(value, ParameterCollection) and attributes and names & _OF_COLLECTIONS:
        seen.read.append((attributes["_all"], len(attributes["_all"]), _core.MISSING))
    for name in sorted((names | _OF_OBJECTS) - {_ABSENT}):
        if attributes is not None and name in attributes:
            _see(attributes, name, attributes[name], names, seen, depth)
            continue
        in_class = _see_in_class(type(value), value, name, names, seen, depth)
        if name in names and attributes is not None and (in_class or absent):
            seen.read.append((attributes, name, _core.MISSING))
        if name in names and absent and not in_class:
            seen.read.append((type(value), name, _core.MISSING))


def _see_items(value: Any, base: Any, names: set[str], seen: _Seen, depth: int) -> None:
    where = value if type(value) is base else seen.once(_Items, value, base)
    if base.__len__(value) <= _MOST_ITEMS:
        items = list(dict.items(value)) if base is dict else enumerate(list(base.__iter__(value)))
        for key, one in items:
            _see(where, key, one, names, seen, depth)
        if base is dict:
            seen.read.append((seen.once(_Size, value), "", dict.__len__(value)))
    if base is list:
        seen.read.append((where, list.__len__(value), _core.MISSING))


def _see_members(value: Any, seen: _Seen) -> None:
    """Of a small set of what is compared without code of a program."""
    members = frozenset(value)
    if len(members) <= _MOST_ITEMS and all(type(one) in _PLAIN for one in members):
        seen.read.append((seen.once(_Members, value), members, members))


def _attributes(value: Any) -> dict[str, Any] | None:
    """The __dict__ that Python gave to an object; None where there is none."""
    own: Any = next((_inside(c)["__dict__"] for c in type(value).__mro__ if "__dict__" in _inside(c)), None)
    if type(own) not in (types.GetSetDescriptorType, types.MemberDescriptorType):
        return None
    found = own.__get__(value)
    return found if type(found) is dict else None


def _see_in_class(kind: type, value: Any, name: str, names: set[str], seen: _Seen, depth: int) -> bool:
    """An attribute that a class gives to the object, or to itself. False: there is none."""
    owners = [c for c in kind.__mro__ if name in _inside(c)]
    if name in _OF_TRAINERS and _is(value, _core.TrainerFields):
        fields, field = seen.once(_Slots, value), _OF_TRAINERS[name]
        _see(fields, field, fields.get(field), names, seen, depth)
    via = kind  # where it is found
    for owner in owners:
        if not owner.__flags__ & _HEAP_TYPE or seen.once(_is_settled, _inside(owner).get("__module__")):
            break  # it does not change
        function = _see_own(owner, via, value, name, names, seen, depth)
        if function is None or "super" not in seen.once(_named, function)[0]:
            break
        for via in kind.__mro__[kind.__mro__.index(owner) + 1 :]:  # where super() looks
            if name in _inside(via):
                break
            seen.read.append((via, name, _found_in(via, name)))
    return bool(owners)


def _found_in(kind: type, name: str) -> Any:
    """What objects of a class have from it or from one that it is derived from."""
    return next((_inside(c)[name] for c in kind.__mro__ if name in _inside(c)), _core.MISSING)


def _see_own(owner: type, via: type, value: Any, name: str, names: set[str], seen: _Seen, depth: int) -> Any:
    """What stands in the class itself, and is found by way of another; the function that is called then, None if it is
    none."""
    found = _inside(owner)[name]
    if _is(found, types.MemberDescriptorType):
        if value is not via:
            slots = seen.once(_Slots, value)
            _see(slots, name, slots.get(name), names, seen, depth)
        return None
    function = found
    if _is(found, property):
        function = found.fget
    elif _is(found, staticmethod, classmethod):
        function = found.__func__
    elif _is(found, functools.cached_property, functools.partialmethod):
        function = found.func
    elif _core.is_cell(found):
        function = found.function
    elif _is(getter := _found_in(type(found), "__get__"), types.FunctionType):  # a descriptor of a program
        seen.look_again(value, names | seen.once(_names, getter), depth)
    if not _is(function, types.FunctionType):
        _see(via, name, found, names, seen, depth)
        return None
    seen.read.append((via, name, found))
    if not seen.once(_is_settled, function.__module__):
        more = seen.once(_names, function)  # one of its own that is called
        _see_function(function, seen)
        if not more <= names:
            seen.look_again(value, names | more, depth)
    return function


class _Items:
    """Items of an object of a class that is derived from list, tuple or dict, read without the methods of the class."""

    def __init__(self, value: Any, base: Any) -> None:
        self._value, self._base = value, base

    def __getitem__(self, key: Any) -> Any:
        if self._base is dict:
            return dict.get(self._value, key, _core.MISSING)
        return self._base.__getitem__(self._value, key)

    @property
    def cell_contents(self) -> Any:
        """The item None: what has the key None is read as a variable."""
        return self[None]


class _Members:
    """What a set has: the members that it is asked about, if these are all."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __getitem__(self, members: Any) -> Any:
        return members if set.__eq__(self._value, members) else _core.MISSING


class _Size:
    """How many items a dict has, whatever the key: one that is missing may be asked for."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __getitem__(self, key: Any) -> int:
        return dict.__len__(self._value)


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
        kind, slot = next(((c, _inside(c)[name]) for c in type(owner).__mro__ if name in _inside(c)), (None, None))
        if not _is(slot, types.MemberDescriptorType) and kind is not _core.TrainerFields:
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
