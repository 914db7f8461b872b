"""Which variables and attributes the code of a function names. Runs nothing of a program.

Who may import: reading.py.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import re
import sys
import types
from typing import Any

from dynet_lite import _core

__all__ = ["ABSENT", "ANY", "attributes_of", "inside_of", "is_of", "names_of"]

ABSENT = "?"  # stands among the names of functions that expect objects without an attribute,
ANY = "*"  # before a text: all attributes are meant whose name has it; alone: all
_PATTERN = "__match_args__"  # of a class: the attributes that a pattern compares without naming them
_ASK = {"getattr", "hasattr", "AttributeError"}  # in functions that expect objects without an attribute
_BY_TEXT = {"getattr", "hasattr", "attrgetter", "methodcaller"}  # the attribute's name may be a text
_ASK_FOR_ALL = {"vars", "__dict__", "asdict", "astuple"}
# Methods of objects that these call.
_CALLED = {"==": {"__eq__", "__ne__"}, "!=": {"__eq__", "__ne__"}, "str": {"__str__", "__repr__"}, "repr": {"__repr__"},
           "format": {"__format__", "__str__", "__repr__"}, "hash": {"__hash__"}, "round": {"__round__"},
           "reversed": {"__reversed__"}, "divmod": {"__divmod__", "__rdivmod__"}, "type": {"__class__"}}  # fmt: skip
_NO_STEPS = {"EXTENDED_ARG", "CACHE", "PUSH_NULL", "PRECALL"}
_BETWEEN = re.compile(r"%.|\{[^}]*\}")  # the parts of a text that another one fills in
_REST = r"(?: (?:load|text)(?: attribute)*)? call"  # a third argument, if it is simple
_PLAINLY_ASKED = re.compile(rf"ask load(?: attribute)* text{_REST}")
_ASKED_BY_VARIABLE = re.compile(rf"ask load(?: attribute)* load(?: attribute)*{_REST}|ask(?! load)")
inside_of = type.__dict__["__dict__"].__get__  # vars() of a class, whatever its metaclass does


def is_of(value: Any, *kinds: type) -> bool:
    """isinstance() without asking the object."""
    return issubclass(type(value), kinds)


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The __dict__ that Python gave to an object; None where there is none."""
    own: Any = next((inside_of(c)["__dict__"] for c in type(value).__mro__ if "__dict__" in inside_of(c)), None)
    if type(own) not in (types.GetSetDescriptorType, types.MemberDescriptorType):
        return None
    found = own.__get__(value)
    return found if type(found) is dict else None


def names_of(function: Any) -> tuple[set[str], set[str]]:
    """(variables and modules, attributes) that are named in the code of a function."""
    is_function = is_of(function, types.FunctionType, types.MethodType, _core.told_type)
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
    steps = [step for step in dis.get_instructions(code) if step.opname not in _NO_STEPS]
    for k, step in enumerate(steps):
        if step.opcode in dis.hasname:
            of_object = step.opname.endswith(("_ATTR", "_METHOD")) or step.opname == "IMPORT_FROM"
            # of `from ..package import name`
            dots = "." * steps[k - 2].argval if step.opname == "IMPORT_NAME" else ""
            (attributes if of_object else variables).add(dots + str(step.argval))
        elif step.opname == "MATCH_CLASS":  # after the names in `case Point(x=0)`
            attributes |= {_PATTERN, *steps[k - 1].argval}
        elif step.opname == "COMPARE_OP":
            attributes |= _CALLED.get(step.argval, set())
        elif step.opname in ("CONTAINS_OP", "MATCH_KEYS"):
            attributes |= _CALLED["=="] | _CALLED["hash"]
        elif step.opname in ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE"):
            attributes |= _CALLED["format"]
    named = variables | attributes
    for name in named & _CALLED.keys():  # text types are named for isinstance(), too
        if "map" in named or any(step.argval == name and _is_called(step) for step in steps):
            attributes |= _CALLED[name]
    if not named.isdisjoint(_BY_TEXT):
        attributes |= {
            part for one in code.co_consts if type(one) is str for part in one.split(".") if part.isidentifier()
        }
    if not variables.isdisjoint(_ASK):
        attributes.add(ABSENT)
    if not named.isdisjoint(_ASK_FOR_ALL):
        attributes.add(ANY)
    attributes |= _computed(steps, [one for one in code.co_consts if type(one) is str])
    for inner in code.co_consts:
        if is_of(inner, types.CodeType):
            more = _in_code(inner)
            variables |= more[0]
            attributes |= more[1]
    return variables, attributes


def _computed(steps: list[dis.Instruction], texts: list[str]) -> set[str]:
    """What calls of getattr() and hasattr() ask for whose second argument is not simply a text but is made of some."""
    words = " ".join(_word(step) for step in steps)
    if words.count("ask") == len(_PLAINLY_ASKED.findall(words)):
        return set()
    if _ASKED_BY_VARIABLE.search(words) or not texts:
        return {ANY}
    return {ANY + max(_BETWEEN.split(text), key=len) for text in texts}


def _is_called(step: dis.Instruction) -> bool:
    """What a global function's name is loaded for, as far as the code tells: from Python 3.11 on."""
    return step.opname == "LOAD_GLOBAL" and ("NULL" in step.argrepr or sys.version_info < (3, 11))


def _word(step: dis.Instruction) -> str:
    if step.opname.endswith(("_ATTR", "_METHOD")):
        return "attribute"
    if step.opname.startswith("LOAD_"):
        if step.opcode in dis.hasname and step.argval in ("getattr", "hasattr"):
            return "ask"
        return "text" if step.opname == "LOAD_CONST" and type(step.argval) is str else "load"
    return "call" if step.opname.startswith("CALL") else step.opname


def _of_patterns(function: Any, variables: set[str], attributes: set[str]) -> set[str]:
    """Attributes that `case Point(0, y)` compares, where one of these variables, or of a module that one is, is the class."""
    inside = function.__globals__
    values = [inside[name] for name in variables if name in inside]
    for variable in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # it has no value
            values.append(variable.cell_contents)
    for module in values.copy():
        if is_of(module, types.ModuleType):
            values += [one for name, one in (attributes_of(module) or {}).items() if name in attributes]
    found = [inside_of(c).get(_PATTERN) for kind in values if is_of(kind, type) for c in kind.__mro__]
    return {name for names in found if type(names) is tuple for name in names if type(name) is str}
